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

// PixelShuffle puts channels where its comment says, and Pad2D repeats the elements at the ends.
func TestPixels(t *testing.T) {
	const by, c, h, w = 3, 2, 2, 4
	x := tensor.Randn(2, c*by*by, h, w)
	y := nn.PixelShuffle(by).Forward(x)
	if !y.Shape().Equal(device.Shape{2, c, h * by, w * by}) {
		t.Fatalf("the shape is %v", y.Shape())
	}
	in, out := x.Float32s(), y.Float32s()
	for at, got := range out {
		col, row, channel, n := at%(w*by), at/(w*by)%(h*by), at/(w*by*h*by)%c, at/(w*by*h*by*c)
		from := channel*by*by + row%by*by + col%by
		if want := in[((n*c*by*by+from)*h+row/by)*w+col/by]; got != want {
			t.Fatalf("channel %d, row %d, column %d is %v, want %v", channel, row, col, got, want)
		}
	}
	if one := nn.PixelShuffle(by).Forward(x.Row(1)); !slices.Equal(one.Float32s(), y.Row(1).Float32s()) {
		t.Errorf("an image alone is %v, want %v", one, y.Row(1))
	}
	p := nn.Pad2D(tensor.Replicate, tensor.Pair{1, 2}).Forward(tensor.From([]float32{1, 2, 3, 4}, 1, 2, 2))
	if got, want := p.Float32s(), []float32{1, 1, 1, 2, 2, 2, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 3, 3, 3, 4, 4, 4}; !slices.Equal(got, want) {
		t.Errorf("it pads to %v, want %v", got, want)
	}
	mistaken(t, map[string]func(){
		"nn: PixelShuffle: by 0": func() { nn.PixelShuffle(0) },
		"nn: PixelShuffle: the input has shape [1 6 2 2], want [N C H W], or one [C H W], and a multiple of 4 channels (PixelShuffle(2))": func() {
			nn.PixelShuffle(2).Forward(tensor.Ones(1, 6, 2, 2))
		},
		"nn: Pad2D: the input has shape [2], want planes: rows and columns are the last two axes (Pad2D(replicate, 1x1))": func() {
			nn.Pad2D(tensor.Replicate, tensor.Both(1)).Forward(tensor.Ones(2))
		},
	})
}

func TestConvMistakes(t *testing.T) {
	mistaken(t, map[string]func(){
		"nn: Conv2D: -1 channels, a kernel of 3 rows and 3 columns": func() { nn.Conv2D(-1, tensor.Both(3), tensor.Conv{}) },
		"nn: Conv2D: 1 channels, a kernel of 0 rows and 3 columns":  func() { nn.Conv2D(1, tensor.Pair{0, 3}, tensor.Conv{}) },
		"nn: Conv2D: the input has shape [3 3], want images [N C H W], or one [C H W] (Conv2D(2, 1x1))": func() {
			nn.Conv2D(2, tensor.Both(1), tensor.Conv{}).Forward(tensor.Ones(3, 3))
		},
		"nn: Conv2D: the input has shape [3 4 4], want images [N C H W], or one [C H W], and channels in 2 groups, as are the layer's 2 (Conv2D(2, 1x1, Groups 2))": func() {
			nn.Conv2D(2, tensor.Both(1), tensor.Conv{Groups: 2}).Forward(tensor.Ones(3, 4, 4))
		},
		"nn: Conv1D: 1 channels, a kernel of 0 elements": func() { nn.Conv1D(1, 0, tensor.Conv{}) },
		"nn: ConvTranspose1D: the input has shape [3], want sequences [N C L], or one [C L] (ConvTranspose1D(2, 1))": func() {
			nn.ConvTranspose1D(2, 1, tensor.ConvTranspose{}).Forward(tensor.Ones(3))
		},
		"nn: AdaptiveAvgPool2D: 0 rows and 1 columns":                                       func() { nn.AdaptiveAvgPool2D(0, 1) },
		"nn: Flatten: the input has no axes, want one that numbers the samples (Flatten())": func() { nn.Flatten().Forward(tensor.Scalar(1)) },
	})
}

// Printed, layers are the calls that make them.
func TestConvolutionsAsCalls(t *testing.T) {
	for _, c := range []struct {
		layer nn.Module
		want  string
	}{
		{nn.Conv2D(8, tensor.Both(3), tensor.Conv{Stride: tensor.Both(2)}, nn.Init{NoBias: true}), "Conv2D(8, 3x3, Stride 2x2, NoBias)"},
		{nn.Conv1D(8, 3, tensor.Conv{Padding: tensor.Both(1), Groups: 2}), "Conv1D(8, 3, Padding 1, Groups 2)"},
		{nn.ConvTranspose2D(8, tensor.Both(2), tensor.ConvTranspose{Stride: tensor.Both(2)}), "ConvTranspose2D(8, 2x2, Stride 2x2)"},
		{nn.ConvTranspose1D(8, 2, tensor.ConvTranspose{Stride: tensor.Both(2), OutputPadding: tensor.Both(1)}), "ConvTranspose1D(8, 2, Stride 2, OutputPadding 1)"},
		{nn.MaxPool1D(tensor.Pool{Window: tensor.Both(2)}), "MaxPool1D(2)"},
		{nn.AvgPool1D(tensor.Pool{Window: tensor.Both(2), Stride: tensor.Both(1)}), "AvgPool1D(2, Stride 1)"},
		{nn.AdaptiveAvgPool2D(1, 2), "AdaptiveAvgPool2D(1x2)"},
		{nn.InstanceNorm(), "InstanceNorm()"},
		{nn.Dropout2D(0.5), "Dropout2D(0.5)"},
		{nn.PReLU(3), "PReLU(3)"},
		{nn.Bidirectional(nn.LSTM(4, 2, nn.Init{NoBias: true})), "Bidirectional(LSTM(4, 2, NoBias))"},
	} {
		if got := fmt.Sprint(c.layer); got != c.want {
			t.Errorf("it is printed as %s, want %s", got, c.want)
		}
	}
}
