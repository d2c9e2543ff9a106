package tensor_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/runtime/internal/engine"
	"github.com/asyncgen/asyncgen/runtime/op"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

func ExampleTensor_Lazy() {
	x := tensor.From([]float32{-1, 0, 1})
	b := tensor.Scalar(0.5).As(tensor.Float32)
	y := x.Lazy().MulScalar(2).Add(b).Tanh().Eager() // one command
	fmt.Printf("%.4f\n", y)
	// Output: [-0.9051  0.4621  0.9866]
}

// A lazyStep is one operation of a random program. Its operands are earlier values.
type lazyStep struct {
	name    string
	in      []int
	scalars []float64
	dt      tensor.DType // of As
	axes    []int        // of Sum
	lazy    []bool       // which operands are made lazy first
	eager   bool         // whether the result is made eager
	dead    int          // a value that is not used any more; -1: none
}

// A lazyProgram is a list of operations. The first few values are given, and each operation makes another.
type lazyProgram struct {
	given func(on device.Device) []*tensor.Tensor
	steps []lazyStep
	loss  []int // values of which the gradient is taken
}

// elementwiseMethods are the operations that are methods of Tensor with an expression.
func elementwiseMethods() (defs []*op.Def) {
	for _, d := range op.List() {
		m, ok := reflect.TypeFor[*tensor.Tensor]().MethodByName(d.Name)
		if ok && d.Expr != nil && !d.Cond && m.Type.NumIn() == d.Tensors+d.Scalars {
			defs = append(defs, d)
		}
	}
	return defs
}

