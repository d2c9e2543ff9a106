package tensor

import (
	"fmt"
	"slices"

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

// Conv1D is [Tensor.Conv2D] of sequences, which are images with one row. t has the shape [N C L] or [C L], and the
// kernel [O C/G K]. Of each Pair of c, the second number counts. A mistake is reported as one of Conv2D.
//
//asyncgen:api op batch
//go:noinline
func (t *Tensor) Conv1D(kernel *Tensor, c Conv) *Tensor {
	c.Stride[0], c.Padding[0], c.Dilation[0] = 1, 0, 1
	return t.sequences("Conv1D", kernel, func(x, w *Tensor) *Tensor { return x.Conv2D(w, c) })
}

// sequences applies f, a convolution of images, to t and a kernel of one axis less.
func (t *Tensor) sequences(name string, kernel *Tensor, f func(x, w *Tensor) *Tensor) *Tensor {
	if kernel == nil {
		wrong(name, op.MistakeNil, t)
	}
	if len(t.shape) < 2 || len(t.shape) > 3 || len(kernel.shape) != 3 {
		wrong(name, op.MistakeRank+" (it takes sequences [N C L], or one [C L], and a kernel of three axes)", t, kernel)
	}
	x, w := t.oneRow(), kernel.oneRow()
	defer letGo(x, w)
	return f(x, w).row()
}

// oneRow returns t with each vector along the last axis as a plane with one row.
func (t *Tensor) oneRow() *Tensor { return t.reshape(slices.Insert(t.Shape(), len(t.shape)-1, 1)) }

// row is the reverse of oneRow. It lets go of t.
func (t *Tensor) row() *Tensor {
	defer t.letGo()
	at := len(t.shape) - 2
	return t.reshape(slices.Delete(t.Shape(), at, at+1))
}

// ConvTranspose says how a kernel moves over the result of a transposed convolution. The zero ConvTranspose moves it by
// one element at a time, within the result.
type ConvTranspose struct {
	Stride        Pair // how many elements it moves at a time; 0 means 1
	Padding       Pair // how many elements of the result are left out: rows above and below, columns left and right
	OutputPadding Pair // how many rows below and columns on the right are added to the result; less than Stride
	Dilation      Pair // distance between elements of the result that neighbours in the kernel meet; 0 means 1
	Groups        int  // how many groups the channels are divided into; 0 means 1
}

// ConvTranspose2D returns the transposed convolution of images with a kernel: the gradient of [Tensor.Conv2D] with
// respect to its images, as an operation. t has the shape [N C H W], or [C H W], and the kernel [C O/G KH KW] with G
// Groups. The result has O channels. For each i, j, k and l,
//
//	t[n, c, i, j] * kernel[c, o, k, l]
//
// is added to the element n,o of the result in row i*Stride[0]+k*Dilation[0]-Padding[0] and column
// j*Stride[1]+l*Dilation[1]-Padding[1], if there is one. The result has (H-1)*Stride[0] - 2*Padding[0] +
// Dilation[0]*(KH-1) + OutputPadding[0] + 1 rows, and columns likewise. A sum is accumulated over c, then k, then l.
//
// ConvTranspose2D panics if the shapes don't fit, if the result would have no rows or columns, if the
// OutputPadding is not less than the Stride, or if a field of c is negative.
//
//asyncgen:api op batch
//go:noinline
func (t *Tensor) ConvTranspose2D(kernel *Tensor, c ConvTranspose) *Tensor {
	const name = "ConvTranspose2D"
	if kernel == nil {
		wrong(name, op.MistakeNil, t)
	}
	t.floats(name)
	t.mustFit(name, kernel)
	rank := len(t.shape)
	if rank < 3 || rank > 4 || len(kernel.shape) != 4 {
		wrong(name, op.MistakeRank+" (it takes images [N C H W], or one [C H W], and a kernel [C O/groups KH KW])", t, kernel)
	}
	w := Conv{Stride: c.Stride, Padding: c.Padding, Dilation: c.Dilation, Groups: c.Groups}.window()
	if t.shape[rank-3] != kernel.shape[0] || w.Groups < 1 || kernel.shape[0]%w.Groups != 0 {
		wrong(name, op.MistakeChannels, t, kernel)
	}
	shape := t.Shape()
	shape[rank-3] = w.Groups * kernel.shape[1]
	for i := range 2 {
		in, size, more := t.shape[rank-2+i], kernel.shape[2+i], c.OutputPadding[i]
		most := float64(in)*float64(w.Stride[i]) + float64(size)*float64(w.Dilation[i])
		if w.Stride[i] < 1 || w.Dilation[i] < 1 || w.Pad[i] < 0 || more < 0 || more >= w.Stride[i] || size < 1 || most > maxSize || w.Pad[i] > maxSize {
			wrong(name, fmt.Sprintf("%s: %+v", op.MistakeWindow, c), t, kernel)
		}
		shape[rank-2+i] = (in-1)*w.Stride[i] - 2*w.Pad[i] + w.Dilation[i]*(size-1) + more + 1
		if in == 0 || shape[rank-2+i] < 1 {
			wrong(name, fmt.Sprintf("%s: %+v leaves no elements", op.MistakeWindow, c), t, kernel)
		}
	}
	return structural(op.ConvInput, op.Attr{Window: w, Shape: checked(name, shape)}, operands{t, kernel}, true)
}

// ConvTranspose1D is [Tensor.ConvTranspose2D] of sequences, which are images with one row. t has the shape [N C L] or
// [C L], and the kernel [C O/G K]. Of each Pair of c, the second number counts. A mistake is reported as one of
// ConvTranspose2D.
//
//asyncgen:api op batch
//go:noinline
func (t *Tensor) ConvTranspose1D(kernel *Tensor, c ConvTranspose) *Tensor {
	c.Stride[0], c.Padding[0], c.OutputPadding[0], c.Dilation[0] = 1, 0, 0, 1
	return t.sequences("ConvTranspose1D", kernel, func(x, w *Tensor) *Tensor { return x.ConvTranspose2D(w, c) })
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
	if t.dtype.IsStorage() && t.dead == 0 {
		bytesOf(op.SumPool2D, op.Attr{Window: p.window()}, operands{t}) // panics if the window does not fit
	}
	return t.inWide(func(t *Tensor) *Tensor { return t.avgPool(p) })
}

func (t *Tensor) avgPool(p Pool) *Tensor {
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

// MaxPool1D is [Tensor.MaxPool2D] of the vectors along t's last axis, which are planes with one row. Of each Pair of p,
// the second number counts. A mistake is reported as one of MaxPool2D.
//
//asyncgen:api op batch
//go:noinline
func (t *Tensor) MaxPool1D(p Pool) *Tensor { return t.poolRows("MaxPool1D", p, (*Tensor).MaxPool2D) }

// AvgPool1D is [Tensor.AvgPool2D] of the vectors along t's last axis, which are planes with one row. Of each Pair of p,
// the second number counts. A mistake is reported as one of AvgPool2D.
//
//asyncgen:api op batch
//go:noinline
func (t *Tensor) AvgPool1D(p Pool) *Tensor { return t.poolRows("AvgPool1D", p, (*Tensor).AvgPool2D) }

func (t *Tensor) poolRows(name string, p Pool, f func(*Tensor, Pool) *Tensor) *Tensor {
	if len(t.shape) == 0 {
		wrong(name, op.MistakeRank, t)
	}
	p.Window[0], p.Stride[0], p.Padding[0] = 1, 1, 0
	x := t.oneRow()
	defer x.letGo()
	return f(x, p).row()
}
