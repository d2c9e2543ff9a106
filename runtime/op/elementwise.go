package op

import (
	"math"

	"github.com/asyncgen/asyncgen/device"
	k "github.com/asyncgen/asyncgen/device/kernel"
)

// The elementwise operations. One literal each; see Def for the fields.

// Arithmetic of two tensors.
var (
	Add = define(&Def{
		Name: "Add", Tensors: 2, Types: Numbers,
		Doc:  "returns t + y, element by element, with broadcasting. Integers wrap around.",
		Expr: func(x ...*k.Expr) *k.Expr { return k.Add(x[0], x[1]) },
		Ref:  func(x ...float64) float64 { return x[0] + x[1] },
	})
	Sub = define(&Def{
		Name: "Sub", Tensors: 2, Types: Numbers,
		Doc:  "returns t - y, element by element, with broadcasting. Integers wrap around.",
		Expr: func(x ...*k.Expr) *k.Expr { return k.Sub(x[0], x[1]) },
		Ref:  func(x ...float64) float64 { return x[0] - x[1] },
	})
	Mul = define(&Def{
		Name: "Mul", Tensors: 2, Types: Numbers,
		Doc:  "returns t * y, element by element, with broadcasting. Integers wrap around. The product of matrices is MatMul.",
		Expr: func(x ...*k.Expr) *k.Expr { return k.Mul(x[0], x[1]) },
		Ref:  func(x ...float64) float64 { return x[0] * x[1] },
	})
	Div = define(&Def{
		Name: "Div", Tensors: 2, Types: Numbers,
		Doc: "returns t / y, element by element, with broadcasting. Quotients of integers are rounded towards zero, as in Go; " +
			"an integer divided by zero is an error that travels with the result.",
		Expr:   func(x ...*k.Expr) *k.Expr { return k.Div(x[0], x[1]) },
		Ref:    func(x ...float64) float64 { return x[0] / x[1] },
		Domain: []Interval{{-10, 10}, {1, 10}},
		Fails:  true,
	})
	Pow = define(&Def{
		Name: "Pow", Tensors: 2, Types: Floats,
		Doc:    "returns t to the power of y, element by element, with broadcasting.",
		Expr:   func(x ...*k.Expr) *k.Expr { return k.Pow(x[0], x[1]) },
		Ref:    func(x ...float64) float64 { return math.Pow(x[0], x[1]) },
		Domain: []Interval{{0.1, 5}, {-4, 4}}, ULP: 2,
	})
	Maximum = define(&Def{
		Name: "Maximum", Tensors: 2, Types: Ordered,
		Doc:  "returns the greater of t and y, element by element, with broadcasting. It is NaN where either is. Where they are equal, the gradient is shared between them; where either is NaN, both have it.",
		Expr: func(x ...*k.Expr) *k.Expr { return k.Max(x[0], x[1]) },
		Ref: func(x ...float64) float64 {
			if x[0] > x[1] || x[0] != x[0] {
				return x[0]
			}
			return x[1]
		},
	})
	Minimum = define(&Def{
		Name: "Minimum", Tensors: 2, Types: Ordered,
		Doc:  "returns the lesser of t and y, element by element, with broadcasting. It is NaN where either is. Where they are equal, the gradient is shared between them; where either is NaN, both have it.",
		Expr: func(x ...*k.Expr) *k.Expr { return k.Min(x[0], x[1]) },
		Ref: func(x ...float64) float64 {
			if x[0] < x[1] || x[0] != x[0] {
				return x[0]
			}
			return x[1]
		},
	})
	Fmod = define(&Def{
		Name: "Fmod", Tensors: 2, Types: Numbers,
		Doc: "returns what is left of t when it is divided by y and the quotient is rounded towards zero, element by element, with broadcasting. It has the sign of t, and no rounding error. " +
			"For floats it is NaN where y is 0; an integer divided by zero is an error that travels with the result.",
		Expr:   func(x ...*k.Expr) *k.Expr { return k.Mod(x[0], x[1]) },
		Ref:    func(x ...float64) float64 { return math.Mod(x[0], x[1]) },
		Domain: []Interval{{-10, 10}, {1, 10}},
		Fails:  true,
	})
	Remainder = define(&Def{
		Name: "Remainder", Tensors: 2, Types: Numbers,
		Doc: "returns t modulo y, element by element, with broadcasting: what is left of t when it is divided by y and the quotient is rounded down. It has the sign of y. " +
			"For floats it is NaN where y is 0; an integer divided by zero is an error that travels with the result.",
		Expr: func(x ...*k.Expr) *k.Expr { return k.Remainder(x[0], x[1]) },
		Ref: func(x ...float64) float64 {
			r := math.Mod(x[0], x[1])
			if r != 0 && (r < 0) != (x[1] < 0) {
				r += x[1]
			}
			return r
		},
		Domain: []Interval{{-10, 10}, {1, 10}},
		Fails:  true,
	})
	FloorDiv = define(&Def{
		Name: "FloorDiv", Tensors: 2, Types: Numbers,
		Doc: "returns t / y rounded down, element by element, with broadcasting. For floats it is t / y where y is 0; an integer divided by zero is an error that travels with the result. " +
			"The derivative is 0.",
		Expr:   func(x ...*k.Expr) *k.Expr { return k.FloorDiv(x[0], x[1]) },
		Ref:    func(x ...float64) float64 { return math.Floor(x[0] / x[1]) },
		Domain: []Interval{{-10, 10}, {1, 10}},
		Fails:  true,
	})
	Atan2 = define(&Def{
		Name: "Atan2", Tensors: 2, Types: Floats,
		Doc:    "returns the angle from the positive x-axis to the point (y, t), from -π to π, element by element, with broadcasting: the arc tangent of t / y in the right quadrant. The derivative at the origin is 0.",
		Expr:   func(x ...*k.Expr) *k.Expr { return k.Atan2(x[0], x[1]) },
		Ref:    func(x ...float64) float64 { return math.Atan2(x[0], x[1]) },
		Domain: []Interval{{-10, 10}, {0.1, 10}}, ULP: 3,
	})
	Hypot = define(&Def{
		Name: "Hypot", Tensors: 2, Types: Floats,
		Doc:  "returns the square root of t*t + y*y, element by element, with broadcasting. It does not overflow unless the result does. The derivative at the origin is 0.",
		Expr: func(x ...*k.Expr) *k.Expr { return k.Hypot(x[0], x[1]) },
		Ref:  func(x ...float64) float64 { return math.Hypot(x[0], x[1]) },
		ULP:  2,
	})
	LogAddExp = define(&Def{
		Name: "LogAddExp", Tensors: 2, Types: Floats,
		Doc:  "returns the logarithm of e to the power of t plus e to the power of y, element by element, with broadcasting. It does not overflow unless the result does.",
		Expr: func(x ...*k.Expr) *k.Expr { return k.LogAddExp(x[0], x[1]) },
		Ref: func(x ...float64) float64 {
			return math.Max(x[0], x[1]) + math.Log1p(math.Exp(-math.Abs(x[0]-x[1])))
		},
		// Where the result is close to 0, the error is one of the operands'.
		Domain: []Interval{{0, 10}}, ULP: 3,
	})
	Lerp = define(&Def{
		Name: "Lerp", Tensors: 2, Scalars: 1, Types: Floats,
		Doc:  "returns t + c*(y-t), element by element, with broadcasting: t where c is 0, y where it is 1, and what lies between them in proportion. It is computed from the end that is nearer.",
		Expr: func(x ...*k.Expr) *k.Expr { return k.Lerp(x[0], x[1], x[2]) },
		Ref: func(x ...float64) float64 {
			d := x[1] - x[0]
			if math.Abs(x[2]) < 0.5 {
				p := x[2] * d
				return x[0] + p
			}
			p := d * (1 - x[2])
			return x[1] - p
		},
		// y is far from t, so that the differences are exact enough.
		Domain: []Interval{{1, 2}, {10, 20}, {1, 6}}, ULP: 4,
	})
	AddScaled = define(&Def{
		Name: "AddScaled", Tensors: 2, Scalars: 1, Types: Numbers,
		Doc:  "returns t + c*y, element by element, with broadcasting; product and sum are rounded one after the other.",
		Expr: func(x ...*k.Expr) *k.Expr { return k.Add(x[0], k.Mul(x[2], x[1])) },
		Ref:  func(x ...float64) float64 { p := x[2] * x[1]; return x[0] + p },
		// Only positive numbers: where the sum cancels, the rounding of the product weighs more.
		Domain: []Interval{{0.1, 10}}, ULP: 1,
	})
	AddMul = define(&Def{
		Name: "AddMul", Tensors: 3, Types: Numbers,
		Doc:  "returns t + x*y, element by element, with broadcasting; product and sum are rounded one after the other.",
		Expr: func(x ...*k.Expr) *k.Expr { return k.Add(x[0], k.Mul(x[1], x[2])) },
		Ref:  func(x ...float64) float64 { p := x[1] * x[2]; return x[0] + p },
		// Only positive numbers, as for AddScaled.
		Domain: []Interval{{0.1, 10}}, ULP: 1,
	})
)

