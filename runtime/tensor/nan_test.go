package tensor_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/runtime/op"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// The gradient of an operand that is NaN is not 0, unless the operation has no gradient: a model that has gone
// wrong must not look as if it had nothing left to learn. Where chooses; values that it does not choose don't
// matter.
func TestNaNGradients(t *testing.T) {
	everywhere(t, func(t *testing.T, on device.Device) {
		for _, o := range elementwiseOps {
			d := o.def
			if !d.Types.Has(tensor.Float64) || d.Bool || d.Cond {
				continue
			}
			for spoiled := range d.Tensors {
				for _, other := range []float64{math.NaN(), 0, 0.5, -2} {
					for _, upstream := range []float64{1, math.NaN()} {
						x := make([]*tensor.Tensor, d.Tensors)
						for i := range x {
							v := other
							if i == spoiled {
								v = math.NaN()
							}
							x[i] = tensor.FromOn(on, []float64{v}).Track()
						}
						y := o.call(1.5, x...)
						if v := y.Item(); v == v {
							continue // the 0th power of anything is 1
						}
						for i, g := range tensor.Grad(y.MulScalar(upstream).Sum(), x...) {
							got := g.Item()
							isConstant, isProduct := d.Gradient(i).Def == nil, other == 0
							if !isConstant && (got == 0 && !isProduct || upstream != upstream && got == got) {
								t.Errorf("%s: operand %d is NaN and another one %v: from %v the gradient of operand %d is %v", d.Name, spoiled, other, upstream, i, got)
							}
						}
					}
				}
			}
		}
	})
}

// If the greatest or least element is NaN, the gradient goes to all NaN elements, in equal shares, as in PyTorch's
// max of all elements.
func TestNaNExtremes(t *testing.T) {
	nan := math.NaN()
	everywhere(t, func(t *testing.T, on device.Device) {
		data := []float64{1, nan, 3, nan, 2, 2, 2, 0, nan, nan, nan, nan}
		for name, test := range map[string]struct {
			f    func(*tensor.Tensor) *tensor.Tensor
			want []float64
		}{
			"Max of rows":    {func(x *tensor.Tensor) *tensor.Tensor { return x.Max(1) }, []float64{0, 0.5, 0, 0.5, 1. / 3, 1. / 3, 1. / 3, 0, 0.25, 0.25, 0.25, 0.25}},
			"Min of rows":    {func(x *tensor.Tensor) *tensor.Tensor { return x.MinKeep(1) }, []float64{0, 0.5, 0, 0.5, 0, 0, 0, 1, 0.25, 0.25, 0.25, 0.25}},
			"Max of all":     {func(x *tensor.Tensor) *tensor.Tensor { return x.Max() }, []float64{0, 1. / 6, 0, 1. / 6, 0, 0, 0, 0, 1. / 6, 1. / 6, 1. / 6, 1. / 6}},
			"Min of columns": {func(x *tensor.Tensor) *tensor.Tensor { return x.Min(0) }, []float64{0, 0.5, 0, 0.5, 0, 0, 0, 0, 1, 0.5, 1, 0.5}},
			"MaxPool2D": {func(x *tensor.Tensor) *tensor.Tensor {
				return x.Reshape(1, 3, 4).MaxPool2D(tensor.Pool{Window: tensor.Pair{1, 2}})
			}, []float64{0, 1, 0, 1, 1, 0, 1, 0, 1, 0, 1, 0}},
			"LinearReLU": {func(x *tensor.Tensor) *tensor.Tensor {
				one := tensor.On(on).As(tensor.Float64)
				return x.LinearReLU(one.Eye(4), one.Full(-1.5, 4)).MulScalar(2)
			}, []float64{2, 2, 2, 2, 2, 2, 2, 0, 2, 2, 2, 2}}, // all sums of a row with a NaN are NaN
		} {
			x := tensor.FromOn(on, data, 3, 4).Track()
			got := tensor.Grad(test.f(x).Sum(), x)[0].Float64s()
			for i, want := range test.want {
				if math.Abs(got[i]-want) > 1e-12 {
					t.Errorf("%s: element %d has gradient %v, want %v", name, i, got[i], want)
				}
			}
		}
	})
}

// A view with negative strides panics at the call, not in a kernel.
func TestNegativeStrides(t *testing.T) {
	reverse := &op.Def{Name: "Reverse", Types: op.All, View: func(_ *op.Attr, in op.View) (op.View, bool) {
		n := in.Shape[0]
		return op.View{Shape: in.Shape, Strides: []int{-1}, Off: in.Off + n - 1}, true
	}}
	defer func() {
		if got, want := fmt.Sprint(recover()), "op: Reverse has a view with strides [-1], want none below 0: Run can copy instead"; got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}()
	tensor.ViewOf(reverse, tensor.From([]float32{1, 2, 3}))
}
