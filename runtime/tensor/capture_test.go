package tensor

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/kernel"
	"github.com/asyncgen/asyncgen/device/sim"
	"github.com/asyncgen/asyncgen/runtime/internal/engine"
)

// bitsOf returns the shape and the elements of ts, as texts that differ if a bit does.
func bitsOf(ts ...*Tensor) (all []string) {
	for _, t := range ts {
		text := fmt.Append(nil, t.dtype, t.shape)
		switch t.dtype {
		case Float32:
			for _, v := range t.Float32s() {
				text = strconv.AppendUint(append(text, ' '), uint64(math.Float32bits(v)), 16)
			}
		case Float64:
			for _, v := range t.Float64s() {
				text = strconv.AppendUint(append(text, ' '), math.Float64bits(v), 16)
			}
		case Bool:
			text = fmt.Append(text, t.Bools())
		default:
			text = fmt.Append(text, t.As(Int64).Int64s())
		}
		all = append(all, string(text))
	}
	return all
}

// A step that is captured, run again and again, gives the bits of the step itself, and old results stay as they were.
func TestCapture(t *testing.T) {
	scaled := FuseScalars("capture test", 1, 1, func(x ...*kernel.Expr) *kernel.Expr { return kernel.Mul(x[0], kernel.Tanh(x[1])) })
	for _, test := range []struct {
		name  string
		plans int
		step  func() func(in ...*Tensor) []*Tensor // makes the step and its cells
	}{
		{"elementwise", 1, func() func(in ...*Tensor) []*Tensor {
			return func(in ...*Tensor) []*Tensor { return []*Tensor{in[0].Mul(in[1]).AddScalar(1).Exp(), in[0].Neg()} }
		}},
		{"lazy", 2, func() func(in ...*Tensor) []*Tensor {
			w := NewParam(Full(0.5, 4, 3))
			return func(in ...*Tensor) []*Tensor {
				y := in[0].leader().Mul(in[1]).Add(w.Value()).Tanh()
				loss := y.Square().Sum()
				loss.Backward()
				return []*Tensor{y, loss, y.MulScalar(2)}
			}
		}},
		{"lazy, of many operands and constants", 1, func() func(in ...*Tensor) []*Tensor {
			return func(in ...*Tensor) []*Tensor {
				h := in[0].Neg()
				y := h.leader().AddScalar(1).Mul(in[1]).MulScalar(2).Sub(in[0].Exp()).DivScalar(3).Add(in[1].Abs()).Mul(h.Slice(0, 0, 1))
				return []*Tensor{y.eager(), y.Sum()}
			}
		}},
		{"products and views", 1, func() func(in ...*Tensor) []*Tensor {
			return func(in ...*Tensor) []*Tensor {
				y := in[0].MatMul(in[1].Transpose()).Softmax(-1)
				return []*Tensor{y.Transpose(), y, y.Slice(0, 1, 3), y.Reshape(-1)}
			}
		}},
		{"operands and nothing", 1, func() func(in ...*Tensor) []*Tensor {
			return func(in ...*Tensor) []*Tensor {
				return []*Tensor{in[1], in[0].Transpose(), Full(3, 2, 2), Arange(0, 4, 1)}
			}
		}},
		{"no elements", 1, func() func(in ...*Tensor) []*Tensor {
			return func(in ...*Tensor) []*Tensor {
				x := in[0].Slice(0, 0, 0).Neg()
				return []*Tensor{x.MatMul(x.Transpose()).Exp(), x.Sum()}
			}
		}},
		{"parts", 1, func() func(in ...*Tensor) []*Tensor {
			return func(in ...*Tensor) []*Tensor {
				return []*Tensor{Concat(0, in[0], in[1], in[0]), Stack(1, in[0], in[1]), in[0].Pad(1, 1, 2, 0.5)}
			}
		}},
		{"a buffer", 2, func() func(in ...*Tensor) []*Tensor {
			b := NewBuffer(nil)
			return func(in ...*Tensor) []*Tensor {
				if !b.IsSet() {
					b.Set(in[0])
				}
				old := b.Value()
				b.Set(old.Add(in[0]).MulScalar(0.5))
				return []*Tensor{old, b.Value()}
			}
		}},
		{"two buffers with one tensor", 2, func() func(in ...*Tensor) []*Tensor {
			a := NewBuffer(Ones(4, 3))
			b := a.Clone()
			return func(in ...*Tensor) []*Tensor {
				a.Set(a.Value().Add(in[0]))
				b.Set(b.Value().Sub(in[0]))
				return []*Tensor{a.Value().Mul(b.Value())}
			}
		}},
		{"a buffer of the operand", 1, func() func(in ...*Tensor) []*Tensor {
			b := NewBuffer(Zeros(4, 3))
			return func(in ...*Tensor) []*Tensor {
				old := b.Value()
				b.Set(in[0])
				return []*Tensor{old.Add(in[1])}
			}
		}},
		{"a buffer of what another one held", 1, func() func(in ...*Tensor) []*Tensor {
			now, before := NewBuffer(Ones(40, 40)), NewBuffer(Zeros(40, 40)) // large enough to be released at once
			return func(in ...*Tensor) []*Tensor {
				old, older := now.Value(), before.Value()
				now.Set(old.Add(in[0].Sum()))
				before.Set(old)
				return []*Tensor{old.Sub(older).Add(in[1].Sum())}
			}
		}},
		{"random numbers", 1, func() func(in ...*Tensor) []*Tensor {
			g := NewGenerator(3)
			return func(in ...*Tensor) []*Tensor {
				return []*Tensor{g.Randn(4, 3).Add(in[0]), g.RandInt(0, 100, 5), g.Uniform(1, 2, 3), here().As(Float16).Zeros(2)}
			}
		}},
		{"gradients", 2, func() func(in ...*Tensor) []*Tensor {
			w, v := NewParam(Ones(3, 3)), NewParam(Full(0.5, 3))
			return func(in ...*Tensor) []*Tensor {
				y := in[0].MatMul(w.Value()).Add(v.Value()).Tanh()
				y.Mul(in[1]).Sum().Backward()
				return []*Tensor{y, w.Grad(), v.Grad()}
			}
		}},
		{"a step of training", 1, func() func(in ...*Tensor) []*Tensor {
			w := NewParam(Full(0.1, 3, 3))
			return func(in ...*Tensor) []*Tensor {
				w.ZeroGrad()
				loss := in[0].MatMul(w.Value()).Sub(in[1]).Square().Mean()
				loss.Backward()
				w.Set(w.Value().Detach().AddScaled(w.Grad(), -0.1))
				w.ZeroGrad()
				return []*Tensor{loss}
			}
		}},
		{"second derivatives", 1, func() func(in ...*Tensor) []*Tensor {
			return func(in ...*Tensor) []*Tensor {
				x := in[0].Track()
				g := Grad(x.Sin().Mul(in[1]).Sum(), x)[0]
				return Grad(g.Square().Sum(), x)
			}
		}},
		{"constants of the day", 1, func() func(in ...*Tensor) []*Tensor {
			n := 0.0
			return func(in ...*Tensor) []*Tensor {
				if c := eng().Capturing(); c != nil {
					c.Do(func() { n++ })
				} else {
					n++
				}
				f := scaled.WithFunc(func() []float64 { return []float64{n} })
				return []*Tensor{f.Of(in[0]), f.Of(in[1])}
			}
		}},
		{"rows", 1, func() func(in ...*Tensor) []*Tensor {
			return func(in ...*Tensor) []*Tensor {
				return []*Tensor{VMap(func(rows ...*Tensor) *Tensor { return rows[0].Dot(rows[1]) }, in...)}
			}
		}},
		{"numbers", 1, func() func(in ...*Tensor) []*Tensor {
			return func(in ...*Tensor) []*Tensor {
				n := in[0].Norm().ItemF64()
				y := in[0]
				Either(n.Gt(Const(2)), func() { y = y.DivF64(n) }, nil, &y)
				return []*Tensor{y, in[1].MulF64(n.Add(Const(1)))}
			}
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			plain, captured := test.step(), Capture(test.step())
			g, h := NewGenerator(1), NewGenerator(1)
			var held []*Tensor
			var want []string
			for range 6 {
				ins := func(g *Generator) []*Tensor { return []*Tensor{g.Randn(4, 3), g.Randn(4, 3)} }
				want = append(want, bitsOf(plain(ins(g)...)...)...)
				held = append(held, captured.Run(ins(h)...)...)
			}
			for i, got := range bitsOf(held...) {
				if got != want[i] {
					t.Errorf("result %d of %d is %s, want %s", i, len(want), got, want[i])
				}
			}
			if n := captured.Plans(); n != test.plans && eng().Captures() {
				t.Errorf("%d plans, want %d", n, test.plans)
			}
		})
	}
}

