package op

import (
	"cmp"
	"slices"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/kernel"
)

var (
	gathers, scatters           [manyClasses]kernelsByType
	concats, joinings, argSorts kernelsByType
)

// Selection by a tensor of indices, and operations along one axis.
var (
	// Gather reads Attr.Axis, Attr.Shared and Attr.Classes. Operand and indices have the first Shared
	// axes in common, all before Axis. Each index selects along Axis; in the result the other axes of
	// the indices take the place of Axis.
	Gather = define(&Def{
		Name: "Gather", Types: All, Unlisted: true, Indexed: true, Fails: true,
		Run: func(p *Plan) {
			x, index := p.In[0], p.In[1]
			axis, shared := p.Attr.Axis, p.Attr.Shared
			if !slices.Equal(x.Shape[:shared], index.Shape[:min(shared, len(index.Shape))]) {
				p.wrong("Gather", MistakeBroadcast, 2)
			}
			space, at := selection(x, index, axis, shared)
			p.Shape, p.DType = space, p.Types[0]
			args := &device.Args{Shape: space, Ints: []int{x.Shape[axis], x.steps()[axis], bit(p.Attr.Classes != NoClasses)}}
			args.Strides[1], args.Strides[2] = at, indexStrides(index, space, axis, shared)
			p.Cmd = device.Command{Kernel: gatherOf(p), N: space.Size(), Args: args}
			p.Cost = int64(p.Cmd.N)
		},
		Saves: 1 << 1,
		Batch: func(b Builder, s *Batch) Value {
			a := s.Attr
			switch {
			case a.Shared == 0 && !s.has(1):
				return batchAxis(b, s)
			case a.Shared == 0 && !s.has(0): // the axis of the examples ends up at a.Axis
				x := b.Structural(s.Def, a, s.In...)
				axes := []int{a.Axis}
				for axis := range x.Shape() {
					if axis != a.Axis {
						axes = append(axes, axis)
					}
				}
				return b.Structural(Transpose, Attr{Axes: axes}, x)
			}
			a.Axis, a.Shared = a.Axis+1, a.Shared+1
			return b.Structural(s.Def, a, s.full(b, 0), s.full(b, 1))
		},
	})
	// ScatterAdd reads Attr.Axis, Attr.Shared, Attr.Classes and Attr.Shape. It makes zeros of that
	// Shape, and adds each element of the first operand at the place from which Gather would take it,
	// in row-major order. It is the gradient of Gather.
	ScatterAdd = define(&Def{
		Name: "ScatterAdd", Types: Numbers, Unlisted: true, Indexed: true, Fails: true,
		Run: func(p *Plan) {
			g, index := p.In[0], p.In[1]
			axis, shared := p.Attr.Axis, p.Attr.Shared
			whole := View{Shape: p.Attr.Shape}
			space, at := selection(whole, index, axis, shared)
			p.Shape, p.DType = p.Attr.Shape, p.Types[0]
			args := &device.Args{Shape: space, Ints: []int{whole.Shape[axis], whole.steps()[axis], bit(p.Attr.Classes != NoClasses)}}
			args.Strides = [device.MaxOperands][]int{at, g.Strides, indexStrides(index, space, axis, shared)}
			p.Cmd = device.Command{Kernel: scatterAddOf(p), N: whole.Shape.Size(), Args: args}
			p.Cost = int64(p.Cmd.N) + 2*int64(space.Size())
		},
		Saves: 1 << 1,
		Batch: func(b Builder, s *Batch) Value {
			a := s.Attr
			a.Axis, a.Shared, a.Shape = a.Axis+1, a.Shared+1, s.withExamples(a.Shape)
			return b.Structural(s.Def, a, s.full(b, 0), s.full(b, 1))
		},
	})
	// CumSum reads Attr.Axis and Attr.Back.
	CumSum = define(&Def{
		Name: "CumSum", Types: Numbers, Unlisted: true,
		Run: scan("CumSum", kernel.ReduceSum),
		VJP: func(b Builder, c *Call, _ int, g Value) Value {
			return b.Structural(c.Def, Attr{Axis: c.Attr.Axis, Back: !c.Attr.Back}, g)
		},
		Batch: batchAxis,
	})
	// CumProd, CumMax and CumMin read Attr.Axis.
	CumProd = define(&Def{
		Name: "CumProd", Types: Numbers, Unlisted: true, Batch: batchAxis,
		Run:   scan("CumProd", kernel.ReduceProd),
		Saves: 1<<0 | SavesResult,
	})
	CumMax = define(&Def{
		Name: "CumMax", Types: Numbers, Unlisted: true, Batch: batchAxis,
		Run: scan("CumMax", kernel.ReduceMax), Saves: 1<<0 | SavesResult,
	})
	CumMin = define(&Def{
		Name: "CumMin", Types: Numbers, Unlisted: true, Batch: batchAxis,
		Run: scan("CumMin", kernel.ReduceMin), Saves: 1<<0 | SavesResult,
	})
	// ArgSort gives the indices along Attr.Axis of the Attr.To least elements in increasing order, or
	// with Attr.Back of the greatest in decreasing order.
	ArgSort = define(&Def{
		Name: "ArgSort", Types: Ordered, Unlisted: true,
		Run: func(p *Plan) {
			x, axis, k := p.In[0], p.Attr.Axis, p.Attr.To
			p.Shape, p.DType = slices.Clone(x.Shape), device.Int64
			p.Shape[axis] = k
			args := x.along(axis, k)
			args.Ints = []int{k, bit(p.Attr.Back)}
			in := p.Types[0]
			p.Cmd = device.Command{Kernel: argSorts.of(in, func() *device.Kernel {
				return device.NewKernel("ArgSort", device.ArgSort, nil, device.Int64, in)
			}), N: p.Shape.Size(), Args: args}
			p.Cost = 10 * int64(x.Shape.Size())
		},
		Batch: batchAxis,
	})
	// Along selects along Attr.Axis by one index for each element of the result. The indices are known
	// to be in range. Operand and indices may differ in length along that axis, and along no other.
	Along = define(&Def{
		Name: "Along", Types: All, Unlisted: true, Indexed: true,
		Run: runAlong, Saves: 1 << 1, Batch: batchAlong,
	})
	// TakeAlong is Along with indices that may be out of range.
	TakeAlong = define(&Def{
		Name: "TakeAlong", Types: All, Unlisted: true, Indexed: true, Fails: true,
		Run: runAlong, Saves: 1 << 1, Batch: batchAlong,
	})
	// AlongAdd reads Attr.Axis and Attr.Shape. It makes zeros of that Shape, and adds each element of
	// the first operand at the place from which Along would take it. It is the gradient of Along.
	AlongAdd = define(&Def{
		Name: "AlongAdd", Types: Numbers, Unlisted: true, Indexed: true,
		Run: runAlongAdd, Saves: 1 << 1, Batch: batchAlong,
	})
	// AddAlong is AlongAdd with indices that may be out of range.
	AddAlong = define(&Def{
		Name: "AddAlong", Types: Numbers, Unlisted: true, Indexed: true, Fails: true,
		Run: runAlongAdd, Saves: 1 << 1, Batch: batchAlong,
	})
	// Concat writes the first operand over part of the second one: along Attr.Axis from Attr.From on.
	// Nobody needs the elements that it overwrites. Package tensor carries it out, once for each part
	// of a result.
	Concat = define(&Def{
		Name: "Concat", Types: All, Unlisted: true,
		Run: func(p *Plan) {
			p.Shape, p.DType = p.In[0].Shape, p.Types[0]
			p.Cmd = p.In[0].elementwise(concats.of(p.DType, func() *device.Kernel {
				return device.NewKernel("Concat", device.Copy, nil, p.DType, p.DType)
			}))
			p.Cost = int64(p.Cmd.N)
		},
		VJP: func(b Builder, c *Call, i int, g Value) Value {
			if i == 1 {
				return g
			}
			axis, from := c.Attr.Axis, c.Attr.From
			return b.Structural(Slice, Attr{Axis: axis, From: from, To: from + c.In[0].Shape()[axis]}, g)
		},
	})
)

