package tensor_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

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

// unfusedSwish is swish by one operation for each primitive.
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

func TestFuseMistakes(t *testing.T) {
	f := func(x ...*kernel.Expr) *kernel.Expr { return x[0] }
	for what, try := range map[string]func(){
		"0 operands":                            func() { tensor.Fuse("f", 0, f) },
		"4 operands":                            func() { tensor.Fuse("f", 4, f) },
		"and is not defined":                    func() { tensor.Fuse("f", 1, func(x ...*kernel.Expr) *kernel.Expr { return kernel.Not(x[0]) }) },
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
