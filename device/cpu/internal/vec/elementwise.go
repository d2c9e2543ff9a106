package vec

import (
	"math"
	"unsafe"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/kernel"
)

// The twins of the loops that apply a primitive. They give the bits of the
// primitive's Go function (kernel.Prim.Func), which the tests check; those that
// are fast enough without a loop of their own call it.
//
// The products and sums of one loop are never combined by the compiler, as each
// goes through memory.

type number interface{ float32 | float64 | int64 }

func slice[T any](p unsafe.Pointer, n int) []T { return unsafe.Slice((*T)(p), n) }

// twin is the loop of the given form in Go, or nil.
func twin(p kernel.Prim, dt device.DType, f Form) Loop {
	if p.Func(dt) == nil || f == ThirdScalar && p != kernel.PrimWhere {
		return nil
	}
	switch dt {
	case device.Float32:
		return numberLoop[float32](p, f)
	case device.Float64:
		return numberLoop[float64](p, f)
	case device.Int64:
		return numberLoop[int64](p, f)
	}
	if f != NoScalar {
		return nil
	}
	return funcLoop[bool](p, device.Bool)
}

func numberLoop[T number](p kernel.Prim, form Form) Loop {
	switch p {
	case kernel.PrimAdd, kernel.PrimSub, kernel.PrimMul, kernel.PrimDiv, kernel.PrimMax, kernel.PrimMin:
		switch form {
		case NoScalar:
			return func(dst, x, y, _ unsafe.Pointer, _ uint64, n int) {
				arith(p, slice[T](dst, n), slice[T](x, n), slice[T](y, n))
			}
		case FirstScalar:
			return func(dst, _, y, _ unsafe.Pointer, s uint64, n int) {
				arithFirst(p, slice[T](dst, n), kernel.Value[T](s), slice[T](y, n))
			}
		default:
			return func(dst, x, _, _ unsafe.Pointer, s uint64, n int) {
				arithSecond(p, slice[T](dst, n), slice[T](x, n), kernel.Value[T](s))
			}
		}
	case kernel.PrimEq, kernel.PrimNe, kernel.PrimLt, kernel.PrimLe:
		switch form {
		case NoScalar:
			return func(dst, x, y, _ unsafe.Pointer, _ uint64, n int) {
				compare(p, slice[bool](dst, n), slice[T](x, n), slice[T](y, n))
			}
		case FirstScalar:
			return func(dst, _, y, _ unsafe.Pointer, s uint64, n int) {
				compareFirst(p, slice[bool](dst, n), kernel.Value[T](s), slice[T](y, n))
			}
		default:
			return func(dst, x, _, _ unsafe.Pointer, s uint64, n int) {
				compareSecond(p, slice[bool](dst, n), slice[T](x, n), kernel.Value[T](s))
			}
		}
	}
	switch {
	case p == kernel.PrimWhere && form == SecondScalar:
		return chooseScalar(device.DTypeOf[T]().Size(), true)
	case p == kernel.PrimWhere && form == ThirdScalar:
		return chooseScalar(device.DTypeOf[T]().Size(), false)
	case form != NoScalar:
		return nil
	}
	switch p {
	case kernel.PrimNeg:
		return func(dst, x, _, _ unsafe.Pointer, _ uint64, n int) { negate(slice[T](dst, n), slice[T](x, n)) }
	case kernel.PrimSqrt:
		return func(dst, x, _, _ unsafe.Pointer, _ uint64, n int) { squareRoot(slice[T](dst, n), slice[T](x, n)) }
	}
	return funcLoop[T](p, device.DTypeOf[T]())
}

// funcLoop calls the primitive's Go function for each element.
func funcLoop[T device.Element](p kernel.Prim, dt device.DType) Loop {
	switch f := p.Func(dt).(type) {
	case func(bool, T, T) T:
		return whereLoop(dt.Size())
	case func(T) T:
		return func(dst, x, _, _ unsafe.Pointer, _ uint64, n int) { apply(f, slice[T](dst, n), slice[T](x, n)) }
	case func(T, T) T:
		return func(dst, x, y, _ unsafe.Pointer, _ uint64, n int) {
			apply2(f, slice[T](dst, n), slice[T](x, n), slice[T](y, n))
		}
	case func(T, T) bool: // for T = bool this is the case above
		return func(dst, x, y, _ unsafe.Pointer, _ uint64, n int) {
			apply2(f, slice[bool](dst, n), slice[T](x, n), slice[T](y, n))
		}
	}
	return nil
}

