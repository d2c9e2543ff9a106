package numbers_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/asyncgen/asyncgen/gen/internal/gentest"
	"github.com/asyncgen/asyncgen/gen/internal/load"
	"github.com/asyncgen/asyncgen/gen/internal/plan"
	"github.com/asyncgen/asyncgen/gen/rewrite/numbers"
)

// restated are bodies of loops over the tensors x of xs, in a function with a tensor w, a number rate and a model m,
// and what they become in numbers that stay on the device; or why they stay as they are, unless the device has no need
// of the value.
var restated = []struct{ name, loop, becomes, stays string }{{
	name:    "the package comment",
	loop:    `n := x.Norm().Item(); if n > rate { x = x.MulScalar(rate / n) }; fmt.Println(n); w = w.Sub(x)`,
	becomes: `n := x.Norm().ItemF64(); n.Item(); asyncrt.Either(n.Gt(asyncrt.Const(rate)), func() { x = x.MulF64(asyncrt.Const(rate).Div(n)) }, nil, &x); fmt.Println(n.Item()); w = w.Sub(x)`,
}, {
	name:    "arithmetic",
	loop:    `n := x.Norm().Item(); w = w.Sub(x.MulScalar(rate / (n + 1)))`,
	becomes: `n := x.Norm().ItemF64(); n.Item(); w = w.Sub(x.MulF64(asyncrt.Const(rate).Div(n.Add(asyncrt.Const(1)))))`,
}, {
	name:    "in the middle",
	loop:    `w = w.Sub(x.MulScalar(x.Norm().Item()))`,
	becomes: `norm := x.Norm().ItemF64(); norm.Item(); w = w.Sub(x.MulF64(norm))`,
}, {
	name:    "functions",
	loop:    `n := math.Sqrt(x.Norm().Item()); w = w.MulScalar(max(n, 1e-3))`,
	becomes: `n := x.Norm().ItemF64().Sqrt(); n.Item(); w = w.MulF64(n.Max(asyncrt.Const(1e-3)))`,
}, {
	name:    "functions on one side of a choice",
	loop:    `n := x.Norm().Item(); s := 1.0; if n > rate { s = math.Sqrt(rate / n) }; w = w.MulScalar(s)`,
	becomes: `n := x.Norm().ItemF64(); n.Item(); s := asyncrt.Const(1.0); asyncrt.Either(n.Gt(asyncrt.Const(rate)), func() { s = asyncrt.Const(rate).Div(n).Sqrt() }, nil, &s); w = w.MulF64(s)`,
}, {
	name:    "a function in a tensor of one side",
	loop:    `n := x.Norm().Item(); if n > rate { w = w.MulScalar(2 / math.Sqrt(n)) }`,
	becomes: `n := x.Norm().ItemF64(); n.Item(); asyncrt.Either(n.Gt(asyncrt.Const(rate)), func() { w = w.MulF64(asyncrt.Const(2).Div(n.Sqrt())) }, nil, &w)`,
}, {
	name:    "the least of many",
	loop:    `n := x.Norm().Item(); w = w.MulScalar(min(1, -n, max(rate, n, 2) /* the largest */, n))`,
	becomes: `n := x.Norm().ItemF64(); n.Item(); w = w.MulF64(asyncrt.Const(1).Min(n.Neg()).Min(asyncrt.Const(rate).Max(n).Max(asyncrt.Const(2))).Min(n))`,
}, {
	name:    "float32",
	loop:    `n := float64(float32(x.Norm().Item())); w = w.MulScalar(n)`,
	becomes: `n := x.Norm().ItemF64().Float32(); n.Item(); w = w.MulF64(n)`,
}, {
	name:    "looked at as well",
	loop:    `n := x.Norm().Item(); w = w.MulScalar(n); fmt.Println(n)`,
	becomes: `n := x.Norm().ItemF64(); w = w.MulF64(n); fmt.Println(n.Item())`,
}, {
	name:  "an unknown function",
	loop:  `n := math.Gamma(x.Norm().Item()); w = w.MulScalar(n)`,
	stays: `it computes math.Gamma(x.Norm().Item()), which numbers have no form of`,
}, {
	name:  "a product in a sum",
	loop:  `n := x.Norm().Item(); w = w.MulScalar(n*rate + 1)`,
	stays: `it adds the product n * rate, and Go rounds the product on some platforms and not on others`,
}, {
	name:    "a rounded product",
	loop:    `n := x.Norm().Item(); w = w.MulScalar(float64(n*rate) + 1)`,
	becomes: `n := x.Norm().ItemF64(); n.Item(); w = w.MulF64(n.Mul(asyncrt.Const(rate)).Add(asyncrt.Const(1)))`,
}, {
	name: "not a local variable",
	loop: `m.rate = x.Norm().Item(); w = w.MulScalar(m.rate)`,
}, {
	name:  "a closure",
	loop:  `n := x.Norm().Item(); func() { n++ }(); w = w.MulScalar(n)`,
	stays: `it uses n, which a function literal or a pointer leads to`,
}, {
	name:    "a slice of numbers",
	loop:    `all := make([]float64, len(xs)); for i, y := range xs { all[i] = rate * y.Dot(x).Item(); x = x.Sub(y.MulScalar(all[i])); fmt.Println(all[i], len(all)) }; w = w.Sub(x)`,
	becomes: `all := make([]asyncrt.F64, len(xs)); for i, y := range xs { dot := y.Dot(x).ItemF64(); dot.Item(); all[i] = asyncrt.Const(rate).Mul(dot); x = x.Sub(y.MulF64(all[i])); fmt.Println(all[i].Item(), len(all)) }; w = w.Sub(x)`,
}, {
	name:    "a slice that grows",
	loop:    `var all []float64; for _, y := range xs { all = append(all, y.Norm().Item()); all[0] *= rate; x = x.MulScalar(1 / all[len(all)-1]) }; w = w.Sub(x)`,
	becomes: `var all []asyncrt.F64; for _, y := range xs { norm := y.Norm().ItemF64(); norm.Item(); all = append(all, norm); all[0] = all[0].Mul(asyncrt.Const(rate)); x = x.MulF64(asyncrt.Const(1).Div(all[len(all)-1])) }; w = w.Sub(x)`,
}, {
	name:    "a slice that is cut",
	loop:    `var all []float64; for _, y := range xs { all = append(all, y.Norm().Item()); if len(all) > 2 { all = all[1:] }; x = x.MulScalar(all[0]) }; w = w.Sub(x)`,
	becomes: `var all []asyncrt.F64; for _, y := range xs { norm := y.Norm().ItemF64(); norm.Item(); all = append(all, norm); if len(all) > 2 { all = all[1:] }; x = x.MulF64(all[0]) }; w = w.Sub(x)`,
}, {
	name:  "the capacity of a slice",
	loop:  `var all []float64; for _, y := range xs { all = append(all, y.Norm().Item()); x = x.MulScalar(all[0]) }; fmt.Println(cap(all)); w = w.Sub(x)`,
	stays: `it hands on all`,
}, {
	name:  "a slice that two variables lead to",
	loop:  `var all []float64; for _, y := range xs { all = append(all, y.Norm().Item()); two := all; x = x.MulScalar(two[0]) }; w = w.Sub(x)`,
	stays: `it sets two to something else than a slice that is made there`,
}, {
	name:  "a slice that others see",
	loop:  `all := make([]float64, len(xs)); for i, y := range xs { all[i] = y.Norm().Item(); x = x.MulScalar(all[i]) }; fmt.Println(all); w = w.Sub(x)`,
	stays: `it hands on all`,
}, {
	name:  "a slice that is a variable's",
	loop:  `all := make([]float64, len(xs)); p := &all[0]; for i, y := range xs { all[i] = y.Norm().Item(); x = x.MulScalar(all[i]) }; *p = 1; w = w.Sub(x)`,
	stays: `it uses all, which a function literal or a pointer leads to`,
}, {
	name:    "a slice that sums",
	loop:    `all := make([]float64, len(xs)); for i, y := range xs { all[i] += y.Norm().Item(); x = x.MulScalar(all[i]) }; w = w.Sub(x)`,
	becomes: `all := make([]asyncrt.F64, len(xs)); for i, y := range xs { norm := y.Norm().ItemF64(); norm.Item(); all[i] = all[i].Add(norm); x = x.MulF64(all[i]) }; w = w.Sub(x)`,
}, {
	name:    "a tensor of a number",
	loop:    `last := x.Sum().Item(); x = tensor.Full(last/2, 1, len(xs)); i := x.ArgMax().ItemInt(); w = w.Sub(x).Add(tensor.FullInt(i, 1)).Mul(tensor.Scalar(last))`,
	becomes: `last := x.Sum().ItemF64(); last.Item(); x = last.Div(asyncrt.Const(2)).Full(1, len(xs)); i := x.ArgMax().I64(); i.ItemInt(); w = w.Sub(x).Add(i.Full(1)).Mul(last.Full())`,
}, {
	name:    "two at once",
	loop:    `n, k := x.Norm().Item(), 1.0; n, k = k, n; w = w.MulScalar(n+k)`,
	becomes: `n, k := x.Norm().ItemF64(), asyncrt.Const(1.0); n.Item(); n, k = k, n; w = w.MulF64(n.Add(k))`,
}, {
	name:    "after a call",
	loop:    `fmt.Println(w.MulScalar(x.Norm().Item()))`,
	becomes: `norm := x.Norm().ItemF64(); norm.Item(); fmt.Println(w.MulF64(norm))`,
}, {
	name:    "an index",
	loop:    `i := x.ArgMax().ItemInt(); w = w.Add(xs[0].Row(int(i)))`,
	becomes: `i := x.ArgMax().I64(); xs2 := xs[0]; xs2.Row(int(i.ItemInt())); w = w.Add(xs2.RowI64(i))`,
}, {
	name:    "an index in the middle",
	loop:    `w = w.Add(xs[0].Row(int(x.ArgMax().ItemInt() + 1)))`,
	becomes: `xs2 := xs[0]; argMax := x.ArgMax().I64(); xs2.Row(int(argMax.ItemInt() + 1)); w = w.Add(xs2.RowI64(argMax.Add(asyncrt.ConstInt(1))))`,
}, {
	name:    "a slice",
	loop:    `i := int(x.ArgMax().ItemInt()); w = w.Add(xs[0].Slice(0, i, i+2))`,
	becomes: `i := x.ArgMax().I64(); xs2 := xs[0]; xs2.Slice(0, int(i.ItemInt()), int(i.ItemInt())+2); w = w.Add(xs2.SliceI64(0, i, 2))`,
}, {
	name:  "a slice of another length",
	loop:  `i := int(x.ArgMax().ItemInt()); w = w.Add(xs[0].Slice(0, i, 2*i))`,
	stays: `it takes a slice, xs[0].Slice(0, i, 2 * i), of which the length or the end depends on the value`,
}, {
	name:  "an index divided",
	loop:  `i := x.ArgMax().ItemInt() / 2; w = w.Add(xs[0].Row(int(i)))`,
	stays: `it computes x.ArgMax().ItemInt() / 2, which indices have no form of`,
}, {
	name:    "a tensor of an index",
	loop:    `i := x.ArgMax().ItemInt(); w = w.Add(tensor.From([]int64{i}))`,
	becomes: `i := x.ArgMax().I64(); i.ItemInt(); w = w.Add(i.Tensor())`,
}, {
	name:    "a choice of a tensor",
	loop:    `n := x.Norm().Item(); if n > rate { w = w.MulScalar(rate) }`,
	becomes: `n := x.Norm().ItemF64(); n.Item(); asyncrt.Either(n.Gt(asyncrt.Const(rate)), func() { w = w.MulScalar(rate) }, nil, &w)`,
}, {
	name:    "a choice of a number",
	loop:    `n := x.Norm().Item(); if n > rate && n < 9 { n = rate } else { n = 1 }; w = w.MulScalar(n)`,
	becomes: `n := x.Norm().ItemF64(); n.Item(); asyncrt.Either(n.Gt(asyncrt.Const(rate)).And(n.Lt(asyncrt.Const(9))), func() { n = asyncrt.Const(rate) }, func() { n = asyncrt.Const(1) }, &n); w = w.MulF64(n)`,
}, {
	name:    "a choice in the head",
	loop:    `if n := x.Norm().Item(); math.IsNaN(n) { w = w.Neg() }`,
	becomes: `{ n := x.Norm().ItemF64(); n.Item(); asyncrt.Either(n.Ne(n), func() { w = w.Neg() }, nil, &w) }`,
}, {
	name:    "a switch",
	loop:    `n := x.Norm().Item(); switch { case n > 2: w = w.Neg(); case n > 1: w = w.Abs() }`,
	becomes: `n := x.Norm().ItemF64(); n.Item(); asyncrt.Either(n.Gt(asyncrt.Const(2)), func() { w = w.Neg(); }, func() { asyncrt.Either(n.Gt(asyncrt.Const(1)), func() { w = w.Abs() }, nil, &w) }, &w)`,
}, {
	name:    "other work",
	loop:    `n := x.Norm().Item(); if n > rate { w = w.Neg(); fmt.Println(rate) }`,
	becomes: `n := x.Norm().ItemF64(); asyncrt.Either(n.Gt(asyncrt.Const(rate)), func() { w = w.Neg() }, nil, &w); if n.Item() > rate {; fmt.Println(rate) }`,
}, {
	name:  "expensive",
	loop:  `n := x.Norm().Item(); if n > rate { w = w.MatMul(x) }`,
	stays: `it calls w.MatMul, which costs too much on one side of a choice`,
}, {
	name:  "spoiled",
	loop:  `n := x.Norm().Item(); if n > rate { w = xs[1] }`,
	stays: `it computes xs[1], which may panic, on one side of a choice`,
}, {
	name:  "an integer divided",
	loop:  `n := x.Norm().Item(); if n > rate { w = w.MulScalar(float64(7 / len(xs))) }`,
	stays: `it computes 7 / len(xs), which may panic, on one side of a choice`,
}, {
	name:  "a later condition that may panic",
	loop:  `n := x.Norm().Item(); if n > rate { w = w.Neg() } else if n > m.rate { w = w.Abs() }`,
	stays: `it computes m.rate, which may panic, only where another test says so`,
}, {
	name:  "half of a condition that may panic",
	loop:  `n := x.Norm().Item(); if n > rate && n < m.rate { w = w.Neg() }`,
	stays: `it computes m.rate, which may panic, only where another test says so`,
}, {
	name:  "a later case that may panic",
	loop:  `n := x.Norm().Item(); switch { case n > rate: w = w.Neg(); case n > m.rate: w = w.Abs() }`,
	stays: `it computes m.rate, which may panic, only where another test says so`,
}, {
	name:  "an element of an array",
	loop:  `n := x.Norm().Item(); pair := [2]float64{1, 2}; i := len(xs); if n > rate { w = w.MulScalar(pair[i]) }`,
	stays: `it computes pair[i], which may panic, on one side of a choice`,
}, {
	name:  "a condition that may panic",
	loop:  `n := x.Norm().Item(); if n > rate { if m.rate > 0 { w = w.Neg() } }`,
	stays: `it computes m.rate, which may panic, on one side of a choice`,
}, {
	name:  "spoiled by what it was",
	loop:  `n := x.Norm().Item(); if n > rate { w = x }`,
	stays: `it uses w on one side only: if computing it has failed, w would be lost on the other, too`,
}, {
	name:  "spoiled by several, of which the first by name is told",
	loop:  `h, g, f, e, d, c, b, a := x.Abs(), x.Neg(), x.Exp(), x.Sin(), x.Cos(), x.Tanh(), x.Square(), x.Sqrt(); n := x.Norm().Item(); if n > rate { w = h.Add(g).Add(f).Add(e).Add(d).Add(c).Add(b).Add(a) }`,
	stays: `it uses a on one side only: if computing it has failed, w would be lost on the other, too`,
}, {
	name:    "not spoiled",
	loop:    `n, k := x.Norm().Item(), w.Norm().Item(); if n > k { w = x }`,
	becomes: `n, k := x.Norm().ItemF64(), w.Norm().ItemF64(); n.Item(); k.Item(); asyncrt.Either(n.Gt(k), func() { w = x }, nil, &w)`,
}, {
	name:    "an integer beside",
	loop:    `n := x.Norm().Item(); k := 0; if n > rate { w, k = w.Neg(), 1 }; fmt.Println(k)`,
	becomes: `n := x.Norm().ItemF64(); n.Item(); k := asyncrt.ConstInt(0); asyncrt.Either(n.Gt(asyncrt.Const(rate)), func() { w, k = w.Neg(), asyncrt.ConstInt(1) }, nil, &w, &k); fmt.Println(int(k.ItemInt()))`,
}, {
	name:  "another type",
	loop:  `n := x.Norm().Item(); k := ""; if n > rate { w, k = w.Neg(), "more" }; _ = k`,
	stays: `it sets k, which is neither a tensor nor a float64`,
}, {
	name:    "truths",
	loop:    `up, k := x.Norm().Item() > rate, false; if up && !k || k { w = w.Neg(); k = true }; fmt.Println(up, k)`,
	becomes: `up, k := x.Norm().ItemF64().Gt(asyncrt.Const(rate)).I64(), asyncrt.ConstInt(0); up.ItemInt(); asyncrt.Either(up.Ne(asyncrt.ConstInt(0)).And(k.Ne(asyncrt.ConstInt(0)).Not()).Or(k.Ne(asyncrt.ConstInt(0))), func() { w = w.Neg(); k = asyncrt.ConstInt(1) }, nil, &w, &k); fmt.Println((up.ItemInt() != 0), (k.ItemInt() != 0))`,
}, {
	name:    "a truth of the host",
	loop:    `more := len(xs) > 2; if x.Norm().Item() > rate { more = false }; if more { w = w.Neg() }`,
	becomes: `more := asyncrt.ConstInt(len(xs)).Gt(asyncrt.ConstInt(2)).I64(); norm := x.Norm().ItemF64(); norm.Item(); asyncrt.Either(norm.Gt(asyncrt.Const(rate)), func() { more = asyncrt.ConstInt(0) }, nil, &more); asyncrt.Either(more.Ne(asyncrt.ConstInt(0)), func() { w = w.Neg() }, nil, &w)`,
}, {
	name:  "a truth that is no comparison of numbers",
	loop:  `more := m == nil; if x.Norm().Item() > rate { more = false }; if more { w = w.Neg() }`,
	stays: `it tests m == nil, which numbers have no form of`,
}, {
	name:  "a sum with a function that numbers have no form of",
	loop:  `n := x.Norm().Item(); w = w.MulScalar(n + math.Dim(n, rate))`,
	stays: `it computes math.Dim(n, rate), which numbers have no form of`,
}, {
	name:  "such a function that is added",
	loop:  `s := 0.0; for range 2 { n := x.Norm().Item(); s += math.FMA(n, rate, 1); w = w.MulScalar(s) }`,
	stays: `it computes math.FMA(n, rate, 1), which numbers have no form of`,
}, {
	name:  "a constant",
	loop:  `const mode = "train"; if x.Norm().Item() > rate && mode == "train" { w = w.Neg() }`,
	stays: `it tests mode == "train", a constant, together with values`,
}, {
	name:    "a counter and a parameter",
	loop:    `k := 0; if x.Norm().Item() > 1 { k++ } else { k-- }; if k > len(xs) { rate *= 0.5 }; w = w.MulScalar(rate)`,
	becomes: `k := asyncrt.ConstInt(0); norm := x.Norm().ItemF64(); norm.Item(); asyncrt.Either(norm.Gt(asyncrt.Const(1)), func() { k = k.Add(asyncrt.ConstInt(1)) }, func() { k = k.Sub(asyncrt.ConstInt(1)) }, &k); asyncrt.Either(k.Gt(asyncrt.ConstInt(len(xs))), func() { rateNow = rateNow.Mul(asyncrt.Const(0.5)) }, nil, &rateNow); w = w.MulF64(rateNow)`,
}, {
	name: "nothing to gain",
	loop: `fmt.Println(x.Norm().Item())`,
}}