// newLazyProgram draws a program. Shapes are those of a matrix, or broadcast to one.
func newLazyProgram(r *rand.Rand) *lazyProgram {
	type kind struct {
		dt    tensor.DType
		shape device.Shape
	}
	shapes := []device.Shape{{3, 70}, {70}, {3, 1}, {}, {3, 70}}
	types := []tensor.DType{tensor.Float32, tensor.Float32, tensor.Float64, tensor.Float16, tensor.BFloat16, tensor.Int64, tensor.Bool}
	dt := types[r.IntN(len(types)-1)]
	p := &lazyProgram{}
	var kinds []kind
	for range 5 {
		of := dt
		if r.IntN(6) == 0 {
			of = types[r.IntN(len(types))]
		}
		kinds = append(kinds, kind{of, shapes[r.IntN(len(shapes))]})
	}
	given, dataSeed := slices.Clone(kinds), r.Uint64()
	p.given = func(on device.Device) (ts []*tensor.Tensor) {
		r := rand.New(rand.NewPCG(dataSeed, 0))
		for _, k := range given {
			data := make([]float64, k.shape.Size())
			for i := range data {
				data[i] = []float64{0, math.Copysign(0, -1), math.Inf(1), math.NaN(), 2, r.NormFloat64(), 3 * r.NormFloat64(), r.NormFloat64()}[r.IntN(8)]
			}
			x := tensor.FromOn(on, data, k.shape...).As(k.dt)
			if len(k.shape) == 2 && op.Numbers.Has(k.dt) && r.IntN(4) == 0 {
				x = x.Transpose().AddScalar(0).Transpose() // with strides
			}
			if k.dt.IsFloat() && r.IntN(3) > 0 {
				x = x.Track()
			}
			ts = append(ts, x)
		}
		return ts
	}
	defs := elementwiseMethods()
	scaling := slices.DeleteFunc(slices.Clone(defs), func(d *op.Def) bool { return d.Scalars == 0 })
	dead := map[int]bool{}
	for range 3 + r.IntN(25) {
		alive := func(ok func(kind) bool) int {
			var all []int
			for i, k := range kinds {
				if !dead[i] && ok(k) {
					all = append(all, i)
				}
			}
			if len(all) == 0 {
				return -1
			}
			if n := len(all); r.IntN(2) == 0 && n > 3 {
				return all[n-1-r.IntN(3)] // chains go on from what came last
			}
			return all[r.IntN(len(all))]
		}
		s := lazyStep{dead: -1}
		var out kind
		switch n := r.IntN(20); {
		case n == 0: // As
			x := alive(func(kind) bool { return true })
			s.name, s.in, s.dt = "As", []int{x}, types[r.IntN(len(types))]
			out = kind{s.dt, kinds[x].shape}
		case n <= 2: // Sum
			x := alive(func(k kind) bool { return op.Numbers.Has(k.dt) })
			if x < 0 {
				continue
			}
			s.name, s.in = "Sum", []int{x}
			out = kind{kinds[x].dt, nil}
			if len(kinds[x].shape) > 0 && r.IntN(3) > 0 {
				last := len(kinds[x].shape) - 1
				s.axes = []int{r.IntN(last + 1)}
				out.shape = slices.Delete(slices.Clone(kinds[x].shape), s.axes[0], s.axes[0]+1)
			}
		case n == 3: // MatMul forces its operands
			x := alive(func(k kind) bool {
				return len(k.shape) == 2 && k.shape[1] == 70 && (k.dt == tensor.Float32 || k.dt == tensor.Float64)
			})
			if x < 0 {
				continue
			}
			s.name, s.in = "MatMulT", []int{x}
			out = kind{kinds[x].dt, device.Shape{3, 3}}
			if r.IntN(2) == 0 {
				continue // 3 x 3 fits few others
			}
		case n <= 5: // Where
			c := alive(func(k kind) bool { return k.dt == tensor.Bool })
			x := alive(func(k kind) bool { return k.dt != tensor.Bool })
			if c < 0 || x < 0 {
				continue
			}
			y := alive(func(k kind) bool { return k.dt == kinds[x].dt })
			shape, ok := op.Broadcast(kinds[c].shape, kinds[x].shape)
			if ok {
				shape, ok = op.Broadcast(shape, kinds[y].shape)
			}
			if !ok {
				continue
			}
			s.name, s.in = "Where", []int{c, x, y}
			out = kind{kinds[x].dt, shape}
		default:
			d := defs[r.IntN(len(defs))]
			if r.IntN(3) == 0 {
				d = scaling[r.IntN(len(scaling))] // so that there are commands with many constants
			}
			x := alive(func(k kind) bool { return d.Types.Has(k.dt) })
			if x < 0 {
				continue
			}
			s.name, s.in = d.Name, []int{x}
			out = kinds[x]
			fits := true
			for len(s.in) < d.Tensors && fits {
				y := alive(func(k kind) bool { return k.dt == out.dt })
				if out.shape, fits = op.Broadcast(out.shape, kinds[y].shape); fits {
					s.in = append(s.in, y)
				}
			}
			if !fits {
				continue
			}
			for range d.Scalars {
				s.scalars = append(s.scalars, float64(1+r.IntN(4)))
			}
			if d.Bool {
				out.dt = tensor.Bool
			}
		}
		for range s.in {
			s.lazy = append(s.lazy, r.IntN(3) == 0)
		}
		s.eager = r.IntN(6) == 0
		kinds = append(kinds, out)
		if r.IntN(5) == 0 {
			if s.dead = r.IntN(len(kinds)); dead[s.dead] || s.dead < len(given) {
				s.dead = -1
			} else {
				dead[s.dead] = true
			}
		}
		p.steps = append(p.steps, s)
	}
	for i := range kinds {
		if !dead[i] && kinds[i].dt.IsFloat() && r.IntN(2) == 0 {
			p.loss = append(p.loss, i)
		}
	}
	return p
}

