package neon

import (
	"fmt"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// A row translates an instruction with the given operands, which are in the order of Go's assembler: the result is
// the last one.
type row func(f *function, ops []operand.Op)

// rows are those of all instructions that families use.
var rows = map[string]row{
	"VADDPS": lanes("fadd", "4s"), "VADDPD": lanes("fadd", "2d"),
	"VSUBPS": lanes("fsub", "4s"), "VSUBPD": lanes("fsub", "2d"),
	"VMULPS": lanes("fmul", "4s"), "VMULPD": lanes("fmul", "2d"),
	"VDIVPS": lanes("fdiv", "4s"), "VDIVPD": lanes("fdiv", "2d"),
	"VSQRTPS": lane("fsqrt", "4s"), "VSQRTPD": lane("fsqrt", "2d"),
	"fmax4": lanes("fmax", "4s"), "fmax8": lanes("fmax", "2d"),
	"fmin4": lanes("fmin", "4s"), "fmin8": lanes("fmin", "2d"),
	"VROUNDPS": round("4s"), "VROUNDPD": round("2d"),
	"VCMPPS": compare("4s"), "VCMPPD": compare("2d"),

	"VFMADD231PS": addProduct("fmla", "4s"), "VFMADD231PD": addProduct("fmla", "2d"),
	"VFNMADD231PS": addProduct("fmls", "4s"), "VFNMADD231PD": addProduct("fmls", "2d"),
	"VFMADD213PS": fused("4s", 0, 1, 2, false), "VFMADD213PD": fused("2d", 0, 1, 2, false),
	"VFMADD132PS": fused("4s", 1, 0, 2, false), "VFMADD132PD": fused("2d", 1, 0, 2, false),
	"VFMSUB132PS": fused("4s", 1, 0, 2, true), "VFMSUB132PD": fused("2d", 1, 0, 2, true),

	"VPADDD": lanes("add", "4s"), "VPADDQ": lanes("add", "2d"),
	"VPSUBD": lanes("sub", "4s"), "VPSUBQ": lanes("sub", "2d"),
	"VPABSQ":   lane("abs", "2d"),
	"VPCMPEQQ": equal,
	"VPCMPGTB": lanes("cmgt", "16b"), "VPCMPGTD": lanes("cmgt", "4s"), "VPCMPGTQ": lanes("cmgt", "2d"),
	"VPSLLD": shift("shl", "4s"), "VPSLLQ": shift("shl", "2d"),
	"VPSRLD": shift("ushr", "4s"), "VPSRLQ": shift("ushr", "2d"),
	"VPSRAD":   shift("sshr", "4s"),
	"VPMULUDQ": multiply,

	"VPAND": lanes("and", "16b"), "VANDPS": lanes("and", "16b"), "VANDPD": lanes("and", "16b"),
	"VPOR": lanes("orr", "16b"), "VORPS": lanes("orr", "16b"), "VORPD": lanes("orr", "16b"),
	"VPANDN": without, "VANDNPS": without, "VANDNPD": without,
	"VPXOR": exclusive, "VXORPS": exclusive, "VXORPD": exclusive,
	"VBLENDVPS": blend("4s"), "VBLENDVPD": blend("2d"), "VPBLENDVB": blend("16b"),
	"VPBLENDD": blendWords,
	"VPTEST":   test, "VMOVMSKPS": bitsOfMask, "VMOVMSKPD": bitsOfMask,

	"VCVTDQ2PS": lane("scvtf", "4s"), "VCVTQQ2PD": lane("scvtf", "2d"), "VCVTTPD2QQ": lane("fcvtzs", "2d"),
	"VCVTDQ2PD":  widen("sshll vD.2d, vN.2s, #0", "sshll2 vD.2d, vN.4s, #0", "scvtf"),
	"VCVTPS2PD":  widen("fcvtl vD.2d, vN.2s", "fcvtl2 vD.2d, vN.4s", ""),
	"VCVTPH2PS":  widen("fcvtl vD.4s, vN.4h", "fcvtl2 vD.4s, vN.8h", ""),
	"VPMOVZXWD":  widen("ushll vD.4s, vN.4h, #0", "ushll2 vD.4s, vN.8h, #0", ""),
	"VPMOVSXDQ":  widen("sshll vD.2d, vN.2s, #0", "sshll2 vD.2d, vN.4s, #0", ""),
	"VPMOVZXBD":  bytesTo("4s"),
	"VPMOVZXBQ":  bytesTo("2d"),
	"VCVTPD2PSY": narrow("fcvtn vD.2s, vN.2d", "fcvtn2 vT.4s, vN.2d"),
	"VCVTPS2PH":  narrow("fcvtn vD.4h, vN.4s", "fcvtn2 vT.8h, vN.4s"),
	"VPACKSSDW":  pack("sqxtn vD.4h, vN.4s", "sqxtn2 vT.8h, vN.4s"),
	"VPACKSSWB":  pack("sqxtn vD.8b, vN.8h", "sqxtn2 vT.16b, vN.8h"),
	"VPACKUSDW":  pack("sqxtun vD.4h, vN.4s", "sqxtun2 vT.8h, vN.4s"),
	"VPACKUSWB":  pack("sqxtun vD.8b, vN.8h", "sqxtun2 vT.16b, vN.8h"),

	"VUNPCKLPS": lanes("zip1", "4s"), "VUNPCKLPD": lanes("zip1", "2d"),
	"VUNPCKHPS": lanes("zip2", "4s"), "VUNPCKHPD": lanes("zip2", "2d"),
	"VSHUFPS": shuffle, "VPSHUFD": shuffleWords, "VPERM2F128": permute,
	"VEXTRACTF128": extract, "VEXTRACTI128": extract, "VINSERTF128": insert,
	"VINSERTPS": insertWord, "VMOVHPD": insertHigh,
	"VBROADCASTF128": spreadHalf,
	"VBROADCASTSS":   spread("4s"), "VBROADCASTSD": spread("2d"),
	"VPBROADCASTB": spread("16b"), "VPBROADCASTD": spread("4s"), "VPBROADCASTQ": spread("2d"),

	"VMOVUPS": move, "VMOVAPS": move, "VMOVDQU": move,
	"VMOVSS": moveFirst("s"), "VMOVD": moveFirst("s"),
	"VMOVSD": moveFirst("d"), "VMOVQ": moveFirst("d"),
	"VPEXTRB": store("b"), "VPEXTRW": store("h"),
	"loadTail": loadTail, "storeTail": storeTail,
	"VZEROUPPER": func(*function, []operand.Op) {},
}

// lanes is an instruction of two operands for each lane.
func lanes(name, arrangement string) row {
	text := three(name, arrangement)
	return func(f *function, ops []operand.Op) {
		y := func(half int) register { return f.source(ops[0], half) }
		if m, ok := ops[0].(operand.Mem); ok && f.repeats(m) { // is read once
			v := f.source(m, 0)
			y = func(int) register { return v }
		}
		f.halves(ops[2], func(h int) { f.emit(text, f.half(ops[2], h), f.half(ops[1], h), y(h)) })
	}
}

// lane is an instruction of one operand for each lane.
func lane(name, arrangement string) row {
	text := two(name, arrangement)
	return func(f *function, ops []operand.Op) {
		f.halves(ops[1], func(h int) { f.emit(text, f.half(ops[1], h), f.source(ops[0], h)) })
	}
}

// number is that of a constant operand.
func number(op operand.Op) int {
	switch c := op.(type) {
	case operand.U8:
		return int(c)
	case operand.U16:
		return int(c)
	case operand.U32:
		return int(c)
	case operand.U64:
		return int(c)
	case operand.I8:
		return int(c)
	case operand.I32:
		return int(c)
	}
	panic(fmt.Sprintf("what is the constant %v?", op))
}

// round is VROUNDPS: 8 to the nearest or even, 9 down, 10 up.
func round(arrangement string) row {
	modes := map[int]row{8: lane("frintn", arrangement), 9: lane("frintm", arrangement), 10: lane("frintp", arrangement)}
	return func(f *function, ops []operand.Op) { modes[number(ops[0])](f, ops[1:]) }
}

// A predicate is how NEON compares x with y for one of Intel's.
type predicate struct {
	name       string
	swaps      bool // y with x
	negates    bool
	isOfItself bool // only x with x
}

var predicates = map[int]predicate{
	0x00: {name: "fcmeq"},
	0x01: {name: "fcmgt", swaps: true}, 0x11: {name: "fcmgt", swaps: true}, // x < y
	0x02: {name: "fcmge", swaps: true},                     // x <= y
	0x03: {name: "fcmeq", negates: true, isOfItself: true}, // NaN
	0x04: {name: "fcmeq", negates: true},
	0x07: {name: "fcmeq", isOfItself: true}, // no NaN
	0x0d: {name: "fcmge"},
	0x15: {name: "fcmgt", swaps: true, negates: true}, // !(x < y)
	0x19: {name: "fcmge", negates: true},              // !(x >= y)
	0x1e: {name: "fcmgt"},
}

func compare(arrangement string) row {
	return func(f *function, ops []operand.Op) {
		p, ok := predicates[number(ops[0])]
		if !ok || p.isOfItself && ops[1] != ops[2] {
			panic("no such predicate")
		}
		f.halves(ops[3], func(h int) {
			y, x, d := f.source(ops[1], h), f.half(ops[2], h), f.half(ops[3], h)
			if p.swaps {
				x, y = y, x
			}
			f.emit(three(p.name, arrangement), d, x, y)
			if p.negates {
				f.emit(two("not", "16b"), d, d)
			}
		})
	}
}

// equal is VPCMPEQQ, which also makes ones.
func equal(f *function, ops []operand.Op) {
	if ops[0] != ops[1] {
		lanes("cmeq", "2d")(f, ops)
		return
	}
	f.halves(ops[2], func(h int) { f.emit("movi vD.2d, #0xffffffffffffffff", f.half(ops[2], h)) })
}

// exclusive is VPXOR, which also makes zeros.
func exclusive(f *function, ops []operand.Op) {
	if ops[0] != ops[1] {
		lanes("eor", "16b")(f, ops)
		return
	}
	f.halves(ops[2], func(h int) { f.emit("movi vD.2d, #0000000000000000", f.half(ops[2], h)) })
}

// without is VPANDN: ops[0] &^ ops[1].
func without(f *function, ops []operand.Op) {
	f.halves(ops[2], func(h int) {
		f.emit(three("bic", "16b"), f.half(ops[2], h), f.source(ops[0], h), f.half(ops[1], h))
	})
}

// addProduct is VFMADD231: it adds the product of the first two operands. Of a factor it reads one lane.
func addProduct(name, arrangement string) row {
	text := tied(name, arrangement)
	byLane := fmt.Sprintf("%s vT.%s, vN.%[2]s, vM.%c[0]", name, arrangement, arrangement[1])
	return func(f *function, ops []operand.Op) {
		y, x := ops[0], ops[1]
		if r, ok := y.(reg.Register); ok && f.isFactor[r.ID()] {
			x, y = y, x
		}
		source := f.sources(y)
		f.halves(ops[2], func(h int) {
			if d, id := f.half(ops[2], h), x.(reg.Register).ID(); f.isFactor[id] {
				f.emit(byLane, d, source(h), f.half(x, 0))
			} else {
				f.emit(text, d, f.half(x, h), source(h))
			}
		})
	}
}

// sources is source for both halves; what lies in memory is read at once.
func (f *function) sources(op operand.Op) func(half int) register {
	m, ok := op.(operand.Mem)
	if !ok {
		return func(half int) register { return f.half(op, half) }
	}
	var v [2]register
	if f.repeats(m) {
		v[0] = f.source(m, 0)
		v[1] = v[0]
	} else {
		v[0], v[1] = f.vector(), f.vector()
		f.pair("ldr", v[0], v[1], m)
	}
	return func(half int) register { return v[half] }
}

// fused is an instruction that multiplies operand 2, the result, by another one, and adds a third or subtracts it. NEON
// adds to what it adds to, so that has to be copied or read anew.
func fused(arrangement string, summand, factor, result int, subtracts bool) row {
	return func(f *function, ops []operand.Op) {
		f.halves(ops[result], func(h int) {
			d, sum := f.half(ops[result], h), register(0)
			if subtracts {
				sum = f.vector()
				f.emit(two("fneg", arrangement), sum, f.half(ops[summand], h))
			} else {
				sum = f.copied(ops[summand], h)
			}
			f.emit(tied("fmla", arrangement), sum, f.source(ops[factor], h), d)
			f.emit(moveText, d, sum)
		})
	}
}

func shift(name, arrangement string) row {
	text := fmt.Sprintf("%s vD.%s, vN.%[2]s, #I", name, arrangement)
	return func(f *function, ops []operand.Op) {
		f.halves(ops[2], func(h int) { f.emitNumber(text, number(ops[0]), f.half(ops[2], h), f.half(ops[1], h)) })
	}
}

// multiply is VPMULUDQ: products of the lower halves of lanes of 64 bits, which uzp1 puts beside each other.
func multiply(f *function, ops []operand.Op) {
	lower := func(op operand.Op) register {
		v := f.vector()
		f.emit(three("uzp1", "4s"), v, f.half(op, 0), f.half(op, 1))
		return v
	}
	x, d := lower(ops[1]), [2]register{f.half(ops[2], 0), f.half(ops[2], 1)}
	if r := ops[0].(reg.Register); f.isSplat[r.ID()] {
		f.emit("umull vD.2d, vN.2s, vM.s[0]", d[0], x, f.half(r, 0))
		f.emit("umull2 vD.2d, vN.4s, vM.s[0]", d[1], x, f.half(r, 0))
		return
	}
	y := lower(ops[0])
	f.emit("umull vD.2d, vN.2s, vM.2s", d[0], x, y)
	f.emit("umull2 vD.2d, vN.4s, vM.4s", d[1], x, y)
}

// blend takes lanes of ops[1] where the mask ops[0] has its highest bit set, and of ops[2] elsewhere.
func blend(arrangement string) row {
	return func(f *function, ops []operand.Op) {
		source := f.sources(ops[1])
		f.halves(ops[3], func(h int) {
			x, y, d := source(h), f.half(ops[2], h), f.half(ops[3], h)
			mask := f.half(ops[0], h)
			if !f.isMask[ops[0].(reg.Register).ID()] {
				whole := f.vector()
				f.emit("cmlt vD."+arrangement+", vN."+arrangement+", #0", whole, mask)
				mask = whole
			}
			v := f.copy(y)
			f.emit(tied("bit", "16b"), v, x, mask)
			f.emit(moveText, d, v)
		})
	}
}

// blendWords is VPBLENDD for the even words of each half, or for the odd ones.
func blendWords(f *function, ops []operand.Op) {
	name := map[int]string{0x55: "bit", 0xaa: "bif"}[number(ops[0])]
	even := f.onEntry("even words", false, func(r register) { f.emit("movi vD.2d, #0x000000ffffffff", r) })
	f.halves(ops[3], func(h int) {
		v := f.copy(f.half(ops[2], h))
		f.emit(tied(name, "16b"), v, f.half(ops[1], h), even)
		f.emit(moveText, f.half(ops[3], h), v)
	})
}

// test is VPTEST of a mask with itself.
func test(f *function, ops []operand.Op) {
	if ops[0] != ops[1] {
		panic("only of a vector with itself")
	}
	v, bits := f.vector(), f.newGeneral()
	f.emit(three("orr", "16b"), v, f.half(ops[0], 0), f.half(ops[0], 1))
	f.emit(three("umaxp", "4s"), v, v, v)
	f.emit("fmov xD, dN", bits, v)
	f.emit("CMP $0, xN", bits)
}

// bitsOfMask makes a bit of each lane of a mask: 8 lanes of 32 bits, or 4 of 64.
func bitsOfMask(f *function, ops []operand.Op) {
	r := ops[0].(reg.Register)
	if !f.isMask[r.ID()] {
		panic("not of a mask")
	}
	lanes, bits := 8, "0x8040201008040201"
	if f.opcode == "VMOVMSKPD" {
		lanes, bits = 4, "0x0008000400020001"
	}
	each := f.onEntry("bits "+bits, false, func(v register) {
		g := f.newGeneral()
		f.emit("MOVD $"+bits+", xD", g)
		f.emit("fmov dD, xN", v, g)
	})
	v, d := f.vector(), f.general(ops[1])
	if lanes == 8 {
		f.emit(three("uzp1", "8h"), v, f.half(r, 0), f.half(r, 1))
		f.emit("xtn vD.8b, vN.8h", v, v)
	} else {
		f.emit(three("uzp1", "4s"), v, f.half(r, 0), f.half(r, 1))
		f.emit("xtn vD.4h, vN.4s", v, v)
	}
	f.emit(three("and", "16b"), v, v, each)
	if lanes == 8 {
		f.emit("addv bD, vN.8b", v, v)
	} else {
		f.emit("addv hD, vN.4h", v, v)
	}
	f.emit("fmov wD, sN", d, v)
}

// widen makes a whole vector of the lower half of another one. What it makes is converted once more by the
// instruction then, unless that is empty.
func widen(low, high, then string) row {
	return func(f *function, ops []operand.Op) {
		x, texts := f.copy(f.source(ops[0], 0)), [2]string{low, high}
		f.halves(ops[1], func(h int) {
			d := f.half(ops[1], h)
			f.emit(texts[h], d, x)
			if then != "" {
				f.emit(two(then, "2d"), d, d)
			}
		})
	}
}

// bytesTo makes lanes of the given arrangement of the first bytes of a vector.
func bytesTo(arrangement string) row {
	return func(f *function, ops []operand.Op) {
		words := f.vector()
		f.emit("ushll vD.8h, vN.8b, #0", words, f.source(ops[0], 0))
		d := [2]register{f.half(ops[1], 0), f.half(ops[1], 1)}
		if arrangement == "4s" {
			f.emit("ushll vD.4s, vN.4h, #0", d[0], words)
			f.emit("ushll2 vD.4s, vN.8h, #0", d[1], words)
			return
		}
		f.emit("ushll vD.4s, vN.4h, #0", words, words)
		f.emit("ushll vD.2d, vN.2s, #0", d[0], words)
		f.emit("ushll2 vD.2d, vN.4s, #0", d[1], words)
	}
}

// narrow makes half a vector of a whole one, the last operand but one.
func narrow(low, high string) row {
	return func(f *function, ops []operand.Op) {
		x, d := ops[len(ops)-2], ops[len(ops)-1]
		if len(ops) == 3 && number(ops[0]) != 0 {
			panic("rounds to nearest only")
		}
		v := f.vector()
		f.emit(low, v, f.half(x, 0))
		f.emit(high, v, f.half(x, 1))
		f.halves(d, func(int) { f.emit(moveText, f.half(d, 0), v) })
	}
}

// pack makes lanes of ops[1] and then of ops[0] half as wide.
func pack(low, high string) row {
	return func(f *function, ops []operand.Op) {
		v := f.vector()
		f.emit(low, v, f.half(ops[1], 0))
		f.emit(high, v, f.half(ops[0], 0))
		f.halves(ops[2], func(int) { f.emit(moveText, f.half(ops[2], 0), v) })
	}
}

// shuffle is VSHUFPS for the even words of two vectors.
func shuffle(f *function, ops []operand.Op) {
	if number(ops[0]) != 0x88 {
		panic("only even words")
	}
	lanes("uzp1", "4s")(f, ops[1:])
}

// shuffleWords moves the upper half of 128 bits down, or word 1. What is above that does not matter to anyone.
func shuffleWords(f *function, ops []operand.Op) {
	x, d := f.half(ops[1], 0), f.half(ops[2], 0)
	switch number(ops[0]) {
	case 0x0e:
		f.halves(ops[2], func(int) { f.emit("ext vD.16b, vN.16b, vM.16b, #8", d, x, x) })
	case 0x01:
		f.halves(ops[2], func(int) { f.emit("dup vD.4s, vN.s[1]", d, x) })
	default:
		panic("no such order")
	}
}

// permute is VPERM2F128 for the lower halves of ops[2] and ops[1], or the upper ones.
func permute(f *function, ops []operand.Op) {
	h, ok := map[int]int{0x20: 0, 0x31: 1}[number(ops[0])]
	if !ok {
		panic("no such order")
	}
	v := [2]register{f.copy(f.half(ops[2], h)), f.copy(f.half(ops[1], h))}
	f.halves(ops[3], func(h int) { f.emit(moveText, f.half(ops[3], h), v[h]) })
}

// extract takes one half.
func extract(f *function, ops []operand.Op) {
	f.halves(ops[2], func(int) { f.emit(moveText, f.half(ops[2], 0), f.half(ops[1], number(ops[0]))) })
}

// insert replaces one half by ops[1].
func insert(f *function, ops []operand.Op) {
	v := [2]register{f.half(ops[2], 0), f.half(ops[2], 1)}
	v[number(ops[0])] = f.source(ops[1], 0)
	for h := range v {
		v[h] = f.copy(v[h])
	}
	f.halves(ops[3], func(h int) { f.emit(moveText, f.half(ops[3], h), v[h]) })
}

// insertWord is VINSERTPS of a word in memory.
func insertWord(f *function, ops []operand.Op) {
	v := f.copy(f.half(ops[2], 0))
	f.emit(fmt.Sprintf("ld1 { vT.s }[%d], [xN]", number(ops[0])>>4), v, f.pointer(ops[1].(operand.Mem)))
	f.halves(ops[3], func(int) { f.emit(moveText, f.half(ops[3], 0), v) })
}

// insertHigh is VMOVHPD of 8 bytes in memory.
func insertHigh(f *function, ops []operand.Op) {
	v := f.copy(f.half(ops[1], 0))
	f.emit("ld1 { vT.d }[1], [xN]", v, f.pointer(ops[0].(operand.Mem)))
	f.halves(ops[2], func(int) { f.emit(moveText, f.half(ops[2], 0), v) })
}

// spreadHalf reads 16 bytes into both halves.
func spreadHalf(f *function, ops []operand.Op) {
	v := f.source(ops[0], 0)
	f.halves(ops[1], func(h int) { f.emit(moveText, f.half(ops[1], h), v) })
}

// spread fills a vector with one element.
func spread(arrangement string) row {
	letter := arrangement[len(arrangement)-1:]
	return func(f *function, ops []operand.Op) {
		d := ops[1]
		m, isMemory := ops[0].(operand.Mem)
		if isMemory && f.isFactor[d.(reg.Register).ID()] {
			f.access("ldr", letter, f.half(d, 0), m)
			return
		}
		v := f.vector()
		switch {
		case !isMemory:
			f.emit("dup vD."+arrangement+", vN."+letter+"[0]", v, f.half(ops[0], 0))
		case m.Base == reg.FramePointer:
			g := f.newGeneral()
			f.emit("MOVD "+m.Asm()+", xD", g)
			f.emit("fmov dD, xN", v, g)
			f.emit("dup vD.2d, vN.d[0]", v, v)
		case f.repeats(m): // the whole vector is there
			v = f.source(m, 0)
		default:
			f.emit("ld1r { vD."+arrangement+" }, [xN]", v, f.pointer(m))
		}
		f.halves(d, func(h int) { f.emit(moveText, f.half(d, h), v) })
	}
}

// move copies between registers and memory.
func move(f *function, ops []operand.Op) {
	to, writes := ops[1].(operand.Mem)
	from, reads := ops[0].(operand.Mem)
	switch {
	case writes && ops[0].(reg.Register).Size() == 32:
		f.pair("str", f.half(ops[0], 0), f.half(ops[0], 1), to)
	case writes:
		f.access("str", "q", f.half(ops[0], 0), to)
	case reads && ops[1].(reg.Register).Size() == 32:
		f.pair("ldr", f.half(ops[1], 0), f.half(ops[1], 1), from)
	default:
		f.halves(ops[1], func(h int) {
			if reads {
				f.access("ldr", "q", f.half(ops[1], 0), from)
			} else {
				f.emit(moveText, f.half(ops[1], h), f.half(ops[0], h))
			}
		})
	}
}

// moveFirst moves the first 4 bytes of a vector or the first 8, from or to memory or a general register.
func moveFirst(letter string) row {
	general := map[string]string{"s": "w", "d": "x"}[letter]
	return func(f *function, ops []operand.Op) {
		to, toMemory := ops[1].(operand.Mem)
		from, fromMemory := ops[0].(operand.Mem)
		switch {
		case toMemory:
			f.access("str", letter, f.half(ops[0], 0), to)
		case fromMemory:
			f.halves(ops[1], func(int) { f.access("ldr", letter, f.half(ops[1], 0), from) })
		case ops[0].(reg.Register).Kind() == reg.KindGP:
			f.halves(ops[1], func(int) { f.emit("fmov "+letter+"D, "+general+"N", f.half(ops[1], 0), f.general(ops[0])) })
		case ops[1].(reg.Register).Kind() == reg.KindGP:
			f.emit("fmov "+general+"D, "+letter+"N", f.general(ops[1]), f.half(ops[0], 0))
		default:
			panic("no move between vectors")
		}
	}
}

// store writes the first element of a vector.
func store(letter string) row {
	return func(f *function, ops []operand.Op) {
		if number(ops[0]) != 0 {
			panic("only the first")
		}
		f.access("str", letter, f.half(ops[1], 0), ops[2].(operand.Mem))
	}
}
