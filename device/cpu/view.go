package cpu

import (
	"fmt"
	"unsafe"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/cpu/internal/vec"
)

// maxRank bounds the axes of a view that is not contiguous, counted after axes that
// can be walked as one are merged.
const maxRank = 16

// A view is an operand that is not contiguous, with as few axes as possible: no
// axis has length 1, and no two can be walked as one.
type view struct {
	rank    int
	dims    [maxRank]int
	strides [maxRank]int
}

// makeView merges the axes of shape. It reports whether there are few enough.
func makeView(v *view, shape, strides []int) bool {
	v.rank = 0
	for i, d := range shape {
		if d == 1 {
			continue
		}
		if last := v.rank - 1; last >= 0 && v.strides[last] == strides[i]*d {
			v.dims[last] *= d
			v.strides[last] = strides[i]
			continue
		}
		if v.rank == maxRank {
			return false
		}
		v.dims[v.rank], v.strides[v.rank] = d, strides[i]
		v.rank++
	}
	return true
}

func errRank(shape device.Shape) error {
	return fmt.Errorf("cpu: view of shape %v with more than %d independent axes: %w", shape, maxRank, device.ErrUnsupported)
}

// isContiguous reports whether the elements of v lie one after the other.
func (v *view) isContiguous() bool {
	return v.rank == 0 || v.rank == 1 && v.strides[0] == 1
}

// isScalar reports whether all elements of v are one.
func (v *view) isScalar() bool {
	return v.rank == 0 || v.rank == 1 && v.strides[0] == 0
}

// offset is where element i in row-major order lies, relative to the first.
func (v *view) offset(i int) int {
	if v.rank == 1 {
		return i * v.strides[0]
	}
	at := 0
	for axis := v.rank - 1; axis >= 0; axis-- {
		at += i % v.dims[axis] * v.strides[axis]
		i /= v.dims[axis]
	}
	return at
}

// reach is how far the elements of v, which is not empty, lie before and behind the first.
func (v *view) reach() (least, most int) {
	for i, d := range v.dims[:v.rank] {
		if span := (d - 1) * v.strides[i]; span < 0 {
			least += span
		} else {
			most += span
		}
	}
	return least, most
}

// shortRun is how many elements of a row are copied one by one: a call takes longer.
const shortRun = 16

// gather copies elements of a view to dst, from number start on. The view's first element is src[off].
func gather[T any](dst, src []T, off int, v *view, start int) {
	if v.rank == 0 {
		repeat(dst, src[off])
		return
	}
	inner := v.rank - 1
	length, stride := v.dims[inner], v.strides[inner]
	var index [maxRank]int // of the outer axes
	at := off
	rest := start / length
	for axis := inner - 1; axis >= 0; axis-- {
		index[axis] = rest % v.dims[axis]
		rest /= v.dims[axis]
		at += index[axis] * v.strides[axis]
	}
	first := start % length // of the innermost axis
	for {
		n := min(length-first, len(dst))
		from := at + first*stride
		switch {
		case stride == 0 && n > shortRun:
			repeat(dst[:n], src[from])
		case stride == 1 && n > shortRun:
			copy(dst[:n], src[from:from+n])
		default:
			for i := range dst[:n] {
				dst[i] = src[from]
				from += stride
			}
		}
		if dst = dst[n:]; len(dst) == 0 {
			return
		}
		first = 0
		for axis := inner - 1; axis >= 0; axis-- {
			at += v.strides[axis]
			if index[axis]++; index[axis] < v.dims[axis] {
				break
			}
			at -= v.dims[axis] * v.strides[axis]
			index[axis] = 0
		}
	}
}

// repeat sets the elements of dst to v.
func repeat[T any](dst []T, v T) {
	p := unsafe.Pointer(&v)
	switch size := int(unsafe.Sizeof(v)); size {
	case 1:
		vec.Fill(start(dst), size, uint64(*(*uint8)(p)), len(dst))
	case 2:
		vec.Fill(start(dst), size, uint64(*(*uint16)(p)), len(dst))
	case 4:
		vec.Fill(start(dst), size, uint64(*(*uint32)(p)), len(dst))
	default:
		vec.Fill(start(dst), size, *(*uint64)(p), len(dst))
	}
}

// gatherBits is gather for elements of the given size, of operand i of c.
func gatherBits(dst unsafe.Pointer, n, size int, c *device.Command, i int, v *view, start int) {
	_, off := c.Operand(i)
	switch size {
	case 1:
		gather(slice[uint8](dst, n), whole[uint8](c, i), off, v, start)
	case 2:
		gather(slice[uint16](dst, n), whole[uint16](c, i), off, v, start)
	case 4:
		gather(slice[uint32](dst, n), whole[uint32](c, i), off, v, start)
	default:
		gather(slice[uint64](dst, n), whole[uint64](c, i), off, v, start)
	}
}

// whole is all of operand i's buffer. Indexing it keeps a wrong view inside.
func whole[T any](c *device.Command, i int) []T {
	b, _ := c.Operand(i)
	var zero T
	return unsafe.Slice((*T)(b.Ptr), int(b.Bytes)/int(unsafe.Sizeof(zero)))
}

// operand is n contiguous elements of operand i.
func operand[T device.Element](c *device.Command, i, n int) []T {
	return device.Slice[T](c.Buf[i], c.Off[i], n)
}

// pointer is where n contiguous elements of operand i begin. It panics if they reach outside of the buffer.
func pointer(c *device.Command, i, size, n int) unsafe.Pointer {
	b, off := c.Operand(i)
	// The first three keep the fourth from overflowing.
	if off < 0 || int64(off) > b.Bytes || int64(n) > b.Bytes || int64(off+n)*int64(size) > b.Bytes {
		outside(c, i, n)
	}
	return unsafe.Add(b.Ptr, off*size)
}