// run returns the elements of all values, nil for those that are dead, and the gradients of the given ones.
func (p *lazyProgram) run(on device.Device, lazy bool) (results [][]float64) {
	values := p.given(on)
	var given []*tensor.Tensor
	for _, x := range values {
		if x.IsTracked() {
			given = append(given, x)
		}
	}
	for _, s := range p.steps {
		var in []*tensor.Tensor
		for i, at := range s.in {
			x := values[at]
			if lazy && s.lazy[i] {
				x = x.Lazy()
			}
			in = append(in, x)
		}
		var y *tensor.Tensor
		switch s.name {
		case "As":
			y = in[0].As(s.dt)
		case "Sum":
			y = in[0].Sum(s.axes...)
		case "MatMulT":
			y = in[0].MatMul(in[0].Transpose())
		case "Where":
			y = tensor.Where(in[0], in[1], in[2])
		default:
			var args []reflect.Value
			for _, x := range in[1:] {
				args = append(args, reflect.ValueOf(x))
			}
			for _, c := range s.scalars {
				args = append(args, reflect.ValueOf(c))
			}
			y = reflect.ValueOf(in[0]).MethodByName(s.name).Call(args)[0].Interface().(*tensor.Tensor)
		}
		if lazy && s.eager {
			y = y.Eager()
		}
		values = append(values, y)
		if s.dead >= 0 {
			tensor.Dead(values[s.dead])
			values[s.dead] = nil
		}
	}
	loss := tensor.FromOn(on, []float32{0}).Sum()
	for _, i := range p.loss {
		loss = loss.Add(values[i].As(tensor.Float32).Sum())
	}
	var grads []*tensor.Tensor
	if loss.IsTracked() {
		grads = tensor.Grad(loss, given...)
		for range 2 { // gradients of gradients
			again := tensor.FromOn(on, []float32{0}).Sum()
			for _, g := range grads {
				again = again.Add(g.As(tensor.Float32).Square().Sum())
			}
			if again.IsTracked() {
				grads = append(grads, tensor.Grad(again, given...)...)
			}
		}
	}
	for _, x := range append(values, grads...) {
		if x == nil {
			results = append(results, nil)
			continue
		}
		var got []float64
		x = x.As(tensor.Float64)
		if err := x.Wait(); err == nil {
			got = x.Float64s()
		} else if !strings.Contains(err.Error(), "divided by zero") {
			panic(fmt.Sprintf("%+v %v", p.steps, err))
		}
		results = append(results, got)
	}
	return results
}

// TestLazyHasTheBitsOfEager: random programs, in which random operands are lazy, have the bits of the same programs
// without, and so have their gradients.
func TestLazyHasTheBitsOfEager(t *testing.T) {
	defer tensor.SetLazyFrom(0)()
	r := newRand(t)
	var reached [len(lazyForms)]int
	everywhere(t, func(t *testing.T, on device.Device) {
		for range 75 {
			seed := r.Uint64()
			p := newLazyProgram(rand.New(rand.NewPCG(seed, 0)))
			want := p.run(on, false)
			stop := tensor.CurrentEngine().Record(func(e engine.Event) {
				for i, f := range lazyForms {
					if strings.Contains(e.Op, "+") && f.has(e) {
						reached[i]++
					}
				}
			})
			got := p.run(on, true)
			stop()
			for i := range want {
				same := len(got) == len(want) && slices.EqualFunc(got[i], want[i], func(x, y float64) bool {
					return math.Float64bits(x) == math.Float64bits(y) || math.IsNaN(x) && math.IsNaN(y)
				})
				if !same {
					t.Fatalf("program %d: value %d of %d\n%v\n%v\n%+v", seed, i, len(want), got[i], want[i], p.steps)
				}
			}
		}
		tensor.CurrentEngine().WaitAll(t.Context()) // integers were divided by zero, which is as it should be
	})
	for i, f := range lazyForms {
		if t.Logf("%d commands with %s", reached[i], f.name); reached[i] < 5 {
			t.Errorf("%d commands with %s are too few", reached[i], f.name)
		}
	}
}

// lazyForms are commands that random programs must reach, even in few modes of the engine.
var lazyForms = [...]struct {
	name string
	has  func(engine.Event) bool
}{
	{"more operands than a command has places for", func(e engine.Event) bool { return len(e.Operands) > device.MaxOperands }},
	{"all operands that a command can have", func(e engine.Event) bool { return len(e.Operands) == 1+device.MaxInputs }},
	{"more constants than a command has places for", func(e engine.Event) bool { return strings.Count(e.Op, "Scalar") > 2 }},
	{"a sum of many operands", func(e engine.Event) bool { return isLazySum(e) && len(e.Operands) > device.MaxOperands }},
	{"a sum with a constant", func(e engine.Event) bool { return isLazySum(e) && strings.Contains(e.Op, "Scalar") }},
}

