package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"

	"github.com/asyncgen/asyncgen/device"
)

// A program is one goroutine's part of a random program: it draws its next step, performs it in the
// engine and in the model, and compares everything it can observe.
type program struct {
	w         *world
	e         *Engine
	o         Options
	rng       *rand.Rand
	id        int // the number of its first operation
	ops       int // operations so far
	vars      []*Storage
	model     []*modelVar
	own       int   // the first own of vars are its own; all programs read the others
	largest   int64 // the most bytes that an operation has written
	borrowed  bool  // others hold the variables, too, and have not let go
	roots     []*origin
	held      []*[]*origin  // the failures of the guesses that the program is in, the innermost last
	saved     [][]*modelVar // the variables that it may go back to
	discarded []*Storage    // outputs of discarded operations
	undecided []*[]*origin  // the failures of all guesses that are not decided
	alone     bool
	taken     *taken // what WaitAll and Synchronize have returned to all programs
	fail      bool   // it also draws operations that fail
	small     bool   // most variables are tiny ones on the host, and many operations have ready inputs
	limit     int64  // the largest bound on bytes so far; 0: none
	log       []string

	watched  bool
	expected []expectation

	scopes []*modelScope // to choose from; the first is none
	over   uint64        // contexts that have ended
	unsure uint64        // contexts that are ending just now
	made   int           // contexts made so far
	ending []*ending
}

// An ending is the end of a context that has begun, or may begin.
type ending struct {
	context uint64
	cancel  func()
	done    chan struct{} // nil: it has not begun
}

// scopeKinds are the scopes of a program, and how often each is drawn.
const (
	noScope     = iota
	liveScope   // never ends
	firstScope  // the program ends it at random, and then replaces it
	secondScope // like firstScope
	innerScope  // part of firstScope
	bothScopes  // firstScope and secondScope
	deadScope   // has ended before the program began
	scopeKinds
)

var scopeOdds = [...]int{noScope: 10, liveScope: 2, firstScope: 2, secondScope: 2, innerScope: 1, bothScopes: 1, deadScope: 1}

// newContext makes a context that the program can end.
func (p *program) newContext() (context.Context, uint64) {
	bit := uint64(1) << p.made
	p.made++
	ctx, cancel := context.WithCancelCause(bg)
	p.ending = append(p.ending, &ending{context: bit, cancel: func() { cancel(endOf{bit}) }})
	return ctx, bit
}

// scope makes a scope, or one that is part of another.
func (p *program) scope(ctx context.Context, bit uint64, outer *modelScope) *modelScope {
	in := p.w.devs[0]
	if outer != nil {
		in = outer.on[0]
		bit |= outer.contexts
	}
	return p.everywhere(device.WithContext(ctx, in), bit)
}

func (p *program) everywhere(in device.Device, contexts uint64) *modelScope {
	s := &modelScope{contexts: contexts}
	for _, d := range p.w.devs {
		s.on = append(s.on, d.Within(in))
	}
	return s
}

// enter makes the scopes.
func (p *program) enter() {
	p.scopes = make([]*modelScope, scopeKinds)
	p.scopes[noScope] = &modelScope{on: p.w.devs}
	p.scopes[liveScope] = p.scope(bg, 1, nil)
	p.made = 1
	ctx, bit := p.newContext()
	p.ending[0].cancel()
	p.ending, p.over = nil, bit
	p.scopes[deadScope] = p.scope(ctx, bit, nil)
	p.renew()
}

// renew replaces the scopes that the program ends.
func (p *program) renew() {
	for _, k := range []int{firstScope, secondScope} {
		ctx, bit := p.newContext()
		p.scopes[k] = p.scope(ctx, bit, nil)
	}
	ctx, bit := p.newContext()
	p.scopes[innerScope] = p.scope(ctx, bit, p.scopes[firstScope])
	both := p.scopes[firstScope].contexts | p.scopes[secondScope].contexts
	p.scopes[bothScopes] = p.everywhere(p.scopes[firstScope].on[0].Within(p.scopes[secondScope].on[1]), both)
}

// leave ends all scopes.
func (p *program) leave() {
	for _, end := range p.ending {
		end.cancel()
		if end.done != nil {
			<-end.done
		}
	}
}

// someScope returns a scope, in most cases none.
func (p *program) someScope() *modelScope {
	all := 0
	for _, odds := range scopeOdds {
		all += odds
	}
	r, k := p.rng.IntN(all), 0
	for ; r >= scopeOdds[k]; k++ {
		r -= scopeOdds[k]
	}
	return p.scopes[k]
}

// chanceOf returns the chance of an operation that belongs to s and reads nothing. It reports whether s
// has certainly ended.
func (p *program) chanceOf(s *modelScope) (c chance, over bool) {
	c = chance{maybe: s.contexts&p.unsure != 0, later: s.contexts &^ (p.over | p.unsure | 1), named: s.contexts}
	return c, s.contexts&p.over != 0
}

