package engine

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/asyncgen/asyncgen/device"
)

// Random programs: a program draws its next step from a seeded generator, hands it to the engine
// and to a model that computes it at once, and compares whatever it reads. The model is
// a few arrays and knows nothing of queues; it shares no code with the engine.

var (
	programs = flag.Int("programs", 1500, "number of random programs")
	seed     = flag.Uint64("seed", 0, "seed of the random programs; 0: from the clock")
)

// A modelVar is a variable as the model sees it.
type modelVar struct {
	dev   int       // where it lives
	vals  []float64 // undefined while cause != 0
	cause int       // number of the operation whose failure spoiled it, or ended
	scope int       // that it was made in: an index of program.scopes
	by    int       // the scope of the operation that wrote it last
	lacks bool      // its memory could not be had
}

// ended is a cause that is no number of an operation: the scope of one had.
const ended = -1

// The scopes of a program.
const (
	noScope = iota
	live
	dead // its context has ended before the program began
)

var errEnded = errors.New("ended")

// The kinds of operation. Their arithmetic is written twice: here for the model, and in the kernels below.
const (
	kFill    = iota // out = c
	kMix            // out = a/2 + b + c, elements of shorter operands repeating
	kInPlace        // out = out*3/4 + a
	kTwo            // out, out2 = a+c, a-c
	kSum            // out[i] = i + all elements of a, b and d
	kFail           // fails, having written rubbish
	kPanic          // panics, having written rubbish
	kFailIf         // out = a, or fails if the first element of a is positive
	kinds
)

// compute is the model of one operation. It reports false if that fails.
func compute(kind int, out, out2 *modelVar, in []*modelVar, c float64) bool {
	at := func(v []float64, i int) float64 { return v[i%len(v)] }
	n := len(out.vals)
	res, res2 := make([]float64, n), []float64(nil)
	switch kind {
	case kFill:
		for i := range res {
			res[i] = c
		}
	case kMix:
		for i := range res {
			res[i] = at(in[0].vals, i)/2 + at(in[1].vals, i)
			res[i] += c
		}
	case kInPlace:
		for i := range res {
			res[i] = float64(out.vals[i]*0.75) + at(in[1].vals, i)
		}
	case kTwo:
		res2 = make([]float64, len(out2.vals))
		for i := range res {
			res[i] = at(in[0].vals, i) + c
		}
		for i := range res2 {
			res2[i] = at(in[0].vals, i) - c
		}
	case kSum:
		var sum float64
		for _, v := range in {
			for _, x := range v.vals {
				sum += x
			}
		}
		sum = math.Mod(sum, 1000)
		for i := range res {
			res[i] = sum + float64(i)
		}
	case kFailIf:
		if in[0].vals[0] > 0 {
			return false
		}
		for i := range res {
			res[i] = at(in[0].vals, i)
		}
	case kFail, kPanic:
		return false
	}
	out.vals = res
	if res2 != nil {
		out2.vals = res2
	}
	return true
}

var errPlanned = errors.New("planned failure")

// kernelOf makes the kernel of a kind with a number of inputs.
func kernelOf(kind, inputs int) *device.Kernel {
	at := func(v []float64, i int) float64 { return v[i%len(v)] }
	outputs := 1
	if kind == kTwo {
		outputs = 2
	}
	return fakeKernel(fmt.Sprint("kind", kind), inputs, func(c *device.Command) error {
		k := math.Float64frombits(c.Imm[0])
		for range c.Imm[1] {
			runtime.Gosched()
		}
		out := vals(c, 0)
		in := make([][]float64, inputs) // copies: an operand may be written as well
		for i := range in {
			in[i] = slices.Clone(vals(c, outputs+i))
		}
		switch kind {
		case kFill:
			for i := range out {
				out[i] = k
			}
		case kMix:
			for i := range out {
				out[i] = at(in[0], i)*0.5 + at(in[1], i) + k
			}
		case kInPlace:
			for i := range out {
				out[i] = float64(out[i]*0.75) + at(in[1], i)
			}
		case kTwo:
			out2 := vals(c, 1)
			for i := range out {
				out[i] = at(in[0], i) + k
			}
			for i := range out2 {
				out2[i] = at(in[0], i) - k
			}
		case kSum:
			sum := 0.0
			for _, v := range in {
				for _, x := range v {
					sum += x
				}
			}
			sum = math.Mod(sum, 1000)
			for i := range out {
				out[i] = float64(i) + sum
			}
		case kFailIf:
			if in[0][0] > 0 {
				out[0] = math.NaN()
				return errPlanned
			}
			for i := range out {
				out[i] = at(in[0], i)
			}
		case kFail:
			out[0] = math.NaN()
			return errPlanned
		case kPanic:
			out[len(out)-1] = math.NaN()
			panic(errPlanned)
		}
		return nil
	})
}

