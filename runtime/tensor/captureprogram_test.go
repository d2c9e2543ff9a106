package tensor

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/cpu"
	"github.com/asyncgen/asyncgen/device/devicetest"
	"github.com/asyncgen/asyncgen/device/fault"
	"github.com/asyncgen/asyncgen/device/sim"
	"github.com/asyncgen/asyncgen/runtime/internal/engine"
	"github.com/asyncgen/asyncgen/runtime/op"
)

// Random programs that are split into captures at random, beside the same programs without captures. A program calls
// pieces, in random order, with results of earlier calls. Pieces compute, draw numbers, use cells that they share, and
// differentiate. Parts of them are lazy. Some operations fail, depending on values: these errors, and what they spoil,
// have to be the same. Results are held to the end, or are dead at once.

var (
	captures     = flag.Int("captures", 20, "number of random programs with captures")
	captureFirst = flag.Uint64("captures-seed", 0, "seed of the first of them; 0: a random one")
)

// capturePrograms calls f with the seed of each program.
func capturePrograms(t *testing.T, f func(seed uint64)) {
	first := *captureFirst
	if first == 0 {
		first = rand.Uint64() >> 16
	}
	n := uint64(*captures)
	if testing.Short() {
		n = min(n, 10) // with the race detector one takes ten times as long
	}
	for seed := first; seed < first+n; seed++ {
		if f(seed); t.Failed() {
			t.Fatalf("go test ./runtime/tensor -run '%s' -captures 1 -captures-seed %d", t.Name(), seed)
		}
	}
	t.Logf("seeds from %d on", first)
}

// A form is how a program is executed.
type form struct {
	isCaptured bool // calls are split into captures; else nothing is captured
	isLazy     bool // operands and results are Lazy and Eager where the program says so; else nowhere
	fails      bool // operations may fail
}

// A captureProgram is one execution of a program.
type captureProgram struct {
	*rand.Rand // of the order of calls; the same in each execution
	form
	split    *rand.Rand // of how calls are captured
	on       Maker
	gen      *Generator
	buffers  []*Buffer
	params   []*Param
	pieces   []func(in ...*Tensor) []*Tensor
	captured map[string]*Captured // of a piece, or of two
	pool     []*Tensor
	seen     []string
}

func newCaptureProgram(seed uint64, on device.Device, as form) *captureProgram {
	p := &captureProgram{
		Rand: rand.New(rand.NewPCG(seed, 1)), form: as, split: rand.New(rand.NewPCG(seed, 4)), on: On(on),
		gen: NewGenerator(seed), captured: map[string]*Captured{},
	}
	for range 4 {
		p.pool = append(p.pool, p.on.uniform(p.gen, -1, 1, []int{p.length(), p.length()}))
		p.buffers = append(p.buffers, NewBuffer(p.on.uniform(p.gen, -1, 1, []int{p.length(), p.length()})))
		p.params = append(p.params, NewParam(p.on.uniform(p.gen, -1, 1, []int{p.length(), p.length()})))
	}
	p.params[3] = LazyParam()
	for range 3 {
		p.pieces = append(p.pieces, p.piece(p.Uint64()))
	}
	return p
}

// length is that of an axis: some results are small, and some too big for the Go heap.
func (p *captureProgram) length() int { return []int{3, 40}[p.IntN(2)] }

// piece returns a function that does the same operations each time it gets operands of the same shapes.
func (p *captureProgram) piece(seed uint64) func(in ...*Tensor) []*Tensor {
	return func(in ...*Tensor) []*Tensor {
		r := rand.New(rand.NewPCG(seed, 2))
		vars := slices.Clone(in)
		some := func() *Tensor { return vars[r.IntN(len(vars))] }
		for range 4 + r.IntN(16) {
			x := some()
			p.operation(r, p.perhapsLazy(r, x), func(y *Tensor) {
				if r.IntN(6) == 0 && p.isLazy {
					y = y.Eager()
				}
				if y.Rank() != 2 || y.Size() == 0 {
					y = y.Reshape(-1, 1)
				}
				if y.DType() != Float32 {
					y = y.As(Float32)
				}
				if y.Size() < 5000 {
					vars = append(vars, y)
				}
				if r.IntN(4) == 0 && x != in[0] && !slices.Contains(in, x) && !slices.Contains(vars[len(vars)-1:], x) {
					if vars = slices.DeleteFunc(vars, func(v *Tensor) bool { return v == x }); x.node == nil {
						Dead(x)
					}
				}
			})
		}
		out := []*Tensor{vars[len(vars)-1]}
		for range r.IntN(3) {
			out = append(out, some())
		}
		for i, y := range out {
			if out[i] = y.Detach(); p.fails { // an error names the operations of a chain, which so ends here as in Run
				out[i] = out[i].Eager()
			}
		}
		return out
	}
}

