package op

import (
	"slices"
	"sync/atomic"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/kernel"
)

// Reductions. Attr.Axes are sorted and in range; Attr.Keep.
var (
	Sum = define(&Def{
		Name: "Sum", Types: Numbers, Reduces: true, Batch: batchAxes,
		Doc: "returns the sum over the given axes, or over all of them. The sum of no elements is 0.",
		Run: reduction("Sum", device.Reduce, kernel.ReduceSum),
		VJP: func(b Builder, c *Call, _ int, g Value) Value { return spread(b, c, g) },
	})
	Prod = define(&Def{
		Name: "Prod", Types: Numbers, Reduces: true, Batch: batchAxes,
		Doc:   "returns the product over the given axes, or over all of them. The product of no elements is 1.",
		Run:   reduction("Prod", device.Reduce, kernel.ReduceProd),
		Saves: 1 << 0,
		VJP:   prodGradient,
	})
	Max = define(&Def{
		Name: "Max", Types: Ordered, Reduces: true, Batch: batchAxes,
		Doc:   "returns the greatest element along the given axes, or of all; NaN if one of the elements is NaN. Max of no elements panics. The gradient is shared equally by the elements that are the greatest, or by those that are NaN.",
		Run:   reduction("Max", device.Reduce, kernel.ReduceMax),
		Saves: 1<<0 | SavesResult,
		VJP:   extremum,
	})
	Min = define(&Def{
		Name: "Min", Types: Ordered, Reduces: true, Batch: batchAxes,
		Doc:   "returns the least element along the given axes, or of all; NaN if one of the elements is NaN. Min of no elements panics. The gradient is shared equally by the elements that are the least, or by those that are NaN.",
		Run:   reduction("Min", device.Reduce, kernel.ReduceMin),
		Saves: 1<<0 | SavesResult,
		VJP:   extremum,
	})
	Every = define(&Def{
		Name: "All", Types: Bools, Reduces: true, Batch: batchAxes,
		Doc: "reports whether all elements along the given axes, or of the whole tensor, are true. For no elements that is true.",
		Run: reduction("All", device.Reduce, kernel.ReduceAll),
	})
	Any = define(&Def{
		Name: "Any", Types: Bools, Reduces: true, Batch: batchAxes,
		Doc: "reports whether any element along the given axes, or of the whole tensor, is true. For no elements that is false.",
		Run: reduction("Any", device.Reduce, kernel.ReduceAny),
	})
	ArgMax = define(&Def{
		Name: "ArgMax", Types: Ordered, Reduces: true, Batch: batchAxes,
		Doc: "returns the index of the greatest element along the given axes, or of all, as an int64 tensor; over several axes it counts in row-major order. " +
			"Of equal elements the first is taken, and the first NaN if there is one; 0 and -0 are equal. ArgMax of no elements panics.",
		Run: reduction("ArgMax", device.ArgReduce, kernel.ReduceMax),
	})
	ArgMin = define(&Def{
		Name: "ArgMin", Types: Ordered, Reduces: true, Batch: batchAxes,
		Doc: "returns the index of the least element along the given axes, or of all, as an int64 tensor; over several axes it counts in row-major order. " +
			"Of equal elements the first is taken, and the first NaN if there is one; 0 and -0 are equal. ArgMin of no elements panics.",
		Run: reduction("ArgMin", device.ArgReduce, kernel.ReduceMin),
	})
)

// reduction returns Def.Run of the reduction by r or, for device.ArgReduce, of the search for its
// element.
func reduction(name string, code device.Code, r kernel.Reducer) func(*Plan) {
	kernels := &kernelsByType{}
	return func(p *Plan) {
		x := p.In[0]
		length := p.fold(x.Shape, 1)
		if length == 0 && (r == kernel.ReduceMax || r == kernel.ReduceMin) {
			p.wrong(name, MistakeEmpty, 1)
		}
		in := p.Types[0]
		var body device.Body = r
		switch {
		case code == device.ArgReduce:
			p.DType = device.Int64
		case in.IsStorage():
			p.DType, p.Wide = in.Wide(), true
			body = kernel.FoldOf{By: r, Expr: kernel.Cast(kernel.Arg(0, in), in.Wide())}
		default:
			p.DType = in
		}
		p.Cmd.Kernel = kernels.of(in, func() *device.Kernel {
			return device.NewKernel(name, code, body, p.DType, in)
		})
		p.Cost = int64(x.Shape.Size())
	}
}

