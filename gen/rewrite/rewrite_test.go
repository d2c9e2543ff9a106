package rewrite_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/asyncgen/asyncgen/gen/internal/gentest"
	"github.com/asyncgen/asyncgen/gen/internal/plan"
	"github.com/asyncgen/asyncgen/gen/rewrite"
)

// loops are bodies of loops over tensors x and their indices i, in a function with a tensor w, numbers total and n, and
// a model m that others have as well. when says of each statement of the body whether it runs ahead, or late or now, as
// a whole or in part, and refused has the codes of the remarks on what waits.
var loops = []struct{ name, body, when, refused string }{
	{name: "the package comment", body: `loss := w.Mul(x).Sum(); w = w.Sub(x.MulScalar(0.1)); l := loss.Item(); total += l; if i%100 == 0 { fmt.Println(i, l) }`, when: `ahead, ahead, late, late, late`},
	{name: "no value", body: `w = w.Sub(x); n++`},
	{name: "what follows by data", body: `l := w.Sum().Item(); k := l * 2; total += k; w = w.Neg()`, when: `late, late, late, ahead`},
	{name: "what follows in the next iteration", body: `n += i; total = total*0.9 + w.Sum().Item(); w = w.Neg(); fmt.Println(total)`, when: `ahead, late, ahead, late`},
	{name: "in the order of prints", body: `fmt.Println("begin", i); fmt.Println(w.Sum().Item()); w = w.Neg(); fmt.Println("end", i)`, when: `late, late, ahead, late`},
	{name: "a print without a value", body: `fmt.Println(i); w = w.Neg()`},
	{name: "a variable that goes on", body: `n++; fmt.Println(n, w.Sum().Item())`, when: `late, late`},
	{name: "a field that others see", body: `m.n++; total += w.Sum().Item()`, when: `late, late`},
	{name: "a field that the device needs", body: `m.w = m.w.Sub(x); total += w.Sum().Item()`, when: `ahead, late`},
	{name: "feeds the device", body: `l := gamma(x.Sum().Item()); w = w.MulScalar(l)`, refused: `AG201 AG221`},
	{name: "decides what the device does", body: `if x.Sum().Item() > gamma(total) { w = w.MatMul(x) }`, refused: `AG203 AG221`},
	{name: "stays on the device", body: `l := x.Sum().Item(); w = w.MulScalar(l)`, when: `ahead, late, ahead`},
	{name: "decides what the host does", body: `if x.Sum().Item() > 1 { n++ } else { total++ }`, when: `late`},
	{name: "ends the loop", body: `w = w.Neg(); if w.Sum().Item() > 1 { break }`, when: `ahead, late`},
	{name: "ends the function", body: `w = w.Neg(); total += w.Sum().Item(); if total > 1 { return w }; n++`, when: `ahead, late, late, ahead`},
	{name: "goes on with the next iteration", body: `if x.Sum().Item() > 1 { continue }; n++`, when: `late, late`},
	{name: "decides whether the device works", body: `if x.Sum().Item() > 1 { continue }; w = w.MatMul(x)`, refused: `AG202 AG201 AG221`},
	{name: "lets the device choose", body: `if x.Sum().Item() > 1 { continue }; w = w.Sub(x)`, when: `ahead, late, late, ahead`},
	{name: "waits for the outside", body: `total += w.Sum().Item(); read(&n); w = w.Neg()`, refused: `AG205`},
	{name: "something unknown", body: `total += w.Sum().Item(); m.f(); w = w.Neg()`, refused: `AG204`},
	{name: "something unknown at times", body: `total += w.Sum().Item(); if i%8 == 0 { m.f() }; w = w.Neg()`, when: `late, now in part, ahead`},
	{name: "a return that no value decides", body: `total += w.Sum().Item(); if i == 9 { return x }; w = w.Neg()`, when: `late, now in part, ahead`},
	{name: "an inner loop", body: `for k := range 3 { w = w.Neg(); total += w.Sum().Item() * float64(k) }`, when: `late in part`},
	{name: "an inner loop that is late", body: `l := w.Sum().Item(); for k := range 3 { total += l * float64(k) }; w = w.Neg()`, when: `late, late, ahead`},
	{name: "part of an if", body: `if i%2 == 0 { w = w.Neg(); total += w.Sum().Item() }`, when: `late in part`},
	{name: "a closure", body: `add := func(v float64) { total += v }; add(w.Sum().Item()); w = w.Neg()`, when: `ahead, late, ahead`},
	{name: "a function in two parts", body: `total += loss(w, x); w = w.Neg()`, when: `late, ahead`},
	{name: "a defer", body: `defer fmt.Println(i); total += w.Sum().Item()`, refused: `AG209`},
	{name: "a method that changes memory", body: `l := w.Sum().Item(); total += l; m.began()`, when: `late, late, late`},
}

func TestFunction(t *testing.T) {
	source := []string{"type model struct { n int; w *tensor.Tensor; f func() }\n" +
		"func (m *model) began() { m.n = len(fmt.Sprint(m.n)) }\n" +
		"func gamma(x float64) float64 { return math.Gamma(x) }\n" +
		"func read(n *int) { fmt.Scan(n) }\n" +
		"func loss(w, x *tensor.Tensor) float64 { return w.Mul(x).Sum().Item() }"}
	for i, row := range loops {
		source = append(source, fmt.Sprintf("func f%d(w *tensor.Tensor, xs []*tensor.Tensor, m *model) *tensor.Tensor {\n"+
			"\tn, total := 0, 0.0\n\tfor i, x := range xs {\n\t\t_, _ = i, x\n\t\t%s\n\t}\n\treturn w.MulScalar(total + float64(n))\n}", i, row.body))
	}
	for i, f := range gentest.Functions(t, source...)[4:] {
		row := loops[i]
		d, remarks := rewrite.Function(f, nil)
		var refused []string
		for _, r := range remarks {
			if r.Verdict == plan.Refused && !slices.Contains(refused, fmt.Sprint(r.Code)) {
				refused = append(refused, fmt.Sprint(r.Code))
			}
		}
		if got := when(d); got != row.when || strings.Join(refused, " ") != row.refused {
			t.Errorf("%s: %s\nruns\n%s\nrefused: %s\nwant\n%s\nrefused: %s", row.name, row.body, got, strings.Join(refused, " "), row.when, row.refused)
		}
	}
}

// when says when the statements of the first loop of d run.
func when(d *plan.Deferral) string {
	if d == nil || len(d.Laters) == 0 {
		return ""
	}
	r := d.Laters[0].Regions[0]
	var all []string
	for _, s := range r.Loop.Bodies[0] {
		runs := "ahead"
		for _, g := range r.Groups {
			for _, late := range g.Stmts {
				switch {
				case late == s:
					runs = "late"
				case late.Within(s):
					runs = "late in part"
				}
			}
		}
		for _, now := range r.Flushes {
			switch {
			case now == s:
				runs = "now"
			case now.Within(s):
				runs = "now in part"
			}
		}
		all = append(all, runs)
	}
	return strings.Join(all[1:], ", ") // the first uses i and x
}
