package op

import (
	"slices"
	"sync"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/kernel"
)

// Sums over the results of elementwise operations.
var (
	Dot        = SumOf("Dot", Mul)
	SumSquares = SumOf("Norm", Square)
)

// SumOf returns the operation that applies d and sums the results over Attr.Axes, in one command. d
// is an elementwise operation without constants. The operation and its gradients have the bits of d
// followed by Sum, but the results of d are never in memory.
func SumOf(name string, d *Def) *Def {
	return &Def{
		Name: name, Types: d.Types & Numbers, Tensors: d.Tensors, Unlisted: true, Reduces: true, Fails: d.Fails, each: d,
		Run: sumOf(name, d.Tensors, d.Kernel), VJP: sumOfVJP, Batch: sumOfBatch,
	}
}

// SumOfChain returns the kernel that adds up what each, the kernel of a [Chain], makes of elements. It returns the same
// kernel every time.
func SumOfChain(each *device.Kernel) *device.Kernel {
	if k, ok := sumsOfChains.Load(each); ok {
		return k.(*device.Kernel)
	}
	k, _ := sumsOfChains.LoadOrStore(each, sumOfEach(each.Name+"+Sum", each))
	return k.(*device.Kernel)
}

var sumsOfChains sync.Map // from *device.Kernel to *device.Kernel

// sumOfEach returns the kernel of a sum over the results of each.
func sumOfEach(name string, each *device.Kernel) *device.Kernel {
	wide := each.Out.Wide()
	e := kernel.Cast(each.Body.(*kernel.Expr), wide) // of results that have been rounded
	return device.NewKernel(name, device.Reduce, kernel.FoldOf{By: kernel.ReduceSum, Expr: e}, wide, each.In...)
}

// sumOf returns Def.Run of an operation that adds up what the kernels make of so many tensors.
func sumOf(name string, tensors int, kernelOf func(device.DType) *device.Kernel) func(*Plan) {
	kernels := &kernelsByType{}
	return func(p *Plan) {
		shape := p.In[0].Shape
		for _, x := range p.In[1:tensors] {
			var ok bool
			if shape, ok = Broadcast(shape, x.Shape); !ok {
				p.wrong(name, MistakeBroadcast, tensors)
			}
		}
		p.fold(shape, tensors)
		of := p.Types[0]
		p.DType, p.Wide = of.Wide(), of.IsStorage()
		p.Cmd.Kernel = kernels.of(of, func() *device.Kernel { return sumOfEach(name, kernelOf(of)) })
		p.Cost = 2 * int64(shape.Size())
	}
}

// sumOfVJP is the VJP of SumOf: the gradient of d, from the gradient of the sum broadcast to all
// elements. If the gradient of d needs the results of d, they are computed once more.
func sumOfVJP(b Builder, c *Call, i int, g Value) Value {
	d := c.Def.each
	shape := c.In[0].Shape()
	for _, x := range c.In[1:d.Tensors] {
		shape, _ = Broadcast(shape, x.Shape())
	}
	each := Call{Def: d, In: c.In}
	if d.Needed(1<<i)&SavesResult != 0 {
		each.Out = b.Elementwise(d, [2]float64{}, c.In[:d.Tensors]...)
	}
	return Pull(b, &each, i, spreadTo(b, c, g, shape))
}

// neededOfEach is Needed of a Def made by SumOf. If the gradient of d.each needs its results, all
// operands are needed, to compute them once more.
func (d *Def) neededOfEach(tracked uint8) uint8 {
	needed := d.each.Needed(tracked)
	if needed&SavesResult != 0 {
		return 1<<d.Tensors - 1
	}
	return needed
}

// sumOfBatch is the batching rule of SumOf: it applies d and sums in separate operations.
func sumOfBatch(b Builder, s *Batch) Value {
	each := Batched(b, &Batch{Def: s.Def.each, In: s.In, Has: s.Has, N: s.N})
	a := s.Attr
	a.Axes = slices.Clone(a.Axes)
	for i := range a.Axes {
		a.Axes[i]++
	}
	return b.Structural(Sum, a, each)
}

// along returns the sum of d.each(x) along one axis, which it keeps. d is made by SumOf. For another
// axis than the last it applies d.each first: summing whole columns of its result is faster.
func (d *Def) along(b Builder, axis int, x ...Value) Value {
	a := Attr{Axes: []int{axis}, Keep: true}
	if axis == len(x[0].Shape())-1 {
		return b.Structural(d, a, x...)
	}
	return b.Structural(Sum, a, b.Elementwise(d.each, [2]float64{}, x...))
}
