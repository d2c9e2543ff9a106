package kernel

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/asyncgen/asyncgen/device"
)

var seedFlag = flag.Uint64("seed", 0, "seed of the randomised tests; 0 picks one")

func newRand(t *testing.T) *rand.Rand {
	seed := *seedFlag
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 1))
}

const f32, f64, i64, boolean = device.Float32, device.Float64, device.Int64, device.Bool

var edges = []float64{
	0, math.Copysign(0, -1), 1, -1, 0.5, -0.5, 2, 3, -2.5, 1e-3, 10, 1e300, -1e300, 5e-324, -1e-310, 1e-45,
	math.MaxFloat32, math.Inf(1), math.Inf(-1), math.NaN(), 1.5, 2.5, math.Pi, 88.8, -104, 1 << 53,
}

func TestEqualExpressionsAreTheSamePointer(t *testing.T) {
	build := func() *Expr {
		x, y := Arg(0, f32), Arg(1, f32)
		return Mul(Tanh(Add(x, y)), Tanh(Add(x, y)))
	}
	if build() != build() {
		t.Error("the same expression built twice is two expressions")
	}
	e := build()
	if e.In()[0] != e.In()[1] {
		t.Error("a common subexpression is not shared")
	}
	if n := len(e.Nodes()); n != 5 {
		t.Errorf("%v has %d nodes, want x, y, x+y, tanh, product", e, n)
	}
	if Add(Arg(0, f32), Arg(1, f32)).Key() == Add(Arg(1, f32), Arg(0, f32)).Key() {
		t.Error("x+y and y+x have one key")
	}
	if got := e.Args(); got != 2 {
		t.Errorf("Args() = %d, want 2", got)
	}
}

