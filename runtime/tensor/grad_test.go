package tensor_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/runtime/op"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// A function is a differentiable function of tensors.
type function func(x ...*tensor.Tensor) *tensor.Tensor

// checkGradient compares the gradients of a weighted sum of f's results with central differences, and also the
// gradients of a weighted sum of those gradients.
func checkGradient(t *testing.T, r *rand.Rand, on device.Device, what string, f function, in ...array) {
	t.Helper()
	first := func(x ...*tensor.Tensor) *tensor.Tensor { return weighted(f(x...)) }
	second := func(x ...*tensor.Tensor) *tensor.Tensor {
		sum := tensor.On(on).As(tensor.Float64).Scalar(0)
		for _, g := range tensor.Grad(first(x...), x...) {
			sum = sum.Add(weighted(g))
		}
		return sum
	}
	checkDifferences(t, r, on, what, first, in)
	checkDifferences(t, r, on, what+", second derivative", func(x ...*tensor.Tensor) *tensor.Tensor {
		return second(x...).Add(weighted(x[0]).MulScalar(0)) // tracked even if it is constant
	}, in)
}

// weighted returns a sum in which every element has a weight of its own.
func weighted(y *tensor.Tensor) *tensor.Tensor {
	w := make([]float64, y.Size())
	for i := range w {
		w[i] = 1 + float64(i%7)/3
	}
	return y.Mul(tensor.FromOn(y.Device(), w).Reshape(y.Shape()...)).Sum()
}

func checkDifferences(t *testing.T, r *rand.Rand, on device.Device, what string, f function, in []array) {
	t.Helper()
	if wrong := wrongGradient(r, on, f, in); wrong != "" {
		t.Errorf("%s: %s", what, wrong)
	}
}

// wrongGradient compares the gradients of f, whose result has one element, with central differences along two
// random directions. In each of them every element of every operand changes, so a wrong element shows. It returns
// what is wrong, or "".
func wrongGradient(r *rand.Rand, on device.Device, f function, in []array) string {
	moved := func(h float64, direction [][]float64) (x []*tensor.Tensor) {
		for i, a := range in {
			a.data = slices.Clone(a.data)
			for k := range a.data {
				a.data[k] += h * direction[i][k]
			}
			x = append(x, a.tensor(on).Track())
		}
		return x
	}
	// differs is how far the gradients and the differences along a direction are apart, or "".
	differs := func(grads, direction [][]float64) string {
		const h = 1e-5
		above, below := f(moved(h, direction)...).Item(), f(moved(-h, direction)...).Item()
		got, want := 0.0, (above-below)/(2*h)
		for i, g := range grads {
			for k, v := range g {
				if direction[i][k] != 0 {
					got += v * direction[i][k]
				}
			}
		}
		if math.Abs(got-want) <= 1e-5*max(1, math.Abs(want), math.Abs(above)) {
			return ""
		}
		return fmt.Sprintf("the gradient is %v, differences give %v", got, want)
	}

	var grads, still [][]float64
	for _, a := range in {
		still = append(still, make([]float64, len(a.data)))
	}
	x := moved(0, still)
	for i, g := range tensor.Grad(f(x...), x...) {
		grads = append(grads, g.Float64s())
		if !slices.Equal(g.Shape(), in[i].shape) {
			return fmt.Sprintf("the gradient of operand %d has shape %v, want %v", i, g.Shape(), in[i].shape)
		}
	}
	for range 2 {
		direction := make([][]float64, len(in))
		for i, a := range in {
			for range a.data {
				direction[i] = append(direction[i], r.NormFloat64())
			}
		}
		along := differs(grads, direction)
		if along == "" {
			continue
		}
		for i, a := range in { // to name an element
			for k := range a.data {
				still[i][k] = 1
				if d := differs(grads, still); d != "" {
					return fmt.Sprintf("operand %d %v, element %d: %s", i, a.shape, k, d)
				}
				still[i][k] = 0
			}
		}
		return fmt.Sprintf("along %v: %s", direction, along)
	}
	return ""
}