// scan returns Def.Run of running results of r along Attr.Axis.
func scan(name string, r kernel.Reducer) func(*Plan) {
	kernels := &kernelsByType{}
	return func(p *Plan) {
		x := p.In[0]
		p.Shape, p.DType = x.Shape, p.Types[0]
		args := x.along(p.Attr.Axis, x.Shape[p.Attr.Axis])
		args.Ints = []int{bit(p.Attr.Back)}
		p.Cmd = device.Command{Kernel: kernels.of(p.DType, func() *device.Kernel {
			return device.NewKernel(name, device.Scan, r, p.DType, p.DType)
		}), N: x.Shape.Size(), Args: args}
		p.Cost = 2 * int64(p.Cmd.N)
	}
}

// Joining returns the kernel that concatenates the tensors of type dt in Args.Parts.
func Joining(dt device.DType) *device.Kernel {
	return joinings.of(dt, func() *device.Kernel { return device.NewKernel("Concat", device.Concat, nil, dt) })
}

func gatherOf(p *Plan) *device.Kernel {
	return gathers[p.Attr.Classes].of(p.DType, func() *device.Kernel {
		return device.NewKernel(cmp.Or(p.Attr.Classes.String(), "Gather"), device.Gather, nil, p.DType, p.DType, device.Int64)
	})
}