func apply[T, R any](f func(T) R, dst []R, x []T) {
	x = x[:len(dst)]
	for i := range dst {
		dst[i] = f(x[i])
	}
}

func apply2[T, R any](f func(T, T) R, dst []R, x, y []T) {
	x, y = x[:len(dst)], y[:len(dst)]
	for i := range dst {
		dst[i] = f(x[i], y[i])
	}
}

func arith[T number](p kernel.Prim, dst, x, y []T) {
	x, y = x[:len(dst)], y[:len(dst)]
	switch p {
	case kernel.PrimAdd:
		for i := range dst {
			dst[i] = x[i] + y[i]
		}
	case kernel.PrimSub:
		for i := range dst {
			dst[i] = x[i] - y[i]
		}
	case kernel.PrimMul:
		for i := range dst {
			dst[i] = x[i] * y[i]
		}
	case kernel.PrimDiv:
		for i := range dst {
			dst[i] = x[i] / y[i]
		}
	case kernel.PrimMax:
		for i := range dst {
			dst[i] = max(x[i], y[i])
		}
	case kernel.PrimMin:
		for i := range dst {
			dst[i] = min(x[i], y[i])
		}
	}
}

func arithSecond[T number](p kernel.Prim, dst, x []T, s T) {
	x = x[:len(dst)]
	switch p {
	case kernel.PrimAdd:
		for i := range dst {
			dst[i] = x[i] + s
		}
	case kernel.PrimSub:
		for i := range dst {
			dst[i] = x[i] - s
		}
	case kernel.PrimMul:
		for i := range dst {
			dst[i] = x[i] * s
		}
	case kernel.PrimDiv:
		for i := range dst {
			dst[i] = x[i] / s
		}
	case kernel.PrimMax:
		for i := range dst {
			dst[i] = max(x[i], s)
		}
	case kernel.PrimMin:
		for i := range dst {
			dst[i] = min(x[i], s)
		}
	}
}

func arithFirst[T number](p kernel.Prim, dst []T, s T, y []T) {
	y = y[:len(dst)]
	switch p {
	case kernel.PrimSub:
		for i := range dst {
			dst[i] = s - y[i]
		}
	case kernel.PrimDiv:
		for i := range dst {
			dst[i] = s / y[i]
		}
	default: // the others are commutative
		arithSecond(p, dst, y, s)
	}
}

func compare[T number](p kernel.Prim, dst []bool, x, y []T) {
	x, y = x[:len(dst)], y[:len(dst)]
	switch p {
	case kernel.PrimEq:
		for i := range dst {
			dst[i] = x[i] == y[i]
		}
	case kernel.PrimNe:
		for i := range dst {
			dst[i] = x[i] != y[i]
		}
	case kernel.PrimLt:
		for i := range dst {
			dst[i] = x[i] < y[i]
		}
	case kernel.PrimLe:
		for i := range dst {
			dst[i] = x[i] <= y[i]
		}
	}
}

func compareSecond[T number](p kernel.Prim, dst []bool, x []T, s T) {
	x = x[:len(dst)]
	switch p {
	case kernel.PrimEq:
		for i := range dst {
			dst[i] = x[i] == s
		}
	case kernel.PrimNe:
		for i := range dst {
			dst[i] = x[i] != s
		}
	case kernel.PrimLt:
		for i := range dst {
			dst[i] = x[i] < s
		}
	case kernel.PrimLe:
		for i := range dst {
			dst[i] = x[i] <= s
		}
	}
}

func compareFirst[T number](p kernel.Prim, dst []bool, s T, y []T) {
	y = y[:len(dst)]
	switch p {
	case kernel.PrimLt:
		for i := range dst {
			dst[i] = s < y[i]
		}
	case kernel.PrimLe:
		for i := range dst {
			dst[i] = s <= y[i]
		}
	default: // the others are symmetric
		compareSecond(p, dst, y, s)
	}
}

// addMulTwin is the loop that AddMulLoop returns, in Go.
func addMulTwin(isMinus bool, dt device.DType, f Form) Loop {
	if dt == device.Float64 {
		return addMulOf[float64](isMinus, f)
	}
	return addMulOf[float32](isMinus, f)
}

