package main

import (
	"fmt"
	"math"

	"github.com/mmcloughlin/avo/attr"
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// philox writes the loops that draw random numbers. For whole groups of blocks they do what kernel.Draw
// does, whose functions the comments name, and round wherever it rounds. A product is contracted with a
// sum only if the product is exact, like that with a power of two.
//
// A vector has a word of one block in the low half of each lane of 64 bits. What is in the high
// halves does not matter until the words of a block are joined, as VPMULUDQ multiplies the low
// ones. Each 128 bits have block i and block i + half of the group, so that interleaving two
// vectors within 128 bits gives the first half of the group in order, and then the second.
func philox() {
	for _, m := range isas {
		d := draws{m}
		d.function("uniform32", "Uniform", "Float32", d.uniform32)
		d.function("uniform64", "Uniform", "Float64", d.uniform64)
		d.function("normal32", "Normal", "Float32", d.normal32)
		d.function("normal64", "Normal", "Float64", d.normal64)
		d.function("ints", "Ints", "Int64", d.ints)
	}
	words.write()
	longs.write()
}

// draws writes loops for one ISA.
type draws struct{ *isa }

func (d draws) isWide() bool { return d.isa == avx512 }

// groupsAtOnce is how many groups one round of a loop draws. The multiplications of Philox depend on each
// other; those of another group fill the gaps.
const groupsAtOnce = 2

// oddLanes are the odd ones of the lanes of 32 bits, with AVX-512.
var oddLanes = reg.K1

// function writes one loop. convert turns the words of a group of blocks into numbers: the first
// half of the group, then the second.
func (d draws) function(name, distribution, dtype string, convert func(w [4]vector) (first, second vector)) {
	name += d.name
	blocks := d.bytes / 8
	enter("drawLoops", d.name, fmt.Sprintf("drawKey{kernel.%s, device.%s}", distribution, dtype), fmt.Sprintf("drawLoop{%s, %d}", name, groupsAtOnce*blocks))
	TEXT(name, attr.NOSPLIT, "func(dst *byte, n int, block uint64, keys *[20]uint64, lo int64, span uint64)")
	Pragma("noescape")
	dst, n, keys := param("dst"), param("n"), param("keys")

	Commentf("counter[i] := block + [0, %d, 1, %d, ...][i]", blocks/2, blocks/2+1)
	x, counter := XMM(), d.new()
	VMOVQ(param("block"), x)
	VPBROADCASTQ(x, counter)
	VPADDQ(d.order(), counter, counter)
	m0, m1 := d.new(), d.new()
	VPBROADCASTQ(longs.at(0xD2511F53), m0)
	VPBROADCASTQ(longs.at(0xCD9E8D57), m1)
	if d.isWide() {
		odd := GP32()
		MOVL(U32(0xAAAA), odd)
		KMOVW(odd, oddLanes)
	}
	Label("loop")
	for g, w := range d.blocks(counter, keys, m0, m1) {
		first, second := convert(w)
		Comment("the first half of the group, then the second")
		VMOVUPS(first, Mem{Base: dst, Disp: 2 * g * d.bytes})
		VMOVUPS(second, Mem{Base: dst, Disp: (2*g + 1) * d.bytes})
	}
	ADDQ(U32(uint32(2*groupsAtOnce*d.bytes)), dst)
	Comment("for n--; n > 0")
	DECQ(n)
	JNZ(LabelRef("loop"))
	VZEROUPPER()
	RET()
}

// order is where in the group the block of each lane is.
func (d draws) order() Mem {
	if d.isWide() {
		return longs.at(0, 4, 1, 5, 2, 6, 3, 7)
	}
	return longs.at(0, 2, 1, 3)
}

// blocks is kernel.Philox for each group: the four words of a block, in the low halves of four
// vectors. Of the counter only word 0 differs from block to block. What follows from the others
// alone is in the keys of the first rounds (see roundKeys in package vec).
func (d draws) blocks(counter vector, keys reg.Register, m0, m1 vector) [groupsAtOnce][4]vector {
	var c [groupsAtOnce][4]vector
	for round := range 10 {
		switch round {
		case 0:
			Comment("round 0: p0 := uint32(counter)*m0; c2, c3 := p0>>32^k1, p0")
		case 1:
			Comment("round 1: p1 := c2*m1; c0, c1, c2 := p1>>32^k0, p1, c3^k1")
		case 2:
			Comment("round 2: p0, p1 := c0*m0, c2*m1; c0, c1, c2, c3 = p1>>32^c1^k0, p1, p0>>32^k1, p0")
		default:
			Commentf("round %d: p0, p1 := c0*m0, c2*m1; c0, c1, c2, c3 = p1>>32^c1^k0, p1, p0>>32^c3^k1, p0", round)
		}
		for g := range c {
			d.round(round, &c[g], counter, keys, m0, m1)
		}
	}
	return c
}

// round is one round for one group.
func (d draws) round(round int, c *[4]vector, counter vector, keys reg.Register, m0, m1 vector) {
	k0, k1 := Mem{Base: keys, Disp: 16 * round}, Mem{Base: keys, Disp: 16*round + 8}
	var next [4]vector
	if round == 0 {
		next[3] = d.new()
		VPMULUDQ(m0, counter, next[3])
		d.with64(VPADDQ, VPADDQ_BCST, uint64(d.bytes/8), counter, counter)
		next[2] = d.high(next[3], nil, k1)
		*c = next
		return
	}
	next[1] = d.new()
	VPMULUDQ(m1, c[2], next[1])
	next[0] = d.high(next[1], c[1], k0)
	if round == 1 {
		next[2] = c[3]
		d.xorKey(k1, nil, next[2])
	} else {
		next[3] = d.new()
		VPMULUDQ(m0, c[0], next[3])
		next[2] = d.high(next[3], c[3], k1)
	}
	*c = next
}

// high is p>>32 ^ c ^ key, or without c.
func (d draws) high(p, c vector, key Mem) vector {
	h := d.new()
	VPSRLQ(Imm(32), p, h)
	d.xorKey(key, c, h)
	return h
}

// xorKey is x ^= y ^ key, or x ^= key without y.
func (d draws) xorKey(key Mem, y, x vector) {
	switch {
	case d.isWide() && y != nil:
		VPTERNLOGQ_BCST(Imm(0x96), key, y, x)
	case d.isWide():
		VPXORQ_BCST(key, x, x)
	default:
		k := YMM()
		VPBROADCASTQ(key, k)
		if y != nil {
			VPXOR(y, x, x)
		}
		VPXOR(k, x, x)
	}
}

// join is low = uint64(uint32(low)) | high<<32.
func (d draws) join(high, low vector) {
	if d.isWide() {
		VPSHUFD(Imm(0xA0), high, oddLanes, low)
		return
	}
	VPSLLQ(Imm(32), high, high)
	VPBLENDD(Imm(0xAA), high, low, low)
}

// pairs is wide(w[0], w[1]) and wide(w[2], w[3]) of each block, in order.
func (d draws) pairs(w [4]vector) (first, second vector) {
	Comment("x, y = wide(w0, w1), wide(w2, w3)")
	d.join(w[1], w[0])
	d.join(w[3], w[2])
	return d.interleave(VUNPCKLPD, VUNPCKHPD, w[0], w[2])
}

// interleave is x[0] y[0] x[1] y[1] and so on, for the first half of the group and for the second.
func (d draws) interleave(low, high func(...Op), x, y vector) (first, second vector) {
	first, second = d.new(), d.new()
	Comment("first, second = x[0] y[0] x[1] y[1] ...")
	low(y, x, first)
	high(y, x, second)
	return first, second
}

func (d draws) uniform32(w [4]vector) (first, second vector) {
	first, second = d.pairs(w)
	for _, x := range [...]vector{first, second} {
		Comment("x = float32(x>>8) * 0x1p-24")
		VPSRLD(Imm(8), x, x)
		VCVTDQ2PS(x, x)
		d.withFloat32(VMULPS, VMULPS_BCST, 0x1p-24, x, x)
	}
	return first, second
}

func (d draws) uniform64(w [4]vector) (first, second vector) {
	first, second = d.pairs(w)
	for _, x := range [...]vector{first, second} {
		Comment("x = float64(x>>11) * 0x1p-53")
		VPSRLQ(Imm(11), x, x)
		d.toFloat64(x)
		d.withFloat64(VMULPD, VMULPD_BCST, 0x1p-53, x, x)
	}
	return first, second
}

func (d draws) ints(w [4]vector) (first, second vector) {
	first, second = d.pairs(w)
	for _, x := range [...]vector{first, second} {
		x1, s, t, u, low := d.new(), d.new(), d.new(), d.new(), d.new()
		Comment("t = uint32(x)*uint32(span)>>32 + x>>32*uint32(span)")
		d.parameter("span", s)
		VPSRLQ(Imm(32), x, x1)
		VPMULUDQ(s, x, t)
		VPSRLQ(Imm(32), t, t)
		VPMULUDQ(s, x1, u)
		VPADDQ(u, t, t)
		Comment("u = uint32(t) + uint32(x)*(span>>32)")
		VPSRLQ(Imm(32), s, s)
		VPSLLQ(Imm(32), t, low)
		VPSRLQ(Imm(32), low, low)
		VPMULUDQ(s, x, u)
		VPADDQ(low, u, u)
		Comment("x = lo + x>>32*(span>>32) + t>>32 + u>>32")
		VPMULUDQ(s, x1, x)
		VPSRLQ(Imm(32), t, t)
		VPSRLQ(Imm(32), u, u)
		VPADDQ(t, x, x)
		VPADDQ(u, x, x)
		d.parameter("lo", s)
		VPADDQ(s, x, x)
	}
	return first, second
}

// parameter sets every lane to a parameter.
func (d draws) parameter(name string, x vector) {
	p, err := Param(name).Resolve()
	if err != nil {
		panic(err)
	}
	VPBROADCASTQ(p.Addr, x)
}

// normal32 is kernel's polar32 for words 0 and 1, and for 2 and 3.
func (d draws) normal32(w [4]vector) (first, second vector) {
	Comment("a, b = [w0, w2], [w1, w3]")
	d.join(w[2], w[0])
	d.join(w[3], w[1])
	a, b := w[0], w[1]

	Comment("u = (float32(int32(a>>1)) + 0.5) * 0x1p-31")
	VPSRLD(Imm(1), a, a)
	VCVTDQ2PS(a, a)
	half := d.new()
	VBROADCASTSS(words.float32(0x1p-32), half)
	d.withFloat32(VFMADD132PS, VFMADD132PS_BCST, 0x1p-31, half, a)
	radius := d.log32(a)
	Comment("radius = sqrt(-2 * log32(u))")
	d.withFloat32(VMULPS, VMULPS_BCST, -2, radius, radius)
	VSQRTPS(radius, radius)

	Comment("angle = float32(int32(b<<2)) * (2 * math.Pi * 0x1p-34): the circle from the nearest quarter on")
	angle, z, t := d.new(), d.new(), d.new()
	VPSLLD(Imm(2), b, angle)
	VCVTDQ2PS(angle, angle)
	d.withFloat32(VMULPS, VMULPS_BCST, 2*math.Pi*0x1p-34, angle, angle)
	VMULPS(angle, angle, z)
	sin := d.poly32(z, -1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1)
	Comment("sin = sin*z*angle + angle")
	VMULPS(z, sin, sin)
	VMULPS(angle, sin, sin)
	VADDPS(angle, sin, sin)
	cos := d.poly32(z, 2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2)
	Comment("cos = cos*z*z - 0.5*z + 1")
	VMULPS(z, cos, cos)
	VMULPS(z, cos, cos)
	d.withFloat32(VFNMADD231PS, VFNMADD231PS_BCST, 0.5, z, cos)
	d.withFloat32(VADDPS, VADDPS_BCST, 1, cos, cos)

	Comment("quarter = t>>30; if quarter >= 2 { radius = -radius }")
	d.withWords(VPADDD, VPADDD_BCST, 1<<29, b, t)
	y := d.new()
	if d.isWide() {
		VPTERNLOGD_BCST(Imm(0x78), words.at(1<<31), t, radius) // radius ^= t & 1<<31
		Comment("x, y = cos, sin; if quarter is odd { x, y = -sin, cos }")
		VPTESTMD_BCST(words.at(1<<30), t, reg.K2)
		VBLENDMPS(cos, sin, reg.K2, y)
		VPXORD_BCST(words.at(1<<31), sin, reg.K2, cos)
		sin = y
	} else {
		sign := YMM()
		VBROADCASTSS(words.at(1<<31), sign)
		VPAND(sign, t, y)
		VPXOR(y, radius, radius)
		Comment("x, y = cos, sin; if quarter is odd { x, y = -sin, cos }")
		VPSLLD(Imm(1), t, t)
		VBLENDVPS(t, cos, sin, y)
		VBLENDVPS(t, sin, cos, cos)
		VPAND(sign, t, t)
		VPXOR(t, cos, cos)
		sin = y
	}
	Comment("x, y = radius*x, radius*y")
	VMULPS(radius, cos, cos)
	VMULPS(radius, sin, sin)
	return d.interleave(VUNPCKLPS, VUNPCKHPS, cos, sin)
}

func (d draws) log32(u vector) vector {
	Comment("log32: e, m of u = 2**e * m, with m in [sqrt(1/2), sqrt(2))")
	e, m, z, t := d.new(), d.new(), d.new(), d.new()
	d.withWords(VPSUBD, VPSUBD_BCST, math.Float32bits(math.Sqrt2/2), u, e)
	d.withWords(and, VPANDD_BCST, 0x1ff<<23, e, m)
	VPSUBD(m, u, m)
	VPSRAD(Imm(23), e, e)
	VCVTDQ2PS(e, e)
	Comment("m--; z = m * m")
	d.withFloat32(VSUBPS, VSUBPS_BCST, 1, m, m)
	VMULPS(m, m, z)
	y := d.poly32(m, 7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1,
		-1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1)
	Comment("y = y*m*z - 2.12194440e-4*e - 0.5*z")
	VMULPS(m, y, y)
	VMULPS(z, y, y)
	d.withFloat32(VMULPS, VMULPS_BCST, -2.12194440e-4, e, t)
	VADDPS(t, y, y)
	d.withFloat32(VFNMADD231PS, VFNMADD231PS_BCST, 0.5, z, y)
	Comment("(m + y) + 0.693359375*e, a number of nine bits and one of six")
	VADDPS(m, y, y)
	d.withFloat32(VFMADD231PS, VFMADD231PS_BCST, 0.693359375, e, y)
	return y
}

// poly32 is Horner's rule, the highest coefficient first.
func (d draws) poly32(x vector, c ...float32) vector {
	Comment("poly32")
	y := d.new()
	VBROADCASTSS(words.float32(c[0]), y)
	for _, k := range c[1:] {
		VMULPS(x, y, y)
		d.withFloat32(VADDPS, VADDPS_BCST, k, y, y)
	}
	return y
}

// normal64 is kernel's normal64.
func (d draws) normal64(w [4]vector) (first, second vector) {
	Comment("a, b = wide(w0, w1), wide(w2, w3)")
	d.join(w[1], w[0])
	d.join(w[3], w[2])
	a, b := w[0], w[2]

	Comment("u = (float64(a>>11) + 0.5) * 0x1p-53")
	VPSRLQ(Imm(11), a, a)
	d.toFloat64(a)
	half := d.new()
	VBROADCASTSD(longs.float64(0x1p-54), half)
	d.withFloat64(VFMADD132PD, VFMADD132PD_BCST, 0x1p-53, half, a)
	radius := d.log64(a)
	Comment("radius = sqrt(-2 * log64(u))")
	d.withFloat64(VMULPD, VMULPD_BCST, -2, radius, radius)
	VSQRTPD(radius, radius)

	Comment("angle = float64(int64(b<<2)) * (2 * math.Pi * 0x1p-66): the circle from the nearest quarter on")
	angle, z, t := d.new(), d.new(), d.new()
	VPSLLQ(Imm(2), b, angle)
	d.toFloat64(angle)
	d.withFloat64(VMULPD, VMULPD_BCST, 2*math.Pi*0x1p-66, angle, angle)
	VMULPD(angle, angle, z)
	sin := d.poly64(z, 1.58962301576546568060e-10, -2.50507477628578072866e-8, 2.75573136213857245213e-6,
		-1.98412698295895385996e-4, 8.33333333332211858878e-3, -1.66666666666666307295e-1)
	Comment("sin = sin*z*angle + angle")
	VMULPD(z, sin, sin)
	VMULPD(angle, sin, sin)
	VADDPD(angle, sin, sin)
	cos := d.poly64(z, -1.13585365213876817300e-11, 2.08757008419747316778e-9, -2.75573141792967388112e-7,
		2.48015872888517045348e-5, -1.38888888888730564116e-3, 4.16666666666665929218e-2)
	Comment("cos = cos*z*z - 0.5*z + 1")
	VMULPD(z, cos, cos)
	VMULPD(z, cos, cos)
	d.withFloat64(VFNMADD231PD, VFNMADD231PD_BCST, 0.5, z, cos)
	d.withFloat64(VADDPD, VADDPD_BCST, 1, cos, cos)

	Comment("quarter = t>>62; if quarter >= 2 { radius = -radius }")
	d.with64(VPADDQ, VPADDQ_BCST, 1<<61, b, t)
	y := d.new()
	if d.isWide() {
		VPTERNLOGQ_BCST(Imm(0x78), longs.at(1<<63), t, radius) // radius ^= t & 1<<63
		Comment("x, y = cos, sin; if quarter is odd { x, y = -sin, cos }")
		VPTESTMQ_BCST(longs.at(1<<62), t, reg.K2)
		VBLENDMPD(cos, sin, reg.K2, y)
		VPXORQ_BCST(longs.at(1<<63), sin, reg.K2, cos)
		sin = y
	} else {
		sign := YMM()
		VBROADCASTSD(longs.at(1<<63), sign)
		VPAND(sign, t, y)
		VPXOR(y, radius, radius)
		Comment("x, y = cos, sin; if quarter is odd { x, y = -sin, cos }")
		VPSLLQ(Imm(1), t, t)
		VBLENDVPD(t, cos, sin, y)
		VBLENDVPD(t, sin, cos, cos)
		VPAND(sign, t, t)
		VPXOR(t, cos, cos)
		sin = y
	}
	Comment("x, y = radius*x, radius*y")
	VMULPD(radius, cos, cos)
	VMULPD(radius, sin, sin)
	return d.interleave(VUNPCKLPD, VUNPCKHPD, cos, sin)
}

func (d draws) log64(u vector) vector {
	const sqrtHalf, one = math.Sqrt2 / 2, 1.0
	Comment("log64: k, m of u = 2**k * m, with m in [sqrt(1/2), sqrt(2)); the bits of 2**52 + i are those of 2**52 | i")
	k, f, s := d.new(), d.new(), d.new()
	d.with64(VPADDQ, VPADDQ_BCST, math.Float64bits(one)-math.Float64bits(sqrtHalf), u, k)
	d.with64(and, VPANDQ_BCST, 1<<52-1, k, f)
	d.with64(VPADDQ, VPADDQ_BCST, math.Float64bits(sqrtHalf), f, f)
	VPSRLQ(Imm(52), k, k)
	d.with64(or, VPORQ_BCST, math.Float64bits(0x1p52), k, k)
	d.withFloat64(VSUBPD, VSUBPD_BCST, 0x1p52+1023, k, k)
	Comment("f = m - 1; s = f / (2 + f); s2 = s*s; s4 = s2*s2")
	d.withFloat64(VSUBPD, VSUBPD_BCST, 1, f, f)
	d.withFloat64(VADDPD, VADDPD_BCST, 2, f, s)
	VDIVPD(s, f, s)
	s2, s4 := d.new(), d.new()
	VMULPD(s, s, s2)
	VMULPD(s2, s2, s4)
	odd := d.poly64(s4, 1.479819860511658591e-01, 1.818357216161805012e-01, 2.857142874366239149e-01, 6.666666666666735130e-01)
	VMULPD(s2, odd, odd)
	even := d.poly64(s4, 1.531383769920937332e-01, 2.222219843214978396e-01, 3.999999999940941908e-01)
	VMULPD(s4, even, even)
	Comment("ff = f*f; low = s*(0.5*ff+(odd+even)) + k*1.9e-10")
	ff, low := d.new(), d.new()
	VMULPD(f, f, ff)
	VADDPD(even, odd, low)
	d.withFloat64(VFMADD231PD, VFMADD231PD_BCST, 0.5, ff, low)
	VMULPD(s, low, low)
	d.withFloat64(VMULPD, VMULPD_BCST, 1.90821492927058770002e-10, k, s)
	VADDPD(s, low, low)
	Comment("k*0.69 - ((0.5*ff - low) - f), of 33 bits and six")
	d.withFloat64(VFMSUB132PD, VFMSUB132PD_BCST, 0.5, low, ff)
	VSUBPD(f, ff, ff)
	d.withFloat64(VFMSUB132PD, VFMSUB132PD_BCST, 6.93147180369123816490e-01, ff, k)
	return k
}

// poly64 is Horner's rule, the highest coefficient first.
func (d draws) poly64(x vector, c ...float64) vector {
	Comment("poly64")
	y := d.new()
	VBROADCASTSD(longs.float64(c[0]), y)
	for _, k := range c[1:] {
		VMULPD(x, y, y)
		d.withFloat64(VADDPD, VADDPD_BCST, k, y, y)
	}
	return y
}

// toFloat64 converts int64, rounded once.
func (d draws) toFloat64(x vector) {
	Comment("x = float64(int64(x))")
	if d.isWide() || d.isa == neons {
		VCVTQQ2PD(x, x)
		return
	}
	// The bits of 2**52 + low half and of 2**84 + 2**63 + high half * 2**32 have these halves as they
	// are. The second without the powers of two, and without that of the first, is exact; the sum is
	// rounded.
	low := YMM()
	VBROADCASTSD(longs.float64(0x1p52), low)
	VPBLENDD(Imm(0x55), x, low, low)
	VPSRLQ(Imm(32), x, x)
	d.with64(xor, nil, math.Float64bits(0x1p84)|1<<31, x, x)
	d.withFloat64(VSUBPD, nil, 0x1p84+0x1p63+0x1p52, x, x)
	VADDPD(low, x, x)
}

// and, or and xor are those of AVX2 as functions like the others.
func and(o ...Op) { VPAND(o[0], o[1], o[2]) }
func or(o ...Op)  { VPOR(o[0], o[1], o[2]) }
func xor(o ...Op) { VPXOR(o[0], o[1], o[2]) }

// withWords writes an instruction whose first operand is the same word in every lane: plain, on a
// register, or spread, which reads the one word in memory.
func (d draws) withWords(plain, spread func(...Op), word uint32, x, dst vector) {
	if d.isWide() {
		spread(words.at(uint64(word)), x, dst)
		return
	}
	c := YMM()
	VBROADCASTSS(words.at(uint64(word)), c)
	plain(c, x, dst)
}

func (d draws) withFloat32(plain, spread func(...Op), c float32, x, dst vector) {
	d.withWords(plain, spread, math.Float32bits(c), x, dst)
}

// with64 is withWords for lanes of 64 bits.
func (d draws) with64(plain, spread func(...Op), long uint64, x, dst vector) {
	if d.isWide() {
		spread(longs.at(long), x, dst)
		return
	}
	c := YMM()
	VBROADCASTSD(longs.at(long), c)
	plain(c, x, dst)
}

func (d draws) withFloat64(plain, spread func(...Op), c float64, x, dst vector) {
	d.with64(plain, spread, math.Float64bits(c), x, dst)
}
