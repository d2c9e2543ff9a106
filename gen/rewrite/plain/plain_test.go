package plain_test

import (
	"fmt"
	"testing"

	"github.com/asyncgen/asyncgen/gen/internal/gentest"
	"github.com/asyncgen/asyncgen/gen/rewrite/plain"
)

// loops are bodies of loops, and what they are in plain form if they are not.
var loops = []struct {
	name, loop, plain string
	made              int // how many remarks there are
}{
	{name: "goes on", loop: `if i%3 != 0 { continue }; sum += s`, plain: `if i%3 == 0 {; sum += s };`, made: 1},
	{name: "goes on after work", loop: `if i%3 != 0 { n++; continue }; sum += s`, plain: `if i%3 != 0 { n++ } else {; sum += s };`, made: 1},
	{name: "goes on twice", loop: `if i == 1 { continue }; n++; if s < 1 { continue }; sum += s`, plain: `if i != 1 {; n++; if !(s < 1) {; sum += s }; };`, made: 2},
	{name: "goes on in the last if", loop: `if i > 1 { if i > 2 { continue }; n++ } else { if i == 0 { continue }; n-- }`, plain: `if i > 1 { if i <= 2 {; n++ }; } else { if i != 0 {; n-- }; }`, made: 2},
	{name: "goes on with the loop around", loop: `if i > 1 { n++ }; for range 3 { if i > 2 { continue }; sum++ }`, plain: `if i > 1 { n++ }; for range 3 { if i <= 2 {; sum++ }; }`, made: 1},
	{name: "goes on with a label", loop: `next: for range 3 { for range 2 { if i > 2 { continue next }; n++ } }`},
	{name: "breaks", loop: `if i > 1 { break }; n++`},
	{name: "a comment", loop: "if i > 1 {\n// why\ncontinue\n}\nn++"},
	{name: "an else", loop: `if i > 1 { continue } else { n-- }; n++`},
	{name: "a name of the head", loop: `if n := i; n > 1 { continue }; n++`},
	{name: "negations", loop: `if !(s < 1) { continue }; if s < 1 && i > 1 { continue }; if i <= n { continue }; if f.ok { continue }; n++`, plain: `if (s < 1) {; if !(s < 1 && i > 1) {; if i > n {; if !(f.ok) {; n++ }; }; }; };`, made: 4},
	{name: "two at once", loop: `sum, n = 0, i`, plain: `sum = 0; n = i`, made: 1},
	{name: "fields at once", loop: `f.sum, f.n = s, 1`, plain: `f.sum = s; f.n = 1`, made: 1},
	{name: "fields of two", loop: `f.sum, g.n = s, 1`},
	{name: "in turn", loop: `n, i = i, n`},
	{name: "computed", loop: `sum, n = s+1, 0`},
	{name: "an inner block", loop: `if i > 1 { sum, n = 0, 0 }`, plain: `if i > 1 { sum = 0; n = 0 }`, made: 1},
	{name: "asks first", loop: `if i%8 == 7 && x.Sum().Item() > s { n++ }`, plain: `if i%8 == 7 { if x.Sum().Item() > s { n++ } }`, made: 1},
	{name: "asks twice first", loop: `if i > 1 && i < 7 && x.Sum().Item() > s && n > 0 { n++ }`, plain: `if i > 1 && i < 7 { if x.Sum().Item() > s && n > 0 { n++ } }`, made: 1},
	{name: "reads first", loop: `if x.Sum().Item() > s && i > 1 { n++ }`},
	{name: "asks, or else", loop: `if i%8 == 7 && x.Sum().Item() > s { n++ } else { n-- }`},
	{name: "in parentheses", loop: `if (i > 1 && x.Sum().Item() > s) { n++ }`},
	{name: "defines a tensor", loop: `if y := x.Sum(); y.Item() > s { n++ } else { n-- }`, plain: `{ y := x.Sum(); if y.Item() > s { n++ } else { n-- } }`, made: 1},
	{name: "defines a tensor and asks", loop: `if y := x.Sum(); i > 1 && y.Item() > s { n++ }`, plain: `{ y := x.Sum(); if i > 1 { if y.Item() > s { n++ } } }`, made: 1},
	{name: "defines a number", loop: `if y := x.Sum().Item(); y > s { n++ }`},
	{name: "defined", loop: `a, b := 0, 0; _, _ = a, b`},
}

func TestForm(t *testing.T) {
	source := []string{"type fields struct { sum float64; n int; ok bool }"}
	for i, row := range loops {
		source = append(source, fmt.Sprintf("func f%d(i int, s float64, x *tensor.Tensor, f, g *fields) (sum float64, n int) {\n"+
			"\tfor range 9 {\n\t\t%s\n\t}\n\treturn sum, n\n}", i, row.loop))
	}
	for i, f := range gentest.Functions(t, source...) {
		got, row := "", loops[i]
		g, made := plain.Form(f)
		if g != nil {
			got = gentest.LoopBody(g)
		}
		if got != row.plain || len(made) != row.made {
			t.Errorf("%s: %s\nis in plain form\n%s, with %d remarks, want\n%s, with %d", row.name, row.loop, got, len(made), row.plain, row.made)
		}
	}
}