// Arithmetic with a constant.
var (
	AddScalar = define(&Def{
		Name: "AddScalar", Tensors: 1, Scalars: 1, Types: Numbers,
		Doc:  "returns t + c. c is converted to t's element type first, and has to be an integer for an integer type.",
		Expr: func(x ...*k.Expr) *k.Expr { return k.Add(x[0], x[1]) },
		Ref:  func(x ...float64) float64 { return x[0] + x[1] },
	})
	SubScalar = define(&Def{
		Name: "SubScalar", Tensors: 1, Scalars: 1, Types: Numbers,
		Doc:  "returns t - c. c is converted to t's element type first, and has to be an integer for an integer type.",
		Expr: func(x ...*k.Expr) *k.Expr { return k.Sub(x[0], x[1]) },
		Ref:  func(x ...float64) float64 { return x[0] - x[1] },
	})
	MulScalar = define(&Def{
		Name: "MulScalar", Tensors: 1, Scalars: 1, Types: Numbers,
		Doc:  "returns t * c. c is converted to t's element type first, and has to be an integer for an integer type.",
		Expr: func(x ...*k.Expr) *k.Expr { return k.Mul(x[0], x[1]) },
		Ref:  func(x ...float64) float64 { return x[0] * x[1] },
	})
	DivScalar = define(&Def{
		Name: "DivScalar", Tensors: 1, Scalars: 1, Types: Numbers,
		Doc:    "returns t / c. c is converted to t's element type first, and has to be an integer for an integer type. See Div about integers.",
		Expr:   func(x ...*k.Expr) *k.Expr { return k.Div(x[0], x[1]) },
		Ref:    func(x ...float64) float64 { return x[0] / x[1] },
		Domain: []Interval{{-10, 10}, {1, 10}},
		Fails:  true,
	})
)

