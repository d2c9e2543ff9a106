package device

import "math"

// Float16Bits is the Go type of the elements of a float16 tensor: the bits of an IEEE 754 binary16, which has 11
// significant bits and a range up to 65504.
type Float16Bits uint16

// BFloat16Bits is the Go type of the elements of a bfloat16 tensor: the upper half of the bits of a float32, with 8
// significant bits and the range of float32.
type BFloat16Bits uint16

// ToFloat16 rounds x to the nearest float16, ties to even. Numbers from 65520 on become infinite, and small ones
// subnormal. A NaN stays one, with its sign and the upper bits of its payload; it is quiet.
func ToFloat16(x float32) Float16Bits {
	b := math.Float32bits(x)
	sign, b := uint16(b>>16)&0x8000, b&0x7fffffff
	switch {
	case b > 0x7f800000: // NaN
		return Float16Bits(sign | 0x7e00 | uint16(b>>13)&0x3ff)
	case b >= 0x477ff000: // 65520, halfway between the greatest number and the next power of two
		return Float16Bits(sign | 0x7c00)
	case b < 0x38800000: // 2^-14, the least normal number
		// A unit in the last place of 0.5 is 2^-24, as in subnormals of float16.
		sum := math.Float32bits(math.Float32frombits(b) + 0.5)
		return Float16Bits(sign | uint16(sum-0x3f000000))
	}
	// The exponent's bias falls from 127 to 15, and 13 bits are rounded off. A carry runs into the exponent.
	b -= (127 - 15) << 23
	return Float16Bits(sign | uint16((b+0xfff+b>>13&1)>>13))
}

// Float32 returns the value of h, exactly. A NaN is quiet.
func (h Float16Bits) Float32() float32 {
	sign, b := uint32(h&0x8000)<<16, uint32(h&0x7fff)
	switch {
	case b > 0x7c00: // NaN
		return math.Float32frombits(sign | 0x7fc00000 | b<<13)
	case b == 0x7c00:
		return math.Float32frombits(sign | 0x7f800000)
	case b < 0x400: // subnormal, or 0
		return math.Float32frombits(sign | math.Float32bits(float32(b)*0x1p-24))
	}
	return math.Float32frombits(sign | (b<<13 + (127-15)<<23))
}

// ToBFloat16 rounds x to the nearest bfloat16, ties to even. A NaN stays one, with its sign and the upper bits of its
// payload; it is quiet.
func ToBFloat16(x float32) BFloat16Bits {
	b := math.Float32bits(x)
	if x != x {
		return BFloat16Bits(b>>16 | 0x40)
	}
	return BFloat16Bits((b + 0x7fff + b>>16&1) >> 16)
}

// Float32 returns the value of h, exactly.
func (h BFloat16Bits) Float32() float32 { return math.Float32frombits(uint32(h) << 16) }

// OddFloat32 rounds x to odd: if x is not a float32, the result is the neighbour whose last bit is 1.
// When the result is then rounded to nearest, to a type with fewer significant bits, that gives the
// same as rounding x itself. See Boldo and Melquiond, "When double rounding is odd", 2005.
func OddFloat32(x float64) float32 {
	y := float32(x)
	b := math.Float32bits(y)
	switch {
	case float64(y) == x || b&1 != 0 || x != x:
		return y
	case math.Abs(float64(y)) < math.Abs(x):
		return math.Float32frombits(b + 1)
	}
	return math.Float32frombits(b - 1)
}