func isLazySum(e engine.Event) bool { return strings.HasSuffix(e.Op, "+Sum") }

// TestLazyChainIsOneCommand: a chain is enqueued as one operation when it is needed and not before, and a value in
// between takes no memory.
func TestLazyChainIsOneCommand(t *testing.T) {
	defer tensor.SetLazyFrom(0)()
	x, b, cube := tensor.Ones(100, 100), tensor.Ones(100), tensor.Ones(10, 10, 10, 10, 1)
	var many []*tensor.Tensor
	for range 7 {
		many = append(many, tensor.Ones(100, 100))
	}
	times := func(name string, n int) string { return strings.Repeat(name+"+", n-1) + name }
	names := func(f func()) string {
		var list []string
		stop := tensor.CurrentEngine().Record(func(e engine.Event) { list = append(list, e.Op) })
		defer stop()
		f()
		return strings.Join(list, " ")
	}
	for _, c := range []struct {
		want string
		f    func()
	}{
		{"MulScalar+Add+Tanh", func() { x.Lazy().MulScalar(2).Add(b).Tanh().Eager() }},
		{"", func() { x.Lazy().MulScalar(2).Add(b).Tanh() }},
		{"Neg+Exp", func() { y := x.Lazy().Neg().Exp(); y.Eager(); y.Eager() }},
		{"Neg Exp", func() { x.Lazy().Neg().Eager().Exp() }},
		{"Neg+Exp+Add", func() { h := x.Lazy().Neg(); h.Exp().Add(h).Eager() }},
		{"Neg+Exp MatMul", func() { x.Lazy().Neg().Exp().MatMul(x) }},
		{"MulScalar+AddScalar+DivScalar", func() { x.Lazy().MulScalar(2).AddScalar(1).DivScalar(3).Eager() }},
		{times("AddScalar", 8) + " AddScalar", func() {
			y := x.Lazy()
			for range 9 {
				y = y.AddScalar(1)
			}
			y.Eager()
		}},
		{"Neg Neg Mul+Mul+Mul", func() { x.Lazy().Mul(b).Mul(b.Neg()).Mul(x.Neg()).Eager() }},
		{times("Add", 6) + " Add", func() {
			y := x.Lazy()
			for i := range 7 {
				y = y.Add(many[i])
			}
			y.Eager()
		}},
		{times("Add", 5) + "+Sum", func() {
			y := x.Lazy()
			for i := range 5 {
				y = y.Add(many[i])
			}
			y.Sum()
		}},
		{times("Add", 2) + "+Sum", func() { cube.Lazy().Add(cube).Add(cube).Sum() }},
		{times("Add", 5) + " Sum", func() { // a fold of so many operands has few axes
			y := cube.Lazy()
			for i := range 5 {
				y = y.Add(many[i].Reshape(10, 10, 10, 10, 1))
			}
			y.Sum()
		}},
		{"Neg+Exp+Sum", func() { x.Lazy().Neg().Exp().Sum() }},
		{"Sub+Square+Sum", func() { x.Lazy().Sub(b).Square().Sum(1) }},
		{"Sub+Square Sum", func() { x.Lazy().Sub(b).Square().Sum(0) }},
		{"Sub+MulScalar+Sum", func() { x.Lazy().Sub(b).MulScalar(2).Sum() }},
		{"Exp Add", func() { b.Lazy().Exp().Add(x).Eager() }},
		{"Mul+Tanh Mul+Exp AddScalar+Sum Fill Exp'0+Mul'0+Tanh'0+Mul'0", func() {
			w := x.Track()
			tensor.Grad(w.Lazy().Mul(b).Tanh().Mul(many[0]).Exp().AddScalar(1).Sum(), w)
		}},
		{"Mul+Sum Fill Mul'1 Mul'0", func() { // to compute what both gradients need would take longer than to read it
			w, v := x.Track(), many[0].Track()
			tensor.Grad(w.Lazy().Mul(v).Sum(), w, v)
		}},
		{"Mul+Mul+Square+Sum Fill Mul+Mul+Square'0+Mul'0 Mul'1 Mul'0", func() {
			w, v := x.Track(), many[0].Track()
			tensor.Grad(w.Lazy().Mul(v).Mul(many[1]).Square().Sum(), w, v)
		}},
		{"GtScalar+Where", func() { tensor.Where(x.Lazy().GtScalar(0), x, b).Eager() }},
	} {
		if got := names(c.f); got != c.want {
			t.Errorf("enqueued %q, want %q", got, c.want)
		}
	}
}