// perhapsLazy returns x, or x as the beginning of a chain.
func (p *captureProgram) perhapsLazy(r *rand.Rand, x *Tensor) *Tensor {
	if r.IntN(3) == 0 && p.isLazy {
		return x.Lazy()
	}
	return x
}

// call calls a piece.
func (p *captureProgram) call(i int, in ...*Tensor) []*Tensor {
	if !p.isCaptured || p.split.IntN(6) == 0 {
		return p.pieces[i](in...)
	}
	return p.capture(fmt.Sprint(i), p.pieces[i]).Run(in...)
}

// callBoth calls a piece, and another one with the first result. It returns the results of both.
func (p *captureProgram) callBoth(i, j int, in ...*Tensor) []*Tensor {
	if p.isCaptured && p.split.IntN(2) == 0 {
		return p.capture(fmt.Sprint(i, j), func(in ...*Tensor) []*Tensor {
			out := p.pieces[i](in...)
			return append(out, p.pieces[j](out[0])...)
		}).Run(in...)
	}
	out := p.call(i, in...)
	return append(out, p.call(j, out[0])...)
}

// capture returns f, captured; it is the same for the same name.
func (p *captureProgram) capture(name string, f func(in ...*Tensor) []*Tensor) *Captured {
	if p.captured[name] == nil {
		p.captured[name] = Capture(f)
	}
	return p.captured[name]
}

// operation does one operation, on x and cells, and gives its result to made, if it has one.
func (p *captureProgram) operation(r *rand.Rand, x *Tensor, made func(y *Tensor)) {
	b := p.buffers[r.IntN(len(p.buffers))]
	w := p.params[r.IntN(len(p.params))]
	switch r.IntN(25) {
	case 0:
		made(x.AddScalar(float64(r.IntN(5)) - 2))
	case 1:
		made(x.Mul(x))
	case 2:
		made(x.Tanh())
	case 3:
		made(x.Transpose())
	case 4:
		made(x.MatMul(x.Transpose()).MulScalar(0.1))
	case 5:
		made(x.Softmax(-1))
	case 6:
		made(x.Sum(r.IntN(2)))
	case 7:
		made(x.Add(x.Mean()))
	case 8:
		made(x.Slice(0, min(1, x.Dim(0)), x.Dim(0)))
	case 9:
		made(Concat(r.IntN(2), x, x.Neg(), x))
	case 10:
		made(p.on.draw(p.gen, "Randn", op.Normal, []int{3, 40}))
	case 11:
		made(p.on.draw(p.gen, "Rand", op.Uniform, x.Shape()).Sub(x))
	case 12:
		made(b.Value())
	case 13:
		b.Set(x)
	case 14:
		b.Set(b.Value().MulScalar(0.5).AddScalar(1))
	case 15:
		if w.IsSet() {
			v := p.perhapsLazy(r, w.Value())
			v.Mul(v).Add(x.Mean()).Sum().Backward()
		}
	case 16:
		if g := w.Grad(); g != nil {
			y := w.Value().Detach().AddScaled(g, -0.1)
			w.Set(y)
			made(y)
		}
	case 17:
		w.ZeroGrad()
	case 18:
		if !w.IsSet() {
			w.Set(x.Tanh())
		}
		made(w.Value().Detach())
	case 19:
		if !p.fails {
			return
		}
		// It fails if a rounded element is 0.
		n := x.Detach().MulScalar(40).As(Int64)
		made(n.Mul(n).Div(n))
	case 20:
		made(Where(x.GtScalar(0), x, p.on.Full(2, x.Shape()...)))
	case 21:
		if x.Size() > 0 {
			made(x.ArgMax(0))
		}
	case 22:
		made(x.Mul(x.Tanh()).AddScalar(0.5).Abs())
	case 23:
		if w.IsSet() {
			v := p.perhapsLazy(r, w.Value())
			v.Tanh().Mul(v).Sum(1).Mean().Backward()
		}
	case 24:
		made(x.MulScalar(2).Sub(p.on.Full(1, x.Dim(1))).Sum(1))
	}
}

