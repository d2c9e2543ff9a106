package device

import (
	"fmt"
	"slices"
	"sync/atomic"
)

// A Code says which of the fixed ways of computing a Kernel uses. The comment of each code says what it
// reads from its Command. Args.Shape and Args.Strides are nil when every operand is contiguous and of
// the output's shape.
//
// Elements of a type for storage are only moved and converted: by Copy, Concat, Fill, Gather, Upload
// and Download, and by the expressions of Map and of a Reduce with a kernel.FoldOf.
type Code uint8

const (
	// Map computes each element of the output from the elements at the same place of its inputs, by
	// Kernel.Body. This is an expression (package device/kernel); its immediates are Command.Imm.
	// N elements; Args.Shape and Args.Strides broadcast (stride 0) and step through views. The output
	// is contiguous. It may be exactly the memory of a contiguous input whose elements have the same
	// size. Inputs and immediates that have no place in a Command are in Args.Parts and Args.Imm.
	Map Code = iota
	// Reduce folds the trailing axes of In[0] by Kernel.Body, a reducer (package device/kernel). If
	// Kernel.Body is a kernel.FoldOf, Reduce folds the values of its expression of all inputs
	// instead; each input has strides of its own, and what Map says of further inputs and immediates
	// holds here, too. With Args.Parts, Args.Shape has at most [MaxWideAxes] axes. Args.Shape is the
	// input's shape with the kept axes first, and Args.Kept is how many these are. Args.Strides[1] are
	// the input's strides in that order. The output is contiguous over the kept axes. The order of
	// combination depends on the reduced length alone.
	Reduce
	// ArgReduce finds the greatest or the least element along the trailing axes of In[0];
	// Kernel.Body is the reducer max or min. The result is an int64 index into these axes, in
	// row-major order: that of the first of equal elements, or of the first NaN, or -1 if there are no
	// elements. Arguments as for Reduce.
	ArgReduce
	// Scan folds the trailing axes of In[0] by Kernel.Body, a reducer, element by element in
	// row-major order, and keeps each step. So the output has as many elements as the input.
	// Arguments as for Reduce. If Args.Ints[0] is 1 instead of 0, Scan goes from the last element to
	// the first. The output fills its N elements without gaps. Args.Strides[0], its strides over
	// Args.Shape, give their order; nil: row-major.
	Scan
	// ArgSort sorts the elements along the trailing axes of In[0] as package kernel's ArgSort does.
	// The result are the int64 indices, into these axes in row-major order, of the first Args.Ints[0]
	// elements: from the least on or, if Args.Ints[1] is 1 instead of 0, from the greatest. Arguments
	// as for Reduce. The output has the kept axes and then one of length Args.Ints[0]. It has no
	// gaps, and Args.Strides[0] give the order of its elements; nil: row-major.
	ArgSort
	// Rows applies Kernel.Body, a function of rows (package device/kernel), to the elements along the
	// trailing axes of In[0]. The result has as many elements. Arguments as for Reduce; the output is
	// as that of Scan. A function that takes eps has it in Imm[0], the Bits of an element. It may
	// have a gain in In[1] and a bias in In[2], the same for all rows. Args.Strides[2] and [3] are
	// their strides over the trailing axes alone.
	Rows
	// MatMul is Out[i,j] = sum over k of A[i,k] * B[k,j]. The sum is accumulated from 0 over k in
	// increasing order. Each step rounds once (package device/kernel, MulAdd); a device may round
	// twice in every step instead. Args.Ints is m, n, k; Args.Strides[1] and [2] are the row and
	// column strides of A and B. Out is contiguous. If Args.Shape is not empty, there is such a
	// product for each index into it, and the strides over it come before those of rows and columns.
	//
	// If Kernel.Body is not nil, it is an expression (package device/kernel) that makes each element
	// of Out from the sum, its operand 0. Operand 1, if there is an In[2], is the element of that
	// vector for the column. Args.Strides[3] is one stride, that of the vector; immediates are
	// Command.Imm. The bits are those of a product followed by a Map. See Caps.Epilogues.
	MatMul
	// Conv is, for the planes n,g,o and their elements i,j,
	//
	//	Out[n,g,o,i,j] = sum over c, k and l of A[n,g,c,y,x] * B[g,o,c,k,l]
	//
	// The windows give the places in A: y is Args.Window[0].At(i, k), and x is Args.Window[1].At(j,
	// l). Where At reports false there is no summand. Elements outside of A count as 0. The sum is
	// accumulated from 0 over c, k and l in row-major order, like a sum of MatMul. Args.Shape has the
	// lengths of n, g and o, and Args.Ints that of c. Args.Strides[1] are the strides of A over n, g,
	// c, rows and columns, and Args.Strides[2] those of B over g, o, c, k and l. Args.Strides[0] are
	// the strides of Out's planes over n, g and o; nil: contiguous. Each plane of Out is contiguous.
	Conv
	// Pool folds windows of planes by Kernel.Body, the reducer sum or max. Element i,j of a plane of
	// Out folds the elements y,x of the same plane of In[0], in row-major order over k and l, with y
	// and x as in Conv. Elements outside of the plane are left out. A sum begins with 0; the maximum
	// of no elements is -Inf. Args.Shape numbers the planes, and Args.Strides[1] are the strides of
	// In[0] over Args.Shape, rows and columns. The output is contiguous.
	Pool
	// ArgPool finds the greatest element of each window; Kernel.Body is the reducer max. The result is
	// an int64 index into the plane, in row-major order: that of the first of equal elements, or of
	// the first NaN, or -1 if there are no elements. The arguments are those of Pool.
	ArgPool
	// Gather selects elements of In[0] by the int64 indices In[1]. The element for a place in
	// Args.Shape is where the strides of In[0] lead, plus Args.Ints[1] times the index at that place.
	// It goes to the same place of the output. Indices are at least [Args.LeastIndex] and below
	// Args.Ints[0]; negative ones count from Args.Ints[0]. If an index is out of range, the command
	// fails with an [IndexError] about the first such index in row-major order. N elements; the output
	// is contiguous.
	Gather
	// ScatterAdd is the reverse of Gather. The N elements of the output begin as 0. Each element of
	// In[0] over Args.Shape is added, in row-major order, to the element of the output that
	// Args.Strides[0] and the index from In[1] lead to.
	ScatterAdd
	// Copy copies In[0], a view, to the output. N elements. Args.Shape and Args.Strides[1] describe a
	// view that is not contiguous. Args.Strides[0] describe an output that is not contiguous: the
	// elements in between keep their values. Without Args the output may be memory of another device,
	// see [Reaches].
	Copy
	// Concat puts Args.Parts side by side. Each of the Args.Shape[0] rows of the output has Part.N
	// elements of each part, in the order of the parts. N elements in all. A part has as many rows as
	// the output, without gaps. The kernel has no In.
	Concat
	// Fill sets N elements to Imm[0], the bits of one element.
	Fill
	// Iota sets element i to Imm[0] + i*Imm[1]. The immediates are the bits of values of the output's
	// dtype, and the arithmetic is that of this dtype.
	Iota
	// Random draws N elements from the Philox stream with the key Imm[0],
	// starting at position Imm[1], distributed as Kernel.Body says (package
	// device/kernel). Args.Ints is lo, hi for random integers from [lo, hi).
	Random
	// Math computes N float64 elements from those at the same place of one or two inputs, by
	// Kernel.Body. This is a function of Go's package math (package device/kernel), and the bits are
	// those that it gives on the host. All operands are contiguous. Only the host's processors have
	// to support Math; on other devices, such commands may fail with ErrUnsupported.
	Math
	// Host computes N float64 elements by Kernel.Body, a Go function (package device/kernel) that is called once for
	// each of Args.Ints[0] examples of a batch. Args.Ints[1] and, if there are two inputs, Args.Ints[2] are how many
	// elements of an input belong to an example; what follows is for the function. All operands are contiguous. If the
	// function returns an error, the command fails with it. What Math says about other devices holds here, too.
	Host
	// Upload copies N elements from In[0], a buffer of host memory, to Out, a buffer of the
	// device. Both are contiguous.
	Upload
	// Download copies N elements from In[0], a buffer of the device, to Out, a
	// buffer of host memory. Both are contiguous.
	Download
	// Send sends N elements from In[0], a buffer of host memory, to the process that the device stands for, and
	// Receive receives N elements into Out, a buffer of host memory. Both are contiguous. Only devices of package
	// device/wire know them. Imm[0] says what the message is: both ends have to say the same. Send has an Out
	// without elements. A message whose operation can't run, because an input has failed for example, is submitted
	// all the same, without In[0] or Out: the other end counts on it.
	Send
	Receive
)