// The check of gradients notices a gradient that misses one element's share.
func TestWrongGradient(t *testing.T) {
	right := func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].Square().Sum() }
	wrong := func(x ...*tensor.Tensor) *tensor.Tensor {
		first := x[0].Slice(0, 0, 1)
		return right(x...).Add(first.Detach().Square().Sub(first.Square()).MulScalar(1e-3).Sum())
	}
	in := []array{{tensor.Float64, []int{3}, []float64{2, 3, 5}}}
	if got := wrongGradient(newRand(t), device.CPU(), right, in); got != "" {
		t.Error(got)
	}
	if got := wrongGradient(newRand(t), device.CPU(), wrong, in); !strings.HasPrefix(got, "operand 0 [3], element 0: ") {
		t.Errorf("a wrong gradient gives %q", got)
	}
}

func TestElementwiseGradients(t *testing.T) {
	everywhere(t, func(t *testing.T, on device.Device) {
		r := newRand(t)
		for _, o := range elementwiseOps {
			d := o.def
			if !d.Types.Has(tensor.Float64) || d.Bool {
				continue
			}
			shapes := [][][]int{{{3}}, {{2, 2}, {2}}, {{2}, {2, 1}, {}}}[d.Tensors-1]
			var in []array
			var cond *tensor.Tensor
			for i, shape := range shapes {
				if d.Cond && i == 0 {
					cond = random(r, tensor.Bool, shape, op.Interval{}).tensor(on)
					continue
				}
				in = append(in, random(r, tensor.Float64, shape, shrink(domain(d, i, tensor.Float64))))
			}
			checkGradient(t, r, on, d.Name, func(x ...*tensor.Tensor) *tensor.Tensor {
				if d.Cond {
					x = append([]*tensor.Tensor{cond}, x...)
				}
				return o.call(1.5, x...)
			}, in...)
		}
	})
}

// shrink makes an interval small enough for differences to be accurate.
func shrink(in op.Interval) op.Interval {
	return op.Interval{Lo: max(in.Lo, -3), Hi: min(in.Hi, 3)}
}

func TestStructuralGradients(t *testing.T) {
	everywhere(t, func(t *testing.T, on device.Device) {
		r := newRand(t)
		some := func(shape ...int) array { return random(r, tensor.Float64, shape, op.Interval{Lo: -2, Hi: 2}) }
		zeros := some(2, 3)
		zeros.data[1], zeros.data[3], zeros.data[5] = 0, 0, 0
		for _, c := range []struct {
			what string
			f    function
			in   []array
		}{
			{"MatMul", func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].MatMul(x[1]) }, []array{some(2, 3), some(3, 2)}},
			{"MatMul of a vector", func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].MatMul(x[1]) }, []array{some(2, 3), some(3)}},
			{"MatMul by a vector", func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].MatMul(x[1]) }, []array{some(2), some(2, 3)}},
			{"Dot", func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].Dot(x[1]) }, []array{some(3), some(3)}},
			{"Sum", func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].Sum(-1) }, []array{some(2, 3)}},
			{"SumKeep", func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].SumKeep(0, 2) }, []array{some(2, 2, 2)}},
			{"Mean", func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].Mean(0) }, []array{some(2, 3)}},
			{"Norm", func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].Norm() }, []array{some(2, 2)}},
			{"Prod", func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].Prod(1) }, []array{some(2, 3)}},
			{"Max", func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].Max(0) }, []array{some(3, 2)}},
			{"MinKeep", func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].MinKeep() }, []array{some(3, 2)}},
			{"Reshape", func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].T().Reshape(-1, 2) }, []array{some(2, 3)}},
			{"Transpose", func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].Transpose(1, 2, 0) }, []array{some(2, 1, 3)}},
			{"Slice", func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].Slice(1, 1, 3) }, []array{some(2, 3, 2)}},
			{"Row", func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].Row(-1) }, []array{some(2, 3)}},
			{"BroadcastTo", func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].BroadcastTo(2, 2, 3) }, []array{some(2, 1)}},
			{"Unsqueeze", func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].Unsqueeze(-1).Squeeze() }, []array{some(2)}},
			{"To", func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].To(device.CPU()).To(on) }, []array{some(2)}},
			{"twice", func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].Mul(x[0]).Add(x[0].Exp()) }, []array{some(2)}},
		} {
			checkGradient(t, r, on, c.what, c.f, c.in...)
		}
		// The product's own derivative does not depend on a factor that is 0, so differences are exact.
		checkDifferences(t, r, on, "Prod with zeros", func(x ...*tensor.Tensor) *tensor.Tensor { return weighted(x[0].Prod(1)) }, []array{zeros})
	})
}

