package fuse_test

import (
	"fmt"
	"testing"

	"github.com/asyncgen/asyncgen/gen/internal/gentest"
	"github.com/asyncgen/asyncgen/gen/rewrite/fuse"
)

// loops are bodies of loops, and what they are with chains marked if they have any.
var loops = []struct {
	name, loop, fused string
	made              int // how many remarks there are
}{
	{name: "two are few", loop: `w = w.Sub(x.MulScalar(0.1))`},
	{name: "three", loop: `w = w.Sub(x).Abs().Sqrt()`, fused: `w = w.Lazy().Sub(x).Abs().Sqrt().Eager()`, made: 1},
	{name: "an operand is made", loop: `w = w.Sub(x.MulScalar(0.1)).Neg()`, fused: `w = w.Sub(x.Lazy().MulScalar(0.1)).Neg().Eager()`, made: 1},
	{name: "two operands are made", loop: `w = w.Neg().Sub(x.Abs())`, fused: `w = w.Lazy().Neg().Sub(x.Lazy().Abs()).Eager()`, made: 1},
	{name: "a sum ends it", loop: `s := w.Sub(x).Square().Neg().Sum(); w = w.Sub(s)`, fused: `s := w.Lazy().Sub(x).Square().Neg().Sum(); w = w.Sub(s)`, made: 1},
	{name: "a product does not", loop: `w = w.Sub(x).Square().Neg().MatMul(x)`, fused: `w = w.Lazy().Sub(x).Square().Neg().Eager().MatMul(x)`, made: 1},
	{name: "from a product on", loop: `w = w.MatMul(x).Neg().Exp().Sqrt()`, fused: `w = w.MatMul(x).Lazy().Neg().Exp().Sqrt().Eager()`, made: 1},
	{name: "a choice", loop: `w = tensor.Where(x.GtScalar(0), x.Neg(), w)`, fused: `w = tensor.Where(x.Lazy().GtScalar(0), x.Lazy().Neg(), w).Eager()`, made: 1},
	{name: "a conversion", loop: `w = x.As(tensor.Float64).Neg().As(tensor.Float32)`, fused: `w = x.Lazy().As(tensor.Float64).Neg().As(tensor.Float32).Eager()`, made: 1},
	{name: "a variable in between", loop: `d := w.Sub(x); w = d.Mul(d).Neg()`, fused: `d := w.Lazy().Sub(x); w = d.Mul(d).Neg().Eager()`, made: 1},
	{name: "two variables", loop: `d := w.Sub(x); e := d.Abs(); w = e.Mul(x)`, fused: `d := w.Lazy().Sub(x); e := d.Abs(); w = e.Mul(x).Eager()`, made: 1},
	{name: "a variable of two chains", loop: `d := w.Sub(x); e := d.Abs().Sqrt().Neg(); w = d.Mul(e)`, fused: `d := w.Sub(x); e := d.Lazy().Abs().Sqrt().Neg(); w = d.Lazy().Mul(e).Eager()`, made: 1},
	{name: "a variable that is kept", loop: `d := w.Sub(x); w = d.Mul(d).Neg(); keep = d`},
	{name: "a variable of an inner loop", loop: `d := w.Sub(x); for range 2 { w = d.Mul(w).Neg() }`},
	{name: "a variable that changes", loop: `d := w.Sub(x); d = d.Abs(); w = d.Mul(x)`},
	{name: "inside of an operand", loop: `w = w.MatMul(x.Neg().Exp().Sqrt())`, fused: `w = w.MatMul(x.Lazy().Neg().Exp().Sqrt().Eager())`, made: 1},
	{name: "inside of a number", loop: `w = w.MulScalar(x.Neg().Exp().Sqrt().Item())`, fused: `w = w.MulScalar(x.Lazy().Neg().Exp().Sqrt().Eager().Item())`, made: 1},
	{name: "in a literal", loop: `f := func() *tensor.Tensor { return x.Neg().Exp().Sqrt() }; w = f()`},
	{name: "deferred", loop: `defer x.Neg().Exp().Sqrt()`},
	{name: "of what embeds a tensor", loop: `e := struct{ *tensor.Tensor }{x}; w = e.Neg().Abs().Sqrt()`},
	{name: "a method expression", loop: `w = (*tensor.Tensor).Neg(x).Exp().Sqrt(); w = w.Sub(x).Abs().Sqrt()`, fused: `w = (*tensor.Tensor).Neg(x).Exp().Sqrt(); w = w.Lazy().Sub(x).Abs().Sqrt().Eager()`, made: 1},
	{name: "lazy already", loop: `w = w.Lazy().Sub(x).Abs().Eager()`},
}

func TestForm(t *testing.T) {
	var source []string
	for i, row := range loops {
		source = append(source, fmt.Sprintf("func f%d(w, x *tensor.Tensor) (a, keep *tensor.Tensor) {\n"+
			"\tfor range 9 {\n\t\t%s\n\t}\n\treturn w, keep\n}", i, row.loop))
	}
	for i, f := range gentest.Functions(t, source...) {
		got, row := "", loops[i]
		g, made := fuse.Form(f)
		if g != nil {
			got = gentest.LoopBody(g)
		}
		if got != row.fused || len(made) != row.made {
			t.Errorf("%s: %s\nis fused\n%s, with %d remarks, want\n%s, with %d", row.name, row.loop, got, len(made), row.fused, row.made)
		}
	}
}