var codes = [...]string{
	Map:        "map",
	Reduce:     "reduce",
	ArgReduce:  "argreduce",
	Scan:       "scan",
	ArgSort:    "argsort",
	Rows:       "rows",
	MatMul:     "matmul",
	Conv:       "conv",
	Pool:       "pool",
	ArgPool:    "argpool",
	Gather:     "gather",
	ScatterAdd: "scatteradd",
	Copy:       "copy",
	Concat:     "concat",
	Fill:       "fill",
	Iota:       "iota",
	Random:     "random",
	Math:       "math",
	Host:       "host",
	Upload:     "upload",
	Download:   "download",
	Send:       "send",
	Receive:    "receive",
}

// String is the code's name: "map".
func (c Code) String() string {
	if int(c) >= len(codes) {
		return fmt.Sprintf("code(%d)", uint8(c))
	}
	return codes[c]
}

// IsMessage reports whether c is Send or Receive.
func (c Code) IsMessage() bool { return c == Send || c == Receive }

// MaxOperands is how many buffers a Command holds in place: the output and up to three inputs.
const MaxOperands = 4

// Limits of what a Map, or a Reduce of a kernel.FoldOf, takes. OpenCL guarantees 1024 bytes for the arguments of a
// kernel, and that is what fits.
const (
	MaxInputs   = 7
	MaxImms     = 8
	MaxWideAxes = 4 // of a Reduce with Args.Parts
)