func addMulOf[T float32 | float64](isMinus bool, f Form) Loop {
	sign := T(1)
	if isMinus {
		sign = -1 // z - x*y is z + -(x*y)
	}
	// The conversions keep the compiler from rounding a product and a sum once.
	if f == SecondScalar {
		return func(dst, x, _, z unsafe.Pointer, s uint64, n int) {
			to, x1, y1, z1 := slice[T](dst, n), slice[T](x, n), kernel.Value[T](s), slice[T](z, n)
			for i := range to {
				to[i] = z1[i] + T(sign*T(x1[i]*y1))
			}
		}
	}
	return func(dst, x, y, z unsafe.Pointer, _ uint64, n int) {
		to, x1, y1, z1 := slice[T](dst, n), slice[T](x, n), slice[T](y, n), slice[T](z, n)
		for i := range to {
			to[i] = z1[i] + T(sign*T(x1[i]*y1[i]))
		}
	}
}

func negate[T number](dst, x []T) {
	x = x[:len(dst)]
	for i := range dst {
		dst[i] = -x[i]
	}
}

func squareRoot[T number](dst, x []T) {
	x = x[:len(dst)]
	for i := range dst {
		dst[i] = T(math.Sqrt(float64(x[i])))
	}
}

// whereLoop moves bits, which compiles to a conditional move: floats would be branches.
func whereLoop(size int) Loop {
	switch size {
	case 1:
		return choose[uint8]
	case 4:
		return choose[uint32]
	}
	return choose[uint64]
}

func choose[T any](dst, c, x, y unsafe.Pointer, _ uint64, n int) {
	d, cs, xs, ys := slice[T](dst, n), slice[bool](c, n), slice[T](x, n), slice[T](y, n)
	cs, xs, ys = cs[:len(d)], xs[:len(d)], ys[:len(d)] // no bounds checks in the loop
	for i := range d {
		v := ys[i]
		if cs[i] {
			v = xs[i]
		}
		d[i] = v
	}
}

// chooseScalar is whereLoop with a scalar for one of its two sides. Where the condition is equal to
// when, it chooses the scalar; elsewhere, the element of the other side.
func chooseScalar(size int, when bool) Loop {
	if size == 4 {
		return func(dst, c, x, y unsafe.Pointer, s uint64, n int) { chooseOr[uint32](dst, c, x, y, uint32(s), when, n) }
	}
	return func(dst, c, x, y unsafe.Pointer, s uint64, n int) { chooseOr[uint64](dst, c, x, y, s, when, n) }
}

func chooseOr[T any](dst, c, x, y unsafe.Pointer, s T, when bool, n int) {
	if when {
		x = y
	}
	d, cs, xs := slice[T](dst, n), slice[bool](c, n), slice[T](x, n)
	cs, xs = cs[:len(d)], xs[:len(d)]
	for i := range d {
		v := xs[i]
		if cs[i] == when {
			v = s
		}
		d[i] = v
	}
}

// castTwin is CastLoop in Go.
func castTwin(from, to device.DType) Loop {
	f := kernel.CastFunc(from, to)
	switch from {
	case device.Float32:
		return castLoop[float32](f)
	case device.Float64:
		return castLoop[float64](f)
	case device.Int64:
		return castLoop[int64](f)
	case device.Bool:
		return castLoop[bool](f)
	case device.Float16:
		return castLoop[device.Float16Bits](f)
	case device.BFloat16:
		return castLoop[device.BFloat16Bits](f)
	case device.Int32:
		return castLoop[int32](f)
	default:
		return castLoop[uint8](f)
	}
}

// castLoop is the loop of a function that converts from S.
func castLoop[S device.Element](f any) Loop {
	switch f := f.(type) {
	case func(S) float32:
		return convert(f)
	case func(S) float64:
		return convert(f)
	case func(S) int64:
		return convert(f)
	case func(S) bool:
		return convert(f)
	case func(S) device.Float16Bits:
		return convert(f)
	case func(S) device.BFloat16Bits:
		return convert(f)
	case func(S) int32:
		return convert(f)
	case func(S) uint8:
		return convert(f)
	}
	return nil
}

func convert[S, D any](f func(S) D) Loop {
	return func(dst, x, _, _ unsafe.Pointer, _ uint64, n int) { apply(f, slice[D](dst, n), slice[S](x, n)) }
}