// Functions of one tensor.
var (
	Neg = define(&Def{
		Name: "Neg", Tensors: 1, Types: Numbers,
		Doc:  "returns -t.",
		Expr: func(x ...*k.Expr) *k.Expr { return k.Neg(x[0]) },
		Ref:  func(x ...float64) float64 { return -x[0] },
	})
	Abs = define(&Def{
		Name: "Abs", Tensors: 1, Types: Numbers,
		Doc:  "returns the absolute value of each element. The derivative at 0 is 0.",
		Expr: func(x ...*k.Expr) *k.Expr { return k.Abs(x[0]) },
		Ref:  func(x ...float64) float64 { return math.Abs(x[0]) },
	})
	Sign = define(&Def{
		Name: "Sign", Tensors: 1, Types: Numbers,
		Doc:  "returns -1, 0 or 1 as the sign of each element; zeros and NaN stay what they are.",
		Expr: func(x ...*k.Expr) *k.Expr { return sign(x[0]) },
		Grad: func(_ int, x ...*k.Expr) *k.Expr { return like(0, x[0]) },
		Why:  "the expression has x itself in the branch of 0, with derivative 1",
		Ref: func(x ...float64) float64 {
			if x[0] == 0 {
				return x[0]
			}
			return math.Copysign(1, x[0])
		},
	})
	Square = define(&Def{
		Name: "Square", Tensors: 1, Types: Numbers,
		Doc:  "returns t * t.",
		Expr: func(x ...*k.Expr) *k.Expr { return k.Mul(x[0], x[0]) },
		Ref:  func(x ...float64) float64 { return x[0] * x[0] },
	})
	Reciprocal = define(&Def{
		Name: "Reciprocal", Tensors: 1, Types: Floats,
		Doc:    "returns 1 / t.",
		Expr:   func(x ...*k.Expr) *k.Expr { return k.Div(like(1, x[0]), x[0]) },
		Ref:    func(x ...float64) float64 { return 1 / x[0] },
		Domain: []Interval{{0.1, 10}},
	})
	Sqrt = define(&Def{
		Name: "Sqrt", Tensors: 1, Types: Floats,
		Doc:    "returns the square root of each element, NaN where it is negative.",
		Expr:   func(x ...*k.Expr) *k.Expr { return k.Sqrt(x[0]) },
		Ref:    func(x ...float64) float64 { return math.Sqrt(x[0]) },
		Domain: []Interval{{0.01, 100}},
	})
	Rsqrt = define(&Def{
		Name: "Rsqrt", Tensors: 1, Types: Floats,
		Doc:    "returns 1 / the square root of each element, NaN where it is negative.",
		Expr:   func(x ...*k.Expr) *k.Expr { return k.Rsqrt(x[0]) },
		Ref:    func(x ...float64) float64 { return 1 / math.Sqrt(x[0]) },
		Domain: []Interval{{0.01, 100}}, ULP: 2,
	})
	Exp = define(&Def{
		Name: "Exp", Tensors: 1, Types: Floats,
		Doc:    "returns e to the power of each element.",
		Expr:   func(x ...*k.Expr) *k.Expr { return k.Exp(x[0]) },
		Ref:    func(x ...float64) float64 { return math.Exp(x[0]) },
		Domain: []Interval{{-80, 80}}, ULP: 2,
	})
	Log = define(&Def{
		Name: "Log", Tensors: 1, Types: Floats,
		Doc:    "returns the natural logarithm of each element, NaN where it is negative.",
		Expr:   func(x ...*k.Expr) *k.Expr { return k.Log(x[0]) },
		Ref:    func(x ...float64) float64 { return math.Log(x[0]) },
		Domain: []Interval{{0.001, 1000}}, ULP: 2,
	})
	Exp2 = define(&Def{
		Name: "Exp2", Tensors: 1, Types: Floats,
		Doc:    "returns 2 to the power of each element.",
		Expr:   func(x ...*k.Expr) *k.Expr { return k.Exp2(x[0]) },
		Ref:    func(x ...float64) float64 { return math.Exp2(x[0]) },
		Domain: []Interval{{-100, 100}}, ULP: 2,
	})
	Log2 = define(&Def{
		Name: "Log2", Tensors: 1, Types: Floats,
		Doc:    "returns the logarithm to base 2 of each element, NaN where it is negative. It is exact for powers of 2.",
		Expr:   func(x ...*k.Expr) *k.Expr { return k.Log2(x[0]) },
		Ref:    func(x ...float64) float64 { return math.Log1p(x[0]-1) * math.Log2E },
		Domain: []Interval{{0.01, 1000}}, ULP: 2,
	})
	Log10 = define(&Def{
		Name: "Log10", Tensors: 1, Types: Floats,
		Doc:    "returns the logarithm to base 10 of each element, NaN where it is negative. It is an integer for powers of 10.",
		Expr:   func(x ...*k.Expr) *k.Expr { return k.Log10(x[0]) },
		Ref:    func(x ...float64) float64 { return math.Log1p(x[0]-1) * math.Log10E },
		Domain: []Interval{{0.01, 1000}}, ULP: 2,
	})
	Log1p = define(&Def{
		Name: "Log1p", Tensors: 1, Types: Floats,
		Doc:    "returns the natural logarithm of 1 plus each element, accurate also for elements close to 0.",
		Expr:   func(x ...*k.Expr) *k.Expr { return k.Log1p(x[0]) },
		Ref:    func(x ...float64) float64 { return math.Log1p(x[0]) },
		Domain: []Interval{{-0.9, 10}}, ULP: 2,
	})
	Expm1 = define(&Def{
		Name: "Expm1", Tensors: 1, Types: Floats,
		Doc:    "returns e to the power of each element, minus 1, accurate also for elements close to 0.",
		Expr:   func(x ...*k.Expr) *k.Expr { return k.Expm1(x[0]) },
		Ref:    func(x ...float64) float64 { return math.Expm1(x[0]) },
		Domain: []Interval{{-10, 10}}, ULP: 2,
	})
	Tanh = define(&Def{
		Name: "Tanh", Tensors: 1, Types: Floats,
		Doc:  "returns the hyperbolic tangent of each element.",
		Expr: func(x ...*k.Expr) *k.Expr { return k.Tanh(x[0]) },
		Ref:  func(x ...float64) float64 { return math.Tanh(x[0]) },
		ULP:  2,
	})
	Sigmoid = define(&Def{
		Name: "Sigmoid", Tensors: 1, Types: Floats,
		Doc:  "returns 1 / (1 + e to the power of -t).",
		Expr: func(x ...*k.Expr) *k.Expr { return sigmoid(x[0]) },
		Grad: func(_ int, x ...*k.Expr) *k.Expr {
			s := sigmoid(x[0])
			return k.Mul(s, k.Sub(like(1, x[0]), s))
		},
		Why:    "the quotient rule has Inf/Inf at -1000, where the derivative is 0",
		Ref:    func(x ...float64) float64 { return 1 / (1 + math.Exp(-x[0])) },
		Domain: []Interval{{-80, 80}}, ULP: 2,
	})
	ReLU = define(&Def{
		Name: "ReLU", Tensors: 1, Types: Numbers,
		Doc:  "returns t where it is positive and 0 elsewhere; NaN stays NaN. The derivative is 0 at 0, and 1 at NaN, where the gradient passes unchanged.",
		Expr: func(x ...*k.Expr) *k.Expr { return k.Max(x[0], like(0, x[0])) },
		Grad: func(_ int, x ...*k.Expr) *k.Expr {
			y := k.Max(x[0], like(0, x[0])) // positive where x is positive, NaN where x is NaN
			return k.Where(k.Le(y, like(0, x[0])), like(0, x[0]), like(1, x[0]))
		},
		Why: "the derivative at 0 is 0 by definition, where that of the maximum is shared",
		Ref: func(x ...float64) float64 { return (x[0] + math.Abs(x[0])) / 2 },
	})
	GELU = define(&Def{
		Name: "GELU", Tensors: 1, Types: Floats,
		Doc: "returns t times the probability that a number drawn from the standard normal distribution is less: t * (1 + erf(t/sqrt(2))) / 2.",
		Expr: func(x ...*k.Expr) *k.Expr {
			return k.Mul(k.Mul(like(0.5, x[0]), x[0]), k.Add(like(1, x[0]), k.Erf(k.Mul(x[0], like(math.Sqrt2/2, x[0])))))
		},
		Ref: func(x ...float64) float64 { return x[0] / 2 * math.Erfc(-x[0]/math.Sqrt2) },
		// Far below 0, where the sum cancels, the error is up to about 1e-7.
		Domain: []Interval{{-1, 10}}, ULP: 4,
	})
	SiLU = define(&Def{
		Name: "SiLU", Tensors: 1, Types: Floats,
		Doc:  "returns t / (1 + e to the power of -t).",
		Expr: func(x ...*k.Expr) *k.Expr { return k.Mul(x[0], sigmoid(x[0])) },
		Grad: func(_ int, x ...*k.Expr) *k.Expr {
			one, s := like(1, x[0]), sigmoid(x[0])
			return k.Mul(s, k.Add(one, k.Mul(x[0], k.Sub(one, s))))
		},
		Why:    "the quotient rule has Inf/Inf at -1000, where the derivative is 0",
		Ref:    func(x ...float64) float64 { return x[0] / (1 + math.Exp(-x[0])) },
		Domain: []Interval{{-80, 80}}, ULP: 3,
	})
	LeakyReLU = define(&Def{
		Name: "LeakyReLU", Tensors: 1, Scalars: 1, Types: Floats,
		Doc:  "returns t where it is positive and c*t elsewhere. The derivative at 0 and at NaN is c.",
		Expr: func(x ...*k.Expr) *k.Expr { return k.Where(k.Lt(like(0, x[0]), x[0]), x[0], k.Mul(x[1], x[0])) },
		Ref: func(x ...float64) float64 {
			if x[0] > 0 {
				return x[0]
			}
			return x[1] * x[0]
		},
	})
	ELU = define(&Def{
		Name: "ELU", Tensors: 1, Scalars: 1, Types: Floats,
		Doc: "returns t where it is positive and c*(e to the power of t, minus 1) elsewhere. The derivative at 0 is c.",
		Expr: func(x ...*k.Expr) *k.Expr {
			return k.Where(k.Lt(like(0, x[0]), x[0]), x[0], k.Mul(x[1], k.Expm1(x[0])))
		},
		Ref: func(x ...float64) float64 {
			if x[0] > 0 {
				return x[0]
			}
			return x[1] * math.Expm1(x[0])
		},
		ULP: 3,
	})
	Softplus = define(&Def{
		Name: "Softplus", Tensors: 1, Types: Floats,
		Doc:    "returns the natural logarithm of 1 + e to the power of t.",
		Expr:   func(x ...*k.Expr) *k.Expr { return k.Softplus(x[0]) },
		Ref:    func(x ...float64) float64 { return math.Max(x[0], 0) + math.Log1p(math.Exp(-math.Abs(x[0]))) },
		Domain: []Interval{{-80, 80}}, ULP: 3,
	})
	HardSigmoid = define(&Def{
		Name: "HardSigmoid", Tensors: 1, Types: Floats,
		Doc: "returns t/6 + 1/2 from -3 to 3, 0 below and 1 above: (t + 3) clamped to [0, 6], divided by 6.",
		Expr: func(x ...*k.Expr) *k.Expr {
			return k.Div(k.Clamp(k.Add(x[0], like(3, x[0])), like(0, x[0]), like(6, x[0])), like(6, x[0]))
		},
		Ref:    func(x ...float64) float64 { return math.Min(math.Max(x[0]+3, 0), 6) / 6 },
		Domain: []Interval{{-2, 10}}, ULP: 2,
	})
	Sin = define(&Def{
		Name: "Sin", Tensors: 1, Types: Floats,
		Doc:  "returns the sine of each element, in radians.",
		Expr: func(x ...*k.Expr) *k.Expr { return k.Sin(x[0]) },
		Ref:  func(x ...float64) float64 { return math.Sin(x[0]) },
		ULP:  2,
	})
	Cos = define(&Def{
		Name: "Cos", Tensors: 1, Types: Floats,
		Doc:  "returns the cosine of each element, in radians.",
		Expr: func(x ...*k.Expr) *k.Expr { return k.Cos(x[0]) },
		Ref:  func(x ...float64) float64 { return math.Cos(x[0]) },
		ULP:  2,
	})
	Tan = define(&Def{
		Name: "Tan", Tensors: 1, Types: Floats,
		Doc:    "returns the tangent of each element, in radians.",
		Expr:   func(x ...*k.Expr) *k.Expr { return k.Tan(x[0]) },
		Ref:    func(x ...float64) float64 { return math.Sin(x[0]) / math.Cos(x[0]) },
		Domain: []Interval{{-1.4, 1.4}}, ULP: 3,
	})
	Asin = define(&Def{
		Name: "Asin", Tensors: 1, Types: Floats,
		Doc:    "returns the arc sine of each element, from -π/2 to π/2, NaN where it is below -1 or above 1.",
		Expr:   func(x ...*k.Expr) *k.Expr { return k.Asin(x[0]) },
		Ref:    func(x ...float64) float64 { return math.Atan2(x[0], math.Sqrt((1-x[0])*(1+x[0]))) },
		Domain: []Interval{{-0.9, 0.9}}, ULP: 3,
	})
	Acos = define(&Def{
		Name: "Acos", Tensors: 1, Types: Floats,
		Doc:    "returns the arc cosine of each element, from 0 to π, NaN where it is below -1 or above 1.",
		Expr:   func(x ...*k.Expr) *k.Expr { return k.Acos(x[0]) },
		Ref:    func(x ...float64) float64 { return 2 * math.Atan2(math.Sqrt(1-x[0]), math.Sqrt(1+x[0])) },
		Domain: []Interval{{-0.9, 0.9}}, ULP: 3,
	})
	Atan = define(&Def{
		Name: "Atan", Tensors: 1, Types: Floats,
		Doc:  "returns the arc tangent of each element, from -π/2 to π/2.",
		Expr: func(x ...*k.Expr) *k.Expr { return k.Atan(x[0]) },
		Ref:  func(x ...float64) float64 { return math.Atan(x[0]) },
		ULP:  3,
	})
	Sinh = define(&Def{
		Name: "Sinh", Tensors: 1, Types: Floats,
		Doc:  "returns the hyperbolic sine of each element.",
		Expr: func(x ...*k.Expr) *k.Expr { return k.Sinh(x[0]) },
		Ref:  func(x ...float64) float64 { return math.Sinh(x[0]) },
		ULP:  3,
	})
	Cosh = define(&Def{
		Name: "Cosh", Tensors: 1, Types: Floats,
		Doc:  "returns the hyperbolic cosine of each element.",
		Expr: func(x ...*k.Expr) *k.Expr { return k.Cosh(x[0]) },
		Ref:  func(x ...float64) float64 { return math.Cosh(x[0]) },
		ULP:  3,
	})
	Asinh = define(&Def{
		Name: "Asinh", Tensors: 1, Types: Floats,
		Doc:  "returns the inverse hyperbolic sine of each element.",
		Expr: func(x ...*k.Expr) *k.Expr { return k.Asinh(x[0]) },
		Ref:  func(x ...float64) float64 { return math.Asinh(x[0]) },
		ULP:  3,
	})
	Acosh = define(&Def{
		Name: "Acosh", Tensors: 1, Types: Floats,
		Doc:    "returns the inverse hyperbolic cosine of each element, NaN where it is below 1.",
		Expr:   func(x ...*k.Expr) *k.Expr { return k.Acosh(x[0]) },
		Ref:    func(x ...float64) float64 { return math.Acosh(x[0]) },
		Domain: []Interval{{1.1, 10}}, ULP: 3,
	})
	Atanh = define(&Def{
		Name: "Atanh", Tensors: 1, Types: Floats,
		Doc:    "returns the inverse hyperbolic tangent of each element, NaN where it is below -1 or above 1.",
		Expr:   func(x ...*k.Expr) *k.Expr { return k.Atanh(x[0]) },
		Ref:    func(x ...float64) float64 { return math.Atanh(x[0]) },
		Domain: []Interval{{-0.9, 0.9}}, ULP: 3,
	})
	Erf = define(&Def{
		Name: "Erf", Tensors: 1, Types: Floats,
		Doc:    "returns the error function of each element.",
		Expr:   func(x ...*k.Expr) *k.Expr { return k.Erf(x[0]) },
		Ref:    func(x ...float64) float64 { return math.Erf(x[0]) },
		Domain: []Interval{{-4, 4}}, ULP: 2,
	})
	Floor = define(&Def{
		Name: "Floor", Tensors: 1, Types: Floats,
		Doc:  "returns the greatest integer not above each element.",
		Expr: func(x ...*k.Expr) *k.Expr { return k.Floor(x[0]) },
		Ref:  func(x ...float64) float64 { return math.Floor(x[0]) },
	})
	Ceil = define(&Def{
		Name: "Ceil", Tensors: 1, Types: Floats,
		Doc:  "returns the least integer not below each element.",
		Expr: func(x ...*k.Expr) *k.Expr { return k.Ceil(x[0]) },
		Ref:  func(x ...float64) float64 { return math.Ceil(x[0]) },
	})
	Round = define(&Def{
		Name: "Round", Tensors: 1, Types: Floats,
		Doc:  "returns the integer nearest to each element; of two equally near ones, the even one.",
		Expr: func(x ...*k.Expr) *k.Expr { return k.Round(x[0]) },
		Ref:  func(x ...float64) float64 { return math.RoundToEven(x[0]) },
	})
	Trunc = define(&Def{
		Name: "Trunc", Tensors: 1, Types: Floats,
		Doc:  "returns the integer part of each element: it is rounded towards zero.",
		Expr: func(x ...*k.Expr) *k.Expr { return k.Trunc(x[0]) },
		Ref:  func(x ...float64) float64 { return math.Trunc(x[0]) },
	})
	Frac = define(&Def{
		Name: "Frac", Tensors: 1, Types: Floats,
		Doc:  "returns what Trunc takes away from each element.",
		Expr: func(x ...*k.Expr) *k.Expr { return k.Frac(x[0]) },
		Ref:  func(x ...float64) float64 { return x[0] - math.Trunc(x[0]) },
	})
	Clamp = define(&Def{
		Name: "Clamp", Tensors: 1, Scalars: 2, Types: Numbers,
		Doc:  "returns t, but lo where it is less and hi where it is greater; both are first converted to t's element type. NaN stays NaN. If lo is greater than hi, it returns hi. The derivative is 1 between lo and hi and at NaN, and 0 at lo and hi.",
		Expr: func(x ...*k.Expr) *k.Expr { return k.Clamp(x[0], x[1], x[2]) },
		Ref:  func(x ...float64) float64 { return math.Min(math.Max(x[0], x[1]), x[2]) },
	})
)

