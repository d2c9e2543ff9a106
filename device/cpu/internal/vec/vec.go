// Package vec has the loops of the CPU backend over slices. Each is in assembly, for AVX-512, AVX2
// or NEON, and has a twin in Go. The twin says what the loop does, and every other machine uses it.
//
// The loops of a primitive give the same bits whatever the machine has. They do not split
// work over cores, know nothing of strides and check nothing: a caller gives
// pointers to as many elements as it says. Assembly can't be interrupted, so callers
// ask for no more than some tens of microseconds' work at a time.
//
// The assembly is written by the command in the folder asm, a module of its own so that
// its dependencies are nobody else's. Builds with the tag noasm or with the race detector, which
// sees no assembly, use the twins.
package vec

//go:generate go run -C asm .

import (
	"unsafe"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/kernel"
)

// A Loop applies a primitive to n elements at x, y and z. If an operand is a scalar, s has its Bits,
// and its pointer is not used. dst may be the memory of an operand whose elements have the same size;
// otherwise it overlaps no operand.
type Loop func(dst, x, y, z unsafe.Pointer, s uint64, n int)

// A Form says which operand of a loop is a scalar.
type Form uint8

const (
	NoScalar Form = iota
	FirstScalar
	SecondScalar
	ThirdScalar
)

// PrimLoop returns the loop for p on operands of type dt. (The condition of where is a bool all the
// same.) It returns nil if p is not defined for dt, or has no loop of form f. Each primitive that
// is defined for dt has a loop of form NoScalar, except cast.
func PrimLoop(p kernel.Prim, dt device.DType, f Form) Loop {
	if l, ok := loops.get(loopKey{p, dt, f}); ok {
		return l
	}
	if l, ok := partials.get(loopKey{p, dt, f}); ok {
		return l.complete(twin(p, dt, f), dt.Size())
	}
	return twin(p, dt, f)
}

// PrimStream is PrimLoop for a loop that writes past the caches, as [Stream] does, to a dst that is a multiple of
// 64 bytes. It returns nil where there is none.
func PrimStream(p kernel.Prim, dt device.DType, f Form) Loop {
	l, _ := streamLoops.get(loopKey{p, dt, f})
	return l
}

// AddMulLoop returns the loops that compute z + x*y, or z - x*y if isMinus, for floats: the product is rounded before
// it is added, as a loop for each primitive gives it. past is nil or writes past the caches; see [PrimStream]. There
// are none in which z is a scalar.
func AddMulLoop(isMinus bool, dt device.DType, f Form) (loop, past Loop) {
	switch f {
	case ThirdScalar:
		return nil, nil
	case FirstScalar:
		loop, past = AddMulLoop(isMinus, dt, SecondScalar)
		return swapped(loop), swapped(past)
	}
	loop, ok := addMuls.get(addMulKey{isMinus, dt, f})
	if !ok {
		loop = addMulTwin(isMinus, dt, f)
	}
	past, _ = streamAddMuls.get(addMulKey{isMinus, dt, f})
	return loop, past
}

// swapped is l with its first two operands in the other order.
func swapped(l Loop) Loop {
	if l == nil {
		return nil
	}
	return func(dst, x, y, z unsafe.Pointer, s uint64, n int) { l(dst, y, x, z, s, n) }
}

type addMulKey struct {
	isMinus bool
	dt      device.DType
	form    Form
}

type loopKey struct {
	prim kernel.Prim
	dt   device.DType // of the last operand
	form Form
}

// CastLoop returns the loop that converts as kernel.CastFunc does, between types for which there is one.
func CastLoop(from, to device.DType) Loop {
	if l, ok := casts.get(castKey{from, to}); ok {
		return l
	}
	return castTwin(from, to)
}

type castKey struct{ from, to device.DType }

// The loops in assembly.
var (
	loops       table[loopKey, Loop]
	streamLoops table[loopKey, Loop]
	casts       table[castKey, Loop]

	addMuls       table[addMulKey, Loop]
	streamAddMuls table[addMulKey, Loop]
)