// and returns the chance that one of two things has happened.
func (c chance) and(d chance) chance {
	return chance{c.maybe || d.maybe, c.later | d.later, c.named | d.named}
}

// endScope ends a context, at once or at any time from now on.
func (p *program) endScope() {
	if len(p.ending) == 0 || p.made > 50 {
		return
	}
	end := p.ending[p.rng.IntN(len(p.ending))]
	if end.done != nil { // it is under way
		<-end.done
		p.ending = slices.DeleteFunc(p.ending, func(e *ending) bool { return e == end })
		p.unsure &^= end.context
		p.over |= end.context
		p.log = append(p.log, fmt.Sprintf("context %b has ended", end.context))
		if p.rng.IntN(3) == 0 {
			p.renew()
		}
		return
	}
	// Operations that have finished by now are not affected.
	for k, s := range p.vars {
		if p.model[k].later&end.context != 0 && s.Ready() {
			p.model[k].later = 0
		}
	}
	for _, list := range slices.Concat(p.saved, [][]*modelVar{p.model}) {
		for _, m := range list {
			m.ends(end.context)
		}
	}
	for _, list := range slices.Concat(p.undecided, []*[]*origin{&p.roots}) {
		for _, o := range *list {
			o.ends(end.context)
		}
	}
	p.log = append(p.log, fmt.Sprintf("context %b ends", end.context))
	p.unsure |= end.context
	end.done = make(chan struct{})
	stop := func() { end.cancel(); close(end.done) }
	if p.rng.IntN(2) == 0 {
		go stop()
	} else {
		stop()
	}
}

func (p *program) newVar(i int) {
	if p.vars[i] != nil && p.model[i].cause != released && !p.model[i].shared && p.rng.IntN(2) == 0 {
		p.e.Release(p.vars[i]) // nobody will know it any more
		p.vars[i] = nil
	}
	dev := p.rng.IntN(len(p.w.devs))
	if p.rng.IntN(2) == 0 {
		dev = 0
	}
	scope := p.someScope()
	n := 1 + p.rng.IntN(4)
	if p.rng.IntN(60) == 0 {
		n = worthReleasing / 8
	}
	if p.small && p.rng.IntN(8) > 0 {
		dev, n = 0, 1+p.rng.IntN(2)
	}
	if p.rng.IntN(3) == 0 { // undefined until it is written; the model writes it at once
		m, bytes := p.fresh(dev, n, scope)
		p.replace(i, p.e.NewStorage(scope.on[dev], bytes), m)
		p.enqueue(kFill, i, -1, nil)
		return
	}
	m := &modelVar{dev: dev, made: scope, by: scope, vals: make([]float64, n)}
	if !onHost(dev) { // it takes an upload
		var over bool
		m.chance, over = p.chanceOf(scope)
		if over {
			m.cause = ended
		}
	}
	for k := range m.vals {
		m.vals[k] = float64(p.rng.IntN(100) - 50)
	}
	p.replace(i, p.from(scope.on[dev], m.vals...), m)
}

// replace makes s variable i. It often lets go of the old storage; otherwise that is left to the
// collector.
func (p *program) replace(i int, s *Storage, m *modelVar) {
	if old := p.vars[i]; old != nil && p.model[i].cause != released && !p.borrowed && p.rng.IntN(2) == 0 {
		old.LetGo()
	}
	p.vars[i], p.model[i] = s, m
}

// share makes variable j the same as variable i: nothing may write them from now on.
func (p *program) share(i, j int) {
	if p.model[i].cause == released || i == j {
		return
	}
	p.vars[i].Hold()
	p.model[i].shared = true
	p.replace(j, p.vars[i], p.model[i])
	p.log = append(p.log, fmt.Sprintf("%d is %d", j, i))
}

// fresh returns a variable that has to be written, and how many bytes it takes: sometimes more than
// there are.
func (p *program) fresh(dev, n int, scope *modelScope) (m *modelVar, bytes int64) {
	m = &modelVar{dev: dev, made: scope, by: scope, vals: make([]float64, n)}
	m.tiny = onHost(dev) && n <= 2
	if p.fail && !m.tiny && p.rng.IntN(6) == 0 {
		m.lacks = true
		return m, scarce(n)
	}
	return m, int64(n) * 8
}