// Comparisons and logic.
var (
	Eq = define(&Def{
		Name: "Eq", Tensors: 2, Types: All, Bool: true,
		Doc:  "reports where t == y, as a bool tensor, with broadcasting.",
		Expr: func(x ...*k.Expr) *k.Expr { return k.Eq(x[0], x[1]) },
		Ref:  func(x ...float64) float64 { return truth(x[0] == x[1]) },
	})
	Ne = define(&Def{
		Name: "Ne", Tensors: 2, Types: All, Bool: true,
		Doc:  "reports where t != y, as a bool tensor, with broadcasting.",
		Expr: func(x ...*k.Expr) *k.Expr { return k.Ne(x[0], x[1]) },
		Ref:  func(x ...float64) float64 { return truth(x[0] != x[1]) },
	})
	Lt = define(&Def{
		Name: "Lt", Tensors: 2, Types: Ordered, Bool: true,
		Doc:  "reports where t < y, as a bool tensor, with broadcasting.",
		Expr: func(x ...*k.Expr) *k.Expr { return k.Lt(x[0], x[1]) },
		Ref:  func(x ...float64) float64 { return truth(x[0] < x[1]) },
	})
	Le = define(&Def{
		Name: "Le", Tensors: 2, Types: Ordered, Bool: true,
		Doc:  "reports where t <= y, as a bool tensor, with broadcasting.",
		Expr: func(x ...*k.Expr) *k.Expr { return k.Le(x[0], x[1]) },
		Ref:  func(x ...float64) float64 { return truth(x[0] <= x[1]) },
	})
	Gt = define(&Def{
		Name: "Gt", Tensors: 2, Types: Ordered, Bool: true,
		Doc:  "reports where t > y, as a bool tensor, with broadcasting.",
		Expr: func(x ...*k.Expr) *k.Expr { return k.Gt(x[0], x[1]) },
		Ref:  func(x ...float64) float64 { return truth(x[0] > x[1]) },
	})
	Ge = define(&Def{
		Name: "Ge", Tensors: 2, Types: Ordered, Bool: true,
		Doc:  "reports where t >= y, as a bool tensor, with broadcasting.",
		Expr: func(x ...*k.Expr) *k.Expr { return k.Ge(x[0], x[1]) },
		Ref:  func(x ...float64) float64 { return truth(x[0] >= x[1]) },
	})
	And = define(&Def{
		Name: "And", Tensors: 2, Types: Bools, Bool: true,
		Doc:  "reports where both t and y are true, with broadcasting.",
		Expr: func(x ...*k.Expr) *k.Expr { return k.And(x[0], x[1]) },
		Ref:  func(x ...float64) float64 { return x[0] * x[1] },
	})
	Or = define(&Def{
		Name: "Or", Tensors: 2, Types: Bools, Bool: true,
		Doc:  "reports where t or y is true, with broadcasting.",
		Expr: func(x ...*k.Expr) *k.Expr { return k.Or(x[0], x[1]) },
		Ref:  func(x ...float64) float64 { return math.Max(x[0], x[1]) },
	})
	Xor = define(&Def{
		Name: "Xor", Tensors: 2, Types: Bools, Bool: true,
		Doc:  "reports where one of t and y is true and the other is not, with broadcasting.",
		Expr: func(x ...*k.Expr) *k.Expr { return k.Xor(x[0], x[1]) },
		Ref:  func(x ...float64) float64 { return truth(x[0] != x[1]) },
	})
	Not = define(&Def{
		Name: "Not", Tensors: 1, Types: Bools, Bool: true,
		Doc:  "reports where t is false.",
		Expr: func(x ...*k.Expr) *k.Expr { return k.Not(x[0]) },
		Ref:  func(x ...float64) float64 { return 1 - x[0] },
	})
	IsNaN = define(&Def{
		Name: "IsNaN", Tensors: 1, Types: Floats, Bool: true,
		Doc:  "reports where t is NaN.",
		Expr: func(x ...*k.Expr) *k.Expr { return k.IsNaN(x[0]) },
		Ref:  func(x ...float64) float64 { return truth(math.IsNaN(x[0])) },
	})
	IsInf = define(&Def{
		Name: "IsInf", Tensors: 1, Types: Floats, Bool: true,
		Doc:  "reports where t is infinite.",
		Expr: func(x ...*k.Expr) *k.Expr { return k.IsInf(x[0]) },
		Ref:  func(x ...float64) float64 { return truth(math.IsInf(x[0], 0)) },
	})
	IsFinite = define(&Def{
		Name: "IsFinite", Tensors: 1, Types: Floats, Bool: true,
		Doc:  "reports where t is neither infinite nor NaN.",
		Expr: func(x ...*k.Expr) *k.Expr { return k.IsFinite(x[0]) },
		Ref:  func(x ...float64) float64 { return truth(!math.IsInf(x[0], 0) && !math.IsNaN(x[0])) },
	})
	Where = define(&Def{
		Name: "Where", Tensors: 3, Types: All, Cond: true,
		Doc:  "returns x where cond is true and y elsewhere, with broadcasting. Cond is a bool tensor. Elements that are not chosen have no effect, not even NaN, and get gradient 0.",
		Expr: func(x ...*k.Expr) *k.Expr { return k.Where(x[0], x[1], x[2]) },
		Ref: func(x ...float64) float64 {
			if x[0] != 0 {
				return x[1]
			}
			return x[2]
		},
	})
)

