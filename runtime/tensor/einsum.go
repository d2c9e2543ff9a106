package tensor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/runtime/op"
)

// Einsum returns the sum of products that an equation in Einstein's notation describes, as NumPy's and PyTorch's
// einsum. A letter names an axis of an operand; axes with one letter have one length. Letters that are not behind the
// arrow are summed over:
//
//	tensor.Einsum("bij,bjk->bik", x, y) // products of matrices
//	tensor.Einsum("ii->", x)            // the trace
//
// Three dots stand for any axes, which are broadcast. Without an arrow, the result has the axes of the dots, then those
// of the letters that occur once, in alphabetical order. A letter may occur twice in an operand: that takes the
// diagonal. Products of more than two operands are computed from left to right. Products that are summed over are those
// of [Tensor.MatMul]; others are those of Mul.
//
// Einsum panics if the equation is malformed, if its operands are not as many as ts or have other numbers of axes, and
// if lengths differ.
//
//asyncgen:api op
//go:noinline
func Einsum(equation string, ts ...*Tensor) *Tensor {
	e := parseEquation(equation, ts)
	dt, dev := ts[0].dtype, ts[0].storage.Device()
	for _, t := range ts {
		if t.isRow("Einsum"); t.dtype != dt {
			wrong("Einsum", op.MistakeDTypes, ts...)
		}
		same := true
		if dev, same = device.Join(dev, t.storage.Device()); !same {
			wrong("Einsum", op.MistakeDevices, ts...)
		}
	}
	if len(ts) == 1 || !dt.IsFloat() { // one sum at most, or none that is rounded
		return e.of(ts)
	}
	return inWide(ts, e.of)
}

// of returns the sum of products of ts.
func (e *equation) of(ts []*Tensor) *Tensor {
	sum := e.diagonal(ts[0], e.in[0])
	for i := 1; i < len(ts); i++ {
		next := e.diagonal(ts[i], e.in[i])
		kept := slices.Concat(append([][]axisName{e.out}, e.in[i+1:]...)...)
		product := sum.times(next, kept)
		letGo(sum.t, next.t)
		sum = product
	}
	rest := sum.sumOver(func(name axisName) bool { return !slices.Contains(e.out, name) })
	out := rest.ordered(e.out)
	letGo(sum.t, rest.t)
	return out.t
}

// An axisName is a letter of an equation, or -k for the k-th last axis of the dots.
type axisName int

// An equation is what Einsum computes: the names of the axes of each operand, and of the result.
type equation struct {
	text string
	in   [][]axisName
	out  []axisName
}

func parseEquation(text string, ts []*Tensor) *equation {
	e := &equation{text: text}
	left, right, hasArrow := strings.Cut(strings.ReplaceAll(text, " ", ""), "->")
	operands := strings.Split(left, ",")
	if len(operands) != len(ts) {
		e.wrong(ts, "it has %d operands", len(operands))
	}
	count, sizes, dots := map[axisName]int{}, map[axisName]int{}, 0
	for i, o := range operands {
		if ts[i] == nil {
			wrong("Einsum", op.MistakeNil)
		}
		letters := len(o)
		if strings.Contains(o, "...") {
			letters -= 3
			dots = max(dots, len(ts[i].shape)-letters)
		}
		names := e.names(ts, o, len(ts[i].shape)-letters)
		if len(names) != len(ts[i].shape) {
			e.wrong(ts, "operand %d has %d axes", i, len(ts[i].shape))
		}
		for axis, name := range names {
			n, known := sizes[name]
			length := ts[i].shape[axis]
			if known && n != length && !(name < 0 && (n == 1 || length == 1)) {
				e.wrong(ts, "axes with one name have lengths %d and %d", n, length)
			}
			if !known || n == 1 {
				sizes[name] = length
			}
			count[name]++
		}
		e.in = append(e.in, names)
	}
	if hasArrow {
		e.out = e.names(ts, right, dots)
		for i, name := range e.out {
			if count[name] == 0 || slices.Contains(e.out[:i], name) {
				e.wrong(ts, "the result has an axis twice, or one that no operand has")
			}
		}
		return e
	}
	for name, n := range count {
		if n == 1 || name < 0 {
			e.out = append(e.out, name)
		}
	}
	slices.Sort(e.out)
	return e
}

// names returns the names of the axes in o, with the given number of axes for the dots.
func (e *equation) names(ts []*Tensor, o string, dots int) (names []axisName) {
	before, after, hasDots := strings.Cut(o, "...")
	letters := func(part string) {
		for _, c := range part {
			if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z') {
				e.wrong(ts, "%q is no letter", c)
			}
			names = append(names, axisName(c))
		}
	}
	letters(before)
	if hasDots {
		for k := dots; k > 0; k-- {
			names = append(names, axisName(-k))
		}
	}
	letters(after)
	return names
}

func (e *equation) wrong(ts []*Tensor, format string, args ...any) {
	var about []*Tensor
	for _, t := range ts {
		if t != nil {
			about = append(about, t)
		}
	}
	wrong("Einsum", fmt.Sprintf("%s: %q: %s", op.MistakeEquation, e.text, fmt.Sprintf(format, args...)), about...)
}