// enqueue performs an operation in the engine and in the model.
func (p *program) enqueue(kind, out, out2 int, in []int) {
	p.ops++
	number := p.id + p.ops
	c := float64(p.rng.IntN(64)) / 4
	shape := device.Shape{number}
	o := &origin{number: number, kind: kind, dev: p.model[out].dev, scope: p.model[out].made}
	op := Op{Cmd: device.Command{Kernel: kernelsOf[kind], N: 1, Imm: [2]uint64{math.Float64bits(c), uint64(max(0, p.rng.IntN(40)-35))}}}
	op.Operands[0], op.Shapes[0] = p.vars[out], &shape
	op.Cost = int64(1) << p.rng.IntN(16)
	k := 1
	m := *p.model[out]
	writes, m2 := []*modelVar{&m}, (*modelVar)(nil)
	if out2 >= 0 {
		op.Operands[k] = p.vars[out2]
		op.Writes = 3
		k++
		two := *p.model[out2]
		m2 = &two
		writes = append(writes, m2)
	}
	switch kind {
	case kShift:
		op.Cmd.Off[2] = 1
	case kTurn:
		op.Cmd.Args = &device.Args{Strides: [device.MaxOperands][]int{2: {-1}}}
	}
	var inputs []*modelVar
	var cause *origin
	var why chance
	for _, i := range in {
		v := p.model[i]
		if p.vars[i] == p.vars[out] || out2 >= 0 && p.vars[i] == p.vars[out2] {
			op.Cmd.Imm[1] |= overlaps
		}
		if kind == kMany {
			op.Reads = append(op.Reads, p.vars[i])
		} else {
			op.Operands[k] = p.vars[i]
			k++
		}
		inputs = append(inputs, v)
		if cause == nil {
			cause, why = v.cause, why.and(v.chance)
		}
	}
	if kind == kMany {
		op.Cmd.Args = &device.Args{Parts: make([]device.Part, len(in))}
	}
	spoiled, cancelled := cause != nil, false
	if cause == nil {
		var own chance
		own, cancelled = p.chanceOf(o.scope)
		why = why.and(own)
		if cancelled {
			cause = ended
		}
	}
	if cancelled || spoiled && p.w.devs[o.dev].Backend().Caps().Synchronous {
		op.Cmd.Imm[1] |= forbidden
	}
	p.site(&op, o)
	all := 0
	for _, w := range writes {
		all += len(w.vals)
	}
	p.writes(all)
	if cause == nil {
		for _, w := range append(writes, inputs...) {
			o.lacked = o.lacked || w.lacks
		}
		if o.lacked || !compute(kind, &m, m2, inputs, c) {
			cause, o.chance = o, why
			fails := p.failures()
			*fails = append(*fails, o)
		}
	}
	for _, w := range writes {
		w.cause, w.by, w.chance = cause, o.scope, why
	}
	p.model[out] = &m
	if m2 != nil {
		p.model[out2] = m2
	}
	p.log = append(p.log, fmt.Sprintf("#%d kind %d out %d,%d in %v scope %b: %v", number, kind, out, out2, in, o.scope.contexts, cause))
}

// writes notes that an operation writes n elements.
func (p *program) writes(n int) { p.largest = max(p.largest, int64(n)*8) }

// site enqueues op on one of two lines, and notes which in o.
func (p *program) site(op *Op, o *origin) {
	if p.watched {
		p.expected = append(p.expected, expectation{*op, o})
	}
	_, _, line, _ := runtime.Caller(0)
	if o.number%2 == 0 {
		o.line = line + 3
		p.e.Enqueue(op)
	} else {
		o.line = line + 6
		p.e.Enqueue(op)
	}
}

// failures returns the list to which the next failure belongs.
func (p *program) failures() *[]*origin {
	if n := len(p.held); n > 0 {
		return p.held[n-1]
	}
	return &p.roots
}

// another returns a variable on the same device as variable i, maybe itself.
func (p *program) another(i int) int {
	for range 4 {
		if j := p.rng.IntN(len(p.vars)); p.model[j].dev == p.model[i].dev {
			return j
		}
	}
	return i
}

// several returns variables on the device of variable i, perhaps i itself, and perhaps some repeatedly.
func (p *program) several(i int) []int {
	list := make([]int, p.rng.IntN(9))
	for k := range list {
		list[k] = p.another(i)
	}
	return list
}

func (p *program) step() error {
	if len(p.held) < 2 && p.rng.IntN(40) == 0 {
		return p.speculate()
	}
	if len(p.held) > 0 {
		return p.stepAhead()
	}
	i := p.rng.IntN(p.own)
	if p.model[i].cause == released || p.model[i].shared { // nothing may write it
		p.newVar(i)
		return nil
	}
	r := p.rng.IntN(1000)
	switch {
	case p.small && r < 300:
		if p.rng.IntN(2) == 0 {
			for k := range p.vars {
				if err := p.read(k); err != nil {
					return err
				}
			}
		}
		for range 1 + p.rng.IntN(4) {
			p.operateAhead(p.rng.IntN(len(p.vars)), p.rng.IntN(p.own))
		}
	case r < 560:
		p.operate(i)
	case r < 640:
		p.operateAhead(p.rng.IntN(len(p.vars)), i)
	case r < 740:
		p.copyTo(i)
	case r < 770:
		p.newVar(i)
	case r < 780:
		if p.rng.IntN(2) == 0 { // something worth letting go
			m := &modelVar{dev: 0, made: p.scopes[noScope], by: p.scopes[noScope], vals: make([]float64, worthReleasing/8)}
			p.replace(i, p.e.NewStorage(p.w.devs[0], worthReleasing), m)
			p.enqueue(kFill, i, -1, nil)
		}
		p.share(i, p.rng.IntN(p.own))
	case r < 800:
		p.e.Release(p.vars[i])
		if m := *p.model[i]; !m.tiny {
			m.cause, m.chance, m.by = released, chance{}, p.scopes[noScope] // a release is in no scope
			p.model[i] = &m
			p.log = append(p.log, fmt.Sprintf("release %d", i))
		}
	case r < 880:
		return p.read(i)
	case r < 960:
		return p.look(i)
	case r < 985:
		return p.synchronize()
	case r < 995:
		return p.anytime()
	case p.alone:
		return p.rarely()
	}
	return nil
}

