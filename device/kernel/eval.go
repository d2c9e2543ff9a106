package kernel

import (
	"fmt"
	"math"
	"math/bits"
	"strconv"

	"github.com/asyncgen/asyncgen/device"
)

// Bits is v as a command's immediate carries it: its representation, in the low bits of the word.
func Bits[T device.Element](v T) uint64 {
	switch v := any(v).(type) {
	case float32:
		return uint64(math.Float32bits(v))
	case float64:
		return math.Float64bits(v)
	case int64:
		return uint64(v)
	case bool:
		if v {
			return 1
		}
	case device.Float16Bits:
		return uint64(v)
	case device.BFloat16Bits:
		return uint64(v)
	case int32:
		return uint64(uint32(v))
	case uint8:
		return uint64(v)
	}
	return 0
}

// Value is the T whose Bits are bits.
func Value[T device.Element](bits uint64) T {
	var v T
	switch p := any(&v).(type) {
	case *float32:
		*p = math.Float32frombits(uint32(bits))
	case *float64:
		*p = math.Float64frombits(bits)
	case *int64:
		*p = int64(bits)
	case *bool:
		*p = bits != 0
	case *device.Float16Bits:
		*p = device.Float16Bits(bits)
	case *device.BFloat16Bits:
		*p = device.BFloat16Bits(bits)
	case *int32:
		*p = int32(bits)
	case *uint8:
		*p = uint8(bits)
	}
	return v
}

// BitsOf is the Bits of v converted to dt, as Cast converts.
func BitsOf(v float64, dt device.DType) uint64 {
	return castBits(math.Float64bits(v), device.Float64, dt)
}

// WideBits is the Bits of a value of type dt, given as Bits, in the type that dt is computed in.
func WideBits(bits uint64, dt device.DType) uint64 { return castBits(bits, dt, dt.Wide()) }

// Eval computes e for one element. args are the inputs' elements there, imms the command's
// immediates, and all values are Bits. This is the definition that backends are compared with.
func (e *Expr) Eval(args, imms []uint64) uint64 {
	values := map[*Expr]uint64{}
	for _, x := range e.Nodes() {
		switch x.kind {
		case Operand:
			values[x] = args[x.Index()]
		case Immediate:
			values[x] = imms[x.Index()]
		case Constant:
			values[x] = x.bits
		case Application:
			var in [3]uint64
			for i, operand := range x.In() {
				in[i] = values[operand]
			}
			values[x] = applyBits(x, in)
		}
	}
	return values[e]
}

// applyBits computes the primitive of e, an application, for operands with the Bits in.
func applyBits(e *Expr, in [3]uint64) uint64 {
	from := e.in[e.prim.Arity()-1].dtype
	if e.prim == PrimCast {
		return castBits(in[0], from, e.dtype)
	}
	switch f := e.prim.Func(from); from {
	case device.Float32:
		return call[float32](f, in)
	case device.Float64:
		return call[float64](f, in)
	case device.Int64:
		return call[int64](f, in)
	default:
		return call[bool](f, in)
	}
}

func call[T device.Element](f any, in [3]uint64) uint64 {
	// For T = bool, func(T, T) T and func(T, T) bool are one type, and the first case is taken.
	switch f := f.(type) {
	case func(bool, T, T) T:
		return Bits(f(in[0] != 0, Value[T](in[1]), Value[T](in[2])))
	case func(T) T:
		return Bits(f(Value[T](in[0])))
	case func(T, T) T:
		return Bits(f(Value[T](in[0]), Value[T](in[1])))
	case func(T, T) bool:
		return Bits(f(Value[T](in[0]), Value[T](in[1])))
	}
	panic(fmt.Sprintf("kernel: a primitive can't be a %T", f))
}

// CastFunc is PrimCast as a Go function: a func(S) D, where S and D are the Go types of from and to. It is nil unless
// [Converts] says that there is one.
func CastFunc(from, to device.DType) any { return casts[from][to] }

