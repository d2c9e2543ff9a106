package naming_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/asyncgen/asyncgen/gen/internal/gentest"
	"github.com/asyncgen/asyncgen/gen/internal/plan"
	"github.com/asyncgen/asyncgen/gen/rewrite"
)

// named are bodies of functions with the loops to plan, and the names that the plan has: of each backlog, and what is
// taken and copied for its entries.
var named = []struct{ name, body, names string }{{
	name:  "a read",
	body:  `for _, x := range xs { fmt.Println(x.Sum().Item()) }`,
	names: `later: sumAt (keeps reads)`,
}, {
	name:  "a variable",
	body:  `for _, x := range xs { loss := x.Sum(); fmt.Println(loss.Item(), loss.Item()) }`,
	names: `later: lossAt (keeps reads)`,
}, {
	name:  "a copy",
	body:  `n := 0; for _, x := range xs { n++; w = w.MulScalar(float64(n)); fmt.Println(n, x.Item()) }`,
	names: `later: xAt nAt (keeps reads)`,
}, {
	name:  "names that are in use",
	body:  `sumAt, later := 0, 0; for _, x := range xs { fmt.Println(x.Sum().Item()) }; fmt.Println(sumAt, later)`,
	names: `later2: sumAt2 (keeps reads)`,
}, {
	name:  "names of the package",
	body:  `for _, x := range xs { fmt.Println(x.Mean().Item()) }`,
	names: `later: meanAt2 (keeps reads)`,
}, {
	name:  "two loops",
	body:  `for _, x := range xs { fmt.Println(x.Sum().Item()) }; for _, x := range xs { fmt.Println(x.Sum().Item()) }`,
	names: `later: sumAt sumAt2 (keeps reads)`,
}, {
	name:  "a defer between",
	body:  `for _, x := range xs { fmt.Println(x.Sum().Item()) }; defer fmt.Println(); for _, x := range xs { fmt.Println(x.Sum().Item()) }`,
	names: `later: sumAt (keeps reads); later2: sumAt2 (keeps reads)`,
}, {
	name:  "two blocks",
	body:  `{ for _, x := range xs { fmt.Println(x.Sum().Item()) } }; for _, x := range xs { fmt.Println(x.Sum().Item()) }`,
	names: `later: sumAt (keeps reads); later2: sumAt2 (keeps reads)`,
}, {
	name:  "an entry after the other",
	body:  `for _, x := range xs { l := x.Sum(); fmt.Println(l.Item()); w = w.Add(x); fmt.Println(l.Item()) }`,
	names: `later: lAt (keeps reads)`,
}, {
	name:  "an exit",
	body:  `for _, x := range xs { w = w.Sub(x); if w.Sum().Item() < 1 { break } }`,
	names: `later: end ok an_exitEnd sumAt`,
}, {
	name:  "tensors",
	body:  `for _, x := range xs { all := x.Exp(); fmt.Println(all.Sum().Item(), all.Shape()) }`,
	names: `later: sumAt`,
}, {
	name:  "rows",
	body:  `for i := range 9 { fmt.Println(w.Row(i).Sum().Item()) }`,
	names: `later: sumRows`,
}, {
	name:  "rows that are kept",
	body:  `var list []*tensor.Tensor; for i := range 9 { h := w.Row(i).Exp(); list = append(list, h.Tanh()) }; w = tensor.Stack(0, list...)`,
	names: `row tanhRows`,
}, {
	name:  "in two parts",
	body:  `for _, x := range xs { total += mean(x) }`,
	names: `later: meanAt2 (keeps reads)`,
}}

func TestName(t *testing.T) {
	source := []string{"var meanAt int", "func mean(x *tensor.Tensor) float64 { return x.Mean().Item() }"}
	for _, row := range named {
		source = append(source, fmt.Sprintf("func %s(w *tensor.Tensor, xs []*tensor.Tensor) (_ *tensor.Tensor, total float64) {\n"+
			"\t%s\n\treturn w, total\n}", strings.ReplaceAll(row.name, " ", "_"), row.body))
	}
	for i, f := range gentest.Functions(t, source...)[1:] {
		d, _ := rewrite.Function(f, nil)
		if names := namesOf(d); names != named[i].names {
			t.Errorf("%s: %s\nhas the names %s, want %s", named[i].name, named[i].body, names, named[i].names)
		}
	}
}

// namesOf returns the names that d declares: that of a backlog in front of those of its entries. It says which backlogs
// keep nothing but what is read.
func namesOf(d *plan.Deferral) string {
	var names []string
	for _, l := range d.Laters {
		of := []string{l.Name + ":"}
		for _, r := range l.Regions {
			if r.Exits != nil {
				of = append(of, r.Exits.End, r.Exits.OK, l.State.Type)
			}
			for _, g := range r.Groups {
				for _, t := range g.Takes {
					of = append(of, t.Name)
				}
				for _, c := range g.Copies {
					of = append(of, c.Name)
				}
			}
		}
		if l.KeepsReads {
			of = append(of, "(keeps reads)")
		}
		names = append(names, strings.Join(of, " "))
	}
	for _, k := range d.Keeps {
		names = append(names, k.Param+" "+k.Name)
	}
	return strings.Join(names, "; ")
}
