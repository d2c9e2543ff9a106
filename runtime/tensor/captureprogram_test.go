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

// Random programs whose pieces are captured, beside the same programs without captures. A program calls pieces, in
// random order, with results of earlier calls. Pieces compute, draw numbers, use cells that they share, and
// differentiate. Some operations fail, depending on values: these errors, and what they spoil, have to be the same.

var captures = flag.Int("captures", 12, "number of random programs with captures")

// A captureProgram is one execution of a program.
type captureProgram struct {
	*rand.Rand // of the order of calls; the same in each execution
	on         Maker
	gen        *Generator
	buffers    []*Buffer
	params     []*Param
	pieces     []func(in ...*Tensor) []*Tensor
	captured   []*Captured // of pieces; nil: they are called
	pool       []*Tensor
	seen       []string
	fails      bool // whether operations may fail
}

func newCaptureProgram(seed uint64, on device.Device, isCaptured, fails bool) *captureProgram {
	p := &captureProgram{Rand: rand.New(rand.NewPCG(seed, 1)), on: On(on), gen: NewGenerator(seed), fails: fails}
	for range 4 {
		p.pool = append(p.pool, p.on.uniform(p.gen, -1, 1, []int{p.length(), p.length()}))
		p.buffers = append(p.buffers, NewBuffer(p.on.uniform(p.gen, -1, 1, []int{p.length(), p.length()})))
		p.params = append(p.params, NewParam(p.on.uniform(p.gen, -1, 1, []int{p.length(), p.length()})))
	}
	p.params[3] = LazyParam()
	for range 3 {
		piece := p.piece(p.Uint64())
		p.pieces = append(p.pieces, piece)
		if isCaptured {
			p.captured = append(p.captured, Capture(piece))
		}
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
			p.operation(r, x, func(y *Tensor) {
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
		return out
	}
}

// operation does one operation, on x and cells, and gives its result to made, if it has one.
func (p *captureProgram) operation(r *rand.Rand, x *Tensor, made func(y *Tensor)) {
	b := p.buffers[r.IntN(len(p.buffers))]
	w := p.params[r.IntN(len(p.params))]
	switch r.IntN(22) {
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
			w.Value().Mul(w.Value()).Add(x.Mean()).Sum().Backward()
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
	}
}

// run calls pieces, and notes what reads give.
func (p *captureProgram) run(calls int) {
	var held []*Tensor
	for range calls {
		var in []*Tensor
		for range 1 + p.IntN(2) {
			in = append(in, p.pool[p.IntN(len(p.pool))])
		}
		i := p.IntN(len(p.pieces))
		f := p.pieces[i]
		if p.captured != nil {
			f = p.captured[i].Run
		}
		out := f(in...)
		held = append(held, out...)
		if y := out[p.IntN(len(out))]; y.Rank() == 2 {
			p.pool[p.IntN(len(p.pool))] = y.Detach()
		}
		if p.IntN(5) == 0 {
			p.see(held[p.IntN(len(held))])
		}
		if p.IntN(10) == 0 { // without this, everything is spoiled by the first failure
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

// execute runs a program on a new engine. It returns what the program has seen, the error of WaitAll and how often
// pieces were captured.
func execute(t *testing.T, seed uint64, b device.Backend, o engine.Options, isCaptured, fails bool) (seen []string, err error, plans int) {
	e := engine.New(o)
	restore := SetEngine(e)
	func() {
		p := newCaptureProgram(seed, device.Wrap("captures", device.KindSimulated, b), isCaptured, fails)
		p.run(25)
		seen, err = p.seen, e.WaitAll(context.Background())
		for _, c := range p.captured {
			plans += c.Plans()
		}
	}()
	restore()
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	return seen, err, plans
}

var captureBackends = map[string]func() device.Backend{
	"cpu": func() device.Backend { return cpu.New() },
	"sim": func() device.Backend { return sim.New(sim.Options{}) },
}

func TestRandomCaptures(t *testing.T) {
	first := rand.Uint64() >> 16
	t.Logf("first seed %d", first)
	for name, open := range captureBackends {
		all := 0
		for seed := first; seed < first+uint64(*captures); seed++ {
			fails := seed%3 == 0
			want, wantErr, _ := execute(t, seed, open(), engine.Options{Mode: engine.Async}, false, fails)
			for _, o := range []engine.Options{
				{Mode: engine.Async}, {Mode: engine.Async, Workers: 4, Ring: 8, Tiny: engine.TinyNone},
				{Mode: engine.Async, Tiny: engine.TinyAll}, {Mode: engine.Shuffle, Seed: seed}, {Mode: engine.Naive},
			} {
				b := open()
				got, err, plans := execute(t, seed, b, o, true, fails)
				all += plans
				if fmt.Sprintf("%+v", err) != fmt.Sprintf("%+v", wantErr) {
					t.Errorf("%s, seed %d, %+v: WaitAll gives\n%+v\nwant\n%+v", name, seed, o, err, wantErr)
				}
				if i := differs(got, want); i >= 0 {
					t.Errorf("%s, seed %d, %+v: read %d of %d gives\n%.300s\nwant\n%.300s", name, seed, o, i, len(want), got[i], want[i])
				}
				if live := devicetest.Live(b, 0); live != 0 {
					t.Errorf("%s, seed %d, %+v: %d bytes are lost", name, seed, o, live)
				}
				if t.Failed() {
					return
				}
			}
		}
		t.Logf("%s: %d plans", name, all)
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
	first := rand.Uint64() >> 16
	t.Logf("first seed %d", first)
	for name, open := range captureBackends {
		for seed := first; seed < first+uint64(*captures); seed++ {
			want, _, _ := execute(t, seed, open(), engine.Options{Mode: engine.Async}, false, false)
			r := rand.New(rand.NewPCG(seed, 3))
			f := fault.Faults{Call: []fault.Call{fault.Alloc, fault.Submit, fault.Command}[r.IntN(3)], Kind: fault.Kind(r.IntN(4)), N: 50 + r.Int64N(300)}
			b := fault.New(open())
			b.Arm(f)
			o := engine.Options{Mode: engine.Async, Workers: 1 + r.IntN(3)}
			got, err, _ := execute(t, seed, b, o, true, false)
			harmless := f.Kind == fault.Delay || b.Fired() == 0
			if harmless != (err == nil) && f.Call != fault.Submit || err != nil && !errors.Is(err, fault.ErrInjected) {
				t.Errorf("%s, seed %d, %+v: WaitAll gives %v, %d faults", name, seed, f, err, b.Fired())
			}
			spoiled := 0
			for i := range want {
				switch {
				case got[i] == want[i]:
				case !harmless && strings.Contains(got[i], "injected fault"):
					spoiled++
				default:
					t.Fatalf("%s, seed %d, %+v: read %d gives %.300s, want %.300s", name, seed, f, i, got[i], want[i])
				}
			}
			b.Arm(fault.Faults{})
			if live := devicetest.Live(b, 0); live != 0 {
				t.Errorf("%s, seed %d, %+v: %d bytes are lost", name, seed, f, live)
			}
			if t.Failed() {
				return
			}
		}
	}
}
