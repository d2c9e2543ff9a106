package tensor

import (
	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/runtime/op"
)

// A Pair is two numbers: one along the rows of planes and one along their columns.
type Pair [2]int

// Both returns a Pair of equal numbers.
//
//asyncgen:api pure
func Both(n int) Pair { return Pair{n, n} }

// Conv says how a kernel moves over images. The zero Conv moves it by one element at a time, within the image.
type Conv struct {
	Stride   Pair // how many elements it moves at a time; 0 means 1
	Padding  Pair // how many zeros are added around the image: rows above and below, columns left and right
	Dilation Pair // distance between image elements that neighbours in the kernel meet; 0 means 1
	Groups   int  // how many groups the channels are divided into, see [Tensor.Conv2D]; 0 means 1
}

// window returns c as operations take it, with its defaults filled in.
func (c Conv) window() *op.Window {
	w := &op.Window{Stride: orOne(c.Stride), Pad: c.Padding, Dilation: orOne(c.Dilation), Groups: c.Groups}
	if c.Groups == 0 {
		w.Groups = 1
	}
	return w
}

func orOne(p Pair) Pair {
	for i, n := range p {
		if n == 0 {
			p[i] = 1
		}
	}
	return p
}

// Conv2D returns the convolution of images with a kernel, as in neural networks: the kernel is not turned around. t
// has the shape [N C H W], which is N images with C channels, or [C H W], which is one image. The kernel has the shape
// [O C KH KW] and gives O channels. Element n,o,i,j of the result is the sum, over c, k and l, of
//
//	t[n, c, i*Stride[0]+k*Dilation[0]-Padding[0], j*Stride[1]+l*Dilation[1]-Padding[1]] * kernel[o, c, k, l]
//
// Elements outside of the image are 0. The result has (H + 2*Padding[0] - Dilation[0]*(KH-1) - 1) / Stride[0] + 1
// rows, rounded down, and columns likewise.
//
// The sum is accumulated over c, then k, then l, in increasing order. Its bits are those of a MatMul: the kernel,
// as a matrix with a row for each o, times a matrix with the image elements under the kernel, with a column for
// each i, j. So the bits don't depend on the number of images.
//
// With G Groups, the kernel has the shape [O C/G KH KW]. The first O/G channels of the result are computed from the
// first C/G channels of the image, and so on. With as many groups as channels, each channel has a kernel of its
// own.
//
// Conv2D panics if the channels don't fit, if the kernel has no elements or is larger than the image with its padding,
// or if a field of c is negative.
//
//asyncgen:api op batch
//go:noinline
func (t *Tensor) Conv2D(kernel *Tensor, c Conv) *Tensor {
	if kernel == nil {
		wrong("Conv2D", op.MistakeNil, t)
	}
	return structural(op.Conv2D, op.Attr{Window: c.window()}, operands{t, kernel}, true)
}

// Pool says how windows lie on planes.
type Pool struct {
	Window  Pair // rows and columns of a window
	Stride  Pair // distance from one window to the next; 0 means Window, so that they lie side by side
	Padding Pair // how far the first and last windows may reach beyond the plane; less than Window
}

func (p Pool) window() *op.Window {
	w := &op.Window{Size: p.Window, Stride: p.Stride, Pad: p.Padding, Dilation: Pair{1, 1}}
	for i, n := range p.Stride {
		if n == 0 {
			w.Stride[i] = p.Window[i]
		}
	}
	return w
}

// MaxPool2D returns the greatest element of each window of each plane, and NaN if the window has one. The last two
// axes of t are the planes; the axes before number them. The padding does not count. There are (H + 2*Padding[0] -
// Window[0]) / Stride[0] + 1 rows of windows, rounded down, and columns likewise. The gradient of a window goes to
// its first greatest element in row-major order, or to the first NaN.
//
// MaxPool2D panics if a window has no elements or is larger than the plane with its padding, if the padding is not
// less than the window, or if a field of p is negative.
//
//asyncgen:api op batch
//go:noinline
func (t *Tensor) MaxPool2D(p Pool) *Tensor {
	return structural(op.MaxPool2D, op.Attr{Window: p.window()}, operands{t}, true)
}

// AvgPool2D returns the mean of each window of each plane. Windows lie as in MaxPool2D. The padding does not count:
// the elements inside the plane are added in row-major order, and the sum is divided by their number. AvgPool2D
// panics as MaxPool2D does.
//
//asyncgen:api op batch
//go:noinline
func (t *Tensor) AvgPool2D(p Pool) *Tensor {
	t.floats("AvgPool2D")
	w := p.window()
	sums := structural(op.SumPool2D, op.Attr{Window: w}, operands{t}, true)
	defer sums.letGo()
	if w.Pad == (Pair{}) {
		return elementwise(op.DivScalar, [2]float64{float64(w.Size[0] * w.Size[1])}, operands{sums}, true)
	}
	plane := device.Shape(t.shape[len(t.shape)-2:])
	ones := filled(1, plane, t.dtype, t.storage.Device())
	defer ones.letGo()
	counts := structural(op.SumPool2D, op.Attr{Window: w}, operands{ones}, false)
	defer counts.letGo()
	return elementwise(op.Div, [2]float64{}, operands{sums, counts}, true)
}
