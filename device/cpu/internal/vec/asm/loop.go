package main

import (
	"os"
	"slices"
	"strings"

	"github.com/mmcloughlin/avo/attr"
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// loopSignature is that of vec.Loop; the pointers are unsafe.Pointers there.
const loopSignature = "func(dst, x, y, z *byte, s uint64, n int)"

// unroll is how many vectors one round of a loop handles.
const unroll = 4

// A loop is a vec.Loop: dst[i] = text, for i < n.
type loop struct {
	m    *isa
	name string // without the form and the ISA
	text string // in Go, of $x, $y and $z
	in   []*element
	out  *element
	// body makes constants for all rounds. The function that it returns computes one
	// round's result; it leaves its operands as they are. Bools among wider elements are
	// masks, in and out.
	body func() func(in []value) value
	// key returns what the loop is found by in table.
	table string
	key   func(form string) string
	// past writes whole vectors past the caches, to a dst that is a multiple of their size.
	past bool
}

// The forms of a loop, as in package vec.
var forms = []string{"NoScalar", "FirstScalar", "SecondScalar", "ThirdScalar"}

// write writes the loop's function for a form.
func (l *loop) write(form string) {
	name := l.name + strings.TrimSuffix(form, "Scalar") + l.m.name
	if form == "NoScalar" {
		name = l.name + l.m.name
	}
	if l.past {
		name += "Past"
	}
	enter(l.table, l.m.name, l.key(form), name)
	TEXT(name, attr.NOSPLIT, loopSignature)
	doc := name + " is dst[i] = " + l.textFor(form) + ", for i < n"
	if l.past {
		doc += ", past the caches"
	}
	Doc(doc + ".")
	Pragma("noescape")
	w := &writer{loop: l, dst: param("dst"), i: GP64()}
	for k := range l.in {
		if k+1 == slices.Index(forms, form) {
			w.scalar, w.p = l.m.spread(param("s"), l.in[k].size), append(w.p, nil)
			continue
		}
		w.p = append(w.p, param([]string{"x", "y", "z"}[k]))
	}
	w.function()
}

// textFor is the text with the operands as the form has them.
func (l *loop) textFor(form string) string {
	return os.Expand(l.text, func(operand string) string {
		if operand == "x" && form == "FirstScalar" || operand == "y" && form == "SecondScalar" || operand == "z" && form == "ThirdScalar" {
			return "s"
		}
		return operand + "[i]"
	})
}

// A writer writes one function.
type writer struct {
	*loop
	dst    reg.Register
	p      []reg.Register // of the operands; nil for a scalar
	scalar vector
	i      reg.GPVirtual
	apply  func(in []value) value
	width  int    // of the widest element
	lanes  int    // of a vector of these
	ones   vector // bytes, where the result is a mask
}

func (w *writer) function() {
	for _, e := range append([]*element{w.out}, w.in...) {
		w.width = max(w.width, e.size)
	}
	w.lanes = w.m.bytes / w.width
	w.apply = w.body()
	if w.isMask(w.out) {
		w.ones = w.m.constant(1, 1)
	}
	n, last := param("n"), GP64()
	Comment("i := 0")
	XORQ(w.i, w.i)
	for _, vectors := range []int{unroll, 1} {
		label := map[int]string{unroll: "many", 1: "one"}[vectors]
		Commentf("for ; i <= n-%d; i += %[1]d", vectors*w.lanes)
		LEAQ(Mem{Base: n, Disp: -vectors * w.lanes}, last)
		JMP(LabelRef(label + "Test"))
		Label(label)
		w.round(vectors)
		ADDQ(U32(uint32(vectors*w.lanes)), w.i)
		Label(label + "Test")
		CMPQ(w.i, last)
		JLE(LabelRef(label))
	}
	if w.m == avx512 || w.allWide() {
		w.masked(n)
	} else {
		w.singles(n)
	}
	Label("done")
	VZEROUPPER()
	RET()
}

// isMask reports whether elements of type e are lanes of a mask.
func (w *writer) isMask(e *element) bool { return e == bools && w.width > 1 }

// allWide reports whether each operand and the result fills a vector of words.
func (w *writer) allWide() bool {
	return w.width > 1 && w.out.size == w.width && !slices.ContainsFunc(w.in, func(e *element) bool { return e.size != w.width })
}

// at is the address of the given one of the vectors that begin at element i.
func (w *writer) at(p reg.Register, vector, size int) Mem {
	return Mem{Base: p, Index: w.i, Scale: uint8(size), Disp: vector * w.lanes * size}
}

// isCondition reports whether operand k is the condition of a choice between bools, a mask in spite of its width.
func (w *writer) isCondition(k int) bool { return len(w.in) == 3 && k == 0 && w.in[0] == bools }

// round writes the handling of some whole vectors from i on.
func (w *writer) round(vectors int) {
	results := make([]value, vectors)
	for v := range results {
		results[v] = w.apply(w.operands(func(k int, e *element) vector { return load(w.at(w.p[k], v, e.size), w.lanes, e.size) }, false))
	}
	for v, r := range results {
		to := w.at(w.dst, v, w.out.size)
		if w.past {
			past(w.result(r), to)
		} else {
			store(w.result(r), to, w.lanes, w.out.size)
		}
	}
}

// operands reads the operands by a function for one.
func (w *writer) operands(read func(k int, e *element) vector, wide bool) []value {
	in := make([]value, len(w.in))
	for k, e := range w.in {
		switch {
		case w.p[k] == nil:
			in[k] = value{v: w.scalar}
		case w.isMask(e) || w.isCondition(k):
			in[k] = w.m.maskOf(read(k, e), w.width, wide)
		default:
			in[k] = value{v: read(k, e)}
		}
	}
	return in
}

// result is r as it is stored.
func (w *writer) result(r value) vector {
	if w.isMask(w.out) {
		return w.m.boolsOf(r, w.lanes, w.width, w.ones)
	}
	return r.v
}

// masked writes the handling of the last elements, fewer than a vector has, together.
func (w *writer) masked(n reg.GPVirtual) {
	Comment("if i < n: the rest, masked")
	SUBQ(w.i, n)
	JLE(LabelRef("done"))
	t := w.m.first(n, w.width)
	r := w.apply(w.operands(func(k int, e *element) vector { return w.m.loadTail(w.at(w.p[k], 0, e.size), t, w.lanes, e.size) }, false))
	w.m.storeTail(w.result(r), w.at(w.dst, 0, w.out.size), t, w.lanes, w.out.size)
}

// singles writes the handling of the last elements one by one.
func (w *writer) singles(n reg.GPVirtual) {
	Comment("for ; i < n; i++")
	JMP(LabelRef("singleTest"))
	Label("single")
	r := w.apply(w.operands(func(k int, e *element) vector {
		bytes := w.lanes * e.size
		if w.isMask(e) {
			bytes = w.m.bytes // maskOf makes no lanes wider
		}
		return loadSingle(w.at(w.p[k], 0, e.size), e.size, bytes)
	}, true))
	storeSingle(w.result(r), w.at(w.dst, 0, w.out.size), w.out.size)
	INCQ(w.i)
	Label("singleTest")
	CMPQ(w.i, n)
	JLT(LabelRef("single"))
}
