package main

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/asyncgen/asyncgen/device/cpu/internal/vec/asm/neon"
	"github.com/mmcloughlin/avo/attr"
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// functions writes the loops of exp, expm1, log, log1p, sin, cos, tanh and erf. They do
// what the functions of device/kernel do (functions32.go, functions64.go), step by
// step; where these choose, they compute both and select.
func functions() {
	for _, m := range isas {
		for _, e := range []*element{float32s, float64s} {
			for _, f := range []struct {
				prim string
				// apply writes the function; it may change x. x has several vectors, and each instruction
				// is written for one after the other: one vector alone would wait for its own results.
				apply   func(a *arithmetics, x lanes) lanes
				many    int  // how many vectors that is
				holds   int  // how many constants AVX-512 has registers for beside them
				partial bool // see partial in package vec
			}{
				{"Exp", (*arithmetics).exp, 4, 14, false},
				{"Expm1", (*arithmetics).expm1, 2, 16, false},
				{"Log", (*arithmetics).log, 2, 18, false},
				{"Log1p", (*arithmetics).log1p, 2, 14, false},
				{"Sin", (*arithmetics).sin, 2, 16, true},
				{"Cos", (*arithmetics).cos, 2, 16, true},
				{"Tanh", (*arithmetics).tanh, 2, 18, false},
				{"Erf", (*arithmetics).erf, 2, 18, false},
			} {
				a := &arithmetics{isa: m, element: e, holds: f.holds}
				if m != avx512 { // has half as many registers
					a.holds = 0
				}
				name := lower(f.prim) + e.name + m.name
				key := "loopKey{kernel.Prim" + f.prim + ", device." + e.name + ", NoScalar}"
				if f.partial {
					enter("partials", m.name, key, name)
				} else {
					enter("loops", m.name, key, name)
				}
				if m == neons { // constants take registers, too
					f.many = min(f.many, 3)
					if f.prim == "Log1p" && e == float64s {
						f.many = 1
					}
				}
				a.loop(name, f.apply, f.many, f.partial)
			}
		}
	}
	for _, m := range isas {
		for _, e := range []*element{float32s, float64s} {
			for _, form := range []string{"NoScalar", "FirstScalar", "SecondScalar"} {
				a := &arithmetics{isa: m, element: float64s}
				if m == avx512 && e == float32s {
					a.holds = 12
				}
				name := "pow" + e.name + strings.TrimSuffix(form, "Scalar") + m.name
				enter("loops", m.name, "loopKey{kernel.PrimPow, device."+e.name+", "+form+"}", name)
				a.powLoop(name, form, e)
			}
		}
	}
	writeNumbers()
}

// loop writes one function.
func (a *arithmetics) loop(name string, apply func(*arithmetics, lanes) lanes, many int, partial bool) {
	size, perVector := a.size, a.bytes/a.size
	signature := loopSignature
	if partial {
		signature += " int"
	}
	TEXT(name, attr.NOSPLIT, signature)
	Pragma("noescape")
	dst, x, n := param("dst"), param("x"), param("n")
	a.held, a.order = map[uint64]vector{}, nil
	// Which constants are held turns out below.
	JMP(LabelRef("constants"))
	Label("begin")
	i := GP64()
	Comment("i := 0")
	XORQ(i, i)
	at := func(p reg.Register, vector int) Mem {
		return Mem{Base: p, Index: i, Scale: uint8(size), Disp: vector * a.bytes}
	}
	for _, vectors := range slices.Compact([]int{many, 1}) {
		Commentf("for ; i <= n-%d; i += %d: %d vectors", vectors*perVector, vectors*perVector, vectors)
		last := GP64()
		LEAQ(Mem{Base: n, Disp: -vectors * perVector}, last)
		loop, test := fmt.Sprintf("loop%d", vectors), fmt.Sprintf("test%d", vectors)
		JMP(LabelRef(test))
		Label(loop)
		v := make([]vector, vectors)
		for k := range v {
			v[k] = load(at(x, k), perVector, size)
		}
		if partial {
			a.leaveIfTooLarge(v)
		}
		for k, r := range apply(a, v) {
			VMOVUPS(r, at(dst, k))
		}
		ADDQ(U32(uint32(vectors*perVector)), i)
		Label(test)
		CMPQ(i, last)
		JLE(LabelRef(loop))
	}
	Comment("if i < n: the rest, masked")
	left := GP64()
	MOVQ(n, left)
	SUBQ(i, left)
	JLE(LabelRef("done"))
	t := a.first(left, size)
	v := []vector{a.loadTail(at(x, 0), t, perVector, size)}
	if partial {
		a.leaveIfTooLarge(v)
	}
	a.storeTail(apply(a, v)[0], at(dst, 0), t, perVector, size)
	MOVQ(n, i)
	Label("done")
	VZEROUPPER()
	if partial {
		Store(i, ReturnIndex(0))
	}
	RET()
	Label("constants")
	a.loadHeld()
	JMP(LabelRef("begin"))
}

// lanes are vectors on which the same instructions work in turn.
type lanes = []vector

// arithmetics writes instructions for vectors of one type on one ISA. Methods in the imperative change
// their first operand, which must not be needed any more; the others return new vectors.
type arithmetics struct {
	*isa
	*element
	holds int // how many constants may be held in registers
	held  map[uint64]vector
	order []uint64 // the keys of held, as they came
}

// pick is the instruction for float32s or float64s.
func pick[T any](a *arithmetics, single, double T) T {
	if a.size == 4 {
		return single
	}
	return double
}

// bits is v as the type has it.
func (a *arithmetics) bits(v float64) uint64 {
	if a.size == 4 {
		return uint64(math.Float32bits(float32(v)))
	}
	return math.Float64bits(v)
}

