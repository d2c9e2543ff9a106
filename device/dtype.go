package device

import "fmt"

// A DType is the type of a tensor's elements.
type DType uint8

// The element types. The zero DType is none of them.
const (
	Invalid DType = iota
	Float32
	Float64
	Int64
	Bool // one byte: 0 or 1

	// The types for storage. Primitives and arithmetic are not defined for them, only conversions and moves: see Wide.
	Float16  // IEEE 754 binary16
	BFloat16 // the upper half of a float32
	Int32
	Uint8
)

var dtypes = [...]struct {
	name string
	size int
}{
	Invalid: {"invalid", 0},
	Float32: {"float32", 4},
	Float64: {"float64", 8},
	Int64:   {"int64", 8},
	Bool:    {"bool", 1},

	Float16:  {"float16", 2},
	BFloat16: {"bfloat16", 2},
	Int32:    {"int32", 4},
	Uint8:    {"uint8", 1},
}

// NumDTypes is the length of an array that DTypes index.
const NumDTypes = int(Uint8) + 1

// DTypes lists every element type, in order.
func DTypes() []DType {
	return []DType{Float32, Float64, Int64, Bool, Float16, BFloat16, Int32, Uint8}
}

// Size is the number of bytes of one element.
func (d DType) Size() int { return dtypes[d].size }

// IsFloat reports whether d is a floating-point type.
func (d DType) IsFloat() bool {
	return d == Float32 || d == Float64 || d == Float16 || d == BFloat16
}

// Wide is the type that elements of type d are computed in: float32 for float16 and bfloat16, int64 for int32 and
// uint8. It has all values of d. Any other type is its own.
func (d DType) Wide() DType {
	switch d {
	case Float16, BFloat16:
		return Float32
	case Int32, Uint8:
		return Int64
	}
	return d
}

// IsStorage reports whether d is a type for storage, which is not its own Wide type.
func (d DType) IsStorage() bool { return d != d.Wide() }

// String is the name of the type, which for most is that of the Go type: "float32".
func (d DType) String() string {
	if int(d) >= len(dtypes) {
		return fmt.Sprintf("dtype(%d)", uint8(d))
	}
	return dtypes[d].name
}

// An Element is a Go type that tensors can hold.
type Element interface {
	float32 | float64 | int64 | bool | Float16Bits | BFloat16Bits | int32 | uint8
}

// DTypeOf returns the DType of T.
func DTypeOf[T Element]() DType {
	var zero T
	switch any(zero).(type) {
	case float32:
		return Float32
	case float64:
		return Float64
	case int64:
		return Int64
	case Float16Bits:
		return Float16
	case BFloat16Bits:
		return BFloat16
	case int32:
		return Int32
	case uint8:
		return Uint8
	}
	return Bool
}
