package nn

import (
	"fmt"
	"strconv"

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
	return newConvolution(&convolution{name: "Conv2D", axes: 2, out: out, size: size,
		conv: tensor.ConvTranspose{Stride: c.Stride, Padding: c.Padding, Dilation: c.Dilation, Groups: c.Groups}}, how)
}

// Conv1D is [Conv2D] for sequences [N C L], or [C L] for one, and a kernel of size elements, see
// [tensor.Tensor.Conv1D]: of each Pair of c, the second number counts. W has the shape
// (out, C/groups, size).
//
//asyncgen:api pure
func Conv1D(out, size int, c tensor.Conv, how ...Init) Module {
	return newConvolution(&convolution{name: "Conv1D", axes: 1, out: out, size: tensor.Pair{1, size},
		conv: tensor.ConvTranspose{Stride: c.Stride, Padding: c.Padding, Dilation: c.Dilation, Groups: c.Groups}}, how)
}

// ConvTranspose2D returns a layer that computes x.ConvTranspose2D(W, c) + b, see
// [tensor.Tensor.ConvTranspose2D]: images that are larger than those of the input if it has a Stride.
// It is like [Conv2D] otherwise, but W has the shape (C, out/groups, rows, columns), as PyTorch's.
//
//asyncgen:api pure
func ConvTranspose2D(out int, size tensor.Pair, c tensor.ConvTranspose, how ...Init) Module {
	return newConvolution(&convolution{name: "ConvTranspose2D", axes: 2, transposed: true, out: out, size: size, conv: c}, how)
}

// ConvTranspose1D is [ConvTranspose2D] for sequences [N C L], or [C L] for one, and a kernel of size
// elements: of each Pair of c, the second number counts. W has the shape (C, out/groups, size).
//
//asyncgen:api pure
func ConvTranspose1D(out, size int, c tensor.ConvTranspose, how ...Init) Module {
	return newConvolution(&convolution{name: "ConvTranspose1D", axes: 1, transposed: true, out: out, size: tensor.Pair{1, size}, conv: c}, how)
}

// A convolution is a layer of one or two axes.
type convolution struct {
	place
	name         string
	axes         int
	transposed   bool
	out          int
	size         tensor.Pair
	conv         tensor.ConvTranspose // without OutputPadding unless it is transposed
	init         Init
	weight, bias *Param // bias is nil if there is none
}

func newConvolution(l *convolution, how []Init) Module {
	switch {
	case l.axes == 2 && (l.out < 0 || l.size[0] < 1 || l.size[1] < 1):
		wrong(l.name, "%d channels, a kernel of %d rows and %d columns", l.out, l.size[0], l.size[1])
	case l.out < 0 || l.size[1] < 1:
		wrong(l.name, "%d channels, a kernel of %d elements", l.out, l.size[1])
	}
	l.init = optional(l.name, how)
	weight := append([]int{l.out, -1}, l.size[2-l.axes:]...)
	if l.transposed {
		weight[0], weight[1] = -1, l.out/max(l.conv.Groups, 1)
	}
	l.weight, l.bias = l.init.params(weight, []int{l.out})
	return l
}

// Forward implements Module.
//
//go:noinline
func (l *convolution) Forward(x *tensor.Tensor) *tensor.Tensor {
	defer inLayer(l)
	if !areSet(l.weight, l.bias) {
		l.begin(x)
	}
	w := l.weight.Value()
	sums := l.sums(x, w)
	tensor.Dead(w)
	if l.bias == nil {
		return sums
	}
	b := l.bias.Value()
	planes := channels(b, 2+l.axes)
	y := sums.Add(planes)
	tensor.Dead(b, sums, planes)
	return y
}

// sums returns the result without the bias.
func (l *convolution) sums(x, w *tensor.Tensor) *tensor.Tensor {
	c := tensor.Conv{Stride: l.conv.Stride, Padding: l.conv.Padding, Dilation: l.conv.Dilation, Groups: l.conv.Groups}
	switch {
	case l.transposed && l.axes == 1:
		return x.ConvTranspose1D(w, l.conv)
	case l.transposed:
		return x.ConvTranspose2D(w, l.conv)
	case l.axes == 1:
		return x.Conv1D(w, c)
	}
	return x.Conv2D(w, c)
}