// A Kernel is a computation that backends know how to run, for fixed element types. Kernels are made
// once, by NewKernel, and compared by identity. A backend keeps compiled code under a kernel's ID.
type Kernel struct {
	ID   int    // dense, from 0
	Name string // for people: "add", "sum"
	Code Code
	Out  DType
	In   []DType
	Body Body // what Code says, or nil
}

// A Body is what a Kernel does per element: an expression, a reducer, a
// distribution. Package device/kernel has them all.
type Body interface {
	// Key identifies the computation: equal keys compute the same bits.
	Key() string
}

var kernels atomic.Int64

// NewKernel makes a kernel. Callers keep it: kernels are never freed.
func NewKernel(name string, code Code, body Body, out DType, in ...DType) *Kernel {
	return &Kernel{ID: int(kernels.Add(1)) - 1, Name: name, Code: code, Body: body, Out: out, In: in}
}

// A Command asks a backend to run a Kernel once. It is a value: queues copy
// it, and no part of it is changed after it was submitted.
type Command struct {
	Kernel *Kernel
	N      int                  // elements of the output
	Buf    [MaxOperands]*Buffer // the output, then the inputs
	Off    [MaxOperands]int     // where each operand begins in its buffer, in elements
	Imm    [2]uint64            // immediates, as the kernel's Code says
	Args   *Args                // nil if the fields above say all
	Stamp  *Stamp               // its times by a VirtualClock; nil: nobody needs them
}

