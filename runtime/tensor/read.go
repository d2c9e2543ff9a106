package tensor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"runtime"
	"time"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/kernel"
	"github.com/asyncgen/asyncgen/runtime/internal/engine"
	"github.com/asyncgen/asyncgen/runtime/op"
	"gonum.org/v1/gonum/mat"
)

// What waits: each of these functions waits for its own tensor only. The waiting goroutine may help to compute it.
// If the tensor failed, the reads panic with its *asyncrt.OpError; Wait, MarshalJSON and the Context forms return it.

// Wait waits until t has been computed and returns the error if that failed.
//
//asyncgen:api wait
//go:noinline
func (t *Tensor) Wait() error {
	t.mustLive("Wait")
	return t.now().storage.Wait(context.Background(), "Wait")
}

// Wait waits until all of ts have been computed, in one wait, and returns the
// error of the first that failed.
//
//asyncgen:api wait 0
//go:noinline
func Wait(ts ...*Tensor) error {
	storages := make([]*engine.Storage, len(ts))
	for i, t := range ts {
		if t == nil {
			wrong("Wait", op.MistakeNil)
		}
		t.mustLive("Wait")
		storages[i] = t.now().storage
	}
	return engine.WaitEach(context.Background(), "Wait", storages)
}

// WaitContext is like Wait, but returns the context's error as soon as the context ends. The computation goes on.
// If t is computed already, WaitContext reports that, even if the context has ended.
//
//asyncgen:api wait
//go:noinline
func (t *Tensor) WaitContext(ctx context.Context) error {
	t.mustLive("WaitContext")
	return t.now().storage.Wait(ctx, "WaitContext")
}

// Item returns the value of a one-element tensor as a float64. True is 1. An int64 is converted as Go converts it,
// which is inexact above 2^53; ItemInt is exact. Item panics unless t has exactly one element.
//
//asyncgen:api read f64=ItemF64
//go:noinline
func (t *Tensor) Item() float64 { return number(t.item("Item"), t.dtype) }

// ItemContext is like Item, but returns errors: t's error if t failed, or the context's error if the context ends
// before t is computed. If t is computed already, its value is returned even if the context has ended. On a device
// whose memory the host can't reach this needs a copy, which may have to wait for other work there; it gets 5 ms.
//
//asyncgen:api read
//go:noinline
func (t *Tensor) ItemContext(ctx context.Context) (float64, error) {
	t.single("ItemContext")
	bits, err := t.load(ctx, "ItemContext", t.off)
	if err != nil {
		return 0, err
	}
	return number(bits, t.dtype), nil
}

// ItemInt returns the value of a one-element tensor of integers or bools. True is 1. It panics if t has another type,
// or unless it has exactly one element.
//
//asyncgen:api read index=I64
//go:noinline
func (t *Tensor) ItemInt() int64 {
	t.whole("ItemInt")
	return int64(kernel.WideBits(t.item("ItemInt"), t.dtype))
}

// whole panics unless t has integers or bools. The panic names the given method.
func (t *Tensor) whole(name string) {
	if t.dtype.IsFloat() {
		wrong(name, op.MistakeType+" (it takes "+(op.All&^op.Floats).String()+": convert with As)", t)
	}
}

// ItemOf returns the value of a one-element tensor with elements of type T. It panics if t has another type, or
// unless it has exactly one element.
//
//asyncgen:api read 0
//go:noinline
func ItemOf[T device.Element](t *Tensor) T {
	is[T](t, "ItemOf")
	t.single("ItemOf")
	return slice[T](t, "ItemOf")[0]
}

// At returns the element at index, which has one number for each axis, as a float64. True is 1. Negative numbers
// count from the end of an axis. At panics if the index is out of range, or if the element is an int64 that a
// float64 can't hold exactly; AtInt returns such elements.
//
//asyncgen:api read
//go:noinline
func (t *Tensor) At(index ...int) float64 {
	bits := t.at("At", index)
	v := number(bits, t.dtype)
	if t.dtype == Int64 && (v >= -math.MinInt64 || int64(v) != int64(bits)) {
		wrong("At", fmt.Sprintf("%s, such as %d: AtInt returns an int64", op.MistakeExact, int64(bits)), t)
	}
	return v
}

// AtInt returns the element of a tensor of integers or bools at index, which is as in At. True is 1. It panics if t has
// another type or if the index is out of range.
//
//asyncgen:api read
//go:noinline
func (t *Tensor) AtInt(index ...int) int64 {
	t.whole("AtInt")
	return int64(kernel.WideBits(t.at("AtInt", index), t.dtype))
}