// number is a constant. If a register is left it is a vector; otherwise it is in memory: one element
// for AVX-512, which spreads it by itself, and a whole vector for AVX2.
func (a *arithmetics) number(v float64) operand { return a.pattern(a.bits(v)) }

// An operand is lanes, one vector for all of them, or a constant in memory.
type operand any

// pattern is number for bits.
func (a *arithmetics) pattern(bits uint64) operand {
	if v, ok := a.held[bits]; ok {
		return v
	}
	if len(a.held) < a.holds {
		v := a.new()
		a.held[bits] = v
		a.order = append(a.order, bits)
		return v
	}
	return a.inMemory(bits)
}

// loadHeld loads the constants that are vectors.
func (a *arithmetics) loadHeld() {
	for _, bits := range a.order {
		pick(a, VBROADCASTSS, VBROADCASTSD)(a.inMemory(bits), a.held[bits])
	}
}

func (a *arithmetics) inMemory(bits uint64) Mem {
	if a.size == 4 {
		bits |= bits << 32
	}
	for i, have := range numbers {
		if have == bits {
			return numberAt(i)
		}
	}
	numbers = append(numbers, bits)
	return numberAt(len(numbers) - 1)
}

// numbers are the constants of all functions.
var numbers []uint64

func numberAt(i int) Mem { return NewDataAddr(Symbol{Name: "numbers", Static: true}, 32*i) }

// writeNumbers writes each constant four times, one vector of AVX2.
func writeNumbers() {
	GLOBL("numbers", attr.RODATA|attr.NOPTR)
	for i, v := range numbers {
		for k := range 4 {
			DATA(32*i+8*k, U64(v))
		}
	}
}

// spreadNumber is a vector of v, which must not be changed.
func (a *arithmetics) spreadNumber(v float64) vector {
	if held, ok := a.number(v).(vector); ok {
		return held
	}
	c := a.new()
	pick(a, VBROADCASTSS, VBROADCASTSD)(a.inMemory(a.bits(v)), c)
	return c
}

// spreadNumbers are vectors of v.
func (a *arithmetics) spreadNumbers(v float64, like lanes) lanes {
	all := a.fresh(like)
	for i := range all {
		switch c := a.number(v).(type) {
		case vector:
			VMOVAPS(c, all[i])
		case Mem:
			pick(a, VBROADCASTSS, VBROADCASTSD)(c, all[i])
		}
	}
	return all
}

func (a *arithmetics) copy(x lanes) lanes {
	y := make(lanes, len(x))
	for i := range x {
		y[i] = a.new()
		VMOVAPS(x[i], y[i])
	}
	return y
}

// An instruction of three operands has four names: for float32s and for float64s, and for each of these
// the one with a constant in memory, which AVX-512 spreads to all lanes.
type instruction struct{ single, double, singleConst, doubleConst func(...Op) }

var (
	addition       = instruction{VADDPS, VADDPD, VADDPS_BCST, VADDPD_BCST}
	subtraction    = instruction{VSUBPS, VSUBPD, VSUBPS_BCST, VSUBPD_BCST}
	multiplication = instruction{VMULPS, VMULPD, VMULPS_BCST, VMULPD_BCST}
	division       = instruction{VDIVPS, VDIVPD, VDIVPS_BCST, VDIVPD_BCST}
	maximum        = instruction{VMAXPS, VMAXPD, VMAXPS_BCST, VMAXPD_BCST}
	minimum        = instruction{VMINPS, VMINPD, VMINPS_BCST, VMINPD_BCST}
	conjunction    = instruction{VANDPS, VANDPD, VANDPS_BCST, VANDPD_BCST}
	difference     = instruction{VXORPS, VXORPD, VXORPS_BCST, VXORPD_BCST}
	// dst | x & first
	orAnd = instruction{ternary(VPTERNLOGD, 0xf8), ternary(VPTERNLOGQ, 0xf8), ternary(VPTERNLOGD_BCST, 0xf8), ternary(VPTERNLOGQ_BCST, 0xf8)}

	intAddition  = instruction{VPADDD, VPADDQ, VPADDD_BCST, VPADDQ_BCST}
	fused213     = instruction{VFMADD213PS, VFMADD213PD, VFMADD213PS_BCST, VFMADD213PD_BCST}
	fused231     = instruction{VFMADD231PS, VFMADD231PD, VFMADD231PS_BCST, VFMADD231PD_BCST}
	fusedLess231 = instruction{VFNMADD231PS, VFNMADD231PD, VFNMADD231PS_BCST, VFNMADD231PD_BCST}
)

// ternary is one of the instructions whose first operand is a truth table.
func ternary(f func(...Op), table uint64) func(...Op) {
	return func(ops ...Op) { f(append([]Op{Imm(table)}, ops...)...) }
}

// do is the instruction with its operands in the order of Go's assembler, the first one being a constant or lanes.
func (a *arithmetics) do(in instruction, first operand, x, dst lanes) lanes {
	for i := range dst {
		switch first := first.(type) {
		case lanes:
			pick(a, in.single, in.double)(first[i], x[i], dst[i])
		case vector:
			pick(a, in.single, in.double)(first, x[i], dst[i])
		case Mem:
			if a.isa == avx512 {
				pick(a, in.singleConst, in.doubleConst)(first, x[i], dst[i])
			} else {
				pick(a, in.single, in.double)(first, x[i], dst[i])
			}
		}
	}
	return dst
}

func (a *arithmetics) fresh(like lanes) lanes {
	v := make(lanes, len(like))
	for i := range v {
		v[i] = a.new()
	}
	return v
}

