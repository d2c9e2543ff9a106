// Package tensor provides asynchronous tensors.
//
// A call puts work on the queue of a device and returns: what it returns is a handle of a result
// that may not exist yet, and can be used at once as an operand of more work. The program waits
// only where it looks at a value. (A result of a few numbers, made of what is there, is computed by
// the call, as that takes less than to put it on a queue.)
//
//	x := tensor.Randn(1000, 1000)
//	y := x.MatMul(x).Tanh().Sum() // returns at once
//	fmt.Println(y.Item())         // waits
//
// What waits: Item, ItemInt, ItemOf, At, Float32s, Float64s, Int64s, Bools,
// SliceOf, Matrix, MarshalJSON, everything that prints (String, Format,
// LogValue), Wait, and the forms with a context (ItemContext, Float32sContext,
// WaitContext), for that tensor; WaitAll and Synchronize of package asyncrt
// for more. Nothing else does. Shapes and element types are known before
// values are.
//
// # Values
//
// A Tensor never changes; operations return new tensors. What changes is a
// [Cell]: a [Param], a [Buffer], the position of a [Generator]. Handles are collected
// like any Go value, and may be used by several goroutines.
//
// Element types are float32 (the default), float64, int64 and bool. Operands of
// one operation have the same type and are on the same device; [Tensor.As] and
// [Tensor.To] convert. Broadcasting, negative axes and tensors without elements
// work as in NumPy.
//
// # Without a wait
//
// What a program looks at a value for can often stay on the device. [Tensor.F64]
// is Item as a number that may not have been computed yet, for host arithmetic
// and as a constant of operations; [Tensor.RowAt] and [Tensor.Take] take indices
// that are tensors; [VMap] does for all rows of a batch what a loop does row by row.
//
// # In one pass
//
// An operation reads its operands from memory and writes its result there. [Fuse] makes one operation
// of a chain of elementwise ones, with the same bits and a gradient, that does so once.
//
// # Several devices
//
// Tensors and parameters live on any devices of a program, side by side. [Tensor.To] copies from
// one to another, and [AllReduce] adds up what several have, with bits that don't depend on how
// many there are.
//
// # Errors
//
// A mistake in the program, such as shapes that do not fit, panics with a
// [*Mistake] at the call, before anything is enqueued. A failure of the world (out
// of memory, a lost device) or of a value (an integer divided by 0) travels
// with the data: Wait returns it and the reads panic with it, an
// *asyncrt.OpError that names the operation and the line that enqueued it.
//
// # Gradients
//
// A result is tracked if an operand is; the value of a Param is, and what
// [Tensor.Track] returns. [Tensor.Backward] adds to the gradients of the
// parameters, [Grad] returns gradients.
package tensor

import (
	"slices"

	"github.com/asyncgen/asyncgen/device"
	_ "github.com/asyncgen/asyncgen/device/cpu" // importing tensors is enough to compute
	_ "github.com/asyncgen/asyncgen/device/sim"
	"github.com/asyncgen/asyncgen/runtime/internal/engine"
	"github.com/asyncgen/asyncgen/runtime/internal/tape"
	"github.com/asyncgen/asyncgen/runtime/op"
)

// A Tensor is an array of elements of one type, with any number of axes, on
// one device. It never changes. Its elements may not have been computed yet;
// see the package comment for what waits for them.
//
// All methods may be called from several goroutines, except for Backward on
// tensors that share a graph.
type Tensor struct {
	storage *engine.Storage
	node    *tape.Node // where it came from, if it is tracked
	shape   device.Shape
	strides []int // in elements; nil: row-major without gaps
	off     int   // of the first element in the storage
	size    int
	dtype   device.DType
	dead    uint32 // where the program said that it will not use the handle again, see Dead; 0: it did not
}

// inlineRank is how many axes a result may have before its shape needs memory of its own. With
// one more, a result would no longer fit in 256 bytes, a size class of Go's allocator, and
// each take some 30 ns more (TestResultFitsItsSizeClass).
const inlineRank = 3

