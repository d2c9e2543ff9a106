package kernel

import (
	"math"
	"math/bits"
)

// The functions that are not correctly rounded: exp, expm1, log, log1p, sin, cos, tanh, erf and pow.
// functions32.go has those of float32, functions64.go those of float64. Each is one sequence of
// operations that are correctly rounded everywhere (+ - * / and the fused multiply-add), with a
// branch where a vector unit would select. So any machine that follows the sequence gets the same
// bits. exp is within 1 ulp of the exact value, the others within 2, denormal results included. The
// signs of zeros, infinities and NaN are those of package math.
//
// # Methods
//
// The reduction x = n*ln2 + r subtracts in two fused steps. The first is exact, as in W. J. Cody,
// W. Waite: Software Manual for the Elementary Functions (1980). It chooses n so that r is in
// [-1/4, 0.4435], not in [-ln2/2, ln2/2]. The reason: r is added to 1, and its rounding errors
// count more where the sum is below 1. There |r| is at most 1/4, and its errors are smaller. The
// same reduction modulo pi/2 takes three steps. Numbers too large for it are multiplied by the
// digits of 2/pi that matter (M. H. Payne, R. N. Hanek: Radian reduction for trigonometric
// functions. SIGNUM Newsletter 18, 1983).
//
// The polynomials are minimax approximations, found by the exchange algorithm of E. Ya. Remez in 45
// digits. Weights make it minimise the error of the function. The coefficients are rounded one after
// the other, lowest first; after each, the remaining ones are fitted again to what is left.
// "2^-28.6" beside a polynomial is the error after rounding, relative to the function. Horner's rule
// evaluates them, so the highest coefficient comes first in the code.

// fma32 is x*y + z rounded once. Go has this only for float64.
func fma32(x, y, z float32) float32 {
	p := float64(x) * float64(y) // exact: 48 digits
	sum := p + float64(z)
	// Rounding sum again gives the same as rounding once, unless sum was rounded to the middle
	// between two float32s. (The test for middles is for normal float32s only.)
	b := math.Float64bits(sum)
	if b&(1<<29-1) == 1<<28 || b<<1 < 2*(1023-126)<<52 {
		return roundSum(p, float64(z), sum)
	}
	return float32(sum)
}

// roundSum rounds p + z to float32; sum is p + z rounded to float64. (S.
// Boldo, G. Melquiond: Emulation of FMA and correctly rounded sums: proved
// algorithms using rounding to odd. IEEE Transactions on Computers 57, 2008.)
func roundSum(p, z, sum float64) float32 {
	zz := sum - p
	rest := (p - (sum - zz)) + (z - zz) // p + z - sum, exactly (Knuth)
	b := math.Float64bits(sum)
	if rest != 0 && b&1 == 0 { // round to odd: to the neighbour on the side of the rest
		if (rest > 0) == (sum > 0) {
			b++
		} else {
			b--
		}
	}
	return float32(math.Float64frombits(b))
}

// power32 is 2**n for an integer n, if that is a normal number.
func power32(n float32) float32 { return math.Float32frombits(uint32(int32(n)+127) << 23) }

// power64 is 2**n for an integer n, if that is a normal number.
func power64(n float64) float64 { return math.Float64frombits(uint64(int64(n)+1023) << 52) }

func round32(x float32) float32 { return float32(math.RoundToEven(float64(x))) }

func floor32(x float32) float32 { return float32(math.Floor(float64(x))) }

func abs32(x float32) float32 { return math.Float32frombits(math.Float32bits(x) &^ (1 << 31)) }

func copysign32(x, sign float32) float32 {
	return math.Float32frombits(math.Float32bits(x)&^(1<<31) | math.Float32bits(sign)&(1<<31))
}

// quarters reduces x modulo a quarter of a circle, for 2**20 <= x < Inf: x = r + pi/2*(4k+q) for some
// k, with |r| <= pi/4 within 0.51 ulp.
func quarters(x float64) (q uint64, r float64) {
	b := math.Float64bits(x)
	m := b&(1<<52-1) | 1<<52
	e := int(b>>52) - 1075 // x = m * 2**e
	// Digits of 2/pi whose product with x is a multiple of 4 don't matter. Those after the next 192
	// hardly do. The product of x and these 192 digits wraps around at 4.
	skip := uint(e + 62) // twoOverPi begins with 64 zeros
	at, shift := skip/64, skip%64
	var w [3]uint64
	for i := range w {
		w[i] = twoOverPi[at+uint(i)]<<shift | twoOverPi[at+uint(i)+1]>>(64-shift)
	}
	high2, low2 := bits.Mul64(w[2], m)
	high1, low1 := bits.Mul64(w[1], m)
	mid, carry := bits.Add64(low1, high2, 0)
	top := w[0]*m + high1 + carry
	q = (top + 1<<61) >> 62 // nearest
	top -= q << 62
	negative := int64(top) < 0
	if negative {
		low2, carry = bits.Sub64(0, low2, 0)
		mid, carry = bits.Sub64(0, mid, carry)
		top, _ = bits.Sub64(0, top, carry)
	}
	// The fraction in two float64s: the first has 53 binary digits, from the first 1 on, the second those after them.
	n := uint(bits.LeadingZeros64(top))
	if n == 64 {
		top, mid, low2 = mid, low2, 0
		n = uint(bits.LeadingZeros64(top)) // no float64 is closer to a multiple of pi/2 than 2**-62
		top, mid, n = top<<n|mid>>(64-n), mid<<n, n+64
	} else {
		top, mid = top<<n|mid>>(64-n), mid<<n|low2>>(64-n)
	}
	scale := math.Float64frombits(uint64(1023-62-n) << 52)
	high := float64(top>>11) * 0x1p11 * scale
	low := float64(top&(1<<11-1)<<53|mid>>11) * 0x1p-53 * scale
	r = float64(high * piHalf1)
	r += math.FMA(high, piHalf1, -r) + math.FMA(high, piHalf2, float64(low*piHalf1))
	if negative {
		r = -r
	}
	return q & 3, r
}

// twoOverPi are the binary digits of 2/pi after 64 zeros.
var twoOverPi = [...]uint64{
	0, 0xa2f9836e4e441529, 0xfc2757d1f534ddc0, 0xdb6295993c439041, 0xfe5163abdebbc561, 0xb7246e3a424dd2e0, 0x06492eea09d1921c,
	0xfe1deb1cb129a73e, 0xe88235f52ebb4484, 0xe99c7026b45f7e41, 0x3991d639835339f4, 0x9c845f8bbdf9283b, 0x1ff897ffde05980f,
	0xef2f118b5a0a6d1f, 0x6d367ecf27cb09b7, 0x4f463f669e5fea2d, 0x7527bac7ebe5f17b, 0x3d0739f78a5292ea, 0x6bfb5fb11f8d5d08,
	0x56033046fc7b6bab, 0xf0cfbc209af4361d,
}