// operate enqueues an operation that writes variable i, and perhaps another one.
func (p *program) operate(i int) {
	a, b, d := p.another(i), p.another(i), p.another(i)
	switch kind := p.rng.IntN(kinds); kind {
	case kFill:
		p.enqueue(kind, i, -1, nil)
	case kMix, kShift, kTurn:
		p.enqueue(kind, i, -1, []int{a, b})
	case kInPlace:
		p.enqueue(kind, i, -1, []int{i, a})
	case kTwo:
		// also the same twice: the second result is the one that stays
		if a < p.own && p.model[a].cause != released && !p.model[a].shared {
			p.enqueue(kind, i, a, []int{b})
		}
	case kSum:
		p.enqueue(kind, i, -1, []int{a, b, d})
	case kMany:
		p.enqueue(kind, i, -1, slices.DeleteFunc(p.several(i), func(j int) bool { return p.vars[j] == p.vars[i] }))
	default:
		if p.fail && p.rng.IntN(4) == 0 {
			p.enqueue(kind, i, -1, []int{a})
		} else {
			p.enqueue(kMix, i, -1, []int{a, b})
		}
	}
}

// anytime is a step that needs no variable.
func (p *program) anytime() error {
	if p.rng.IntN(3) > 0 {
		p.endScope()
		return nil
	}
	if p.o.MaxBytes > 0 {
		bytes := int64(1 + p.rng.IntN(200))
		if p.limit != 0 {
			p.limit = max(p.limit, bytes)
		}
		p.e.SetLimit(bytes)
	}
	return nil
}

// stepAhead is a step that writes only what is new.
func (p *program) stepAhead() error {
	i := p.rng.IntN(len(p.vars))
	switch r := p.rng.IntN(20); {
	case r < 10:
		p.operateAhead(i, p.rng.IntN(p.own))
	case r < 11:
		if i < p.own {
			p.share(i, p.rng.IntN(p.own))
		}
	case r < 15:
		p.copyTo(p.rng.IntN(p.own))
	case r < 17:
		return p.read(i)
	case r < 18:
		return p.look(i)
	case r < 19:
		return p.synchronize()
	default:
		p.endScope()
	}
	return nil
}

// operateAhead makes something new of variable i, sometimes something else of that, and so on. It
// gives back what it does not need any more: the next result may take its memory. The last result
// becomes variable j.
func (p *program) operateAhead(i, j int) {
	// The new variables get places of their own first, since the old variable j may be among the inputs.
	n := len(p.vars)
	m := p.model[i]
	other, third := p.another(i), p.another(i)
	kind, in := kMix, []int{other, third}
	if p.fail && p.rng.IntN(4) == 0 {
		kind, in = kFail+p.rng.IntN(3), in[:1]
	}
	x := p.makeNew(m, kind, in...)
	var also []int // made of the same as others
	for p.rng.IntN(2) == 0 {
		if p.rng.IntN(6) == 0 {
			also = append(also, p.makeNew(m, kMix, x, other))
		}
		y := 0
		switch p.rng.IntN(9) {
		case 0:
			y = p.makeNew(m, kMix, x, x)
		case 1:
			y = p.makeNew(m, kTurn, x, x)
		case 2:
			y = p.makeNew(m, kShift, other, x)
		case 3:
			y = p.makeNew(m, kSum, x, other, third)
			if p.rng.IntN(2) == 0 {
				// others may have been given back
				some := slices.DeleteFunc(p.several(i), func(j int) bool { return j >= n })
				also = append(also, p.makeNew(m, kMany, append(some, x)...))
			}
		case 4:
			y = p.makeNew(m, kTurn, x, other)
		case 5:
			y = p.newLike(m)
			z := p.newLike(m)
			p.enqueue(kTwo, y, z, []int{x})
			also = append(also, z)
		default:
			y = p.makeNew(m, kMix, other, x)
		}
		switch p.rng.IntN(10) {
		case 0:
			also = append(also, p.makeNew(m, kMix, x, other))
		case 1:
			also = append(also, p.makeNew(m, kMany, x))
		}
		if p.rng.IntN(4) > 0 {
			p.e.Release(p.vars[x])
		} else {
			p.vars[x].LetGo()
		}
		x = y
	}
	for _, y := range also {
		x = p.makeNew(m, kMix, x, y)
	}
	p.replace(j, p.vars[x], p.model[x])
	clear(p.vars[n:])
	p.vars, p.model = p.vars[:n], p.model[:n]
}

