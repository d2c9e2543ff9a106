package tensor_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// byName are the operations of testdata/operations.json. args are what operations.py says.
var byName = map[string]func(args []float64, x ...*tensor.Tensor) *tensor.Tensor{
	"Clamp":     func(a []float64, x ...*tensor.Tensor) *tensor.Tensor { return x[0].Clamp(a[0], a[1]) },
	"LeakyReLU": func(a []float64, x ...*tensor.Tensor) *tensor.Tensor { return x[0].LeakyReLU(a[0]) },
	"ELU":       func(a []float64, x ...*tensor.Tensor) *tensor.Tensor { return x[0].ELU(a[0]) },
	"Lerp":      func(a []float64, x ...*tensor.Tensor) *tensor.Tensor { return x[0].Lerp(x[1], a[0]) },
	"Var":       func(a []float64, x ...*tensor.Tensor) *tensor.Tensor { return x[0].Var(int(a[0]), int(a[1])) },
	"Std":       func(a []float64, x ...*tensor.Tensor) *tensor.Tensor { return x[0].Std(int(a[0]), int(a[1])) },
	"StdKeep":   func(a []float64, x ...*tensor.Tensor) *tensor.Tensor { return x[0].StdKeep(int(a[0]), int(a[1])) },
	"VectorNorm": func(a []float64, x ...*tensor.Tensor) *tensor.Tensor {
		return x[0].VectorNorm(a[0], int(a[1]))
	},
	"CumProd":  func(a []float64, x ...*tensor.Tensor) *tensor.Tensor { return x[0].CumProd(int(a[0])) },
	"CumMax":   func(a []float64, x ...*tensor.Tensor) *tensor.Tensor { return x[0].CumMax(int(a[0])) },
	"CumMin":   func(a []float64, x ...*tensor.Tensor) *tensor.Tensor { return x[0].CumMin(int(a[0])) },
	"Quantile": func(a []float64, x ...*tensor.Tensor) *tensor.Tensor { return x[0].Quantile(a[0], int(a[1])) },
	"Median":   func(a []float64, x ...*tensor.Tensor) *tensor.Tensor { return x[0].Median(int(a[0])) },
	"Outer":    func(_ []float64, x ...*tensor.Tensor) *tensor.Tensor { return x[0].Outer(x[1]) },
	"Diag": func(_ []float64, x ...*tensor.Tensor) *tensor.Tensor {
		if x[0].Rank() == 1 {
			return x[0].Diag(0)
		}
		return x[0].Diagonal(0)
	},
	"Trace":   func(_ []float64, x ...*tensor.Tensor) *tensor.Tensor { return x[0].Trace() },
	"IsClose": func(a []float64, x ...*tensor.Tensor) *tensor.Tensor { return x[0].IsClose(x[1], a[0], a[1]) },
}

// A jsonNumber is a float64, as a text if it is infinite or NaN.
type jsonNumber float64

func (n *jsonNumber) UnmarshalJSON(text []byte) error {
	v, err := strconv.ParseFloat(strings.Trim(string(text), `"`), 64)
	*n = jsonNumber(v)
	return err
}

type jsonArray struct {
	Shape []int
	Data  []jsonNumber
}

func (a jsonArray) array(dt device.DType) array {
	x := array{dtype: dt, shape: a.Shape}
	for _, v := range a.Data {
		x.data = append(x.data, float64(v))
	}
	return x
}

// Operations give what PyTorch and NumPy give, and so do their gradients: operands are float64, and sums may differ by
// a few roundings.
func TestLikePyTorch(t *testing.T) {
	text, err := os.ReadFile("testdata/operations.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Op    string
		Args  []jsonNumber
		In    []jsonArray
		Out   jsonArray
		Grads []jsonArray
	}
	if err := json.Unmarshal(text, &cases); err != nil {
		t.Fatal(err)
	}
	elementwise := map[string]func(c float64, x ...*tensor.Tensor) *tensor.Tensor{}
	for _, o := range elementwiseOps {
		elementwise[o.def.Name] = o.call
	}
	everywhere(t, func(t *testing.T, on device.Device) {
		r := newRand(t)
		for i, c := range cases {
			var x []*tensor.Tensor
			for _, a := range c.In {
				x = append(x, asView(r, a.array(tensor.Float64), on).Track())
			}
			var args []float64
			for _, v := range c.Args {
				args = append(args, float64(v))
			}
			f := byName[c.Op]
			if equation, ok := strings.CutPrefix(c.Op, "Einsum "); ok {
				f = func(_ []float64, x ...*tensor.Tensor) *tensor.Tensor { return tensor.Einsum(equation, x...) }
			}
			if call := elementwise[c.Op]; f == nil && call != nil {
				f = func(_ []float64, x ...*tensor.Tensor) *tensor.Tensor { return call(0, x...) }
			}
			if f == nil {
				t.Fatalf("there is no %s", c.Op)
			}
			y := f(args, x...)
			what := fmt.Sprintf("case %d: %s %v of %v", i, c.Op, args, c.In)
			nearlyEqual(t, what, y, c.Out.array(y.DType()))
			if c.Grads == nil {
				continue
			}
			w := tensor.On(on).As(tensor.Float64).Arange(1, float64(y.Size())+1, 1).Reshape(y.Shape()...)
			for k, g := range tensor.Grad(y.Mul(w).Sum(), x...) {
				nearlyEqual(t, fmt.Sprintf("%s: gradient %d", what, k), g, c.Grads[k].array(tensor.Float64))
			}
		}
	})
}

