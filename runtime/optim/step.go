package optim

import (
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// A step is a Step of one optimiser under way, of those that are no Group or of what a Group itself has.
type step struct {
	o      *Optimizer
	factor *float64 // by which the rate is multiplied, as far as the host knows
	by     *scale   // what the caller has multiplied it by, on the device
	own    *scale   // by, with what o multiplies it by
	size   *scale   // the rate, if it is not known yet; else nil
	isDone []bool   // by parameter
	sent   []func() // set parameters to what their owners send
}

// step is Step with the rate multiplied by two numbers. One is on the device. The host knows the other, which may
// differ in each run of a step that is captured.
func (o *Optimizer) step(outer func() float64, by *scale) {
	s := o.beginStep(outer, by)
	for _, part := range o.parts {
		part.step(s.outer, s.own)
	}
	s.end()
}

// beginStep begins a step. It leaves parts of a Group as they are.
func (o *Optimizer) beginStep(outer func() float64, by *scale) *step {
	s := &step{o: o, factor: new(float64), by: by, own: by, isDone: make([]bool, len(o.params))}
	inEachRun(counts{&o.counts}, func() {
		factor := outer()
		if o.Schedule != nil {
			f := o.Schedule(int(o.counts[0]))
			mustFactors("Step", f)
			factor *= f
		}
		tensor.Changing(counts{&o.counts})
		o.counts[0]++
		*s.factor = factor
	})
	if o.Plateau != nil && o.Plateau.scale.IsSet() {
		s.own = s.own.times(o.Plateau.scale.Value())
	}
	if o.Guard {
		s.own = s.own.times(finite(o.all()))
	}
	o.guard()
	if len(o.parts) == 0 {
		if _, isKnown := o.rate.Known(); !isKnown {
			s.size = &scale{[]*tensor.Tensor{s.rate().As(tensor.Float64)}}
		}
	}
	return s
}

// outer is what parts of a Group multiply their rates by.
func (s *step) outer() float64 { return *s.factor }

func (s *step) rate() tensor.F64 {
	if *s.factor == 1 {
		return s.o.rate
	}
	return s.o.rate.Mul(tensor.Const(*s.factor))
}

// update gives parameter i its next value, if it has a gradient.
func (s *step) update(i int) {
	if s.isDone[i] {
		return
	}
	s.isDone[i] = true
	o, p := s.o, s.o.params[i]
	if !p.HasGrad() {
		return
	}
	if p.Owner().IsElsewhere() {
		o.counts[1+i]++
		o.forget(i)
		return
	}
	o.mustRemember(i)
	g := p.Grad()
	v := p.Value()
	mustKeepShape("Step", i, g, v)
	u := update{o: o, i: i, x: wide(v.Detach()), g: wide(g), now: &numbers{}}
	now := u.now
	inEachRun(counts{&o.counts}, func() {
		o.counts[1+i]++
		now.steps = float64(o.counts[1+i])
		if s.size == nil {
			now.rate, _ = s.rate().Known()
		}
	})
	u.scale, u.size = s.own.like(u.x), s.size.like(u.x)
	y := o.rule.next(&u)
	if dt := v.DType(); y.DType() != dt {
		y = u.temp(y).As(dt)
	}
	p.Set(y)
	tensor.Dead(append(u.temps, u.g, v, u.x, y)...)
}

// end updates the parameters that are left.
func (s *step) end() {
	var left []*nn.Param
	for i, p := range s.o.params {
		if !s.isDone[i] {
			s.update(i)
			left = append(left, p)
		}
	}
	set := tensor.Renew(left...)
	for _, f := range append(s.sent, set) {
		f()
	}
	s.size.dead()
	if s.own != s.by {
		s.own.dead()
	}
}

// steps is a Step of an optimiser and all of its parts, which updates parameters in any order.
type steps struct {
	of    []*step // a Group before its parts
	where map[*nn.Param]place
}

// A place is a parameter in a step.
type place struct {
	s *step
	i int
}

func (all *steps) begin(o *Optimizer, outer func() float64, by *scale) {
	if all.where == nil {
		all.where = map[*nn.Param]place{}
	}
	s := o.beginStep(outer, by)
	all.of = append(all.of, s)
	for i, p := range o.params {
		all.where[p] = place{s, i}
	}
	for _, part := range o.parts {
		all.begin(part, s.outer, s.own)
	}
}

// update updates those of the parameters that are the optimiser's.
func (all *steps) update(params []*nn.Param) {
	var ours []*nn.Param
	for _, p := range params {
		if at, ok := all.where[p]; ok {
			at.s.update(at.i)
			ours = append(ours, p)
		}
	}
	all.of[0].sent = append(all.of[0].sent, tensor.Renew(ours...))
}

// end updates all others.
func (all *steps) end() {
	for i := len(all.of) - 1; i >= 0; i-- { // what a Group multiplies rates by is used by its parts
		all.of[i].end()
	}
}
