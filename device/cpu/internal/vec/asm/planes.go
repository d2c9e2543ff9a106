package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/attr"
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// planes writes the loops of convolutions and pooling: copies of rows from anywhere, and sums and
// maxima of shifted rows.
func planes() {
	for _, m := range isas {
		for vectors := 1; vectors <= 2; vectors++ {
			collect(m, vectors)
		}
		for _, e := range []*element{float32s, float64s} {
			for _, t := range tapKinds {
				taps(m, e, t)
			}
		}
	}
}

// collect writes the copy of the given number of vectors from each of several places. In the last
// vector, only some elements are read and written.
func collect(m *isa, vectors int) {
	name := fmt.Sprintf("collect%s%d", m.name, vectors)
	enter("collects", m.name, fmt.Sprint(vectors), name)
	TEXT(name, attr.NOSPLIT, "func(k int, at, src, dst *byte, step, last int)")
	Pragma("noescape")
	last := param("last")
	t := m.first(last, 4)
	at, src, dst, step, n := param("at"), param("src"), param("dst"), param("step"), param("k")
	// loop writes the loop and the end; the last vector has a tail or is a whole one.
	loop := func(label string, isMasked bool) {
		Label(label)
		Comment("for _, from := range at[:k]: copy(dst, src[from:]); dst += step")
		from := GP64()
		MOVQ(Mem{Base: at}, from)
		for v := range vectors {
			x := m.new()
			in, out := Mem{Base: src, Index: from, Scale: 1, Disp: v * m.bytes}, Mem{Base: dst, Disp: v * m.bytes}
			if v < vectors-1 || !isMasked {
				VMOVUPS(in, x)
				VMOVUPS(x, out)
			} else {
				m.loadTailTo(in, t, 4, x)
				m.storeTail(x, out, t, m.bytes/4, 4)
			}
		}
		ADDQ(Imm(8), at)
		ADDQ(step, dst)
		DECQ(n)
		JNZ(LabelRef(label))
		VZEROUPPER()
		RET()
	}
	CMPQ(last, Imm(uint64(m.bytes/4)))
	JNE(LabelRef("masked"))
	loop("whole", false)
	loop("masked", true)
}

// A tapKind is how rows are combined.
type tapKind struct {
	name, text string
	hasWeights bool
}

var tapKinds = []tapKind{
	{"MulAdd", "fma(w[p], x, sum)", true},
	{"Sum", "sum + x", false},
	{"Max", "max(sum, x)", false},
	{"Where", "if x == m || x != x { sum = w[p] }", true},
}

// tapVectors is how many vectors of a row are computed together.
const tapVectors = 4

// A tapWriter writes a function of taps.
type tapWriter struct {
	m              *isa
	e              *element
	kind           tapKind
	k, w, at       reg.GPVirtual
	from, to, cols reg.GPVirtual // of what is left of the row
	begin          vector
	tail           tail // of the last vector of a row
}

