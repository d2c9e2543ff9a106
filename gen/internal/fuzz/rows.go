package fuzz

import "math"

// The operations of one row of a tensor, by its number.
var (
	opRowSum  = ofRow("$0.Row($1).Sum().Item()", func(row *value) float64 { return first(sum(row, -1)) })
	opRowLast = ofRow("$0.At($1, {c}-1)", func(row *value) float64 { return row.floats[len(row.floats)-1] })
	opRowMost = ofRow("float64($0.Row($1).ArgMax().ItemInt())", func(row *value) float64 {
		at := 0
		for i, x := range row.floats {
			if math.IsNaN(row.floats[at]) {
				break
			}
			if math.IsNaN(x) || x > row.floats[at] {
				at = i
			}
		}
		return float64(at)
	})
)

// ofRow makes a read of something of a row.
func ofRow(source string, of func(row *value) float64) *operation {
	return read(source, tFloat, 0, func(_ *machine, a []any) any {
		x := ok(a[0])
		return of(part(x, a[1].(int)*x.shape[1], x.shape[1]))
	}, tMat, tInt)
}

// rows makes a loop over the rows of a tensor, which reads each.
func (g *maker) rows() []*stmt {
	if g.depth > 4 || g.noJumps {
		return nil
	}
	v := g.fresh(tInt)
	g.protected[v] = true
	x := g.variable(tMat)
	s := &stmt{form: sRange, vars: []*variable{v}, rhs: []*expr{literal(tInt, g.p.rows)}}
	for range 1 + g.choose(2) {
		of := apply([]*operation{opRowSum, opRowLast, opRowMost}[g.choose(3)], x, of(v))
		var use *stmt
		switch g.choose(4) {
		case 0, 1:
			use = assign(g.place(tFloat), "+=", of)
		case 2:
			use = &stmt{form: sPrint, text: outWriter, rhs: []*expr{g.expr(tInt, 0), of}}
		case 3:
			more := apply(operationOf("$0 > $1", tBool), of, g.leaf(tFloat))
			use = &stmt{form: sIf, rhs: []*expr{more}, body: one(&stmt{form: sIncDec, lhs: []*expr{g.place(tInt)}, op: "++"})}
		}
		s.body = append(s.body, use)
	}
	return one(s)
}
