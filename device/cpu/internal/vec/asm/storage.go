package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
)

// storage writes the conversions between types for storage and those that they are computed in.
func storage(m *isa) {
	convert := func(from, to *element, instruction func(...Op)) {
		cast(m, from, to, plain(m, func(x, _, r vector) { instruction(x, r) }))
	}
	// into is a conversion to smaller elements.
	into := func(from, to *element, body func() func(x, r vector)) {
		cast(m, from, to, func() func([]value) value {
			f := body()
			return func(in []value) value {
				r := sized(max(16, m.bytes*to.size/from.size))
				f(in[0].v, r)
				return value{v: r}
			}
		})
	}
	convert(float16s, float32s, VCVTPH2PS)
	into(float32s, float16s, func() func(x, r vector) {
		return func(x, r vector) { VCVTPS2PH(Imm(0), x, r) } // 0: to nearest even
	})
	cast(m, bfloat16s, float32s, plain(m, func(x, _, r vector) {
		VPMOVZXWD(x, r)
		VPSLLD(Imm(16), r, r)
	}))
	into(float32s, bfloat16s, func() func(x, r vector) {
		round := brains(m)
		return func(x, r vector) {
			if y := round(x); m == avx512 {
				VPMOVDW(y, r)
			} else {
				high := XMM()
				VEXTRACTI128(Imm(1), y, high)
				VPACKUSDW(high, y.AsX(), r)
			}
		}
	})
	convert(int32s, int64s, VPMOVSXDQ)
	convert(uint8s, int64s, VPMOVZXBQ)
	if m == avx512 {
		into(int64s, int32s, func() func(x, r vector) { return func(x, r vector) { VPMOVQD(x, r) } })
		into(int64s, uint8s, func() func(x, r vector) { return func(x, r vector) { VPMOVQB(x, r) } })
		fromDoubles()
		return
	}
	into(int64s, int32s, func() func(x, r vector) { return lowHalves })
	into(int64s, uint8s, func() func(x, r vector) {
		low := m.constant(0xff, 8)
		return func(x, r vector) {
			y := YMM()
			VPAND(low, x, y)
			lowHalves(y, r)
			VPACKUSDW(r, r, r)
			VPACKUSWB(r, r, r)
		}
	})
}

// lowHalves sets r to the lower halves of 4 int64s.
func lowHalves(x, r vector) {
	high := XMM()
	VEXTRACTI128(Imm(1), x, high)
	VSHUFPS(Imm(0x88), high, x.AsX(), r)
}

// brains returns a function that writes the conversion of float32s to bfloat16s, in the lower half of
// each element. It adds half a unit in the last place that stays, or just less if that place is even,
// and cuts off the rest. A NaN gets its quiet bit instead.
func brains(m *isa) func(x vector) vector {
	one, half, quiet := m.constant(1, 4), m.constant(0x7fff, 4), m.constant(0x400000, 4)
	return func(x vector) vector {
		r, nan := m.new(), m.new()
		VPSRLD(Imm(16), x, r)
		if m == avx512 {
			k := K()
			VCMPPS(Imm(3), x, x, k)
			VPANDD(one, r, r)
			VPADDD(half, r, r)
			VPADDD(x, r, r)
			VPORD(quiet, x, nan)
			VMOVDQA32(nan, k, r)
		} else {
			mask := YMM()
			VCMPPS(Imm(3), x, x, mask)
			VPAND(one, r, r)
			VPADDD(half, r, r)
			VPADDD(x, r, r)
			VPOR(quiet, x, nan)
			VBLENDVPS(mask, nan, r, r)
		}
		VPSRLD(Imm(16), r, r)
		return r
	}
}

// fromDoubles writes the conversions of float64s, by way of a float32 that is rounded to odd: towards 0, and with its
// last bit set if that is not exact. See device.OddFloat32.
func fromDoubles() {
	m := avx512
	odd := func() func(x vector) vector {
		one := m.constant(1, 4)
		return func(x vector) vector {
			y, back, k := YMM(), ZMM(), K()
			VCVTPD2PS_RZ_SAE(x, y)
			VCVTPS2PD(y, back)
			VCMPPD(Imm(4), back, x, k) // NaN, too, which stays one
			VPORD(one.AsY(), y, k, y)
			return y
		}
	}
	cast(m, float64s, float16s, func() func([]value) value {
		round := odd()
		return func(in []value) value {
			r := XMM()
			VCVTPS2PH(Imm(0), round(in[0].v), r)
			return value{v: r}
		}
	})
	cast(m, float64s, bfloat16s, func() func([]value) value {
		toOdd, round := odd(), brains(m)
		return func(in []value) value {
			r := XMM()
			VPMOVDW(round(toOdd(in[0].v).AsZ().(vector)).AsY(), r)
			return value{v: r}
		}
	})
}