// at waits for t and returns the bits of the element at index.
func (t *Tensor) at(name string, index []int) uint64 {
	if len(index) != len(t.shape) {
		wrong(name, fmt.Sprintf("%s: index %v", op.MistakeRank, index), t)
	}
	at := t.off
	strides := t.strides
	if strides == nil {
		strides = t.shape.Strides()
	}
	for axis, i := range index {
		at += strides[axis] * t.index(name, i, t.shape[axis], t.shape[axis])
	}
	bits, err := t.load(context.Background(), name, at)
	if err != nil {
		panic(err)
	}
	return bits
}

// Float32s returns a copy of the elements of a float32 tensor, in row-major
// order. It panics if t has another type.
//
//asyncgen:api read
//go:noinline
func (t *Tensor) Float32s() []float32 { return slice[float32](t, "Float32s") }

// Float32sContext is like Float32s, but returns errors: t's error if t failed, or the context's error if the context
// ends before t is computed and copied. If t is computed already and has at most 65,536 elements, they are returned
// even if the context has ended, as by ItemContext.
//
//asyncgen:api read
//go:noinline
func (t *Tensor) Float32sContext(ctx context.Context) ([]float32, error) {
	return sliceContext[float32](ctx, t, "Float32sContext")
}

// Float64s returns a copy of the elements of a float64 tensor, in row-major
// order. It panics if t has another type.
//
//asyncgen:api read
//go:noinline
func (t *Tensor) Float64s() []float64 { return slice[float64](t, "Float64s") }

// Int64s returns a copy of the elements of an int64 tensor, in row-major
// order. It panics if t has another type.
//
//asyncgen:api read
//go:noinline
func (t *Tensor) Int64s() []int64 { return slice[int64](t, "Int64s") }

// Bools returns a copy of the elements of a bool tensor, in row-major order.
// It panics if t has another type.
//
//asyncgen:api read
//go:noinline
func (t *Tensor) Bools() []bool { return slice[bool](t, "Bools") }

// SliceOf returns a copy of the elements of a tensor of type T, in row-major order. It panics if t has another type. It
// is the inverse of [Of]: the elements of a float16 tensor are Float16Bits, which have a method Float32.
//
//asyncgen:api read 0
//go:noinline
func SliceOf[T device.Element](t *Tensor) []T { return slice[T](t, "SliceOf") }

// Matrix returns a copy of a floating-point matrix for gonum. It panics if t has another type, is not a matrix, or
// has no elements: gonum has no empty matrices.
//
//asyncgen:api read
//go:noinline
func (t *Tensor) Matrix() *mat.Dense {
	if len(t.shape) != 2 {
		wrong("Matrix", op.MistakeRank, t)
	}
	if !t.dtype.IsFloat() {
		wrong("Matrix", op.Unsupported(op.Floats), t)
	}
	if t.size == 0 {
		wrong("Matrix", op.MistakeEmpty, t)
	}
	return mat.NewDense(t.shape[0], t.shape[1], t.numbers("Matrix"))
}

