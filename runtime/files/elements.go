package files

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"unsafe"

	"github.com/asyncgen/asyncgen/device"
	asyncrt "github.com/asyncgen/asyncgen/runtime"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// A format is a type that elements have in files.
type format struct {
	safetensors string       // its name in safetensors
	npy         string       // its kind and size in npy; "": it has none there
	bits        int          // of an element
	dtype       device.DType // of a tensor read from a file; Invalid: there is none
	read        func(dev device.Device, b []byte, shape []int, swapped bool) *tensor.Tensor
	write       func(t *tensor.Tensor) []byte // in the order of bytes of the host; nil: no tensor has the type
}

// formats lists the types that a file may have, those of tensors first.
var formats = []format{
	{"F32", "f4", 32, tensor.Float32, read[float32], written[float32]},
	{"F64", "f8", 64, tensor.Float64, read[float64], written[float64]},
	{"I64", "i8", 64, tensor.Int64, read[int64], written[int64]},
	{"BOOL", "b1", 8, tensor.Bool, readBools, written[bool]},
	{"F16", "f2", 16, tensor.Float16, read[tensor.Float16Bits], written[tensor.Float16Bits]},
	{"BF16", "", 16, tensor.BFloat16, read[tensor.BFloat16Bits], written[tensor.BFloat16Bits]},
	{"I32", "i4", 32, tensor.Int32, read[int32], written[int32]},
	{"U8", "u1", 8, tensor.Uint8, read[uint8], written[uint8]},
	// These become int64, which has all of their values.
	{"I8", "i1", 8, tensor.Int64, readWidened[int8], nil},
	{"I16", "i2", 16, tensor.Int64, readWidened[int16], nil},
	{"U16", "u2", 16, tensor.Int64, readWidened[uint16], nil},
	{"U32", "u4", 32, tensor.Int64, readWidened[uint32], nil},
	// These can't be read. Their sizes are known, so that other tensors of the file can be.
	{"U64", "u8", 64, device.Invalid, nil, nil},
	{"C64", "c8", 64, device.Invalid, nil, nil},
	{"F8_E4M3", "", 8, device.Invalid, nil, nil},
	{"F8_E4M3FNUZ", "", 8, device.Invalid, nil, nil},
	{"F8_E5M2", "", 8, device.Invalid, nil, nil},
	{"F8_E5M2FNUZ", "", 8, device.Invalid, nil, nil},
	{"F8_E8M0", "", 8, device.Invalid, nil, nil},
	{"F6_E2M3", "", 6, device.Invalid, nil, nil},
	{"F6_E3M2", "", 6, device.Invalid, nil, nil},
	{"F4", "", 4, device.Invalid, nil, nil},
}

// formatOf returns the format in which tensors of an element type are written.
func formatOf(dt device.DType) *format {
	return &formats[slices.IndexFunc(formats, func(f format) bool { return f.dtype == dt })]
}

// formatNamed returns the format for which name returns the given name, or nil.
func formatNamed(want string, name func(f *format) string) *format {
	for i := range formats {
		if f := &formats[i]; want != "" && name(f) == want {
			return f
		}
	}
	return nil
}

// isLittle says that the host has the lowest byte of a number first.
var isLittle = binary.NativeEndian.Uint16([]byte{1, 0}) == 1

// maxRank bounds the number of axes.
const maxRank = 64

// bytesOf returns how many bytes a tensor of the given shape has. It returns an error if there can be no such tensor.
func (f *format) bytesOf(shape []int) (int64, error) {
	if len(shape) > maxRank {
		return 0, fmt.Errorf("%d axes, more than %d", len(shape), maxRank)
	}
	size, isEmpty := uint64(1), false
	for _, n := range shape {
		if n < 0 {
			return 0, fmt.Errorf("an axis of length %d", n)
		}
		isEmpty = isEmpty || n == 0
		high, low := bits.Mul64(size, uint64(max(n, 1)))
		if high != 0 || low > math.MaxInt/64 {
			return 0, fmt.Errorf("more elements than there can be")
		}
		size = low
	}
	if isEmpty {
		return 0, nil
	}
	if size*uint64(f.bits)%8 != 0 {
		return 0, fmt.Errorf("%d elements of %d bits, which are no whole bytes", size, f.bits)
	}
	return int64(size * uint64(f.bits) / 8), nil
}