func (a *arithmetics) add(x lanes, y operand) lanes { return a.do(addition, y, x, a.fresh(x)) } // x + y
func (a *arithmetics) sub(x lanes, y operand) lanes { return a.do(subtraction, y, x, a.fresh(x)) }
func (a *arithmetics) mul(x lanes, y operand) lanes { return a.do(multiplication, y, x, a.fresh(x)) }
func (a *arithmetics) div(x lanes, y operand) lanes { return a.do(division, y, x, a.fresh(x)) }
func (a *arithmetics) and(x lanes, y operand) lanes { return a.do(conjunction, y, x, a.fresh(x)) }
func (a *arithmetics) xor(x lanes, y operand) lanes { return a.do(difference, y, x, a.fresh(x)) }
func (a *arithmetics) addInts(x lanes, y operand) lanes {
	return a.do(intAddition, y, x, a.fresh(x))
}

// mulAdd makes h h*x + y.
func (a *arithmetics) mulAdd(h, x lanes, y operand) lanes { return a.do(fused213, y, x, h) }

// addMul makes sum sum + x*y.
func (a *arithmetics) addMul(sum, x lanes, y operand) lanes { return a.do(fused231, y, x, sum) }

// subMul makes sum sum - x*y.
func (a *arithmetics) subMul(sum, x lanes, y operand) lanes { return a.do(fusedLess231, y, x, sum) }

// clamp is min(max(x, low), high), and NaN for NaN. If an operand is NaN, the instructions give their
// second operand, in the order of Intel's manual; so x comes second.
func (a *arithmetics) clamp(x lanes, low, high float64) lanes {
	Comment("min(max(x, low), high)")
	y := a.fresh(x)
	l, h := a.spreadNumber(low), a.spreadNumber(high)
	for i := range x {
		a.larger(x[i], l, y[i])
		a.smaller(y[i], h, y[i])
	}
	return y
}

// atMost is min(x, high), NaN for NaN.
func (a *arithmetics) atMost(x lanes, high float64) lanes {
	y := a.fresh(x)
	h := a.spreadNumber(high)
	for i := range x {
		a.smaller(x[i], h, y[i])
	}
	return y
}

// larger sets r to the larger one of x and y, or to NaN where x is NaN. y has no 0.
func (a *arithmetics) larger(x, y, r vector) {
	if a.isa == neons {
		neon.Max(a.size, x, y, r)
	} else {
		pick(a, VMAXPS, VMAXPD)(x, y, r)
	}
}

// smaller is larger for the smaller one.
func (a *arithmetics) smaller(x, y, r vector) {
	if a.isa == neons {
		neon.Min(a.size, x, y, r)
	} else {
		pick(a, VMINPS, VMINPD)(x, y, r)
	}
}

// round rounds to integers, by the mode of VROUNDPS: 0 to even, 1 down.
func (a *arithmetics) round(x lanes, mode uint8) lanes {
	y := a.fresh(x)
	for i := range x {
		if a.isa == avx512 {
			pick(a, VRNDSCALEPS, VRNDSCALEPD)(Imm(uint64(mode|8)), x[i], y[i])
		} else {
			pick(a, VROUNDPS, VROUNDPD)(Imm(uint64(mode|8)), x[i], y[i])
		}
	}
	return y
}

func (a *arithmetics) abs(x lanes) lanes { return a.and(x, a.pattern(1<<(8*a.size-1)-1)) }

// copySign is x with the sign of y, x being without.
func (a *arithmetics) copySign(x, y lanes) lanes {
	Comment("with the sign of x")
	r := a.fresh(x)
	for i := range x {
		VMOVAPS(x[i], r[i])
	}
	if a.isa == avx512 {
		return a.do(orAnd, a.signs(), y, r)
	}
	for i, s := range a.and(y, a.signs()) {
		VORPS(s, r[i], r[i])
	}
	return r
}

// signs is the sign bit.
func (a *arithmetics) signs() operand { return a.pattern(1 << (8*a.size - 1)) }

// The predicates of comparisons.
const (
	isEqual      = 0x00 // false for NaN
	isLess       = 0x11 // false for NaN
	isNotAtLeast = 0x19 // true for NaN
	isUnequal    = 0x04 // true for NaN
	isGreater    = 0x1e // false for NaN
	isNotLess    = 0x15 // true for NaN
)

// selectWhere makes y take the elements of other where x is in the given relation to bound.
func (a *arithmetics) selectWhere(y, x lanes, predicate uint64, bound float64, other operand) lanes {
	for i := range y {
		mask := a.compare(x[i], predicate, bound)
		from := other
		if all, ok := other.(lanes); ok {
			from = all[i]
		}
		switch c := from.(type) {
		case vector:
			a.blend(y[i], mask, c)
		case Mem:
			if a.isa == avx512 {
				pick(a, VBROADCASTSS, VBROADCASTSD)(c, mask.k, y[i])
			} else {
				pick(a, VBLENDVPS, VBLENDVPD)(mask.v, c, y[i], y[i])
			}
		}
	}
	return y
}

// compare is where x is in the given relation to bound.
func (a *arithmetics) compare(x vector, predicate uint64, bound float64) value {
	if a.isa != avx512 {
		mask := a.new()
		switch c := a.number(bound).(type) {
		case vector:
			pick(a, VCMPPS, VCMPPD)(Imm(predicate), c, x, mask)
		case Mem:
			pick(a, VCMPPS, VCMPPD)(Imm(predicate), c, x, mask)
		}
		return value{v: mask}
	}
	k := K()
	switch c := a.number(bound).(type) {
	case vector:
		pick(a, VCMPPS, VCMPPD)(Imm(predicate), c, x, k)
	case Mem:
		pick(a, VCMPPS_BCST, VCMPPD_BCST)(Imm(predicate), c, x, k)
	}
	return value{k: k}
}

