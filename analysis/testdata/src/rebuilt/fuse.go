package rebuilt

import (
	"github.com/asyncgen/asyncgen/device/kernel"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

var square = tensor.Fuse("square", 1, func(x ...*kernel.Expr) *kernel.Expr { return kernel.Mul(x[0], x[0]) })

func gate(a, b *tensor.Tensor) *tensor.Tensor {
	g := tensor.Fuse("gate", 2, func(x ...*kernel.Expr) *kernel.Expr { // want `tensor.Fuse defines the same in each call, and what it defines is kept for ever`
		return kernel.Mul(x[0], x[1])
	})
	return g.Of(a, b)
}

type layer struct{ op *tensor.Fused }

func (l *layer) atOnce(a *tensor.Tensor) *tensor.Tensor {
	return tensor.Fuse("square", 1, func(x ...*kernel.Expr) *kernel.Expr { return kernel.Mul(x[0], x[0]) }).Of(a) // want `kept for ever`
}

func each(xs []*tensor.Tensor) (ys []*tensor.Tensor) {
	for _, x := range xs {
		f := tensor.Fuse("square", 1, func(x ...*kernel.Expr) *kernel.Expr { return kernel.Mul(x[0], x[0]) }) // want `tensor.Fuse builds the same in each iteration`
		ys = append(ys, f.Of(x))
	}
	return ys
}

// Silent from here on.

func newLayer() *layer {
	op := tensor.Fuse("square", 1, func(x ...*kernel.Expr) *kernel.Expr { return kernel.Mul(x[0], x[0]) })
	return &layer{op}
}

func (l *layer) forward(x *tensor.Tensor) *tensor.Tensor {
	if l.op == nil {
		l.op = tensor.Fuse("square", 1, func(x ...*kernel.Expr) *kernel.Expr { return kernel.Mul(x[0], x[0]) })
	}
	return l.op.Of(x)
}

func by(f func(x ...*kernel.Expr) *kernel.Expr, a *tensor.Tensor) *tensor.Tensor {
	return tensor.Fuse("given", 1, f).Of(a)
}

func all(xs []*tensor.Tensor) (ys []*tensor.Tensor) {
	op := tensor.Fuse("square", 1, func(x ...*kernel.Expr) *kernel.Expr { return kernel.Mul(x[0], x[0]) }) // want `kept for ever`
	for _, x := range xs {
		ys = append(ys, op.Of(x))
	}
	return ys
}
