package kernel

import (
	"fmt"
	"math"

	"github.com/asyncgen/asyncgen/device"
)

// A Prim is a primitive: a function of up to three scalars. Expressions are made of primitives, and
// every backend implements them.
type Prim uint8

// The primitives. All operands of an application have the same type, except the condition of where.
const (
	PrimNeg Prim = iota
	PrimAbs
	PrimAdd
	PrimSub
	PrimMul
	PrimDiv // int64: truncated; a zero divisor panics with Go's runtime error
	PrimMax
	PrimMin
	PrimPow // int64: x**-n is 1/x**n, truncated; a negative power of 0 panics like a zero divisor
	PrimMod // what truncated division leaves, with the sign of the dividend
	PrimSqrt
	PrimExp
	PrimExpm1
	PrimLog
	PrimLog1p
	PrimSin
	PrimCos
	PrimTanh
	PrimErf
	PrimFloor
	PrimCeil
	PrimRound // half to even
	PrimShl   // from 64 on and below 0, a count shifts all bits out
	PrimShr   // of the number with its sign; counts as PrimShl
	PrimEq
	PrimNe
	PrimLt
	PrimLe
	PrimAnd // int64: bit by bit, as the next two
	PrimOr
	PrimNot
	PrimWhere // the second operand where the first is true, else the third
	PrimCast
)

// A primitive is one row of the table. It is defined for the types that it has functions for.
type primitive struct {
	name  string
	arity int
	text  string  // for people, in C's notation; x, y and z are the operands
	funcs perType // by the operands' dtype: func(T) T, func(T, T) T, func(T, T) bool or func(bool, T, T) T
	// partial is the derivative with respect to operand k of e, an application
	// of this primitive to floating-point operands; nil means 0 everywhere.
	partial func(e *Expr, k int) *Expr
}

// perType has a Go function for each element type, or nil.
type perType [device.NumDTypes]any

// funcs sorts Go functions by the type of their last operand.
func funcs(fs ...any) (byType perType) {
	for _, f := range fs {
		switch f.(type) {
		case func(float32) float32, func(float32, float32) float32, func(float32, float32) bool, func(bool, float32, float32) float32:
			byType[device.Float32] = f
		case func(float64) float64, func(float64, float64) float64, func(float64, float64) bool, func(bool, float64, float64) float64:
			byType[device.Float64] = f
		case func(int64) int64, func(int64, int64) int64, func(int64, int64) bool, func(bool, int64, int64) int64:
			byType[device.Int64] = f
		case func(bool) bool, func(bool, bool) bool, func(bool, bool, bool) bool:
			byType[device.Bool] = f
		default:
			panic(fmt.Sprintf("kernel: a primitive can't be a %T", f))
		}
	}
	return byType
}

// float are the functions of a primitive for floats only. f must be correctly rounded. A float32 is
// computed in float64 and then rounded.
func float(f func(float64) float64) perType {
	return funcs(f, func(x float32) float32 { return float32(f(float64(x))) })
}

var table [PrimCast + 1]primitive