// nearlyEqual checks that got is want but for a few roundings.
func nearlyEqual(t *testing.T, what string, got *tensor.Tensor, want array) {
	t.Helper()
	if !slices.Equal(got.Shape(), want.shape) {
		t.Errorf("%s: shape %v, want %v", what, got.Shape(), want.shape)
		return
	}
	for i, v := range values(got) {
		w := want.data[i]
		if v != w && !(math.Abs(v-w) <= 1e-12*max(1, math.Abs(w))) && (v == v || w == w) {
			t.Errorf("%s: element %d is %v, want %v", what, i, v, w)
			return
		}
	}
}

// What is made of other operations is so for float32, for no elements and for scalars, too.
func TestStatisticsEdges(t *testing.T) {
	everywhere(t, func(t *testing.T, on device.Device) {
		nan := math.NaN()
		empty, one := tensor.On(on).Zeros(2, 0), tensor.On(on).Full(-3, 1)
		scalar := tensor.On(on).Scalar(-3)
		for _, c := range []struct {
			what string
			x    *tensor.Tensor
			want array
		}{
			{"Var of nothing", empty.Var(0, 1), array{tensor.Float32, []int{2}, []float64{nan, nan}}},
			{"Var of one", one.VarKeep(1), array{tensor.Float32, []int{1}, []float64{nan}}},
			{"Std of a scalar", scalar.Std(0), array{tensor.Float32, []int{}, []float64{0}}},
			{"norm of nothing", empty.VectorNorm(math.Inf(1), 1), array{tensor.Float32, []int{2}, []float64{0, 0}}},
			{"norm of a scalar", scalar.VectorNorm(1), array{tensor.Float32, []int{}, []float64{3}}},
			{"kept norm", one.VectorNormKeep(4), array{tensor.Float32, []int{1}, []float64{3}}},
			{"CumMax of nothing", empty.CumMax(1), array{tensor.Float32, []int{2, 0}, nil}},
			{"Diag of nothing", tensor.On(on).Zeros(0).Diag(0), array{tensor.Float32, []int{0, 0}, nil}},
			{"Trace of nothing", empty.Trace(), array{tensor.Float32, []int{}, []float64{0}}},
			{"Outer with nothing", one.Outer(tensor.On(on).Zeros(0)), array{tensor.Float32, []int{1, 0}, nil}},
			{"Diag of bools", tensor.FromOn(on, []bool{true, false, true, true}, 2, 2).Diagonal(0), array{tensor.Bool, []int{2}, []float64{1, 1}}},
			{"CumProd of integers", tensor.FromOn(on, []int{2, 0, 3}).CumProd(0), array{tensor.Int64, []int{3}, []float64{2, 0, 0}}},
			{"Einsum of nothing", tensor.Einsum("ij,kj->ik", empty, empty), array{tensor.Float32, []int{2, 2}, []float64{0, 0, 0, 0}}},
			{"Einsum of integers", tensor.Einsum("i,i", tensor.FromOn(on, []int{2, 3}), tensor.FromOn(on, []int{4, 5})), array{tensor.Int64, []int{}, []float64{23}}},
			{"AllClose", one.AllClose(scalar, 0, 0), array{tensor.Bool, []int{}, []float64{1}}},
			{"AllClose to NaN", one.AllClose(tensor.On(on).Scalar(nan), 1, 1), array{tensor.Bool, []int{}, []float64{0}}},
			{"BinCount", tensor.FromOn(on, []int{3, 0, 3, 1}, 2, 2).BinCount(5), array{tensor.Int64, []int{5}, []float64{1, 1, 0, 2, 0}}},
			{"BinCount of nothing", tensor.On(on).As(tensor.Int64).Zeros(0).BinCount(2), array{tensor.Int64, []int{2}, []float64{0, 0}}},
			{"NonZero", tensor.FromOn(on, []float64{0, 2, nan, 0, 0, -1}, 2, 3).NonZero(), array{tensor.Int64, []int{3, 2}, []float64{0, 1, 0, 2, 1, 2}}},
			{"NonZero of a view", tensor.FromOn(on, []bool{false, true, false, true}, 2, 2).T().NonZero(), array{tensor.Int64, []int{2, 2}, []float64{1, 0, 1, 1}}},
			{"NonZero of a scalar", scalar.NonZero(), array{tensor.Int64, []int{1, 0}, nil}},
			{"NonZero of nothing", empty.NonZero(), array{tensor.Int64, []int{0, 2}, nil}},
			{"Unique", tensor.FromOn(on, []int{5, 1, 5, 2, 1}).Unique(), array{tensor.Int64, []int{3}, []float64{1, 2, 5}}},
			{"Unique with NaN", tensor.FromOn(on, []float64{nan, 1, nan, 1}, 2, 2).T().Unique(), array{tensor.Float64, []int{3}, []float64{1, nan, nan}}},
			{"Unique of nothing", empty.Unique(), array{tensor.Float32, []int{0}, nil}},
		} {
			check(t, c.what, c.x, c.want, 0)
		}
		grids := tensor.Meshgrid(tensor.FromOn(on, []int{1, 2}), tensor.FromOn(on, []int{3, 4, 5}))
		if got := fmt.Sprint(grids[0].Int64s(), grids[1].Int64s(), grids[1].Shape()); got != "[1 1 1 2 2 2] [3 4 5 3 4 5] [2 3]" {
			t.Errorf("Meshgrid: %s", got)
		}
	})
}