func scatterAddOf(p *Plan) *device.Kernel {
	return scatters[p.Attr.Classes].of(p.DType, func() *device.Kernel {
		return device.NewKernel(cmp.Or(p.Attr.Classes.String(), "ScatterAdd"), device.ScatterAdd, nil, p.DType, p.DType, device.Int64)
	})
}

func runAlong(p *Plan) {
	x, index, axis := p.In[0], p.In[1], p.Attr.Axis
	p.Shape, p.DType = index.Shape, p.Types[0]
	args := &device.Args{Shape: index.Shape}
	args.Strides[1], args.Strides[2] = x.across(args, axis), index.steps()
	p.Cmd = device.Command{Kernel: gatherOf(p), N: p.Shape.Size(), Args: args}
	p.Cost = 2 * int64(p.Cmd.N)
}

func runAlongAdd(p *Plan) {
	g, index := p.In[0], p.In[1]
	p.Shape, p.DType = p.Attr.Shape, p.Types[0]
	args := &device.Args{Shape: index.Shape}
	args.Strides = [device.MaxOperands][]int{View{Shape: p.Shape}.across(args, p.Attr.Axis), g.Strides, index.steps()}
	p.Cmd = device.Command{Kernel: scatterAddOf(p), N: p.Shape.Size(), Args: args}
	p.Cost = int64(p.Cmd.N) + 2*int64(index.Shape.Size())
}

// across returns the strides of v, with 0 for axis, along which indices select. It sets args.Ints to
// the length and the stride of that axis.
func (v View) across(args *device.Args, axis int) []int {
	steps := slices.Clone(v.steps())
	args.Ints = []int{v.Shape[axis], steps[axis]}
	steps[axis] = 0
	return steps
}

// batchAlong is the batching rule of Along, AlongAdd and those like them.
func batchAlong(b Builder, s *Batch) Value {
	a := s.Attr
	a.Axis++
	if a.Shape != nil {
		a.Shape = s.withExamples(a.Shape)
	}
	return b.Structural(s.Def, a, s.full(b, 0), s.full(b, 1))
}

func init() { // not in the literals: in each pair, the two are each other's gradients
	take := func(b Builder, c *Call, _ int, g Value) Value {
		return b.Structural(AlongAdd, Attr{Axis: c.Attr.Axis, Shape: c.In[0].Shape()}, g, c.In[1])
	}
	add := func(b Builder, c *Call, _ int, g Value) Value {
		return b.Structural(Along, Attr{Axis: c.Attr.Axis}, g, c.In[1])
	}
	Along.VJP, TakeAlong.VJP, AlongAdd.VJP, AddAlong.VJP = take, take, add, add
	CumMax.VJP, CumMin.VJP = extremes, extremes
	CumProd.VJP = func(b Builder, c *Call, _ int, g Value) Value {
		// The gradient of an element is the product of those before it, times what the results from it on make of g. It
		// divides by no element, so it and its gradients hold where some are 0.
		x, axis := c.In[0], c.Attr.Axis
		n := x.Shape()[axis]
		if n == 0 {
			return g
		}
		sums := backwards(b, g, sliced(b, x, axis, 1, n, 1), axis)
		first := b.Structural(Scatter, Attr{Axis: axis, To: n}, sliced(b, sums, axis, 0, 1, 1))
		rest := b.Elementwise(Mul, [2]float64{}, sliced(b, c.Out, axis, 0, n-1, 1), sliced(b, sums, axis, 1, n, 1))
		return b.Structural(Put, Attr{Axis: axis, From: 1}, first, rest)
	}
	Gather.VJP = func(b Builder, c *Call, _ int, g Value) Value {
		a := Attr{Axis: c.Attr.Axis, Shared: c.Attr.Shared, Classes: c.Attr.Classes, Shape: c.In[0].Shape()}
		return b.Structural(ScatterAdd, a, g, c.In[1])
	}
	ScatterAdd.VJP = func(b Builder, c *Call, _ int, g Value) Value {
		return b.Structural(Gather, Attr{Axis: c.Attr.Axis, Shared: c.Attr.Shared, Classes: c.Attr.Classes}, g, c.In[1])
	}
}

