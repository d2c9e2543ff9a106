package main

import (
	"github.com/mmcloughlin/avo/attr"
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// memory writes loops that move bytes or make numbers.
func memory() {
	for _, m := range isas {
		if m != neons {
			stream(m)
		}
		fill(m)
		takeRows(m)
		if m != neons {
			triad(m, false)
			triad(m, true)
		}
		ramp(m, float32s)
		ramp(m, float64s)
	}
	if base() == neons {
		return
	}
	TEXT("fence", attr.NOSPLIT, "func()")
	Doc("fence lets what stores past the caches have written be seen before what is written later.")
	SFENCE()
	RET()
	cpuid()
}

// cpuid writes the instruction that tells the sizes of caches.
func cpuid() {
	TEXT("cpuid", attr.NOSPLIT, "func(leaf, sub uint32) (a, b, c, d uint32)")
	Doc("cpuid is the instruction of this name.")
	Load(Param("leaf"), EAX)
	Load(Param("sub"), ECX)
	CPUID()
	Store(EAX, Return("a"))
	Store(EBX, Return("b"))
	Store(ECX, Return("c"))
	Store(EDX, Return("d"))
	RET()
}

// past writes a vector past the caches, to a place that is a multiple of its size.
func past(v vector, to Mem) { VMOVNTPS(v, to) }

// stream writes a copy whose result does not go through the caches.
func stream(m *isa) {
	name := "stream" + m.name
	enter("streams", m.name, "0", name)
	TEXT(name, attr.NOSPLIT, "func(dst, src *byte, n int)")
	Doc(name + " copies n bytes, 64 at least, and writes past the caches.")
	Pragma("noescape")
	dst, src, n := param("dst"), param("src"), param("n")
	begin, end := GP64(), GP64()
	Comment("the last bytes, the first, and what lies between in whole vectors; both overlap with these")
	a, b := m.new(), m.new()
	VMOVUPS(Mem{Base: src, Index: n, Scale: 1, Disp: -m.bytes}, a)
	VMOVUPS(a, Mem{Base: dst, Index: n, Scale: 1, Disp: -m.bytes})
	VMOVUPS(Mem{Base: src}, b)
	VMOVUPS(b, Mem{Base: dst})
	LEAQ(Mem{Base: dst, Disp: m.bytes}, begin)
	ANDQ(I32(int32(-m.bytes)), begin)
	LEAQ(Mem{Base: dst, Index: n, Scale: 1}, end)
	ANDQ(I32(int32(-m.bytes)), end)
	SUBQ(dst, src) // src is where a byte comes from, relative to where it goes to
	for _, vectors := range []int{unroll, 1} {
		label := map[int]string{unroll: "many", 1: "one"}[vectors]
		Commentf("for ; begin <= end-%d; begin += %[1]d", vectors*m.bytes)
		last := GP64()
		LEAQ(Mem{Base: end, Disp: -vectors * m.bytes}, last)
		JMP(LabelRef(label + "Test"))
		Label(label)
		var v [unroll]vector
		for k := range vectors {
			v[k] = m.new()
			VMOVUPS(Mem{Base: src, Index: begin, Scale: 1, Disp: k * m.bytes}, v[k])
		}
		for k := range vectors {
			past(v[k], Mem{Base: begin, Disp: k * m.bytes})
		}
		ADDQ(U32(uint32(vectors*m.bytes)), begin)
		Label(label + "Test")
		CMPQ(begin, last)
		JLE(LabelRef(label))
	}
	VZEROUPPER()
	RET()
}

// fill writes the repetition of a word.
func fill(m *isa) {
	name := "fill" + m.name
	enter("fills", m.name, "0", name)
	TEXT(name, attr.NOSPLIT, "func(dst *byte, word uint64, n int)")
	Doc(name + " sets n bytes, 64 at least, to word, repeated; n is a multiple of the word's period.")
	Pragma("noescape")
	dst, word, n := param("dst"), param("word"), param("n")
	v := m.spread(word, 8)
	VMOVUPS(v, Mem{Base: dst, Index: n, Scale: 1, Disp: -m.bytes})
	end := GP64()
	LEAQ(Mem{Base: dst, Index: n, Scale: 1}, end)
	for _, vectors := range []int{unroll, 1} {
		label := map[int]string{unroll: "many", 1: "one"}[vectors]
		Commentf("for ; dst <= end-%d; dst += %[1]d", vectors*m.bytes)
		last := GP64()
		LEAQ(Mem{Base: end, Disp: -vectors * m.bytes}, last)
		JMP(LabelRef(label + "Test"))
		Label(label)
		for k := range vectors {
			VMOVUPS(v, Mem{Base: dst, Disp: k * m.bytes})
		}
		ADDQ(U32(uint32(vectors*m.bytes)), dst)
		Label(label + "Test")
		CMPQ(dst, last)
		JLE(LabelRef(label))
	}
	VZEROUPPER()
	RET()
}

// rowsAhead is how many rows before its turn a row is asked for. Of 1, 2 and 4, 4 was the fastest for rows of 256 bytes
// to 2 KiB from memory (AMD EPYC, Zen 3).
const rowsAhead = 4

// takeRows writes the copy of rows that lie anywhere.
func takeRows(m *isa) {
	name := "takeRows" + m.name
	enter("rowTakes", m.name, "0", name)
	TEXT(name, attr.NOSPLIT, "func(dst, src *byte, places *int, n, size, bytes int)")
	Doc(name+" copies n rows, one at least, of 64 bytes or more.", "Row i begins places[i]*size bytes behind src.")
	Pragma("noescape")
	dst, src, places := param("dst"), param("src"), param("places")
	n, size, bytes := param("n"), param("size"), param("bytes")
	row, next, from, ahead, at, last := GP64(), GP64(), GP64(), GP64(), GP64(), GP64()
	find := func(row, place Register) {
		MOVQ(Mem{Base: places, Index: row, Scale: 8}, place)
		IMULQ(size, place)
		ADDQ(src, place)
	}
	XORQ(row, row)
	Label("row")
	find(row, from)
	Comment("ahead is the row to ask for, the last one in the end")
	LEAQ(Mem{Base: n, Disp: -1}, next)
	LEAQ(Mem{Base: row, Disp: rowsAhead}, ahead)
	CMPQ(ahead, next)
	JGE(LabelRef("found"))
	MOVQ(ahead, next)
	Label("found")
	find(next, ahead)
	XORQ(at, at)
	for _, vectors := range []int{unroll, 1} {
		label := map[int]string{unroll: "many", 1: "one"}[vectors]
		Commentf("for ; at <= bytes-%d; at += %[1]d", vectors*m.bytes)
		LEAQ(Mem{Base: bytes, Disp: -vectors * m.bytes}, last)
		JMP(LabelRef(label + "Test"))
		Label(label)
		for line := 0; line < vectors*m.bytes; line += 64 {
			PREFETCHT0(Mem{Base: ahead, Index: at, Scale: 1, Disp: line})
		}
		var v [unroll]vector
		for k := range vectors {
			v[k] = m.new()
			VMOVUPS(Mem{Base: from, Index: at, Scale: 1, Disp: k * m.bytes}, v[k])
		}
		for k := range vectors {
			VMOVUPS(v[k], Mem{Base: dst, Index: at, Scale: 1, Disp: k * m.bytes})
		}
		ADDQ(U32(uint32(vectors*m.bytes)), at)
		Label(label + "Test")
		CMPQ(at, last)
		JLE(LabelRef(label))
	}
	Comment("the last bytes, which overlap with what is copied")
	v := m.new()
	VMOVUPS(Mem{Base: from, Index: bytes, Scale: 1, Disp: -m.bytes}, v)
	VMOVUPS(v, Mem{Base: dst, Index: bytes, Scale: 1, Disp: -m.bytes})
	ADDQ(bytes, dst)
	INCQ(row)
	CMPQ(row, n)
	JLT(LabelRef("row"))
	VZEROUPPER()
	RET()
}

// triad writes the loop that measures what the memory can do.
func triad(m *isa, streams bool) {
	name := "triad" + m.name
	if streams {
		name = "triadPast" + m.name
	}
	TEXT(name, attr.NOSPLIT, "func(dst, x, y *float32, n int)")
	Doc(name + " is dst[i] = 3*x[i] + y[i], rounded once, for i < n, a multiple of 64; dst is a multiple of 64. It measures bandwidth.")
	Pragma("noescape")
	dst, x, y, n := param("dst"), param("x"), param("y"), param("n")
	three := m.constant(0x40400000, 4)
	i := GP64()
	XORQ(i, i)
	Label("loop")
	var v [unroll]vector
	for k := range v {
		at := Mem{Index: i, Scale: 4, Disp: k * m.bytes}
		v[k] = m.new()
		at.Base = x
		VMOVUPS(at, v[k])
		at.Base = y
		VFMADD213PS(at, three, v[k])
	}
	for k := range v {
		at := Mem{Base: dst, Index: i, Scale: 4, Disp: k * m.bytes}
		if streams {
			past(v[k], at)
		} else {
			VMOVUPS(v[k], at)
		}
	}
	ADDQ(U32(uint32(unroll*m.bytes/4)), i)
	CMPQ(i, n)
	JLT(LabelRef("loop"))
	if streams {
		SFENCE()
	}
	VZEROUPPER()
	RET()
}
