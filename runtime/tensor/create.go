package tensor

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"unsafe"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/kernel"
	"github.com/asyncgen/asyncgen/runtime/op"
	"gonum.org/v1/gonum/mat"
)

// A Source is a Go type whose values [From] takes: one of the element types, or another integer type. Integers become
// int64.
type Source interface {
	device.Element | int | int8 | int16 | uint16 | uint32
}

// Float16Bits and BFloat16Bits are the Go types of the elements of float16 and bfloat16 tensors.
type (
	Float16Bits  = device.Float16Bits
	BFloat16Bits = device.BFloat16Bits
)

// From returns a tensor with the given elements, in row-major order, on the default device. Without a shape it has one
// axis. Its element type is that of data, or int64 if data are integers, also of []int32 and []uint8: [Of] keeps those
// types. From copies data. It panics with a *Mistake if the number of elements is not that of the shape.
//
//asyncgen:api host
//go:noinline
func From[T Source](data []T, shape ...int) *Tensor {
	return from("From", device.Device{}, data, shape)
}

// FromOn is From on another device.
//
//asyncgen:api host
//go:noinline
func FromOn[T Source](dev device.Device, data []T, shape ...int) *Tensor {
	return from("FromOn", dev, data, shape)
}

// TryFrom is From for data from outside: if data does not fill the shape, or
// the shape is impossible, it returns a *Mistake as an error.
//
//asyncgen:api host
//go:noinline
func TryFrom[T Source](data []T, shape ...int) (*Tensor, error) {
	refuseCapture("TryFrom")
	shape, m := shapeOf("TryFrom", data, dtypeFrom[T](), shape)
	if m != nil {
		return nil, m
	}
	return uploadFrom(device.Device{}, data, shape), nil
}

// Of is From for data whose type is kept: it makes an int32 tensor of []int32, and a uint8 tensor of []uint8. A float16
// tensor is made of its bits, []Float16Bits, and a bfloat16 tensor of []BFloat16Bits. See [Tensor.As] for making one of
// other numbers, and [SliceOf] for the way back.
//
//asyncgen:api host
//go:noinline
func Of[T device.Element](data []T, shape ...int) *Tensor {
	return of("Of", device.Device{}, data, shape)
}

// OfOn is Of on another device.
//
//asyncgen:api host
//go:noinline
func OfOn[T device.Element](dev device.Device, data []T, shape ...int) *Tensor {
	return of("OfOn", dev, data, shape)
}

func of[T device.Element](name string, dev device.Device, data []T, shape []int) *Tensor {
	refuseCapture(name)
	s, m := shapeOf(name, data, device.DTypeOf[T](), shape)
	if m != nil {
		panic(m)
	}
	return upload(dev, slices.Clone(data), s)
}

// Adopt is like [Of], on a given device, but copies nothing: the tensor keeps the memory of data, and the caller must
// not change it any more. A device with memory of its own gets a copy some time later.
//
//asyncgen:api host
//go:noinline
func Adopt[T device.Element](dev device.Device, data []T, shape ...int) *Tensor {
	refuseCapture("Adopt")
	s, m := shapeOf("Adopt", data, device.DTypeOf[T](), shape)
	if m != nil {
		panic(m)
	}
	return upload(dev, data, s)
}

func from[T Source](name string, dev device.Device, data []T, shape []int) *Tensor {
	refuseCapture(name)
	s, m := shapeOf(name, data, dtypeFrom[T](), shape)
	if m != nil {
		panic(m)
	}
	return uploadFrom(dev, data, s)
}

// uploadFrom is upload of a copy of data.
func uploadFrom[T Source](dev device.Device, data []T, shape device.Shape) *Tensor {
	switch data := any(data).(type) {
	case []float32:
		return upload(dev, slices.Clone(data), shape)
	case []float64:
		return upload(dev, slices.Clone(data), shape)
	case []bool:
		return upload(dev, slices.Clone(data), shape)
	case []int64:
		return upload(dev, slices.Clone(data), shape)
	case []Float16Bits:
		return upload(dev, slices.Clone(data), shape)
	case []BFloat16Bits:
		return upload(dev, slices.Clone(data), shape)
	case []int:
		return upload(dev, widened(data), shape)
	case []int8:
		return upload(dev, widened(data), shape)
	case []int16:
		return upload(dev, widened(data), shape)
	case []int32:
		return upload(dev, widened(data), shape)
	case []uint8:
		return upload(dev, widened(data), shape)
	case []uint16:
		return upload(dev, widened(data), shape)
	default:
		return upload(dev, widened(any(data).([]uint32)), shape)
	}
}

