// Package op is the list of tensor operations, each defined once.
//
// An elementwise operation is one expression of scalar primitives (package device/kernel). Derived
// from it are its kernels for every element type, its gradient, the method of Tensor that calls it,
// the linter's row about that method and the tests of its values; nothing about it is written a
// second time. A structural operation (a product, a reduction, a view, a random draw) says instead
// what shape its result has, which command computes it, and what its gradient is.
//
// The package computes nothing and holds no data: [Def.Run] fills in a
// command, and package tensor gives it memory and enqueues it.
//
// To add an elementwise operation, add one literal to elementwise.go and run
// go generate ./... .
package op

//go:generate go run ./opgen

import (
	"fmt"
	"sync/atomic"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/kernel"
)

// MaxInputs is how many tensors an operation takes at most.
const MaxInputs = device.MaxOperands - 1

// A Def defines one operation. Either Expr is set (elementwise), or View, or Run.
type Def struct {
	// Name is the name of the method or function of package tensor: "Add".
	Name string
	// Doc is the method's doc comment without its name: "returns t + y."
	Doc string
	// Types are the element types of the operands. Elements of a type for storage are computed in its wide type
	// (device.DType.Wide): Expr gets them so, and its result is converted back. Of a structural operation, Run gets a
	// type for storage where All types are allowed, as the elements are only moved there. Other structural operations
	// get operands that have been widened, unless Run sets Plan.Wide.
	Types Types

	// Tensors is how many operands an elementwise operation has. Scalars is how many float64
	// constants follow them, at most 2; they are converted to the operands' element type before
	// anything is computed.
	Tensors, Scalars int
	// Cond says that the first operand is a bool tensor, whatever the others are.
	Cond bool
	// Bool says that the result is a bool tensor. Otherwise its type is that of the last operand.
	Bool bool
	// Expr builds the result from the operands and then the constants.
	Expr func(x ...*kernel.Expr) *kernel.Expr
	// Grad overrides the derivative with respect to operand i, which is otherwise derived from Expr.
	// Why says what is wrong with the derived one.
	Grad func(i int, x ...*kernel.Expr) *kernel.Expr
	Why  string
	// Ref is the operation in float64, written without Expr. Tests compare the operation with it,
	// within ULP units in the last place, on operands from the intervals of Domain: one for all
	// operands, or one for each.
	Ref    func(x ...float64) float64
	Domain []Interval
	ULP    float64
	// Reduces says that a structural operation folds axes. It becomes two methods of Tensor; the
	// second one keeps the axes.
	Reduces bool
	// Unlisted keeps the operation from becoming a method of Tensor.
	Unlisted bool

	// View returns where the result's elements lie in the operand's buffer. It returns false if they
	// can't be a view of this operand; then the caller copies the operand without gaps first. Strides
	// are never negative: an operation that reverses elements must copy them.
	View func(a *Attr, in View) (View, bool)
	// Run plans a command from the operands. If they don't fit it panics with a *Mistake.
	Run func(p *Plan)
	// VJP builds the gradient of a structural operation (the vector-Jacobian product): the gradient of
	// a loss with respect to operand i, from g, its gradient with respect to the result.
	VJP func(b Builder, c *Call, i int, g Value) Value
	// Saves says which values VJP needs, not only their shapes: bit i for operand i, SavesResult.
	Saves uint8
	// Batch is the batching rule of a structural operation: it enqueues the operation for all examples
	// of a batch at once. See Batched.
	Batch func(b Builder, s *Batch) Value
	// Indexed says that the second operand of a structural operation is an int64 tensor of indices,
	// whatever the first one is.
	Indexed bool
	// Fails says that values of the operands can make the operation fail: it
	// takes indices, or divides integers.
	Fails bool

	kernels [numTypes]atomic.Pointer[device.Kernel]
	lifted  atomic.Pointer[Def] // see Lifted
	each    *Def                // of a Def made by SumOf: the operation whose results are added up
	grads   [MaxInputs]atomic.Pointer[Gradient]
}

// SavesResult is the bit of Def.Saves for the operation's own result.
const SavesResult = 1 << 7

