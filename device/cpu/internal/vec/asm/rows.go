package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/attr"
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// rows writes what norms of rows are made of.
func rows() {
	for _, m := range isas {
		for _, e := range []*element{float32s, float64s} {
			squares(m, e)
			for vectors := range 3 {
				norm(m, e, vectors)
			}
		}
	}
}

// squares writes the sum of the squares of at most kernel.Block differences.
func squares(m *isa, e *element) {
	name := "squares" + e.name + m.name
	enter("squares", m.name, "device."+e.name, name)
	TEXT(name, attr.NOSPLIT, "func(x *byte, n int, shift uint64) uint64")
	Doc(name + " is the fold by addition of the squares of n elements at x, at most a block of them, less shift.")
	Pragma("noescape")
	shift := m.spread(param("shift"), e.size)
	for _, c := range combiners(m, e) {
		if c.prim == "Add" {
			foldTree(m, e, c, m.zero(), func(v vector) {
				pair(e, VSUBPS, VSUBPD)(shift, v, v)
				pair(e, VMULPS, VMULPD)(v, v, v)
			})
		}
	}
}

// norm writes a loop that subtracts a number from each element and multiplies the result by another
// number. With one vector, it then multiplies by the elements of this vector; with two, it also adds
// those of the second.
func norm(m *isa, e *element, vectors int) {
	name := fmt.Sprintf("norm%d%s%s", vectors, e.name, m.name)
	enter("norms", m.name, fmt.Sprintf("normKey{device.%s, %d}", e.name, vectors), name)
	TEXT(name, attr.NOSPLIT, "func(dst, x, gain, bias *byte, shift, scale uint64, n int)")
	Doc(name + " is dst[i] = (x[i] - shift) * scale" + []string{"", " * gain[i]", " * gain[i] + bias[i]"}[vectors] + ", for i < n.")
	Pragma("noescape")
	dst, x, n := param("dst"), param("x"), param("n")
	shift, scale := m.spread(param("shift"), e.size), m.spread(param("scale"), e.size)
	var more []reg.GPVirtual
	for _, operand := range []string{"gain", "bias"}[:vectors] {
		more = append(more, param(operand))
	}
	lanes := m.bytes / e.size
	i, last := GP64(), GP64()
	at := func(p reg.Register, k int) Mem {
		return Mem{Base: p, Index: i, Scale: uint8(e.size), Disp: k * m.bytes}
	}
	compute := func(read func(p reg.Register) vector) vector {
		v := read(x)
		pair(e, VSUBPS, VSUBPD)(shift, v, v)
		pair(e, VMULPS, VMULPD)(scale, v, v)
		if vectors > 0 {
			pair(e, VMULPS, VMULPD)(read(more[0]), v, v)
		}
		if vectors > 1 {
			pair(e, VADDPS, VADDPD)(read(more[1]), v, v)
		}
		return v
	}
	XORQ(i, i)
	for _, each := range []int{unroll, 1} {
		label := map[int]string{unroll: "many", 1: "one"}[each]
		Commentf("for ; i <= n-%d; i += %[1]d", each*lanes)
		LEAQ(Mem{Base: n, Disp: -each * lanes}, last)
		JMP(LabelRef(label + "Test"))
		Label(label)
		for k := range each {
			store(compute(func(p reg.Register) vector { return load(at(p, k), lanes, e.size) }), at(dst, k), lanes, e.size)
		}
		ADDQ(U32(uint32(each*lanes)), i)
		Label(label + "Test")
		CMPQ(i, last)
		JLE(LabelRef(label))
	}
	Comment("if i < n: the rest, masked")
	SUBQ(i, n)
	JLE(LabelRef("done"))
	t := m.first(n, e.size)
	v := compute(func(p reg.Register) vector { return m.loadTail(at(p, 0), t, lanes, e.size) })
	m.storeTail(v, at(dst, 0), t, lanes, e.size)
	Label("done")
	VZEROUPPER()
	RET()
}