// blend makes y take the elements of other that mask says.
func (a *arithmetics) blend(y vector, mask value, other vector) {
	if a.isa == avx512 {
		pick(a, VMOVAPS, VMOVAPD)(other, mask.k, y)
	} else {
		pick(a, VBLENDVPS, VBLENDVPD)(mask.v, other, y, y)
	}
}

// mantissa is how many digits of a number stand in its bits.
func (a *arithmetics) mantissa() uint64 { return pick[uint64](a, 23, 52) }

// bias is what exponents are stored with.
func (a *arithmetics) bias() float64 { return pick(a, 127.0, 1023.0) }

// magic is such that the last bits of n + magic are those of the integer n.
func (a *arithmetics) magic() operand { return a.number(1.5 * float64(uint64(1)<<a.mantissa())) }

func (a *arithmetics) shiftLeft(x lanes, by uint64) lanes {
	y := a.fresh(x)
	for i := range x {
		pick(a, VPSLLD, VPSLLQ)(Imm(by), x[i], y[i])
	}
	return y
}

func (a *arithmetics) shiftRight(x lanes, by uint64) lanes {
	y := a.fresh(x)
	for i := range x {
		pick(a, VPSRLD, VPSRLQ)(Imm(by), x[i], y[i])
	}
	return y
}

// power is c * 2**n, all of it normal.
func (a *arithmetics) power(c float64, n lanes) lanes {
	Comment("a power of 2")
	if a.isa == avx512 {
		y := a.fresh(n)
		base := a.spreadNumber(c)
		for i := range n {
			pick(a, VSCALEFPS, VSCALEFPD)(n[i], base, y[i])
		}
		return y
	}
	return a.addInts(a.shiftLeft(a.add(n, a.magic()), a.mantissa()), a.number(c))
}

// scale is p * 2**n, rounded once.
func (a *arithmetics) scale(p, n lanes) lanes {
	Comment("p * 2**n")
	if a.isa == avx512 {
		y := a.fresh(p)
		for i := range p {
			pick(a, VSCALEFPS, VSCALEFPD)(n[i], p[i], y[i])
		}
		return y
	}
	half := a.round(a.mul(n, a.number(0.5)), 1)
	return a.mul(a.mul(p, a.power(1, half)), a.power(1, a.sub(n, half)))
}

// poly is Horner's rule, the lowest coefficient first.
func (a *arithmetics) poly(x lanes, coefficients ...float64) lanes {
	Comment("a polynomial, by Horner's rule")
	last := len(coefficients) - 1
	h := a.spreadNumbers(coefficients[last], x)
	for i := last - 1; i >= 0; i-- {
		h = a.mulAdd(h, x, a.number(coefficients[i]))
	}
	return h
}

// leaveIfTooLarge goes to done if there is an element that the reduction modulo pi/2 is not exact enough for.
func (a *arithmetics) leaveIfTooLarge(x lanes) {
	Comment("return i where an operand is too large")
	for _, v := range a.abs(x) {
		mask := a.compare(v, isGreater, pick[float64](a, 1<<17, 1<<30))
		if a.isa == avx512 {
			KORTESTW(mask.k, mask.k)
		} else {
			VPTEST(mask.v, mask.v)
		}
		JNZ(LabelRef("done"))
	}
}

const expBias = 0.1394

func (a *arithmetics) exp(x lanes) lanes {
	n, r := a.reduceExp(a.clamp(x, pick[float64](a, -105, -746), pick[float64](a, 89, 710)), true)
	return a.scale(a.expPoly1(r), n)
}

// reduceExp is x = n*ln2 + r. It changes x.
func (a *arithmetics) reduceExp(x lanes, isExact bool) (n, r lanes) {
	Comment("n := round(x/ln2 - bias); r := x - n*ln2")
	t := a.spreadNumbers(-expBias, x)
	n = a.round(a.addMul(t, x, a.number(math.Log2E)), 0)
	r = a.subMul(x, n, a.number(pick(a, 0x1.62e43p-1, 0x1.62e42fefa39efp-1)))
	if isExact {
		r = a.subMul(r, n, a.number(pick(a, -0x1.05c61p-29, 0x1.abc9e3b39803fp-56)))
	}
	return n, r
}

// expPoly is about (e**r - 1 - r) / r**2.
func (a *arithmetics) expPoly(r lanes) lanes {
	if a.size == 4 {
		return a.poly(r, 0x1.00000ap-1, 0x1.55556cp-3, 0x1.553a84p-5, 0x1.1153f6p-7, 0x1.8e2ea8p-10)
	}
	return a.poly(r, 0x1.fffffffffffe7p-2, 0x1.5555555555554p-3, 0x1.555555555b7afp-5, 0x1.11111110f6c76p-7, 0x1.6c16c14d28954p-10,
		0x1.a01a03981ca33p-13, 0x1.a01a7b175d889p-16, 0x1.71d2ce0897a36p-19, 0x1.2766ef050841ep-22, 0x1.d827737a6954cp-26)
}

// expPoly1 is e**r.
func (a *arithmetics) expPoly1(r lanes) lanes {
	h := a.mulAdd(a.expPoly(r), r, a.number(1))
	return a.mulAdd(h, r, a.number(1))
}

func (a *arithmetics) expm1(x lanes) lanes {
	n, r := a.reduceExp(a.clamp(x, pick[float64](a, -20, -45), pick[float64](a, 89, 710)), true)
	u := a.mul(a.mul(r, r), a.expPoly(r))
	Comment("2**n * (1 + r + u) - 1")
	s := a.power(0.5, n)
	s1 := a.sub(s, a.number(0.5))
	sum := a.addMul(a.copy(s1), s, r)
	rest := a.addMul(a.sub(s1, sum), s, r)
	y := a.add(sum, a.addMul(rest, s, u))
	return a.selectWhere(a.add(y, y), a.abs(x), isLess, pick(a, 0x1p-26, 0x1p-55), x)
}

