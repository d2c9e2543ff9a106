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
}

// DTypes lists every element type, in order.
func DTypes() []DType { return []DType{Float32, Float64, Int64, Bool} }

// Size is the number of bytes of one element.
func (d DType) Size() int { return dtypes[d].size }

// IsFloat reports whether d is a floating-point type.
func (d DType) IsFloat() bool { return d == Float32 || d == Float64 }

// String is the name of the Go type: "float32".
func (d DType) String() string {
	if int(d) >= len(dtypes) {
		return fmt.Sprintf("dtype(%d)", uint8(d))
	}
	return dtypes[d].name
}

// An Element is a Go type that tensors can hold.
type Element interface {
	float32 | float64 | int64 | bool
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
	}
	return Bool
}
