package op

import (
	"slices"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/kernel"
)

// Additions to the texts of mistakes in pooling.
const (
	poolShape  = " (it takes planes: their rows and columns are the last two axes)"
	poolWindow = ": windows and strides are at least 1, paddings at least 0 and below the window"
	poolFits   = ": larger than the plane with its padding"
)

var sumPools, maxPools, argPools kernelsByType

// Pooling of planes, which are the last two axes. Attr.Window.
var (
	MaxPool2D = define(&Def{
		Name: "MaxPool2D", Types: Floats, Batch: batchAsIs,
		Doc: "returns the greatest element of each window: NaN if there is one.",
		Run: func(p *Plan) {
			p.pooling("MaxPool2D", device.Pool, kernel.ReduceMax, &maxPools, p.Types[0])
		},
		Saves: 1 << 0,
		VJP: func(b Builder, c *Call, _ int, g Value) Value {
			// The gradient of a window goes to the element that was the greatest.
			shape := c.In[0].Shape()
			flat := func(x Value) Value {
				s := x.Shape()
				n := len(s) - 2
				return b.Structural(Reshape, Attr{Shape: device.Shape{s[:n].Size(), s[n] * s[n+1]}}, x)
			}
			places := flat(b.Structural(ArgMaxPool2D, Attr{Window: c.Attr.Window}, c.In[0]))
			n := len(shape) - 2
			a := Attr{Axis: 1, Shared: 1, Shape: device.Shape{shape[:n].Size(), shape[n] * shape[n+1]}}
			return b.Structural(Reshape, Attr{Shape: shape}, b.Structural(ScatterAdd, a, flat(g), places))
		},
	})
	// ArgMaxPool2D gives the index, in row-major order in its plane, of the greatest element of each
	// window: the first of equals, or the first NaN.
	ArgMaxPool2D = define(&Def{
		Name: "ArgMaxPool2D", Types: Floats, Unlisted: true, Batch: batchAsIs,
		Run: func(p *Plan) {
			p.pooling("MaxPool2D", device.ArgPool, kernel.ReduceMax, &argPools, device.Int64)
		},
	})
	// SumPool2D is the sum of each window, added one after the other in row-major order. Elements outside do not count.
	SumPool2D = define(&Def{
		Name: "SumPool2D", Types: Floats, Unlisted: true, Batch: batchAsIs,
		Run: func(p *Plan) {
			p.pooling("AvgPool2D", device.Pool, kernel.ReduceSum, &sumPools, p.Types[0])
		},
	})
	// SpreadPool2D is the gradient of SumPool2D of a tensor with Attr.Shape: each element is the sum of
	// the gradients of all windows that contain it, the last window first.
	SpreadPool2D = define(&Def{
		Name: "SpreadPool2D", Types: Floats, Unlisted: true,
		Run: func(p *Plan) {
			w := p.windows("AvgPool2D", p.Attr.Shape)
			for i, a := range w {
				w[i] = device.Window{In: a.Out, Out: a.In, Size: a.Size, Stride: 1, Pad: -a.Pad, Step: -1, Holes: a.Stride}
			}
			p.Shape = p.Attr.Shape
			p.pool(w, device.Pool, kernel.ReduceSum, &sumPools, p.Types[0])
		},
		Batch: func(b Builder, s *Batch) Value {
			a := s.Attr
			a.Shape = s.withExamples(a.Shape)
			return b.Structural(s.Def, a, s.In[0])
		},
	})
)

func init() { // not in the literals: each of the two is the other's gradient
	SumPool2D.VJP = func(b Builder, c *Call, _ int, g Value) Value {
		return b.Structural(SpreadPool2D, Attr{Window: c.Attr.Window, Shape: c.In[0].Shape()}, g)
	}
	SpreadPool2D.VJP = func(b Builder, c *Call, _ int, g Value) Value {
		return b.Structural(SumPool2D, Attr{Window: c.Attr.Window}, g)
	}
}

// windows returns Attr.Window for the planes of a tensor of the given shape. It panics with a *Mistake
// if it does not fit.
func (p *Plan) windows(name string, shape device.Shape) (w *[2]device.Window) {
	o, rank := p.Attr.Window, len(shape)
	if rank < 2 {
		p.wrong(name, MistakeRank+poolShape, 1)
	}
	w = new([2]device.Window)
	for i := range w {
		if o.Size[i] < 1 || o.Stride[i] < 1 || o.Pad[i] < 0 || o.Pad[i] >= o.Size[i] {
			p.wrong(name, MistakeWindow+poolWindow, 1)
		}
		var ok bool
		if w[i], ok = windowOf(o, i, shape[rank-2+i], o.Size[i]); !ok {
			p.wrong(name, MistakeWindow+poolFits, 1)
		}
	}
	return w
}

// pooling plans the pooling of the operand.
func (p *Plan) pooling(name string, code device.Code, r kernel.Reducer, kernels *kernelsByType, dt device.DType) {
	shape := p.In[0].Shape
	w := p.windows(name, shape)
	if r == kernel.ReduceMax && w[0].In*w[1].In == 0 {
		p.wrong(name, MistakeEmpty, 1)
	}
	p.Shape = append(slices.Clone(shape[:len(shape)-2]), w[0].Out, w[1].Out)
	p.pool(w, code, r, kernels, dt)
}

// pool plans the command for the given windows. p.Shape is set.
func (p *Plan) pool(w *[2]device.Window, code device.Code, r kernel.Reducer, kernels *kernelsByType, dt device.DType) {
	p.DType = dt
	in := p.Types[0]
	args := &device.Args{Shape: p.Shape[:len(p.Shape)-2], Window: w}
	args.Strides[1] = p.In[0].Strides
	p.Cmd = device.Command{Kernel: kernels.of(in, func() *device.Kernel {
		return device.NewKernel(map[device.Code]string{device.Pool: "Pool2D", device.ArgPool: "ArgPool2D"}[code], code, r, dt, in)
	}), N: p.Shape.Size(), Args: args}
	p.Cost = int64(p.Cmd.N) * int64(w[0].Size*w[1].Size) / 4
}
