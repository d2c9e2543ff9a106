package main

import (
	"strings"

	"github.com/mmcloughlin/avo/attr"
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// foldLanes is kernel.Lanes.
const foldLanes = 64

// A combiner is a primitive that elements are folded by.
type combiner struct {
	prim string
	// apply sets r to x combined with y, all of one size; r may be x.
	apply func(x, y, r vector)
}

// fold writes the folds of a block and the search for an element.
func fold() {
	for _, m := range isas {
		for _, e := range []*element{float32s, float64s, int64s} {
			for _, c := range combiners(m, e) {
				foldBlock(m, e, c)
				foldRows(m, e, c)
			}
			find(m, e)
		}
	}
}

func combiners(m *isa, e *element) []combiner {
	if e == int64s {
		all := []combiner{{"Add", func(x, y, r vector) { VPADDQ(y, x, r) }}}
		if m == avx512 {
			return append(all,
				combiner{"Mul", func(x, y, r vector) { VPMULLQ(y, x, r) }},
				combiner{"Max", func(x, y, r vector) { VPMAXSQ(y, x, r) }},
				combiner{"Min", func(x, y, r vector) { VPMINSQ(y, x, r) }})
		}
		return append(all,
			combiner{"Max", func(x, y, r vector) { VBLENDVPD(greater(x, y), x, y, r) }},
			combiner{"Min", func(x, y, r vector) { VBLENDVPD(greater(x, y), y, x, r) }})
	}
	ends := func(isMax bool) func(x, y, r vector) {
		return func(x, y, r vector) {
			v := sized(int(r.Size()))
			extreme(m, e, isMax, x, y, v)
			move(v, r)
		}
	}
	return []combiner{
		{"Add", func(x, y, r vector) { pair(e, VADDPS, VADDPD)(y, x, r) }},
		{"Mul", func(x, y, r vector) { pair(e, VMULPS, VMULPD)(y, x, r) }},
		{"Max", ends(true)},
		{"Min", ends(false)},
	}
}

// move copies a register.
func move(from, to vector) {
	if to.Size() == 64 {
		VMOVDQU64(from, to)
	} else {
		VMOVDQU(from, to)
	}
}

// foldBlock writes a function that folds at most kernel.Block elements.
func foldBlock(m *isa, e *element, c combiner) {
	name := "fold" + c.prim + e.name + m.name
	enter("folds", m.name, "foldKey{kernel.Prim"+c.prim+", device."+e.name+"}", name)
	TEXT(name, attr.NOSPLIT, "func(x *byte, n int, identity uint64) uint64")
	Doc(name + " is the fold of n elements at x, at most kernel.Block of them.")
	Pragma("noescape")
	foldTree(m, e, c, m.spread(param("identity"), e.size), nil)
}

// foldTree writes the fold of the n elements at x by the tree of kernel.Fold. The lanes are in
// registers; where there are too few registers, groups of lanes are folded one after the other. If
// of is not nil, it first transforms the elements in their registers.
func foldTree(m *isa, e *element, c combiner, identity vector, of func(v vector)) {
	x, n := param("x"), param("n")
	perVector := m.bytes / e.size
	vectors := foldLanes / perVector
	inGroup := min(vectors, 8)
	groups := vectors / inGroup
	var earlier Mem // the lanes of the groups before the last
	if groups > 1 {
		earlier = AllocLocal((groups - 1) * inGroup * m.bytes)
	}
	acc := make([]vector, inGroup)
	for g := range groups {
		label := "group" + string(rune('0'+g))
		Commentf("lanes %d to %d", g*inGroup*perVector, (g+1)*inGroup*perVector-1)
		at, left := GP64(), GP64()
		MOVQ(x, at)
		MOVQ(n, left)
		for j := range acc {
			acc[j] = m.new()
			move(identity, acc[j])
		}
		place := func(j int) Mem { return Mem{Base: at, Disp: (g*inGroup + j) * m.bytes} }
		JMP(LabelRef(label + "Test"))
		Label(label)
		for j := range acc {
			v := load(place(j), perVector, e.size)
			if of != nil {
				of(v)
			}
			c.apply(acc[j], v, acc[j])
		}
		ADDQ(U32(uint32(foldLanes*e.size)), at)
		SUBQ(Imm(foldLanes), left)
		Label(label + "Test")
		CMPQ(left, Imm(foldLanes))
		JGE(LabelRef(label))
		TESTQ(left, left)
		JZ(LabelRef(label + "Done"))
		Comment("the last row, of fewer than all lanes")
		rest(m, e, c, acc, identity, of, left, g*inGroup, place)
		Label(label + "Done")
		if g < groups-1 {
			for j := range acc {
				VMOVDQU(acc[j], earlier.Offset((g*inGroup+j)*m.bytes))
			}
		}
	}
	for g := range groups - 1 { // there are two at most, which are the halves
		for j := range acc {
			v := m.new()
			VMOVDQU(earlier.Offset((g*inGroup+j)*m.bytes), v)
			c.apply(v, acc[j], acc[j])
		}
	}
	for half := inGroup / 2; half > 0; half /= 2 {
		Commentf("lane l takes lane l+%d", half*perVector)
		for j := range half {
			c.apply(acc[j], acc[j+half], acc[j])
		}
	}
	result := GP64()
	if e.size == 4 {
		VMOVD(within(e, c, acc[0]), result.As32())
	} else {
		VMOVQ(within(e, c, acc[0]), result)
	}
	Store(result, ReturnIndex(0))
	VZEROUPPER()
	RET()
}

// foldColumns is vec.Columns.
const foldColumns = 64

// foldRows writes a function that gives rows of some times foldColumns elements to lanes of as many.
func foldRows(m *isa, e *element, c combiner) {
	name := "rows" + c.prim + e.name + m.name
	enter("rowFolds", m.name, "foldKey{kernel.Prim"+c.prim+", device."+e.name+"}", name)
	TEXT(name, attr.NOSPLIT, "func(lanes, x *byte, rows, stride, width, count int)")
	Doc(name + " combines row k with lane k % width. Row k is count*64 elements, k*stride bytes after x.")
	Pragma("noescape")
	lanes, x, rows, stride := param("lanes"), param("x"), param("rows"), param("stride")
	Comment("rowBytes := count * 64 * size")
	rowBytes := param("count")
	SHLQ(Imm(map[int]uint64{4: 8, 8: 9}[e.size]), rowBytes)
	Comment("end := lanes + width * rowBytes")
	end := param("width")
	IMULQ(rowBytes, end)
	ADDQ(lanes, end)
	lane, i := GP64(), GP64()
	MOVQ(lanes, lane)
	perVector := m.bytes / e.size
	// across combines the rows at xs, in this order, with the lane.
	across := func(label string, xs ...reg.GPVirtual) {
		XORQ(i, i)
		Label(label)
		for j := range foldColumns / perVector {
			at := Mem{Base: lane, Index: i, Scale: 1, Disp: j * m.bytes}
			v := load(at, perVector, e.size)
			for _, x := range xs {
				c.apply(v, load(Mem{Base: x, Index: i, Scale: 1, Disp: j * m.bytes}, perVector, e.size), v)
			}
			VMOVUPS(v, at)
		}
		ADDQ(U32(uint32(foldColumns*e.size)), i)
		CMPQ(i, rowBytes)
		JLT(LabelRef(label))
	}

	Comment("while there are four rows for each lane, a lane is read and written once for all of them")
	width, down, x1, x2, x3 := param("width"), GP64(), GP64(), GP64(), GP64()
	MOVQ(width, down)
	IMULQ(stride, down)
	SHLQ(Imm(2), width)
	JMP(LabelRef("testFours"))
	Label("fours")
	LEAQ(Mem{Base: x, Index: down, Scale: 1}, x1)
	LEAQ(Mem{Base: x, Index: down, Scale: 2}, x2)
	LEAQ(Mem{Base: x1, Index: down, Scale: 2}, x3)
	Label("lane")
	across("columnsOfFour", x, x1, x2, x3)
	for _, p := range []reg.GPVirtual{x, x1, x2, x3} {
		ADDQ(stride, p)
	}
	ADDQ(rowBytes, lane)
	CMPQ(lane, end)
	JNE(LabelRef("lane"))
	MOVQ(lanes, lane)
	MOVQ(x3, x)
	SUBQ(width, rows)
	Label("testFours")
	CMPQ(rows, width)
	JGE(LabelRef("fours"))

	JMP(LabelRef("test"))
	Label("row")
	across("columns", x)
	ADDQ(stride, x)
	ADDQ(rowBytes, lane)
	CMPQ(lane, end)
	CMOVQEQ(lanes, lane)
	DECQ(rows)
	Label("test")
	TESTQ(rows, rows)
	JNZ(LabelRef("row"))
	VZEROUPPER()
	RET()
}

// rest folds the elements that are left in the last row, which is not full. Unless of is nil, it
// transforms them first. acc has the lanes from vector begin of the row on.
func rest(m *isa, e *element, c combiner, acc []vector, identity vector, of func(v vector), left reg.GPVirtual, begin int, place func(int) Mem) {
	perVector := m.bytes / e.size
	if m == avx512 {
		bits := GP64()
		MOVQ(I32(-1), bits)
		BZHIQ(left, bits, bits)
		for j := range acc {
			k, v := K(), m.new()
			KMOVQ(bits, k)
			SHRQ(Imm(uint64(perVector)), bits)
			move(identity, v)
			var from Op = place(j)
			if of != nil {
				x := m.loadTail(place(j), tail{mask: k}, perVector, e.size)
				of(x)
				from = x
			}
			if e.size == 4 {
				VMOVDQU32(from, k, v)
			} else {
				VMOVDQU64(from, k, v)
			}
			c.apply(acc[j], v, acc[j])
		}
		return
	}
	zero, most := GP64(), GP64()
	XORQ(zero, zero)
	MOVQ(U32(uint32(perVector)), most)
	for j := range acc {
		count := GP64() // of the elements of this vector
		MOVQ(left, count)
		SUBQ(U32(uint32((begin+j)*perVector)), count)
		CMOVQLT(zero, count)
		CMPQ(count, most)
		CMOVQGT(most, count)
		t := m.first(count, e.size)
		v := m.loadTail(place(j), t, perVector, e.size)
		if of != nil {
			of(v)
		}
		VPBLENDVB(t.ones, v, identity, v)
		c.apply(acc[j], v, acc[j])
	}
}

// within combines the lanes of a vector.
func within(e *element, c combiner, v vector) vector {
	if v.Size() == 64 {
		high := YMM()
		VEXTRACTF64X4(Imm(1), v, high)
		low := YMM()
		VMOVDQU(v.AsY(), low)
		c.apply(low, high, low)
		v = low
	}
	high, low := XMM(), XMM()
	VEXTRACTF128(Imm(1), v, high)
	VMOVDQU(v.AsX(), low)
	c.apply(low, high, low)
	other := XMM()
	VPSHUFD(Imm(0x0e), low, other) // the upper half
	c.apply(low, other, low)
	if e.size == 4 {
		other := XMM()
		VPSHUFD(Imm(0x01), low, other)
		c.apply(low, other, low)
	}
	return low
}

// find writes a function that searches for an element.
func find(m *isa, e *element) {
	name := "find" + e.name + m.name
	enter("finds", m.name, "device."+e.name, name)
	TEXT(name, attr.NOSPLIT, "func(x *byte, n int, bits uint64) int")
	text := " is the first i < n for which x[i] is the element with the given Bits"
	if e != int64s {
		text += ", or NaN"
	}
	Doc(name + strings.ReplaceAll(text, "\n", " ") + "; n if there is none.")
	Pragma("noescape")
	x, n := param("x"), param("n")
	want := m.spread(param("bits"), e.size)
	lanes := m.bytes / e.size
	i, last := GP64(), GP64()
	XORQ(i, i)
	found := func(v vector) reg.GPVirtual { // a bit for each lane, in a word; see step
		bits := GP64()
		switch {
		case m == avx512 && e == int64s:
			k := K()
			VPCMPEQQ(want, v, k)
			KMOVW(k, bits.As32())
		case m == avx512:
			equal, nan := K(), K()
			pair(e, VCMPPS, VCMPPD)(Imm(0), want, v, equal)
			pair(e, VCMPPS, VCMPPD)(Imm(3), v, v, nan)
			KORW(nan, equal, equal)
			KMOVW(equal, bits.As32())
		case e == int64s:
			equal := YMM()
			VPCMPEQQ(want, v, equal)
			VMOVMSKPD(equal, bits.As32())
		default:
			equal, nan := YMM(), YMM()
			pair(e, VCMPPS, VCMPPD)(Imm(0), want, v, equal)
			pair(e, VCMPPS, VCMPPD)(Imm(3), v, v, nan)
			VORPS(nan, equal, equal)
			if e.size == 4 {
				VMOVMSKPS(equal, bits.As32())
			} else {
				VMOVMSKPD(equal, bits.As32())
			}
		}
		return bits
	}
	at := Mem{Base: x, Index: i, Scale: uint8(e.size)}
	Commentf("for ; i <= n-%d; i += %[1]d", lanes)
	LEAQ(Mem{Base: n, Disp: -lanes}, last)
	JMP(LabelRef("test"))
	Label("loop")
	bits := found(load(at, lanes, e.size))
	TESTL(bits.As32(), bits.As32())
	JZ(LabelRef("next"))
	first := GP32()
	TZCNTL(bits.As32(), first)
	ADDQ(first.As64(), i)
	Store(i, ReturnIndex(0))
	VZEROUPPER()
	RET()
	Label("next")
	ADDQ(Imm(uint64(lanes)), i)
	Label("test")
	CMPQ(i, last)
	JLE(LabelRef("loop"))
	Comment("the rest, masked; a lane too many is at n or after it")
	left := GP64()
	MOVQ(n, left)
	SUBQ(i, left)
	JLE(LabelRef("none"))
	bits = found(m.loadTail(at, m.first(left, e.size), lanes, e.size))
	BTSQ(left, bits) // the end
	TZCNTL(bits.As32(), first)
	ADDQ(first.As64(), i)
	Store(i, ReturnIndex(0))
	VZEROUPPER()
	RET()
	Label("none")
	Store(n, ReturnIndex(0))
	VZEROUPPER()
	RET()
}