const (
	sqrtHalf32  = 0x3f3504f3
	sqrtHalf64  = 0x3fe6a09e667f3bcd
	logOffset32 = 127<<23 - sqrtHalf32
	logOffset64 = 1023<<52 - sqrtHalf64
)

// exponent is the exponent of x and its factor less 1 as log takes them; b is where both stand.
func (a *arithmetics) exponent(x lanes) (b, e, f lanes) {
	Comment("e, f: x = 2**e * (1+f)")
	b = a.addInts(x, a.pattern(pick[uint64](a, logOffset32, logOffset64)))
	// The exponent as the last digits of a large number, which is then subtracted.
	large := float64(uint64(1) << a.mantissa())
	e = a.sub(a.addInts(a.shiftRight(b, a.mantissa()), a.number(large)), a.number(large+a.bias()))
	digits := a.and(b, a.pattern(1<<a.mantissa()-1))
	f = a.sub(a.addInts(digits, a.pattern(pick[uint64](a, sqrtHalf32, sqrtHalf64))), a.number(1))
	return b, e, f
}

func (a *arithmetics) log(x lanes) lanes {
	// Denormal numbers are multiplied.
	smallest := pick(a, 0x1p-126, 0x1p-1022)
	normal := a.selectWhere(a.copy(x), x, isLess, smallest, a.mul(x, a.number(pick(a, 0x1p23, 0x1p52))))
	_, e, f := a.exponent(normal)
	e = a.selectWhere(e, x, isLess, smallest, a.sub(e, a.number(pick[float64](a, 23, 52))))
	return a.logEdges(a.logNear(e, f, nil), x, 0)
}

// logEdges makes y right where x is bound, isLess, infinite or NaN.
func (a *arithmetics) logEdges(y, x lanes, bound float64) lanes {
	Comment("where the logarithm is infinite or NaN")
	y = a.selectWhere(y, x, isEqual, math.Inf(1), x)
	y = a.selectWhere(y, x, isEqual, bound, a.number(math.Inf(-1)))
	return a.selectWhere(y, x, isNotAtLeast, bound, a.number(math.NaN()))
}

// logNear is e*ln2 + log(1+f) + c; c may be nil.
func (a *arithmetics) logNear(e, f, c lanes) lanes {
	Comment("e*ln2 + log(1+f)")
	var y lanes
	ln2, ln2Low := a.number(pick(a, 0x1.62e43p-1, 0x1.62e42fefa39efp-1)), a.number(pick(a, -0x1.05c61p-29, 0x1.abc9e3b39803fp-56))
	if a.size == 4 {
		h := a.poly(f, -0.5, 0x1.555554p-2, -0x1.000228p-2, 0x1.99a036p-3, -0x1.54721cp-3, 0x1.22d64ep-3, -0x1.0d80e6p-3, 0x1.0576d8p-3, -0x1.3925eap-4)
		u := a.addMul(a.mul(a.mul(f, f), h), e, ln2Low)
		if c != nil {
			u = a.add(u, c)
		}
		y = a.add(f, u)
	} else {
		s := a.div(f, a.add(f, a.number(2)))
		z := a.mul(s, s)
		h := a.poly(z, 0x1.5555555555592p-1, 0x1.999999997ff06p-2, 0x1.24924941e325dp-2, 0x1.c71c52125e893p-3, 0x1.74663d68a1012p-3, 0x1.39a1da7b86a02p-3, 0x1.2f045bc410d25p-3)
		half := a.mul(a.mul(f, a.number(0.5)), f)
		h = a.mulAdd(h, z, half)
		v := a.addMul(a.mul(e, ln2Low), s, h)
		if c != nil {
			v = a.add(v, c)
		}
		y = a.sub(f, a.sub(half, v))
	}
	return a.addMul(y, e, ln2)
}

func (a *arithmetics) log1p(x lanes) lanes {
	Comment("1 + x = u + c")
	one := a.spreadNumbers(1, x)
	high, low := a.fresh(x), a.fresh(x)
	for i := range x {
		a.larger(x[i], one[i], high[i])
		a.smaller(x[i], one[i], low[i])
	}
	u := a.add(high, low)
	c := a.sub(low, a.sub(u, high))
	_, e, f := a.exponent(u)
	b := a.addInts(a.atMost(u, 0x1p64), a.pattern(pick[uint64](a, logOffset32, logOffset64)))
	exponent := a.shiftLeft(a.shiftRight(b, a.mantissa()), a.mantissa())
	c = a.mul(c, a.subInts(pick[uint64](a, 254<<23, 2046<<52), exponent))
	y := a.add(f, c)
	c = a.sub(c, a.sub(y, f))
	y = a.copySign(a.abs(a.logNear(e, y, c)), x)
	return a.logEdges(y, x, -1)
}

// subInts is x - y for integers, x being a constant.
func (a *arithmetics) subInts(bits uint64, y lanes) lanes {
	r := a.fresh(y)
	for i := range y {
		t := a.new()
		pick(a, VPBROADCASTD, VPBROADCASTQ)(a.inMemory(bits), t)
		pick(a, VPSUBD, VPSUBQ)(y[i], t, r[i])
	}
	return r
}

func (a *arithmetics) sin(x lanes) lanes {
	q, r := a.circle(a.abs(x))
	return a.xor(a.turn(q, r), a.and(x, a.signs()))
}

func (a *arithmetics) cos(x lanes) lanes {
	q, r := a.circle(a.abs(x))
	return a.turn(a.addInts(q, a.pattern(1)), r)
}

