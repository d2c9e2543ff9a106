package main

import (
	"strings"

	"github.com/mmcloughlin/avo/attr"
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// loopSignature is that of vec.Loop; the pointers are unsafe.Pointers there.
const loopSignature = "func(dst, x, y, z *byte, s uint64, n int)"

// An element is a type of what tensors hold.
type element struct {
	name string // that of the constant in package device
	size int
}

var (
	float32s = &element{"Float32", 4}
	float64s = &element{"Float64", 8}
	int64s   = &element{"Int64", 8}
)

// unroll is how many vectors one round of a loop handles.
const unroll = 4

// elementwise writes the loops of primitives whose operands and result have one type.
func elementwise() {
	for _, m := range isas {
		for _, e := range []*element{float32s, float64s} {
			for _, op := range arithmetic(e) {
				op.write(m, e)
			}
		}
	}
}

// An operation is a primitive of one or two operands.
type operation struct {
	prim  string // its name: that of the constant kernel.Prim… without this
	arity int
	// prepare makes constants for all rounds; it may be nil.
	prepare func() []vector
	// apply sets dst to the result for x and y, which is a vector or in memory; dst is neither of them.
	apply func(c []vector, dst, x vector, y Op)
}

// arithmetic are the operations that are one instruction.
func arithmetic(e *element) []operation {
	one := func(prim string, single, double func(...Op)) operation {
		return operation{prim: prim, arity: 2, apply: func(_ []vector, dst, x vector, y Op) {
			if e.size == 4 {
				single(y, x, dst) // dst = x op y
			} else {
				double(y, x, dst)
			}
		}}
	}
	return []operation{
		one("Add", VADDPS, VADDPD),
		one("Sub", VSUBPS, VSUBPD),
		one("Mul", VMULPS, VMULPD),
		one("Div", VDIVPS, VDIVPD),
	}
}

// write writes the operation's loops, one for each form.
func (op *operation) write(m *isa, e *element) {
	forms := []string{"NoScalar", "FirstScalar", "SecondScalar"}
	if op.arity == 1 {
		forms = forms[:1]
	}
	for _, form := range forms {
		name := strings.ToLower(op.prim) + e.name + strings.TrimSuffix(form, "Scalar") + m.name
		if form == "NoScalar" {
			name = strings.ToLower(op.prim) + e.name + m.name
		}
		enter("loops", m.name, "loopKey{kernel.Prim"+op.prim+", device."+e.name+", "+form+"}", name)
		op.loop(name, m, e, form)
	}
}

// loop writes one function.
func (op *operation) loop(name string, m *isa, e *element, form string) {
	TEXT(name, attr.NOSPLIT, loopSignature)
	Pragma("noescape")
	lanes := m.bytes / e.size
	dst := param("dst")
	var x, y reg.Register
	if form != "FirstScalar" {
		x = param("x")
	}
	if op.arity == 2 && form != "SecondScalar" {
		y = param("y")
	}
	var scalar vector
	if form != "NoScalar" {
		scalar = m.spread(param("s"), e.size)
	}
	var c []vector
	if op.prepare != nil {
		c = op.prepare()
	}
	n := param("n")
	i := GP64()
	Comment("i := 0")
	XORQ(i, i)

	at := func(p reg.Register, vector int) Mem {
		return Mem{Base: p, Index: i, Scale: uint8(e.size), Disp: vector * m.bytes}
	}
	// round writes the handling of some vectors from i on.
	round := func(vectors int) {
		results := make([]vector, vectors)
		for v := range results {
			a, b := scalar, Op(scalar)
			if x != nil {
				a = m.load(at(x, v))
			}
			if y != nil {
				b = at(y, v)
			}
			results[v] = m.new()
			op.apply(c, results[v], a, b)
		}
		for v, r := range results {
			VMOVUPS(r, at(dst, v))
		}
	}
	last := GP64()
	Commentf("for ; i <= n-%d; i += %d: %d vectors", unroll*lanes, unroll*lanes, unroll)
	LEAQ(Mem{Base: n, Disp: -unroll * lanes}, last)
	JMP(LabelRef("manyTest"))
	Label("many")
	round(unroll)
	ADDQ(U32(uint32(unroll*lanes)), i)
	Label("manyTest")
	CMPQ(i, last)
	JLE(LabelRef("many"))

	Commentf("for ; i <= n-%d; i += %d: one vector", lanes, lanes)
	LEAQ(Mem{Base: n, Disp: -lanes}, last)
	JMP(LabelRef("oneTest"))
	Label("one")
	round(1)
	ADDQ(U32(uint32(lanes)), i)
	Label("oneTest")
	CMPQ(i, last)
	JLE(LabelRef("one"))

	Comment("if i < n: the rest, masked")
	SUBQ(i, n)
	JLE(LabelRef("done"))
	t := m.first(n, e.size)
	a, b := scalar, Op(scalar)
	if x != nil {
		a = m.loadTail(at(x, 0), t, e.size)
	}
	if y != nil {
		b = m.loadTail(at(y, 0), t, e.size)
	}
	r := m.new()
	op.apply(c, r, a, b)
	m.storeTail(r, at(dst, 0), t, e.size)
	Label("done")
	VZEROUPPER()
	RET()
}