// makeNew makes something new that is like m from the variables in, and returns its place.
func (p *program) makeNew(m *modelVar, kind int, in ...int) int {
	x := p.newLike(m)
	p.enqueue(kind, x, -1, in)
	return x
}

// newLike adds a variable that is like m and has to be written. It returns its place.
func (p *program) newLike(m *modelVar) int {
	scope := p.someScope()
	fresh, bytes := p.fresh(m.dev, len(m.vals), scope)
	p.vars, p.model = append(p.vars, p.e.NewStorage(scope.on[m.dev], bytes)), append(p.model, fresh)
	return len(p.vars) - 1
}

// speculate runs ahead for a few guesses, then keeps some of them, and goes on from there.
func (p *program) speculate() error {
	type point struct {
		g     *Guess
		vars  []*Storage
		model []*modelVar
		fails []*origin
	}
	sp := p.e.Speculate()
	points := make([]point, 1+p.rng.IntN(4))
	p.held = append(p.held, nil)
	outer := len(p.saved)
	wanted := 0 // the first that are known to be
	for i := range points {
		points[i] = point{g: sp.Guess(), vars: slices.Clone(p.vars), model: slices.Clone(p.model)}
		p.saved, p.undecided = append(p.saved, points[i].model), append(p.undecided, &points[i].fails)
		p.held[len(p.held)-1] = &points[i].fails
		for range p.rng.IntN(8) {
			if err := p.step(); err != nil {
				return fmt.Errorf("running ahead: %w", err)
			}
		}
		if p.rng.IntN(3) == 0 && wanted < i {
			p.keep(points[wanted].g, &points[wanted].fails)
			wanted++
		}
		if wanted == 0 && p.rng.IntN(8) == 0 { // something that is wanted anyway
			p.borrowed = true
			vars, model := p.vars, p.model
			p.vars, p.model = slices.Clone(points[0].vars), slices.Clone(points[0].model)
			p.held[len(p.held)-1] = p.outerFailures()
			sp.End()
			p.operateSomewhere()
			sp.Resume()
			p.vars, p.model = vars, model
			p.borrowed = false
		}
	}
	end := wanted + p.rng.IntN(len(points)+1-wanted)
	for ; wanted < end; wanted++ {
		p.keep(points[wanted].g, &points[wanted].fails)
	}
	for i := end; i < len(points); i++ {
		points[i].g.Discard()
	}
	if end < len(points) {
		p.unwanted()
		p.vars, p.model = points[end].vars, points[end].model
	}
	sp.End()
	p.held = p.held[:len(p.held)-1]
	p.saved, p.undecided = p.saved[:outer], p.undecided[:outer]
	p.log = append(p.log, fmt.Sprintf("kept %d of %d guesses", end, len(points)))
	return nil
}

// unwanted enqueues operations in a guess that was discarded already, also inside a guess that is kept.
// They must not begin.
func (p *program) unwanted() {
	inner := p.e.Speculate()
	if p.rng.IntN(2) == 0 {
		inner.Guess().Keep()
	}
	for range p.rng.IntN(4) {
		i := p.rng.IntN(len(p.vars))
		dev, n := p.model[i].dev, len(p.model[i].vals)
		op := Op{Cmd: device.Command{Kernel: kernelsOf[kFill], N: 1, Imm: [2]uint64{0, forbidden}}}
		op.Operands[0] = p.e.NewStorage(p.scopes[noScope].on[dev], int64(n)*8)
		p.writes(n)
		p.e.Enqueue(&op)
		p.discarded = append(p.discarded, op.Operands[0], p.e.Copy(op.Operands[0], 0, n, device.Float64, p.w.devs[p.rng.IntN(len(p.w.devs))]))
	}
	inner.End()
}

// outerFailures returns the list for failures that do not belong to the innermost guess.
func (p *program) outerFailures() *[]*origin {
	if n := len(p.held); n > 1 {
		return p.held[n-2]
	}
	return &p.roots
}

func (p *program) keep(g *Guess, fails *[]*origin) {
	g.Keep()
	outer := p.outerFailures()
	*outer = append(*outer, *fails...)
	*fails = nil
}