// An operand of another device can be passed on.
func TestCapturePasses(t *testing.T) {
	far := device.Wrap("far", device.KindSimulated, sim.New(sim.Options{}))
	c := Capture(func(in ...*Tensor) []*Tensor { return []*Tensor{in[0].Neg(), in[1]} })
	for i := range 3 {
		x, y := Full(float64(i), 3), On(far).Full(float64(-i), 3)
		if out := c.Run(x, y); out[0].Device() != x.Device() || !slices.Equal(out[0].Float32s(), out[1].Float32s()) {
			t.Errorf("run %d gives %v on %v, %v", i, out[0], out[0].Device(), out[1])
		}
	}
}

// Other shapes, layouts and types are captured once each, until there are too many plans.
func TestCaptureShapes(t *testing.T) {
	c := Capture(func(in ...*Tensor) []*Tensor { return []*Tensor{in[0].MulScalar(2).Sum(0), in[0].Transpose()} })
	var held []*Tensor
	var want []string
	for range 3 {
		for n := range 12 {
			big := Arange(0, 100, 1).Reshape(10, 10).Slice(0, n%5, n%5+2)
			x := []*Tensor{Ones(n, 2), Full(2, n+1, 3), big, big.Transpose(), Ones(2, n).As(Float64)}[n%5]
			want = append(want, bitsOf(x.MulScalar(2).Sum(0), x.Transpose())...)
			held = append(held, c.Run(x)...)
		}
	}
	for i, got := range bitsOf(held...) {
		if got != want[i] {
			t.Errorf("result %d is %s, want %s", i, got, want[i])
		}
	}
	if !eng().Captures() {
		return
	}
	if n := c.Plans(); n != maxPlans {
		t.Errorf("%d plans, want %d", n, maxPlans)
	}
	remarks := c.Remarks()
	if n := len(remarks); n != maxPlans || remarks[0] != "operand 0 is float32[2 3] and was float32[0 2]" || !strings.Contains(remarks[n-1], "8 plans") {
		t.Errorf("remarks %q", remarks)
	}
}