// Derivatives at points where formulas break down.
func TestGradientEdges(t *testing.T) {
	everywhere(t, func(t *testing.T, on device.Device) {
		f := func(v ...float64) *tensor.Tensor { return tensor.FromOn(on, v).Track() }
		nan, inf := math.NaN(), math.Inf(1)
		for _, c := range []struct {
			what string
			x    *tensor.Tensor
			y    func(x *tensor.Tensor) *tensor.Tensor
			want []float64
		}{
			{"Sigmoid", f(-1000, 1000), (*tensor.Tensor).Sigmoid, []float64{0, 0}},
			{"ReLU", f(0, -1, 1), (*tensor.Tensor).ReLU, []float64{0, 0, 1}},
			{"Abs", f(0, -1, 1), (*tensor.Tensor).Abs, []float64{0, -1, 1}},
			{"Sign", f(0, -1, 1), (*tensor.Tensor).Sign, []float64{0, 0, 0}},
			{"Floor", f(0, -1.5), (*tensor.Tensor).Floor, []float64{0, 0}},
			{"Sqrt", f(0), (*tensor.Tensor).Sqrt, []float64{inf}},
			{"Pow 0", f(0, 2), func(x *tensor.Tensor) *tensor.Tensor { return x.Pow(tensor.FromOn(on, []float64{0})) }, []float64{0, 0}},
			{"Maximum of equals", f(3, 4), func(x *tensor.Tensor) *tensor.Tensor { return x.Maximum(tensor.FromOn(on, []float64{3})) }, []float64{0.5, 1}},
			{"Max of equals", f(3, 1, 3, 2), func(x *tensor.Tensor) *tensor.Tensor { return x.Max() }, []float64{0.5, 0, 0.5, 0}},
			{"Norm of 0", f(0, 0), (*tensor.Tensor).Norm, []float64{0, 0}},
			{"Prod with a 0", f(2, 0, 3), func(x *tensor.Tensor) *tensor.Tensor { return x.Prod() }, []float64{0, 6, 0}},
			{"Prod with two", f(2, 0, 0), func(x *tensor.Tensor) *tensor.Tensor { return x.Prod() }, []float64{0, 0, 0}},
			{"Where hides NaN", f(-1, 4), func(x *tensor.Tensor) *tensor.Tensor {
				return tensor.Where(x.Gt(tensor.FromOn(on, []float64{0})), x.Sqrt(), tensor.FromOn(on, []float64{nan}))
			}, []float64{nan, 0.25}}, // the chain rule still multiplies 0 with the NaN derivative of Sqrt
			{"Where of what is not chosen", f(-1, 4), func(x *tensor.Tensor) *tensor.Tensor {
				return tensor.Where(x.Gt(tensor.FromOn(on, []float64{0})), x, f(1)).Mul(tensor.FromOn(on, []float64{inf, 2}))
			}, []float64{0, 2}},
			{"independent", f(1, 2), func(x *tensor.Tensor) *tensor.Tensor { return f(5).Mul(f(6)) }, []float64{0, 0}},
		} {
			got := tensor.Grad(c.y(c.x).Sum(), c.x)[0].Float64s()
			for i := range c.want {
				if got[i] != c.want[i] && !(math.IsNaN(got[i]) && math.IsNaN(c.want[i])) {
					t.Errorf("%s: the gradient is %v, want %v", c.what, got, c.want)
					break
				}
			}
		}
	})
}

