package tensor_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/runtime/op"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// Integers that are no float64 pass through creation, operations and reads unchanged.
func TestExactIntegers(t *testing.T) {
	values := []int64{1<<53 + 1, -1<<53 - 1, math.MaxInt64, math.MinInt64, 1<<62 + 3, 7}
	everywhere(t, func(t *testing.T, on device.Device) {
		x := tensor.FromOn(on, values)
		for _, c := range values {
			if got := tensor.On(on).FullInt(c, 2, 1).Int64s(); !slices.Equal(got, []int64{c, c}) {
				t.Errorf("FullInt(%d) is %v", c, got)
			}
			for name, f := range map[string]struct {
				tensor *tensor.Tensor
				go1    func(v int64) int64
			}{
				"AddInt": {x.AddInt(c), func(v int64) int64 { return v + c }},
				"SubInt": {x.SubInt(c), func(v int64) int64 { return v - c }},
				"MulInt": {x.MulInt(c), func(v int64) int64 { return v * c }},
				"DivInt": {x.DivInt(c), func(v int64) int64 { return v / c }},
			} {
				for i, got := range f.tensor.Int64s() {
					if want := f.go1(values[i]); got != want {
						t.Errorf("%d.%s(%d) is %d, want %d", values[i], name, c, got, want)
					}
				}
			}
		}
		for i, v := range values {
			if got := x.AtInt(i); got != v {
				t.Errorf("AtInt(%d) is %d, want %d", i, got, v)
			}
			m := mistake(func() {
				if got := x.At(i); got != float64(v) || int64(got) != v {
					t.Errorf("At(%d) is %v, want %d", i, got, v)
				}
			})
			if isHeld := v != math.MaxInt64 && int64(float64(v)) == v; isHeld != (m == nil) {
				t.Errorf("At(%d), which is %d: %v", i, v, m)
			}
		}
		if got := tensor.FromOn(on, []bool{true}).AtInt(0); got != 1 {
			t.Errorf("AtInt of true is %d", got)
		}
	})
	if got := tensor.FullInt(1<<53 + 1).ItemInt(); got != 1<<53+1 {
		t.Errorf("FullInt is %d", got)
	}
}

// Slices of other integer types become int64 tensors.
func TestFromIntegers(t *testing.T) {
	is := func(x *tensor.Tensor, want ...int64) {
		t.Helper()
		if x.DType() != tensor.Int64 || !slices.Equal(x.Int64s(), want) {
			t.Errorf("got %v of %v, want %v", x, x.DType(), want)
		}
	}
	is(tensor.From([]int{1, -2, math.MaxInt}, 3), 1, -2, math.MaxInt)
	is(tensor.From([]int8{-128, 127}), -128, 127)
	is(tensor.From([]int16{math.MinInt16}), math.MinInt16)
	is(tensor.From([]int32{math.MinInt32, math.MaxInt32}), math.MinInt32, math.MaxInt32)
	is(tensor.From([]uint8{0, 255}), 0, 255)
	is(tensor.From([]uint16{65535}), 65535)
	is(tensor.FromOn(device.CPU(), []uint32{math.MaxUint32}), math.MaxUint32)
	data := []int{1, 2, 3, 4}
	x, err := tensor.TryFrom(data, 2, 2)
	data[0] = 9 // From copies
	if err != nil || !slices.Equal(x.Shape(), []int{2, 2}) {
		t.Fatalf("%v, %v", x, err)
	}
	is(x, 1, 2, 3, 4)
	if _, err := tensor.TryFrom([]int{1}, 2); err == nil || err.Error() != "tensor: TryFrom: "+op.MistakeLength+": 1 elements, want 2: int64[2]" {
		t.Errorf("data that does not fill the shape: %v", err)
	}
}

// Products of integers have the values of plain loops, which wrap around in the same way.
func TestIntegerProducts(t *testing.T) {
	everywhere(t, func(t *testing.T, on device.Device) {
		r := newRand(t)
		for range 30 {
			batch, m, k, n := 1+r.IntN(3), r.IntN(20), r.IntN(40), r.IntN(20)
			fill := func(size int) []int64 {
				data := make([]int64, size)
				for i := range data {
					data[i] = int64(r.Uint64()) >> r.IntN(64)
				}
				return data
			}
			a, b := fill(batch*m*k), fill(k*n)
			want := make([]int64, 0, batch*m*n)
			for i := range batch * m {
				for j := range n {
					sum := int64(0)
					for l := range k {
						sum += a[i*k+l] * b[l*n+j]
					}
					want = append(want, sum)
				}
			}
			x, y := tensor.FromOn(on, a, batch, m, k), tensor.FromOn(on, b, k, n)
			turned := tensor.FromOn(on, y.T().Int64s(), n, k).T()
			for what, got := range map[string][]int64{"product": x.MatMul(y).Int64s(), "product by a view": x.MatMul(turned).Int64s()} {
				if !slices.Equal(got, want) {
					t.Errorf("%s of [%d %d %d] and [%d %d]: %v, want %v", what, batch, m, k, k, n, got, want)
				}
			}
		}
	})
}

