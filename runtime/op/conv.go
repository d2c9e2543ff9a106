package op

import (
	"math"
	"slices"

	"github.com/asyncgen/asyncgen/device"
)

// A Window says how windows lie on planes. The first element of each pair is along rows, the second
// along columns.
type Window struct {
	Size     [2]int // of pooling; the windows of Conv2D are as large as the kernel
	Stride   [2]int // from one window to the next, at least 1
	Pad      [2]int // how far the first windows begin before the plane, and the last ones end behind it
	Dilation [2]int // from one element of a window to the next, at least 1
	Groups   int    // of Conv2D; 0 only where there are no channels
}

// Additions to the texts of mistakes in convolutions.
const (
	convShapes = " (it takes images [N C H W], or one [C H W], and a kernel [O C/groups KH KW])"
	convFits   = ": larger than the image with its padding, or empty"
	convWindow = ": strides and dilations are at least 1, paddings at least 0"
)

var convs kernelsByType

// Convolutions. Attr.Window.
var (
	Conv2D = define(&Def{
		Name: "Conv2D", Types: Floats,
		Doc: "returns the sums of products of an image's elements with those of each kernel that lies on them.",
		Run: func(p *Plan) {
			x, w := p.In[0], p.In[1]
			c := p.convolution("Conv2D", x, w)
			p.Shape = c.result(x, c.groups*c.outputs, c.rows.Out, c.cols.Out)
			p.conv(c, [3]int{c.images, c.groups, c.outputs}, c.inputs, c.ofImage(x, c.inputs), c.ofKernel(w), nil)
		},
		Saves: 1<<0 | 1<<1,
		Batch: func(b Builder, s *Batch) Value {
			if s.rank(0) < 3 || s.rank(0) > 4 || s.rank(1) != 4 {
				s.wrong(MistakeRank + convShapes)
			}
			if !s.has(1) {
				return s.moreImages(b)
			}
			return s.moreGroups(b, false)
		},
	})
	// ConvInput is the gradient of Conv2D with respect to the images, which have Attr.Shape. Its
	// operands are the gradient with respect to the result, and the kernel. Each element is
	// accumulated over the output channels, rows and columns of the kernel that have met it, in this
	// order; elements outside of the gradient are 0.
	ConvInput = define(&Def{
		Name: "ConvInput", Types: Floats, Unlisted: true,
		Run: func(p *Plan) {
			g, w := p.In[0], p.In[1]
			c := p.convolution("Conv2D", View{Shape: p.Attr.Shape}, w)
			p.Shape = p.Attr.Shape
			for _, a := range []*device.Window{&c.rows, &c.cols} {
				*a = device.Window{In: a.Out, Out: a.In, Size: a.Size, Stride: 1, Pad: -a.Pad, Step: -a.Step, Holes: a.Stride}
			}
			of := c.ofKernel(w)
			of[1], of[2] = of[2], of[1]
			p.conv(c, [3]int{c.images, c.groups, c.inputs}, c.outputs, c.ofImage(g, c.outputs), of, nil)
		},
		Saves: 1<<0 | 1<<1,
		Batch: func(b Builder, s *Batch) Value {
			if !s.has(1) {
				return s.moreImages(b)
			}
			return s.moreGroups(b, false)
		},
	})
	// ConvKernel is the gradient of Conv2D with respect to the kernel, which has Attr.Shape. Its
	// operands are the images, and the gradient with respect to the result. Each element is
	// accumulated over the images, rows and columns of the result, in this order.
	ConvKernel = define(&Def{
		Name: "ConvKernel", Types: Floats, Unlisted: true,
		Run: func(p *Plan) {
			x, g := p.In[0], p.In[1]
			c := p.convolution("Conv2D", x, View{Shape: p.Attr.Shape})
			p.Shape = p.Attr.Shape
			for _, a := range []*device.Window{&c.rows, &c.cols} {
				*a = device.Window{In: a.In, Out: a.Size, Size: a.Out, Stride: a.Step, Pad: a.Pad, Step: a.Stride, Holes: 1}
			}
			image, of := c.ofImage(x, c.inputs), c.ofImage(g, c.outputs)
			image[0], image[2] = image[2], image[0]
			of[0], of[1], of[2] = of[1], of[2], of[0]
			plane := c.rows.Out * c.cols.Out
			out := []int{plane, c.outputs * c.inputs * plane, c.inputs * plane}
			p.conv(c, [3]int{c.inputs, c.groups, c.outputs}, c.images, image, of, out)
		},
		Saves: 1<<0 | 1<<1,
		Batch: func(b Builder, s *Batch) Value { return s.moreGroups(b, true) },
	})
)