// An Interval is a range from which tests draw operands.
type Interval struct{ Lo, Hi float64 }

// Types is a set of element types.
type Types uint16

// The sets that operations work on. An operation on types for storage computes in their wide types and rounds its
// result once, see Def.Types. Small integers have an order, but no arithmetic, which would overflow unnoticed.
const (
	FullFloats Types = 1<<device.Float32 | 1<<device.Float64
	Floats     Types = FullFloats | 1<<device.Float16 | 1<<device.BFloat16
	Integers   Types = 1 << device.Int64
	Numbers    Types = Floats | Integers
	Ordered    Types = Numbers | 1<<device.Int32 | 1<<device.Uint8
	Bools      Types = 1 << device.Bool
	All        Types = Ordered | Bools
)

const numTypes = device.NumDTypes

// Has reports whether dt is in the set.
func (s Types) Has(dt device.DType) bool { return s>>dt&1 != 0 }

// String describes the set for messages: "float32 or float64".
func (s Types) String() string {
	text := ""
	for _, dt := range device.DTypes() {
		if !s.Has(dt) {
			continue
		}
		if text != "" {
			text += " or "
		}
		text += dt.String()
	}
	return text
}

// Classes are the functions that take indices as numbers of classes. Errors speak of them.
type Classes uint8

// The functions. The zero value is for indices that count from the end if they are negative.
const (
	NoClasses Classes = iota
	PickClasses
	TakeClasses
	OneHot
	BinCount
	manyClasses
)

func (c Classes) String() string {
	return [...]string{"", "PickClasses", "TakeClasses", "OneHot", "BinCount"}[c]
}

// An Attr holds what an operation needs besides tensors. Each operation reads
// only the fields that its definition names.
type Attr struct {
	Scalars [2]float64      // of elementwise operations, LayerNorm, RMSNorm
	Axes    []int           // reductions, Transpose
	Keep    bool            // reductions keep the reduced axes, with length 1
	Shape   device.Shape    // Reshape, BroadcastTo, ScatterAdd, gradients, creation
	DType   device.DType    // As, creation
	Axis    int             // Slice, Scatter, Put, Gather, ScatterAdd, Concat, CumSum, ArgSort, functions of rows
	From    int             // Slice, Scatter, Put, Concat
	To      int             // Slice: the end; Scatter: the length of the axis; ArgSort: how many
	Step    int             // Slice, Scatter, Put: from one element to the next; 0 means 1
	Classes Classes         // Gather, ScatterAdd: who takes indices as classes, so that negative ones are out of range
	Shared  int             // Gather, ScatterAdd: how many leading axes operand and indices have in common
	Window  *Window         // Conv2D, pooling and their gradients
	Back    bool            // CumSum: from the last element to the first; ArgSort: greatest first
	Func    kernel.MathFunc // HostMath
	Host    *HostFunc       // HostArray
	Key     uint64          // random draws; Fill, Scatter: the bits of an element; Iota: those of the first
	Pos     uint64          // random draws; Iota: the bits of the step
	Device  device.Device   // To
	Origin  device.Device   // To: where the operand is
	Local   any             // what only package tensor knows of an operation of its own: Attention; the tape lets it go
}

// A Value is a tensor, as definitions see it.
type Value interface {
	Shape() device.Shape
	DType() device.DType
}

// A Meta is a Value of which only shape and type are known. It stands for an operand or a result whose
// value the gradient does not need.
type Meta struct {
	Dims device.Shape
	Type device.DType
}

// Shape returns the shape.
func (m *Meta) Shape() device.Shape { return m.Dims }

// DType returns the element type.
func (m *Meta) DType() device.DType { return m.Type }

// A Call is one use of an operation, as its gradient sees it. In and Out hold a Meta where the
// gradient does not need the value.
type Call struct {
	Def  *Def
	Attr Attr
	Lazy bool             // its elements are computed when they are needed
	In   [MaxInputs]Value // nil where there is no operand
	Out  Value
}

