package nn_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/devicetest"
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// A small network for images of 28 by 28.
func ExampleConv2D() {
	net := nn.Sequential(
		nn.Conv2D(8, tensor.Both(5), tensor.Conv{Padding: tensor.Both(2)}), nn.ReLU(), nn.MaxPool2D(tensor.Pool{Window: tensor.Both(2)}),
		nn.Conv2D(16, tensor.Both(3), tensor.Conv{Stride: tensor.Both(2)}), nn.ReLU(), nn.AvgPool2D(tensor.Pool{Window: tensor.Both(3)}),
		nn.Flatten(), nn.Dense(10),
	)
	y := net.Forward(tensor.Ones(4, 1, 28, 28))
	fmt.Println(y.Shape())
	for _, p := range net.Params() {
		fmt.Println(p.Value().Shape())
	}
	// Output:
	// [4 10]
	// [8 1 5 5]
	// [8]
	// [16 8 3 3]
	// [16]
	// [64 10]
	// [10]
}

// Conv2D draws its kernel when it sees the first images.
func TestConv2D(t *testing.T) {
	for _, name := range devicetest.Names(t) {
		on, err := device.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		tensor.Seed(1)
		layer := nn.Conv2D(6, tensor.Pair{2, 3}, tensor.Conv{Groups: 2, Padding: tensor.Pair{0, 1}})
		if ps := layer.Params(); len(ps) != 2 || ps[0].IsSet() || ps[1].IsSet() {
			t.Errorf("parameters before the first input: %v", ps)
		}
		x := tensor.On(on).As(tensor.Float64).Uniform(-1, 1, 2, 4, 5, 5)
		y := layer.Forward(x)
		w, b := layer.Params()[0].Value(), layer.Params()[1].Value()
		if y.DType() != tensor.Float64 || w.Device() != on || !slices.Equal(w.Shape(), []int{6, 2, 2, 3}) || !slices.Equal(b.Shape(), []int{6}) {
			t.Errorf("%v by %v and %v is %v", x.Shape(), w.Shape(), b.Shape(), y.Shape())
		}
		if want := x.Conv2D(w, tensor.Conv{Groups: 2, Padding: tensor.Pair{0, 1}}); !slices.Equal(y.Float64s(), want.Float64s()) {
			t.Error("the result is not the convolution")
		}
		if one := layer.Forward(x.Row(1)); !slices.Equal(one.Float64s(), y.Row(1).Float64s()) {
			t.Error("an image alone has another result")
		}
		limit := math.Sqrt(6.0 / ((2 + 3) * 6))
		for _, v := range w.Float64s() {
			if math.Abs(v) > limit {
				t.Errorf("weight %v is beyond %v", v, limit)
			}
		}
		frozen := nn.Frozen(layer)
		loss := func() *tensor.Tensor { return layer.Forward(x).Square().Mean() }
		before := loss().Item()
		optim.SGD(layer.Params(), 0.1).Minimize(loss())
		if after := loss().Item(); after >= before {
			t.Errorf("the loss is %v after a step, %v before", after, before)
		}
		if !slices.Equal(frozen.Forward(x).Float64s(), y.Float64s()) {
			t.Error("the frozen layer has changed")
		}
	}
}

// The layers without parameters do what they are named after, and are the same when frozen.
func TestPoolingLayers(t *testing.T) {
	x := tensor.From([]float32{1, 2, 3, 4, 5, 6, 7, 8}, 2, 1, 2, 2)
	window := tensor.Pool{Window: tensor.Both(2)}
	for _, c := range []struct {
		layer nn.Module
		want  []float32
		shape []int
	}{
		{nn.MaxPool2D(window), []float32{4, 8}, []int{2, 1, 1, 1}},
		{nn.AvgPool2D(window), []float32{2.5, 6.5}, []int{2, 1, 1, 1}},
		{nn.Flatten(), []float32{1, 2, 3, 4, 5, 6, 7, 8}, []int{2, 4}},
	} {
		for _, layer := range []nn.Module{c.layer, nn.Frozen(c.layer), nn.Sequential(nn.ReLU(), c.layer, nn.ReLU())} {
			if y := layer.Forward(x); len(layer.Params()) != 0 || !slices.Equal(y.Shape(), c.shape) || !slices.Equal(y.Float32s(), c.want) {
				t.Errorf("%T: %v, want %v of shape %v", c.layer, y, c.want, c.shape)
			}
		}
	}
	if y := nn.Flatten().Forward(tensor.Zeros(0, 2, 3)); !slices.Equal(y.Shape(), []int{0, 6}) {
		t.Errorf("no samples have shape %v", y.Shape())
	}
}

func TestConvMistakes(t *testing.T) {
	mistaken(t, map[string]func(){
		"nn: Conv2D: -1 channels, a kernel of 3 rows and 3 columns": func() { nn.Conv2D(-1, tensor.Both(3), tensor.Conv{}) },
		"nn: Conv2D: 1 channels, a kernel of 0 rows and 3 columns":  func() { nn.Conv2D(1, tensor.Pair{0, 3}, tensor.Conv{}) },
		"nn: Conv2D: the input has shape [3 3], want images [N C H W], or one [C H W], and channels in 1 groups, as are the layer's 2": func() {
			nn.Conv2D(2, tensor.Both(1), tensor.Conv{}).Forward(tensor.Ones(3, 3))
		},
		"nn: Conv2D: the input has shape [3 4 4], want images [N C H W], or one [C H W], and channels in 2 groups, as are the layer's 2": func() {
			nn.Conv2D(2, tensor.Both(1), tensor.Conv{Groups: 2}).Forward(tensor.Ones(3, 4, 4))
		},
		"nn: Flatten: the input has no axes, want one that numbers the samples": func() { nn.Flatten().Forward(tensor.Scalar(1)) },
	})
}
