package rows_test

import (
	"fmt"
	"go/types"
	"strings"
	"testing"

	"github.com/asyncgen/asyncgen/gen/internal/gentest"
	"github.com/asyncgen/asyncgen/gen/internal/plan"
	"github.com/asyncgen/asyncgen/gen/rewrite/rows"
)

// loops are loops over the rows i of tensors x and w. reads is what they read, and by which rewrite it is taken for all
// rows; it is empty if they stay as they are. keeps is what is computed for all rows if nothing is put off.
var loops = []struct{ name, loop, reads, keeps string }{
	{name: "rows", loop: `for i := range 9 { sum += x.Row(i).Item() }`, reads: `x.Row(i): read-rows`},
	{name: "counted", loop: `for i := 0; i < n; i++ { sum += x.Row(i).Item() }`, reads: `x.Row(i): read-rows`},
	{name: "over a slice", loop: `for i := range xs { sum += x.Row(i).Item() }`, reads: `x.Row(i): read-rows`},
	{name: "computed", loop: `for i := range n { h := x.Row(i).Exp(); sum += h.Sum().Item() }`, reads: `h.Sum(): batch-rows`, keeps: `h.Sum()`},
	{name: "two tensors", loop: `for i := range n { sum += x.Row(i).Dot(w.Row(i)).Item() }`, reads: `x.Row(i).Dot(w.Row(i)): batch-rows`, keeps: `x.Row(i).Dot(w.Row(i))`},
	{name: "of a function", loop: `for i := range n { sum += mean(x.Row(i)).Item() }`, reads: `mean(x.Row(i)): batch-rows`, keeps: `mean(x.Row(i))`},
	{name: "the same for all", loop: `for i := range n { sum += x.Row(i).Item() * w.Item() }`, reads: `x.Row(i): read-rows, w: once`},
	{name: "in some iterations", loop: `for i := range n { if i > 2 { sum += x.Row(i).Sum().Item() } }`},
	{name: "a row in some iterations", loop: `for i := range n { if i > 2 { sum += x.Row(i).Item() } }`, reads: `x.Row(i): read-rows`},
	{name: "not in turn", loop: `for i := range n { sum += x.Row(n-i-1).Item() }`},
	{name: "from 1", loop: `for i := 1; i < n; i++ { sum += x.Row(i).Item() }`},
	{name: "the index changes", loop: `for i := 0; i < n; i++ { sum += x.Row(i).Item(); i++ }`},
	{name: "something else", loop: `for i := range n { sum += x.Row(i).Item(); w = w.Neg() }`},
	{name: "of the last one", loop: `for i := range n { w = w.Add(x.Row(i)); sum += w.Sum().Item() }`},
	{name: "to the end", loop: `for i := range n { if x.Row(i).Item() > 1 { break } }`, reads: `x.Row(i): read-rows`},
	{name: "kept in a list", loop: `for i := range n { h := x.Row(i).MatMul(w); xs = append(xs, h.Tanh()) }`, keeps: `h.Tanh()`},
	{name: "kept in a sum", loop: `for i := range n { w = w.Add(x.Row(i).Exp()) }`, keeps: `x.Row(i).Exp()`},
	{name: "kept twice", loop: `for i := range n { h := x.Row(i).Exp(); xs = append(xs, h, h.Neg()) }`, keeps: `x.Row(i).Exp(), h, h.Neg()`},
	{name: "rows alone", loop: `for i := range n { xs = append(xs, x.Row(i)) }`},
	{name: "draws", loop: `for i := range n { xs = append(xs, x.Row(i).Dropout(0.5)) }`},
}

func TestRows(t *testing.T) {
	source := []string{"func mean(x *tensor.Tensor) *tensor.Tensor { return x.Mean() }"}
	for i, row := range loops {
		source = append(source, fmt.Sprintf("func f%d(x, w *tensor.Tensor, n int) (xs []*tensor.Tensor, _ *tensor.Tensor, sum float64) {\n"+
			"\t%s\n\treturn xs, w, sum\n}", i, row.loop))
	}
	for i, f := range gentest.Functions(t, source...)[1:] {
		var reads, keeps []string
		loop := f.Tree(f.Decl.Body.List[0])
		_, all := loop.Total()
		if rows.Together(f, loop, []*rows.Part{rows.WholeSlice, rows.Batched}) {
			for _, r := range all {
				by := "once"
				if rw := rows.Made(r); rw != nil {
					by = rw.Name
				}
				reads = append(reads, types.ExprString(r.Operand)+": "+by)
			}
		}
		d := &plan.Deferral{Function: f}
		rows.Keep(d)
		for _, k := range d.Keeps {
			keeps = append(keeps, types.ExprString(k.Expr))
		}
		row := loops[i]
		if got := strings.Join(reads, ", "); got != row.reads {
			t.Errorf("%s: %s\nreads %s, want %s", row.name, row.loop, got, row.reads)
		}
		if got := strings.Join(keeps, ", "); got != row.keeps {
			t.Errorf("%s: %s\nkeeps %s, want %s", row.name, row.loop, got, row.keeps)
		}
	}
}
