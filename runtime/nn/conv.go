package nn

import (
	"fmt"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// Conv2D returns a layer that computes x.Conv2D(W, c) + b, see [tensor.Tensor.Conv2D]: images with out
// channels, by a kernel with size[0] rows and size[1] columns. The input has the shape [N C H W], or
// [C H W] for one image.
//
// The first input decides the number of channels C, the device and the element type. Then W gets the
// shape (out, C/groups, rows, columns) and is drawn by [XavierUniform] from the default generator; b
// has the shape (out) and is 0. An [Init] changes this. Its in and out are the channels of a group
// times rows times columns. The parameters are called weight and bias, and have the shapes of
// PyTorch's.
//
//asyncgen:api pure
func Conv2D(out int, size tensor.Pair, c tensor.Conv, how ...Init) Module {
	if out < 0 || size[0] < 1 || size[1] < 1 {
		wrong("Conv2D", "%d channels, a kernel of %d rows and %d columns", out, size[0], size[1])
	}
	init := optional("Conv2D", how)
	weight, bias := init.params()
	return &conv2D{out: out, size: size, conv: c, init: init, weight: weight, bias: bias}
}

type conv2D struct {
	out          int
	size         tensor.Pair
	conv         tensor.Conv
	init         Init
	weight, bias *Param // bias is nil if there is none
}

// Forward implements Module.
//
//go:noinline
func (l *conv2D) Forward(x *tensor.Tensor) *tensor.Tensor {
	if !l.weight.IsSet() {
		l.begin(x)
	}
	w := l.weight.Value()
	sums := x.Conv2D(w, l.conv)
	tensor.Dead(w)
	if l.bias == nil {
		return sums
	}
	b := l.bias.Value()
	planes := b.Reshape(l.out, 1, 1)
	y := sums.Add(planes)
	tensor.Dead(b, sums, planes)
	return y
}

// String is the call that makes such a layer.
func (l *conv2D) String() string {
	c := l.conv
	return fmt.Sprintf("Conv2D(%d, %s%s%s)", l.out, pair(l.size), options("Stride", c.Stride, "Padding", c.Padding, "Dilation", c.Dilation, "Groups", c.Groups), l.init.words())
}

func (l *conv2D) isDiscreet() bool { return true }

// begin draws the weights for inputs like x.
func (l *conv2D) begin(x *tensor.Tensor) {
	groups := max(l.conv.Groups, 1)
	if x.Rank() < 3 || x.Rank() > 4 || x.Dim(-3)%groups != 0 || l.out%groups != 0 {
		wrong("Conv2D", "the input has shape %v, want images [N C H W], or one [C H W], and channels in %d groups, as are the layer's %d",
			x.Shape(), groups, l.out)
	}
	in, area := x.Dim(-3)/groups, l.size[0]*l.size[1]
	set(l.weight, l.init.Weight, XavierUniform(), like(x), in*area, l.out/groups*area, l.out, in, l.size[0], l.size[1])
	set(l.bias, l.init.Bias, Zeros(), like(x), in*area, l.out/groups*area, l.out)
}

// Params implements Module.
func (l *conv2D) Params() []*Param { return Params(l) }

// MaxPool2D returns a layer without parameters that replaces each plane by the greatest elements of its
// windows, see [tensor.Tensor.MaxPool2D].
//
//asyncgen:api pure
func MaxPool2D(p tensor.Pool) Module { return maxPool2D{Pool: p} }

type maxPool2D struct {
	stateless
	tensor.Pool
}

// Forward implements Module.
//
//go:noinline
func (l maxPool2D) Forward(x *tensor.Tensor) *tensor.Tensor { return x.MaxPool2D(l.Pool) }

// String is the call that makes such a layer.
func (l maxPool2D) String() string { return "MaxPool2D(" + pooled(l.Pool) + ")" }

func pooled(p tensor.Pool) string {
	return pair(p.Window) + options("Stride", p.Stride, "Padding", p.Padding)
}

// AvgPool2D returns a layer without parameters that replaces each plane by the means of its windows,
// without what lies outside, see [tensor.Tensor.AvgPool2D].
//
//asyncgen:api pure
func AvgPool2D(p tensor.Pool) Module { return avgPool2D{Pool: p} }

type avgPool2D struct {
	stateless
	tensor.Pool
}

// Forward implements Module.
//
//go:noinline
func (l avgPool2D) Forward(x *tensor.Tensor) *tensor.Tensor { return x.AvgPool2D(l.Pool) }

// String is the call that makes such a layer.
func (l avgPool2D) String() string { return "AvgPool2D(" + pooled(l.Pool) + ")" }

// Flatten returns a layer without parameters that gives each sample of a batch, whatever its shape is,
// as a row of a matrix. It panics if the input has no axes.
//
//asyncgen:api pure
func Flatten() Module { return flatten{} }

type flatten struct{ stateless }

// Forward implements Module.
//
//go:noinline
func (flatten) Forward(x *tensor.Tensor) *tensor.Tensor {
	shape := x.Shape()
	if len(shape) == 0 {
		wrong("Flatten", "the input has no axes, want one that numbers the samples")
	}
	return x.Reshape(shape[0], shape[1:].Size())
}

// String is the call that makes such a layer.
func (flatten) String() string { return "Flatten()" }