// copyTo makes variable i a copy of another one, anywhere.
func (p *program) copyTo(i int) {
	j := p.rng.IntN(len(p.vars))
	m := *p.model[j]
	m.dev, m.lacks, m.tiny, m.made = p.rng.IntN(len(p.w.devs)), false, false, p.someScope()
	m.by = m.made
	if m.cause == nil {
		own, over := p.chanceOf(m.made)
		m.chance = m.and(own)
		if over {
			m.cause = ended
		}
	}
	off := p.rng.IntN(len(m.vals))
	n := 1 + p.rng.IntN(len(m.vals)-off)
	m.vals = slices.Clone(m.vals[off : off+n])
	m.tiny = onHost(m.dev) && n <= 2
	m.shared = false
	p.writes(n)
	p.replace(i, p.e.Copy(p.vars[j], off, n, device.Float64, m.made.on[m.dev]), &m)
	p.log = append(p.log, fmt.Sprintf("copy %d from %d to device %d in scope %b: %v", i, j, m.dev, m.made.contexts, m.cause))
}

// read compares variable i with the model.
func (p *program) read(i int) error {
	s, m := p.vars[i], p.model[i]
	if m.dev != 0 {
		s = p.e.Copy(s, 0, len(m.vals), device.Float64, p.w.devs[0])
	}
	err := s.Wait(bg, "read")
	if err := p.seen(i, err); err != nil || !s.Ready() {
		return fmt.Errorf("variable %d, ready %v: %w", i, s.Ready(), err)
	}
	if err != nil {
		return nil
	}
	return p.sameValue(i, s)
}

func (p *program) sameValue(i int, s *Storage) error {
	m := p.model[i]
	if got := device.Slice[float64](s.Buffer(), 0, len(m.vals)); !slices.Equal(got, m.vals) {
		return fmt.Errorf("variable %d is %v, want %v", i, got, m.vals)
	}
	return nil
}

// seen compares the outcome of variable i with the model. From then on the model knows it for certain.
func (p *program) seen(i int, err error) error {
	m := p.model[i]
	if err := p.w.sameError(err, m.cause, m.chance); err != nil {
		return err
	}
	if err != nil && (m.cause == nil || !m.cause.isAs(p.w, err)) {
		m.cause = ended // it has come to that
	}
	if i < p.own {
		m.maybe, m.later = false, 0
	}
	return nil
}

// look asks for variable i in one of the ways that do not read it.
func (p *program) look(i int) error {
	switch p.rng.IntN(7) {
	case 0:
		if s := p.e.Stats(); s.InFlightBytes < 0 || p.alone && s.Executed+s.Skipped > s.Enqueued {
			return fmt.Errorf("counts %+v", s)
		}
		if p.vars[i].Ready() {
			return p.seen(i, p.vars[i].Err())
		}
	case 1:
		return p.mark()
	case 2:
		ctx, cancel := context.WithCancel(bg)
		if p.rng.IntN(2) == 0 {
			cancel()
		} else {
			go cancel()
		}
		if err := p.vars[i].Wait(ctx, "cancelled"); !errors.Is(err, context.Canceled) {
			return p.seen(i, err)
		}
	case 3:
		return p.waitEach()
	case 5, 6:
		if p.vars[i].Hasten() {
			return p.seen(i, p.vars[i].Err())
		}
	case 4:
		ctx, cancel := context.WithCancel(bg)
		go cancel()
		if err := p.vars[i].Wait(ctx, "cancelled"); !errors.Is(err, context.Canceled) {
			return p.seen(i, err)
		}
	}
	return nil
}

// mark waits for a mark, and checks that everything enqueued before has finished.
func (p *program) mark() error {
	var devs []device.Device
	in := make([]bool, len(p.w.devs))
	for k, d := range p.w.devs {
		in[k] = p.rng.IntN(3) == 0
		if in[k] {
			devs = append(devs, d)
		}
	}
	m := p.e.Mark(devs...)
	from := now()
	if _, ok := m.Reached(); ok { // there is nothing to wait for
		for k, s := range p.vars {
			if (in[p.model[k].dev] || len(devs) == 0) && !s.Ready() {
				return fmt.Errorf("a mark is reached before variable %d is ready", k)
			}
		}
	}
	if p.rng.IntN(2) == 0 {
		p.operateSomewhere()
	}
	ctx, cancel := context.WithCancel(bg)
	if p.rng.IntN(4) == 0 {
		go cancel()
	}
	err := m.Wait(ctx, "mark")
	cancel()
	if err != nil {
		if !errors.Is(err, context.Canceled) {
			return err
		}
		m.Wait(bg, "mark")
	}
	if at, ok := m.Reached(); !ok || at > now() || p.e.mode == Naive && at > from {
		return fmt.Errorf("after waiting for a mark: reached %v at %v", ok, at)
	}
	return nil
}

// operateSomewhere enqueues an operation that writes something new, or does nothing.
func (p *program) operateSomewhere() {
	p.operateAhead(p.rng.IntN(len(p.vars)), p.rng.IntN(p.own))
}

