package kernel

import (
	"math"
	"testing"
)

// TestDiffAgainstDifferences compares the derivative of each primitive, alone
// and inside a composition, with central differences.
func TestDiffAgainstDifferences(t *testing.T) {
	rnd := newRand(t)
	at := func(e *Expr, args []float64) float64 {
		bits := make([]uint64, len(args))
		for i, a := range args {
			bits[i] = Bits(a)
		}
		return Value[float64](e.Eval(bits, nil))
	}
	x, y, z := Arg(0, f64), Arg(1, f64), Arg(2, f64)
	var exprs []*Expr
	for _, p := range Prims() {
		if p.Func(f64) == nil || p.isComparison() {
			continue
		}
		switch p.Arity() {
		case 1:
			exprs = append(exprs, Apply(p, x), Apply(p, Mul(x, y)), Mul(Apply(p, x), x))
		case 2:
			exprs = append(exprs, Apply(p, x, y), Apply(p, Mul(x, y), Add(z, x)))
		case 3:
			exprs = append(exprs, Where(Lt(x, y), Mul(x, z), Exp(y)))
		}
	}
	exprs = append(exprs, Div(Const(1, f64), Add(Const(1, f64), Exp(Neg(x)))), Mul(Tanh(Add(Mul(x, y), z)), Tanh(Add(Mul(x, y), z))))
	for _, e := range exprs {
		for k := range e.Args() {
			d := Diff(e, k)
			for range 50 {
				args := []float64{0.3 + rnd.Float64(), 0.3 + rnd.Float64(), 0.3 + rnd.Float64()}
				const h = 1e-5
				up, down := append([]float64{}, args...), append([]float64{}, args...)
				up[k] += h
				down[k] -= h
				want := (at(e, up) - at(e, down)) / (2 * h)
				got := at(d, args)
				if math.Abs(want) > 1000 {
					continue // a step of floor, ceil or round
				}
				if math.Abs(got-want) > 1e-6*(1+math.Abs(want)) && math.Abs(args[0]-args[1]) > 2*h {
					t.Errorf("derivative of %v for operand %d is %v = %v at %v, differences say %v", e, k, d, got, args, want)
					break
				}
			}
		}
	}
}

func TestDiffAtEdges(t *testing.T) {
	x, y := Arg(0, f64), Arg(1, f64)
	zero := Const(0, f64)
	inf, nan := math.Inf(1), math.NaN()
	for _, test := range []struct {
		e          *Expr
		arg        int
		x, y, want float64
	}{
		{Abs(x), 0, 0, 0, 0},
		{Abs(x), 0, -3, 0, -1},
		{Abs(x), 0, nan, 0, nan},
		{Max(x, y), 0, 2, 2, 0.5},
		{Max(x, y), 1, 2, 3, 1},
		{Min(x, y), 0, 2, 3, 1},
		{Min(x, y), 1, 2, 2, 0.5},
		{Pow(x, y), 0, 0, 0, 0},
		{Pow(x, y), 0, 3, 2, 6},
		{Pow(x, y), 1, 0, 2, 0},
		{Pow(x, y), 1, 0, 0, 0},
		{Sqrt(x), 0, 0, 0, inf},
		{Exp(x), 0, inf, 0, inf},
		{Where(Le(x, zero), zero, x), 0, 0, 0, 0}, // relu
		{Where(Le(x, zero), zero, x), 0, 2, 0, 1},
		{Where(Lt(zero, x), Log(x), zero), 0, -1, 0, 0}, // the other branch has no say
		{Where(Lt(zero, x), Sqrt(x), zero), 0, 0, 0, 0},
		{Mul(x, Const(0, f64)), 0, 3, 0, 0},
		{Cast(Cast(x, i64), f64), 0, 3, 0, 0}, // through an integer
		{Floor(x), 0, 3.5, 0, 0},
		{Mul(Exp(y), Const(inf, f64)), 0, 1, 1, 0},  // does not depend on x
		{Cast(Tanh(Cast(x, f32)), f64), 0, 0, 0, 1}, // through float32
		{Add(Mul(x, y), Mul(y, x)), 0, 5, 7, 14},
		{Where(Eq(x, y), Const(1, f64), zero), 0, 0, 0, 0}, // constants
		{Pow(x, Const(3, f64)), 0, 2, 0, 12},
		{Log1p(x), 0, 1, 0, 0.5},
		{Expm1(x), 0, math.Inf(-1), 0, 0},
		{Neg(Div(Const(1, f64), x)), 0, 2, 0, 0.25},
		{Erf(x), 0, 0, 0, 2 / math.Sqrt(math.Pi)},
		{Cos(x), 0, math.Pi / 2, 0, -1},
		{Sub(x, y), 1, 2, 2, -1},
		{Sub(Sin(x), Sin(x)), 0, 1, 0, 0},
	} {
		d := Diff(test.e, test.arg)
		if got := Value[float64](d.Eval([]uint64{Bits(test.x), Bits(test.y)}, nil)); !same(got+0, test.want) {
			t.Errorf("derivative of %v for operand %d at %v, %v: %v = %v, want %v", test.e, test.arg, test.x, test.y, d, got, test.want)
		}
	}
}

func TestDiffIsSimple(t *testing.T) {
	x, y := Arg(0, f32), Arg(1, f32)
	c := func(v float64) *Expr { return Const(v, f32) }
	for _, test := range []struct{ e, want *Expr }{
		{Add(x, y), c(1)}, {Sub(y, x), c(-1)}, {Mul(x, y), y}, {Mul(c(3), x), c(3)}, {Add(x, Imm(0, f32)), c(1)},
		{Exp(x), Exp(x)}, {Neg(x), c(-1)}, {y, c(0)}, {Tanh(x), Sub(c(1), Mul(Tanh(x), Tanh(x)))},
		{Div(x, y), Div(c(1), y)}, {Exp(Neg(x)), Neg(Exp(Neg(x)))},
	} {
		if got := Diff(test.e, 0); got != test.want {
			t.Errorf("derivative of %v is %v, want %v", test.e, got, test.want)
		}
	}
	if got := Diff(Lt(x, y), 0); got != Const(0, boolean) {
		t.Errorf("derivative of a comparison is %v", got)
	}
}