func TestRestate(t *testing.T) {
	functions := loops(t)
	for i, row := range restated {
		becomes, made, stays := restate(functions[i], numbers.Choice, numbers.RoundTrip)
		if becomes != row.becomes || stays != row.stays {
			t.Errorf("%s: %s\nbecomes\n%s\nwant\n%s\nstays as %s\nwant %s", row.name, row.loop, becomes, row.becomes, stays, row.stays)
		}
		if got, want := slices.Contains(made, numbers.Choice.Name), strings.Contains(becomes, "Either("); got != want {
			t.Errorf("%s: there is a choice: %v, a remark that there is: %v", row.name, want, got)
		}
		if got, want := slices.Contains(made, numbers.RoundTrip.Name), becomes != ""; got != want {
			t.Errorf("%s: something stays on the device: %v, a remark that it does: %v", row.name, want, got)
		}
	}
}

// TestReasons: of several reasons to stay on the host, it is always the same.
func TestReasons(t *testing.T) {
	f := gentest.Functions(t, `func f(w *tensor.Tensor, xs []*tensor.Tensor) *tensor.Tensor {
	for _, x := range xs {
		a, b := x.Norm().Item(), x.Sum().Item()
		c, d := a, b
		func() { a, b, c, d = d, c, b, a }()
		w = w.MulScalar(a * b * c * d)
	}
	return w
}`)[0]
	const want = "it uses a, which a function literal or a pointer leads to"
	for range 20 {
		if _, _, stays := restate(f, numbers.RoundTrip); stays != want {
			t.Fatalf("the reason is %q, want %q", stays, want)
		}
	}
}

