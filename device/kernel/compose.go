package kernel

import (
	"math"

	"github.com/asyncgen/asyncgen/device"
)

// Functions that are made of primitives. Each is an expression, so every backend computes it with the same bits. The
// limits of their errors, in units in the last place, are in compose_test.go: 2 unless a comment here says otherwise.
//
// Most of them know their derivative, see withDerivative. That of the expression itself would be wrong where a branch
// is there for accuracy, and overflow where the function does not.

// IsNaN reports whether x is NaN.
func IsNaN(x *Expr) *Expr { return Ne(x, x) }

// IsInf reports whether x, a float, is infinite.
func IsInf(x *Expr) *Expr { return Eq(Abs(x), like(x, math.Inf(1))) }

// IsFinite reports whether x, a float, is neither infinite nor NaN.
func IsFinite(x *Expr) *Expr { return Lt(Abs(x), like(x, math.Inf(1))) }

// Clamp is x, but lo where x is less, and hi where it is greater; NaN stays NaN. If lo is greater than hi, it is hi.
// The derivative is 1 between lo and hi and at NaN, and 0 at lo and hi, as in PyTorch 2.15.
func Clamp(x, lo, hi *Expr) *Expr {
	return withDerivative(Min(Max(x, lo), hi), func(e, _ *Expr) *Expr {
		return Where(Or(Le(x, lo), Le(hi, x)), like(e, 0), like(e, 1))
	}, x)
}

// Trunc is the integer part of x, with the sign of x.
func Trunc(x *Expr) *Expr { return Where(Lt(x, like(x, 0)), Ceil(x), Floor(x)) }

// Frac is what [Trunc] takes away.
func Frac(x *Expr) *Expr { return Sub(x, Trunc(x)) }

// Lerp is x + c*(y-x), computed from the nearer end.
func Lerp(x, y, c *Expr) *Expr {
	d := Sub(y, x)
	return Where(Lt(Abs(c), like(c, 0.5)), Add(x, Mul(c, d)), Sub(y, Mul(d, Sub(like(c, 1), c))))
}

// Remainder is x modulo y with the sign of y: x - y*floor(x/y). For integers, y = 0 makes the command fail. For floats
// it is NaN there.
func Remainder(x, y *Expr) *Expr {
	r := Mod(x, y)
	return Where(isBetween(r, y), Add(r, y), r)
}

// FloorDiv is x / y rounded down. For integers, y = 0 makes the command fail. For floats it is x / y there.
func FloorDiv(x, y *Expr) *Expr {
	r := Mod(x, y)
	if x.dtype == device.Int64 {
		q := Div(x, y)
		return Where(isBetween(r, y), Sub(q, like(x, 1)), q)
	}
	q := Round(Div(Sub(x, r), y))
	return withDerivative(Where(Eq(y, like(y, 0)), Div(x, y), Where(isBetween(r, y), Sub(q, like(q, 1)), q)), nil)
}

// isBetween reports whether the remainder r of a division by y differs for a quotient that is
// truncated, as here, and one that is rounded down.
func isBetween(r, y *Expr) *Expr {
	zero := like(r, 0)
	return And(Ne(r, zero), Ne(Lt(r, zero), Lt(y, zero)))
}

// Xor is x != y for bools. For integers it is the exclusive or of their bits.
func Xor(x, y *Expr) *Expr {
	if x.dtype == device.Bool {
		return Ne(x, y)
	}
	return Sub(Or(x, y), And(x, y))
}

// Rsqrt is 1 / sqrt(x).
func Rsqrt(x *Expr) *Expr { return Div(like(x, 1), Sqrt(x)) }

// Exp2 is 2 to the power of x.
func Exp2(x *Expr) *Expr { return Pow(like(x, 2), x) }

// Log2 is the logarithm of x to base 2. It is exact for powers of 2.
func Log2(x *Expr) *Expr { return logarithm(x, 2, math.Log2E, 0) }

// Log10 is the logarithm of x to base 10. It is an integer for the numbers that powers of 10 round to.
func Log10(x *Expr) *Expr { return logarithm(x, 10, math.Log10E, typed(x, 0, 0x1p-51)) }