// Gradients of products, and gradients of these, are sums of products of other elements, also where elements are 0.
func TestGradientsOfProductsWithZeros(t *testing.T) {
	// without is the product of x[:n] without elements i and j.
	without := func(x []float64, n, i, j int) float64 {
		p := 1.0
		for k, v := range x[:n] {
			if k != i && k != j {
				p *= v
			}
		}
		return p
	}
	r := newRand(t)
	everywhere(t, func(t *testing.T, on device.Device) {
		for n := range 10 {
			x, first, second := make([]float64, n), make([]float64, n), make([]float64, n)
			for i := range x {
				x[i] = float64(r.IntN(4) - 1) // small integers: everything is exact
			}
			grads := func(y func(x *tensor.Tensor) *tensor.Tensor) (first, second []float64) {
				leaf := tensor.FromOn(on, x).Track()
				g := tensor.Grad(y(leaf), leaf)[0].Add(leaf.MulScalar(0)) // tracked, also where it is constant
				weights := tensor.On(on).As(tensor.Float64).Arange(1, float64(n+1), 1)
				return g.Float64s(), tensor.Grad(g.Mul(weights).Sum(), leaf)[0].Float64s()
			}
			check := func(name string, y func(x *tensor.Tensor) *tensor.Tensor, weight func(i int) float64) {
				clear(first)
				clear(second)
				for to := range x { // the product of elements up to this one
					for i := range x[:to+1] {
						first[i] += weight(to) * without(x, to+1, i, i)
						for j := range x[:to+1] {
							if j != i {
								second[i] += weight(to) * float64(j+1) * without(x, to+1, i, j)
							}
						}
					}
				}
				if g, h := grads(y); !slices.Equal(g, first) || !slices.Equal(h, second) {
					t.Errorf("%s of %v: gradients %v and then %v, want %v and %v", name, x, g, h, first, second)
				}
			}
			last := func(i int) float64 {
				if i == n-1 {
					return 1
				}
				return 0
			}
			check("Prod", func(x *tensor.Tensor) *tensor.Tensor { return x.Prod() }, last)
			check("Prod of a row", func(x *tensor.Tensor) *tensor.Tensor { return x.Unsqueeze(0).Prod(1).Sum() }, last)
			check("Prod over axes", func(x *tensor.Tensor) *tensor.Tensor { return x.Reshape(1, n, 1).Prod(2, 1).Sum() }, last)
			check("CumProd", func(x *tensor.Tensor) *tensor.Tensor { return x.CumProd(0).Sum() }, func(int) float64 { return 1 })
			check("CumProd of a column", func(x *tensor.Tensor) *tensor.Tensor { return x.Unsqueeze(1).CumProd(0).Sum() }, func(int) float64 { return 1 })
		}
	})
}

// Backward adds to the gradients of parameters until ZeroGrad, in float32 and float64.
func TestBackward(t *testing.T) {
	everywhere(t, func(t *testing.T, on device.Device) {
		for _, dt := range []device.DType{tensor.Float32, tensor.Float64} {
			w := tensor.NewParam(tensor.On(on).As(dt).Full(3, 2))
			idle := tensor.NewParam(tensor.On(on).As(dt).Ones(1))
			if w.Grad() != nil {
				t.Error("a gradient before Backward")
			}
			w.Value().Square().Sum().Backward()
			w.Value().MulScalar(2).Sum().Backward()
			check(t, "gradient", w.Grad(), array{dt, []int{2}, []float64{8, 8}}, 0)
			if idle.Grad() != nil {
				t.Error("a parameter got a gradient that nothing depends on")
			}
			w.ZeroGrad()
			if w.Grad() != nil {
				t.Error("a gradient after ZeroGrad")
			}
		}
	})
}

// Gradients of values with different shapes are not broadcast to each other.
func TestGradOfAnotherShape(t *testing.T) {
	w := tensor.NewParam(tensor.Ones(2))
	w.Value().Sum().Backward()
	w.Set(tensor.Ones(1))
	m := mistake(func() { w.Value().Sum().Backward() })
	if m == nil || !strings.Contains(m.Error(), op.MistakeShapes) || w.Grad().Size() != 2 {
		t.Errorf("mistake %v, gradient %v", m, w.Grad())
	}
	w.ZeroGrad()
	w.Value().Sum().Backward()
	if w.Grad().Size() != 1 {
		t.Errorf("gradient %v", w.Grad())
	}
}