// circle splits x into q quarters of a circle and a rest: x = q*pi/2 + r. Only the last two bits of
// q count. It changes x.
func (a *arithmetics) circle(x lanes) (q, r lanes) {
	Comment("n := round(x / (pi/2)); r := x - n*pi/2")
	n := a.round(a.mul(x, a.number(2/math.Pi)), 0)
	r = a.subMul(x, n, a.number(pick(a, 0x1.921fb6p+0, 0x1.921fb54442d18p+0)))
	r = a.subMul(r, n, a.number(pick(a, -0x1.777a5cp-25, 0x1.1a62633145c07p-54)))
	r = a.subMul(r, n, a.number(pick(a, -0x1.ee59dap-50, -0x1.f1976b7ed8fbcp-110)))
	return a.add(n, a.magic()), r
}

// turn returns the sine of q*pi/2 + r, see circle.
func (a *arithmetics) turn(q, r lanes) lanes {
	Comment("sine and cosine of r, one of them with a sign by the last two bits of q")
	z := a.mul(r, r)
	var h lanes
	if a.size == 4 {
		h = a.poly(z, -0x1.555544p-3, 0x1.1106cp-7, -0x1.9918d6p-13)
	} else {
		h = a.poly(z, -0x1.5555555555546p-3, 0x1.111111110f3fep-7, -0x1.a01a019b806c9p-13, 0x1.71de34f898862p-19, -0x1.ae5e01de77e38p-26, 0x1.5d75b33b2c97ap-33)
	}
	sin := a.mulAdd(h, a.mul(r, z), r)
	if a.size == 4 {
		h = a.poly(z, 0x1.55554ap-5, -0x1.6c0c0ep-10, 0x1.99db84p-16)
	} else {
		h = a.poly(z, 0x1.5555555555549p-5, -0x1.6c16c16c14bc5p-10, 0x1.a01a019c234d6p-16, -0x1.27e4f7a36b629p-22, 0x1.1ee9a6770cdd9p-29, -0x1.8f8ac4f415e91p-37)
	}
	cos := a.mulAdd(h, a.mul(z, z), a.mulAdd(a.spreadNumbers(-0.5, z), z, a.number(1)))
	odd := a.shiftLeft(q, uint64(8*a.size-1))
	for i := range sin {
		mask := value{v: odd[i]}
		if a.isa == avx512 {
			mask.k = K()
			pick(a, VPMOVD2M, VPMOVQ2M)(odd[i], mask.k)
		}
		a.blend(sin[i], mask, cos[i])
	}
	return a.xor(sin, a.and(a.shiftLeft(q, uint64(8*a.size-2)), a.signs()))
}

func (a *arithmetics) tanh(x lanes) lanes {
	m := a.abs(x)
	n, r := a.reduceExp(a.atMost(a.add(m, m), pick[float64](a, 20, 45)), false)
	den := a.mulAdd(a.expPoly1(r), a.power(1, n), a.number(1))
	one := a.spreadNumbers(1, x)
	y := a.sub(one, a.div(a.spreadNumbers(2, x), den))
	Comment("where |x| < 0.55")
	z := a.mul(m, m)
	var h lanes
	if a.size == 4 {
		h = a.poly(z, -0x1.55554ap-2, 0x1.110ceep-3, -0x1.b91e7ep-5, 0x1.58e51ap-6, -0x1.9921bcp-8)
	} else {
		h = a.poly(z, -0x1.5555555555555p-2, 0x1.111111111108p-3, -0x1.ba1ba1ba10e24p-5, 0x1.664f487f8e6ecp-6, -0x1.226e34cf75e4ap-7, 0x1.d6d3b1039ca25p-9,
			-0x1.7da103ec55abap-10, 0x1.3539040f9d48cp-11, -0x1.f349edc7cd532p-13, 0x1.88d8724e42f0ap-14, -0x1.1134cb7ad1eccp-15, 0x1.e4c1f48c095bep-18)
	}
	near := a.mulAdd(h, a.mul(m, z), m)
	return a.copySign(a.selectWhere(y, m, isLess, 0.55, near), x)
}

func (a *arithmetics) erf(x lanes) lanes {
	m := a.abs(x)
	z := a.mul(m, m)
	var h, g lanes
	if a.size == 4 {
		h = a.poly(z, 0x1.06eba6p-3, -0x1.8126dcp-2, 0x1.ce1858p-4, -0x1.b669bcp-6, 0x1.466b9ap-8, -0x1.36ae04p-11)
		t := a.sub(a.atMost(m, 4), a.number(0.9375))
		g = a.poly(t, -0x1.b01db2p+0, -0x1.445ca0p+1, -0x1.ab8e82p-1, -0x1.6998bcp-5, 0x1.5bb0cep-7, -0x1.044ba4p-9, 0x1.b197a6p-13)
	} else {
		h = a.poly(z, 0x1.06eba8214db68p-3, -0x1.812746b03799dp-2, 0x1.ce2f21a03f8b9p-4, -0x1.b82ce311a8ee4p-6, 0x1.565bcceeacf8cp-8, -0x1.c02daeb040440p-11,
			0x1.f9a296916bab5p-14, -0x1.f4c83b0f795ffp-17, 0x1.b96c88a49c7a2p-20, -0x1.5b98e1e6acac5p-23, 0x1.d45a039b0fabcp-27, -0x1.a4256cd55db57p-31)
		t := a.sub(a.atMost(m, 6), a.number(1))
		g = a.poly(t, -0x1.d97fbf27aa2a2p+0, -0x1.51c9b0006c196p+1, -0x1.afabc11a3226cp-1, -0x1.5477f0903890ep-5, 0x1.48c9d1e6a4d6ap-7, -0x1.033f31a6900e4p-9,
			0x1.f1a6122c21aabp-13, 0x1.ba0d763a83d11p-16, -0x1.c9ff849b9bc50p-16, 0x1.49218c4dbcbc1p-17, -0x1.30a506de8da4dp-19, 0x1.487b2e3fd1567p-22,
			0x1.0f4fdd6d69dc9p-28, -0x1.b18fdd61b68fcp-27, 0x1.9537ba128da5fp-29, -0x1.6d256a3ce3c06p-32, 0x1.14e2d2119a9d5p-36)
	}
	near := a.mulAdd(h, m, m)
	Comment("1 - exp of the second polynomial")
	n, r := a.reduceExp(g, false)
	y := a.subMul(a.spreadNumbers(1, x), a.expPoly1(r), a.power(1, n))
	return a.copySign(a.selectWhere(y, m, isLess, pick(a, 0.9375, 1), near), x)
}