// logarithm is log(x) times c = 1/log(base). The result is an integer n if it is as close to n as
// rounding errors are, and base to the power n is x within a relative error of slack. (Several powers
// of 10 round to the same denormal number.)
func logarithm(x *Expr, base, c, slack float64) *Expr {
	y := Mul(Log(x), like(x, c))
	n := Round(y)
	isClose := Le(Abs(Sub(y, n)), Mul(Abs(n), like(x, typed(x, 0x1p-21, 0x1p-50))))
	isPower := Le(Abs(Sub(Pow(like(x, base), n), x)), Mul(x, like(x, slack)))
	return withDerivative(Where(And(isClose, isPower), n, y), func(_, x *Expr) *Expr {
		return Div(like(x, c), x)
	}, x)
}

// Tan is the tangent of x. It is up to 4 ulp off.
func Tan(x *Expr) *Expr {
	return withDerivative(Div(Sin(x), Cos(x)), func(e, _ *Expr) *Expr { return Add(like(e, 1), Mul(e, e)) }, x)
}

// Sinh is the hyperbolic sine of x. It is up to 3 ulp off.
func Sinh(x *Expr) *Expr {
	a := Abs(x)
	t := Expm1(a)
	y := Mul(like(x, 0.5), Add(t, Div(t, Add(t, like(x, 1)))))
	return withDerivative(odd(x, Where(Lt(a, like(x, halfOverflow(x))), y, halfExp(a))), func(_, x *Expr) *Expr { return Cosh(x) }, x)
}

// Cosh is the hyperbolic cosine of x. It is up to 3 ulp off.
func Cosh(x *Expr) *Expr {
	a := Abs(x)
	p := Exp(a)
	y := Mul(like(x, 0.5), Add(p, Div(like(x, 1), p)))
	return withDerivative(Where(Lt(a, like(x, halfOverflow(x))), y, halfExp(a)), func(_, x *Expr) *Expr { return Sinh(x) }, x)
}

// halfOverflow is a little less than where the exponential overflows.
func halfOverflow(x *Expr) float64 { return typed(x, 88, 709) }

// halfExp is e to the power of x, halved. It overflows only where it has to.
func halfExp(x *Expr) *Expr {
	root := Exp(Mul(like(x, 0.5), x))
	return Mul(Mul(like(x, 0.5), root), root)
}

// Asinh is the inverse of [Sinh]. It is up to 3 ulp off.
func Asinh(x *Expr) *Expr {
	a, one := Abs(x), like(x, 1)
	square := Mul(a, a)
	near := Log1p(Add(a, Div(square, Add(one, Sqrt(Add(square, one))))))
	return withDerivative(odd(x, Where(Lt(a, far(x)), near, logOfTwice(a))), func(_, x *Expr) *Expr {
		return Div(one, Hypot(x, one))
	}, x)
}

// Acosh is the inverse of [Cosh] for x from 1 on, and NaN below. It is up to 3 ulp off.
func Acosh(x *Expr) *Expr {
	one := like(x, 1)
	t := Sub(x, one)
	near := Log1p(Add(t, Sqrt(Mul(t, Add(x, one)))))
	y := Where(Lt(x, one), like(x, math.NaN()), Where(Lt(x, far(x)), near, logOfTwice(x)))
	return withDerivative(y, func(_, x *Expr) *Expr {
		return Div(one, Mul(Sqrt(Sub(x, one)), Sqrt(Add(x, one))))
	}, x)
}

// far is so large that 1 is nothing to its square.
func far(x *Expr) *Expr { return like(x, typed(x, 1<<13, 1<<28)) }

func logOfTwice(x *Expr) *Expr { return Add(Log(x), like(x, math.Ln2)) }

// Atanh is the inverse of [Tanh] for x from -1 to 1, and NaN elsewhere. It is up to 3 ulp off.
func Atanh(x *Expr) *Expr {
	a, one := Abs(x), like(x, 1)
	y := Mul(like(x, 0.5), Log1p(Div(Add(a, a), Sub(one, a))))
	return withDerivative(odd(x, y), func(_, x *Expr) *Expr {
		return Div(one, Mul(Sub(one, x), Add(one, x)))
	}, x)
}

// Asin is the inverse sine of x, from -pi/2 to pi/2; NaN where |x| > 1. It is up to 3 ulp off.
func Asin(x *Expr) *Expr {
	a := Abs(x)
	isNear, y := arcsine(a)
	return withDerivative(odd(x, Where(isNear, y, less(y2(y), x, 0.5))), func(_, x *Expr) *Expr { return slopeOfAsin(x) }, x)
}

