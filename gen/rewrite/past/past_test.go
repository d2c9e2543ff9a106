package past_test

import (
	"fmt"
	"go/types"
	"strings"
	"testing"

	"github.com/asyncgen/asyncgen/gen/internal/gentest"
	"github.com/asyncgen/asyncgen/gen/internal/plan"
	"github.com/asyncgen/asyncgen/gen/rewrite/past"
)

// loops are bodies of loops over the tensors x of xs and their indices i, in a function with a tensor w, numbers rate
// and n and a model m. A value decides at the end of the body whether the loop goes on. proof says which variables the
// loop changes past that, and what it compares; harm says what it would do, and whether it could be done now instead.
// contained is the one or the other if Iterate runs each iteration.
var loops = []struct{ name, body, proof, harm, contained string }{
	{name: "the package comment", body: `w = w.MulScalar(0.9).Mul(x)`, proof: `w, alike x`, contained: `w`},
	{name: "nothing from outside", body: `w = w.MulScalar(0.9)`, proof: `w`, contained: `w`},
	{name: "grows", body: `w = tensor.Concat(0, w, x)`, proof: `w, alike x, alike w`, contained: `w`},
	{name: "grows by the same", body: `w = tensor.Concat(0, w, xs[0])`, proof: `w, alike w`, contained: `w`},
	{name: "doubles", body: `w = tensor.Concat(0, w, w)`, proof: `w, alike w`, contained: `calls tensor.Concat with a tensor whose shape may change`},
	{name: "comes round in another shape", body: `w = w.MatMul(x).T().Mul(w)`, proof: `w, alike x, alike w`, contained: `w, alike w`},
	{name: "another operand", body: `w = w.Reshape(i, 2)`, harm: `calls w.Reshape with another argument each time`, contained: `w, alike w`},
	{name: "another number", body: `w = w.MulScalar(rate * float64(i))`, proof: `w, floats w`, contained: `w`},
	{name: "another number, of floats", body: `w = w.Sub(tensor.Ones(2).MulScalar(float64(i)))`, proof: `w`, contained: `w`},
	{name: "in range", body: `w = w.Mul(xs[i])`, proof: `w, alike xs[i]`, contained: `w`},
	{name: "in range by a remainder", body: `w = w.Mul(xs[i%len(xs)])`, proof: `w, alike xs[i % len(xs)]`, contained: `w`},
	{name: "beyond the end", body: `w = w.Mul(xs[i+1])`, harm: `may index beyond the end of xs`, contained: `w`},
	{name: "a fixed index", body: `w = w.Mul(xs[n])`, proof: `w`, contained: `w`},
	{name: "beyond the end at times", body: `if i > 9 { w = w.Mul(xs[i+1]) }`, harm: `may give w another shape in some iterations, now`, contained: `w`},
	{name: "rows", body: `w = w.Mul(m.w.Row(i))`, harm: `calls m.w.Row with another argument each time`, contained: `w`},
	{name: "a pointer", body: `n = len(m.rates)`, proof: `n`, contained: `n`},
	{name: "another pointer", body: `m = &model{}; n = len(m.rates)`, harm: `follows a pointer that may be nil, m`, contained: `n m`},
	{name: "divides", body: `n = 100 / i`, harm: `may divide by zero`, contained: `n`},
	{name: "divides by a constant", body: `n = i / 2`, proof: `n`, contained: `n`},
	{name: "divides by what is fixed", body: `k := 1; k = i / n; _ = k`, proof: `k`, contained: `k`},
	{name: "for ever", body: `for k := n; k != 1; k /= 2 { w = w.Neg() }`, harm: `may go on for ever`, contained: `may go on for ever`},
	{name: "counts", body: `for k := 0; k < n; k++ { w = w.Neg() }`, proof: `w k, floats w`, contained: `w k`},
	{name: "prints", body: `fmt.Println(i)`},
	{name: "panics", body: `if i > 9 { panic("many") }`, harm: `calls panic, now`, contained: `calls panic`},
	{name: "waits", body: `rate = wait(w)`, harm: `calls user.wait, which calls (*tensor.Tensor).Item, which waits, now`, contained: `calls user.wait, which calls (*tensor.Tensor).Item, which waits, now`},
	{name: "in some iterations", body: `if i > 9 { w = w.Mul(x) }`, harm: `may give w another shape in some iterations, now`, contained: `w`},
	{name: "after others have ended", body: `if i%2 == 0 { continue }; w = w.Neg().Mul(x)`, harm: `may give w another shape in some iterations, now`, contained: `w`},
	{name: "another shape in some iterations", body: `if i > 9 { w = x }; w = w.Neg()`, harm: `may give w another shape in some iterations, now`, contained: `w`},
	{name: "a function", body: `w = half(w)`, proof: `w`, contained: `w`},
	{name: "a function that may fail", body: `w = w.Mul(pick(xs, i))`, harm: `calls pick, which may fail, with another argument each time`, contained: `calls w.Mul with a tensor whose shape may change`},
	{name: "a size that is left open", body: `w = w.Reshape(-1, 2).SumKeep(1)`, proof: `w, alike w`, contained: `w, alike w`},
	{name: "counted first", body: `n++; w = w.Mul(xs[n])`, harm: `may index beyond the end of xs`, contained: `w n`},
	{name: "two results", body: `w, _ = both(w)`, proof: `w, alike w`, contained: `w, alike w`},
	{name: "two results, used", body: `_, v := both(w); w = v.MatMul(w)`, proof: `w v, alike w`, contained: `w v, alike w`},
	{name: "set before it is used", body: `w, _ = both(w); w = w.MatMul(w)`, proof: `w, alike w`, contained: `w, alike w`},
	{name: "used, and set by what may be anything", body: `v := w.MatMul(w); w, _ = both(v)`, proof: `w v, alike w`, contained: `w v, alike w`},
	{name: "set before it is used in an inner loop", body: `for range 2 { v := w.MatMul(w); w, _ = both(v) }`, proof: `w v, alike w`, contained: `w v, alike w`},
	{name: "a literal", body: `get := func() *tensor.Tensor { return w.MatMul(w) }; w = get()`, harm: `calls w.Sum with a tensor whose shape may change`, contained: `w get, alike w`},
	{name: "a literal with another index", body: `get := func() float64 { return m.rates[i] }; rate = get()`, harm: `calls get, which may fail, with another argument each time`, contained: `rate get`},
	{name: "makes a slice as long as another", body: `mine := make([]float64, len(xs)); _ = mine; xs = append(xs, w)`, harm: `makes something of a size that may be wrong`, contained: `xs mine`},
	{name: "a struct of tensors", body: `p := pair{w, x}; p = turned(p); w = p.a`, harm: `calls turned with a tensor whose shape may change`, contained: `calls turned, which may fail, with another argument each time`},
	{name: "a cell", body: `m.at.Set(w)`, proof: `m.at told to BreakIf`, contained: `m.at told to BreakIf`},
	{name: "another cell", body: `cells[i].Set(w)`, harm: `may index beyond the end of cells`, contained: `calls cells[i].Set, which changes a cell that can't be named before the loop, and that may not say so itself`},
	{name: "memory", body: `rates[0]++`, harm: `changes rates[0]`, contained: `changes rates[0]`},
	{name: "memory that nobody sees", body: `mine := make([]float64, n); for k := range mine { mine[k]++ }`, harm: `may index beyond the end of mine, now`, contained: `mine k`},
	{name: "appends", body: `xs = append(xs, w)`, proof: `xs`, contained: `xs`},
	{name: "makes a slice", body: `mine := make([]float64, i*i); _ = mine`, harm: `makes something of a size that may be wrong`, contained: `makes something of a size that may be wrong`},
	{name: "makes a slice that is longer each time", body: `mine := make([]float64, i+2); _ = mine`, harm: `makes something of a size that may be wrong`, contained: `mine`},
}