var casts = [device.NumDTypes]perType{
	device.Float32: {
		device.Float64:  func(x float32) float64 { return float64(x) },
		device.Int64:    toInt[float32],
		device.Bool:     func(x float32) bool { return x != 0 },
		device.Float16:  device.ToFloat16,
		device.BFloat16: device.ToBFloat16,
	},
	device.Float64: {
		device.Float32:  func(x float64) float32 { return float32(x) },
		device.Int64:    toInt[float64],
		device.Bool:     func(x float64) bool { return x != 0 },
		device.Float16:  func(x float64) device.Float16Bits { return device.ToFloat16(device.OddFloat32(x)) },
		device.BFloat16: func(x float64) device.BFloat16Bits { return device.ToBFloat16(device.OddFloat32(x)) },
	},
	device.Int64: {
		device.Float32:  func(x int64) float32 { return float32(x) },
		device.Float64:  func(x int64) float64 { return float64(x) },
		device.Bool:     func(x int64) bool { return x != 0 },
		device.Float16:  func(x int64) device.Float16Bits { return device.ToFloat16(oddInt(x)) },
		device.BFloat16: func(x int64) device.BFloat16Bits { return device.ToBFloat16(oddInt(x)) },
		device.Int32:    func(x int64) int32 { return int32(x) },
		device.Uint8:    func(x int64) uint8 { return uint8(x) },
	},
	device.Bool: {
		device.Float32: fromBool[float32],
		device.Float64: fromBool[float64],
		device.Int64:   fromBool[int64],
	},
	device.Float16:  {device.Float32: device.Float16Bits.Float32},
	device.BFloat16: {device.Float32: device.BFloat16Bits.Float32},
	device.Int32:    {device.Int64: func(x int32) int64 { return int64(x) }},
	device.Uint8:    {device.Int64: func(x uint8) int64 { return int64(x) }},
}

// oddInt is [device.OddFloat32] of an int64.
func oddInt(x int64) float32 {
	magnitude := uint64(max(x, -x)) // of the least int64 too
	rest := max(0, bits.Len64(magnitude)-24)
	high := magnitude >> rest
	if high<<rest != magnitude {
		high |= 1
	}
	y := float32(high << rest)
	if x < 0 {
		return -y
	}
	return y
}

// toInt truncates x and saturates. A Go conversion out of range would depend on the architecture.
func toInt[T float32 | float64](x T) int64 {
	switch {
	case x != x:
		return 0
	case x >= 1<<63:
		return math.MaxInt64
	case x < -1<<63:
		return math.MinInt64
	}
	return int64(x)
}

func fromBool[T number](b bool) T {
	if b {
		return 1
	}
	return 0
}

// castBits is [Cast] of the value with these Bits. Conversions that are made of others are evaluated as Cast builds
// them.
func castBits(bits uint64, from, to device.DType) uint64 {
	if from == to {
		return bits
	}
	if !Converts(from, to) {
		return Cast(Arg(0, from), to).Eval([]uint64{bits}, nil)
	}
	switch from {
	case device.Float32:
		return castOf(CastFunc(from, to), Value[float32](bits))
	case device.Float64:
		return castOf(CastFunc(from, to), Value[float64](bits))
	case device.Int64:
		return castOf(CastFunc(from, to), Value[int64](bits))
	case device.Bool:
		return castOf(CastFunc(from, to), Value[bool](bits))
	case device.Float16:
		return castOf(CastFunc(from, to), Value[device.Float16Bits](bits))
	case device.BFloat16:
		return castOf(CastFunc(from, to), Value[device.BFloat16Bits](bits))
	case device.Int32:
		return castOf(CastFunc(from, to), Value[int32](bits))
	default:
		return castOf(CastFunc(from, to), Value[uint8](bits))
	}
}

// castOf returns the Bits of f(x), for one of the functions of casts.
func castOf[S device.Element](f any, x S) uint64 {
	switch f := f.(type) {
	case func(S) float32:
		return Bits(f(x))
	case func(S) float64:
		return Bits(f(x))
	case func(S) int64:
		return Bits(f(x))
	case func(S) bool:
		return Bits(f(x))
	case func(S) device.Float16Bits:
		return Bits(f(x))
	case func(S) device.BFloat16Bits:
		return Bits(f(x))
	case func(S) int32:
		return Bits(f(x))
	case func(S) uint8:
		return Bits(f(x))
	}
	panic(fmt.Sprintf("kernel: a conversion can't be a %T", f))
}

func formatBits(bits uint64, dt device.DType) string {
	switch dt {
	case device.Float16, device.BFloat16, device.Int32, device.Uint8:
		return formatBits(castBits(bits, dt, dt.Wide()), dt.Wide())
	case device.Float32:
		return strconv.FormatFloat(float64(Value[float32](bits)), 'g', -1, 32)
	case device.Float64:
		return strconv.FormatFloat(Value[float64](bits), 'g', -1, 64)
	case device.Int64:
		return strconv.FormatInt(int64(bits), 10)
	}
	return strconv.FormatBool(bits != 0)
}