// Args are the parts of a Command that most commands do not have.
type Args struct {
	Shape   Shape              // the space that is iterated over
	Kept    int                // see Reduce
	Strides [MaxOperands][]int // of each operand over Shape, in elements, 0 or more; nil: contiguous
	Ints    []int              // see Scan, ArgSort, MatMul, Conv, Gather and Random
	Window  *[2]Window         // see Conv and Pool: along rows and along columns
	Parts   []Part             // see Concat; of a Map or Reduce: the operands from MaxOperands on
	Imm     []uint64           // of a Map or Reduce: the immediates beyond those in Command.Imm
}

// Operand returns operand i of a Map or Reduce: its buffer, and where it begins there, in elements.
func (c *Command) Operand(i int) (b *Buffer, off int) {
	if i < MaxOperands {
		return c.Buf[i], c.Off[i]
	}
	p := &c.Args.Parts[i-MaxOperands]
	return p.Buf, p.Off
}

// Strides returns the strides of operand i of a Map or Reduce over Args.Shape; nil: it is contiguous.
func (c *Command) Strides(i int) []int {
	switch {
	case c.Args == nil:
		return nil
	case i < MaxOperands:
		return c.Args.Strides[i]
	}
	return c.Args.Parts[i-MaxOperands].Strides
}

// Immediate returns immediate i of a Map or Reduce.
func (c *Command) Immediate(i int) uint64 {
	if i < len(c.Imm) {
		return c.Imm[i]
	}
	return c.Args.Imm[i-len(c.Imm)]
}

// LeastIndex is the least index that Gather and ScatterAdd accept: -Ints[0], or 0 if Ints[2] exists
// and is 1. Numbers of classes use the latter: they don't count from the end.
func (a *Args) LeastIndex() int64 {
	if len(a.Ints) > 2 && a.Ints[2] == 1 {
		return 0
	}
	return -int64(a.Ints[0])
}

// Clone returns a copy of a that shares no memory with it; nil for nil.
func (a *Args) Clone() *Args {
	if a == nil {
		return nil
	}
	c := *a
	c.Shape, c.Ints, c.Parts, c.Imm = slices.Clone(a.Shape), slices.Clone(a.Ints), slices.Clone(a.Parts), slices.Clone(a.Imm)
	for i, s := range a.Strides {
		c.Strides[i] = slices.Clone(s)
	}
	for i := range c.Parts {
		c.Parts[i].Strides = slices.Clone(c.Parts[i].Strides)
	}
	if a.Window != nil {
		w := *a.Window
		c.Window = &w
	}
	return &c
}

// A Part is an input of a Concat, Map or Reduce. A Concat may have any number of them.
type Part struct {
	Buf     *Buffer
	Off     int   // where it begins in its buffer, in elements
	N       int   // of Concat: elements of a row
	Strides []int // else: as in Args
}

// A Window says which elements of an axis are combined into a place of the result, see [Conv]. Place i
// of the result and place k of the window stand for the element with the index
// (i*Stride - Pad + k*Step) / Holes, or for none if that is not an integer.
type Window struct {
	In, Out, Size int // how many elements, places of the result, and places of the window there are
	Stride        int // at least 1
	Pad, Step     int // may be negative
	Holes         int // at least 1
}

// At is the index of the element for place i of the result and place k of the window. It may be outside
// of the axis. ok is false if there is no element.
func (w *Window) At(i, k int) (index int, ok bool) {
	at := i*w.Stride - w.Pad + k*w.Step
	index = at / w.Holes
	return index, at == index*w.Holes
}

// An IndexError is the failure of a command that reads its indices from a buffer, and finds one out of
// range.
type IndexError struct {
	Index  int64
	Length int // of the axis
}

// Error is "index 7 is out of range of an axis of length 5".
func (e *IndexError) Error() string {
	return fmt.Sprintf("index %d is out of range of an axis of length %d", e.Index, e.Length)
}
