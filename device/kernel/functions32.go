package kernel

import "math"

const (
	ln2High32  = 0x1.62e43p-1
	ln2Low32   = -0x1.05c61p-29
	piHalf1f32 = 0x1.921fb6p+0
	piHalf2f32 = -0x1.777a5cp-25
	piHalf3f32 = -0x1.ee59dap-50

	// expBias makes the reduction of exp asymmetric, see above.
	expBias = 0.1394

	// sqrtHalf32 are the bits of sqrt(1/2).
	sqrtHalf32 = 0x3f3504f3
	// For x = m * 2**e with m from sqrt(1/2) to sqrt(2), logOffset32 plus the bits of x has e + 127
	// in the bits of the exponent. The bits below are those of m minus sqrtHalf32.
	logOffset32 = 127<<23 - sqrtHalf32

	// Beyond circleLimit32 the reduction modulo pi/2 in three steps is not exact enough.
	circleLimit32 = 1 << 17
)

// powers32 splits e**x into 2**n * p, for x in [-105, 89].
func powers32(x float32) (n, p float32) {
	n = round32(fma32(x, math.Log2E, -expBias))
	r := fma32(n, -ln2High32, x)
	r = fma32(n, -ln2Low32, r)
	h := exp32Poly(r)
	h = fma32(h, r, 1)
	return n, fma32(h, r, 1)
}

// exp32Poly is (e**r - 1 - r) / r**2 on [-0.2502, 0.4435], 2^-28.6.
func exp32Poly(r float32) float32 {
	h := fma32(0x1.8e2ea8p-10, r, 0x1.1153f6p-7)
	h = fma32(h, r, 0x1.553a84p-5)
	h = fma32(h, r, 0x1.55556cp-3)
	return fma32(h, r, 0x1.00000ap-1)
}

func exp32(x float32) float32 {
	if x != x {
		return x
	}
	n, p := powers32(min(max(x, -105), 89))
	half := floor32(0.5 * n) // 2**n may be too large or too small for a float32
	return p * power32(half) * power32(n-half)
}

func expm1f32(x float32) float32 {
	if x != x || abs32(x) < 0x1p-26 {
		return x
	}
	y := min(max(x, -20), 89)
	n := round32(fma32(y, math.Log2E, -expBias))
	r := fma32(n, -ln2High32, y)
	r = fma32(n, -ln2Low32, r)
	u := (r * r) * exp32Poly(r)
	// 2**n * (1 + r + u) - 1, all of it halved as 2**n may be too large.
	s := power32(n - 1)
	s1 := s - 0.5
	sum := fma32(s, r, s1)
	rest := fma32(s, r, s1-sum) // s*r + s1 - sum, exactly
	return 2 * (sum + fma32(s, u, rest))
}

func log32of(x float32) float32 {
	switch {
	case !(x >= 0):
		return float32(math.NaN())
	case x == 0:
		return float32(math.Inf(-1))
	case x > math.MaxFloat32:
		return x
	}
	shift := float32(127)
	if x < 0x1p-126 { // denormal
		x *= 0x1p23
		shift = 127 + 23
	}
	b := math.Float32bits(x) + logOffset32
	e := float32(b>>23) - shift
	f := math.Float32frombits(b&(1<<23-1)+sqrtHalf32) - 1
	u := (f * f) * fma32(log32Poly(f), f, -0.5)
	return fma32(e, ln2High32, f+fma32(e, ln2Low32, u))
}

// log32Poly is (log(1+f) - f + f**2/2) / f**3 on [sqrt(1/2)-1, sqrt(2)-1], 2^-27.2.
func log32Poly(f float32) float32 {
	h := fma32(-0x1.3925eap-4, f, 0x1.0576d8p-3)
	h = fma32(h, f, -0x1.0d80e6p-3)
	h = fma32(h, f, 0x1.22d64ep-3)
	h = fma32(h, f, -0x1.54721cp-3)
	h = fma32(h, f, 0x1.99a036p-3)
	h = fma32(h, f, -0x1.000228p-2)
	return fma32(h, f, 0x1.555554p-2)
}

func log1pf32(x float32) float32 {
	switch {
	case !(x >= -1):
		return float32(math.NaN())
	case x == -1:
		return float32(math.Inf(-1))
	case x > math.MaxFloat32:
		return x
	}
	// 1 + x is u + c exactly.
	high, low := max(x, 1), min(x, 1)
	u := high + low
	c := low - (u - high)
	b := math.Float32bits(u) + logOffset32
	e := float32(b>>23) - 127
	f := math.Float32frombits(b&(1<<23-1)+sqrtHalf32) - 1
	// c is scaled like u; where u is huge, it does not matter.
	c = float32(c * math.Float32frombits(254<<23-(math.Float32bits(min(u, 0x1p64))+logOffset32)&^(1<<23-1)))
	y := f + c
	c -= y - f
	v := (y * y) * fma32(log32Poly(y), y, -0.5)
	v = fma32(e, ln2Low32, v) + c
	return copysign32(fma32(e, ln2High32, y+v), x)
}

