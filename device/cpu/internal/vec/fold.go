package vec

import (
	"sync"
	"unsafe"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/kernel"
)

// A Fold combines n elements at x, at most kernel.Block of them, by the tree of kernel.Fold. The
// result and the identity are Bits.
type Fold func(x unsafe.Pointer, n int, identity uint64) uint64

type foldKey struct {
	prim kernel.Prim
	dt   device.DType
}

// The folds and searches in assembly.
var (
	folds    table[foldKey, Fold]
	finds    table[device.DType, Find]
	rowFolds table[foldKey, RowFold]
)

// FoldOf returns the fold by p of elements of type dt. It returns nil if p does not combine two of them into one.
func FoldOf(p kernel.Prim, dt device.DType) Fold {
	if f, ok := folds.get(foldKey{p, dt}); ok {
		return f
	}
	combine := PrimLoop(p, dt, NoScalar)
	if combine == nil {
		return nil
	}
	size := dt.Size()
	return func(x unsafe.Pointer, n int, identity uint64) uint64 { return foldBlock(combine, size, x, n, identity) }
}

// Columns is how many neighbouring elements a RowFold folds together, or a multiple of it.
const Columns = 64

// A RowFold folds rows into lanes. A row and a lane each have count*[Columns] elements, and count is at
// least 1. Row k begins k*stride bytes after x; each of its elements is combined with the element at
// the same place of lane k % width.
type RowFold func(lanes, x unsafe.Pointer, rows, stride, width, count int)

// RowFoldOf returns the RowFold by p of elements of type dt. It returns nil if p does not combine two of them into one.
func RowFoldOf(p kernel.Prim, dt device.DType) RowFold {
	if f, ok := rowFolds.get(foldKey{p, dt}); ok {
		return f
	}
	combine := PrimLoop(p, dt, NoScalar)
	if combine == nil {
		return nil
	}
	size := dt.Size()
	return func(lanes, x unsafe.Pointer, rows, stride, width, count int) {
		n := count * Columns
		for k := range rows {
			lane := unsafe.Add(lanes, k%width*n*size)
			combine(lane, lane, unsafe.Add(x, k*stride), nil, 0, n)
		}
	}
}

var laneMemory = sync.Pool{New: func() any { return new([kernel.Lanes]uint64) }}

// foldBlock is a Fold by a loop that combines vectors.
func foldBlock(combine Loop, size int, x unsafe.Pointer, n int, identity uint64) uint64 {
	if n == 0 {
		return identity
	}
	memory := laneMemory.Get().(*[kernel.Lanes]uint64)
	defer laneMemory.Put(memory)
	lanes := unsafe.Pointer(memory)
	width := kernel.LanesFor(n)
	Fill(lanes, size, identity, width)
	for at := 0; at < n; at += width {
		combine(lanes, lanes, unsafe.Add(x, at*size), nil, 0, min(n-at, width))
	}
	for half := width / 2; half > 0; half /= 2 {
		combine(lanes, lanes, unsafe.Add(lanes, half*size), nil, 0, half)
	}
	switch size {
	case 1:
		return uint64(*(*uint8)(lanes))
	case 4:
		return uint64(*(*uint32)(lanes))
	}
	return *(*uint64)(lanes)
}

// A Find is the index of the first of n numbers at x that is equal to the one with the Bits want, or is NaN. It is n
// if there is none.
type Find func(x unsafe.Pointer, n int, want uint64) int

// FindOf returns the search among elements of type dt, which are numbers.
func FindOf(dt device.DType) Find {
	if f, ok := finds.get(dt); ok {
		return f
	}
	switch dt {
	case device.Float32:
		return find[float32]
	case device.Float64:
		return find[float64]
	}
	return find[int64]
}

func find[T number](x unsafe.Pointer, n int, want uint64) int {
	value := kernel.Value[T](want)
	for i, v := range slice[T](x, n) {
		if v == value || v != v {
			return i
		}
	}
	return n
}
