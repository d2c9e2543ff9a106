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
type Fused struct{ def *op.Def }

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
// Fuse panics if there are no or too many operands, or if f applies a primitive to types that it is not defined for.
//
//asyncgen:api call 2 once
func Fuse(name string, operands int, f func(x ...*kernel.Expr) *kernel.Expr) *Fused {
	if operands < 1 || operands > op.MaxInputs {
		panic(fmt.Sprintf("tensor: Fuse %s: %d operands, want 1 to %d", name, operands, op.MaxInputs))
	}
	d := &op.Def{Name: name, Types: op.Floats, Tensors: operands, Expr: f, Unlisted: true}
	x := make([]*kernel.Expr, operands)
	for i := range x {
		x[i] = kernel.Arg(i, device.Float64)
	}
	d.Bool = f(x...).DType() == device.Bool
	d.Kernel(device.Float32) // what is wrong with f is found now
	d.Kernel(device.Float64)
	return &Fused{d}
}

// Of enqueues the operation on as many tensors as it has operands, element by element, with
// broadcasting. It panics with a [*Mistake] if they are more or fewer, if they differ in element type, or are neither float32 nor float64.
//
//asyncgen:api op
//go:noinline
func (f *Fused) Of(x ...*Tensor) *Tensor {
	if len(x) != f.def.Tensors {
		wrong(f.def.Name, fmt.Sprintf("%s: it takes %d, not %d", op.MistakeOperands, f.def.Tensors, len(x)))
	}
	var in operands
	copy(in[:], x)
	return elementwise(f.def, [2]float64{}, in, true)
}
