package tensor

import (
	"fmt"
	"slices"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/kernel"
	"github.com/asyncgen/asyncgen/runtime/op"
)

// A Fused is an elementwise operation that a program defines: an expression of
// scalar primitives, computed in one pass over the operands. See [Fuse]. It never
// changes, and may be used by several goroutines at once.
type Fused struct {
	def, sum *op.Def // sum: nil if there are constants
	scalars  [2]float64
	given    bool              // With has given the constants
	live     func() [2]float64 // WithFunc has given them; nil: it has not
}

// Fuse returns an elementwise operation of 1 to 3 operands. It computes f of their elements in one command. Written
// with methods, the same computation takes a command for each primitive, and stores each result in memory.
//
//	var gate = tensor.Fuse("gate", 2, func(x ...*kernel.Expr) *kernel.Expr {
//		return kernel.Mul(kernel.Tanh(x[0]), x[1])
//	})
//	y := gate.Of(a, b) // the bits of a.Tanh().Mul(b)
//
// The operation is defined for floating-point types. Fuse calls f several times, each time with the operands'
// elements as expressions of float32 or float64. x[0].DType() tells which, for constants ([kernel.Const]). The
// result of f may be a bool. Errors and traces call the operation name. Elements of float16 and bfloat16 are computed
// in float32, and only the result is rounded.
//
// The result has the bits of the primitives done one after the other, and the gradient is the derivative of the
// expression. A Fused is never freed: call Fuse once, to initialise a variable of the package.
//
// Fuse panics with a [*Mistake] if there are no operands or too many, and if f applies a primitive to types that it is
// not defined for.
//
//asyncgen:api call 2 once
func Fuse(name string, operands int, f func(x ...*kernel.Expr) *kernel.Expr) *Fused {
	return fuse("Fuse", name, operands, 0, f)
}

// FuseScalars is [Fuse] of an expression with 1 or 2 constants, which [Fused.With] gives. f gets them after the
// operands, in the same element type. Other constants need no other kernel: use it where they change from call to call,
// as a learning rate does.
//
//	var towards = tensor.FuseScalars("towards", 2, 1, func(x ...*kernel.Expr) *kernel.Expr {
//		return kernel.Add(x[0], kernel.Mul(x[2], kernel.Sub(x[1], x[0])))
//	})
//	y := towards.With(0.1).Of(a, b) // a + 0.1*(b-a)
//
// It panics as Fuse does, and if there are no constants or too many.
//
//asyncgen:api call 3 once
func FuseScalars(name string, operands, scalars int, f func(x ...*kernel.Expr) *kernel.Expr) *Fused {
	if scalars < 1 || scalars > len(Fused{}.scalars) {
		panic(&Mistake{Op: "FuseScalars", Text: fmt.Sprintf("%s: %s with %d constants, want 1 or 2", op.MistakeOperands, name, scalars)})
	}
	return fuse("FuseScalars", name, operands, scalars, f)
}

// fuse is Fuse and FuseScalars, whichever caller says.
func fuse(caller, name string, operands, scalars int, f func(x ...*kernel.Expr) *kernel.Expr) *Fused {
	if operands < 1 || operands > op.MaxInputs {
		panic(&Mistake{Op: caller, Text: fmt.Sprintf("%s: %s with %d operands, want 1 to %d", op.MistakeOperands, name, operands, op.MaxInputs)})
	}
	d := &op.Def{Name: name, Types: op.Floats, Tensors: operands, Scalars: scalars, Expr: f, Unlisted: true}
	x := make([]*kernel.Expr, operands, operands+scalars)
	for i := range x {
		x[i] = kernel.Arg(i, device.Float64)
	}
	for i := range scalars {
		x = append(x, kernel.Imm(i, device.Float64))
	}
	d.Bool = f(x...).DType() == device.Bool
	d.Kernel(device.Float32) // so that mistakes of f panic here
	d.Kernel(device.Float64)
	if scalars > 0 {
		return &Fused{def: d}
	}
	return &Fused{def: d, sum: op.SumOf(name, d)}
}

// With returns f with the constants that f takes after its operands, converted to their element type before anything
// is computed. It panics if f takes another number of constants.
//
//asyncgen:api pure
func (f *Fused) With(scalars ...float64) *Fused {
	if len(scalars) != f.def.Scalars {
		wrong(f.def.Name, fmt.Sprintf("%s: it takes %d constants, not %d", op.MistakeOperands, f.def.Scalars, len(scalars)))
	}
	g := &Fused{def: f.def, sum: f.sum, given: true}
	copy(g.scalars[:], scalars)
	return g
}