// SetGrad replaces a gradient, and Backward adds to it. A State has it, and what does not fit the value is refused.
func TestSetGrad(t *testing.T) {
	w := tensor.NewParam(tensor.From([]float64{1, 2}))
	w.Value().Square().Sum().Backward()
	before := tensor.Snapshot(w)
	w.SetGrad(w.Grad().MulScalar(10))
	w.Value().Sum().Backward()
	check(t, "gradient", w.Grad(), array{tensor.Float64, []int{2}, []float64{21, 41}}, 0)
	before.Restore()
	check(t, "gradient restored", w.Grad(), array{tensor.Float64, []int{2}, []float64{2, 4}}, 0)
	w.SetGrad(tensor.From([]float64{3, 4}).Track())
	if m := mistake(func() { w.Grad().Sum().Backward() }); m == nil || !strings.HasPrefix(m.Text, op.MistakeGradient) {
		t.Errorf("a gradient is tracked: %v", m)
	}
	for want, f := range map[string]func(){
		op.MistakeNil:         func() { w.SetGrad(nil) },
		op.MistakeNoParameter: func() { tensor.NewParam(nil).SetGrad(tensor.Ones(2)) },
		op.MistakeFrozen:      func() { w.Frozen().SetGrad(w.Grad()) },
		op.MistakeDTypes:      func() { w.SetGrad(tensor.Ones(2)) },
		op.MistakeShapes:      func() { w.SetGrad(tensor.From([]float64{1})) },
	} {
		if m := mistake(f); m == nil || !strings.HasPrefix(m.Text, want) {
			t.Errorf("got %v, want %s", m, want)
		}
	}
	check(t, "gradient after mistakes", w.Grad(), array{tensor.Float64, []int{2}, []float64{3, 4}}, 0)
}

// Set gives a parameter a new value. Tensors computed from the old value don't change.
func TestParamSet(t *testing.T) {
	w := tensor.NewParam(nil)
	if w.IsSet() {
		t.Error("IsSet of an empty parameter")
	}
	w.Set(tensor.From([]float64{2}))
	loss := w.Value().Square().Sum()
	w.Set(tensor.From([]float64{5}))
	loss.Backward()
	if got := w.Grad().Item(); got != 4 {
		t.Errorf("the gradient is %v, want that of the old value, 4", got)
	}
	if got := w.Value().Item(); got != 5 {
		t.Errorf("the value is %v, want 5", got)
	}
}

// Gradients end at Detach, at integers and at comparisons.
func TestTrackingEnds(t *testing.T) {
	x := tensor.From([]float64{1, 2}).Track()
	for what, y := range map[string]*tensor.Tensor{
		"Detach":       x.Exp().Detach(),
		"As int64":     x.As(tensor.Int64),
		"a comparison": x.Gt(tensor.From([]float64{0})),
	} {
		if m := mistake(func() { y.As(tensor.Float64).Sum().Backward() }); m == nil || !strings.HasPrefix(m.Text, op.MistakeGradient) {
			t.Errorf("%s: Backward: %v", what, m)
		}
	}
}

// Backward releases the graph, Grad does not; parameters are never released.
func TestRelease(t *testing.T) {
	w := tensor.NewParam(tensor.From([]float64{1, 2}))
	trunk := w.Value().Exp()
	near := func(got *tensor.Tensor, want ...float64) {
		t.Helper()
		check(t, "gradient", got, array{tensor.Float64, []int{2}, want}, 4)
	}
	near(tensor.Grad(trunk.Sum(), w.Value())[0], math.E, math.E*math.E)
	other := trunk.MulScalar(2).Sum()
	trunk.Sum().Backward()
	if m := mistake(func() { other.Backward() }); m == nil || m.Text != op.MistakeReleased {
		t.Errorf("Backward through a released graph: %v", m)
	}
	w.Value().Exp().Sum().Backward() // starts at the parameter again
	near(w.Grad(), 2*math.E, 2*math.E*math.E)
}

// A long chain of operations has a gradient.
func TestLongChain(t *testing.T) {
	x := tensor.From([]float64{1}).Track()
	y := x
	for range 100_000 {
		y = y.AddScalar(1)
	}
	if got := tensor.Grad(y, x)[0].Item(); got != 1 {
		t.Errorf("the derivative is %v, want 1", got)
	}
}