func TestString(t *testing.T) {
	x, y, z := Arg(0, f32), Arg(1, f32), Arg(2, f32)
	for _, test := range []struct {
		e    *Expr
		want string
	}{
		{Mul(Tanh(x), y), "tanh(x) * y"},
		{Mul(Add(x, y), z), "(x + y) * z"},
		{Neg(Add(x, y)), "-(x + y)"},
		{Exp(Neg(x)), "exp(-x)"},
		{Where(Lt(x, y), Max(x, z), Imm(1, f32)), "(x < y) ? max(x, z) : imm1"},
		{Cast(Sub(x, Const(0.1, f32)), i64), "int64(x - 0.1)"},
		{Not(And(Arg(0, boolean), Arg(1, boolean))), "!(x && y)"},
	} {
		if got := test.e.String(); got != test.want {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
}

func TestImpossibleExpressionsPanic(t *testing.T) {
	x, n, b := Arg(0, f32), Arg(0, i64), Arg(0, boolean)
	for want, f := range map[string]func(){
		"add is not defined for float32, int64":          func() { Add(x, n) },
		"add is not defined for bool, bool":              func() { Add(b, b) },
		"sqrt is not defined for int64":                  func() { Sqrt(n) },
		"and is not defined for float32, float32":        func() { And(x, x) },
		"where is not defined for float32, int64, int64": func() { Where(x, n, n) },
		"where is not defined for bool, int64, float32":  func() { Where(b, n, x) },
		"add takes 2 operands, not 1":                    func() { Apply(PrimAdd, x) },
		"use Cast":                                       func() { Apply(PrimCast, x) },
		"operand 7":                                      func() { Arg(7, f32) },
		"immediate 8":                                    func() { Imm(8, f32) },
	} {
		func() {
			defer func() {
				if got := fmt.Sprint(recover()); !strings.Contains(got, want) {
					t.Errorf("got panic %q, want one that says %q", got, want)
				}
			}()
			f()
		}()
	}
}

func same[T float32 | float64](x, y T) bool {
	return x != x && y != y || x == y && math.Signbit(float64(x)) == math.Signbit(float64(y))
}

func TestFloatPrimitives(t *testing.T) {
	unary := map[Prim]func(float64) float64{
		// exp and the like: see TestFunctions32
		PrimNeg: func(x float64) float64 { return -x }, PrimAbs: math.Abs, PrimSqrt: math.Sqrt,
		PrimFloor: math.Floor, PrimCeil: math.Ceil, PrimRound: math.RoundToEven,
	}
	binary := map[Prim]func(x, y float64) float64{
		PrimAdd: func(x, y float64) float64 { return x + y }, PrimSub: func(x, y float64) float64 { return x - y },
		PrimMul: func(x, y float64) float64 { return x * y }, PrimDiv: func(x, y float64) float64 { return x / y },
		PrimMax: math.Max, PrimMin: math.Min, PrimPow: math.Pow,
	}
	compare := map[Prim]func(x, y float64) bool{
		PrimEq: func(x, y float64) bool { return x == y }, PrimNe: func(x, y float64) bool { return x != y },
		PrimLt: func(x, y float64) bool { return x < y }, PrimLe: func(x, y float64) bool { return x <= y },
	}
	// math.Max(Inf, NaN) is Inf; ours is NaN. Pow(1, NaN) is 1 in both.
	nanWins := func(p Prim, x, y float64) bool { return (p == PrimMax || p == PrimMin) && (x != x || y != y) }
	for _, p := range Prims() {
		for _, x := range edges {
			if f := unary[p]; f != nil {
				e := Apply(p, Arg(0, f64))
				if got := Value[float64](e.Eval([]uint64{Bits(x)}, nil)); !same(got, f(x)) {
					t.Errorf("%v of %v = %v, want %v", p, x, got, f(x))
				}
				x32 := float32(x)
				e = Apply(p, Arg(0, f32))
				if got := Value[float32](e.Eval([]uint64{Bits(x32)}, nil)); !same(got, float32(f(float64(x32)))) {
					t.Errorf("float32 %v of %v = %v, want %v", p, x32, got, float32(f(float64(x32))))
				}
			}
			for _, y := range edges {
				if f := binary[p]; f != nil && !(p == PrimPow && x == 5e-324 && y != math.Trunc(y)) {
					want := f(x, y)
					if nanWins(p, x, y) {
						want = math.NaN()
					}
					e := Apply(p, Arg(0, f64), Arg(1, f64))
					// see TestPow64
					if got := Value[float64](e.Eval([]uint64{Bits(x), Bits(y)}, nil)); p != PrimPow && !same(got, want) {
						t.Errorf("%v of %v, %v = %v, want %v", p, x, y, got, want)
					}
					// One operation in float64, rounded to float32, is the float32 operation.
					x, y := float32(x), float32(y)
					want = f(float64(x), float64(y))
					if nanWins(p, float64(x), float64(y)) {
						want = math.NaN()
					}
					e = Apply(p, Arg(0, f32), Arg(1, f32))
					if got := Value[float32](e.Eval([]uint64{Bits(x), Bits(y)}, nil)); !same(got, float32(want)) {
						t.Errorf("float32 %v of %v, %v = %v, want %v", p, x, y, got, float32(want))
					}
				}
				if f := compare[p]; f != nil {
					e := Apply(p, Arg(0, f64), Arg(1, f64))
					if got := Value[bool](e.Eval([]uint64{Bits(x), Bits(y)}, nil)); got != f(x, y) {
						t.Errorf("%v of %v, %v = %v", p, x, y, got)
					}
				}
			}
		}
	}
}

// The logarithm of a denormal number takes its true exponent.
func TestLogarithmsOfDenormals(t *testing.T) {
	x, y := Arg(0, f64), Arg(1, f64)
	for _, test := range []struct {
		e          *Expr
		x, y, want float64
	}{
		{Log(x), 5e-324, 0, -744.4400719213812},
		{Log(x), 0x1p-1060, 0, -1060 * math.Ln2},
		{Log(x), 0x1p-1022, 0, -1022 * math.Ln2},
		{Pow(x, y), 0x1p-1060, -0.25, 0x1p265},
		{Pow(x, y), 0x1p-1072, 0.125, 0x1p-134},
		{Pow(x, y), 0x1p-1060, 0.5, 0x1p-530},
		{Pow(x, y), 1e-310, 1, 1e-310},
		{Pow(x, y), 1e-310, math.Inf(1), 0},
	} {
		got := Value[float64](test.e.Eval([]uint64{Bits(test.x), Bits(test.y)}, nil))
		if math.Abs(got-test.want) > 1e-13*math.Abs(test.want) {
			t.Errorf("%v of %v, %v = %v, want %v", test.e, test.x, test.y, got, test.want)
		}
	}
}

func TestIntegerPrimitives(t *testing.T) {
	x, y := Arg(0, i64), Arg(1, i64)
	for _, test := range []struct {
		e          *Expr
		x, y, want int64
	}{
		{Add(x, y), math.MaxInt64, 1, math.MinInt64},
		{Mul(x, y), math.MaxInt64, 2, -2},
		{Sub(x, y), math.MinInt64, 1, math.MaxInt64},
		{Neg(x), math.MinInt64, 0, math.MinInt64},
		{Abs(x), -5, 0, 5},
		{Abs(x), math.MinInt64, 0, math.MinInt64},
		{Div(x, y), 7, 2, 3},
		{Div(x, y), -7, 2, -3},
		{Div(x, y), math.MinInt64, -1, math.MinInt64},
		{Pow(x, y), 3, 4, 81},
		{Pow(x, y), -3, 3, -27},
		{Pow(x, y), 2, 64, 0},
		{Pow(x, y), 0, 0, 1},
		{Pow(x, y), 2, -1, 0},
		{Pow(x, y), 1, -3, 1},
		{Pow(x, y), -1, -3, -1},
		{Pow(x, y), -1, -4, 1},
		{Max(x, y), -3, 4, 4},
		{Min(x, y), -3, 4, -3},
	} {
		if got := int64(test.e.Eval([]uint64{uint64(test.x), uint64(test.y)}, nil)); got != test.want {
			t.Errorf("%v of %d, %d = %d, want %d", test.e, test.x, test.y, got, test.want)
		}
	}
	for _, e := range []*Expr{Div(x, y), Pow(y, Neg(x))} {
		func() {
			defer func() {
				if got := fmt.Sprint(recover()); !strings.Contains(got, "divide by zero") {
					t.Errorf("%v: got panic %q, want Go's for a division by zero", e, got)
				}
			}()
			e.Eval([]uint64{1, 0}, nil)
		}()
	}
}

func TestCast(t *testing.T) {
	for _, test := range []struct {
		x    float64
		want int64
	}{
		{1.9, 1}, {-1.9, -1}, {math.NaN(), 0}, {math.Inf(1), math.MaxInt64}, {math.Inf(-1), math.MinInt64},
		{1e19, math.MaxInt64}, {-1e19, math.MinInt64}, {-1 << 63, math.MinInt64}, {1 << 62, 1 << 62},
	} {
		if got := int64(Cast(Arg(0, f64), i64).Eval([]uint64{Bits(test.x)}, nil)); got != test.want {
			t.Errorf("int64(%v) = %d, want %d", test.x, got, test.want)
		}
		if got := int64(Cast(Arg(0, f32), i64).Eval([]uint64{Bits(float32(test.x))}, nil)); got != test.want {
			t.Errorf("int64(float32(%v)) = %d, want %d", test.x, got, test.want)
		}
	}
	for _, from := range device.DTypes() {
		for _, to := range device.DTypes() {
			isMade := from.IsStorage() && to != from.Wide() || to.IsStorage() && (from == boolean || to.Wide() == i64 && from != i64)
			if (CastFunc(from, to) == nil) != (isMade || from == to) {
				t.Errorf("CastFunc(%v, %v) = %T", from, to, CastFunc(from, to))
			}
			// 0 and 1 survive every conversion and back.
			for _, v := range []float64{0, 1} {
				e := Cast(Cast(Arg(0, from), to), from)
				if got := e.Eval([]uint64{BitsOf(v, from)}, nil); got != BitsOf(v, from) {
					t.Errorf("%v to %v and back turns %v into %#x", from, to, v, got)
				}
			}
		}
	}
	if got := Value[float32](BitsOf(0.1, f32)); got != float32(0.1) {
		t.Errorf("0.1 as float32 is %v", got)
	}
	if got := Value[bool](BitsOf(math.NaN(), boolean)); !got {
		t.Error("NaN is false")
	}
}

// TestSimplificationChangesNoBit builds random expressions out of parts that invite simplification. It
// compares their values with those computed step by step without expressions.
func TestSimplificationChangesNoBit(t *testing.T) {
	rnd := newRand(t)
	consts := []float64{0, math.Copysign(0, -1), 1, -1, 2, math.Inf(1), math.NaN()}
	prims := []Prim{PrimNeg, PrimAbs, PrimAdd, PrimSub, PrimMul, PrimDiv, PrimMax, PrimMin, PrimPow, PrimSqrt, PrimWhere, PrimCast}
	type pair struct {
		e *Expr
		v float64
	}
	simplified := 0
	for range 20000 {
		args := []float64{edges[rnd.IntN(len(edges))], edges[rnd.IntN(len(edges))]}
		args[0] = float64(float32(args[0])) // so that the round trip through float32 keeps it
		pool := []pair{{Arg(0, f64), args[0]}, {Arg(1, f64), args[1]}}
		for _, c := range consts {
			pool = append(pool, pair{Const(c, f64), c})
		}
		var last pair
		for range 6 {
			pick := func() pair { return pool[rnd.IntN(len(pool))] }
			p, x, y := prims[rnd.IntN(len(prims))], pick(), pick()
			switch {
			case p == PrimCast:
				last = pair{Cast(Cast(x.e, f32), f64), float64(float32(x.v))}
			case p == PrimWhere:
				last = pair{Where(Lt(x.e, y.e), x.e, y.e), where(x.v < y.v, x.v, y.v)}
			case p.Arity() == 1:
				last = pair{Apply(p, x.e), p.Func(f64).(func(float64) float64)(x.v)}
			default:
				last = pair{Apply(p, x.e, y.e), p.Func(f64).(func(float64, float64) float64)(x.v, y.v)}
				if last.e.Kind() != Application || last.e.Prim() != p {
					simplified++
				}
			}
			pool = append(pool, last)
		}
		if got := Value[float64](last.e.Eval([]uint64{Bits(args[0]), Bits(args[1])}, nil)); !same(got, last.v) {
			t.Fatalf("%v of %v = %v, want %v", last.e, args, got, last.v)
		}
	}
	if simplified == 0 {
		t.Error("nothing was simplified")
	}
}

func TestSimplify(t *testing.T) {
	x, n, b := Arg(0, f32), Arg(0, i64), Arg(0, boolean)
	c := func(v float64) *Expr { return Const(v, f32) }
	for i, test := range []struct{ got, want *Expr }{
		{Mul(x, c(1)), x}, {Mul(c(1), x), x}, {Mul(x, c(-1)), Neg(x)}, {Mul(c(-1), x), Neg(x)}, {Div(x, c(1)), x}, {Sub(x, c(0)), x},
		{Add(x, c(math.Copysign(0, -1))), x}, {Add(c(math.Copysign(0, -1)), x), x}, {Neg(Neg(x)), x}, {Pow(x, c(1)), x}, {Max(x, x), x},
		{Add(c(1), c(2)), c(3)}, {Where(Const(1, boolean), x, c(2)), x}, {Where(Const(0, boolean), x, c(2)), c(2)}, {Where(b, x, x), x},
		{Add(n, Const(0, i64)), n}, {Mul(n, Const(0, i64)), Const(0, i64)}, {Not(Not(b)), b},
		{And(b, Const(1, boolean)), b}, {And(Const(1, boolean), b), b}, {And(b, Const(0, boolean)), Const(0, boolean)},
		{Or(b, Const(0, boolean)), b}, {Or(Const(0, boolean), b), b}, {Or(b, Const(1, boolean)), Const(1, boolean)},
		{Cast(x, f32), x}, {Cast(Cast(x, f64), f32), x}, {Gt(x, c(2)), Lt(c(2), x)}, {Ge(x, c(2)), Le(c(2), x)},
	} {
		if test.got != test.want {
			t.Errorf("%d: got %v, want %v", i, test.got, test.want)
		}
	}
	for _, kept := range []*Expr{Add(x, c(0)), Mul(x, c(0)), Sub(x, x), Eq(x, x), Cast(Cast(Arg(0, f64), f32), f64), Div(Const(1, i64), Const(0, i64))} {
		if kept.Kind() != Application {
			t.Errorf("%v is not the same for all operands", kept)
		}
	}
}

// newRandFrom is for a parallel test of its own.
func newRandFrom(r *rand.Rand) *rand.Rand { return rand.New(rand.NewPCG(r.Uint64(), r.Uint64())) }
