package cpu

import "unsafe"

type number interface{ float32 | float64 | int64 }

func slice[T any](p unsafe.Pointer, n int) []T { return unsafe.Slice((*T)(p), n) }

func fillSlice[T any](dst []T, v T) {
	for i := range dst {
		dst[i] = v
	}
}

// move copies n elements of the given size. It is a vec.Loop but for that.
func moveLoop(size int) func(dst, x, y, z unsafe.Pointer, s uint64, n int) {
	return func(dst, x, _, _ unsafe.Pointer, _ uint64, n int) {
		copy(slice[byte](dst, n*size), slice[byte](x, n*size))
	}
}