// BenchmarkLazy is chains of five operations, and their gradients, with and without Lazy.
func BenchmarkLazy(b *testing.B) {
	for _, n := range []int{1 << 10, 1 << 12, 1 << 14, 1 << 17, 1 << 20} {
		x, y, z := tensor.Full(0.5, n), tensor.Full(0.25, n), tensor.Full(2, n)
		cheap := func(x *tensor.Tensor) *tensor.Tensor { return x.MulScalar(1.5).Add(y).Mul(z).AddScalar(1).Abs() }
		dear := func(x *tensor.Tensor) *tensor.Tensor { return x.Mul(y).Tanh().Mul(z).Exp().AddScalar(1) }
		defer tensor.SetLazyFrom(0)()
		for name, chain := range map[string]func(*tensor.Tensor) *tensor.Tensor{"cheap": cheap, "dear": dear} {
			for _, c := range []struct {
				name string
				f    func() *tensor.Tensor
			}{
				{"eager", func() *tensor.Tensor { return chain(x) }},
				{"lazy", func() *tensor.Tensor { return chain(x.Lazy()).Eager() }},
				{"gradient/eager", func() *tensor.Tensor { x := x.Track(); return tensor.Grad(chain(x).Sum(), x)[0] }},
				{"gradient/lazy", func() *tensor.Tensor { x := x.Track(); return tensor.Grad(chain(x.Lazy()).Sum(), x)[0] }},
			} {
				b.Run(fmt.Sprintf("%s/%d/%s", name, n, c.name), func(b *testing.B) {
					for b.Loop() {
						y := c.f()
						if err := y.Wait(); err != nil {
							b.Fatal(err)
						}
						tensor.Dead(y)
					}
				})
			}
		}
	}
}

// TestLazyWhereTheProgramGuesses: what was put off before a guess, or in it, is there after the guess was discarded.
func TestLazyWhereTheProgramGuesses(t *testing.T) {
	defer tensor.SetLazyFrom(0)()
	everywhere(t, func(t *testing.T, on device.Device) {
		e := tensor.CurrentEngine()
		x := tensor.FromOn(on, []float64{1, 2, 3, 4}, 2, 2)
		before, kept := x.Lazy().MulScalar(2).AddScalar(1), x.Lazy().Neg().Abs()
		polled, inGuess := x.Lazy().Exp(), x.Lazy().MulScalar(5)
		// Once a part of it is enqueued, full needs four operands from memory.
		b, d := x.AddScalar(1), x.Neg()
		sum := x.Lazy().Add(b)
		full := sum.Mul(x.Lazy().Sub(b).Mul(d))
		sum.Eager()
		s := e.Speculate()
		g := s.Guess()
		if got, want := fmt.Sprint(full.Float64s()), "[3 10 21 36]"; got != want {
			t.Errorf("%s, want %s", got, want)
		}
		used := before.MatMul(x) // needs what waits
		for !polled.Ready() {    // ends
		}
		tensor.Dead(kept) // takes effect only if the guess is kept
		h := before.Exp()
		inGuess.Eager() // last, so that it may not have begun when the guess is discarded
		s.End()
		g.Discard()
		if got, want := fmt.Sprint(inGuess.Float64s()), "[5 10 15 20]"; got != want {
			t.Errorf("%s, want %s", got, want)
		}
		if got, want := fmt.Sprint(before.Float64s()), "[3 5 7 9]"; got != want {
			t.Errorf("%s, want %s", got, want)
		}
		used.Wait() // which is of no interest
		if got, want := h.Float64s()[0], math.Exp(3); math.Abs(got-want) > 1e-12*want {
			t.Errorf("%v, want %v", got, want)
		}
		s = e.Speculate()
		g = s.Guess()
		inside := before.Lazy().Neg()
		w := x.Track()
		y := w.Lazy().MulScalar(3)
		g = s.Guess()
		grad := tensor.Grad(y.Eager().Sum(), w)[0]
		s.End()
		g.Keep()
		if got := fmt.Sprint(grad.Float64s()); got != "[3 3 3 3]" {
			t.Errorf("a gradient of %s", got)
		}
		if got, want := fmt.Sprint(inside.Float64s()), "[-3 -5 -7 -9]"; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	})
}