// run calls pieces in rounds, and notes what reads give. A round has the same calls, again and again, with operands of
// the same shapes: so plans fit, once cells have the shapes that the round gives them.
func (p *captureProgram) run(rounds int) {
	var held []*Tensor
	for range rounds {
		type call struct{ i, j, a, b int } // the pieces i and j, or only i, with a and b of the pool, or only a
		calls := make([]call, 1+p.IntN(2))
		for k := range calls {
			calls[k] = call{p.IntN(len(p.pieces)), p.IntN(2 * len(p.pieces)), p.IntN(len(p.pool)), p.IntN(2 * len(p.pool))}
		}
		for range 1 + p.IntN(10) {
			var last []*Tensor
			for _, c := range calls {
				in := []*Tensor{p.pool[c.a]}
				if c.b < len(p.pool) {
					in = append(in, p.pool[c.b])
				}
				var out []*Tensor
				if c.j < len(p.pieces) {
					out = p.callBoth(c.i, c.j, in...)
				} else {
					out = p.call(c.i, in...)
				}
				last = append(last, out...)
			}
			// The round goes on with results that have the shapes of what is in the pool.
			for k, x := range p.pool {
				y := last[p.IntN(len(last))]
				if p.IntN(2) == 0 && y.DType() == x.DType() && slices.Equal(y.Shape(), x.Shape()) {
					p.pool[k] = y.Detach()
				}
			}
			if p.IntN(8) == 0 {
				x := &p.pool[p.IntN(len(p.pool))]
				*x = p.on.uniform(p.gen, -1, 1, (*x).Shape())
			}
			if y := last[p.IntN(len(last))]; p.IntN(5) == 0 {
				p.see(y)
			}
			for _, y := range last {
				if p.IntN(3) > 0 {
					held = append(held, y)
				} else {
					Dead(y)
				}
			}
			if p.IntN(5) == 0 && len(held) > 0 {
				p.see(held[p.IntN(len(held))])
			}
			if p.IntN(20) == 0 {
				for _, w := range p.params {
					w.ZeroGrad()
				}
			}
		}
		if len(held) > 0 {
			if y := held[p.IntN(len(held))]; y.Rank() == 2 {
				p.pool[p.IntN(len(p.pool))] = y.Detach()
			}
		}
		if p.IntN(3) == 0 { // without this, everything is spoiled by the first failure
			p.pool[p.IntN(len(p.pool))] = p.on.uniform(p.gen, -1, 1, []int{3, 3})
			p.buffers[p.IntN(4)].Set(p.on.uniform(p.gen, -1, 1, []int{40, 3}))
			p.params[p.IntN(4)].Set(p.on.uniform(p.gen, -1, 1, []int{3, 3}))
			for _, w := range p.params {
				w.ZeroGrad()
			}
		}
	}
	for _, t := range held {
		p.see(t)
	}
	for _, b := range p.buffers {
		p.see(b.Value())
	}
	for _, w := range p.params {
		if w.IsSet() {
			p.see(w.Value().Detach())
		}
		if g := w.Grad(); g != nil {
			p.see(g)
		}
	}
	_, pos := p.gen.advance(0)
	p.seen = append(p.seen, fmt.Sprint("drawn: ", pos))
}

// see notes what a read of t gives.
func (p *captureProgram) see(t *Tensor) {
	defer func() {
		switch v := recover().(type) {
		case nil:
		case error:
			p.seen = append(p.seen, v.Error())
		default:
			panic(v)
		}
	}()
	p.seen = append(p.seen, bitsOf(t)...)
}

// An execution is what executing a program gives.
type execution struct {
	seen  []string
	err   error // of WaitAll
	stats engine.Stats
}

// execute runs a program on a new engine.
func execute(t *testing.T, seed uint64, b device.Backend, o engine.Options, as form) (x execution) {
	e := engine.New(o)
	restore := SetEngine(e)
	func() {
		p := newCaptureProgram(seed, device.Wrap("captures", device.KindSimulated, b), as)
		p.run(8)
		x.seen, x.err, x.stats = p.seen, e.WaitAll(context.Background()), e.Stats()
	}()
	restore()
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	return x
}