// powLoop writes a loop of pow for elements of type e. Float32s are computed as float64s.
func (a *arithmetics) powLoop(name, form string, e *element) {
	size, perVector := e.size, a.bytes/a.size
	TEXT(name, attr.NOSPLIT, loopSignature)
	Pragma("noescape")
	dst, n := param("dst"), param("n")
	i := GP64()
	Comment("i := 0")
	XORQ(i, i)
	at := func(p reg.Register, vector int) Mem {
		return Mem{Base: p, Index: i, Scale: uint8(size), Disp: vector * perVector * size}
	}
	wide := func(v vector) vector {
		if e == float64s {
			return v
		}
		w := a.new()
		VCVTPS2PD(v, w)
		return w
	}
	// operand loads x or y as float64s: the given number of vectors from i on, or the rest.
	operand := func(name, scalarForm string) func(vectors int, rest *tail) lanes {
		if form == scalarForm {
			w := a.spread(param("s"), size)
			if e == float32s {
				w = wide(half(w))
			}
			return func(vectors int, _ *tail) lanes { return slices.Repeat(lanes{w}, vectors) }
		}
		p := param(name)
		return func(vectors int, rest *tail) lanes {
			if rest != nil {
				return lanes{wide(a.loadTail(at(p, 0), *rest, perVector, size))}
			}
			v := make(lanes, vectors)
			for k := range v {
				v[k] = wide(load(at(p, k), perVector, size))
			}
			return v
		}
	}
	x, y := operand("x", "FirstScalar"), operand("y", "SecondScalar")
	a.held, a.order = map[uint64]vector{}, nil
	JMP(LabelRef("constants"))
	Label("begin")
	power := func(vectors int, rest *tail) lanes {
		if e == float64s {
			return a.pow64(x(vectors, rest), y(vectors, rest))
		}
		v := a.pow(x(vectors, rest), y(vectors, rest))
		for k := range v {
			r := sized(perVector * size)
			if a.isa == avx512 {
				VCVTPD2PS(v[k], r)
			} else {
				VCVTPD2PSY(v[k], r)
			}
			v[k] = r
		}
		return v
	}
	rounds := []int{2, 1}
	if a.isa != avx512 || e == float64s {
		rounds = []int{1} // there are not enough registers for two vectors
	}
	for _, vectors := range rounds {
		Commentf("for ; i <= n-%d; i += %d: %d vectors", vectors*perVector, vectors*perVector, vectors)
		last := GP64()
		LEAQ(Mem{Base: n, Disp: -vectors * perVector}, last)
		loop, test := fmt.Sprintf("loop%d", vectors), fmt.Sprintf("test%d", vectors)
		JMP(LabelRef(test))
		Label(loop)
		for k, r := range power(vectors, nil) {
			store(r, at(dst, k), perVector, size)
		}
		ADDQ(U32(uint32(vectors*perVector)), i)
		Label(test)
		CMPQ(i, last)
		JLE(LabelRef(loop))
	}
	Comment("if i < n: the rest, masked")
	SUBQ(i, n)
	JLE(LabelRef("done"))
	t := a.first(n, size)
	if a.isa != avx512 && e == float32s {
		t.ones = t.ones.AsX().(vector)
	}
	a.storeTail(power(1, &t)[0], at(dst, 0), t, perVector, size)
	Label("done")
	VZEROUPPER()
	RET()
	Label("constants")
	a.loadHeld()
	JMP(LabelRef("begin"))
}

// pow is x to the power of y, both float32s as float64s, rounded once to float64.
func (a *arithmetics) pow(x, y lanes) lanes {
	base := a.abs(x)
	_, e, f := a.exponent(base) // no float32 is a denormal float64
	product := a.mul(a.logEdges(a.logNear(e, f, nil), base, 0), y)
	n, r := a.reduceExp(a.clamp(product, -150, 150), true) // beyond this float32s are 0 or infinite
	return a.powEdges(a.mul(a.expPoly1(r), a.power(1, n)), x, y, base)
}

// powEdges corrects v, which is base to the power of y, for the special cases of pow(x, y). These are a
// negative x, NaN, and operands for which the result is 1 whatever the other operand is.
func (a *arithmetics) powEdges(v, x, y, base lanes) lanes {
	Comment("signs, NaN, and what is 1 for all others")
	v = a.selectWhere(v, base, isEqual, 1, a.number(1))
	broken := a.compareLanes(a.round(y, 0), y, isUnequal)
	halves := a.mul(y, a.number(0.5))
	odd := a.compareLanes(a.round(halves, 0), halves, isUnequal)
	for i := range v {
		a.negateWhere(v[i], x[i], odd[i], broken[i])
		// NaN where x < 0, it is not -Inf and y is broken
		isNaN := a.both(a.both(a.compare(x[i], isLess, 0), a.compare(base[i], isLess, math.Inf(1))), broken[i])
		a.blend(v[i], isNaN, a.spreadNumber(math.NaN()))
	}
	v = a.selectWhere(v, y, isEqual, 0, a.number(1))
	return a.selectWhere(v, x, isEqual, 1, a.number(1))
}