// String is the call that makes such a layer.
func (l *convolution) String() string {
	c, one := l.conv, l.axes == 1
	return fmt.Sprintf("%s(%d, %s%s%s)", l.name, l.out, extent(l.size, one), options("Stride", along(c.Stride, one), "Padding", along(c.Padding, one),
		"OutputPadding", along(c.OutputPadding, one), "Dilation", along(c.Dilation, one), "Groups", c.Groups), l.init.words())
}

func (l *convolution) isDiscreet() bool { return true }

// begin draws the weights for inputs like x.
func (l *convolution) begin(x *tensor.Tensor) {
	groups := max(l.conv.Groups, 1)
	if x.Rank() < 1+l.axes || x.Rank() > 2+l.axes || x.Dim(-1-l.axes)%groups != 0 || l.out%groups != 0 {
		what := "images [N C H W], or one [C H W]"
		if l.axes == 1 {
			what = "sequences [N C L], or one [C L]"
		}
		if groups > 1 {
			what += fmt.Sprintf(", and channels in %d groups, as are the layer's %d", groups, l.out)
		}
		wrong(l.name, "the input has shape %v, want %s", x.Shape(), what)
	}
	in, out, area := x.Dim(-1-l.axes)/groups, l.out/groups, l.size[0]*l.size[1]
	shape := append([]int{l.out, in}, l.size[2-l.axes:]...)
	if l.transposed {
		shape[0], shape[1] = in*groups, out
	}
	set(l.weight, l.init.Weight, XavierUniform(), likeInput(x), in*area, out*area, shape...)
	set(l.bias, l.init.Bias, Zeros(), likeInput(x), in*area, out*area, l.out)
}

// Params implements Module.
func (l *convolution) Params() []*Param { return Params(l) }

// MaxPool2D returns a layer without parameters that replaces each plane by the greatest elements of its
// windows, see [tensor.Tensor.MaxPool2D].
//
//asyncgen:api pure
func MaxPool2D(p tensor.Pool) Module {
	return activate(func(x *tensor.Tensor) *tensor.Tensor { return x.MaxPool2D(p) }, "MaxPool2D(%s)", pooled(p, false))
}

// MaxPool1D is [MaxPool2D] of vectors along the last axis: of each Pair of p, the second number counts.
//
//asyncgen:api pure
func MaxPool1D(p tensor.Pool) Module {
	return activate(func(x *tensor.Tensor) *tensor.Tensor { return x.MaxPool1D(p) }, "MaxPool1D(%s)", pooled(p, true))
}

// AvgPool2D returns a layer without parameters that replaces each plane by the means of its windows,
// without what lies outside, see [tensor.Tensor.AvgPool2D].
//
//asyncgen:api pure
func AvgPool2D(p tensor.Pool) Module {
	return activate(func(x *tensor.Tensor) *tensor.Tensor { return x.AvgPool2D(p) }, "AvgPool2D(%s)", pooled(p, false))
}

// AvgPool1D is [AvgPool2D] of vectors along the last axis: of each Pair of p, the second number counts.
//
//asyncgen:api pure
func AvgPool1D(p tensor.Pool) Module {
	return activate(func(x *tensor.Tensor) *tensor.Tensor { return x.AvgPool1D(p) }, "AvgPool1D(%s)", pooled(p, true))
}

// AdaptiveAvgPool2D returns a layer without parameters that divides each plane, whatever its size, into
// rows times columns windows, and replaces it by their means, see [tensor.Tensor.AdaptiveAvgPool2D].
// With 1 row and 1 column it is the mean of each plane, which is called global pooling.
//
//asyncgen:api pure
func AdaptiveAvgPool2D(rows, columns int) Module {
	if rows < 1 || columns < 1 {
		wrong("AdaptiveAvgPool2D", "%d rows and %d columns", rows, columns)
	}
	return activate(func(x *tensor.Tensor) *tensor.Tensor { return x.AdaptiveAvgPool2D(rows, columns) }, "AdaptiveAvgPool2D(%dx%d)", rows, columns)
}

