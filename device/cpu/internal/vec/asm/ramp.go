package main

import (
	"github.com/mmcloughlin/avo/attr"
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
)

// ramp writes a function that counts in steps, for a type of floats.
func ramp(m *isa, e *element) {
	name := "ramp" + e.name + m.name
	enter("ramps", m.name, "device."+e.name, name)
	TEXT(name, attr.NOSPLIT, "func(dst *byte, first int, start, step uint64, n int)")
	Doc(name + " is dst[i] = start + (first+i)*step, each operation rounded, for i < n. All first+i are below 1<<31.")
	Pragma("noescape")
	dst, first, n := param("dst"), param("first"), param("n")
	step := m.spread(param("step"), e.size)
	start := m.spread(param("start"), e.size)
	lanes := m.bytes / e.size
	Comment("index: first, first+1, ... in 32 bits; more: as many as lanes")
	index, more, base := sized(max(16, lanes*4)), sized(max(16, lanes*4)), XMM()
	VMOVD(first.As32(), base)
	VPBROADCASTD(base, index)
	VPADDD(counting(), index, index)
	count := GP32()
	MOVL(U32(uint32(lanes)), count)
	VMOVD(count, base)
	VPBROADCASTD(base, more)
	value := func() vector {
		r := m.new()
		pair(e, VCVTDQ2PS, VCVTDQ2PD)(index, r)
		pair(e, VMULPS, VMULPD)(step, r, r)
		pair(e, VADDPS, VADDPD)(r, start, r)
		VPADDD(more, index, index)
		return r
	}
	i, last := GP64(), GP64()
	XORQ(i, i)
	at := Mem{Base: dst, Index: i, Scale: uint8(e.size)}
	Commentf("for ; i <= n-%d; i += %[1]d", lanes)
	LEAQ(Mem{Base: n, Disp: -lanes}, last)
	JMP(LabelRef("test"))
	Label("loop")
	store(value(), at, lanes, e.size)
	ADDQ(Imm(uint64(lanes)), i)
	Label("test")
	CMPQ(i, last)
	JLE(LabelRef("loop"))
	Comment("if i < n: the rest, masked")
	SUBQ(i, n)
	JLE(LabelRef("done"))
	t := m.first(n, e.size)
	m.storeTail(value(), at, t, lanes, e.size)
	Label("done")
	VZEROUPPER()
	RET()
}

var countingIsWritten bool

// counting is 0, 1, 2, ... in 32 bits each.
func counting() Mem {
	if !countingIsWritten {
		countingIsWritten = true
		GLOBL("counting", attr.RODATA|attr.NOPTR)
		for i := range 16 {
			DATA(4*i, U32(uint32(i)))
		}
	}
	return NewDataAddr(Symbol{Name: "counting", Static: true}, 0)
}