// Of a norm of zeros, and of zeros in a norm, the gradient is 0, and that of the gradient is a number.
func TestVectorNormOfZeros(t *testing.T) {
	everywhere(t, func(t *testing.T, on device.Device) {
		for _, p := range []float64{0.5, 1, 1.5, 2, 3, 4, math.Inf(1)} {
			for _, zeros := range [][]float32{{0, 0, 0}, {0, 2, 0}} {
				x := tensor.FromOn(on, zeros).Track()
				y := x.VectorNorm(p)
				g := tensor.Grad(y, x)[0]
				what := fmt.Sprintf("norm %v of %v", p, zeros)
				check(t, what, y, array{tensor.Float32, []int{}, []float64{float64(zeros[1])}}, 4)
				if !math.IsInf(p, 1) || zeros[1] != 0 { // of equal elements, one or all have a share
					check(t, what+", gradient", g, array{tensor.Float32, []int{3}, []float64{0, float64(zeros[1]) / 2, 0}}, 4)
				}
				for _, second := range tensor.Grad(g.Sum(), x)[0].Float32s() {
					if second != second && zeros[1] != 0 {
						t.Errorf("%s: the gradient of the gradient is NaN", what)
					}
				}
			}
		}
	})
}

func TestStatisticsMistakes(t *testing.T) {
	x, empty := tensor.Ones(2, 3), tensor.Zeros(0)
	for what, f := range map[string]func(){
		"Var of int64":           func() { x.As(tensor.Int64).Var(0) },
		"VectorNorm(0)":          func() { x.VectorNorm(0) },
		"VectorNorm(NaN)":        func() { x.VectorNorm(math.NaN()) },
		"Median of nothing":      func() { empty.Median(0) },
		"Quantile(2)":            func() { x.Quantile(2, 0) },
		"Outer of a matrix":      func() { x.Outer(x) },
		"Diag of a scalar":       func() { tensor.Scalar(1).Diag(0) },
		"Trace of a vector":      func() { empty.Trace() },
		"CumMax of bools":        func() { x.As(tensor.Bool).CumMax(0) },
		"BinCount of floats":     func() { x.BinCount(3) },
		"Meshgrid of a matrix":   func() { tensor.Meshgrid(x) },
		"Einsum of another rank": func() { tensor.Einsum("i->i", x) },
		"Einsum of two":          func() { tensor.Einsum("ij,jk->ik", x) },
		"Einsum without a name":  func() { tensor.Einsum("ij->k", x) },
		"Einsum twice":           func() { tensor.Einsum("ij->ii", x) },
		"Einsum of a digit":      func() { tensor.Einsum("i1->i", x) },
		"Einsum of lengths":      func() { tensor.Einsum("ij,ij->i", x, x.T()) },
		"Einsum of squares":      func() { tensor.Einsum("ii->i", x) },
	} {
		if mistake(f) == nil {
			t.Errorf("%s is no mistake", what)
		}
	}
}