// A Builder enqueues the operations that make up a gradient.
type Builder interface {
	// Elementwise runs d, which has an Expr, with broadcasting.
	Elementwise(d *Def, scalars [2]float64, x ...Value) Value
	// Structural runs d, which has a View or a Run, on x.
	Structural(d *Def, a Attr, x ...Value) Value
	// Zeros makes a tensor of zeros like x.
	Zeros(x Value) Value
}

// A View says where the elements of a tensor lie in its buffer.
type View struct {
	Shape   device.Shape
	Strides []int // in elements, 0 or more; nil: row-major without gaps
	Off     int   // of the first element
}

// A Plan is the command as which a structural operation runs. Def.Run reads Attr, In and Types and
// fills in the rest; the caller adds buffers and offsets.
type Plan struct {
	Attr  Attr
	In    [MaxInputs]View
	Types [MaxInputs]device.DType

	Shape device.Shape // of the result
	DType device.DType // of the result
	Wide  bool         // Run has planned for operands of a type for storage; the result has the wide type
	Cmd   device.Command
	Cost  int64 // estimated nanoseconds
}

// String returns the operation's name.
func (d *Def) String() string { return d.Name }

// Elements returns the element type of the result for operands of type dt.
func (d *Def) Elements(dt device.DType) device.DType {
	if d.Bool {
		return device.Bool
	}
	return dt
}

// Kernel returns the kernel of an elementwise operation for operands of type
// dt (the first is bool where Cond says so). It may be called concurrently,
// and returns the same kernel every time.
func (d *Def) Kernel(dt device.DType) *device.Kernel {
	if k := d.kernels[dt].Load(); k != nil {
		return k
	}
	return d.compile(dt)
}

func (d *Def) compile(dt device.DType) *device.Kernel {
	x := d.operands(dt)
	in := make([]device.DType, d.Tensors)
	for i := range in {
		in[i] = d.operand(i, dt)
	}
	e := d.Expr(x...)
	if e.DType() != d.Elements(dt).Wide() {
		panic(fmt.Sprintf("op: %s of %v makes %v", d.Name, dt, e.DType()))
	}
	e = kernel.Cast(e, d.Elements(dt))
	d.kernels[dt].CompareAndSwap(nil, device.NewKernel(d.Name, device.Map, e, e.DType(), in...))
	return d.kernels[dt].Load()
}

// operands returns the arguments of Expr for element type dt, of its wide type.
func (d *Def) operands(dt device.DType) []*kernel.Expr {
	x := make([]*kernel.Expr, 0, d.Tensors+d.Scalars)
	for i := range d.Tensors {
		of := d.operand(i, dt)
		x = append(x, kernel.Cast(kernel.Arg(i, of), of.Wide()))
	}
	for i := range d.Scalars {
		x = append(x, kernel.Imm(i, dt.Wide()))
	}
	return x
}

// Lifted returns d with its constant turned into an operand: the last one, of the element type of the
// others. d has exactly one constant. The result has the given name. Lifted may be called
// concurrently, and returns the same Def every time.
func (d *Def) Lifted(name string) *Def {
	if l := d.lifted.Load(); l != nil {
		return l
	}
	d.lifted.CompareAndSwap(nil, &Def{Name: name, Types: d.Types & Floats, Tensors: d.Tensors + 1, Bool: d.Bool, Unlisted: true, Expr: d.Expr})
	return d.lifted.Load()
}

// Widens reports whether d is a structural operation that computes, so that operands of a type for storage have to be
// converted to their wide type first. One made by SumOf converts the results that it adds up.
func (d *Def) Widens() bool { return d.Run != nil && d.Types != All && d.each == nil }

// Operand returns the element type of operand i of a structural operation on tensors of type dt.
func (d *Def) Operand(i int, dt device.DType) device.DType {
	if d.Indexed && i == 1 {
		return device.Int64
	}
	return dt
}

// operand returns the element type of operand i of an elementwise operation when the others have type dt.
func (d *Def) operand(i int, dt device.DType) device.DType {
	if d.Cond && i == 0 {
		return device.Bool
	}
	return dt
}

var all []*Def

// define adds d to the operations of List.
func define(d *Def) *Def {
	all = append(all, d)
	return d
}

// List returns every operation, in the order of definition.
func List() []*Def { return all }