var kernelsOf = func() (k [kinds]*device.Kernel) {
	for kind, inputs := range []int{kFill: 0, kMix: 2, kInPlace: 2, kTwo: 1, kSum: 3, kFail: 1, kPanic: 1, kFailIf: 1} {
		k[kind] = kernelOf(kind, inputs)
	}
	return k
}()

// world is the devices of random programs. The first is the host's.
type world struct {
	devs []device.Device
	cpus []*fakeCPU // what allocates for each
}

var newWorld = sync.OnceValue(func() *world {
	w := &world{}
	add := func(name string, kind device.Kind, b device.Backend, alloc *fakeCPU) {
		w.devs = append(w.devs, device.Wrap(name, kind, b))
		w.cpus = append(w.cpus, alloc)
	}
	cpu, cpu2, hidden := &fakeCPU{}, &fakeCPU{}, &fakeCPU{noHost: true}
	gpu, gpu2 := newFakeGPU(), newFakeGPU()
	gpu2.refuse = true
	add("cpu", device.KindCPU, cpu, cpu)
	add("gpu:0", device.KindGPU, gpu, &gpu.fakeCPU)
	add("numa", device.KindCPU, cpu2, cpu2)
	add("gpu:1", device.KindGPU, gpu2, &gpu2.fakeCPU)
	add("dsp", device.KindCPU, hidden, hidden)
	return w
})

// A failure is an operation that has failed: its number, its device and its scope.
type failure struct{ number, dev, scope int }

func everyone(failure) bool { return true }

// A program is one goroutine's part of a random program.
type program struct {
	w     *world
	e     *Engine
	rng   *rand.Rand
	id    int // its first operation's number
	ops   int // so many so far
	vars  []*Storage
	model []modelVar
	roots []failure    // since the last WaitAll
	held  []*[]failure // of the guesses that the program is in, the innermost last
	alone bool
	fail  bool // operations that fail are drawn
	log   []string

	scopes [3]context.Context
	on     [3][]device.Device // the devices in each scope
}

// enter makes the scopes.
func (p *program) enter() {
	over, cancel := context.WithCancelCause(bg)
	cancel(errEnded)
	p.scopes = [...]context.Context{noScope: nil, live: bg, dead: over}
	for s, ctx := range p.scopes {
		in := device.Device{}
		if s != noScope {
			in = device.WithContext(ctx, p.w.devs[0])
		}
		for _, d := range p.w.devs {
			p.on[s] = append(p.on[s], d.Within(in))
		}
	}
}

// someScope returns a scope, in most cases none.
func (p *program) someScope() int {
	return [...]int{noScope, noScope, noScope, noScope, noScope, noScope, live, live, dead}[p.rng.IntN(9)]
}