// Bits of integers.
var (
	BitAnd = define(&Def{
		Name: "BitAnd", Tensors: 2, Types: Integers,
		Doc:  "returns the bits that are set in both t and y, element by element, with broadcasting.",
		Expr: func(x ...*k.Expr) *k.Expr { return k.And(x[0], x[1]) },
		Ref:  func(x ...float64) float64 { return float64(int64(x[0]) & int64(x[1])) },
	})
	BitOr = define(&Def{
		Name: "BitOr", Tensors: 2, Types: Integers,
		Doc:  "returns the bits that are set in t or in y, element by element, with broadcasting.",
		Expr: func(x ...*k.Expr) *k.Expr { return k.Or(x[0], x[1]) },
		Ref:  func(x ...float64) float64 { return float64(int64(x[0]) | int64(x[1])) },
	})
	BitXor = define(&Def{
		Name: "BitXor", Tensors: 2, Types: Integers,
		Doc:  "returns the bits that are set in one of t and y and not in the other, element by element, with broadcasting.",
		Expr: func(x ...*k.Expr) *k.Expr { return k.Xor(x[0], x[1]) },
		Ref:  func(x ...float64) float64 { return float64(int64(x[0]) ^ int64(x[1])) },
	})
	BitNot = define(&Def{
		Name: "BitNot", Tensors: 1, Types: Integers,
		Doc:  "returns the bits that are not set in t, which is -1 - t.",
		Expr: func(x ...*k.Expr) *k.Expr { return k.Not(x[0]) },
		Ref:  func(x ...float64) float64 { return float64(^int64(x[0])) },
	})
	ShiftLeft = define(&Def{
		Name: "ShiftLeft", Tensors: 2, Types: Integers,
		Doc:  "returns t shifted to the left by y bits, element by element, with broadcasting. Where y is negative or 64 or more, it is 0.",
		Expr: func(x ...*k.Expr) *k.Expr { return k.Shl(x[0], x[1]) },
		Ref:  func(x ...float64) float64 { return float64(int64(x[0]) << uint64(int64(x[1]))) },
	})
	ShiftRight = define(&Def{
		Name: "ShiftRight", Tensors: 2, Types: Integers,
		Doc:  "returns t shifted to the right by y bits, element by element, with broadcasting, which is division by 2 to the power of y, rounded down. Where y is negative or 64 or more, it is -1 for a negative t and 0 for others.",
		Expr: func(x ...*k.Expr) *k.Expr { return k.Shr(x[0], x[1]) },
		Ref:  func(x ...float64) float64 { return float64(int64(x[0]) >> uint64(int64(x[1]))) },
	})
)

