package tensor_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/kernel"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// swish is x times the sigmoid of beta*x.
var swish = tensor.Fuse("swish", 2, func(v ...*kernel.Expr) *kernel.Expr {
	x, beta := v[0], v[1]
	one := kernel.Const(1, x.DType())
	return kernel.Div(x, kernel.Add(one, kernel.Exp(kernel.Neg(kernel.Mul(beta, x)))))
})

func ExampleFuse() {
	// One pass over x instead of five, with the bits of
	// x.Div(beta.Mul(x).Neg().Exp().AddScalar(1)).
	swish := tensor.Fuse("swish", 2, func(v ...*kernel.Expr) *kernel.Expr {
		x, beta := v[0], v[1]
		one := kernel.Const(1, x.DType())
		return kernel.Div(x, kernel.Add(one, kernel.Exp(kernel.Neg(kernel.Mul(beta, x)))))
	})
	x := tensor.From([]float32{-1, 0, 1}).Track()
	y := swish.Of(x, tensor.Scalar(2))
	fmt.Printf("%.4f\n", y)
	fmt.Printf("%.4f\n", tensor.Grad(y.Sum(), x)[0])
	// Output:
	// [-0.1192  0.0000  0.8808]
	// [-0.0908  0.5000  1.0908]
}

// unfusedSwish is swish with one operation for each primitive.
func unfusedSwish(x, beta *tensor.Tensor) *tensor.Tensor {
	return x.Div(beta.Mul(x).Neg().Exp().AddScalar(1))
}

func TestFusedHasTheBitsOfItsParts(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for _, shape := range [][]int{{}, {0}, {7}, {3, 5}, {40, 700}, {3000}} {
		for _, dt := range []tensor.DType{tensor.Float32, tensor.Float64} {
			n := 1
			for _, d := range shape {
				n *= d
			}
			data := make([]float64, n)
			for i := range data {
				data[i] = []float64{0, math.Copysign(0, -1), math.Inf(1), math.Inf(-1), math.NaN(), 1e-310, 1e-40, -800, 90, rnd.NormFloat64()}[rnd.IntN(10)]
			}
			x := tensor.From(data, shape...).As(dt)
			betas := []*tensor.Tensor{tensor.Scalar(1.5).As(dt), x.AddScalar(1)}
			if len(shape) == 2 {
				betas = append(betas, x.Row(0), x.Slice(1, 0, 1))
			}
			for i, beta := range betas {
				got, want := swish.Of(x, beta).As(tensor.Float64).Float64s(), unfusedSwish(x, beta).As(tensor.Float64).Float64s()
				for k := range want {
					if math.Float64bits(got[k]) != math.Float64bits(want[k]) && !(math.IsNaN(got[k]) && math.IsNaN(want[k])) {
						t.Fatalf("%v%v, beta %d: element %d is %v, and %v in parts", dt, shape, i, k, got[k], want[k])
					}
				}
			}
		}
	}
}

func TestFusedIsDifferentiatedAndBatched(t *testing.T) {
	x := tensor.From([]float64{-2, -0.3, 0, 0.7, 3, 11}, 2, 3).Track()
	beta := tensor.From([]float64{0.5, 1, 2}).Track()
	got, want := tensor.Grad(swish.Of(x, beta).Sum(), x, beta), tensor.Grad(unfusedSwish(x, beta).Sum(), x, beta)
	for i := range want {
		w := want[i].Float64s()
		for k, g := range got[i].Float64s() {
			if math.Abs(g-w[k]) > 1e-14*(1+math.Abs(w[k])) {
				t.Errorf("gradient %d: element %d is %v, want %v", i, k, g, w[k])
			}
		}
	}
	rows := tensor.VMap(func(r ...*tensor.Tensor) *tensor.Tensor { return swish.Of(r[0], beta) }, x.Detach())
	whole := swish.Of(x, beta).Float64s()
	for k, got := range rows.Float64s() {
		if got != whole[k] {
			t.Errorf("batched: element %d is %v, want %v", k, got, whole[k])
		}
	}
}

func TestFusedTruth(t *testing.T) {
	outside := tensor.Fuse("outside", 1, func(x ...*kernel.Expr) *kernel.Expr {
		return kernel.Lt(kernel.Const(1, x[0].DType()), kernel.Abs(x[0]))
	})
	got := outside.Of(tensor.From([]float32{-2, 0.5, 1, 3})).Bools()
	if fmt.Sprint(got) != "[true false false true]" {
		t.Errorf("got %v", got)
	}
}