func (p *program) newVar(i int) {
	if p.vars[i] != nil && p.rng.IntN(2) == 0 {
		p.e.Release(p.vars[i]) // nobody will know it any more
	}
	dev := p.rng.IntN(len(p.w.devs))
	if p.rng.IntN(2) == 0 {
		dev = 0
	}
	scope := p.someScope()
	n := 1 + p.rng.IntN(4)
	if p.rng.IntN(3) == 0 { // undefined until it is written; the model writes it at once
		m := modelVar{dev: dev, scope: scope, by: scope, vals: make([]float64, n)}
		lacks := p.fail && p.alone && p.rng.IntN(4) == 0 && (dev != 0 && dev != 2 || n > 2)
		bytes := int64(n) * 8
		if lacks {
			m.lacks, bytes = true, scarce(n)
		}
		p.vars[i], p.model[i] = p.e.NewStorage(p.on[scope][dev], bytes), m
		p.enqueue(kFill, i, -1, nil)
		return
	}
	m := modelVar{dev: dev, scope: scope, by: scope, vals: make([]float64, n)}
	if scope == dead && dev != 0 && dev != 2 { // it takes an upload
		m.cause = ended
	}
	for k := range m.vals {
		m.vals[k] = float64(p.rng.IntN(100) - 50)
	}
	p.vars[i], p.model[i] = fromFloats(p.e, p.on[scope][dev], m.vals...), m
}

// enqueue performs an operation in the engine and in the model.
func (p *program) enqueue(kind, out, out2 int, in []int) {
	p.ops++
	number := p.id + p.ops
	c := float64(p.rng.IntN(64)) / 4
	shape := device.Shape{number}
	op := Op{Cmd: device.Command{Kernel: kernelsOf[kind], N: 1, Imm: [2]uint64{math.Float64bits(c), uint64(max(0, p.rng.IntN(40)-35))}}}
	op.Operands[0], op.Shapes[0] = p.vars[out], &shape
	op.Cost = int64(1) << p.rng.IntN(16)
	k := 1
	writes := []*modelVar{&p.model[out]}
	var om2 *modelVar
	if out2 >= 0 {
		op.Operands[k] = p.vars[out2]
		op.Writes = 3
		k++
		om2 = &p.model[out2]
		writes = append(writes, om2)
	}
	var inputs []*modelVar
	cause := 0
	for _, i := range in {
		op.Operands[k] = p.vars[i]
		k++
		inputs = append(inputs, &p.model[i])
		if cause == 0 {
			cause = p.model[i].cause
		}
	}
	p.e.Enqueue(&op)
	failed := false
	if cause == 0 && p.model[out].scope == dead {
		cause = ended
	}
	if cause == 0 {
		for _, w := range append(writes, inputs...) {
			failed = failed || w.lacks
		}
		failed = failed || !compute(kind, &p.model[out], om2, inputs, c)
		if failed {
			cause = number
			fails := p.failures()
			*fails = append(*fails, failure{number, p.model[out].dev, p.model[out].scope})
		}
	}
	for _, w := range writes {
		w.cause, w.by = cause, p.model[out].scope
	}
	p.log = append(p.log, fmt.Sprintf("#%d kind %d out %d,%d in %v cause %d", number, kind, out, out2, in, cause))
}