// Acos is the inverse cosine of x, from 0 to pi; NaN where |x| > 1.
func Acos(x *Expr) *Expr {
	zero := like(x, 0)
	isNear, y := arcsine(Abs(x))
	twice := y2(y)
	far := Where(Lt(x, zero), less(twice, x, 1), twice)
	near := less(Where(Lt(x, zero), Neg(y), y), x, 0.5)
	return withDerivative(Where(isNear, near, far), func(_, x *Expr) *Expr { return Neg(slopeOfAsin(x)) }, x)
}

func y2(y *Expr) *Expr { return Add(y, y) }

func slopeOfAsin(x *Expr) *Expr {
	one := like(x, 1)
	return Rsqrt(Mul(Sub(one, x), Add(one, x)))
}

// less is c*pi - y, in the type of x. The digits of pi that the type does not have count too.
func less(y, x *Expr, c float64) *Expr {
	return Sub(like(x, c*typed(x, piHigh32, math.Pi)), Sub(y, like(x, c*typed(x, piLow32, piLow64))))
}

const (
	piHigh32 = 0x1.921fb6p+1
	piLow32  = -0x1.777a5cp-24
	piLow64  = 0x1.1a62633145c07p-53
)

// arcsine is asin(a) for a <= 1/2, where isNear. For greater a it is (pi/2 - asin(a))/2 = asin(sqrt((1-a)/2)).
func arcsine(a *Expr) (isNear, y *Expr) {
	half := like(a, 0.5)
	isNear = Le(a, half)
	z := Where(isNear, Mul(a, a), Mul(half, Sub(like(a, 1), a)))
	s := Where(isNear, a, Sqrt(z))
	return isNear, Add(s, Mul(s, Mul(z, polynomial(z, asin32, asin64))))
}

// (asin(s)/s - 1)/z in z = s**2 on [0, 1/4], 2^-31.7 and 2^-59.7 relative to asin, highest coefficient first.
var (
	asin32 = []float64{0x1.33a3bp-5, 0x1.d819b6p-7, 0x1.04a6c6p-5, 0x1.6cab96p-5, 0x1.33389ap-4, 0x1.55554cp-3}
	asin64 = []float64{0x1.0af379e651188p-5, -0x1.56eedd53cbf7dp-6, 0x1.62daa950786bap-6, 0x1.e878ce55107adp-9,
		0x1.6111c74a88316p-7, 0x1.758d268ee4417p-7, 0x1.ca1ea227054eep-7, 0x1.1c49f9e9a13dep-6, 0x1.6e8bde5eef66dp-6,
		0x1.f1c71a992177dp-6, 0x1.6db6db7209136p-5, 0x1.333333332e1b5p-4, 0x1.5555555555577p-3}
)

// Atan is the inverse tangent of x, from -pi/2 to pi/2. It is up to 3 ulp off.
func Atan(x *Expr) *Expr {
	return withDerivative(odd(x, arctangent(Abs(x))), func(_, x *Expr) *Expr {
		one := like(x, 1)
		return Div(one, Add(one, Mul(x, x)))
	}, x)
}

// Atan2 is the angle from the positive x-axis to the point (x, y), from -pi to pi, as math.Atan2. The derivative at the
// origin is 0. It is up to 3 ulp off.
func Atan2(y, x *Expr) *Expr {
	zero, one := like(x, 0), like(x, 1)
	ay, ax := Abs(y), Abs(x)
	ratio := Where(Eq(ay, ax), Where(Eq(ay, zero), zero, one), Div(ay, ax))
	angle := arctangent(ratio)
	angle = Where(isNegative(x), less(angle, x, 1), angle)
	return withDerivative(Where(isNegative(y), Neg(angle), angle), func(_, of *Expr) *Expr {
		h := Hypot(x, y)
		along := x
		if of == x {
			along = Neg(y)
		}
		return Where(Eq(h, zero), zero, Div(Div(along, h), h))
	}, y, x)
}

// isNegative reports whether x has a minus sign, 0 or not. It may report anything about NaN.
func isNegative(x *Expr) *Expr {
	zero := like(x, 0)
	return Or(Lt(x, zero), Lt(Div(like(x, 1), x), zero))
}