// PixelShuffle returns a layer without parameters that turns channels into pixels (Shi et al. 2016): [N C·r² H W]
// becomes [N C H·r W·r], with r by. Channel c·r² + i·r + j of the input has row i and column j of each square of
// channel c. It panics if the input is no such planes, with or without N.
//
//asyncgen:api pure
func PixelShuffle(by int) Module {
	if by < 1 {
		wrong("PixelShuffle", "by %d", by)
	}
	return activate(func(x *tensor.Tensor) *tensor.Tensor {
		s := x.Shape()
		n := len(s)
		if n < 3 || n > 4 || s[n-3]%(by*by) != 0 {
			wrong("PixelShuffle", "the input has shape %v, want [N C H W], or one [C H W], and a multiple of %d channels", s, by*by)
		}
		lead := append([]int{}, s[:n-3]...)
		parts := x.Reshape(append(lead, s[n-3]/(by*by), by, by, s[n-2], s[n-1])...)
		order := []int{0, 3, 1, 4, 2} // channel, row, i, column, j
		if n == 4 {
			order = []int{0, 1, 4, 2, 5, 3}
		}
		turned := parts.Transpose(order...)
		defer tensor.Dead(parts, turned)
		return turned.Reshape(append(lead, s[n-3]/(by*by), s[n-2]*by, s[n-1]*by)...)
	}, "PixelShuffle(%d)", by)
}

// Pad2D returns a layer without parameters that adds by[0] rows above and below each plane, and by[1] columns on
// both sides, as border says: see [tensor.Tensor.PadWith]. Before a [Conv2D] without Padding it is what PyTorch
// calls padding_mode.
//
//	nn.Sequential(nn.Pad2D(tensor.Replicate, tensor.Both(1)), nn.Conv2D(8, tensor.Both(3), tensor.Conv{}))
//
//asyncgen:api pure
func Pad2D(border tensor.Border, by tensor.Pair) Module {
	return activate(func(x *tensor.Tensor) *tensor.Tensor {
		if x.Rank() < 2 {
			wrong("Pad2D", "the input has shape %v, want planes: rows and columns are the last two axes", x.Shape())
		}
		rows := x.PadWith(border, -2, by[0], by[0])
		defer tensor.Dead(rows)
		return rows.PadWith(border, -1, by[1], by[1])
	}, "Pad2D(%v, %s)", border, pair(by))
}

// pooled are the settings of p in words. If one is set, only those along one axis count.
func pooled(p tensor.Pool, one bool) string {
	return extent(p.Window, one) + options("Stride", along(p.Stride, one), "Padding", along(p.Padding, one))
}

// extent is "3x3", or "3" along one axis.
func extent(p tensor.Pair, one bool) string {
	if one {
		return strconv.Itoa(p[1])
	}
	return pair(p)
}

// along returns p, or what counts of it along one axis.
func along(p tensor.Pair, one bool) any {
	if one {
		return p[1]
	}
	return p
}

// Flatten returns a layer without parameters that gives each sample of a batch, whatever its shape is,
// as a row of a matrix. It panics if the input has no axes.
//
//asyncgen:api pure
func Flatten() Module { return flatten{} }

type flatten struct{ stateless }

// Forward implements Module.
//
//go:noinline
func (l flatten) Forward(x *tensor.Tensor) *tensor.Tensor {
	defer inLayer(l)
	shape := x.Shape()
	if len(shape) == 0 {
		wrong("Flatten", "the input has no axes, want one that numbers the samples")
	}
	return x.Reshape(shape[0], shape[1:].Size())
}

// String is the call that makes such a layer.
func (flatten) String() string { return "Flatten()" }