// fold plans the arguments of a fold over Attr.Axes. The given number of inputs are broadcast to shape.
// fold returns how many elements go into each result.
func (p *Plan) fold(shape device.Shape, inputs int) (length int) {
	rank := len(shape)
	// order lists the axes that are kept, then the others. All lists share one allocation.
	lists := make([]int, (3+inputs)*rank)
	order, ordered, result := lists[:0:rank], lists[rank:rank:2*rank], lists[2*rank:2*rank:3*rank]
	for axis, n := range shape {
		switch {
		case !slices.Contains(p.Attr.Axes, axis):
			order = append(order, axis)
			result = append(result, n)
		case p.Attr.Keep:
			result = append(result, 1)
		}
	}
	args := &device.Args{Kept: len(order)}
	order = append(order, p.Attr.Axes...)
	length = 1
	isInOrder := true
	for i, axis := range order {
		ordered = append(ordered, shape[axis])
		isInOrder = isInOrder && i == axis
		if i >= args.Kept {
			length *= shape[axis]
		}
	}
	for i := range inputs {
		x := &p.In[i]
		steps := x.Strides
		switch {
		case !x.Shape.Equal(shape):
			steps = x.BroadcastStrides(shape)
		case steps != nil:
		case isInOrder:
			continue
		default:
			steps = shape.Strides()
		}
		strides := lists[(3+i)*rank:][:rank:rank]
		for k, axis := range order {
			strides[k] = steps[axis]
		}
		args.Strides[i+1] = strides
	}
	args.Shape, p.Shape = ordered, result
	p.Cmd = device.Command{N: args.Shape[:args.Kept].Size(), Args: args}
	return length
}

// spread broadcasts g, the result of a reduction or its gradient, to the operand's shape.
func spread(b Builder, c *Call, g Value) Value { return spreadTo(b, c, g, c.In[0].Shape()) }

// spreadTo is spread for operands that were broadcast to shape.
func spreadTo(b Builder, c *Call, g Value, shape device.Shape) Value {
	kept := make(device.Shape, len(shape))
	copy(kept, shape)
	for _, axis := range c.Attr.Axes {
		kept[axis] = 1
	}
	if !g.Shape().Equal(kept) {
		g = b.Structural(Reshape, Attr{Shape: kept}, g)
	}
	return b.Structural(BroadcastTo, Attr{Shape: shape}, g)
}

// prodGradient is the VJP of Prod. The axes that were reduced become one, the last.
func prodGradient(b Builder, c *Call, _ int, g Value) Value {
	x, axes := c.In[0], c.Attr.Axes
	shape := x.Shape()
	var order []int
	for axis := range shape {
		if !slices.Contains(axes, axis) {
			order = append(order, axis)
		}
	}
	order = append(order, axes...)
	inverse := make([]int, len(order))
	moved, last := make(device.Shape, len(order)), 1
	for i, axis := range order {
		inverse[axis], moved[i] = i, shape[axis]
	}
	rest := len(order) - len(axes)
	for _, n := range moved[rest:] {
		last *= n
	}
	rows := b.Structural(Reshape, Attr{Shape: append(slices.Clone(moved[:rest]), last)}, b.Structural(Transpose, Attr{Axes: order}, x))
	share := b.Structural(Reshape, Attr{Shape: moved}, others(b, rows, rest))
	return b.Elementwise(Mul, [2]float64{}, spread(b, c, g), b.Structural(Transpose, Attr{Axes: inverse}, share))
}