// arctangent is atan(a) for a >= 0. It reduces a by pi/4 or pi/2, so that what is left is at most tan(pi/8).
func arctangent(a *Expr) *Expr {
	zero, one := like(a, 0), like(a, 1)
	isFar, isMiddle := Lt(like(a, 1+math.Sqrt2), a), Lt(like(a, math.Sqrt2-1), a)
	u := Div(Where(isFar, like(a, -1), Where(isMiddle, Sub(a, one), a)), Where(isFar, a, Where(isMiddle, Add(a, one), one)))
	z := Mul(u, u)
	y := Add(u, Mul(u, Mul(z, polynomial(z, atan32, atan64))))
	pi, low := typed(a, piHigh32, math.Pi), typed(a, piLow32, piLow64)
	base := Where(isFar, like(a, pi/2), Where(isMiddle, like(a, pi/4), zero))
	rest := Where(isFar, like(a, low/2), Where(isMiddle, like(a, low/4), zero))
	return Add(base, Add(y, rest))
}

// (atan(u)/u - 1)/z in z = u**2 on [0, tan(pi/8)**2], 2^-30.3 and 2^-59.3 relative to atan, highest coefficient first.
var (
	atan32 = []float64{-0x1.f04748p-5, 0x1.b19052p-4, -0x1.23ae1cp-3, 0x1.999126p-3, -0x1.555548p-2}
	atan64 = []float64{-0x1.24c8a07651b9ap-6, 0x1.37899517e38f8p-5, -0x1.9cb3c64e96ae6p-5, 0x1.df0826977b624p-5, -0x1.10eb34d70bcc8p-4,
		0x1.3b110ceaec1c3p-4, -0x1.745cf8215e887p-4, 0x1.c71c70df04ef9p-4, -0x1.249249229966ep-3, 0x1.99999999954c3p-3, -0x1.555555555553bp-2}
)

// polynomial is the polynomial in z whose coefficients belong to its type, by Horner's rule.
func polynomial(z *Expr, of32, of64 []float64) *Expr {
	c := of64
	if z.dtype == device.Float32 {
		c = of32
	}
	sum := like(z, c[0])
	for _, v := range c[1:] {
		sum = Add(Mul(sum, z), like(z, v))
	}
	return sum
}

// typed is the number that belongs to the type of x.
func typed(x *Expr, of32, of64 float64) float64 {
	if x.dtype == device.Float32 {
		return of32
	}
	return of64
}

// odd is y, the value of an odd function at |x|, with the sign of x.
func odd(x, y *Expr) *Expr {
	zero := like(x, 0)
	return Where(Eq(x, zero), x, Where(Lt(x, zero), Neg(y), y))
}

// Hypot is sqrt(x*x + y*y), which does not overflow if the result does not. It is infinite if x or y is, as math.Hypot.
// The derivative at the origin is 0.
func Hypot(x, y *Expr) *Expr {
	inf, one, zero := like(x, math.Inf(1)), like(x, 1), like(x, 0)
	most, least := Max(Abs(x), Abs(y)), Min(Abs(x), Abs(y))
	ratio := Where(Eq(most, least), one, Div(least, most))
	h := Mul(most, Sqrt(Add(one, Mul(ratio, ratio))))
	return withDerivative(Where(Or(IsInf(x), IsInf(y)), inf, h), func(e, of *Expr) *Expr {
		return Where(Eq(e, zero), zero, Div(of, e))
	}, x, y)
}

// LogAddExp is log(exp(x) + exp(y)), which does not overflow if the result does not. It is up to 3 ulp off, of the
// greater of its result and of x and y.
func LogAddExp(x, y *Expr) *Expr {
	zero := like(x, 0)
	gap := Where(Eq(x, y), zero, Neg(Abs(Sub(x, y))))
	return withDerivative(Add(Max(x, y), Log1p(Exp(gap))), func(_, of *Expr) *Expr {
		other := y
		if of == y {
			other = x
		}
		return sigmoid(Where(Eq(x, y), zero, Sub(of, other)))
	}, x, y)
}

// Softplus is log(1 + exp(x)).
func Softplus(x *Expr) *Expr { return LogAddExp(x, like(x, 0)) }

// sigmoid is 1/(1 + exp(-x)).
func sigmoid(x *Expr) *Expr { return Div(like(x, 1), Add(like(x, 1), Exp(Neg(x)))) }