// Comparisons with a constant.
var (
	EqScalar = define(&Def{
		Name: "EqScalar", Tensors: 1, Scalars: 1, Types: Ordered, Bool: true,
		Doc:  "reports where t == c, as a bool tensor. c is converted to t's element type first, and has to be an integer for an integer type.",
		Expr: func(x ...*k.Expr) *k.Expr { return k.Eq(x[0], x[1]) },
		Ref:  func(x ...float64) float64 { return truth(x[0] == x[1]) },
	})
	NeScalar = define(&Def{
		Name: "NeScalar", Tensors: 1, Scalars: 1, Types: Ordered, Bool: true,
		Doc:  "reports where t != c, as a bool tensor. c is converted to t's element type first, and has to be an integer for an integer type.",
		Expr: func(x ...*k.Expr) *k.Expr { return k.Ne(x[0], x[1]) },
		Ref:  func(x ...float64) float64 { return truth(x[0] != x[1]) },
	})
	LtScalar = define(&Def{
		Name: "LtScalar", Tensors: 1, Scalars: 1, Types: Ordered, Bool: true,
		Doc:  "reports where t < c, as a bool tensor. c is converted to t's element type first, and has to be an integer for an integer type.",
		Expr: func(x ...*k.Expr) *k.Expr { return k.Lt(x[0], x[1]) },
		Ref:  func(x ...float64) float64 { return truth(x[0] < x[1]) },
	})
	LeScalar = define(&Def{
		Name: "LeScalar", Tensors: 1, Scalars: 1, Types: Ordered, Bool: true,
		Doc:  "reports where t <= c, as a bool tensor. c is converted to t's element type first, and has to be an integer for an integer type.",
		Expr: func(x ...*k.Expr) *k.Expr { return k.Le(x[0], x[1]) },
		Ref:  func(x ...float64) float64 { return truth(x[0] <= x[1]) },
	})
	GtScalar = define(&Def{
		Name: "GtScalar", Tensors: 1, Scalars: 1, Types: Ordered, Bool: true,
		Doc:  "reports where t > c, as a bool tensor. c is converted to t's element type first, and has to be an integer for an integer type.",
		Expr: func(x ...*k.Expr) *k.Expr { return k.Gt(x[0], x[1]) },
		Ref:  func(x ...float64) float64 { return truth(x[0] > x[1]) },
	})
	GeScalar = define(&Def{
		Name: "GeScalar", Tensors: 1, Scalars: 1, Types: Ordered, Bool: true,
		Doc:  "reports where t >= c, as a bool tensor. c is converted to t's element type first, and has to be an integer for an integer type.",
		Expr: func(x ...*k.Expr) *k.Expr { return k.Ge(x[0], x[1]) },
		Ref:  func(x ...float64) float64 { return truth(x[0] >= x[1]) },
	})
)

