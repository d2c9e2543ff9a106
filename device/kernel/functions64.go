package kernel

import "math"

const (
	ln2High64 = 0x1.62e42fefa39efp-1
	ln2Low64  = 0x1.abc9e3b39803fp-56
	piHalf1   = 0x1.921fb54442d18p+0
	piHalf2   = 0x1.1a62633145c07p-54
	piHalf3   = -0x1.f1976b7ed8fbcp-110

	sqrtHalf64  = 0x3fe6a09e667f3bcd // as sqrtHalf32
	logOffset64 = 1023<<52 - sqrtHalf64

	circleLimit64 = 1 << 30
)

// powers64 splits e**x into 2**n * p, for x in [-746, 710].
func powers64(x float64) (n, p float64) {
	n = math.RoundToEven(math.FMA(x, math.Log2E, -expBias))
	r := math.FMA(n, -ln2High64, x)
	r = math.FMA(n, -ln2Low64, r)
	h := exp64Poly(r)
	h = math.FMA(h, r, 1)
	return n, math.FMA(h, r, 1)
}

// exp64Poly is (e**r - 1 - r) / r**2 on [-0.2502, 0.4435], 2^-56.6.
func exp64Poly(r float64) float64 {
	h := math.FMA(0x1.d827737a6954cp-26, r, 0x1.2766ef050841ep-22)
	h = math.FMA(h, r, 0x1.71d2ce0897a36p-19)
	h = math.FMA(h, r, 0x1.a01a7b175d889p-16)
	h = math.FMA(h, r, 0x1.a01a03981ca33p-13)
	h = math.FMA(h, r, 0x1.6c16c14d28954p-10)
	h = math.FMA(h, r, 0x1.11111110f6c76p-7)
	h = math.FMA(h, r, 0x1.555555555b7afp-5)
	h = math.FMA(h, r, 0x1.5555555555554p-3)
	return math.FMA(h, r, 0x1.fffffffffffe7p-2)
}

func exp64(x float64) float64 {
	if x != x {
		return x
	}
	n, p := powers64(min(max(x, -746), 710))
	half := math.Floor(0.5 * n) // 2**n may be too large or too small for a float64
	return p * power64(half) * power64(n-half)
}

func expm1f64(x float64) float64 {
	if x != x || math.Abs(x) < 0x1p-55 {
		return x
	}
	y := min(max(x, -45), 710)
	n := math.RoundToEven(math.FMA(y, math.Log2E, -expBias))
	r := math.FMA(n, -ln2High64, y)
	r = math.FMA(n, -ln2Low64, r)
	u := float64(float64(r*r) * exp64Poly(r))
	// 2**n * (1 + r + u) - 1, all of it halved as 2**n may be too large.
	s := power64(n - 1)
	s1 := s - 0.5
	sum := math.FMA(s, r, s1)
	rest := math.FMA(s, r, s1-sum) // s*r + s1 - sum, exactly
	return 2 * (sum + math.FMA(s, u, rest))
}

func log64of(x float64) float64 {
	switch {
	case !(x >= 0):
		return math.NaN()
	case x == 0:
		return math.Inf(-1)
	case x > math.MaxFloat64:
		return x
	}
	shift := 1023.0
	if x < 0x1p-1022 { // denormal
		x *= 0x1p52
		shift = 1023 + 52
	}
	b := math.Float64bits(x) + logOffset64
	e := float64(b>>52) - shift
	f := math.Float64frombits(b&(1<<52-1)+sqrtHalf64) - 1
	return logNear64(e, f, 0)
}

// logNear64 is e*ln2 + log(1+f) + c, for f in [sqrt(1/2)-1, sqrt(2)-1]. With s = f/(2+f), log(1+f)
// is log((1+s)/(1-s)), an odd function of s, and 2s = f - s*f. (The logarithm of Sun Microsystems'
// fdlibm, 1993.)
func logNear64(e, f, c float64) float64 {
	s := f / (2 + f)
	z := s * s
	half := float64(float64(0.5*f) * f)
	v := math.FMA(s, math.FMA(log64Poly(z), z, half), float64(e*ln2Low64)) + c
	return math.FMA(e, ln2High64, f-(half-v))
}