// others returns, for each element of x, the product of all others along the axis. It divides by none, so it and its
// gradients hold where some are 0. Elements of one half make pairs with those of the other: the others of an element
// are its partner and the other pairs.
func others(b Builder, x Value, axis int) Value {
	n := x.Shape()[axis]
	if n < 2 {
		return b.Elementwise(AddScalar, [2]float64{1}, b.Zeros(x))
	}
	part := func(v Value, from, to int) Value { return sliced(b, v, axis, from, to, 1) }
	join := func(first Value, more ...Value) Value {
		n := first.Shape()[axis]
		to := n
		for _, v := range more {
			to += v.Shape()[axis]
		}
		first = b.Structural(Scatter, Attr{Axis: axis, To: to}, first)
		for _, v := range more {
			first = b.Structural(Put, Attr{Axis: axis, From: n}, first, v)
			n += v.Shape()[axis]
		}
		return first
	}
	half := n / 2
	front, back := part(x, 0, half), part(x, half, 2*half)
	pairs := b.Elementwise(Mul, [2]float64{}, front, back)
	if n%2 != 0 {
		pairs = join(pairs, part(x, n-1, n))
	}
	rest := others(b, pairs, axis)
	of := part(rest, 0, half)
	front, back = b.Elementwise(Mul, [2]float64{}, of, back), b.Elementwise(Mul, [2]float64{}, of, front)
	if n%2 != 0 {
		return join(front, back, part(rest, half, half+1))
	}
	return join(front, back)
}

// extremum is the VJP of Max and Min.
func extremum(b Builder, c *Call, _ int, g Value) Value {
	x := c.In[0]
	isExtreme := b.Elementwise(Wins, [2]float64{}, x, spread(b, c, c.Out))
	share := b.Structural(As, Attr{DType: x.DType()}, isExtreme)
	count := b.Structural(Sum, c.Attr, share)
	g = b.Elementwise(Div, [2]float64{}, g, count)
	return b.Elementwise(Where, [2]float64{}, isExtreme, spread(b, c, g), b.Zeros(x))
}

// Conversions.
var (
	// As reads Attr.DType.
	As = define(&Def{
		Name: "As", Types: All,
		Doc: "returns t's elements converted to dtype: rounded to the nearest, ties to even; to integers truncated, what is out of range to the nearest integer and NaN to 0; from int64 to smaller integers wrapped around; to bool what is not 0. True is 1.",
		Run: func(p *Plan) {
			from, to := p.Types[0], p.Attr.DType
			p.Shape, p.DType = p.In[0].Shape, to
			p.Cmd = p.In[0].elementwise(Cast(from, to))
			p.Cost = int64(p.Cmd.N)
		},
		VJP: func(b Builder, c *Call, _ int, g Value) Value {
			return b.Structural(c.Def, Attr{DType: c.In[0].DType()}, g)
		},
		Batch: batchAsIs,
	})
	// Contiguous copies a view's elements to memory of their own, in row-major order.
	Contiguous = define(&Def{
		Name: "Contiguous", Types: All, Unlisted: true,
		Run: func(p *Plan) {
			p.Shape, p.DType = p.In[0].Shape, p.Types[0]
			p.Cmd = p.In[0].elementwise(copies.of(p.DType, func() *device.Kernel {
				return device.NewKernel("Copy", device.Copy, nil, p.DType, p.DType)
			}))
			p.Cost = int64(p.Cmd.N)
		},
		VJP:   func(_ Builder, _ *Call, _ int, g Value) Value { return g },
		Batch: batchAsIs,
	})
)

// elementwise returns the command that runs k, which has one input, over v.
func (v View) elementwise(k *device.Kernel) device.Command {
	cmd := device.Command{Kernel: k, N: v.Shape.Size()}
	if v.Strides != nil {
		cmd.Args = &device.Args{Shape: v.Shape}
		cmd.Args.Strides[1] = v.Strides
	}
	return cmd
}