func init() { // not in the literals: the gradients of each of them use the others
	gradient := func(b Builder, d *Def, c *Call, shape Value, x, y Value) Value {
		a := Attr{Window: c.Attr.Window}
		if shape != nil {
			a.Shape = shape.Shape()
		}
		return b.Structural(d, a, x, y)
	}
	Conv2D.VJP = func(b Builder, c *Call, i int, g Value) Value {
		if i == 0 {
			return gradient(b, ConvInput, c, c.In[0], g, c.In[1])
		}
		return gradient(b, ConvKernel, c, c.In[1], c.In[0], g)
	}
	ConvInput.VJP = func(b Builder, c *Call, i int, g Value) Value {
		if i == 0 {
			return gradient(b, Conv2D, c, nil, g, c.In[1])
		}
		return gradient(b, ConvKernel, c, c.In[1], g, c.In[0])
	}
	ConvKernel.VJP = func(b Builder, c *Call, i int, g Value) Value {
		if i == 0 {
			return gradient(b, ConvInput, c, c.In[0], c.In[1], g)
		}
		return gradient(b, Conv2D, c, nil, c.In[0], g)
	}
}

// A convolution holds the lengths of a Conv2D.
type convolution struct {
	images, groups  int
	inputs, outputs int // channels of one group, in the images and in the result
	rows, cols      device.Window
}

// convolution checks images x, a kernel w and Attr.Window. It panics with a *Mistake if they don't fit.
func (p *Plan) convolution(name string, x, w View) (c convolution) {
	o := p.Attr.Window
	if len(x.Shape) < 3 || len(x.Shape) > 4 || len(w.Shape) != 4 {
		p.wrong(name, MistakeRank+convShapes, 2)
	}
	for i := range 2 {
		if o.Stride[i] < 1 || o.Dilation[i] < 1 || o.Pad[i] < 0 {
			p.wrong(name, MistakeWindow+convWindow, 2)
		}
	}
	image := x.Shape[len(x.Shape)-3:]
	c.images = x.Shape[:len(x.Shape)-3].Size()
	c.groups, c.inputs = o.Groups, w.Shape[1]
	if c.groups < 0 || c.groups*c.inputs != image[0] || c.groups == 0 && w.Shape[0] > 0 || c.groups > 0 && w.Shape[0]%c.groups != 0 {
		p.wrong(name, MistakeChannels+convShapes, 2)
	}
	c.outputs = w.Shape[0] / max(c.groups, 1)
	for i, a := range []*device.Window{&c.rows, &c.cols} {
		var ok bool
		if *a, ok = windowOf(o, i, image[1+i], w.Shape[2+i]); !ok {
			p.wrong(name, MistakeWindow+convFits, 2)
		}
	}
	return c
}

// longest bounds what a window adds to an axis, so that sums of lengths don't overflow. No memory has
// as many elements.
const longest = math.MaxInt / 4

// windowOf returns the window of the given size along an axis of length in. It returns false if the
// window is empty or does not fit.
func windowOf(o *Window, axis, in, size int) (w device.Window, ok bool) {
	if size < 1 || o.Pad[axis] > longest || size-1 > longest/o.Dilation[axis] {
		return w, false
	}
	left := in + 2*o.Pad[axis] - (size-1)*o.Dilation[axis] - 1
	if left < 0 {
		return w, false
	}
	return device.Window{In: in, Out: left/o.Stride[axis] + 1, Size: size, Stride: o.Stride[axis], Pad: o.Pad[axis], Step: o.Dilation[axis], Holes: 1}, true
}

// result returns the shape of images like x with other lengths: channels, rows and columns.
func (c *convolution) result(x View, lengths ...int) device.Shape {
	return append(slices.Clone(x.Shape[:len(x.Shape)-3]), lengths...)
}

// ofImage returns the strides of x over images, groups, the channels of a group, rows and columns.
// channels is how many channels a group has.
func (c *convolution) ofImage(x View, channels int) []int {
	steps := x.steps()
	image := 0
	if len(steps) == 4 {
		image, steps = steps[0], steps[1:]
	}
	return []int{image, channels * steps[0], steps[0], steps[1], steps[2]}
}