// A comparison with a number is that with a tensor of the number in the tensor's type.
func TestCompareScalars(t *testing.T) {
	forms := map[string][2]func(x *tensor.Tensor, c float64) *tensor.Tensor{}
	add := func(name string, scalar func(*tensor.Tensor, float64) *tensor.Tensor, full func(x, y *tensor.Tensor) *tensor.Tensor) {
		forms[name] = [2]func(*tensor.Tensor, float64) *tensor.Tensor{scalar, func(x *tensor.Tensor, c float64) *tensor.Tensor {
			return full(x, tensor.On(x.Device()).As(x.DType()).Scalar(c))
		}}
	}
	add("Eq", (*tensor.Tensor).EqScalar, (*tensor.Tensor).Eq)
	add("Ne", (*tensor.Tensor).NeScalar, (*tensor.Tensor).Ne)
	add("Lt", (*tensor.Tensor).LtScalar, (*tensor.Tensor).Lt)
	add("Le", (*tensor.Tensor).LeScalar, (*tensor.Tensor).Le)
	add("Gt", (*tensor.Tensor).GtScalar, (*tensor.Tensor).Gt)
	add("Ge", (*tensor.Tensor).GeScalar, (*tensor.Tensor).Ge)
	everywhere(t, func(t *testing.T, on device.Device) {
		floats := tensor.FromOn(on, []float64{0.1, -1, 0, math.Copysign(0, -1), math.NaN(), math.Inf(1), 5})
		for name, form := range forms {
			for _, x := range []*tensor.Tensor{floats, floats.As(tensor.Float32), tensor.FromOn(on, []int64{-1, 0, 5, math.MaxInt64})} {
				for _, c := range []float64{0.1, 0, -1, 5, math.Inf(1), math.NaN()} {
					if x.DType() == tensor.Int64 && c != math.Trunc(c) || math.IsInf(c, 0) && x.DType() == tensor.Int64 {
						continue
					}
					if got, want := form[0](x, c), form[1](x, c); fmt.Sprint(got) != fmt.Sprint(want) {
						t.Errorf("%sScalar(%v) of %v: %v, want %v", name, c, x, got, want)
					}
				}
			}
		}
	})
}

// Classes are numbered from 0. A negative class is an error, although a negative index counts from the end.
func TestNegativeClasses(t *testing.T) {
	everywhere(t, func(t *testing.T, on device.Device) {
		x := tensor.FromOn(on, []float32{1, 2, 3, 4, 5, 6}, 2, 3)
		classes := func(v ...int64) *tensor.Tensor { return tensor.FromOn(on, v) }
		if got := x.PickClasses(classes(2, 0)).Float32s(); !slices.Equal(got, []float32{3, 4}) {
			t.Errorf("PickClasses: %v", got)
		}
		if got := x.TakeClasses(1, classes(2)).Float32s(); !slices.Equal(got, []float32{3, 6}) {
			t.Errorf("TakeClasses: %v", got)
		}
		tracked := x.Track()
		for name, y := range map[string]*tensor.Tensor{
			"TakeClasses": x.TakeClasses(0, classes(0, -1)),
			"PickClasses": x.PickClasses(classes(-3, 0)),
			"OneHot":      classes(1, -1).OneHot(3),
			"gradient":    tensor.Grad(tracked.PickClasses(classes(0, -1)).Sum(), tracked)[0],
		} {
			if err := y.Wait(); err == nil {
				t.Errorf("%s of a negative class: no error", name)
			}
		}
		if err := tensor.CurrentEngine().WaitAll(t.Context()); err == nil {
			t.Error("the errors have vanished")
		}
	})
}

// ArangeInt counts exactly over all of int64.
func TestArangeInt(t *testing.T) {
	everywhere(t, func(t *testing.T, on device.Device) {
		for _, c := range []struct {
			start, stop, step int64
			want              []int64
		}{
			{0, 4, 1, []int64{0, 1, 2, 3}}, {2, 9, 3, []int64{2, 5, 8}}, {5, -1, -2, []int64{5, 3, 1}}, {3, 3, 1, nil}, {3, 5, -1, nil}, {5, 3, 2, nil},
			{1<<53 + 1, 1<<53 + 6, 2, []int64{1<<53 + 1, 1<<53 + 3, 1<<53 + 5}},
			{math.MinInt64, math.MaxInt64, math.MaxInt64, []int64{math.MinInt64, -1, math.MaxInt64 - 1}},
			{math.MaxInt64, math.MinInt64, math.MinInt64, []int64{math.MaxInt64, -1}},
			{math.MaxInt64 - 1, math.MaxInt64, 5, []int64{math.MaxInt64 - 1}},
		} {
			x := tensor.On(on).As(tensor.Float16).ArangeInt(c.start, c.stop, c.step)
			if got := x.Int64s(); x.DType() != tensor.Int64 || x.Rank() != 1 || !slices.Equal(got, c.want) {
				t.Errorf("from %d to %d by %d: %v, want %v", c.start, c.stop, c.step, got, c.want)
			}
		}
	})
	if got := tensor.ArangeInt(1, 3, 1).Int64s(); !slices.Equal(got, []int64{1, 2}) {
		t.Errorf("got %v", got)
	}
}