func init() { // an initialiser would refer to itself: the derivatives use the table
	table = [...]primitive{
		PrimNeg: {"neg", 1, "-x", funcs(neg[float32], neg[float64], neg[int64]),
			func(e *Expr, _ int) *Expr { return like(e, -1) }},
		PrimAbs: {"abs", 1, "abs(x)", funcs(abs[float32], abs[float64], absInt),
			func(e *Expr, _ int) *Expr { return sign(e.in[0]) }},
		PrimAdd: {"add", 2, "x + y", funcs(add[float32], add[float64], add[int64]),
			func(e *Expr, _ int) *Expr { return like(e, 1) }},
		PrimSub: {"sub", 2, "x - y", funcs(sub[float32], sub[float64], sub[int64]),
			func(e *Expr, k int) *Expr { return like(e, 1-2*float64(k)) }},
		PrimMul: {"mul", 2, "x * y", funcs(mul[float32], mul[float64], mul[int64]),
			func(e *Expr, k int) *Expr { return e.in[1-k] }},
		PrimDiv: {"div", 2, "x / y", funcs(div[float32], div[float64], div[int64]),
			func(e *Expr, k int) *Expr {
				if k == 0 {
					return Div(like(e, 1), e.in[1])
				}
				return Neg(Div(e, e.in[1]))
			}},
		PrimMax: {"max", 2, "max(x, y)", funcs(maximum[float32], maximum[float64], maximum[int64]),
			func(e *Expr, k int) *Expr { return winner(e.in[1-k], e.in[k]) }},
		PrimMin: {"min", 2, "min(x, y)", funcs(minimum[float32], minimum[float64], minimum[int64]),
			func(e *Expr, k int) *Expr { return winner(e.in[k], e.in[1-k]) }},
		PrimPow: {"pow", 2, "pow(x, y)", funcs(pow32, pow64, powInt), partialPow},
		PrimMod: {"mod", 2, "fmod(x, y)", funcs(mod32, math.Mod),
			func(e *Expr, k int) *Expr {
				if k == 0 {
					return like(e, 1)
				}
				return Neg(Trunc(Div(e.in[0], e.in[1])))
			}},
		PrimSqrt: {"sqrt", 1, "sqrt(x)", float(math.Sqrt),
			func(e *Expr, _ int) *Expr { return Div(like(e, 0.5), e) }},
		PrimExp: {"exp", 1, "exp(x)", funcs(exp32, exp64),
			func(e *Expr, _ int) *Expr { return e }},
		PrimExpm1: {"expm1", 1, "expm1(x)", funcs(expm1f32, expm1f64),
			func(e *Expr, _ int) *Expr { return Exp(e.in[0]) }},
		PrimLog: {"log", 1, "log(x)", funcs(log32of, log64of),
			func(e *Expr, _ int) *Expr { return Div(like(e, 1), e.in[0]) }},
		PrimLog1p: {"log1p", 1, "log1p(x)", funcs(log1pf32, log1pf64),
			func(e *Expr, _ int) *Expr { return Div(like(e, 1), Add(like(e, 1), e.in[0])) }},
		PrimSin: {"sin", 1, "sin(x)", funcs(sin32, sin64),
			func(e *Expr, _ int) *Expr { return Cos(e.in[0]) }},
		PrimCos: {"cos", 1, "cos(x)", funcs(cos32, cos64),
			func(e *Expr, _ int) *Expr { return Neg(Sin(e.in[0])) }},
		PrimTanh: {"tanh", 1, "tanh(x)", funcs(tanh32, tanh64),
			func(e *Expr, _ int) *Expr { return Sub(like(e, 1), Mul(e, e)) }},
		PrimErf: {"erf", 1, "erf(x)", funcs(erf32, erf64),
			func(e *Expr, _ int) *Expr {
				return Mul(like(e, 2/math.Sqrt(math.Pi)), Exp(Neg(Mul(e.in[0], e.in[0]))))
			}},
		PrimFloor: {"floor", 1, "floor(x)", float(math.Floor), nil},
		PrimCeil:  {"ceil", 1, "ceil(x)", float(math.Ceil), nil},
		PrimRound: {"round", 1, "rint(x)", float(math.RoundToEven), nil},
		PrimShl:   {"shl", 2, "x << y", funcs(func(x, n int64) int64 { return x << uint64(n) }), nil},
		PrimShr:   {"shr", 2, "x >> y", funcs(func(x, n int64) int64 { return x >> uint64(n) }), nil},
		PrimEq:    {"eq", 2, "x == y", funcs(eq[float32], eq[float64], eq[int64], eq[bool]), nil},
		PrimNe:    {"ne", 2, "x != y", funcs(ne[float32], ne[float64], ne[int64], ne[bool]), nil},
		PrimLt:    {"lt", 2, "x < y", funcs(lt[float32], lt[float64], lt[int64]), nil},
		PrimLe:    {"le", 2, "x <= y", funcs(le[float32], le[float64], le[int64]), nil},
		PrimAnd:   {"and", 2, "x && y", funcs(func(x, y bool) bool { return x && y }, func(x, y int64) int64 { return x & y }), nil},
		PrimOr:    {"or", 2, "x || y", funcs(func(x, y bool) bool { return x || y }, func(x, y int64) int64 { return x | y }), nil},
		PrimNot:   {"not", 1, "!x", funcs(func(x bool) bool { return !x }, func(x int64) int64 { return ^x }), nil},
		// Diff itself knows the derivatives of where and cast.
		PrimWhere: {"where", 3, "x ? y : z", funcs(where[float32], where[float64], where[int64], where[bool]), nil},
		PrimCast:  {"cast", 1, "", perType{}, nil},
	}
}