// ofKernel returns the strides of w over groups, output channels of a group, input channels, rows and
// columns.
func (c *convolution) ofKernel(w View) []int {
	steps := w.steps()
	return []int{c.outputs * steps[0], steps[0], steps[1], steps[2], steps[3]}
}

// conv plans the command. p.Shape is set. For shape, channels and the strides see [device.Conv].
func (p *Plan) conv(c convolution, shape [3]int, channels int, a, b, out []int) {
	p.DType = p.Types[0]
	args := &device.Args{Shape: shape[:], Ints: []int{channels}, Window: &[2]device.Window{c.rows, c.cols}}
	args.Strides = [device.MaxOperands][]int{out, a, b}
	p.Cmd = device.Command{Kernel: convs.of(p.DType, func() *device.Kernel {
		return device.NewKernel("Conv2D", device.Conv, nil, p.DType, p.DType, p.DType)
	}), N: p.Shape.Size(), Args: args}
	p.Cost = int64(p.Cmd.N) * int64(channels*c.rows.Size*c.cols.Size) / 16
}

// moreImages does a convolution with the same kernel for all examples: it joins the images of all
// examples into one batch of images.
func (s *Batch) moreImages(b Builder) Value {
	a := s.Attr
	x, n := s.In[0], s.N
	isOne := s.rank(0) == 3
	if !isOne {
		n = x.Shape()[1]
		x = b.Structural(Reshape, Attr{Shape: append(device.Shape{s.N * n}, x.Shape()[2:]...)}, x)
		if a.Shape != nil {
			a.Shape = append(device.Shape{s.N * n}, a.Shape[1:]...)
		}
	} else if a.Shape != nil {
		a.Shape = s.withExamples(a.Shape)
	}
	y := b.Structural(s.Def, a, x, s.In[1])
	if isOne {
		return y
	}
	return b.Structural(Reshape, Attr{Shape: append(device.Shape{s.N, n}, y.Shape()[1:]...)}, y)
}

// moreGroups does a convolution with a kernel for each example as one convolution. In that one each
// example has groups of its own, and the channels of the examples lie one after the other. With
// ofKernels both operands are images, and the result is kernels.
func (s *Batch) moreGroups(b Builder, ofKernels bool) Value {
	w := *s.Attr.Window
	w.Groups *= s.N
	a := Attr{Window: &w}
	isOne := s.rank(0) == 3
	// channels joins the axes of examples and channels into one axis of channels.
	channels := func(x Value) Value {
		shape := x.Shape()
		if !isOne {
			x = b.Structural(Transpose, Attr{Axes: []int{1, 0, 2, 3, 4}}, x)
			return b.Structural(Reshape, Attr{Shape: device.Shape{shape[1], shape[0] * shape[2], shape[3], shape[4]}}, x)
		}
		return b.Structural(Reshape, Attr{Shape: device.Shape{shape[0] * shape[1], shape[2], shape[3]}}, x)
	}
	kernels := func(shape device.Shape) device.Shape {
		return device.Shape{s.N * shape[0], shape[1], shape[2], shape[3]}
	}
	x, y := channels(s.full(b, 0)), s.full(b, 1)
	if ofKernels {
		a.Shape = kernels(s.Attr.Shape)
		out := b.Structural(s.Def, a, x, channels(y))
		return b.Structural(Reshape, Attr{Shape: s.withExamples(s.Attr.Shape)}, out)
	}
	each := y.Shape()[1] // channels of an example's result
	y = b.Structural(Reshape, Attr{Shape: kernels(y.Shape()[1:])}, y)
	if shape := s.Attr.Shape; shape != nil {
		each = shape[len(shape)-3]
		a.Shape = slices.Clone(shape)
		a.Shape[len(shape)-3] *= s.N
	}
	out := b.Structural(s.Def, a, x, y)
	shape := out.Shape()
	at := len(shape) - 3
	shape = slices.Concat(shape[:at], device.Shape{s.N, each}, shape[at+1:])
	out = b.Structural(Reshape, Attr{Shape: shape}, out)
	if isOne {
		return out
	}
	return b.Structural(Transpose, Attr{Axes: []int{1, 0, 2, 3, 4}}, out)
}