// taps writes the combination of shifted rows.
func taps(m *isa, e *element, kind tapKind) {
	name := fmt.Sprintf("taps%s%s%s", kind.name, e.name, m.name)
	enter("taps", m.name, fmt.Sprintf("tapKey{Tap%s, device.%s}", kind.name, e.name), name)
	TEXT(name, attr.NOSPLIT, "func(k int, w, at, src, dst *byte, cols, rows, down, ld int)")
	Pragma("noescape")
	t := tapWriter{m: m, e: e, kind: kind, k: param("k"), w: param("w"), at: param("at"), from: GP64(), to: GP64(), cols: GP64()}
	bits := uint64(0)
	switch {
	case kind.name == "Max" && e.size == 4:
		bits = 0xff800000
	case kind.name == "Max":
		bits = 0xfff0000000000000
	}
	t.begin = m.constant(bits, e.size)
	lanes := m.bytes / e.size
	src, dst, rows := param("src"), param("dst"), param("rows")
	down, down3 := param("down"), GP64()
	LEAQ(Mem{Base: down, Index: down, Scale: 2}, down3)

	Comment("the last vector of a row has (cols-1)%lanes + 1 elements")
	last := param("cols")
	DECQ(last)
	ANDQ(Imm(uint64(lanes-1)), last)
	INCQ(last)
	t.tail = m.first(last, e.size)

	Comment("if cols <= lanes: several rows at once, as one would wait for its sum so far")
	Load(Param("cols"), t.cols)
	CMPQ(t.cols, U32(uint32(lanes)))
	JG(LabelRef("row"))
	Label("narrow")
	for n := tapVectors; n > 1; n-- {
		if n < tapVectors {
			Label(fmt.Sprintf("narrow%d", n))
		}
		CMPQ(rows, Imm(uint64(n)))
		JL(LabelRef(fmt.Sprintf("narrow%d", n-1)))
		t.rows(n, src, dst, down, down3)
		SUBQ(Imm(uint64(n)), rows)
		JNZ(LabelRef("narrow"))
		VZEROUPPER()
		RET()
	}
	Label("narrow1")

	Label("row")
	MOVQ(src, t.from)
	MOVQ(dst, t.to)
	Load(Param("cols"), t.cols)
	JMP(LabelRef("manyTest"))
	Label("many")
	t.block("Many", tapVectors, false)
	ADDQ(U32(uint32(tapVectors*m.bytes)), t.from)
	ADDQ(U32(uint32(tapVectors*m.bytes)), t.to)
	SUBQ(U32(uint32(tapVectors*lanes)), t.cols)
	Label("manyTest")
	CMPQ(t.cols, U32(uint32(tapVectors*lanes)))
	JGT(LabelRef("many"))
	for v := 1; v < tapVectors; v++ {
		CMPQ(t.cols, U32(uint32(v*lanes)))
		JLE(LabelRef(fmt.Sprintf("rest%d", v)))
	}
	for v := tapVectors; v > 0; v-- {
		Label(fmt.Sprintf("rest%d", v))
		t.block(fmt.Sprint(v), v, true)
		if v > 1 {
			JMP(LabelRef("next"))
		}
	}
	Label("next")
	ADDQ(down, src)
	step := param("ld")
	ADDQ(step, dst)
	DECQ(rows)
	JNZ(LabelRef("row"))
	VZEROUPPER()
	RET()
}

// rows writes the combination for some rows of one vector, or a part of one, and moves on by them.
func (t *tapWriter) rows(n int, src, dst, down, down3 reg.GPVirtual) {
	sums := make([]vector, n)
	greatest := make([]vector, n)
	at := GP64()
	MOVQ(dst, at)
	for i := range sums {
		sums[i] = t.m.new()
		VMOVUPS(t.begin, sums[i])
		if t.isWhere() {
			greatest[i] = t.m.new()
			t.m.loadTailTo(Mem{Base: at}, t.tail, t.e.size, greatest[i])
			if i < n-1 {
				step := param("ld")
				ADDQ(step, at)
			}
		}
	}
	p, from := GP64(), GP64()
	XORQ(p, p)
	label := fmt.Sprintf("tapsOfRows%d", n)
	Label(label)
	Comment("for p := range k: x := src[at[p]:]; sum = " + t.kind.text)
	MOVQ(Mem{Base: t.at, Index: p, Scale: 8}, from)
	ADDQ(src, from)
	weight := t.weight(p)
	for i, sum := range sums {
		in := Mem{Base: from}
		switch i {
		case 1, 2:
			in.Index, in.Scale = down, uint8(i)
		case 3:
			in.Index, in.Scale = down3, 1
		}
		x := t.m.new()
		t.m.loadTailTo(in, t.tail, t.e.size, x)
		t.combine(x, weight, sum, greatest[i])
	}
	INCQ(p)
	CMPQ(p, t.k)
	JLT(LabelRef(label))
	step := param("ld")
	for _, sum := range sums {
		t.m.storeTail(sum, Mem{Base: dst}, t.tail, t.m.bytes/t.e.size, t.e.size)
		ADDQ(step, dst)
		ADDQ(down, src)
	}
}