// With gives other constants to the same kernel, and leaves the operation that it is called of as it was.
func TestFuseScalars(t *testing.T) {
	line := tensor.FuseScalars("line", 1, 2, func(x ...*kernel.Expr) *kernel.Expr {
		return kernel.Add(kernel.Mul(x[0], x[1]), x[2])
	})
	x := tensor.From([]float32{1, 2, 3})
	double, half := line.With(2, 1), line.With(0.5, 0)
	if got := fmt.Sprint(double.Of(x).Float32s(), half.Of(x).Float32s(), double.Of(x).Float32s()); got != "[3 5 7] [0.5 1 1.5] [3 5 7]" {
		t.Error(got)
	}
	if got := tensor.VMap(func(r ...*tensor.Tensor) *tensor.Tensor { return double.Of(r[0]) }, x).Float32s(); fmt.Sprint(got) != "[3 5 7]" {
		t.Errorf("batched: %v", got)
	}
}

func TestFuseMistakes(t *testing.T) {
	f := func(x ...*kernel.Expr) *kernel.Expr { return x[0] }
	line := tensor.FuseScalars("line", 1, 2, func(x ...*kernel.Expr) *kernel.Expr { return kernel.Add(kernel.Mul(x[0], x[1]), x[2]) })
	for what, try := range map[string]func(){
		"0 operands":                            func() { tensor.Fuse("f", 0, f) },
		"4 operands":                            func() { tensor.Fuse("f", 4, f) },
		"and is not defined":                    func() { tensor.Fuse("f", 1, func(x ...*kernel.Expr) *kernel.Expr { return kernel.Not(x[0]) }) },
		"with 0 constants":                      func() { tensor.FuseScalars("f", 1, 0, f) },
		"with 3 constants":                      func() { tensor.FuseScalars("f", 1, 3, f) },
		"it takes 2 constants, not 1":           func() { line.With(1) },
		"it takes 0 constants, not 1":           func() { swish.With(1) },
		"it takes 2 constants, see With":        func() { line.Of(tensor.Scalar(1)) },
		"2 constants, see With":                 func() { line.Sum(nil, tensor.Scalar(1)) },
		"wrong number of operands":              func() { swish.Of(tensor.Scalar(1)) },
		"nil tensor":                            func() { swish.Of(tensor.Scalar(1), nil) },
		"operands differ in element type":       func() { swish.Of(tensor.Scalar(1), tensor.Scalar(1).As(device.Float64)) },
		"operands cannot be broadcast together": func() { swish.Of(tensor.Ones(2), tensor.Ones(3)) },
		"element type not supported":            func() { swish.Of(tensor.From([]int64{1}), tensor.From([]int64{1})) },
	} {
		func() {
			defer func() {
				v := recover()
				if text := fmt.Sprint(v); v == nil || !strings.Contains(text, strings.TrimPrefix(what, "and ")) {
					t.Errorf("%s: panicked with %v", what, v)
				}
			}()
			try()
		}()
	}
}

// fused has Fused operations, and for each the same computation with one operation for each part.
var fused = []struct {
	of    *tensor.Fused
	parts func(x ...*tensor.Tensor) *tensor.Tensor
	value func(x ...float64) float64
	names int  // how many operands
	exact bool // the gradients have the bits of the gradients of the parts
}{
	{swish, func(x ...*tensor.Tensor) *tensor.Tensor { return unfusedSwish(x[0], x[1]) },
		func(x ...float64) float64 { return x[0] / (1 + math.Exp(-x[0]*x[1])) }, 2, false},
	{tensor.Fuse("squared difference", 2, func(v ...*kernel.Expr) *kernel.Expr { d := kernel.Sub(v[0], v[1]); return kernel.Mul(d, d) }),
		func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].Sub(x[1]).Square() },
		func(x ...float64) float64 { return (x[0] - x[1]) * (x[0] - x[1]) }, 2, true},
	// its gradient needs the result
	{tensor.Fuse("tanh", 1, func(v ...*kernel.Expr) *kernel.Expr { return kernel.Tanh(v[0]) }),
		func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].Tanh() }, func(x ...float64) float64 { return math.Tanh(x[0]) }, 1, true},
	{tensor.Fuse("muladd", 3, func(v ...*kernel.Expr) *kernel.Expr { return kernel.Add(kernel.Mul(v[0], v[1]), v[2]) }),
		func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].Mul(x[1]).Add(x[2]) },
		func(x ...float64) float64 { return x[0]*x[1] + x[2] }, 3, true},
	{tensor.FuseScalars("towards", 2, 1, func(v ...*kernel.Expr) *kernel.Expr {
		return kernel.Add(v[0], kernel.Mul(v[2], kernel.Sub(v[1], v[0])))
	}).With(0.3),
		func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].AddScaled(x[1].Sub(x[0]), 0.3) },
		func(x ...float64) float64 { return x[0] + 0.3*(x[1]-x[0]) }, 2, false},
	{tensor.FuseScalars("line", 1, 2, func(v ...*kernel.Expr) *kernel.Expr {
		return kernel.Add(kernel.Mul(v[0], v[1]), v[2])
	}).With(1.7, -0.4),
		func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].MulScalar(1.7).AddScalar(-0.4) },
		func(x ...float64) float64 { return x[0]*1.7 - 0.4 }, 1, true},
}