// Parts without elements of an operand that begins elsewhere in each run, earlier or later.
func TestCaptureEmptyParts(t *testing.T) {
	step := func(in ...*Tensor) []*Tensor {
		x := in[0].Slice(0, 1, 1)
		return []*Tensor{x, x.Sum(), x.AddScalar(1), x.MatMul(in[0].Transpose()), Concat(1, x, x), Concat(0, x, in[0], x), in[0].Slice(1, 0, 0)}
	}
	c, rows := Capture(step), Arange(0, 12, 1).Reshape(4, 3)
	for _, i := range []int{2, 0, 3, 1} {
		x := rows.Slice(0, i, i+1)
		want, got := bitsOf(step(x)...), bitsOf(c.Run(x)...)
		if !slices.Equal(got, want) {
			t.Errorf("row %d gives %v, want %v", i, got, want)
		}
	}
	if err := eng().WaitAll(t.Context()); err != nil {
		t.Error(err)
	}
}

// What can't be captured is a Mistake that names the line in the step, and the line of Capture.
func TestCaptureRefuses(t *testing.T) {
	if !eng().Captures() {
		t.Skip("nothing is captured in this mode")
	}
	x, other, data := Ones(2), Ones(2), []float32{1, 2}
	p, b := NewParam(Ones(2)), NewBuffer(Ones(2))
	far := device.Wrap("far", device.KindSimulated, sim.New(sim.Options{}))
	for name, test := range map[string]struct {
		f    func()
		want string
	}{
		"read":      {func() { x.Sum().Item() }, "waits for a value"},
		"wait":      {func() { x.Add(x).Wait() }, "waits for a value"},
		"print":     {func() { _ = fmt.Sprint(x) }, "waits for a value"},
		"wait each": {func() { Wait(x) }, "waits for a value"},
		"another":   {func() { x.Add(other) }, "neither an input"},
		"elements":  {func() { From(data) }, "calls From"},
		"of":        {func() { Of(data) }, "calls Of"},
		"clone":     {func() { p.Clone() }, "calls Clone of a Param"},
		"frozen":    {func() { b.Frozen() }, "calls Frozen of a Buffer"},
		"snapshot":  {func() { Snapshot(b) }, "calls Snapshot"},
		"seed":      {func() { Seed(1) }, "calls Seed"},
		"generator": {func() { NewGenerator(1).Value() }, "calls Value of a Generator"},
		"device":    {func() { x.To(x.Device()); x.Neg().To(far) }, "another device"},
		"foreign":   {func() { Changing(&odd{}) }, "changes a *tensor.odd"},
	} {
		t.Run(name, func(t *testing.T) {
			c := Capture(func(in ...*Tensor) []*Tensor {
				x = in[0].AddScalar(1)
				test.f()
				return nil
			})
			text := mistakeOf(func() { c.Run(Ones(2)) })
			if !strings.Contains(text, test.want) || strings.Count(text, "capture_test.go:") != 2 {
				t.Errorf("%q, want %q and two lines", text, test.want)
			}
			if eng().Capturing() != nil {
				t.Error("the capture has not ended")
			}
		})
	}
	c := Capture(func(in ...*Tensor) []*Tensor { return []*Tensor{other} })
	if text := mistakeOf(func() { c.Run() }); !strings.Contains(text, "returns a tensor") {
		t.Errorf("%q for a result that is not of the step", text)
	}
}