// A named is a tensor whose axes have names, each another one. Its methods return new handles.
type named struct {
	t     *Tensor
	names []axisName
}

// diagonal returns t with each name once: axes with the same name become their diagonal.
func (e *equation) diagonal(t *Tensor, names []axisName) named {
	x := named{t.same("Einsum"), slices.Clone(names)}
	for i := 0; i < len(x.names); i++ {
		j := slices.Index(x.names[i+1:], x.names[i])
		if j < 0 {
			continue
		}
		j += i + 1
		axes := []int{}
		for axis := range x.names {
			if axis != i && axis != j {
				axes = append(axes, axis)
			}
		}
		turned := structural(op.Transpose, op.Attr{Axes: append(axes, i, j)}, operands{x.t}, true)
		next := turned.Diagonal(0)
		letGo(x.t, turned)
		name := x.names[i]
		x = named{next, append(slices.Delete(slices.Delete(x.names, j, j+1), i, i+1), name)}
		i = -1
	}
	return x
}

// sumOver sums over the axes that are chosen.
func (x named) sumOver(is func(axisName) bool) named {
	var axes []int
	var names []axisName
	for axis, name := range x.names {
		if is(name) {
			axes = append(axes, axis)
		} else {
			names = append(names, name)
		}
	}
	if len(axes) == 0 {
		return named{x.t.same("Einsum"), x.names}
	}
	return named{structural(op.Sum, op.Attr{Axes: axes}, operands{x.t}, true), names}
}

// ordered returns x with its axes in the order of names, which has all of x's and perhaps more. Those become axes of
// length 1.
func (x named) ordered(names []axisName) named {
	axes, shape := []int{}, make(device.Shape, len(names))
	for i, name := range names {
		shape[i] = 1
		if axis := slices.Index(x.names, name); axis >= 0 {
			axes, shape[i] = append(axes, axis), x.t.shape[axis]
		}
	}
	turned := x.t
	if !slices.IsSorted(axes) {
		turned = structural(op.Transpose, op.Attr{Axes: axes}, operands{x.t}, true)
		defer turned.letGo()
	}
	return named{turned.reshape(shape), names}
}

// times returns the product of x and y, summed over the axes that are not kept.
func (x named) times(y named, kept []axisName) named {
	has := func(list []axisName, not bool) func(axisName) bool {
		return func(name axisName) bool { return slices.Contains(list, name) != not }
	}
	sumAlone := func(x named, other []axisName) named {
		return x.sumOver(func(name axisName) bool { return !slices.Contains(kept, name) && !slices.Contains(other, name) })
	}
	of := func(list []axisName, is ...func(axisName) bool) (some []axisName) {
		for _, name := range list {
			if !slices.ContainsFunc(is, func(f func(axisName) bool) bool { return !f(name) }) {
				some = append(some, name)
			}
		}
		return some
	}
	xNames, yNames := x.names, y.names
	x, y = sumAlone(x, yNames), sumAlone(y, xNames)
	defer letGo(x.t, y.t)
	batch := of(x.names, has(y.names, false), has(kept, false))
	inner := of(x.names, has(y.names, false), has(kept, true))
	rows, columns := of(x.names, has(y.names, true)), of(y.names, has(x.names, true))
	all := slices.Concat(batch, rows, columns)
	if len(inner) == 0 {
		a, b := x.ordered(all), y.ordered(all)
		defer letGo(a.t, b.t)
		return named{elementwise(op.Mul, [2]float64{}, operands{a.t, b.t}, true), all}
	}
	a, b := x.ordered(slices.Concat(batch, rows, inner)), y.ordered(slices.Concat(batch, inner, columns))
	defer letGo(a.t, b.t)
	outer := len(batch)
	innerShape := slices.Clone(a.t.shape[outer+len(rows):])
	for i, n := range b.t.shape[outer : outer+len(inner)] { // those of the dots may be broadcast
		if innerShape[i] == 1 {
			innerShape[i] = n
		}
	}
	rowShape, columnShape := slices.Clone(a.t.shape[outer:outer+len(rows)]), slices.Clone(b.t.shape[outer+len(inner):])
	matrix := func(t *Tensor, full device.Shape, n, m int) *Tensor {
		whole := structural(op.BroadcastTo, op.Attr{Shape: full}, operands{t}, true)
		defer whole.letGo()
		return whole.reshape(append(slices.Clone(t.shape[:outer]), n, m))
	}
	length := innerShape.Size()
	left := matrix(a.t, slices.Concat(a.t.shape[:outer], rowShape, innerShape), rowShape.Size(), length)
	right := matrix(b.t, slices.Concat(b.t.shape[:outer], innerShape, columnShape), length, columnShape.Size())
	product := structural(op.MatMul, op.Attr{}, operands{left, right}, true)
	defer letGo(left, right, product)
	return named{product.reshape(slices.Concat(product.shape[:outer], rowShape, columnShape)), all}
}
