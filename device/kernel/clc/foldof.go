package clc

import (
	"sync"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/kernel"
)

// The fold of an expression is done in two steps: what the expression makes goes to a scratch buffer.

// halves are the kernels of the two steps, for each kernel.FoldOf, by the kernel's ID.
var halves sync.Map

type half struct{ each, fold *device.Kernel }

func halvesOf(k *device.Kernel, f kernel.FoldOf) *half {
	if h, ok := halves.Load(k.ID); ok {
		return h.(*half)
	}
	dt := f.Expr.DType()
	h, _ := halves.LoadOrStore(k.ID, &half{device.NewKernel(k.Name, device.Map, f.Expr, dt, k.In...), device.NewKernel(k.Name, device.Reduce, f.By, k.Out, dt)})
	return h.(*half)
}

func (l *Lowering) lowerReduceOf(c *device.Command, f kernel.FoldOf) error {
	h := halvesOf(c.Kernel, f)
	n := c.Args.Shape.Size()
	each, fold := *c, *c
	each.Kernel, each.N, each.Off[0] = h.each, n, 0
	each.Args = &device.Args{Shape: c.Args.Shape, Strides: c.Args.Strides}
	each.Args.Strides[0] = nil
	fold.Kernel, fold.Off[1] = h.fold, 0
	fold.Args = &device.Args{Shape: c.Args.Shape, Kept: c.Args.Kept}

	at, first := l.place, len(l.Launches)
	defer func() { l.place = at }()
	if n > 0 {
		place := *at
		place.Base[0] = 0
		l.place = &place
		if err := l.lowerMap(&each); err != nil {
			return err
		}
	}
	place := *at
	place.Base[1] = 0
	l.place = &place
	second := len(l.Launches)
	if err := l.lowerReduce(&fold); err != nil || n == 0 {
		return err
	}
	made := Operand{Scratch, len(l.Scratch)}
	l.scratch(n * h.each.Out.Size())
	replace(l.Launches[first:second], Operand{Buf, 0}, made)
	replace(l.Launches[second:], Operand{Buf, 1}, made)
	return nil
}

// replace gives launches another operand instead of one.
func replace(launches []Launch, old, with Operand) {
	for i := range launches {
		args := make([]Operand, 0, len(launches[i].Args))
		for _, o := range launches[i].Args {
			if o == old {
				o = with
			}
			args = append(args, o)
		}
		launches[i].Args = args
	}
}
