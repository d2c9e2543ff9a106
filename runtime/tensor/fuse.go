package tensor

import (
	"fmt"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/kernel"
	"github.com/asyncgen/asyncgen/runtime/op"
)

// A Fused is an elementwise operation that a program defines: an expression of
// scalar primitives, computed in one pass over the operands. See [Fuse]. It never
// changes, and may be used by several goroutines at once.
type Fused struct{ def, sum *op.Def }

// Fuse returns the elementwise operation that computes f of the elements of so many
// operands, of 1 to 3: what takes one operation of this package for each primitive, with results in
// memory in between, takes one command.
//
//	var gate = tensor.Fuse("gate", 2, func(x ...*kernel.Expr) *kernel.Expr {
//		return kernel.Mul(kernel.Tanh(x[0]), x[1])
//	})
//	y := gate.Of(a, b) // the bits of a.Tanh().Mul(b)
//
// The operation is defined for float32 and float64. F is called with the operands'
// elements of such a type, several times; constants are [kernel.Const], of the type that x[0].DType() tells. What
// f computes may be a bool. Name is what errors and traces call the operation.
//
// The result has the bits of the primitives done one after the other, and the derivative of the expression
// is the gradient. What Fuse makes is kept for ever, so a program does it once, in a variable of the package.
//
// Fuse panics with a [*Mistake] if there are no or too many operands, and if f applies a primitive
// to types that it is not defined for.
//
//asyncgen:api call 2 once
func Fuse(name string, operands int, f func(x ...*kernel.Expr) *kernel.Expr) *Fused {
	if operands < 1 || operands > op.MaxInputs {
		panic(&Mistake{Op: "Fuse", Text: fmt.Sprintf("%s: %s with %d operands, want 1 to %d", op.MistakeOperands, name, operands, op.MaxInputs)})
	}
	d := &op.Def{Name: name, Types: op.Floats, Tensors: operands, Expr: f, Unlisted: true}
	x := make([]*kernel.Expr, operands)
	for i := range x {
		x[i] = kernel.Arg(i, device.Float64)
	}
	d.Bool = f(x...).DType() == device.Bool
	d.Kernel(device.Float32) // what is wrong with f is found now
	d.Kernel(device.Float64)
	return &Fused{d, op.SumOf(name, d)}
}

// Of enqueues the operation on as many tensors as it has operands, element by element, with
// broadcasting. It panics with a [*Mistake] if they are more or fewer, if they differ in element
// type, or are neither float32 nor float64.
//
//asyncgen:api op
//go:noinline
func (f *Fused) Of(x ...*Tensor) *Tensor {
	return elementwise(f.def, [2]float64{}, f.operands(x), true)
}

// operands is x, if these are as many as f has.
func (f *Fused) operands(x []*Tensor) (in operands) {
	if len(x) != f.def.Tensors {
		wrong(f.def.Name, fmt.Sprintf("%s: it takes %d, not %d", op.MistakeOperands, f.def.Tensors, len(x)))
	}
	copy(in[:], x)
	return in
}

// Sum enqueues the sum, over the given axes of what [Fused.Of] returns, or over all if there are
// none. It has the bits of f.Of(x...).Sum(axes...), and so have its gradients, but what is added up
// is made on the way, and never in memory, if the axes are the last ones. It panics as these do.
//
//asyncgen:api op
//go:noinline
func (f *Fused) Sum(axes []int, x ...*Tensor) *Tensor {
	sum, _, _ := f.add(axes, x)
	return sum
}

// Mean is [Fused.Sum], divided by how many elements each sum is made of: it has the bits of f.Of(x...).Mean(axes...).
//
//asyncgen:api op
//go:noinline
func (f *Fused) Mean(axes []int, x ...*Tensor) *Tensor {
	sum, shape, list := f.add(axes, x)
	return sum.over(shape, list)
}

// add returns the sums, the shape of what is added up, and the axes.
func (f *Fused) add(axes []int, x []*Tensor) (sum *Tensor, shape device.Shape, list []int) {
	in, name := f.operands(x), f.def.Name
	for i, t := range x {
		if t == nil {
			wrong(name, op.MistakeNil)
		}
		t.isRow(name)
		if !t.dtype.IsFloat() || f.def.Bool {
			wrong(name, op.Unsupported(op.Floats), x...)
		}
		var ok bool
		if shape, ok = op.Broadcast(shape, t.shape); !ok {
			wrong(name, op.MistakeBroadcast, x[:i+1]...)
		}
	}
	list = (&Tensor{shape: shape, dtype: x[0].dtype}).axes(name, axes)
	a := op.Attr{Axes: list}
	if areLast(shape, list) {
		return structural(f.sum, a, in, true), shape, list
	}
	each := elementwise(f.def, [2]float64{}, in, true)
	defer each.letGo()
	return structural(op.Sum, a, operands{each}, true), shape, list
}

// areLast reports whether there are no other axes behind the given ones, which are sorted, but for
// those of length 1: what is added up lies together, and not in columns, of which many are added up
// at the same time.
func areLast(shape device.Shape, axes []int) bool {
	for axis := len(shape) - 1; axis >= 0; axis-- {
		if n := len(axes); n > 0 && axes[n-1] == axis {
			axes = axes[:n-1]
		} else if shape[axis] != 1 {
			return len(axes) == 0
		}
	}
	return true
}