// Prims lists all primitives, in order.
func Prims() []Prim {
	all := make([]Prim, len(table))
	for i := range all {
		all[i] = Prim(i)
	}
	return all
}

// String is p's name: "add".
func (p Prim) String() string { return table[p].name }

// Arity is the number of operands.
func (p Prim) Arity() int { return table[p].arity }

// Func is p as a Go function of operands of type T, the Go type of dt:
// func(T) T, func(T, T) T, for comparisons func(T, T) bool, for where
// func(bool, T, T) T. It is nil where p is not defined, and for cast: see
// [CastFunc].
func (p Prim) Func(dt device.DType) any { return table[p].funcs[dt] }

func (p Prim) text() string { return table[p].text }

func (p Prim) isComparison() bool { return PrimEq <= p && p <= PrimLe }

// like is v in the type of e.
func like(e *Expr, v float64) *Expr { return Const(v, e.dtype) }

// sign is 1 or -1, and x itself where x is 0 or NaN.
func sign(x *Expr) *Expr {
	return Where(Lt(like(x, 0), x), like(x, 1), Where(Lt(x, like(x, 0)), like(x, -1), x))
}

// winner is the derivative of Max(a, b) with respect to b: 1 where b is greater, 0 where a is, 1/2
// where they are equal. If one is NaN it is 1 for both operands, so that a gradient that is NaN
// does not vanish. The derivative of Min is the same with a and b exchanged.
func winner(a, b *Expr) *Expr {
	return Where(Lt(b, a), like(a, 0), Where(Eq(a, b), like(a, 0.5), like(a, 1)))
}

// partialPow is 0 where Pow does not depend on the operand, even if a factor of the derivative is
// infinite there. x**0 does not depend on x; for y >= 0, 0**y does not depend on y.
func partialPow(e *Expr, k int) *Expr {
	x, y, zero := e.in[0], e.in[1], like(e, 0)
	if k == 0 {
		return Where(Eq(y, zero), zero, Mul(y, Pow(x, Sub(y, like(e, 1)))))
	}
	return Where(And(Eq(x, zero), Le(zero, y)), zero, Mul(e, Log(x)))
}

type number interface{ float32 | float64 | int64 }

func neg[T number](x T) T        { return -x }
func add[T number](x, y T) T     { return x + y }
func sub[T number](x, y T) T     { return x - y }
func mul[T number](x, y T) T     { return x * y }
func div[T number](x, y T) T     { return x / y }
func maximum[T number](x, y T) T { return max(x, y) }
func minimum[T number](x, y T) T { return min(x, y) }

func eq[T comparable](x, y T) bool { return x == y }
func ne[T comparable](x, y T) bool { return x != y }
func lt[T number](x, y T) bool     { return x < y }
func le[T number](x, y T) bool     { return x <= y }

func where[T any](c bool, x, y T) T {
	if c {
		return x
	}
	return y
}

func abs[T float32 | float64](x T) T { return T(math.Abs(float64(x))) }

func absInt(x int64) int64 {
	if x < 0 {
		return -x
	}
	return x
}

// mod32 is exact, as the result of math.Mod is a multiple of the lesser operand's last place.
func mod32(x, y float32) float32 { return float32(math.Mod(float64(x), float64(y))) }

func powInt(x, n int64) int64 {
	if n < 0 {
		switch x {
		case 0, 1:
			return 1 / x
		case -1:
			return 1 - 2*(n&1)
		}
		return 0
	}
	result := int64(1)
	for ; n > 0; n >>= 1 {
		if n&1 != 0 {
			result *= x
		}
		x *= x
	}
	return result
}