func sliced(b Builder, v Value, axis, from, to, step int) Value {
	return b.Structural(Slice, Attr{Axis: axis, From: from, To: to, Step: step}, v)
}

// backwards returns s with s[i] = g[i] + a[i]*s[i+1] along the axis, where a has one element less than g. The even s[i]
// follow from each other in the same way, and the odd ones from them.
func backwards(b Builder, g, a Value, axis int) Value {
	n := g.Shape()[axis]
	if n == 1 {
		return g
	}
	even := func(v Value) Value { return sliced(b, v, axis, 0, v.Shape()[axis], 2) }
	odd := func(v Value) Value { return sliced(b, v, axis, 1, v.Shape()[axis], 2) }
	first := func(v Value, n int) Value { return sliced(b, v, axis, 0, n, 1) }
	add := func(x, a, y Value) Value { // x + a*y, where y may be shorter
		k := y.Shape()[axis]
		sum := b.Elementwise(Add, [2]float64{}, first(x, k), b.Elementwise(Mul, [2]float64{}, first(a, k), y))
		if k == x.Shape()[axis] {
			return sum
		}
		return b.Structural(Put, Attr{Axis: axis}, x, sum)
	}
	products := b.Elementwise(Mul, [2]float64{}, first(even(a), (n-1)/2), odd(a))
	evens := backwards(b, add(even(g), even(a), odd(g)), products, axis)
	odds := add(odd(g), odd(a), sliced(b, evens, axis, 1, (n+1)/2, 1))
	all := b.Structural(Scatter, Attr{Axis: axis, To: n, Step: 2}, evens)
	return b.Structural(Put, Attr{Axis: axis, From: 1, Step: 2}, all, odds)
}

// extremes is the VJP of CumMax and CumMin: each result came from the latest element that is equal to it.
func extremes(b Builder, c *Call, _ int, g Value) Value {
	x := c.In[0]
	none := b.Structural(As, Attr{DType: device.Int64}, b.Zeros(x))
	places := b.Elementwise(SubScalar, [2]float64{1}, b.Structural(CumSum, Attr{Axis: c.Attr.Axis}, b.Elementwise(AddScalar, [2]float64{1}, none)))
	wins := b.Elementwise(Wins, [2]float64{}, x, c.Out)
	from := b.Structural(CumMax, Attr{Axis: c.Attr.Axis}, b.Elementwise(Where, [2]float64{}, wins, places, none))
	return b.Structural(AlongAdd, Attr{Axis: c.Attr.Axis, Shape: x.Shape()}, g, from)
}

// along returns the arguments of a command that works along one axis of v. These are the shape of v
// with that axis last, the strides of v over this shape, and the strides of a row-major result in which
// the axis has length n.
func (v View) along(axis, n int) *device.Args {
	last := func(list []int) []int {
		return append(slices.Delete(slices.Clone(list), axis, axis+1), list[axis])
	}
	args := &device.Args{Shape: last(v.Shape), Kept: len(v.Shape) - 1}
	if axis == args.Kept {
		args.Strides[1] = v.Strides
		return args
	}
	result := slices.Clone(v.Shape)
	result[axis] = n
	args.Strides[0], args.Strides[1] = last(result.Strides()), last(v.steps())
	return args
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// selection returns the shape of what the indices select from x, and the strides of x over that shape
// for index 0.
func selection(x, index View, axis, shared int) (space device.Shape, strides []int) {
	steps := x.steps()
	space = slices.Concat(x.Shape[:axis], index.Shape[shared:], x.Shape[axis+1:])
	strides = slices.Concat(steps[:axis], make([]int, len(index.Shape)-shared), steps[axis+1:])
	return space, strides
}

// indexStrides returns the strides of the indices over space, which selection has returned.
func indexStrides(index View, space device.Shape, axis, shared int) []int {
	strides, steps := make([]int, len(space)), index.steps()
	copy(strides, steps[:shared])
	copy(strides[axis:], steps[shared:])
	return strides
}
