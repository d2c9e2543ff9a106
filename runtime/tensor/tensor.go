// Package tensor provides asynchronous tensors.
//
// A call puts an operation on the queue of a device and returns a handle of its result at once. The result may not
// exist yet, but the handle can be an operand of more operations. The program waits only where it looks at a value.
// (If the operands are computed and the result has only a few elements, the call computes it: this takes less time
// than to put it on a queue.)
//
//	x := tensor.Randn(1000, 1000)
//	y := x.MatMul(x).Tanh().Sum() // returns at once
//	fmt.Println(y.Item())         // waits
//
// These wait for their tensor: Item, ItemInt, ItemOf, At, Float32s, Float64s, Int64s, Bools, SliceOf, Matrix,
// MarshalJSON, everything that prints (String, Format, LogValue), Wait, and the forms with a context (ItemContext,
// Float32sContext, WaitContext). Item, ItemInt and prints of an [F64], [I64] or [Cond] wait as well. WaitAll and
// Synchronize of package asyncrt wait for more than one tensor. Other calls do not wait, except in special cases that
// their documentation names, such as [Either] of sides that differ in shape, or [Tensor.MulF64] of integers. Shapes and
// element types are known before values are.
//
// # Values
//
// A Tensor never changes; operations return new tensors. State that changes is in a [Cell]: a [Param], a [Buffer] or
// the position of a [Generator]. Tensors are garbage-collected like any Go value, and several goroutines may use one.
//
// Element types are float32 (the default), float64, int64 and bool. Operands of
// one operation have the same type and are on the same device; [Tensor.As] and
// [Tensor.To] convert. Broadcasting, negative axes and tensors without elements
// work as in NumPy.
//
// # Without a wait
//
// Often a program can do without looking at a value. [Tensor.F64] returns a number that may not have been computed
// yet: it can be used in arithmetic and as a constant of operations. [Tensor.RowAt] and [Tensor.Take] take indices
// that are tensors. [VMap] does for all rows of a batch at once what a loop does row by row.
//
// # In one pass
//
// An operation reads its operands from memory and writes its result there. From [Tensor.Lazy] to [Tensor.Eager],
// elementwise operations are computed together, and read and write only once, with the same bits and gradients. [Fuse]
// makes one operation of such a chain for good.
//
// # Several devices
//
// A program can have tensors and parameters on several devices. [Tensor.To] copies a tensor from one to another.
// [AllReduce] adds up the tensors of several devices; the bits of the sum do not depend on how many there are.
// [AllReduceOver] does so for several processes, on any machines.
//
// # Errors
//
// A mistake in the program, such as shapes that do not fit, panics with a [*Mistake] at the call, before anything is
// enqueued. A failure at run time (out of memory, a lost device, an integer divided by 0) becomes the error of the
// result, and of all that is computed from it. Wait returns that error, and the reads panic with it. It is an
// *asyncrt.OpError, which names the operation and the line that enqueued it.
//
// # Gradients
//
// The value of a Param is tracked, and so is what [Tensor.Track] returns. A result is tracked if one of its operands
// is. [Tensor.Backward] adds to the gradients of the parameters; [Grad] returns gradients.
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
	lazy    laziness
	dead    uint32 // where the program said that it will not use the handle again, see Dead; 0: it did not
}

// inlineRank is the number of axes up to which a result holds its own shape. With one more, a result would no longer
// fit in 256 bytes, a size class of Go's allocator, and each would take about 30 ns more
// (TestResultFitsItsSizeClass).
const inlineRank = 3

// A body is what the handles of one result share. Each handle counts as one holder of the storage; see another.
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

// The element types. The last four are for storage. Tensors of them are made, read, moved, viewed and converted like
// others. Elements of Float16 and BFloat16 are computed in float32: each operation rounds its result once. Int32 and
// Uint8 can be compared, but arithmetic wants them converted with [Tensor.As], as it would soon overflow.
const (
	Float32  = device.Float32
	Float64  = device.Float64
	Int64    = device.Int64
	Bool     = device.Bool
	Float16  = device.Float16
	BFloat16 = device.BFloat16
	Int32    = device.Int32
	Uint8    = device.Uint8
)

// A Mistake is the value that a call panics with when the program asks for something impossible.
type Mistake = op.Mistake

// eng returns the engine of the process.
var eng = engine.Default

// newResult returns a tensor whose elements are about to be computed. It copies shape, because a result must not keep
// the memory of an operand alive. A handle that will be tracked has its body in separate memory: a detached handle
// shares the body, and must not keep the graph alive.
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

// Device returns the device that holds the elements, with the scope of the tensor, for which see
// [device.WithContext]. It never waits.
//
//asyncgen:api meta
func (t *Tensor) Device() device.Device { return t.storage.Device() }

// Soon is like [Tensor.Ready], but first computes t if the calling goroutine can do so in about 50 µs. It never
// waits. On a device with processors of its own, such as a GPU, it is the same as Ready.
//
//asyncgen:api poll
//go:noinline
func (t *Tensor) Soon() bool {
	t.mustLive("Soon")
	return t.now().storage.Hasten()
}

// Ready reports whether a read would return, or panic, without waiting: either the elements have been computed, or t
// has failed. A read may still have to copy them from the device. Ready never waits.
//
//asyncgen:api poll
func (t *Tensor) Ready() bool {
	t.mustLive("Ready")
	return t.now().storage.Ready()
}

// view returns how t's elements lie in its storage: shape, strides and offset.
func (t *Tensor) view() op.View {
	return op.View{Shape: t.shape, Strides: t.strides, Off: t.off}
}

// wrong panics with a Mistake that lists the shapes and types of the given tensors. If text is op.MistakeDevices, it
// lists their devices too.
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