// Parts of other operations.
var (
	// Scale maps [0,1) onto an interval: x*c0 + c1.
	Scale = define(&Def{
		Name: "Scale", Tensors: 1, Scalars: 2, Types: Floats, Unlisted: true,
		Expr:   func(x ...*k.Expr) *k.Expr { return k.Add(k.Mul(x[0], x[1]), x[2]) },
		Ref:    func(x ...float64) float64 { p := x[0] * x[1]; return p + x[2] },
		Domain: []Interval{{0.1, 10}}, ULP: 2,
	})
	// MathMax is math.Max: Inf wins over NaN.
	MathMax = define(&Def{
		Name: "MathMax", Tensors: 2, Types: Floats, Unlisted: true,
		Expr: func(x ...*k.Expr) *k.Expr { return infinityFirst(k.Max(x[0], x[1]), x[0], x[1], math.Inf(1)) },
		Ref:  func(x ...float64) float64 { return math.Max(x[0], x[1]) },
	})
	// MathMin is math.Min: -Inf wins over NaN.
	MathMin = define(&Def{
		Name: "MathMin", Tensors: 2, Types: Floats, Unlisted: true,
		Expr: func(x ...*k.Expr) *k.Expr { return infinityFirst(k.Min(x[0], x[1]), x[0], x[1], math.Inf(-1)) },
		Ref:  func(x ...float64) float64 { return math.Min(x[0], x[1]) },
	})
	// Finite is x, but 0 where x is infinite or NaN.
	Finite = define(&Def{
		Name: "Finite", Tensors: 1, Types: Floats, Unlisted: true,
		Expr: func(x ...*k.Expr) *k.Expr {
			return k.Where(k.Lt(k.Abs(x[0]), like(math.Inf(1), x[0])), x[0], like(0, x[0]))
		},
		Ref: func(x ...float64) float64 {
			if math.IsInf(x[0], 0) || math.IsNaN(x[0]) {
				return 0
			}
			return x[0]
		},
	})
	// Root is Sqrt with a gradient that is 0 at 0: the end of a norm.
	Root = define(&Def{
		Name: "Root", Tensors: 1, Types: Floats, Unlisted: true,
		Expr: func(x ...*k.Expr) *k.Expr { return k.Sqrt(x[0]) },
		Grad: func(_ int, x ...*k.Expr) *k.Expr {
			d := k.Div(like(0.5, x[0]), k.Sqrt(x[0]))
			return k.Where(k.Eq(x[0], like(0, x[0])), like(0, x[0]), d)
		},
		Why:    "a norm has 0 among its subgradients at 0, where the chain rule gives Inf*0",
		Ref:    func(x ...float64) float64 { return math.Sqrt(x[0]) },
		Domain: []Interval{{0.01, 100}},
	})
	// Wins reports where x is an extremum. Its second operand is the greatest or the least of the
	// elements among which x is: x wins if it is equal, and if it is NaN, since the extremum then is
	// NaN as well.
	Wins = define(&Def{
		Name: "Wins", Tensors: 2, Types: Numbers, Bool: true, Unlisted: true,
		Expr: func(x ...*k.Expr) *k.Expr { return k.Or(k.Eq(x[0], x[1]), k.Ne(x[0], x[0])) },
		Ref:  func(x ...float64) float64 { return truth(x[0] == x[1] || math.IsNaN(x[0])) },
	})
	// FromEnd returns an index of an axis of length c as a number from 0. An index out of range stays as it is.
	FromEnd = define(&Def{
		Name: "FromEnd", Tensors: 1, Scalars: 1, Types: 1 << device.Int64, Unlisted: true,
		Expr: func(x ...*k.Expr) *k.Expr {
			zero, sum := like(0, x[0]), k.Add(x[0], x[1])
			return k.Where(k.And(k.Lt(x[0], zero), k.Ge(sum, zero)), sum, x[0])
		},
		Ref: func(x ...float64) float64 {
			if -x[1] <= x[0] && x[0] < 0 {
				return x[0] + x[1]
			}
			return x[0]
		},
	})
	// LastOfRun returns n + 1 where x differs from its successor y, and 0 elsewhere.
	LastOfRun = define(&Def{
		Name: "LastOfRun", Tensors: 3, Types: 1 << device.Int64, Unlisted: true,
		Expr: func(x ...*k.Expr) *k.Expr {
			return k.Where(k.Ne(x[0], x[1]), k.Add(x[2], like(1, x[2])), like(0, x[2]))
		},
		Ref: func(x ...float64) float64 {
			if x[0] != x[1] {
				return x[2] + 1
			}
			return 0
		},
	})
	// Dropout is x times a constant c1, or 0 where the second operand, a number from [0, 1), is less than
	// a constant c0. NaN stays NaN.
	Dropout = define(&Def{
		Name: "Dropout", Tensors: 2, Scalars: 2, Types: Floats, Unlisted: true,
		Expr: func(x ...*k.Expr) *k.Expr {
			return k.Mul(x[0], k.Where(k.Lt(x[1], x[2]), like(0, x[0]), x[3]))
		},
		Ref: func(x ...float64) float64 {
			if x[1] < x[2] {
				return x[0] * 0
			}
			return x[0] * x[3]
		},
		Domain: []Interval{{-10, 10}, {0, 1}, {0, 1}, {1, 10}},
	})
	// Waiting is how long an event with rate x[1] takes: it is exponentially distributed if x[0] is
	// uniformly distributed in [0, 1). With rate 0 it is Inf or NaN, which come last in any order.
	Waiting = define(&Def{
		Name: "Waiting", Tensors: 2, Types: Floats, Unlisted: true,
		Expr:   func(x ...*k.Expr) *k.Expr { return k.Div(k.Neg(k.Log1p(k.Neg(x[0]))), x[1]) },
		Ref:    func(x ...float64) float64 { return -math.Log1p(-x[0]) / x[1] },
		Domain: []Interval{{0, 0.99}, {0.1, 10}}, ULP: 3,
	})
	// Before reports whether x is before y in a sorted list, in which NaNs come last.
	Before = define(&Def{
		Name: "Before", Tensors: 2, Types: Ordered, Bool: true, Unlisted: true,
		Expr: func(x ...*k.Expr) *k.Expr {
			return k.Or(k.Lt(x[0], x[1]), k.And(k.Ne(x[1], x[1]), k.Eq(x[0], x[0])))
		},
		Ref: func(x ...float64) float64 { return truth(x[0] < x[1] || math.IsNaN(x[1]) && !math.IsNaN(x[0])) },
	})
	// NotAfter reports whether x is before y or equal to it, where NaNs are equal.
	NotAfter = define(&Def{
		Name: "NotAfter", Tensors: 2, Types: Ordered, Bool: true, Unlisted: true,
		Expr: func(x ...*k.Expr) *k.Expr { return k.Or(k.Le(x[0], x[1]), k.Ne(x[1], x[1])) },
		Ref:  func(x ...float64) float64 { return truth(x[0] <= x[1] || math.IsNaN(x[1])) },
	})
	// Close, of IsClose and AllClose, reports whether x and y are equal, or differ by at most c1 + c0*|y|.
	Close = define(&Def{
		Name: "IsClose", Tensors: 2, Scalars: 2, Types: Floats, Bool: true, Unlisted: true,
		Expr: func(x ...*k.Expr) *k.Expr {
			slack := k.Add(x[3], k.Mul(x[2], k.Abs(x[1])))
			isNear := k.And(k.Le(k.Abs(k.Sub(x[0], x[1])), slack), k.IsFinite(x[1]))
			return k.Or(k.Eq(x[0], x[1]), isNear)
		},
		Ref: func(x ...float64) float64 {
			p := x[2] * math.Abs(x[1])
			return truth(math.Abs(x[0]-x[1]) <= x[3]+p)
		},
		Domain: []Interval{{1, 2}, {3, 4}, {0, 0}, {3, 4}},
	})
	// Between is x + c0*(y-x), or x where x and y are equal or c0 is 0: infinities do not become NaN.
	Between = define(&Def{
		Name: "Between", Tensors: 2, Scalars: 1, Types: Floats, Unlisted: true,
		Expr: func(x ...*k.Expr) *k.Expr {
			return k.Where(k.Or(k.Eq(x[0], x[1]), k.Eq(x[2], like(0, x[2]))), x[0], k.Lerp(x[0], x[1], x[2]))
		},
		Ref: func(x ...float64) float64 {
			p := x[2] * (x[1] - x[0])
			return x[0] + p
		},
		Domain: []Interval{{1, 2}, {10, 20}, {0, 1}}, ULP: 4,
	})
	// Clamped is the sum of x and c0, at most c1.
	Clamped = define(&Def{
		Name: "Clamped", Tensors: 1, Scalars: 2, Types: Numbers, Unlisted: true,
		Expr: func(x ...*k.Expr) *k.Expr { return k.Min(k.Add(x[0], x[1]), x[2]) },
		Ref:  func(x ...float64) float64 { return math.Min(x[0]+x[1], x[2]) },
	})
)