// sameElements fails unless two tensors have the same bits, where any NaN is as good as another.
func sameElements(t *testing.T, what string, got, want *tensor.Tensor) {
	t.Helper()
	if fmt.Sprint(got.Shape()) != fmt.Sprint(want.Shape()) || got.DType() != want.DType() {
		t.Fatalf("%s: %v%v, want %v%v", what, got.DType(), got.Shape(), want.DType(), want.Shape())
	}
	w := want.As(tensor.Float64).Float64s()
	for i, g := range got.As(tensor.Float64).Float64s() {
		if math.Float64bits(g) != math.Float64bits(w[i]) && !(math.IsNaN(g) && math.IsNaN(w[i])) {
			t.Fatalf("%s: element %d is %v, want %v", what, i, g, w[i])
		}
	}
}

// Fused.Sum has the bits of Of followed by Sum, for any axes and broadcast operands, and is near to the sum in
// float64. Its gradients, and their gradients, have the bits of those of Of followed by Sum.
func TestSumsOfFused(t *testing.T) {
	seed := rand.Uint64()
	rnd := rand.New(rand.NewPCG(seed, 1))
	for round := range 60 {
		f := fused[round%len(fused)]
		dt := []tensor.DType{tensor.Float32, tensor.Float64}[rnd.IntN(2)]
		shape := make([]int, rnd.IntN(4))
		for i := range shape {
			shape[i] = []int{0, 1, 2, 3, 7, 40, 70}[min(rnd.IntN(20), 6)]
		}
		what := fmt.Sprintf("seed %d, round %d, of %v%v", seed, round, dt, shape)
		special := rnd.IntN(3) == 0
		in := make([]*tensor.Tensor, f.names)
		for i := range in {
			in[i] = randomOperand(rnd, dt, shape, i > 0, special).Track()
		}
		var axes []int
		for axis := range shape {
			if rnd.IntN(2) == 0 {
				axes = append(axes, axis-len(shape)*rnd.IntN(2))
			}
		}
		got, want := f.of.Sum(axes, in...), f.parts(in...).Sum(axes...)
		sameElements(t, what+": sum", got, want)
		sameElements(t, what+": mean", f.of.Mean(axes, in...), f.parts(in...).Mean(axes...))
		plain := make([]*tensor.Tensor, len(in))
		for i, x := range in {
			plain[i] = x.Detach()
		}
		sameElements(t, what+": without gradients", f.of.Sum(axes, plain...), want)
		if len(axes) == 0 && !special {
			nearSum(t, what, got, f.value, in)
		}
		weights := randomOperand(rnd, dt, got.Shape(), false, false)
		if !f.exact {
			want = f.of.Of(in...).Sum(axes...)
		}
		first, second := tensor.Grad(got.Mul(weights).Sum(), in...), tensor.Grad(want.Mul(weights).Sum(), in...)
		for i := range in {
			sameElements(t, fmt.Sprintf("%s: gradient %d", what, i), first[i], second[i])
		}
	}
}

// randomOperand returns a tensor of the given shape, possibly a view. If broadcast is set, it may have a smaller
// shape that can be broadcast.
func randomOperand(rnd *rand.Rand, dt tensor.DType, shape []int, broadcast, special bool) *tensor.Tensor {
	own := append([]int(nil), shape...)
	if broadcast && rnd.IntN(2) == 0 {
		for i := range own {
			if rnd.IntN(2) == 0 {
				own[i] = 1
			}
		}
	}
	n := 1
	for _, d := range own {
		n *= d
	}
	data := make([]float64, n)
	for i := range data {
		data[i] = rnd.NormFloat64()
		if special && rnd.IntN(8) == 0 {
			data[i] = []float64{0, math.Copysign(0, -1), math.Inf(1), math.Inf(-1), math.NaN(), 1e-310, 1e-40}[rnd.IntN(7)]
		}
	}
	if len(own) == 2 && rnd.IntN(2) == 0 {
		return tensor.From(data, own[1], own[0]).As(dt).T()
	}
	return tensor.From(data, own...).As(dt)
}