// A body is what the handles of one result share. Each handle is one holder of the storage, see another.
type body struct {
	own  engine.Storage
	dims [inlineRank]int
}

// A result is a Tensor with its body, in one piece of memory.
type result struct {
	Tensor
	body
}

// DType is the type of a tensor's elements.
type DType = device.DType

// The element types.
const (
	Float32 = device.Float32
	Float64 = device.Float64
	Int64   = device.Int64
	Bool    = device.Bool
)

// A Mistake is the value that a call panics with when the program asks for something impossible.
type Mistake = op.Mistake

// eng returns the engine that everything runs on.
var eng = engine.Default

// newResult returns a tensor whose elements are about to be computed. It
// copies shape: a result must not keep the memory of an operand alive. A
// handle that is going to be tracked has its body apart, so that a detached
// handle, which shares the body, does not keep the graph alive.
func newResult(dev device.Device, dt device.DType, shape device.Shape, tracked bool) *Tensor {
	var t *Tensor
	var b *body
	if tracked {
		t, b = &Tensor{}, &body{}
	} else {
		r := &result{}
		t, b = &r.Tensor, &r.body
	}
	if len(shape) <= inlineRank {
		t.shape = b.dims[:copy(b.dims[:], shape):len(shape)]
	} else {
		t.shape = slices.Clone(shape)
	}
	t.size, t.dtype = shape.Size(), dt
	t.storage = &b.own
	b.own.Init(eng(), dev, int64(t.size)*int64(dt.Size()))
	return t
}

// Shape returns the lengths of the axes. It never waits. The caller may change the result.
//
//asyncgen:api meta
func (t *Tensor) Shape() device.Shape { return slices.Clone(t.shape) }

// DType returns the element type. It never waits.
//
//asyncgen:api meta
func (t *Tensor) DType() DType { return t.dtype }

// Rank returns the number of axes. It never waits.
//
//asyncgen:api meta
func (t *Tensor) Rank() int { return len(t.shape) }

// Size returns the number of elements. It never waits.
//
//asyncgen:api meta
func (t *Tensor) Size() int { return t.size }

// Dim returns the length of an axis; negative ones count from the last. It never waits.
//
//asyncgen:api meta
func (t *Tensor) Dim(axis int) int { return t.shape[t.axis("Dim", axis)] }

// Device returns where the elements are, and in which scope, see [device.WithContext]. It never waits.
//
//asyncgen:api meta
func (t *Tensor) Device() device.Device { return t.storage.Device() }

// Soon computes t if the caller can do that itself in a moment, and reports whether t is
// [Tensor.Ready]. So it does not wait, but may take some 50 µs. For a device with processors of its
// own, such as a GPU, it is the same as Ready.
//
//asyncgen:api poll
//go:noinline
func (t *Tensor) Soon() bool {
	t.mustLive("Soon")
	return t.storage.Hasten()
}

// Ready reports whether the elements have been computed, or will never be
// because of an error: whether a read would return without waiting, apart from
// copying them from the device. It never waits.
//
//asyncgen:api poll
func (t *Tensor) Ready() bool {
	t.mustLive("Ready")
	return t.storage.Ready()
}

// view is how t's elements lie in its storage.
func (t *Tensor) view() op.View {
	return op.View{Shape: t.shape, Strides: t.strides, Off: t.off}
}

// wrong panics with a Mistake that lists the shapes and types of the given tensors, and their devices
// if text is op.MistakeDevices.
func wrong(name, text string, about ...*Tensor) {
	m := &Mistake{Op: name, Text: text}
	for _, t := range about {
		m.Shapes = append(m.Shapes, t.Shape())
		m.DTypes = append(m.DTypes, t.dtype)
		if text == op.MistakeDevices {
			m.Devices = append(m.Devices, t.storage.Device())
		}
	}
	panic(m)
}
