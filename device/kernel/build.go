package kernel

import "github.com/asyncgen/asyncgen/device"

// The primitives as functions that build expressions; see Apply.

func Neg(x *Expr) *Expr    { return Apply(PrimNeg, x) }
func Abs(x *Expr) *Expr    { return Apply(PrimAbs, x) }
func Add(x, y *Expr) *Expr { return Apply(PrimAdd, x, y) }
func Sub(x, y *Expr) *Expr { return Apply(PrimSub, x, y) }
func Mul(x, y *Expr) *Expr { return Apply(PrimMul, x, y) }

// Div is x / y. For integers it is truncated, and a zero divisor makes the command fail.
func Div(x, y *Expr) *Expr { return Apply(PrimDiv, x, y) }

// Mod is the remainder of x divided by y, for a quotient that is truncated. It has the sign of x and no
// rounding error. For integers, y = 0 makes the command fail. For floats it is NaN there.
func Mod(x, y *Expr) *Expr {
	if x.dtype == device.Int64 {
		return Sub(x, Mul(Div(x, y), y))
	}
	return Apply(PrimMod, x, y)
}
func Max(x, y *Expr) *Expr { return Apply(PrimMax, x, y) }
func Min(x, y *Expr) *Expr { return Apply(PrimMin, x, y) }

// Pow is x to the power of y. For integers it wraps around, and x**-n is 1/x**n truncated. A negative
// power of the integer 0 makes the command fail.
func Pow(x, y *Expr) *Expr { return Apply(PrimPow, x, y) }
func Sqrt(x *Expr) *Expr   { return Apply(PrimSqrt, x) }
func Exp(x *Expr) *Expr    { return Apply(PrimExp, x) }
func Expm1(x *Expr) *Expr  { return Apply(PrimExpm1, x) }
func Log(x *Expr) *Expr    { return Apply(PrimLog, x) }
func Log1p(x *Expr) *Expr  { return Apply(PrimLog1p, x) }
func Sin(x *Expr) *Expr    { return Apply(PrimSin, x) }
func Cos(x *Expr) *Expr    { return Apply(PrimCos, x) }
func Tanh(x *Expr) *Expr   { return Apply(PrimTanh, x) }
func Erf(x *Expr) *Expr    { return Apply(PrimErf, x) }
func Floor(x *Expr) *Expr  { return Apply(PrimFloor, x) }
func Ceil(x *Expr) *Expr   { return Apply(PrimCeil, x) }
func Round(x *Expr) *Expr  { return Apply(PrimRound, x) } // half to even
func Eq(x, y *Expr) *Expr  { return Apply(PrimEq, x, y) }
func Ne(x, y *Expr) *Expr  { return Apply(PrimNe, x, y) }
func Lt(x, y *Expr) *Expr  { return Apply(PrimLt, x, y) }
func Le(x, y *Expr) *Expr  { return Apply(PrimLe, x, y) }
func Gt(x, y *Expr) *Expr  { return Apply(PrimLt, y, x) }
func Ge(x, y *Expr) *Expr  { return Apply(PrimLe, y, x) }

// And is x && y for bools. For integers it is the and of their bits, and so are [Or] and [Not].
func And(x, y *Expr) *Expr { return Apply(PrimAnd, x, y) }
func Or(x, y *Expr) *Expr  { return Apply(PrimOr, x, y) }
func Not(x *Expr) *Expr    { return Apply(PrimNot, x) }

// Shl is the integer x shifted to the left by n bits. If n is negative or 64 or more, it is 0.
func Shl(x, n *Expr) *Expr { return Apply(PrimShl, x, n) }

// Shr is the integer x shifted to the right by n bits, which is division by 2**n rounded down. If n is negative or 64
// or more, it is -1 for a negative x and 0 for others.
func Shr(x, n *Expr) *Expr { return Apply(PrimShr, x, n) }

// Where is x where c is true, else y.
func Where(c, x, y *Expr) *Expr { return Apply(PrimWhere, c, x, y) }