// failures are where the next failure belongs.
func (p *program) failures() *[]failure {
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

func (p *program) step() error {
	if len(p.held) < 2 && p.rng.IntN(40) == 0 {
		return p.speculate()
	}
	i := p.rng.IntN(len(p.vars))
	if len(p.held) > 0 {
		return p.stepAhead(i)
	}
	switch r := p.rng.IntN(100); {
	case r < 70:
		a, b, d := p.another(i), p.another(i), p.another(i)
		switch kind := p.rng.IntN(kinds); kind {
		case kFill:
			p.enqueue(kind, i, -1, nil)
		case kMix:
			p.enqueue(kind, i, -1, []int{a, b})
		case kInPlace:
			p.enqueue(kind, i, -1, []int{i, a})
		case kTwo:
			if a != i {
				p.enqueue(kind, i, a, []int{b})
			}
		case kSum:
			p.enqueue(kind, i, -1, []int{a, b, d})
		default:
			if p.fail && p.rng.IntN(4) == 0 {
				p.enqueue(kind, i, -1, []int{a})
			} else {
				p.enqueue(kMix, i, -1, []int{a, b})
			}
		}
	case r < 80:
		p.copyTo(i)
	case r < 84:
		p.newVar(i)
	case r < 94:
		return p.read(i)
	case r < 96:
		if s := p.e.Stats(); s.InFlightBytes < 0 || p.alone && s.Executed+s.Skipped > s.Enqueued {
			return fmt.Errorf("counts %+v", s)
		}
		if p.rng.IntN(2) == 0 {
			m := p.e.Mark()
			if err := m.Wait(bg, "mark"); err != nil {
				return err
			}
			for k, s := range p.vars {
				if _, ok := m.Reached(); !ok || !s.Ready() {
					return fmt.Errorf("after waiting for a mark: reached %v, variable %d ready %v", ok, k, s.Ready())
				}
			}
		}
		if p.vars[i].Ready() {
			if err := p.sameError(p.vars[i].Err(), p.model[i].cause); err != nil {
				return err
			}
		}
	case r < 98:
		ctx, cancel := context.WithCancel(bg)
		if p.rng.IntN(2) == 0 {
			cancel()
		} else {
			go cancel()
		}
		if err := p.vars[i].Wait(ctx, "cancelled"); !errors.Is(err, context.Canceled) {
			return p.sameError(err, p.model[i].cause)
		}
	case p.alone:
		return p.synchronize()
	}
	return nil
}

// stepAhead is a step on variable i that writes only what is new.
func (p *program) stepAhead(i int) error {
	switch r := p.rng.IntN(10); {
	case r < 6:
		a, b := p.another(i), p.another(i)
		scope := p.someScope()
		fresh := modelVar{dev: p.model[i].dev, scope: scope, by: scope, vals: make([]float64, len(p.model[i].vals))}
		bytes := int64(len(fresh.vals)) * 8
		if p.fail && p.alone && p.rng.IntN(8) == 0 && (fresh.dev != 0 && fresh.dev != 2 || len(fresh.vals) > 2) {
			fresh.lacks, bytes = true, scarce(len(fresh.vals))
		}
		j := p.rng.IntN(len(p.vars))
		in, kind := []*modelVar{&p.model[a], &p.model[b]}, kMix
		if p.fail && p.rng.IntN(4) == 0 {
			in, kind = in[:1], kFail+p.rng.IntN(3)
		}
		p.perform(kind, p.e.NewStorage(p.on[scope][fresh.dev], bytes), fresh, j, []int{a, b}[:len(in)])
	case r < 8:
		p.copyTo(i)
	case r < 9 || !p.alone:
		return p.read(i)
	default:
		return p.synchronize()
	}
	return nil
}

// synchronize waits for everything, or for a device or a scope.
func (p *program) synchronize() error {
	dev, scope := p.rng.IntN(len(p.w.devs)), p.rng.IntN(len(p.scopes))
	if p.rng.IntN(3) == 0 {
		return p.sameRoots(p.e.WaitAll(bg), everyone)
	}
	err := p.e.Synchronize(bg, p.on[scope][dev])
	if scope == noScope {
		return p.sameRoots(err, func(f failure) bool { return f.dev == dev })
	}
	for k, s := range p.vars {
		if p.model[k].by == scope && !s.Ready() {
			return fmt.Errorf("after waiting for scope %d, its variable %d is not ready", scope, k)
		}
	}
	if scope == dead {
		if !errors.Is(err, errEnded) {
			return fmt.Errorf("the error of the dead scope is %v", err)
		}
		err = nil
	}
	return p.sameRoots(err, func(f failure) bool { return f.scope == scope })
}

// perform is enqueue with a new output, which becomes variable j.
func (p *program) perform(kind int, out *Storage, m modelVar, j int, in []int) {
	// The new one gets a place of its own first, as the old variable j may be among the inputs.
	p.vars, p.model = append(p.vars, out), append(p.model, m)
	last := len(p.vars) - 1
	p.enqueue(kind, last, -1, in)
	p.vars[j], p.model[j] = p.vars[last], p.model[last]
	p.vars, p.model = p.vars[:last], p.model[:last]
}

// speculate runs ahead for a few guesses, and then keeps some of them and goes on from there.
func (p *program) speculate() error {
	type point struct {
		g     *Guess
		vars  []*Storage
		model []modelVar
		fails []failure
	}
	sp := p.e.Speculate()
	points := make([]point, 1+p.rng.IntN(4))
	p.held = append(p.held, nil)
	steps := func(fails *[]failure) error {
		p.held[len(p.held)-1] = fails
		for range p.rng.IntN(8) {
			if err := p.step(); err != nil {
				return fmt.Errorf("running ahead: %w", err)
			}
		}
		return nil
	}
	wanted := 0 // the first that are known to be
	for i := range points {
		points[i] = point{g: sp.Guess(), vars: slices.Clone(p.vars), model: slices.Clone(p.model)}
		if err := steps(&points[i].fails); err != nil {
			return err
		}
		if p.rng.IntN(3) == 0 && wanted < i {
			p.keep(points[wanted].g, &points[wanted].fails)
			wanted++
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
		var rest []failure
		for range p.rng.IntN(4) { // nothing that is read: it may be spoiled
			i := p.rng.IntN(len(p.vars))
			p.held[len(p.held)-1] = &rest
			p.copyTo(i)
		}
		p.vars, p.model = points[end].vars, points[end].model
	}
	sp.End()
	p.held = p.held[:len(p.held)-1]
	p.log = append(p.log, fmt.Sprintf("kept %d of %d guesses", end, len(points)))
	return nil
}

func (p *program) keep(g *Guess, fails *[]failure) {
	g.Keep()
	outer := &p.roots
	if n := len(p.held); n > 1 {
		outer = p.held[n-2]
	}
	*outer = append(*outer, *fails...)
	*fails = nil
}

// copyTo makes variable i a copy of another one, anywhere.
func (p *program) copyTo(i int) {
	j := p.rng.IntN(len(p.vars))
	m := p.model[j]
	m.dev, m.lacks, m.scope = p.rng.IntN(len(p.w.devs)), false, p.someScope()
	m.by = m.scope
	if m.scope == dead && m.cause == 0 {
		m.cause = ended
	}
	off := p.rng.IntN(len(m.vals))
	n := 1 + p.rng.IntN(len(m.vals)-off)
	m.vals = slices.Clone(m.vals[off : off+n])
	p.vars[i] = p.e.Copy(p.vars[j], off, n, device.Float64, p.on[m.scope][m.dev])
	p.model[i] = m
	p.log = append(p.log, fmt.Sprintf("copy %d from %d to device %d in scope %d", i, j, m.dev, m.scope))
}

// read compares variable i with the model.
func (p *program) read(i int) error {
	s, m := p.vars[i], &p.model[i]
	if m.dev != 0 {
		s = p.e.Copy(s, 0, len(m.vals), device.Float64, p.w.devs[0])
	}
	if err := p.sameError(s.Wait(bg, "read"), m.cause); err != nil {
		return fmt.Errorf("variable %d: %w", i, err)
	}
	if m.cause != 0 {
		return nil
	}
	if got := device.Slice[float64](s.Buffer(), 0, len(m.vals)); !slices.Equal(got, m.vals) {
		return fmt.Errorf("variable %d is %v, want %v", i, got, m.vals)
	}
	return nil
}

func (p *program) sameError(err error, cause int) error {
	if err == nil && cause == 0 {
		return nil
	}
	var oe *OpError
	switch {
	case err == nil:
		return fmt.Errorf("no error, want that of operation %d", cause)
	case cause == 0 || !errors.As(err, &oe):
		return fmt.Errorf("unexpected error %+v", err)
	case cause == ended && errors.Is(err, errEnded) && oe.File != "":
		return nil
	case cause > 0 && len(oe.Shapes) > 0 && oe.Shapes[0][0] == cause && oe.File != "":
		return nil
	}
	return fmt.Errorf("error %+v, want that of operation %d", err, cause)
}

// sameRoots compares what WaitAll or Synchronize returned with those failures of the model that it takes.
func (p *program) sameRoots(err error, takes func(failure) bool) error {
	var want []int
	p.roots = slices.DeleteFunc(p.roots, func(f failure) bool {
		if takes(f) {
			want = append(want, f.number)
			return true
		}
		return false
	})
	if got := rootNumbers(err); !slices.Equal(got, want) {
		return fmt.Errorf("failures %v, want %v", got, want)
	}
	return nil
}

func rootNumbers(err error) []int {
	var got []int
	if err == nil {
		return nil
	}
	for _, one := range err.(interface{ Unwrap() []error }).Unwrap() {
		got = append(got, one.(*OpError).Shapes[0][0])
	}
	return got
}

// runProgram runs the program with the given seed.
func runProgram(seed uint64) (err error) {
	rng := rand.New(rand.NewPCG(seed, 1))
	w := newWorld()
	o := Options{Mode: Async, Workers: 1 + rng.IntN(4), Ring: 2 << rng.IntN(8), MaxBytes: -1}
	if rng.IntN(100) == 0 {
		o.Ring = 4096
	}
	if rng.IntN(3) == 0 {
		o.MaxBytes = int64(1 + rng.IntN(200))
	}
	switch rng.IntN(8) {
	case 0:
		o.Mode = Naive
	case 1, 2:
		o.Mode, o.Seed = Shuffle, rng.Uint64()
	}
	e := New(o)
	producers := 1
	if rng.IntN(4) == 0 {
		producers += rng.IntN(3)
	}
	fail := rng.IntN(2) == 0
	all := make([]*program, producers)
	errs := make([]error, producers)
	steps := 1 << rng.IntN(9)
	var wg sync.WaitGroup
	for k := range all {
		p := &program{w: w, e: e, rng: rand.New(rand.NewPCG(seed, uint64(2+k))), id: k * 1_000_000, alone: producers == 1, fail: fail}
		all[k] = p
		p.enter()
		n := 2 + p.rng.IntN(8)
		p.vars, p.model = make([]*Storage, n), make([]modelVar, n)
		wg.Go(func() {
			for i := range p.vars {
				p.newVar(i)
			}
			for range steps {
				if errs[k] = p.step(); errs[k] != nil {
					return
				}
			}
			for i := range p.vars {
				if errs[k] = p.read(i); errs[k] != nil {
					return
				}
			}
		})
	}
	wg.Wait()
	for k, err := range errs {
		if err != nil {
			log := all[k].log
			return fmt.Errorf("%+v, producer %d of %d after %d operations: %w\n%s", o, k, producers, all[k].ops, err,
				strings.Join(log[max(0, len(log)-12):], "\n"))
		}
	}
	var want []int
	for _, p := range all {
		for _, f := range p.roots {
			want = append(want, f.number)
		}
	}
	got := rootNumbers(e.Close())
	if producers > 1 {
		slices.Sort(got)
	}
	if !slices.Equal(got, want) {
		return fmt.Errorf("%+v: failures %v, want %v", o, got, want)
	}
	s := e.Stats()
	if s.InFlightBytes != 0 || s.Executed+s.Skipped != s.Enqueued {
		return fmt.Errorf("%+v: left over: %+v", o, s)
	}
	if limit := o.MaxBytes; limit > 0 && o.Mode != Naive && s.PeakBytes > max(limit, 8*8) {
		return fmt.Errorf("%+v: peak %d over the bound", o, s.PeakBytes)
	}
	return nil
}

func TestRandomPrograms(t *testing.T) {
	first := *seed
	if first == 0 {
		first = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d", first)
	for i := range uint64(*programs) {
		hangs := time.AfterFunc(time.Minute, func() {
			panic(fmt.Sprintf("program %d hangs; to run it alone: go test -run RandomPrograms -programs 1 -seed %d", i, first+i))
		})
		err := runProgram(first + i)
		hangs.Stop()
		if err != nil {
			t.Fatalf("program %d: %v\nto run it alone: go test -run RandomPrograms -programs 1 -seed %d", i, err, first+i)
		}
	}
}
