package tensor_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/runtime/op"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// domain is the interval of operand i of d.
func domain(d *op.Def, i int, dt device.DType) op.Interval {
	in := op.Interval{Lo: -10, Hi: 10}
	if len(d.Domain) > 0 {
		in = d.Domain[min(i, len(d.Domain)-1)]
	}
	return in
}

// shapesOf lists shapes of n operands that can be broadcast together.
func shapesOf(n int) [][][]int {
	switch n {
	case 1:
		return [][][]int{{{7}}, {{}}, {{2, 3}}, {{0}}, {{3, 0, 2}}, {{2, 1, 2, 3, 2}}}
	case 2:
		return [][][]int{{{7}, {7}}, {{}, {}}, {{2, 3}, {3}}, {{4, 1}, {1, 5}}, {{1}, {3, 2}}, {{0, 3}, {1}}, {{}, {2, 2}}, {{2, 1, 3}, {4, 1}}}
	}
	return [][][]int{{{5}, {5}, {5}}, {{2, 1}, {3}, {}}, {{3}, {2, 1}, {1, 3}}, {{0}, {1}, {1}}}
}

// Every operation gives what its reference gives element by element, for every type, shape and view.
func TestElementwise(t *testing.T) {
	everywhere(t, func(t *testing.T, on device.Device) {
		r := newRand(t)
		for _, o := range elementwiseOps {
			for _, dt := range device.DTypes() {
				if !o.def.Types.Has(dt) {
					continue
				}
				for _, shapes := range shapesOf(o.def.Tensors) {
					checkElementwise(t, r, on, o.def, o.call, dt, shapes)
				}
			}
		}
	})
}

func checkElementwise(t *testing.T, r *rand.Rand, on device.Device, d *op.Def,
	call func(float64, ...*tensor.Tensor) *tensor.Tensor, dt device.DType, shapes [][]int) {
	t.Helper()
	var in []array
	var x []*tensor.Tensor
	for i, shape := range shapes {
		of := dt
		if d.Cond && i == 0 {
			of = tensor.Bool
		}
		a := random(r, of, shape, domain(d, i, dt))
		in = append(in, a)
		x = append(x, asView(r, a, on))
	}
	c := math.Round(1 + 5*r.Float64())
	got := call(c, x...)

	want := array{dtype: dt, shape: got.Shape()}
	if d.Bool {
		want.dtype = tensor.Bool
	}
	for _, index := range indices(want.shape) {
		var args []float64
		for _, a := range in {
			args = append(args, a.at(index))
		}
		switch d.Scalars {
		case 1:
			args = append(args, c)
		case 2:
			args = append(args, c-2, c)
		}
		want.data = append(want.data, reference(d, want.dtype, args))
	}
	ulp := d.ULP
	if !dt.IsFloat() {
		ulp = 0
	}
	what := fmt.Sprintf("%s %v %v", d.Name, dt, shapes)
	check(t, what, got, want, ulp)
}

// reference is d.Ref in the arithmetic of dt.
func reference(d *op.Def, dt device.DType, args []float64) float64 {
	v := d.Ref(args...)
	switch dt {
	case tensor.Float32:
		return float64(float32(v))
	case tensor.Float16, tensor.BFloat16:
		return rounded(float64(float32(v)), dt) // computed in float32
	case tensor.Int64:
		return math.Trunc(v)
	}
	return v
}

// asView returns a tensor with a's elements, sometimes as a view of a tensor that has them in other places.
func asView(r *rand.Rand, a array, on device.Device) *tensor.Tensor {
	rank := len(a.shape)
	if rank == 0 || a.size() == 0 {
		return a.tensor(on)
	}
	switch r.IntN(3) {
	case 0: // the last axis first in memory
		moved := array{a.dtype, append([]int{a.shape[rank-1]}, a.shape[:rank-1]...), nil}
		for _, index := range indices(moved.shape) {
			moved.data = append(moved.data, a.at(append(index[1:len(index):len(index)], index[0])))
		}
		axes := make([]int, rank)
		for i := range axes {
			axes[i] = (i + 1) % rank
		}
		return moved.tensor(on).Transpose(axes...)
	case 1: // a part of something wider
		wide := array{a.dtype, append([]int(nil), a.shape...), nil}
		wide.shape[rank-1] += 2
		for _, index := range indices(wide.shape) {
			v := 0.0
			if i := index[rank-1] - 1; i >= 0 && i < a.shape[rank-1] {
				v = a.at(append(index[:rank-1:rank-1], i))
			}
			wide.data = append(wide.data, v)
		}
		return wide.tensor(on).Slice(-1, 1, -1)
	}
	return a.tensor(on)
}