// nearSum fails if got is not the sum of all values of f, within the rounding errors of any order of adding.
func nearSum(t *testing.T, what string, got *tensor.Tensor, f func(x ...float64) float64, in []*tensor.Tensor) {
	t.Helper()
	shape := in[0].Shape() // the first operand is not broadcast
	operands := make([][]float64, len(in))
	for i, x := range in {
		operands[i] = x.BroadcastTo(shape...).As(tensor.Float64).Float64s()
	}
	sum, size := 0.0, 0.0
	for i := range operands[0] {
		x := make([]float64, len(in))
		for k := range x {
			x[k] = operands[k][i]
		}
		sum, size = sum+f(x...), size+math.Abs(f(x...))+1
	}
	epsilon := 0x1p-23
	if in[0].DType() == tensor.Float64 {
		epsilon = 0x1p-52
	}
	if bound := (float64(len(operands[0])) + 64) * epsilon * size; math.Abs(got.Item()-sum) > bound {
		t.Errorf("%s: %v, want %v within %v", what, got.Item(), sum, bound)
	}
}

func TestSumsOfFusedAreDifferentiatedTwiceAndBatched(t *testing.T) {
	x := tensor.From([]float64{-2, -0.3, 0, 0.7, 3, 11}, 2, 3).Track()
	beta := tensor.From([]float64{0.5, 1, 2}).Track()
	again := func(sum *tensor.Tensor) []*tensor.Tensor {
		g := tensor.Grad(sum, x, beta)
		return tensor.Grad(g[0].Square().Sum().Add(g[1].Square().Sum()), x, beta)
	}
	got, want := again(swish.Sum(nil, x, beta)), again(swish.Of(x, beta).Sum())
	for i := range want {
		sameElements(t, fmt.Sprint("second gradient ", i), got[i], want[i])
	}
	rows := tensor.VMap(func(r ...*tensor.Tensor) *tensor.Tensor { return swish.Mean([]int{0}, r[0], beta) }, x)
	sameElements(t, "of rows", rows, swish.Of(x, beta).Mean(1))
	sameElements(t, "gradient of rows", tensor.Grad(rows.Sum(), x)[0], tensor.Grad(swish.Of(x, beta).Mean(1).Sum(), x)[0])
}

func TestSumsOfFusedMistakes(t *testing.T) {
	outside := tensor.Fuse("outside", 1, func(x ...*kernel.Expr) *kernel.Expr { return kernel.Lt(x[0], x[0]) })
	two := tensor.Ones(2)
	for what, try := range map[string]func(){
		"swish: wrong number of operands":              func() { swish.Sum(nil, two) },
		"swish: nil tensor":                            func() { swish.Sum(nil, two, nil) },
		"swish: operands differ in element type":       func() { swish.Mean(nil, two, two.As(device.Float64)) },
		"swish: operands cannot be broadcast together": func() { swish.Sum(nil, two, tensor.Ones(3)) },
		"swish: element type not supported":            func() { swish.Sum(nil, two.As(device.Int64), two.As(device.Int64)) },
		"outside: element type not supported":          func() { outside.Sum(nil, two) },
		"swish: axis out of range":                     func() { swish.Sum([]int{1}, two, two) },
		"swish: axis named twice":                      func() { swish.Mean([]int{0, -1}, two, two) },
	} {
		func() {
			defer func() {
				if v := recover(); v == nil || !strings.Contains(fmt.Sprint(v), what) {
					t.Errorf("%s: panicked with %v", what, v)
				}
			}()
			try()
		}()
	}
}

// BenchmarkMeanOf compares a squared loss and its gradients in one operation with the same in three, in turns in
// one process.
func BenchmarkMeanOf(b *testing.B) {
	for _, n := range []int{64, 1 << 14, 1 << 20} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			x, y := tensor.Randn(n).Track(), tensor.Randn(n)
			parts, whole := 0.0, 0.0
			step := func(loss func() *tensor.Tensor) float64 {
				begin := time.Now()
				l := loss()
				g := tensor.Grad(l, x)[0]
				g.Wait()
				tensor.Dead(l, g)
				return time.Since(begin).Seconds()
			}
			best := func(best *float64, s float64) {
				if *best == 0 || s < *best {
					*best = s
				}
			}
			for b.Loop() {
				best(&parts, step(func() *tensor.Tensor {
					d := x.Sub(y)
					s := d.Square()
					m := s.Mean()
					tensor.Dead(d, s)
					return m
				}))
				best(&whole, step(func() *tensor.Tensor { return fused[1].of.Mean(nil, x, y) }))
			}
			b.ReportMetric(whole/parts, "x")
			b.ReportMetric(whole*1e9, "ns/step")
			b.ReportMetric(0, "ns/op")
		})
	}
}
