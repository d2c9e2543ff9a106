package device

import (
	"slices"
	"strconv"
)

// A Shape lists the length of each axis, outermost first. The empty Shape is
// that of a scalar; an axis of length 0 makes a tensor without elements.
type Shape []int

// Size is the number of elements: the product of the axes.
func (s Shape) Size() int {
	n := 1
	for _, d := range s {
		n *= d
	}
	return n
}

// Equal reports whether s and t have the same axes.
func (s Shape) Equal(t Shape) bool { return slices.Equal(s, t) }

// Strides returns the row-major strides of s, in elements.
func (s Shape) Strides() []int {
	strides := make([]int, len(s))
	n := 1
	for i := len(s) - 1; i >= 0; i-- {
		strides[i] = n
		n *= s[i]
	}
	return strides
}

// String is s as Go prints a slice: "[2 3]"; a scalar's is "[]".
func (s Shape) String() string {
	b := []byte{'['}
	for i, d := range s {
		if i > 0 {
			b = append(b, ' ')
		}
		b = strconv.AppendInt(b, int64(d), 10)
	}
	return string(append(b, ']'))
}