// NaN, infinities and signed zeros follow IEEE 754, NaN propagates through the operations that compare, and
// integers wrap around.
func TestElementwiseEdges(t *testing.T) {
	everywhere(t, func(t *testing.T, on device.Device) {
		nan, inf, zero := math.NaN(), math.Inf(1), math.Copysign(0, -1)
		f := func(v ...float64) *tensor.Tensor { return tensor.FromOn(on, v) }
		for _, c := range []struct {
			what string
			got  *tensor.Tensor
			want []float64
		}{
			{"Maximum", f(nan, 1, inf).Maximum(f(1, nan, 2)), []float64{nan, nan, inf}},
			{"Minimum", f(nan, 1, -inf).Minimum(f(1, nan, 2)), []float64{nan, nan, -inf}},
			{"ReLU", f(nan, -inf, inf, 0).ReLU(), []float64{nan, 0, inf, 0}},
			{"Sign", f(nan, -inf, inf, 0, zero).Sign(), []float64{nan, -1, 1, 0, zero}},
			{"Sigmoid", f(-1000, 1000, nan).Sigmoid(), []float64{0, 1, nan}},
			{"Div", f(1, -1, 0).Div(f(0, 0, 0)), []float64{inf, -inf, nan}},
			{"Sqrt", f(-1, zero).Sqrt(), []float64{nan, zero}},
			{"Log", f(-1, 0).Log(), []float64{nan, -inf}},
			{"Round", f(0.5, 1.5, 2.5, -0.5).Round(), []float64{0, 2, 2, zero}},
			{"AddScaled", f(1).AddScaled(f(2), -inf), []float64{-inf}},
			{"Where", tensor.Where(tensor.FromOn(on, []bool{true, false}), f(1, nan), f(nan, 2)), []float64{1, 2}},
		} {
			for i, got := range c.got.Float64s() {
				if math.Float64bits(got) != math.Float64bits(c.want[i]) && !(math.IsNaN(got) && math.IsNaN(c.want[i])) {
					t.Errorf("%s: element %d is %v, want %v", c.what, i, got, c.want[i])
				}
			}
		}
		most := tensor.FromOn(on, []int64{math.MaxInt64})
		if got := most.AddScalar(1).ItemInt(); got != math.MinInt64 {
			t.Errorf("MaxInt64 + 1 = %d", got)
		}
		if got := tensor.FromOn(on, []int64{-7, 7}).Div(tensor.FromOn(on, []int64{2, -2})).Int64s(); got[0] != -3 || got[1] != -3 {
			t.Errorf("-7/2, 7/-2 = %v, want -3, -3", got)
		}
	})
}

// TestSigmoidOfDenormals: below -88 sigmoid of a float32 is a denormal number, and 0 only where
// that is nearest. It is never more than 2 ulp off.
func TestSigmoidOfDenormals(t *testing.T) {
	const n = 1 << 17
	data := make([]float32, n)
	for i := range data {
		data[i] = -105 + 125*float32(i)/n
	}
	for i, got := range tensor.From(data).Sigmoid().Float32s() {
		want := 1 / (1 + math.Exp(-float64(data[i])))
		_, e := math.Frexp(want)
		if off := math.Abs(float64(got)-want) / math.Ldexp(1, max(e, -125)-24); !(off <= 2) {
			t.Fatalf("sigmoid(%v) is %v, want %v: %.2f ulp", data[i], got, want, off)
		}
	}
	for i, got := range tensor.From([]float64{-740, -720, -30, 0, 30}).Sigmoid().Float64s() {
		if want := []float64{math.Exp(-740), math.Exp(-720), 1 / (1 + math.Exp(30)), 0.5, 1 / (1 + math.Exp(-30))}[i]; math.Abs(got-want) > 4e-16*want+0x1p-1074 {
			t.Errorf("element %d is %v, want %v", i, got, want)
		}
	}
}