func sin32(x float32) float32 {
	q, r := circle32(abs32(x))
	return math.Float32frombits(math.Float32bits(turn32(q, r)) ^ math.Float32bits(x)&(1<<31))
}

func cos32(x float32) float32 {
	q, r := circle32(abs32(x))
	return turn32(q+1, r)
}

// circle32 splits x >= 0 into q quarters of a circle and the rest r. q counts modulo 4.
func circle32(x float32) (q uint32, r float32) {
	if !(x <= circleLimit32) {
		if !(x <= math.MaxFloat32) {
			return 0, float32(math.NaN())
		}
		q, r := quarters(float64(x))
		return uint32(q), float32(r)
	}
	n := round32(x * (2 / math.Pi))
	r = fma32(n, -piHalf1f32, x)
	r = fma32(n, -piHalf2f32, r)
	r = fma32(n, -piHalf3f32, r)
	return uint32(n), r
}

// turn32 is the sine of q quarters of a circle plus r.
func turn32(q uint32, r float32) float32 {
	z := r * r
	var y float32
	if q&1 == 0 {
		// (sin(r) - r) / r**3 in z on [0, 0.7955**2], 2^-27.8.
		h := fma32(-0x1.9918d6p-13, z, 0x1.1106cp-7)
		h = fma32(h, z, -0x1.555544p-3)
		y = fma32(h, r*z, r)
	} else {
		// (cos(r) - 1 + r**2/2) / r**4 in z on [0, 0.7955**2], 2^-32.7.
		h := fma32(0x1.99db84p-16, z, -0x1.6c0c0ep-10)
		h = fma32(h, z, 0x1.55554ap-5)
		y = fma32(h, z*z, fma32(z, -0.5, 1))
	}
	return math.Float32frombits(math.Float32bits(y) ^ q&2<<30)
}

func tanh32(x float32) float32 {
	if x != x {
		return x
	}
	a := abs32(x)
	var y float32
	if a < 0.55 {
		// (tanh(a) - a) / a**3 in z on [0, 0.5501**2], 2^-29.7.
		z := a * a
		h := fma32(-0x1.9921bcp-8, z, 0x1.58e51ap-6)
		h = fma32(h, z, -0x1.b91e7ep-5)
		h = fma32(h, z, 0x1.110ceep-3)
		h = fma32(h, z, -0x1.55554ap-2)
		y = fma32(h, a*z, a)
	} else {
		n, p := powersNear32(min(a+a, 20)) // beyond this, tanh is 1
		y = 1 - 2/fma32(p, power32(n), 1)
	}
	return copysign32(y, x)
}

// powersNear32 is a less exact powers32. The digits of ln2 that it leaves out make a difference of
// 2**-29*n relative to e**x.
func powersNear32(x float32) (n, p float32) {
	n = round32(fma32(x, math.Log2E, -expBias))
	r := fma32(n, -ln2High32, x)
	h := exp32Poly(r)
	h = fma32(h, r, 1)
	return n, fma32(h, r, 1)
}

func erf32(x float32) float32 {
	if x != x {
		return x
	}
	a := abs32(x)
	var y float32
	if a < 0.9375 {
		// erf(a)/a - 1 in z on [0, 0.9376**2], 2^-25.6.
		z := a * a
		h := fma32(-0x1.36ae04p-11, z, 0x1.466b9ap-8)
		h = fma32(h, z, -0x1.b669bcp-6)
		h = fma32(h, z, 0x1.ce1858p-4)
		h = fma32(h, z, -0x1.8126dcp-2)
		h = fma32(h, z, 0x1.06eba6p-3)
		y = fma32(h, a, a)
	} else {
		// log(1 - erf(0.9375+t)) in t on [0, 3.0625], 2^-28.5; beyond this erf is 1.
		t := min(a, 4) - 0.9375
		h := fma32(0x1.b197a6p-13, t, -0x1.044ba4p-9)
		h = fma32(h, t, 0x1.5bb0cep-7)
		h = fma32(h, t, -0x1.6998bcp-5)
		h = fma32(h, t, -0x1.ab8e82p-1)
		h = fma32(h, t, -0x1.445ca0p+1)
		h = fma32(h, t, -0x1.b01db2p+0)
		n, p := powersNear32(h)
		y = fma32(p, -power32(n), 1)
	}
	return copysign32(y, x)
}

// pow32 is computed in float64, with more digits than float32 has for any power.
func pow32(x, y float32) float32 {
	switch {
	case y == 0 || x == 1:
		return 1
	case x != x || y != y:
		return float32(math.NaN())
	}
	base, power := math.Abs(float64(x)), float64(y)
	v := 1.0
	if base != 1 { // else the product may be 0 times infinity
		v = exp64(power * log64of(base))
	}
	isInteger := math.RoundToEven(power) == power
	switch {
	case x < 0 && !isInteger && base <= math.MaxFloat32:
		return float32(math.NaN())
	case isInteger && math.RoundToEven(0.5*power) != 0.5*power: // odd
		v = math.Copysign(v, float64(x))
	}
	return float32(v)
}