// pow64 is x to the power of y.
func (a *arithmetics) pow64(x, y lanes) lanes {
	base := a.abs(x)
	high, low := a.logParts(base)
	high = a.logEdges(high, base, 0)
	Comment("p and the rest of it: y times the logarithm")
	p := a.mul(y, high)
	rest := a.addMul(a.addMul(a.negative(p), y, high), y, low)
	rest = a.selectWhere(rest, a.abs(p), isNotLess, 1000, a.number(0))
	Comment("e to the power of p and the rest")
	p = a.clamp(p, -746, 710)
	n := a.round(a.addMul(a.spreadNumbers(-expBias, p), p, a.number(math.Log2E)), 0)
	r := a.subMul(p, n, a.number(0x1.62e42fefa39efp-1))
	r = a.add(r, a.subMul(rest, n, a.number(0x1.abc9e3b39803fp-56)))
	return a.powEdges(a.scale(a.expPoly1(r), n), x, y, base)
}

// logParts is the logarithm in two parts, see logParts64 in device/kernel.
func (a *arithmetics) logParts(x lanes) (high, low lanes) {
	normal := a.selectWhere(a.copy(x), x, isLess, 0x1p-1022, a.mul(x, a.number(0x1p52)))
	_, e, f := a.exponent(normal)
	e = a.selectWhere(e, x, isLess, 0x1p-1022, a.sub(e, a.number(52)))
	Comment("s and s1: f/(2+f)")
	d := a.add(f, a.number(2))
	d1 := a.sub(f, a.sub(d, a.number(2)))
	inverse := a.div(a.spreadNumbers(1, d), d)
	s := a.mul(f, inverse)
	s1 := a.mul(a.subMul(a.subMul(f, s, d), s, d1), inverse)
	Comment("z and z1: its square")
	z := a.mul(s, s)
	z1 := a.addMul(a.addMul(a.negative(z), s, s), a.add(s, s), s1)
	Comment("t and t1: the polynomial")
	const twoThirds, thirdOfUnit = 0x1.5555555555555p-1, 0x1.5555555555555p-55
	h := a.mul(a.poly(z, 0x1.999999999999ap-2, 0x1.2492492492521p-2, 0x1.c71c71c6eaa10p-3, 0x1.745d177a96056p-3, 0x1.3b1395d2190c1p-3,
		0x1.1118c7e4b0917p-3, 0x1.df7cc8e5fa539p-4, 0x1.e02e6fff27908p-4), z)
	t := a.add(h, a.number(twoThirds))
	t1 := a.add(a.add(a.sub(a.spreadNumbers(twoThirds, t), t), h), a.number(thirdOfUnit))
	Comment("u and u1: that, times z")
	u := a.mul(z, t)
	u1 := a.addMul(a.addMul(a.addMul(a.negative(u), z, t), z, t1), z1, t)
	Comment("w and w1: that, times s")
	w := a.mul(s, u)
	w1 := a.addMul(a.addMul(a.addMul(a.negative(w), s, u), s, u1), s1, u)
	Comment("the logarithm of 1+f")
	twice := a.add(s, s)
	l := a.add(twice, w)
	l1 := a.add(a.add(a.sub(twice, l), w), a.add(w1, a.add(s1, s1)))
	Comment("and e*ln2")
	k := a.mul(e, a.number(0x1.62e42fefa3p-1))
	sum := a.add(k, l)
	rest := a.add(a.add(a.sub(k, sum), l), a.addMul(l1, e, a.number(0x1.3de6af278ece6p-42)))
	high = a.add(sum, rest)
	return high, a.add(a.sub(sum, high), rest)
}

// negative is -x.
func (a *arithmetics) negative(x lanes) lanes { return a.xor(x, a.signs()) }

// compareLanes is where x and y are in the given relation.
func (a *arithmetics) compareLanes(x, y lanes, predicate uint64) []value {
	masks := make([]value, len(x))
	for i := range x {
		if a.isa == avx512 {
			masks[i].k = K()
			pick(a, VCMPPS, VCMPPD)(Imm(predicate), y[i], x[i], masks[i].k)
		} else {
			masks[i].v = a.new()
			pick(a, VCMPPS, VCMPPD)(Imm(predicate), y[i], x[i], masks[i].v)
		}
	}
	return masks
}

// both is where x and y hold.
func (a *arithmetics) both(x, y value) value {
	if a.isa == avx512 {
		k := K()
		KANDW(x.k, y.k, k)
		return value{k: k}
	}
	v := a.new()
	VANDPS(x.v, y.v, v)
	return value{v: v}
}

// negateWhere makes y -y where where holds and unless does not, and x has a sign.
func (a *arithmetics) negateWhere(y, x vector, where, unless value) {
	sign := a.and(lanes{x}, a.signs())[0]
	if a.isa == avx512 {
		k := K()
		KANDNW(where.k, unless.k, k) // where &^ unless
		pick(a, VXORPS, VXORPD)(sign, y, k, y)
		return
	}
	v := a.new()
	VANDNPS(where.v, unless.v, v)
	VANDPS(sign, v, v)
	VXORPS(v, y, y)
}

// half is the low half of v.
func half(v vector) vector {
	if v.Size() == 64 {
		return v.AsY().(vector)
	}
	return v.AsX().(vector)
}

func lower(s string) string { return string(s[0]|0x20) + s[1:] }