// TestLazyLetsGo: a result that waits and that nobody holds keeps none of its operands.
func TestLazyLetsGo(t *testing.T) {
	e := engine.New(engine.Options{})
	defer e.Close()
	defer tensor.SetEngine(e)()
	// The collector may free what other tests have left, so that this is about a megabyte more or less.
	live := func() int64 {
		if err := e.WaitAll(t.Context()); err != nil {
			t.Fatal(err)
		}
		return device.MemoryOf(device.CPU().Backend()).Stats().Live >> 20
	}
	runtime.GC()
	start := live()
	x := tensor.Ones(1 << 20)
	l := x.Lazy()
	y := l.Neg()
	z := y.Exp()
	tensor.Dead(x, l, y)
	if live() < start+3 {
		t.Error("z does not keep x")
	}
	tensor.Dead(z)
	if n := live() - start; n > 1 {
		t.Errorf("%d MiB are in use", n)
	}
	w := tensor.Ones(1 << 20)
	tracked := w.Track()
	l = tracked.Lazy()
	y = l.Neg()
	z = y.Exp()
	loss := z.Sum()
	tensor.Dead(w, tracked, l, y, z)
	if live() < start+3 {
		t.Error("the gradient does not keep w")
	}
	loss.Backward()
	tensor.Dead(loss)
	if n := live() - start; n > 1 {
		t.Errorf("%d MiB are in use after Backward", n)
	}
}

// TestLazyForGoroutines: several may need a result at once.
func TestLazyForGoroutines(t *testing.T) {
	for range 20 {
		x := tensor.Ones(100, 100)
		y := x.Lazy().Neg().Exp()
		z := y.Mul(x)
		var all sync.WaitGroup
		for i := range 4 {
			all.Go(func() {
				r := []*tensor.Tensor{y, z, y.Add(z), z.Sub(y).Eager()}[i]
				if got := r.Float32s()[0]; got != []float32{0.36787945, 0.36787945, 0.7357589, 0}[i] {
					t.Errorf("%d: %v", i, got)
				}
			})
		}
		all.Wait()
	}
}

// TestLazyIsNotCaptured: a lazy result that was made outside of a captured function is refused as any other tensor.
func TestLazyIsNotCaptured(t *testing.T) {
	x := tensor.Full(1, 5000)
	h := x.Lazy().MulScalar(10).AddScalar(1)
	step := tensor.Capture(func(in ...*tensor.Tensor) []*tensor.Tensor { return []*tensor.Tensor{in[0].Add(h)} })
	func() {
		defer func() {
			if m, ok := recover().(*tensor.Mistake); !ok || !strings.Contains(m.Text, "neither an input") {
				t.Errorf("%v", m)
			}
		}()
		step.Run(x)
	}()
	for !h.Ready() {
	}
	if got := h.Float32s()[0]; got != 11 {
		t.Errorf("%v, want 11", got)
	}
}

// TestLazyHandles: Lazy and Eager return handles of their own, however large the tensor is.
func TestLazyHandles(t *testing.T) {
	for _, n := range []int{3, 5000} {
		x := tensor.Ones(n)
		l := x.Lazy()
		y := l.Neg()
		e := y.Eager()
		tensor.Dead(l, y)
		if got := x.Add(e).Float32s()[0]; got != 0 {
			t.Errorf("%v, want 0", got)
		}
	}
}