// captureBackend returns a backend for the program with the given seed.
func captureBackend(seed uint64) device.Backend {
	if seed%2 == 0 {
		return cpu.New()
	}
	return sim.New(sim.Options{})
}

// captureOptions draws options of an engine.
func captureOptions(seed uint64) engine.Options {
	r := rand.New(rand.NewPCG(seed, 5))
	o := engine.Options{Mode: engine.Async}
	switch r.IntN(8) {
	case 0:
		o.Mode = engine.Naive
	case 1, 2:
		o.Mode, o.Seed = engine.Shuffle, seed
	case 3, 4:
		o.Tiny = engine.TinyAll
	case 5, 6:
		o.Workers, o.Ring, o.Tiny = 1+r.IntN(4), 8, engine.TinyNone
	}
	if r.IntN(4) == 0 {
		o.MaxBytes = 1000 << r.IntN(8)
	}
	return o
}

func TestRandomCaptures(t *testing.T) {
	defer SetLazyFrom(0)()
	var plans, runs uint64
	capturePrograms(t, func(seed uint64) {
		fails := seed%3 == 0
		want := execute(t, seed, captureBackend(seed), engine.Options{Mode: engine.Async}, form{isLazy: fails, fails: fails})
		o, b := captureOptions(seed), captureBackend(seed)
		got := execute(t, seed, b, o, form{isCaptured: true, isLazy: true, fails: fails})
		plans, runs = plans+got.stats.Plans, runs+got.stats.Runs
		if fmt.Sprintf("%+v", got.err) != fmt.Sprintf("%+v", want.err) {
			t.Errorf("%+v: WaitAll gives\n%+v\nwant\n%+v", o, got.err, want.err)
		}
		if i := differs(got.seen, want.seen); i >= 0 {
			t.Errorf("%+v: read %d of %d gives\n%.300s\nwant\n%.300s", o, i, len(want.seen), got.seen[i], want.seen[i])
		}
		if live := devicetest.Live(b, 0); live != 0 {
			t.Errorf("%+v: %d bytes are lost", o, live)
		}
	})
	t.Logf("%d plans, %d runs", plans, runs)
	if *captures >= 20 && !testing.Short() && runs < uint64(*captures) {
		t.Error("there are hardly any runs of plans")
	}
}

// differs returns the first place where two lists differ, or -1.
func differs(got, want []string) int {
	for i := range want {
		if i >= len(got) || got[i] != want[i] {
			return i
		}
	}
	return -1
}

// The n-th call of a device fails. Then what is read has its value or the failure, WaitAll returns it, and no memory
// stays in use.
func TestCaptureFaults(t *testing.T) {
	defer SetLazyFrom(0)()
	spoiled, fired := 0, 0
	capturePrograms(t, func(seed uint64) {
		want := execute(t, seed, captureBackend(seed), engine.Options{Mode: engine.Async}, form{})
		r := rand.New(rand.NewPCG(seed, 3))
		f := fault.Faults{Call: []fault.Call{fault.Alloc, fault.Submit, fault.Command}[r.IntN(3)], Kind: fault.Kind(r.IntN(4)), N: 50 + r.Int64N(300)}
		b := fault.New(captureBackend(seed))
		b.Arm(f)
		got := execute(t, seed, b, engine.Options{Mode: engine.Async, Workers: 1 + r.IntN(3)}, form{isCaptured: true, isLazy: true})
		harmless := f.Kind == fault.Delay || b.Fired() == 0
		if harmless != (got.err == nil) && f.Call != fault.Submit || got.err != nil && !errors.Is(got.err, fault.ErrInjected) {
			t.Errorf("%+v: WaitAll gives %v, %d faults", f, got.err, b.Fired())
		}
		if !harmless {
			fired++
		}
		for i, w := range want.seen {
			switch {
			case got.seen[i] == w:
			case !harmless && strings.Contains(got.seen[i], "injected fault"):
				spoiled++
			default:
				t.Errorf("%+v: read %d gives %.300s, want %.300s", f, i, got.seen[i], w)
				return
			}
		}
		b.Arm(fault.Faults{})
		if live := devicetest.Live(b, 0); live != 0 {
			t.Errorf("%+v: %d bytes are lost", f, live)
		}
	})
	t.Logf("%d programs with faults, %d results are spoiled", fired, spoiled)
}
