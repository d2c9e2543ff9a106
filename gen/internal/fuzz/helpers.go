package fuzz

import "fmt"

// Programs that call functions of another package, which wait, print, return several results or none of that.

// helpFile is that package.
const helpFile = `// Package help is what programs share.
package help

import (
	"fmt"
	"io"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// What a program is built for.
const (
	Quiet bool = false
	Mode       = "train"
)

// Most is the greatest element.
func Most(x *tensor.Tensor) float64 { return x.Max().Item() }

// Rows adds up what it reads row by row.
func Rows(x *tensor.Tensor) (total float64) {
	for j := range x.Dim(0) {
		total += x.Row(j).Sum().Item()
	}
	return total
}

// Ends are the first element and the last.
func Ends(x *tensor.Tensor) (first, last float64) {
	y := x.Neg()
	return y.At(0, 0), y.At(-1, -1)
}

// Doubled computes, and doesn't look.
func Doubled(x *tensor.Tensor) *tensor.Tensor { return x.Add(x) }

// Show prints each row that is not below zero.
func Show(w io.Writer, x *tensor.Tensor) {
	for j := range x.Dim(0) {
		if v := x.Row(j).Sum().Item(); v >= 0 {
			fmt.Fprintln(w, "row", j, v)
		}
	}
}

// Pick is a tensor and what was read to choose it.
func Pick(x, y *tensor.Tensor) (*tensor.Tensor, float64) {
	v := x.Sum().Item()
	if v > 0.5 {
		return y, v
	}
	return x, v
}
`

var (
	opEnds = read("help.Ends($0)", tFloat, 0, func(_ *machine, a []any) any {
		x := ok(a[0])
		return tuple{-x.floats[0], -x.floats[len(x.floats)-1]}
	}, tMat)
	opPick = read("help.Pick($0, $1)", tMat, 0, func(_ *machine, a []any) any {
		v := first(ok(sum(val(a[0]), -1)))
		if v > 0.5 {
			return tuple{val(a[1]), v}
		}
		return tuple{val(a[0]), v}
	}, tMat, tMat)
	opShow    = shows(outWriter)
	opShowErr = shows(logWriter)
)

// shows makes the operation that prints to a writer.
func shows(writer string) *operation {
	return read("help.Show("+writer+", $0)", none, 0, func(m *machine, a []any) any {
		x := val(a[0])
		for j := range x.shape[0] {
			if v := rowSum(x, j); v >= 0 {
				fmt.Fprintln(m.out(writer), "row", j, v)
			}
		}
		return nil
	}, tMat)
}

// helped are the operations of that package that stand in expressions.
func helped() []*operation {
	return []*operation{
		read("help.Most($0)", tFloat, 1, func(_ *machine, a []any) any {
			return first(ok(most(val(a[0]), -1)))
		}, tMat),
		read("help.Rows($0)", tFloat, 1, func(_ *machine, a []any) any {
			total := 0.0
			for j := range val(a[0]).shape[0] {
				total += rowSum(val(a[0]), j)
			}
			return total
		}, tMat),
		shaped("help.Doubled($0)", 1, func(a []*value) *value { return add(a[0], a[0]) }, tMat, tMat),
	}
}

// rowSum reads the sum of a row.
func rowSum(x *value, j int) float64 {
	return first(ok(sum(part(x, j*x.shape[1], x.shape[1]), -1)))
}

// help makes a statement that calls a function of the other package which does not stand in an expression.
func (g *maker) help() []*stmt {
	switch g.choose(3) {
	case 0:
		return one(call(apply([]*operation{opShow, opShow, opShowErr}[g.choose(3)], g.expr(tMat, 1))))
	case 1:
		x := g.expr(tMat, 1)
		v, w := g.fresh(tFloat), g.fresh(tFloat)
		list := one(&stmt{form: sDeclare, vars: []*variable{v, w}, rhs: []*expr{apply(opEnds, x)}})
		g.declare(v)
		g.declare(w)
		return append(list, assign(g.place(tFloat), g.pick("+=", "="), of([]*variable{v, w}[g.choose(2)])))
	}
	x, y := g.expr(tMat, 1), g.expr(tMat, 0)
	t, v := g.fresh(tMat), g.fresh(tFloat)
	list := one(&stmt{form: sDeclare, vars: []*variable{t, v}, rhs: []*expr{apply(opPick, x, y)}})
	g.declare(t)
	g.declare(v)
	return append(list, assign(g.place(tFloat), "+=", of(v)))
}