func TestProve(t *testing.T) {
	source := []string{"type model struct{ w *tensor.Tensor; rates []float64; at tensor.Cell }\n" +
		"func half(x *tensor.Tensor) *tensor.Tensor { return x.MulScalar(0.5) }\n" +
		"func wait(x *tensor.Tensor) float64 { return x.Item() }\n" +
		"func both(x *tensor.Tensor) (a, b *tensor.Tensor) { if x.Rank() > 1 { return x.Row(0), x }; return x, x.Row(0) }\n" +
		"type pair struct{ a, b *tensor.Tensor }\n" +
		"func turned(p pair) pair { return pair{p.b, p.a} }\n" +
		"func pick(xs []*tensor.Tensor, i int) *tensor.Tensor { return xs[i] }"}
	for i, row := range loops {
		source = append(source, fmt.Sprintf("func f%d(w *tensor.Tensor, xs []*tensor.Tensor, rate float64, n int, m *model, cells []tensor.Cell) *tensor.Tensor {\n"+
			"\trates := []float64{rate}\n\tfor i, x := range xs {\n\t\t_, _ = i, x\n\t\t%s\n\t\tif w.Sum().Item() < rate {\n\t\t\tbreak\n\t\t}\n\t}\n\treturn w.MulScalar(rates[0])\n}", i, row.body))
	}
	for i, f := range gentest.Functions(t, source...)[5:] {
		row := loops[i]
		if got, want := prove(f, false), [2]string{row.proof, row.harm}; got != want {
			t.Errorf("%s: %s\nhas the proof %q, would do the harm %q\nwant %q, %q", row.name, row.body, got[0], got[1], want[0], want[1])
		}
		if got := prove(f, true); got[0]+got[1] != row.contained {
			t.Errorf("%s: %s\nrun by Iterate: %q, want %q", row.name, row.body, got[0]+got[1], row.contained)
		}
	}
}

// prove returns the proof for the loop of f, or the harm that it would do.
func prove(f *plan.Function, contained bool) (found [2]string) {
	loop := f.Tree(f.Decl.Body.List[1])
	test := loop.Bodies[0][len(loop.Bodies[0])-1]
	l := &past.Loop{Stmt: loop, Exits: []*plan.Stmt{test}, Late: make(map[*plan.Unit]bool), Contained: contained}
	l.Units = plan.Units(loop, func(s *plan.Stmt) bool { return s == test })
	l.Ahead = l.Units
	for _, u := range l.Units {
		l.Late[u] = len(u.Reads) > 0
	}
	proof, harm := past.Prove(f, l)
	if harm != nil {
		found[1] = strings.TrimSuffix(harm.Text, ", and the loop runs past its end until the value is there")
		if harm.By != nil {
			found[1] += ", now"
		}
		return found
	}
	var parts []string
	for _, v := range proof.Changed {
		if v.Name() != "i" && v.Name() != "x" { // they are the head's
			parts = append(parts, v.Name())
		}
	}
	for _, c := range proof.Cells {
		parts = append(parts, c.Of+" told to BreakIf")
	}
	found[0] = strings.Join(parts, " ")
	if g := proof.Guard; g != nil {
		for _, e := range g.Tensors {
			found[0] += ", alike " + types.ExprString(e)
		}
		for _, e := range g.Floats {
			found[0] += ", floats " + types.ExprString(e)
		}
		if g.First {
			found[0] += ", the first"
		}
	}
	return found
}