// widened returns the integers of data as int64.
func widened[T int | int8 | int16 | int32 | uint8 | uint16 | uint32](data []T) []int64 {
	wide := make([]int64, len(data))
	for i, v := range data {
		wide[i] = int64(v)
	}
	return wide
}

// dtypeFrom is the element type of a tensor made from Ts.
func dtypeFrom[T Source]() DType {
	var zero T
	switch any(zero).(type) {
	case float32:
		return Float32
	case float64:
		return Float64
	case bool:
		return Bool
	case Float16Bits:
		return Float16
	case BFloat16Bits:
		return BFloat16
	}
	return Int64
}

// shapeOf checks that data fills shape, and returns the shape.
func shapeOf[T any](name string, data []T, dt DType, shape []int) (device.Shape, *Mistake) {
	if len(shape) == 0 {
		return device.Shape{len(data)}, nil
	}
	size, ok := sizeOf(shape)
	if !ok {
		return nil, impossible(name, shape)
	}
	if size != len(data) {
		return nil, &Mistake{Op: name, Text: fmt.Sprintf("%s: %d elements, want %d", op.MistakeLength, len(data), size),
			Shapes: []device.Shape{slices.Clone(shape)}, DTypes: []DType{dt}}
	}
	return slices.Clone(shape), nil
}

// maxSize bounds the number of elements, so that sizes in bytes are no problem.
const maxSize = math.MaxInt64 / 16

// sizeOf returns the number of elements of a shape, and whether it can be one.
func sizeOf(shape []int) (size int, ok bool) {
	size = 1
	isEmpty := false
	for _, n := range shape {
		if n < 0 {
			return 0, false
		}
		isEmpty = isEmpty || n == 0
		high, low := bits.Mul64(uint64(size), uint64(max(n, 1)))
		if high != 0 || low > maxSize {
			return 0, false
		}
		size = int(low)
	}
	if isEmpty {
		return 0, true
	}
	return size, true
}

func impossible(name string, shape []int) *Mistake {
	return &Mistake{Op: name, Text: fmt.Sprintf("%s: %v", op.MistakeShape, shape)}
}

// checked returns a copy of shape. It panics with a *Mistake if no tensor can have that shape.
func checked(name string, shape []int) device.Shape {
	if _, ok := sizeOf(shape); !ok {
		panic(impossible(name, shape))
	}
	return append(device.Shape{}, shape...)
}

// upload returns a tensor of data, which it keeps if the device can use it in place.
func upload[T device.Element](dev device.Device, data []T, shape device.Shape) *Tensor {
	b := &device.Buffer{Ptr: unsafe.Pointer(unsafe.SliceData(data)), Bytes: int64(len(data)) * int64(device.DTypeOf[T]().Size())}
	if size := len(data); size == 0 || uintptr(b.Ptr)%8 != 0 { // buffers are aligned
		b = device.HostBuffer(b.Bytes)
		copy(device.Slice[T](b, 0, size), data)
	}
	s := eng().FromHost(dev.Or(), b)
	if c := eng().Capturing(); c != nil {
		c.Constant(s) // the library computes it from shapes and the like: From and its kind refuse
	}
	return &Tensor{storage: s, shape: shape, size: len(data), dtype: device.DTypeOf[T]()}
}

// A Maker makes tensors on one device, with one element type.
type Maker struct {
	dev   device.Device
	dtype DType
}

// On returns a Maker of float32 tensors on dev: tensor.On(gpu).Zeros(2, 3).
//
//asyncgen:api pure
func On(dev device.Device) Maker { return Maker{dev.Or(), Float32} }

// here makes float32 tensors on the default device.
func here() Maker { return Maker{device.Device{}.Or(), Float32} }

