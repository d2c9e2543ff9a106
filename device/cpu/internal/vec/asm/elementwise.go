package main

import (
	"strings"

	"github.com/asyncgen/asyncgen/device/cpu/internal/vec/asm/neon"
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// elementwise writes the loops of the primitives that are a few instructions, and of conversions.
func elementwise() {
	for _, m := range isas {
		for _, e := range []*element{float32s, float64s} {
			floats(m, e)
			products(m, e)
		}
		integers(m)
		booleans(m)
		for _, e := range []*element{float32s, float64s, int64s} {
			comparisons(m, e)
			choice(m, e)
		}
		casts(m)
		storage(m)
	}
}

// prim writes the loops of a primitive, in all forms that there are.
func prim(m *isa, name, text string, in []*element, out *element, body func() func(in []value) value) {
	of := in[len(in)-1]
	l := &loop{m: m, name: strings.ToLower(name) + of.name, text: text, in: in, out: out, body: body, table: "loops"}
	l.key = func(form string) string {
		return "loopKey{kernel.Prim" + name + ", device." + of.name + ", " + form + "}"
	}
	for _, form := range forms {
		if form == "NoScalar" || of != bools && hasForm(in, form) {
			l.writeBoth(form, "streamLoops")
		}
	}
}

// products writes the loops of a product that is added to something or taken from it, each rounded.
func products(m *isa, e *element) {
	mul := pair(e, VMULPS, VMULPD)
	for _, op := range []struct {
		name, text, isMinus string
		instruction         func(...Op)
	}{
		{"addMul", "$z + $x*$y", "false", pair(e, VADDPS, VADDPD)},
		{"subMul", "$z - $x*$y", "true", pair(e, VSUBPS, VSUBPD)},
	} {
		l := &loop{m: m, name: op.name + e.name, text: op.text, in: []*element{e, e, e}, out: e, table: "addMuls"}
		l.body = func() func(in []value) value {
			return func(in []value) value {
				product, r := m.new(), m.new()
				mul(in[1].v, in[0].v, product)
				op.instruction(product, in[2].v, r)
				return value{v: r}
			}
		}
		l.key = func(form string) string { return "addMulKey{" + op.isMinus + ", device." + e.name + ", " + form + "}" }
		l.writeBoth("NoScalar", "streamAddMuls")
		l.writeBoth("SecondScalar", "streamAddMuls")
	}
}

// writeBoth writes the loop, and the one that writes past the caches where there is one. That goes into the table
// streams.
func (l *loop) writeBoth(form, streams string) {
	l.write(form)
	if l.out != bools && l.m != neons {
		stream := *l
		stream.past, stream.table = true, streams
		stream.write(form)
	}
}

// hasForm reports whether there are loops of the given form. A primitive of two operands has one with
// either of them as a scalar; a choice has one for either of its two sides.
func hasForm(in []*element, form string) bool {
	switch len(in) {
	case 2:
		return form != "ThirdScalar"
	case 3:
		return form != "FirstScalar"
	}
	return false
}

// plain is the body that computes one vector of others.
func plain(m *isa, f func(x, y, result vector)) func() func(in []value) value {
	return func() func(in []value) value { return simple(m, f) }
}

func simple(m *isa, f func(x, y, result vector)) func(in []value) value {
	return func(in []value) value {
		var y vector
		if len(in) > 1 {
			y = in[1].v
		}
		r := m.new()
		f(in[0].v, y, r)
		return value{v: r}
	}
}

// pair picks the instruction for float32s or float64s.
func pair(e *element, single, double func(...Op)) func(...Op) {
	if e == float32s {
		return single
	}
	return double
}

// three is an instruction that avo has with three operands as one with any.
func three(instruction func(x, y, z Op)) func(...Op) {
	return func(ops ...Op) { instruction(ops[0], ops[1], ops[2]) }
}

func floats(m *isa, e *element) {
	one, two := []*element{e}, []*element{e, e}
	for _, op := range []struct {
		name, text  string
		instruction func(...Op)
	}{
		{"Add", "$x + $y", pair(e, VADDPS, VADDPD)},
		{"Sub", "$x - $y", pair(e, VSUBPS, VSUBPD)},
		{"Mul", "$x * $y", pair(e, VMULPS, VMULPD)},
		{"Div", "$x / $y", pair(e, VDIVPS, VDIVPD)},
	} {
		prim(m, op.name, op.text, two, e, plain(m, func(x, y, r vector) { op.instruction(y, x, r) }))
	}
	prim(m, "Max", "max($x, $y)", two, e, plain(m, func(x, y, r vector) { extreme(m, e, true, x, y, r) }))
	prim(m, "Min", "min($x, $y)", two, e, plain(m, func(x, y, r vector) { extreme(m, e, false, x, y, r) }))
	prim(m, "Sqrt", "sqrt($x)", one, e, plain(m, func(x, _, r vector) { pair(e, VSQRTPS, VSQRTPD)(x, r) }))

	signBit := uint64(1) << (8*e.size - 1)
	xor, and := pair(e, VXORPS, VXORPD), pair(e, VANDPS, VANDPD)
	prim(m, "Neg", "-$x", one, e, func() func([]value) value {
		sign := m.constant(signBit, e.size)
		return simple(m, func(x, _, r vector) { xor(sign, x, r) })
	})
	prim(m, "Abs", "abs($x)", one, e, func() func([]value) value {
		rest := m.constant(signBit-1, e.size)
		return simple(m, func(x, _, r vector) { and(rest, x, r) })
	})
	for _, op := range []struct {
		name, text string
		mode       uint64
	}{{"Round", "roundToEven($x)", 0}, {"Floor", "floor($x)", 1}, {"Ceil", "ceil($x)", 2}} {
		instruction := pair(e, three(VROUNDPS), three(VROUNDPD))
		if m == avx512 {
			instruction = pair(e, VRNDSCALEPS, VRNDSCALEPD)
		}
		// 8: no exception if inexact
		prim(m, op.name, op.text, one, e, plain(m, func(x, _, r vector) { instruction(Imm(8|op.mode), x, r) }))
	}
}

// extreme sets r to the larger or smaller of x and y, to NaN if one is NaN. 0 is above -0.
// The registers have any size.
func extreme(m *isa, e *element, isMax bool, x, y, r vector) {
	if m == avx512 {
		mode := uint64(4) // the smaller one, with its sign
		if isMax {
			mode = 5
		}
		pair(e, VRANGEPS, VRANGEPD)(Imm(mode), y, x, r) // a number where one is NaN
		nan := K()
		pair(e, VCMPPS, VCMPPD)(Imm(3), y, x, nan)
		pair(e, VADDPS, VADDPD)(y, x, nan, r)
		return
	}
	if m == neons {
		pickExtreme(isMax)(e.size, x, y, r)
		return
	}
	// The instructions give their second operand if one is NaN or both are 0.
	instruction, join := pair(e, VMINPS, VMINPD), pair(e, VORPS, VORPD)
	if isMax {
		instruction, join = pair(e, VMAXPS, VMAXPD), pair(e, VANDPS, VANDPD)
	}
	other, nan := sized(int(r.Size())), sized(int(r.Size()))
	instruction(x, y, other)
	instruction(y, x, r)
	join(other, r, r) // they differ in the sign of 0 only
	pair(e, VCMPPS, VCMPPD)(Imm(3), y, x, nan)
	pair(e, VORPS, VORPD)(nan, r, r) // all ones are NaN
}

// pickExtreme is an instruction of NEON that does all that extreme does.
func pickExtreme(isMax bool) func(size int, x, y, r reg.Register) {
	if isMax {
		return neon.Max
	}
	return neon.Min
}

func integers(m *isa) {
	e := int64s
	one, two := []*element{e}, []*element{e, e}
	prim(m, "Add", "$x + $y", two, e, plain(m, func(x, y, r vector) { VPADDQ(y, x, r) }))
	prim(m, "Sub", "$x - $y", two, e, plain(m, func(x, y, r vector) { VPSUBQ(y, x, r) }))
	prim(m, "Neg", "-$x", one, e, func() func([]value) value {
		zero := m.zero()
		return simple(m, func(x, _, r vector) { VPSUBQ(x, zero, r) })
	})
	if m == avx512 {
		prim(m, "Mul", "$x * $y", two, e, plain(m, func(x, y, r vector) { VPMULLQ(y, x, r) }))
		prim(m, "Max", "max($x, $y)", two, e, plain(m, func(x, y, r vector) { VPMAXSQ(y, x, r) }))
		prim(m, "Min", "min($x, $y)", two, e, plain(m, func(x, y, r vector) { VPMINSQ(y, x, r) }))
		prim(m, "Abs", "abs($x)", one, e, plain(m, func(x, _, r vector) { VPABSQ(x, r) }))
		return
	}
	prim(m, "Max", "max($x, $y)", two, e, plain(m, func(x, y, r vector) { VBLENDVPD(greater(x, y), x, y, r) }))
	prim(m, "Min", "min($x, $y)", two, e, plain(m, func(x, y, r vector) { VBLENDVPD(greater(x, y), y, x, r) }))
	if m == neons {
		prim(m, "Abs", "abs($x)", one, e, plain(m, func(x, _, r vector) { VPABSQ(x, r) }))
		return
	}
	prim(m, "Abs", "abs($x)", one, e, func() func([]value) value {
		zero := m.zero()
		return simple(m, func(x, _, r vector) {
			negative := greater(zero, x)
			VPXOR(negative, x, r) // ^x, which is -x-1
			VPSUBQ(negative, r, r)
		})
	})
}

// greater is all bits where x > y, for int64s.
func greater(x, y vector) vector {
	v := sized(int(x.Size()))
	VPCMPGTQ(y, x, v)
	return v
}

// booleans are bytes, 0 and 1.
func booleans(m *isa) {
	e := bools
	and, or, xor := three(VPAND), three(VPOR), three(VPXOR)
	if m == avx512 {
		and, or, xor = VPANDD, VPORD, VPXORD
	}
	one, two := []*element{e}, []*element{e, e}
	prim(m, "And", "$x && $y", two, e, plain(m, func(x, y, r vector) { and(y, x, r) }))
	prim(m, "Or", "$x || $y", two, e, plain(m, func(x, y, r vector) { or(y, x, r) }))
	prim(m, "Ne", "$x != $y", two, e, plain(m, func(x, y, r vector) { xor(y, x, r) }))
	prim(m, "Eq", "$x == $y", two, e, func() func([]value) value {
		ones := m.constant(1, 1)
		return simple(m, func(x, y, r vector) {
			xor(y, x, r)
			xor(ones, r, r)
		})
	})
	prim(m, "Not", "!$x", one, e, func() func([]value) value {
		ones := m.constant(1, 1)
		return simple(m, func(x, _, r vector) { xor(ones, x, r) })
	})
	choice(m, e)
}

// choice writes where, of elements of type e.
func choice(m *isa, e *element) {
	prim(m, "Where", "choose($x, $y, $z)", []*element{bools, e, e}, e, func() func([]value) value {
		return func(in []value) value {
			c, x, y, r := in[0], in[1].v, in[2].v, m.new()
			switch {
			case m == avx512 && e.size == 1:
				VPBLENDMB(x, y, c.k, r)
			case m == avx512 && e.size == 4:
				VPBLENDMD(x, y, c.k, r)
			case m == avx512:
				VPBLENDMQ(x, y, c.k, r)
			default:
				VPBLENDVB(c.v, x, y, r)
			}
			return value{v: r}
		}
	})
}

func comparisons(m *isa, e *element) {
	for _, op := range []struct {
		name, text string
		mode       uint64 // of instructions for floats; that for integers has the same
	}{{"Eq", "$x == $y", 0}, {"Ne", "$x != $y", 4}, {"Lt", "$x < $y", 1}, {"Le", "$x <= $y", 2}} {
		prim(m, op.name, op.text, []*element{e, e}, bools, func() func([]value) value {
			ones := m.zero()
			if m != avx512 && e == int64s {
				VPCMPEQQ(ones, ones, ones)
			}
			return func(in []value) value { return compare(m, e, op.mode, in[0].v, in[1].v, ones) }
		})
	}
}

// compare is x compared with y; ones has all bits set, if it is needed.
func compare(m *isa, e *element, mode uint64, x, y, ones vector) value {
	switch {
	case m == avx512:
		k := K()
		switch e {
		case float32s:
			VCMPPS(Imm(mode), y, x, k)
		case float64s:
			VCMPPD(Imm(mode), y, x, k)
		default:
			VPCMPQ(Imm(mode), y, x, k)
		}
		return value{k: k}
	case e == float32s:
		v := YMM()
		VCMPPS(Imm(mode), y, x, v)
		return value{v: v}
	case e == float64s:
		v := YMM()
		VCMPPD(Imm(mode), y, x, v)
		return value{v: v}
	}
	v := YMM()
	switch mode {
	case 0, 4:
		VPCMPEQQ(y, x, v)
	case 1:
		VPCMPGTQ(x, y, v)
	default:
		VPCMPGTQ(y, x, v)
	}
	if mode != 0 && mode != 1 { // x != y is !(x == y), x <= y is !(x > y)
		VPXOR(ones, v, v)
	}
	return value{v: v}
}

// cast writes the loop that converts.
func cast(m *isa, from, to *element, body func() func(in []value) value) {
	l := &loop{m: m, name: "cast" + from.name, text: strings.ToLower(to.name) + "($x)", in: []*element{from}, out: to, body: body, table: "casts"}
	l.name += "To" + to.name
	l.key = func(string) string { return "castKey{device." + from.name + ", device." + to.name + "}" }
	l.write("NoScalar")
}

func casts(m *isa) {
	convert := func(from, to *element, instruction func(...Op)) {
		cast(m, from, to, plain(m, func(x, _, r vector) { instruction(x, r) }))
	}
	convert(float32s, float64s, VCVTPS2PD)
	narrow := func(from, to *element, instruction, instruction256 func(...Op)) {
		cast(m, from, to, func() func([]value) value {
			return func(in []value) value {
				r := sized(m.bytes / 2)
				if m == avx512 {
					instruction(in[0].v, r)
				} else {
					instruction256(in[0].v, r)
				}
				return value{v: r}
			}
		})
	}
	narrow(float64s, float32s, VCVTPD2PS, VCVTPD2PSY)
	if m == avx512 {
		narrow(int64s, float32s, VCVTQQ2PS, nil)
		convert(int64s, float64s, VCVTQQ2PD)
		toInts(float32s, VCVTTPS2QQ, VCMPPS, 0x5f000000)
		toInts(float64s, VCVTTPD2QQ, VCMPPD, 0x43e0000000000000)
	} else {
		fromIntsByParts(m)
		toIntsByParts(m, float32s)
		toIntsByParts(m, float64s)
	}
	for _, e := range []*element{float32s, float64s, int64s} {
		cast(m, e, bools, func() func([]value) value {
			zero, ones := m.zero(), m.zero()
			if m != avx512 && e == int64s {
				VPCMPEQQ(ones, ones, ones)
			}
			return func(in []value) value { return compare(m, e, 4, in[0].v, zero, ones) }
		})
	}
	fromBools(m, float32s, 0x3f800000)
	fromBools(m, float64s, 0x3ff0000000000000)
	fromBools(m, int64s, 1)
}

// toInts writes the truncation to int64s, saturated; NaN gives 0. The limit is 1<<63.
func toInts(from *element, convert, compare func(...Op), limit uint64) {
	m := avx512
	cast(m, from, int64s, func() func([]value) value {
		above, most := m.constant(limit, from.size), m.constant(1<<63-1, 8)
		return func(in []value) value {
			x, bound := in[0].v, above
			if from == float32s {
				bound = above.AsY().(vector)
			}
			r, big, number := ZMM(), K(), K()
			convert(x, r) // -1<<63 for all that have no int64
			compare(Imm(0xd), bound, x, big)
			compare(Imm(7), x, x, number)
			VMOVDQU64(most, big, r)
			VMOVDQU64_Z(r, number, r)
			return value{v: r}
		}
	})
}

// fromIntsByParts writes the conversions of int64s to floats for AVX2, which has no instruction for them, and for NEON,
// which has none to float32s.
func fromIntsByParts(m *isa) {
	cast(m, int64s, float64s, func() func(in []value) value {
		convert := doubles(m)
		return func(in []value) value { return value{v: convert(in[0].v)} }
	})
	cast(m, int64s, float32s, func() func(in []value) value {
		convert := doubles(m)
		low, limit, least := m.constant(1<<11-1, 8), m.constant(1<<53, 8), m.constant(1<<64-1<<53, 8)
		return func(in []value) value {
			x := in[0].v
			Comment("a float64 rounded again is right where it is exact, or odd as what was left out is not 0")
			odd, large, small := YMM(), YMM(), YMM()
			VPAND(low, x, odd)
			VPADDQ(low, odd, odd)
			VPOR(x, odd, odd)
			VPANDN(odd, low, odd)
			VPCMPGTQ(limit, x, large)
			VPCMPGTQ(x, least, small)
			VPOR(small, large, large)
			VBLENDVPD(large, odd, x, odd)
			r := XMM()
			VCVTPD2PSY(convert(odd), r)
			return value{v: r}
		}
	})
}

// doubles returns a function that writes the conversion of int64s to float64s, rounded once. The upper
// half of x, times 1<<32, goes into the bits of 3<<67, and the lower half into the bits of 1<<52.
func doubles(m *isa) func(x vector) vector {
	if m == neons {
		return func(x vector) vector {
			r := YMM()
			VCVTQQ2PD(x, r)
			return r
		}
	}
	upper, lower, both, zero := m.constant(0x4438000000000000, 8), m.constant(0x4330000000000000, 8), m.constant(0x4438001000000000, 8), m.zero()
	return func(x vector) vector {
		h, l := YMM(), YMM()
		VPSRAD(Imm(16), x, h)
		VPBLENDW(Imm(0x33), zero, h, h)
		VPADDQ(upper, h, h)
		VPBLENDW(Imm(0x88), lower, x, l)
		VSUBPD(both, h, h)
		VADDPD(l, h, l)
		return l
	}
}

// toIntsByParts is toInts for AVX2: the digits of x are shifted to where they belong. NEON has an instruction that
// does all of it.
func toIntsByParts(m *isa, from *element) {
	cast(m, from, int64s, func() func(in []value) value {
		if m == neons {
			return func(in []value) value {
				x, r := in[0].v, YMM()
				if from == float32s {
					x = YMM()
					VCVTPS2PD(in[0].v, x)
				}
				VCVTTPD2QQ(x, r)
				return value{v: r}
			}
		}
		digits, hidden, shift := m.constant(1<<52-1, 8), m.constant(1<<52, 8), m.constant(1075, 8)
		exponent, above, most := m.constant(1<<11-1, 8), m.constant(0x43e0000000000000, 8), m.constant(1<<63-1, 8)
		zero := m.zero()
		return func(in []value) value {
			x := in[0].v
			if from == float32s {
				x = YMM()
				VCVTPS2PD(in[0].v, x)
			}
			r, e, t := YMM(), YMM(), YMM()
			VPAND(digits, x, r)
			VPOR(hidden, r, r)
			VPSRLQ(Imm(52), x, e)
			VPAND(exponent, e, e)
			VPSUBQ(shift, e, e)
			VPSUBQ(e, zero, t)
			VPSRLVQ(t, r, t) // shifts by 64 and more, or less than 0, give 0
			VPSLLVQ(e, r, r)
			VPOR(t, r, r)
			Comment("the sign")
			VPCMPGTQ(x, zero, t)
			VPXOR(t, r, r)
			VPSUBQ(t, r, r)
			Comment("what is too large, and NaN")
			VCMPPD(Imm(0xd), above, x, t)
			VBLENDVPD(t, most, r, r)
			VSUBPD(above, zero, t)
			VCMPPD(Imm(1), t, x, e) // x < -1<<63
			VPSLLQ(Imm(63), e, t)
			VBLENDVPD(e, t, r, r)
			VCMPPD(Imm(7), x, x, t)
			VANDPD(t, r, r)
			return value{v: r}
		}
	})
}

// fromBools writes the conversion of bools to numbers; one has the bits of the number 1.
func fromBools(m *isa, to *element, one uint64) {
	cast(m, bools, to, func() func([]value) value {
		ones := m.constant(one, to.size)
		return func(in []value) value {
			r := m.new()
			switch {
			case m != avx512:
				VPAND(ones, in[0].v, r)
			case to.size == 4:
				VMOVDQU32_Z(ones, in[0].k, r)
			default:
				VMOVDQU64_Z(ones, in[0].k, r)
			}
			return value{v: r}
		}
	})
}