// log64Poly is (log((1+s)/(1-s)) - 2s) / s**3 in z = s**2 on [0, 0.1716**2], 2^-59.5.
func log64Poly(z float64) float64 {
	h := math.FMA(0x1.2f045bc410d25p-3, z, 0x1.39a1da7b86a02p-3)
	h = math.FMA(h, z, 0x1.74663d68a1012p-3)
	h = math.FMA(h, z, 0x1.c71c52125e893p-3)
	h = math.FMA(h, z, 0x1.24924941e325dp-2)
	h = math.FMA(h, z, 0x1.999999997ff06p-2)
	return math.FMA(h, z, 0x1.5555555555592p-1)
}

func log1pf64(x float64) float64 {
	switch {
	case !(x >= -1):
		return math.NaN()
	case x == -1:
		return math.Inf(-1)
	case x > math.MaxFloat64:
		return x
	}
	// 1 + x is u + c exactly.
	high, low := max(x, 1), min(x, 1)
	u := high + low
	c := low - (u - high)
	b := math.Float64bits(u) + logOffset64
	e := float64(b>>52) - 1023
	f := math.Float64frombits(b&(1<<52-1)+sqrtHalf64) - 1
	// c is scaled like u; where u is huge, it does not matter.
	c = float64(c * math.Float64frombits(2046<<52-(math.Float64bits(min(u, 0x1p64))+logOffset64)&^(1<<52-1)))
	y := f + c
	return math.Copysign(logNear64(e, y, c-(y-f)), x)
}

func sin64(x float64) float64 {
	q, r := circle64(math.Abs(x))
	return math.Float64frombits(math.Float64bits(turn64(q, r)) ^ math.Float64bits(x)&(1<<63))
}

func cos64(x float64) float64 {
	q, r := circle64(math.Abs(x))
	return turn64(q+1, r)
}

// circle64 splits x >= 0 into q quarters of a circle and the rest r. q counts modulo 4.
func circle64(x float64) (q uint64, r float64) {
	if !(x <= circleLimit64) {
		if !(x <= math.MaxFloat64) {
			return 0, math.NaN()
		}
		return quarters(x)
	}
	n := math.RoundToEven(x * (2 / math.Pi))
	r = math.FMA(n, -piHalf1, x)
	r = math.FMA(n, -piHalf2, r)
	r = math.FMA(n, -piHalf3, r)
	return uint64(n), r
}

// turn64 is the sine of q quarters of a circle plus r.
func turn64(q uint64, r float64) float64 {
	z := r * r
	var y float64
	if q&1 == 0 {
		// (sin(r) - r) / r**3 in z on [0, 0.7955**2], 2^-57.6.
		h := math.FMA(0x1.5d75b33b2c97ap-33, z, -0x1.ae5e01de77e38p-26)
		h = math.FMA(h, z, 0x1.71de34f898862p-19)
		h = math.FMA(h, z, -0x1.a01a019b806c9p-13)
		h = math.FMA(h, z, 0x1.111111110f3fep-7)
		h = math.FMA(h, z, -0x1.5555555555546p-3)
		y = math.FMA(h, r*z, r)
	} else {
		// (cos(r) - 1 + r**2/2) / r**4 in z on [0, 0.7955**2], 2^-63.6.
		h := math.FMA(-0x1.8f8ac4f415e91p-37, z, 0x1.1ee9a6770cdd9p-29)
		h = math.FMA(h, z, -0x1.27e4f7a36b629p-22)
		h = math.FMA(h, z, 0x1.a01a019c234d6p-16)
		h = math.FMA(h, z, -0x1.6c16c16c14bc5p-10)
		h = math.FMA(h, z, 0x1.5555555555549p-5)
		y = math.FMA(h, z*z, math.FMA(z, -0.5, 1))
	}
	return math.Float64frombits(math.Float64bits(y) ^ q&2<<62)
}

func tanh64(x float64) float64 {
	if x != x {
		return x
	}
	a := math.Abs(x)
	var y float64
	if a < 0.55 {
		// (tanh(a) - a) / a**3 in z on [0, 0.5501**2], 2^-65.0.
		z := a * a
		h := math.FMA(0x1.e4c1f48c095bep-18, z, -0x1.1134cb7ad1eccp-15)
		h = math.FMA(h, z, 0x1.88d8724e42f0ap-14)
		h = math.FMA(h, z, -0x1.f349edc7cd532p-13)
		h = math.FMA(h, z, 0x1.3539040f9d48cp-11)
		h = math.FMA(h, z, -0x1.7da103ec55abap-10)
		h = math.FMA(h, z, 0x1.d6d3b1039ca25p-9)
		h = math.FMA(h, z, -0x1.226e34cf75e4ap-7)
		h = math.FMA(h, z, 0x1.664f487f8e6ecp-6)
		h = math.FMA(h, z, -0x1.ba1ba1ba10e24p-5)
		h = math.FMA(h, z, 0x1.111111111108p-3)
		h = math.FMA(h, z, -0x1.5555555555555p-2)
		y = math.FMA(h, a*z, a)
	} else {
		n, p := powersNear64(min(a+a, 45)) // beyond this, tanh is 1
		y = 1 - 2/math.FMA(p, power64(n), 1)
	}
	return math.Copysign(y, x)
}