// Creation. Attr.Shape, Attr.DType.
var (
	// Fill sets every element to the one with the bits Attr.Key.
	Fill = define(&Def{
		Name: "Fill", Types: All, Unlisted: true,
		Run: func(p *Plan) {
			p.create(fills.of(p.Attr.DType, func() *device.Kernel {
				return device.NewKernel("Fill", device.Fill, nil, p.Attr.DType)
			}))
			p.Cmd.Imm[0] = p.Attr.Key
		},
	})
	// Iota sets element i to Attr.Scalars[0] + i*Attr.Scalars[1].
	Iota = define(&Def{
		Name: "Iota", Types: Numbers, Unlisted: true,
		Run: func(p *Plan) {
			p.create(iotas.of(p.Attr.DType, func() *device.Kernel {
				return device.NewKernel("Iota", device.Iota, nil, p.Attr.DType)
			}))
			p.Cmd.Imm = [2]uint64{p.Attr.Key, p.Attr.Pos}
		},
	})
	// Uniform draws from [0, 1); Attr.Key, Attr.Pos.
	Uniform = define(&Def{Name: "Uniform", Types: Floats, Unlisted: true, Run: draw("Uniform", kernel.Uniform)})
	// Normal draws from the normal distribution with mean 0 and variance 1; Attr.Key, Attr.Pos.
	Normal = define(&Def{Name: "Normal", Types: Floats, Unlisted: true, Run: draw("Normal", kernel.Normal)})
	// Ints draws integers from Attr.From on and below Attr.To; Attr.Key, Attr.Pos.
	Ints = define(&Def{Name: "Ints", Types: 1 << device.Int64, Unlisted: true, Run: draw("Ints", kernel.Ints)})
)

// draw returns Def.Run of random draws.
func draw(name string, dist kernel.Distribution) func(*Plan) {
	kernels := &kernelsByType{}
	return func(p *Plan) {
		p.create(kernels.of(p.Attr.DType, func() *device.Kernel {
			return device.NewKernel(name, device.Random, dist, p.Attr.DType)
		}))
		p.Cmd.Imm = [2]uint64{p.Attr.Key, p.Attr.Pos}
		if dist == kernel.Ints {
			p.Cmd.Args = &device.Args{Ints: []int{p.Attr.From, p.Attr.To}}
		}
		p.Cost *= 16
	}
}

// create plans a command without inputs.
func (p *Plan) create(k *device.Kernel) {
	p.Shape, p.DType = p.Attr.Shape, p.Attr.DType
	p.Cmd = device.Command{Kernel: k, N: p.Shape.Size()}
	p.Cost = int64(p.Cmd.N) / 2
}

// Moves. Package tensor carries them out, in more than one command.
var (
	// To moves a tensor to Attr.Device.
	To = define(&Def{
		Name: "To", Types: All, Unlisted: true,
		VJP: func(b Builder, c *Call, _ int, g Value) Value {
			return b.Structural(c.Def, Attr{Device: c.Attr.Origin, Origin: c.Attr.Device}, g)
		},
		Batch: batchAsIs,
	})
	// Scatter writes the operand into a tensor whose elements all have the bits Attr.Key: along
	// Attr.Axis, from Attr.From on, Attr.Step apart. The axis of the result has length Attr.To. With
	// zeros it is the gradient of Slice.
	Scatter = define(&Def{Name: "Scatter", Types: All, Unlisted: true, Batch: batchAxis})
	// Put writes the second operand over part of the first: along Attr.Axis, from Attr.From on,
	// Attr.Step apart.
	Put = define(&Def{
		Name: "Put", Types: All, Unlisted: true,
		VJP: func(b Builder, c *Call, i int, g Value) Value {
			part := within(b, c.Attr, c.In[1].Shape()[c.Attr.Axis], g)
			if i == 1 {
				return part
			}
			return b.Structural(c.Def, c.Attr, g, b.Zeros(part))
		},
		Batch: func(b Builder, s *Batch) Value {
			a := s.Attr
			a.Axis++
			return b.Structural(s.Def, a, s.full(b, 0), s.full(b, 1))
		},
	})
)

func init() { // not in the literals: each of the two is the other's gradient
	Scatter.VJP = func(b Builder, c *Call, _ int, g Value) Value {
		return within(b, c.Attr, c.In[0].Shape()[c.Attr.Axis], g)
	}
	BroadcastTo.VJP = func(b Builder, c *Call, _ int, g Value) Value {
		return Unbroadcast(b, g, c.In[0].Shape())
	}
}

// kernelsByType holds the kernels of one computation by element type, each made when it is first needed.
type kernelsByType [numTypes]atomic.Pointer[device.Kernel]

var (
	copies, fills, iotas kernelsByType
	casts                [numTypes]kernelsByType
)

func (ks *kernelsByType) of(dt device.DType, make func() *device.Kernel) *device.Kernel {
	if k := ks[dt].Load(); k != nil {
		return k
	}
	ks[dt].CompareAndSwap(nil, make())
	return ks[dt].Load()
}