// view returns b as elements of type T. It is b itself if that can be, and b is swapped if its order of bytes is not
// that of the host.
func view[T any](b []byte, swapped bool) []T {
	size := int(unsafe.Sizeof(*new(T)))
	n := len(b) / size
	from := unsafe.Pointer(unsafe.SliceData(b))
	if n == 0 {
		return []T{}
	}
	if !swapped && uintptr(from)%uintptr(size) == 0 {
		return unsafe.Slice((*T)(from), n)
	}
	data := make([]T, n)
	raw := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(data))), n*size)
	copy(raw, b)
	if swapped {
		swap(raw, size)
	}
	return data
}

// swap reverses the bytes of each element of the given size.
func swap(raw []byte, size int) {
	for at := 0; size > 1 && at < len(raw); at += size {
		slices.Reverse(raw[at : at+size])
	}
}

// read returns a tensor on dev of the elements in b, which are copied.
func read[T device.Element](dev device.Device, b []byte, shape []int, swapped bool) *tensor.Tensor {
	return shaped(func(shape ...int) *tensor.Tensor { return tensor.OfOn(dev, view[T](b, swapped), shape...) }, shape)
}

// readWidened is read for types that become int64.
func readWidened[T int8 | int16 | uint16 | uint32](dev device.Device, b []byte, shape []int, swapped bool) *tensor.Tensor {
	return shaped(func(shape ...int) *tensor.Tensor { return tensor.FromOn(dev, view[T](b, swapped), shape...) }, shape)
}

// readBools is read for bools. Any byte but 0 is true, as in NumPy.
func readBools(dev device.Device, b []byte, shape []int, _ bool) *tensor.Tensor {
	data := make([]bool, len(b))
	for i, v := range b {
		data[i] = v != 0
	}
	return shaped(func(shape ...int) *tensor.Tensor { return tensor.OfOn(dev, data, shape...) }, shape)
}

// shaped returns what of makes of a shape. Functions such as [tensor.Of] can't tell the shape of a number from none.
func shaped(of func(shape ...int) *tensor.Tensor, shape []int) *tensor.Tensor {
	if len(shape) > 0 {
		return of(shape...)
	}
	t := of(1)
	defer tensor.Dead(t)
	return t.Reshape()
}

// written returns the elements of t, which has been computed.
func written[T device.Element](t *tensor.Tensor) []byte {
	data := tensor.SliceOf[T](t)
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(data))), len(data)*int(unsafe.Sizeof(*new(T))))
}

// bytesIn returns the elements of t, the lowest byte of each first. It waits for t.
func (f *format) bytesIn(t *tensor.Tensor) (b []byte, err error) {
	asyncrt.AllowSync(func() { // what is left to wait for is a copy
		err = asyncrt.Try(func() { b = f.write(t) })
	})
	if !isLittle {
		swap(b, f.bits/8)
	}
	return b, err
}

// sortedNames returns the names of tensors in order. It panics, about the function with the given name, if a tensor is
// nil.
func sortedNames(name string, tensors map[string]*tensor.Tensor) []string {
	names := make([]string, 0, len(tensors))
	for n, t := range tensors {
		if t == nil {
			wrong(name, "the tensor %q is nil", n)
		}
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}

// wait waits for all tensors and returns the error of one that failed.
func wait(tensors map[string]*tensor.Tensor, names []string) error {
	list := make([]*tensor.Tensor, len(names))
	for i, name := range names {
		list[i] = tensors[name]
	}
	return tensor.Wait(list...)
}