// MarshalJSON waits for t and returns its elements as numbers or booleans in nested arrays. It returns t's error if
// t failed, and an error if an element is NaN or infinite, which JSON can't express.
//
//asyncgen:api read
//go:noinline
func (t *Tensor) MarshalJSON() ([]byte, error) {
	h, err := t.onHost(context.Background(), "MarshalJSON")
	defer t.doneWith(h)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = h.walk(func(i int, bits uint64) error {
		if t.dtype.IsFloat() {
			if v := number(bits, t.dtype); math.IsNaN(v) || math.IsInf(v, 0) {
				return fmt.Errorf("tensor: MarshalJSON: element %d is %v, which JSON can't express", i, v)
			}
		}
		text, err := json.Marshal(value(bits, t.dtype))
		b.Write(text)
		return err
	}, func(bracket string) { b.WriteString(bracket) }, ",")
	if err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// onHost waits for t and returns t, or a copy of it in memory that the host can reach. The caller passes the result
// to doneWith when it has read it.
func (t *Tensor) onHost(ctx context.Context, name string) (*Tensor, error) {
	t.mustLive(name)
	t = t.now()
	if t.storage.Device().Caps().HostMemory {
		return t, t.storage.Wait(ctx, name)
	}
	// The copy belongs to no scope: a computed tensor can be read even if a scope was cancelled.
	h, err := t.copyWithin(ctx, func(t *Tensor) *Tensor { return t.copyTo(device.CPU()) })
	if err != nil {
		return nil, err
	}
	return h, h.storage.Wait(ctx, name)
}

// copyWithin returns from(t), or ctx's error if ctx ends first: a copy waits while the memory has no room for it.
// If ctx ends, from may still be running when copyWithin returns, so from gets a handle of t of its own.
func (t *Tensor) copyWithin(ctx context.Context, from func(*Tensor) *Tensor) (h *Tensor, err error) {
	if ctx.Done() == nil {
		return from(t), nil
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	own := t.another()
	var made *Tensor
	if err := eng().Within(ctx, func() {
		defer own.letGo()
		made = from(own)
	}); err != nil {
		return nil, err
	}
	return made, nil
}

// doneWith releases h, which onHost returned for t.
func (t *Tensor) doneWith(h *Tensor) {
	if h != t {
		h.letGo()
	}
}

// single panics unless t has exactly one element.
func (t *Tensor) single(name string) {
	if t.size != 1 {
		wrong(name, op.MistakeItem, t)
	}
}

// item waits for t, which has one element, and returns its bits.
func (t *Tensor) item(name string) uint64 {
	t.single(name)
	bits, err := t.load(context.Background(), name, t.off)
	if err != nil {
		panic(err)
	}
	return bits
}

// load waits for t and returns the bits of the element at the given place in its storage.
func (t *Tensor) load(ctx context.Context, name string, at int) (uint64, error) {
	t.mustLive(name)
	t = t.now()
	if ctx.Done() == nil {
		return t.loadOnce(ctx, name, at)
	}
	return evenIfEnded(ctx, t, func(ctx context.Context) (uint64, error) { return t.loadOnce(ctx, name, at) })
}

// grace is how long the copy of a computed tensor may take after a context has ended. An idle device needs 0.1 ms.
const grace = 5 * time.Millisecond

// evenIfEnded returns get(ctx), which reads t. If ctx has ended and t is computed, get failed only because of the
// copy to the host. It then gets another try, of length grace, so that computed tensors can be read on all devices.
func evenIfEnded[T any](ctx context.Context, t *Tensor, get func(context.Context) (T, error)) (T, error) {
	v, err := get(ctx)
	if err == nil || !errors.Is(err, ctx.Err()) || t.storage.Device().Caps().HostMemory || !t.storage.Ready() {
		return v, err
	}
	if err := t.storage.Err(); err != nil {
		return v, err
	}
	soon, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	if copied, failed := get(soon); failed == nil {
		return copied, nil
	}
	return v, err
}

func (t *Tensor) loadOnce(ctx context.Context, name string, at int) (uint64, error) {
	t.mustLive(name)
	h := t
	if !t.storage.Device().Caps().HostMemory {
		// Only this element is copied.
		var err error
		h, err = t.copyWithin(ctx, func(t *Tensor) *Tensor {
			return &Tensor{storage: eng().Copy(t.storage, at, 1, t.dtype, device.CPU()), size: 1, dtype: t.dtype}
		})
		if err != nil {
			return 0, err
		}
		at = 0
	}
	if err := h.storage.Wait(ctx, name); err != nil {
		return 0, err
	}
	return h.element(at), nil
}

// element returns the bits of the element at the given place in t's storage, which is ready and in host memory.
func (t *Tensor) element(at int) (bits uint64) {
	b := t.storage.Buffer()
	switch t.dtype.Size() {
	case 1:
		bits = kernel.Bits(device.Slice[uint8](b, at, 1)[0])
	case 2:
		bits = kernel.Bits(device.Slice[Float16Bits](b, at, 1)[0])
	case 4:
		bits = kernel.Bits(device.Slice[int32](b, at, 1)[0])
	default:
		bits = kernel.Bits(device.Slice[int64](b, at, 1)[0])
	}
	runtime.KeepAlive(b) // its memory is reused when nothing refers to it, which a slice of it does not
	return bits
}

// number converts the bits of an element to a float64.
func number(bits uint64, dt DType) float64 {
	switch bits = kernel.WideBits(bits, dt); dt.Wide() {
	case Float32:
		return float64(math.Float32frombits(uint32(bits)))
	case Float64:
		return math.Float64frombits(bits)
	}
	return float64(int64(bits))
}

// value converts the bits of an element to a Go value. That of a float16 or bfloat16 is a float32.
func value(bits uint64, dt DType) any {
	switch dt {
	case Float16, BFloat16:
		return value(kernel.WideBits(bits, dt), Float32)
	case Float32:
		return math.Float32frombits(uint32(bits))
	case Float64:
		return math.Float64frombits(bits)
	case Int64:
		return int64(bits)
	case Int32:
		return int32(bits)
	case Uint8:
		return uint8(bits)
	}
	return bits != 0
}

// is panics unless t's elements are of type T.
func is[T device.Element](t *Tensor, name string) {
	if dt := device.DTypeOf[T](); t.dtype != dt {
		wrong(name, fmt.Sprintf("%s (it takes %v: convert with As)", op.MistakeType, dt), t)
	}
}

// slice waits for t and returns a copy of its elements.
func slice[T device.Element](t *Tensor, name string) []T {
	data, err := sliceContext[T](context.Background(), t, name)
	if err != nil {
		panic(err)
	}
	return data
}

func sliceContext[T device.Element](ctx context.Context, t *Tensor, name string) ([]T, error) {
	is[T](t, name)
	if ctx.Done() == nil || t.size > copied {
		return sliceOnce[T](ctx, t, name)
	}
	return evenIfEnded(ctx, t, func(ctx context.Context) ([]T, error) { return sliceOnce[T](ctx, t, name) })
}

func sliceOnce[T device.Element](ctx context.Context, t *Tensor, name string) ([]T, error) {
	h, err := t.onHost(ctx, name)
	defer t.doneWith(h)
	if err != nil {
		return nil, err
	}
	if h.size <= copied || ctx.Done() == nil {
		return gather[T](context.Background(), h), nil
	}
	var data []T
	own := h.another()
	if err := eng().Within(ctx, func() {
		defer own.letGo()
		data = gather[T](ctx, own)
	}); err != nil {
		return nil, err
	}
	if data == nil {
		return nil, ctx.Err()
	}
	return data, nil
}

// copied is how many elements are copied without a look at the context. This takes 0.1 ms, or 1 ms if the memory is
// new.
const copied = 1 << 16

// gather returns a copy of t's elements, which are of type T, ready and in host memory. It returns nil if ctx ends
// before the copy is complete.
func gather[T device.Element](ctx context.Context, t *Tensor) []T {
	data := make([]T, t.size)
	if t.size == 0 {
		return data
	}
	b := t.storage.Buffer()
	if t.strides == nil {
		from := device.Slice[T](b, t.off, t.size)
		for at := 0; at < t.size; at += copied {
			if ctx.Err() != nil {
				return nil
			}
			copyPart(data[at:min(at+copied, t.size)], from[at:])
		}
	} else {
		all := device.Slice[T](b, 0, int(b.Bytes)/t.dtype.Size())
		i := 0
		t.places(func(at int) { data[i] = all[at]; i++ })
	}
	runtime.KeepAlive(b) // see element
	return data
}

// copyPart copies as many elements as dst has room for. It is a function of its own because the scheduler can stop a
// goroutine at a call, but not within a copy. A garbage collection that starts has to wait for the goroutine to stop,
// and all other goroutines wait with it, among them those whose context has ended.
//
//go:noinline
func copyPart[T device.Element](dst, src []T) { copy(dst, src) }

// numbers waits for t and returns its elements as float64s.
func (t *Tensor) numbers(name string) []float64 {
	h, err := t.onHost(context.Background(), name)
	defer t.doneWith(h)
	if err != nil {
		panic(err)
	}
	data := make([]float64, 0, t.size)
	h.places(func(at int) { data = append(data, number(h.element(at), h.dtype)) })
	return data
}

// places calls f with each element's place in the storage, in row-major order.
func (t *Tensor) places(f func(at int)) {
	strides := t.strides
	if strides == nil {
		strides = t.shape.Strides()
	}
	var visit func(axis, at int)
	visit = func(axis, at int) {
		if axis == len(t.shape) {
			f(at)
			return
		}
		for i := range t.shape[axis] {
			visit(axis+1, at+i*strides[axis])
		}
	}
	visit(0, t.off)
}

// walk calls each for every element, in row-major order, and text for brackets of axes and separators between them.
// t is ready and in host memory.
func (t *Tensor) walk(each func(i int, bits uint64) error, text func(string), separator string) error {
	strides := t.strides
	if strides == nil {
		strides = t.shape.Strides()
	}
	i := 0
	var visit func(axis, at int) error
	visit = func(axis, at int) error {
		if axis == len(t.shape) {
			i++
			return each(i-1, t.element(at))
		}
		text("[")
		for k := range t.shape[axis] {
			if k > 0 {
				text(separator)
			}
			if err := visit(axis+1, at+k*strides[axis]); err != nil {
				return err
			}
		}
		text("]")
		return nil
	}
	return visit(0, t.off)
}