// TestParts: what a part makes is not made without it.
func TestParts(t *testing.T) {
	functions := loops(t)
	for i, row := range restated {
		if becomes, made, stays := restate(functions[i]); becomes != "" || made != nil || stays != "" {
			t.Errorf("%s: without parts it becomes %s %v %s", row.name, becomes, made, stays)
		}
		if becomes, made, _ := restate(functions[i], numbers.RoundTrip); strings.Contains(becomes, "Either(") || slices.Contains(made, numbers.Choice.Name) {
			t.Errorf("%s: without choices it becomes %s %v", row.name, becomes, made)
		}
		if becomes, made, _ := restate(functions[i], numbers.Choice); becomes != "" && !strings.Contains(becomes, "Either(") || slices.Contains(made, numbers.RoundTrip.Name) {
			t.Errorf("%s: without round trips it becomes %s %v", row.name, becomes, made)
		}
	}
}

// loops returns a function with each loop of restated.
func loops(t *testing.T) []*plan.Function {
	source := []string{"type model struct{ rate float64 }"}
	for i, row := range restated {
		source = append(source, fmt.Sprintf("func f%d(w *tensor.Tensor, xs []*tensor.Tensor, rate float64, m *model) *tensor.Tensor {\n"+
			"\tfor _, x := range xs {\n\t\t%s\n\t}\n\treturn w\n}", i, row.loop))
	}
	return gentest.Functions(t, source...)
}

// restate returns the body of the loop of f as parts restate it, "" if they don't, the rewrites that the remarks
// are about, and why something stays on the host.
func restate(f *plan.Function, parts ...*numbers.Part) (becomes string, made []string, stays string) {
	g, applied, refused := numbers.Restate(f, parts)
	if g != nil {
		becomes = strings.ReplaceAll(gentest.LoopBody(g), load.RestatedRuntime, "asyncrt")
	}
	for _, r := range applied {
		made = append(made, r.Rule)
	}
	for _, r := range refused {
		stays += r.Because[0].Text
	}
	return becomes, made, stays
}