// like is the constant c in x's element type.
func like(c float64, x *k.Expr) *k.Expr { return k.Const(c, x.DType()) }

// infinityFirst is e, but inf where x or y is inf.
func infinityFirst(e, x, y *k.Expr, inf float64) *k.Expr {
	limit := like(inf, e)
	return k.Where(k.Or(k.Eq(x, limit), k.Eq(y, limit)), limit, e)
}

// sigmoid is 1/(1+e) with e = exp(-|x|) where x is not negative, and e - e*e/(1+e) elsewhere. It takes
// the exponential of -|x| only: exp(-x) would overflow where the result is still a denormal number.
// Below 0 it is not e/(1+e), which would lose another bit when 1+e is rounded.
func sigmoid(x *k.Expr) *k.Expr {
	isNegative := k.Lt(x, like(0, x))
	e := k.Exp(k.Neg(k.Abs(x)))
	part := k.Div(k.Where(isNegative, k.Mul(e, e), like(1, x)), k.Add(e, like(1, x)))
	return k.Where(isNegative, k.Sub(e, part), part)
}

func sign(x *k.Expr) *k.Expr {
	zero := like(0, x)
	return k.Where(k.Gt(x, zero), like(1, x), k.Where(k.Lt(x, zero), like(-1, x), x))
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
