package vec

import (
	"unsafe"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/kernel"
)

// Cost is how many additions of float32s an element costs in the loop for p on operands of type dt, about.
func Cost(p kernel.Prim, dt device.DType) int {
	c, ok := costs[p]
	_, isLoop := loops.get(loopKey{p, dt, NoScalar})
	_, isPartial := partials.get(loopKey{p, dt, NoScalar})
	switch {
	case !ok:
		return 1
	case !isLoop && !isPartial:
		return 200 // calls of a function
	case dt == device.Float64:
		return 3 * c
	}
	return c
}

// costs are those of float32s in assembly, as far as they are not 1; measured on Zen 4 with AVX-512.
var costs = map[kernel.Prim]int{
	kernel.PrimExp: 2, kernel.PrimExpm1: 3, kernel.PrimLog: 5, kernel.PrimLog1p: 6, kernel.PrimSin: 4,
	kernel.PrimCos: 4, kernel.PrimTanh: 4, kernel.PrimErf: 5, kernel.PrimPow: 30,
}

// partials are those in assembly that leave some operands to the twin.
var partials table[loopKey, partial]

// A partial is a Loop that stops where it meets an operand that it can't handle,
// and returns how many elements it has done.
type partial func(dst, x, y, z unsafe.Pointer, s uint64, n int) int

// complete is the whole loop: where f stops, the twin does the next elements.
func (f partial) complete(twin Loop, size int) Loop {
	const vector = 16 // float32s of AVX-512: f does not stop for the same operand twice
	return func(dst, x, y, z unsafe.Pointer, s uint64, n int) {
		for {
			done := f(dst, x, y, z, s, n)
			if done == n {
				return
			}
			next := func(p unsafe.Pointer, k int) unsafe.Pointer {
				if p == nil { // a scalar
					return nil
				}
				return unsafe.Add(p, k*size)
			}
			dst, x, y, z, n = next(dst, done), next(x, done), next(y, done), next(z, done), n-done
			few := min(n, vector)
			twin(dst, x, y, z, s, few)
			if few == n {
				return
			}
			dst, x, y, z, n = next(dst, few), next(x, few), next(y, few), next(z, few), n-few
		}
	}
}