// waitEach waits for several variables at once.
func (p *program) waitEach() error {
	var ss []*Storage
	var which []int
	for range 1 + p.rng.IntN(4) {
		i := p.rng.IntN(len(p.vars))
		ss, which = append(ss, p.vars[i]), append(which, i)
	}
	err := WaitEach(bg, "several", ss)
	var first error
	for k, s := range ss {
		if !s.Ready() {
			return fmt.Errorf("after waiting for variables %v, number %d is not ready", which, k)
		}
		if first == nil {
			first = s.Err()
		}
		if err := p.seen(which[k], s.Err()); err != nil {
			return err
		}
	}
	if err != first {
		return fmt.Errorf("waiting for variables %v: %v, but the first error is %v", which, err, first)
	}
	return nil
}

// synchronize waits for everything, or for a device or a scope; sometimes a context ends the wait early.
func (p *program) synchronize() error {
	ctx, cancel := context.WithCancel(bg)
	defer cancel()
	if p.rng.IntN(4) == 0 {
		go cancel()
	}
	dev, scope := p.rng.IntN(len(p.w.devs)), p.scopes[p.rng.IntN(scopeKinds)]
	if p.rng.IntN(3) == 0 {
		err := p.e.WaitAll(ctx)
		if errors.Is(err, context.Canceled) && err == ctx.Err() {
			return nil // nothing is forgotten
		}
		for k, s := range p.vars {
			if !s.Ready() {
				return fmt.Errorf("after waiting for everything, variable %d is not ready", k)
			}
		}
		return p.sameRoots(err, func(*origin) bool { return true })
	}
	err := p.e.Synchronize(ctx, scope.on[dev])
	if err != nil && err == ctx.Err() {
		return nil
	}
	for k, s := range p.vars {
		m := p.model[k]
		if (scope.contexts == 0 && m.dev == dev || k < p.own && scope.has(m.by)) && !s.Ready() {
			return fmt.Errorf("after waiting for device %d, scope %b, variable %d is not ready", dev, scope.contexts, k)
		}
	}
	if scope.contexts == 0 {
		return p.sameRoots(err, func(o *origin) bool { return o.dev == dev })
	}
	over := scope.contexts&p.over != 0
	list := joined(err)
	if end, ok := last(list).(endOf); ok && end.context&scope.contexts&(p.over|p.unsure) != 0 {
		err = errors.Join(list[:len(list)-1]...)
	} else if over {
		return fmt.Errorf("the error of scope %b is %v", scope.contexts, err)
	}
	return p.sameRoots(err, func(o *origin) bool { return scope.has(o.scope) })
}

// last returns the last of some errors, or nil.
func last(list []error) error {
	if len(list) == 0 {
		return nil
	}
	return list[len(list)-1]
}

// taken holds the failures that were returned, by number.
type taken struct {
	mu   sync.Mutex
	seen map[int]error
}

// add adds the failures that one call has returned.
func (t *taken) add(err error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, one := range joined(err) {
		e, ok := errors.AsType[*OpError](one)
		if !ok || len(e.Shapes) == 0 {
			return fmt.Errorf("unexpected failure %+v", one)
		}
		n := e.Shapes[0][0]
		if t.seen[n] != nil {
			return fmt.Errorf("the failure of operation %d was returned twice", n)
		}
		t.seen[n] = one
	}
	return nil
}

// joined lists the errors that err joins.
func joined(err error) []error {
	if err == nil {
		return nil
	}
	return err.(interface{ Unwrap() []error }).Unwrap()
}

// sameRoots compares what WaitAll or Synchronize returned with the failures of the model that the call
// takes. Other goroutines may take ours; at the end it is checked that none is lost.
func (p *program) sameRoots(err error, takes func(*origin) bool) error {
	if !p.alone {
		return p.taken.add(err)
	}
	var want []*origin
	p.roots = slices.DeleteFunc(p.roots, func(o *origin) bool {
		if takes(o) {
			want = append(want, o)
			return true
		}
		return false
	})
	return p.w.sameFailures(joined(err), want)
}

// sameFailures compares failures with those of the model. Some of the model's may not have happened, see
// chance.
func (w *world) sameFailures(got []error, want []*origin) error {
	slices.SortStableFunc(want, func(a, b *origin) int { return cmp.Compare(a.number, b.number) })
	k := 0
	for _, o := range want {
		switch {
		case k < len(got) && o.isAs(w, got[k]):
			k++
		case !o.maybe:
			return fmt.Errorf("of the failures %v there are %v: no %d", want, got, o.number)
		}
	}
	if k < len(got) {
		return fmt.Errorf("failures %v, want %v", got, want)
	}
	return nil
}

// rarely is a step that affects everything in the engine.
func (p *program) rarely() error {
	if p.rng.IntN(4) == 0 {
		return p.burst()
	}
	return p.forbidWaits()
}