// odd is a cell that the library does not know.
type odd struct{ Buffer }

func (*odd) Set(*Tensor) {}

// mistakeOf returns the text of the Mistake that f panics with.
func mistakeOf(f func()) (text string) {
	defer func() {
		if m, ok := recover().(*Mistake); ok {
			text = m.Error()
		}
	}()
	f()
	return ""
}

// BenchmarkCapture measures a step of 50 operations on 32 elements, as it is and captured.
func BenchmarkCapture(b *testing.B) {
	step := func(in ...*Tensor) []*Tensor {
		y := in[0]
		for i := range 50 {
			x := y
			switch i % 3 {
			case 0:
				y = x.Add(in[1])
			case 1:
				y = x.MulScalar(0.5)
			default:
				y = x.ReLU()
			}
			if x != in[0] {
				Dead(x)
			}
		}
		return []*Tensor{y}
	}
	for name, run := range map[string]func(in ...*Tensor) []*Tensor{"Plain": step, "Captured": Capture(step).Run} {
		b.Run(name, func(b *testing.B) {
			x, y := Rand(32), Rand(32)
			for b.Loop() {
				z := run(x, y)[0]
				if err := z.Wait(); err != nil {
					b.Fatal(err)
				}
				Dead(x)
				x = z
			}
		})
	}
}

// Goroutines that use a captured model at the same time all get its results.
func TestCaptureGoroutines(t *testing.T) {
	w := NewParam(NewGenerator(1).Randn(40, 40)).Frozen()
	c := Capture(func(in ...*Tensor) []*Tensor {
		return []*Tensor{Concat(0, in[0].MatMul(w.Value()).Tanh(), in[0]).Sum(0), in[0].MatMul(w.Value())}
	})
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			g := NewGenerator(uint64(i))
			for range 20 {
				x := g.Randn(1+i%2, 40)
				want := bitsOf(Concat(0, x.MatMul(w.Value()).Tanh(), x).Sum(0), x.MatMul(w.Value()))
				if got := bitsOf(c.Run(x)...); !slices.Equal(got, want) {
					t.Errorf("goroutine %d gets %.200v, want %.200v", i, got, want)
				}
			}
		})
	}
	all.Wait()
}

// A run does not begin before what it reads is there, and what reads its results waits for it, however small the ring.
func TestCaptureStats(t *testing.T) {
	e := engine.New(engine.Options{Mode: engine.Async, Ring: 4, Workers: 2})
	defer SetEngine(e)()
	b := NewBuffer(Zeros(60, 60))
	c := Capture(func(in ...*Tensor) []*Tensor {
		b.Set(b.Value().MulScalar(0.5).Add(in[0]))
		return []*Tensor{b.Value().Sum()}
	})
	var sums []*Tensor
	for i := range 10 {
		sums = append(sums, c.Run(Full(float64(i), 60, 60))...)
	}
	want := 0.0
	for i, s := range sums {
		if want = want/2 + float64(i); s.Item() != 3600*want {
			t.Errorf("sum %d is %v, want %v", i, s.Item(), 3600*want)
		}
	}
	if s := e.Stats(); s.Plans != 1 || s.Runs != 9 || s.RunBytes != 0 || s.Enqueued != s.Executed {
		t.Errorf("%+v", s)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}
