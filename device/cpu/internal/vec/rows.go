package vec

import (
	"sync"
	"unsafe"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/kernel"
)

// Squares folds the squares of (x - shift), for the n elements at x, by addition and by the tree of
// kernel.Fold. n is at most kernel.Block. Each difference and each square is rounded. shift and the
// result are Bits.
type Squares func(x unsafe.Pointer, n int, shift uint64) uint64

// A Norm sets n elements of dst to (x - shift) * scale, then times the elements at gain, plus those at
// bias, if there are any. Each step is rounded. shift and scale are Bits. dst may be x.
type Norm func(dst, x, gain, bias unsafe.Pointer, shift, scale uint64, n int)

type normKey struct {
	dt      device.DType
	vectors int // see NormOf
}

var (
	squares table[device.DType, Squares]
	norms   table[normKey, Norm]
)

// SquaresOf returns the loop for float32 or float64.
func SquaresOf(dt device.DType) Squares {
	if f, ok := squares.get(dt); ok {
		return f
	}
	fold := FoldOf(kernel.PrimAdd, dt)
	if dt == device.Float32 {
		return squaresTwin[float32](fold)
	}
	return squaresTwin[float64](fold)
}

var blockMemory = sync.Pool{New: func() any { return new([kernel.Block]uint64) }}

func squaresTwin[T float32 | float64](fold Fold) Squares {
	return func(x unsafe.Pointer, n int, shift uint64) uint64 {
		memory := blockMemory.Get().(*[kernel.Block]uint64)
		defer blockMemory.Put(memory)
		block, less := slice[T](unsafe.Pointer(memory), n), kernel.Value[T](shift)
		for i, v := range slice[T](x, n) {
			v -= less
			block[i] = v * v
		}
		return fold(unsafe.Pointer(memory), n, 0)
	}
}

// NormOf returns the loop for float32 or float64 with the given number of vectors: 0 for neither
// gain nor bias, 1 for a gain, 2 for both.
func NormOf(dt device.DType, vectors int) Norm {
	if f, ok := norms.get(normKey{dt, vectors}); ok {
		return f
	}
	if dt == device.Float32 {
		return normTwin[float32](vectors)
	}
	return normTwin[float64](vectors)
}

func normTwin[T float32 | float64](vectors int) Norm {
	return func(dst, x, gain, bias unsafe.Pointer, shift, scale uint64, n int) {
		to, less, times := slice[T](dst, n), kernel.Value[T](shift), kernel.Value[T](scale)
		for i, v := range slice[T](x, n) {
			to[i] = T(v-less) * times
		}
		if vectors > 0 {
			for i, v := range slice[T](gain, n) {
				to[i] *= v
			}
		}
		if vectors > 1 {
			for i, v := range slice[T](bias, n) {
				to[i] += v
			}
		}
	}
}