// powersNear64 is a less exact powers64. The digits of ln2 that it leaves out make a difference of
// 2**-55*n relative to e**x.
func powersNear64(x float64) (n, p float64) {
	n = math.RoundToEven(math.FMA(x, math.Log2E, -expBias))
	r := math.FMA(n, -ln2High64, x)
	h := exp64Poly(r)
	h = math.FMA(h, r, 1)
	return n, math.FMA(h, r, 1)
}

func erf64(x float64) float64 {
	if x != x {
		return x
	}
	a := math.Abs(x)
	var y float64
	if a < 1 {
		// erf(a)/a - 1 in z on [0, 1], 2^-54.9.
		z := a * a
		h := math.FMA(-0x1.a4256cd55db57p-31, z, 0x1.d45a039b0fabcp-27)
		h = math.FMA(h, z, -0x1.5b98e1e6acac5p-23)
		h = math.FMA(h, z, 0x1.b96c88a49c7a2p-20)
		h = math.FMA(h, z, -0x1.f4c83b0f795ffp-17)
		h = math.FMA(h, z, 0x1.f9a296916bab5p-14)
		h = math.FMA(h, z, -0x1.c02daeb040440p-11)
		h = math.FMA(h, z, 0x1.565bcceeacf8cp-8)
		h = math.FMA(h, z, -0x1.b82ce311a8ee4p-6)
		h = math.FMA(h, z, 0x1.ce2f21a03f8b9p-4)
		h = math.FMA(h, z, -0x1.812746b03799dp-2)
		h = math.FMA(h, z, 0x1.06eba8214db68p-3)
		y = math.FMA(h, a, a)
	} else {
		// log(1 - erf(1+t)) in t on [0, 5], 2^-54.3; beyond this erf is 1.
		t := min(a, 6) - 1
		h := math.FMA(0x1.14e2d2119a9d5p-36, t, -0x1.6d256a3ce3c06p-32)
		h = math.FMA(h, t, 0x1.9537ba128da5fp-29)
		h = math.FMA(h, t, -0x1.b18fdd61b68fcp-27)
		h = math.FMA(h, t, 0x1.0f4fdd6d69dc9p-28)
		h = math.FMA(h, t, 0x1.487b2e3fd1567p-22)
		h = math.FMA(h, t, -0x1.30a506de8da4dp-19)
		h = math.FMA(h, t, 0x1.49218c4dbcbc1p-17)
		h = math.FMA(h, t, -0x1.c9ff849b9bc50p-16)
		h = math.FMA(h, t, 0x1.ba0d763a83d11p-16)
		h = math.FMA(h, t, 0x1.f1a6122c21aabp-13)
		h = math.FMA(h, t, -0x1.033f31a6900e4p-9)
		h = math.FMA(h, t, 0x1.48c9d1e6a4d6ap-7)
		h = math.FMA(h, t, -0x1.5477f0903890ep-5)
		h = math.FMA(h, t, -0x1.afabc11a3226cp-1)
		h = math.FMA(h, t, -0x1.51c9b0006c196p+1)
		h = math.FMA(h, t, -0x1.d97fbf27aa2a2p+0)
		n, p := powersNear64(h)
		y = math.FMA(p, -power64(n), 1)
	}
	return math.Copysign(y, x)
}

// pow takes the logarithm in two parts, with more digits than one float64 has: the power multiplies the logarithm's
// relative error by up to 745.
const (
	ln2Top      = 0x1.62e42fefa3p-1     // the first digits of ln2: its product with an exponent is exact
	ln2Rest     = 0x1.3de6af278ece6p-42 // the rest of ln2
	twoThirds   = 0x1.5555555555555p-1  // 2/3 as a float64
	thirdOfUnit = 0x1.5555555555555p-55 // the rest of 2/3
	powerLimit  = 1000                  // a larger power of e is infinite
)