// As returns a Maker of tensors of another element type on the same device.
//
//asyncgen:api pure
func (m Maker) As(dtype DType) Maker {
	if !op.All.Has(dtype) {
		wrong("As", op.MistakeType)
	}
	m.dtype = dtype
	return m
}

// Zeros returns a tensor of zeros.
//
//asyncgen:api host
//go:noinline
func (m Maker) Zeros(shape ...int) *Tensor { return m.fill("Zeros", 0, shape) }

// Ones returns a tensor of ones.
//
//asyncgen:api host
//go:noinline
func (m Maker) Ones(shape ...int) *Tensor { return m.fill("Ones", 1, shape) }

// Full returns a tensor whose elements are all v. If the element type is an integer type, v must be one
// of its numbers, or Full panics with a *Mistake. For int64 v must also be less than 2^53 in size,
// since not every greater integer is a float64; FullInt takes those.
//
//asyncgen:api host
//go:noinline
func (m Maker) Full(v float64, shape ...int) *Tensor { return m.fill("Full", v, shape) }

// Scalar returns a tensor without axes. See Full about int64.
//
//asyncgen:api host
//go:noinline
func (m Maker) Scalar(v float64) *Tensor { return m.fill("Scalar", v, nil) }

func (m Maker) fill(name string, v float64, shape []int) *Tensor {
	s := checked(name, shape)
	m.exact(name, v)
	return filled(v, s, m.dtype, m.dev)
}

// exact panics if the Maker's element type is an integer type that doesn't have all of the numbers vs.
// An int64 must be one that a float64 can hold exactly.
func (m Maker) exact(name string, vs ...float64) {
	if m.dtype.Wide() != Int64 {
		return
	}
	for _, v := range vs {
		text := notInt(v)
		if text == "" {
			text = notSmall(int64(v), m.dtype)
		}
		if text != "" {
			panic(&Mistake{Op: name, Text: fmt.Sprintf("%s: %v", text, v)})
		}
	}
}

// filled returns a tensor whose elements are all v, rounded to their type.
func filled(v float64, shape device.Shape, dt DType, dev device.Device) *Tensor {
	return create(op.Fill, op.Attr{Shape: shape, DType: dt, Key: kernel.BitsOf(v, dt)}, dev)
}

// FullInt returns an int64 tensor whose elements are all v, whatever the Maker's element type is.
//
//asyncgen:api host
//go:noinline
func (m Maker) FullInt(v int64, shape ...int) *Tensor {
	return create(op.Fill, op.Attr{Shape: checked("FullInt", shape), DType: Int64, Key: kernel.Bits(v)}, m.dev)
}

// Eye returns the n×n identity matrix.
//
//asyncgen:api host
//go:noinline
func (m Maker) Eye(n int) *Tensor {
	checked("Eye", []int{n, n})
	i := counting(0, 1, n, m.dev)
	column := viewOf(op.Reshape, &op.Attr{Shape: device.Shape{n, 1}}, i)
	defer i.letGo()
	defer column.letGo()
	return m.convert(elementwise(op.Eq, [2]float64{}, operands{column, i}, false))
}

// Arange returns start, start+step, start+2*step, ... up to but not including stop. Each number is computed in float64
// and then rounded once; int64 elements are rounded towards 0. Arange panics if step is 0, or if int64 elements reach
// 2^53, as not every integer from there on is a float64.
//
//asyncgen:api host
//go:noinline
func (m Maker) Arange(start, stop, step float64) *Tensor {
	n := math.Ceil((stop - start) / step)
	if step == 0 || math.IsNaN(n) || n > maxSize {
		panic(&Mistake{Op: "Arange", Text: fmt.Sprintf("%s: from %v to %v by %v", op.MistakeRange, start, stop, step)})
	}
	m.exact("Arange", math.Trunc(start), math.Trunc(stop))
	a := op.Attr{Shape: device.Shape{max(int(n), 0)}, DType: Float64, Key: kernel.Bits(start), Pos: kernel.Bits(step)}
	return m.convert(create(op.Iota, a, m.dev))
}