// weight reads the weight of tap p, if there are weights.
func (t *tapWriter) weight(p reg.GPVirtual) vector {
	weight := t.m.new()
	if t.kind.hasWeights {
		t.e.broadcast(Mem{Base: t.w, Index: p, Scale: uint8(t.e.size)}, weight)
	}
	return weight
}

// isWhere reports whether what is there before is what x is compared with.
func (t *tapWriter) isWhere() bool { return t.kind.name == "Where" }

// combine writes sum = combine(sum, weight, x).
func (t *tapWriter) combine(x, weight, sum, greatest vector) {
	switch t.kind.name {
	case "MulAdd":
		t.e.multiplyAdd(x, weight, sum)
	case "Sum":
		pair(t.e, VADDPS, VADDPD)(x, sum, sum)
	case "Where":
		t.choose(x, weight, sum, greatest)
	default:
		r := t.m.new()
		extreme(t.m, t.e, true, sum, x, r)
		VMOVUPS(r, sum)
	}
}

// choose writes if x == greatest || x != x { sum = weight }.
func (t *tapWriter) choose(x, weight, sum, greatest vector) {
	compare := pair(t.e, VCMPPS, VCMPPD)
	if t.m == avx512 {
		equal, nan := K(), K()
		compare(Imm(0), greatest, x, equal)
		compare(Imm(3), x, x, nan)
		KORW(nan, equal, equal)
		pair(t.e, VMOVAPS, VMOVAPD)(weight, equal, sum)
		return
	}
	equal, nan := YMM(), YMM()
	compare(Imm(0), greatest, x, equal)
	compare(Imm(3), x, x, nan)
	VORPS(nan, equal, equal)
	if t.e == float32s {
		VBLENDVPS(equal, weight, sum, sum)
	} else {
		VBLENDVPD(equal, weight, sum, sum)
	}
}

// block writes the combination for some vectors. The last one is whole or has only a tail.
func (t *tapWriter) block(label string, vectors int, isMasked bool) {
	sums, greatest := make([]vector, vectors), make([]vector, vectors)
	for v := range sums {
		sums[v] = t.m.new()
		VMOVUPS(t.begin, sums[v])
		if !t.isWhere() {
			continue
		}
		greatest[v] = t.m.new()
		if to := (Mem{Base: t.to, Disp: v * t.m.bytes}); isMasked && v == vectors-1 {
			t.m.loadTailTo(to, t.tail, t.e.size, greatest[v])
		} else {
			VMOVUPS(to, greatest[v])
		}
	}
	p, from := GP64(), GP64()
	XORQ(p, p)
	Label("taps" + label)
	Comment("for p := range k: x := src[at[p]:]; sum = " + t.kind.text)
	MOVQ(Mem{Base: t.at, Index: p, Scale: 8}, from)
	ADDQ(t.from, from)
	weight := t.weight(p)
	for v, sum := range sums {
		x := t.m.new()
		in := Mem{Base: from, Disp: v * t.m.bytes}
		if isMasked && v == vectors-1 {
			t.m.loadTailTo(in, t.tail, t.e.size, x)
		} else {
			VMOVUPS(in, x)
		}
		t.combine(x, weight, sum, greatest[v])
	}
	INCQ(p)
	CMPQ(p, t.k)
	JLT(LabelRef("taps" + label))
	for v, sum := range sums {
		if to := (Mem{Base: t.to, Disp: v * t.m.bytes}); isMasked && v == vectors-1 {
			t.m.storeTail(sum, to, t.tail, t.m.bytes/t.e.size, t.e.size)
		} else {
			VMOVUPS(sum, to)
		}
	}
}