// WithFunc is With of the constants that scalars returns, which differ from call to call: the rate of an optimiser, or
// what depends on its number of steps. A step that is captured ([Captured]) asks for them in each run, where With would
// give it those of the capture for ever. The result of Of is not tracked, and there is no Sum.
//
//asyncgen:api call 0 once
func (f *Fused) WithFunc(scalars func() []float64) *Fused {
	g := f.With(scalars()...)
	g.live = func() (c [2]float64) {
		copy(c[:], scalars())
		return c
	}
	return g
}

// Of enqueues the operation on its operands, element by element, with broadcasting. It panics with a [*Mistake]
// if f takes another number of operands, if it takes constants and has none, if the operands differ in element
// type or device, if they are no floating-point numbers, or if they can't be broadcast.
//
//asyncgen:api op
//go:noinline
func (f *Fused) Of(x ...*Tensor) *Tensor {
	in := f.operands(x)
	y := elementwise(f.def, f.scalars, in, f.live == nil)
	if f.live != nil {
		f.enliven(x)
	}
	return y
}

// enliven is called behind the operation on x. A step that is captured asks for its constants in each run.
func (f *Fused) enliven(x []*Tensor) {
	c := eng().Capturing()
	if c == nil {
		return
	}
	if slices.ContainsFunc(x, func(t *Tensor) bool { return t.isRow(f.def.Name) }) {
		c.Refuse("it gives rows constants of WithFunc")
	}
	last := x[len(x)-1]
	like := []*Tensor{{shape: last.Shape(), dtype: last.dtype}}
	c.Live(func() (imm [2]uint64) {
		scalars := f.live()
		for i := range f.def.Scalars {
			imm[i] = immediate(f.def, scalars[i], like)
		}
		return imm
	})
}

// operands returns x as an array. It panics unless f takes that many operands and has its constants.
func (f *Fused) operands(x []*Tensor) (in operands) {
	if len(x) != f.def.Tensors {
		wrong(f.def.Name, fmt.Sprintf("%s: it takes %d, not %d", op.MistakeOperands, f.def.Tensors, len(x)))
	}
	if f.def.Scalars > 0 && !f.given {
		wrong(f.def.Name, fmt.Sprintf("%s: it takes %d constants, see With", op.MistakeOperands, f.def.Scalars))
	}
	copy(in[:], x)
	return in
}

// Sum enqueues the sum of what [Fused.Of] returns, over the given axes, or over all if there are none. The result
// and its gradients have the bits of f.Of(x...).Sum(axes...). If the axes are the last ones and f takes no constants,
// the elements that are added up are never stored. Sum panics as Of and [Tensor.Sum] do.
//
//asyncgen:api op
//go:noinline
func (f *Fused) Sum(axes []int, x ...*Tensor) *Tensor {
	sum, _, _ := f.add(axes, x)
	return sum
}

// Mean is [Fused.Sum] divided by the number of elements of each sum. It has the bits of f.Of(x...).Mean(axes...).
//
//asyncgen:api op
//go:noinline
func (f *Fused) Mean(axes []int, x ...*Tensor) *Tensor {
	if len(x) > 0 && x[0] != nil && x[0].dtype.IsStorage() {
		each := elementwise(f.def, [2]float64{}, f.operands(x), true)
		defer each.letGo()
		return each.mean(f.def.Name, axes, false)
	}
	sum, shape, list := f.add(axes, x)
	return sum.over(shape, list)
}

// add returns the sums, the shape of the elements that are added up, and the axes.
func (f *Fused) add(axes []int, x []*Tensor) (sum *Tensor, shape device.Shape, list []int) {
	in, name := f.operands(x), f.def.Name
	if f.live != nil {
		wrong(name, op.MistakeOperands+": no sum takes constants of WithFunc", x...)
	}
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
	if f.sum != nil && areLast(shape, list) {
		return structural(f.sum, a, in, true), shape, list
	}
	each := elementwise(f.def, f.scalars, in, true)
	defer each.letGo()
	return structural(op.Sum, a, operands{each}, true), shape, list
}

// areLast reports whether axes, which are sorted, are the last axes of shape, apart from axes of length 1. Then the
// elements of each sum lie together. Otherwise they are columns, and many columns are added up at the same time.
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