func pow64(x, y float64) float64 {
	switch {
	case y == 0 || x == 1:
		return 1
	case x != x || y != y:
		return math.NaN()
	}
	base := math.Abs(x)
	v := 1.0
	if base != 1 { // otherwise the product may be 0 times infinity
		high, low := logParts64(base)
		p := y * high
		v = expParts64(p, math.FMA(y, low, math.FMA(y, high, -p)))
	}
	isInteger := math.RoundToEven(y) == y
	switch {
	case x < 0 && !isInteger && base <= math.MaxFloat64:
		return math.NaN()
	case isInteger && math.RoundToEven(0.5*y) != 0.5*y: // odd
		v = math.Copysign(v, x)
	}
	return v
}

// logParts64 is the logarithm of x >= 0 in two parts: high is the nearest float64, and low the
// difference to the exact value. Together they are exact to 2**-65, relative. Where high is infinite,
// low is NaN.
func logParts64(x float64) (high, low float64) {
	switch {
	case x == 0:
		return math.Inf(-1), math.NaN()
	case x > math.MaxFloat64:
		return x, math.NaN()
	}
	shift := 1023.0
	if x < 0x1p-1022 { // denormal
		x *= 0x1p52
		shift = 1023 + 52
	}
	b := math.Float64bits(x) + logOffset64
	e := float64(b>>52) - shift
	f := math.Float64frombits(b&(1<<52-1)+sqrtHalf64) - 1
	// s = f/(2+f), see logNear64. A number has two parts: d is the first part, d1 the rest, and so on.
	d := 2 + f
	d1 := f - (d - 2)
	inverse := 1 / d
	s := float64(f * inverse) // the conversion rounds s, otherwise s + s and s*u + x could be fused
	s1 := float64(math.FMA(-s, d1, math.FMA(-s, d, f)) * inverse)
	z := s * s
	z1 := math.FMA(s+s, s1, math.FMA(s, s, -z))
	// 2/3 + z*(2/5 + z*(2/7 ...))
	h := float64(logParts64Poly(z) * z)
	t := twoThirds + h
	t1 := (twoThirds - t) + h + thirdOfUnit
	// w = s * u, where u = z * t
	u := z * t
	u1 := math.FMA(z1, t, math.FMA(z, t1, math.FMA(z, t, -u)))
	w := float64(s * u)
	w1 := math.FMA(s1, u, math.FMA(s, u1, math.FMA(s, u, -w)))
	// a = 2*s + w
	a := (s + s) + w
	a1 := ((s + s) - a) + w + (w1 + (s1 + s1))
	// e*ln2 + a
	k := float64(e * ln2Top)
	sum := k + a
	rest := (k - sum) + a + math.FMA(e, ln2Rest, a1)
	high = sum + rest
	return high, (sum - high) + rest
}

// logParts64Poly is a polynomial in z = s**2 for ((log((1+s)/(1-s)) - 2s) / s**3 - 2/3) / z on [0,
// 0.1716**2], with a relative error of 2^-53.8. It is exact at the zeros of the Chebyshev polynomial of
// degree 8.
func logParts64Poly(z float64) float64 {
	h := math.FMA(0x1.e02e6fff27908p-4, z, 0x1.df7cc8e5fa539p-4)
	h = math.FMA(h, z, 0x1.1118c7e4b0917p-3)
	h = math.FMA(h, z, 0x1.3b1395d2190c1p-3)
	h = math.FMA(h, z, 0x1.745d177a96056p-3)
	h = math.FMA(h, z, 0x1.c71c71c6eaa10p-3)
	h = math.FMA(h, z, 0x1.2492492492521p-2)
	return math.FMA(h, z, 0x1.999999999999ap-2)
}

// expParts64 is e to the power of x + rest, where rest is below the last digits of x. It ignores rest
// where |x| is at least powerLimit: the result is 0 or infinite, whatever rest is.
func expParts64(x, rest float64) float64 {
	if !(math.Abs(x) < powerLimit) {
		rest = 0
	}
	y := min(max(x, -746), 710)
	n := math.RoundToEven(math.FMA(y, math.Log2E, -expBias))
	r := math.FMA(n, -ln2High64, y)
	r += math.FMA(n, -ln2Low64, rest)
	h := exp64Poly(r)
	h = math.FMA(h, r, 1)
	p := math.FMA(h, r, 1)
	half := math.Floor(0.5 * n) // 2**n may be too large or too small for a float64
	return p * power64(half) * power64(n-half)
}