// ArangeInt returns start, start+step, start+2*step, ... up to but not including stop, as int64, whatever the Maker's
// element type is. All are exact, also beyond 2^53. ArangeInt panics if step is 0.
//
//asyncgen:api host
//go:noinline
func (m Maker) ArangeInt(start, stop, step int64) *Tensor {
	n := uint64(0) // by the distance, which may be no int64
	switch {
	case step > 0 && start < stop:
		n = (uint64(stop)-uint64(start)-1)/uint64(step) + 1
	case step < 0 && start > stop:
		n = (uint64(start)-uint64(stop)-1)/-uint64(step) + 1
	}
	if step == 0 || n > maxSize {
		panic(&Mistake{Op: "ArangeInt", Text: fmt.Sprintf("%s: from %d to %d by %d", op.MistakeRange, start, stop, step)})
	}
	return counting(int(start), int(step), int(n), m.dev)
}

// Linspace returns n numbers at equal distances from lo to hi, both included,
// each computed in float64 and rounded once. See Arange about int64.
//
//asyncgen:api host
//go:noinline
func (m Maker) Linspace(lo, hi float64, n int) *Tensor {
	checked("Linspace", []int{n})
	m.exact("Linspace", math.Trunc(lo), math.Trunc(hi))
	data := make([]float64, n)
	for i := range data {
		data[i] = lo + float64(float64(i)*(hi-lo))/float64(n-1)
	}
	if n > 1 {
		data[n-1] = hi
	} else if n == 1 {
		data[0] = lo
	}
	return m.convert(upload(m.dev, data, device.Shape{n}))
}

// convert gives x the Maker's element type. Nobody else has a handle of x.
func (m Maker) convert(x *Tensor) *Tensor {
	if x.dtype == m.dtype {
		return x
	}
	defer x.letGo()
	return run(op.As, op.Attr{DType: m.dtype}, m.dev, operands{x}, false)
}

// Zeros returns a float32 tensor of zeros on the default device.
//
//asyncgen:api host
//go:noinline
func Zeros(shape ...int) *Tensor { return here().fill("Zeros", 0, shape) }

// Ones returns a float32 tensor of ones on the default device.
//
//asyncgen:api host
//go:noinline
func Ones(shape ...int) *Tensor { return here().fill("Ones", 1, shape) }

// Full returns a float32 tensor on the default device whose elements are all v.
//
//asyncgen:api host
//go:noinline
func Full(v float64, shape ...int) *Tensor { return here().fill("Full", v, shape) }

// FullInt returns an int64 tensor on the default device whose elements are all v.
//
//asyncgen:api host
//go:noinline
func FullInt(v int64, shape ...int) *Tensor { return here().FullInt(v, shape...) }

// Scalar returns a float32 tensor without axes on the default device.
//
//asyncgen:api host
//go:noinline
func Scalar(v float64) *Tensor { return here().fill("Scalar", v, nil) }

// Eye returns the n×n identity matrix, float32, on the default device.
//
//asyncgen:api host
//go:noinline
func Eye(n int) *Tensor { return here().Eye(n) }

// Arange returns start, start+step, start+2*step, ... up to but not including
// stop, as float32 on the default device, each computed in float64 and rounded
// once. It panics if step is 0.
//
//asyncgen:api host
//go:noinline
func Arange(start, stop, step float64) *Tensor { return here().Arange(start, stop, step) }

// ArangeInt returns start, start+step, start+2*step, ... up to but not including stop, as int64 on the default device:
// positions, or numbers of classes. All are exact, also beyond 2^53. ArangeInt panics if step is 0.
//
//asyncgen:api host
//go:noinline
func ArangeInt(start, stop, step int64) *Tensor { return here().ArangeInt(start, stop, step) }

// Linspace returns n numbers at equal distances from lo to hi, both included,
// as float32 on the default device, each computed in float64 and rounded once.
//
//asyncgen:api host
//go:noinline
func Linspace(lo, hi float64, n int) *Tensor { return here().Linspace(lo, hi, n) }

// FromDense returns a float64 tensor with the elements of a gonum matrix, on
// the default device. It copies them.
//
//asyncgen:api host
//go:noinline
func FromDense(m mat.Matrix) *Tensor {
	refuseCapture("FromDense")
	rows, cols := m.Dims()
	data := make([]float64, 0, rows*cols)
	for i := range rows {
		for j := range cols {
			data = append(data, m.At(i, j))
		}
	}
	return upload(device.Device{}, data, device.Shape{rows, cols})
}