// forbidWaits does some steps while waiting is forbidden.
func (p *program) forbidWaits() error {
	if old := p.e.SetSyncPolicy(Error); old != Allow {
		return fmt.Errorf("the policy was %v", old)
	}
	defer p.e.SetSyncPolicy(Allow)
	before := p.e.Stats().Waits
	waits := int64(0)
	for range p.rng.IntN(8) {
		i := p.rng.IntN(len(p.vars))
		if p.rng.IntN(2) == 0 {
			p.operateSomewhere()
		}
		ready := p.vars[i].Ready()
		var err error
		switch p.rng.IntN(4) {
		case 0:
			AllowSync(func() { err = p.vars[i].Wait(bg, "allowed") })
			if !ready {
				waits++
			}
			ready = true
		case 1:
			err = WaitEach(bg, "several", []*Storage{p.vars[i]})
		case 2:
			if err = p.e.WaitAll(bg); !isForbidden(err) {
				err = p.sameRoots(err, func(*origin) bool { return true })
				if err != nil {
					return err
				}
			}
			continue
		default:
			err = p.vars[i].Wait(bg, "forbidden")
		}
		if isForbidden(err) {
			if ready || p.e.mode == Naive {
				return fmt.Errorf("reading what is ready: %v", err)
			}
			continue
		}
		if err := p.seen(i, err); err != nil {
			return err
		}
	}
	if now := p.e.Stats().Waits; now > before+waits {
		return fmt.Errorf("%d waits although only %d were allowed", now-before, waits)
	}
	return nil
}

func isForbidden(err error) bool {
	_, ok := errors.AsType[*SyncError](err)
	return ok
}

// burst lets more operations fail than WaitAll returns.
func (p *program) burst() error {
	if !p.fail {
		return nil
	}
	if err := p.sameRoots(p.e.WaitAll(bg), func(*origin) bool { return true }); err != nil {
		return err
	}
	var g *Guess
	sp := p.e.Speculate()
	if p.rng.IntN(2) == 0 {
		g = sp.Guess()
	}
	from := p.ops
	scope := p.scopes[noScope]
	for range maxRoots - 8 + p.rng.IntN(16) {
		dev := p.rng.IntN(len(p.w.devs))
		if p.rng.IntN(2) == 0 {
			dev = 1
		}
		p.ops++
		o := &origin{number: p.id + p.ops, kind: kFail, dev: dev, scope: scope}
		shape := device.Shape{o.number}
		x := p.e.NewStorage(scope.on[dev], 8)
		op := Op{Cmd: device.Command{Kernel: kernelsOf[kFail], N: 1}, Operands: [device.MaxOperands]*Storage{x, x}, Writes: 1}
		op.Shapes[0] = &shape
		op.Operands[1] = p.good(dev)
		p.site(&op, o)
		p.roots = append(p.roots, o)
	}
	if g != nil {
		sp.End()
		g.Keep()
	}
	all := joined(p.e.WaitAll(bg))
	if n := p.ops - from; n > maxRoots {
		if len(all) != maxRoots+1 || all[maxRoots].Error() != fmt.Sprintf("asyncgen: and %d more failed operations", n-maxRoots) {
			return fmt.Errorf("of %d failures there are %d, and %v", n, len(all), all[len(all)-1])
		}
		all, p.roots = all[:maxRoots], p.roots[:maxRoots]
	}
	want := p.roots
	p.roots = nil
	return p.w.sameFailures(all, want)
}

// good returns a storage of a device that is not spoiled.
func (p *program) good(dev int) *Storage {
	return p.from(p.w.devs[dev], 1)
}

// from makes a storage with the given contents.
func (p *program) from(d device.Device, v ...float64) *Storage {
	p.writes(len(v))
	b := device.HostBuffer(int64(len(v)) * 8)
	copy(device.Slice[float64](b, 0, len(v)), v)
	return p.e.FromHost(d, b)
}

// An expectation is an operation as Engine.Record should report it.
type expectation struct {
	op Op
	o  *origin
}

// sameEvents compares the events of Engine.Record with what the program has enqueued.
func (p *program) sameEvents(events []Event) error {
	// copies, and what nobody wants
	events = slices.DeleteFunc(events, func(ev Event) bool { return len(ev.Shapes) == 0 })
	if len(events) != len(p.expected) {
		return fmt.Errorf("%d operations were recorded, want %d", len(events), len(p.expected))
	}
	for i, ev := range events {
		op, o := p.expected[i].op, p.expected[i].o
		var operands []*Storage
		for _, s := range op.Operands {
			if s != nil {
				operands = append(operands, s)
			}
		}
		operands = append(operands, op.Reads...)
		if !slices.Equal(ev.Operands, operands) || ev.Writes != max(op.Writes, 1) || ev.Op != op.Cmd.Kernel.Name ||
			ev.Shapes[0][0] != o.number || ev.Line != o.line || ev.Device != o.scope.on[o.dev] || len(ev.DTypes) != 1+len(op.Cmd.Kernel.In) {
			return fmt.Errorf("operation %d was recorded as %+v", o.number, ev)
		}
	}
	return nil
}
