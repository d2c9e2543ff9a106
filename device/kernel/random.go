package kernel

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/asyncgen/asyncgen/device"
)

// A Distribution is the Body of a Random kernel; see [Draw].
type Distribution uint8

const (
	Uniform Distribution = iota // floats, from [0, 1)
	Normal                      // floats, with mean 0 and variance 1
	Ints                        // int64, from lo to hi-1
)

var distributions = [...]string{Uniform: "uniform", Normal: "normal", Ints: "ints"}

// String is d's name: "uniform".
func (d Distribution) String() string { return distributions[d] }

// Key implements [device.Body].
func (d Distribution) Key() string { return "random " + distributions[d] }

// Tag is the word of Philox's counter that differs between distributions and element types. It panics if d is not
// defined for dt.
func (d Distribution) Tag(dt device.DType) uint32 {
	switch {
	case d == Uniform && dt == device.Float32:
		return 0
	case d == Uniform && dt == device.Float64:
		return 1
	case d == Normal && dt == device.Float32:
		return 2
	case d == Normal && dt == device.Float64:
		return 3
	case d == Ints && dt == device.Int64:
		return 4
	}
	panic(fmt.Sprintf("kernel: no %v %v", d, dt))
}

// Philox is the block function of Philox4x32-10, a counter-based random number
// generator: ten rounds of multiplications and exclusive ors turn a counter
// into four random words. (J. K. Salmon, M. A. Moraes, R. O. Dror, D. E.
// Shaw: Parallel random numbers: as easy as 1, 2, 3. SC11.)
func Philox(counter [4]uint32, key [2]uint32) [4]uint32 {
	c0, c1, c2, c3 := counter[0], counter[1], counter[2], counter[3]
	k0, k1 := key[0], key[1]
	for range 10 {
		p0 := uint64(c0) * 0xD2511F53
		p1 := uint64(c2) * 0xCD9E8D57
		c0, c1, c2, c3 = uint32(p1>>32)^c1^k0, uint32(p1), uint32(p0>>32)^c3^k1, uint32(p0)
		k0 += 0x9E3779B9
		k1 += 0xBB67AE85
	}
	return [4]uint32{c0, c1, c2, c3}
}

// Draw fills dst with the elements of a stream from position pos on. An element depends only on its
// position, the key, the distribution and the element type. So a stream may be drawn in pieces of
// any size, in any order. Draw panics if the distribution is not defined for T. lo and hi are for
// Ints: lo < hi.
//
// The low half of the key is the first word of Philox's key, the high half the second. The counter
// has the number of the block in its first two words, the low word first, then the distribution's
// Tag, then 0. Because of the Tag, no two distributions or types share random bits. With w the words
// of a block and ww[i] = w[2i] + w[2i+1]<<32:
//
//   - A block is four uniform float32: w[i]>>8 scaled by 2**-24; or two uniform float64: ww[i]>>11
//     scaled by 2**-53; or two ints: lo plus the high word of ww[i] * (hi-lo), which favours no
//     value by more than (hi-lo) / 2**64.
//   - A block is four normal float32 or two normal float64. They are made in pairs by the method of
//     Box and Muller: radius times cosine, radius times sine. A pair takes two numbers: w[0] and
//     w[1], w[2] and w[3], or ww[0] and ww[1]. The first gives the radius. The second is the angle
//     as a fraction of the circle. The functions below say how, in steps that round alike
//     everywhere.
func Draw[T device.Element](d Distribution, key, pos uint64, lo, hi int64, dst []T) {
	tag := d.Tag(device.DTypeOf[T]())
	switch dst := any(dst).(type) {
	case []float32:
		if d == Uniform {
			draw4(dst, tag, key, pos, uniform32)
		} else {
			draw4(dst, tag, key, pos, normal32)
		}
	case []float64:
		if d == Uniform {
			draw2(dst, tag, key, pos, uniform64)
		} else {
			draw2(dst, tag, key, pos, normal64)
		}
	case []int64:
		span := uint64(hi) - uint64(lo)
		draw2(dst, tag, key, pos, func(w [4]uint32) [2]int64 {
			first, _ := bits.Mul64(wide(w[0], w[1]), span)
			second, _ := bits.Mul64(wide(w[2], w[3]), span)
			return [2]int64{lo + int64(first), lo + int64(second)}
		})
	}
}

func draw4[T any](dst []T, tag uint32, key, pos uint64, convert func([4]uint32) [4]T) {
	for len(dst) > 0 {
		values := convert(block(pos/4, tag, key))
		n := copy(dst, values[pos%4:])
		dst, pos = dst[n:], pos+uint64(n)
	}
}

func draw2[T any](dst []T, tag uint32, key, pos uint64, convert func([4]uint32) [2]T) {
	for len(dst) > 0 {
		values := convert(block(pos/2, tag, key))
		n := copy(dst, values[pos%2:])
		dst, pos = dst[n:], pos+uint64(n)
	}
}

func block(i uint64, tag uint32, key uint64) [4]uint32 {
	return Philox([4]uint32{uint32(i), uint32(i >> 32), tag, 0}, [2]uint32{uint32(key), uint32(key >> 32)})
}

func wide(low, high uint32) uint64 { return uint64(low) | uint64(high)<<32 }

func uniform32(w [4]uint32) (u [4]float32) {
	for i := range u {
		u[i] = float32(w[i]>>8) * 0x1p-24
	}
	return u
}

func uniform64(w [4]uint32) [2]float64 {
	return [2]float64{
		float64(wide(w[0], w[1])>>11) * 0x1p-53,
		float64(wide(w[2], w[3])>>11) * 0x1p-53,
	}
}

func normal32(w [4]uint32) [4]float32 {
	x0, x1 := polar32(w[0], w[1])
	x2, x3 := polar32(w[2], w[3])
	return [4]float32{x0, x1, x2, x3}
}

// polar32 turns two random words into two independent normal numbers.
func polar32(a, b uint32) (x, y float32) {
	// Only 31 bits: not every vector unit converts unsigned words.
	u := (float32(int32(a>>1)) + 0.5) * 0x1p-31
	radius := float32(math.Sqrt(float64(-2 * log32(u)))) // exactly rounded
	quarter := (b + 1<<29) >> 30                         // the nearest; the sum wraps around, so 4 is 0
	angle := float32(float32(int32(b-quarter<<30)) * (2 * math.Pi * 0x1p-32))
	z := angle * angle
	sin := float32(float32(poly32(z, -1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1)*z)*angle) + angle
	cos := float32(float32(poly32(z, 2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2)*z)*z) - float32(0.5*z) + 1
	cos, sin = rotate(cos, sin, quarter)
	return radius * cos, radius * sin
}

// log32 is the natural logarithm of u, for 0 < u <= 1 and not denormal. (The polynomials of polar32
// and log32 are those of S. L. Moshier's Cephes library.)
func log32(u float32) float32 {
	b := math.Float32bits(u)
	e := float32(int32(b>>23) - 126)
	m := math.Float32frombits(b&(1<<23-1) | 126<<23) // in [1/2, 1)
	if m < math.Sqrt2/2 {
		e--
		m += m
	}
	m--
	z := m * m
	y := poly32(m, 7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1,
		-1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1)
	y = float32(float32(y*m) * z)
	y += float32(-2.12194440e-4 * e)
	y -= float32(0.5 * z)
	return (m + y) + float32(0.693359375*e)
}

// poly32 is Horner's rule, the highest coefficient first.
func poly32(x float32, c ...float32) float32 {
	y := c[0]
	for _, k := range c[1:] {
		y = float32(y*x) + k
	}
	return y
}

func normal64(w [4]uint32) [2]float64 {
	u := (float64(wide(w[0], w[1])>>11) + 0.5) * 0x1p-53
	radius := math.Sqrt(-2 * log64(u))
	b := wide(w[2], w[3])
	quarter := (b + 1<<61) >> 62
	angle := float64(float64(int64(b-quarter<<62)) * (2 * math.Pi * 0x1p-64))
	z := angle * angle
	sin := float64(float64(poly64(z, 1.58962301576546568060e-10, -2.50507477628578072866e-8, 2.75573136213857245213e-6,
		-1.98412698295895385996e-4, 8.33333333332211858878e-3, -1.66666666666666307295e-1)*z)*angle) + angle
	cos := float64(float64(poly64(z, -1.13585365213876817300e-11, 2.08757008419747316778e-9, -2.75573141792967388112e-7,
		2.48015872888517045348e-5, -1.38888888888730564116e-3, 4.16666666666665929218e-2)*z)*z) - float64(0.5*z) + 1
	cos, sin = rotate(cos, sin, uint32(quarter))
	return [2]float64{radius * cos, radius * sin}
}

// log64 is the natural logarithm of u, for 0 < u <= 1 and not denormal, by the method of FreeBSD's
// e_log.c.
func log64(u float64) float64 {
	b := math.Float64bits(u)
	k := float64(int64(b>>52) - 1022)
	m := math.Float64frombits(b&(1<<52-1) | 1022<<52) // in [1/2, 1)
	if m < math.Sqrt2/2 {
		k--
		m += m
	}
	f := m - 1
	s := f / (2 + f)
	s2 := s * s
	s4 := s2 * s2
	odd := float64(s2 * poly64(s4, 1.479819860511658591e-01, 1.818357216161805012e-01, 2.857142874366239149e-01, 6.666666666666735130e-01))
	even := float64(s4 * poly64(s4, 1.531383769920937332e-01, 2.222219843214978396e-01, 3.999999999940941908e-01))
	half := float64(0.5 * f * f)
	low := float64(s*(half+(odd+even))) + float64(k*1.90821492927058770002e-10)
	return float64(k*6.93147180369123816490e-01) - ((half - low) - f)
}

// poly64 is Horner's rule, the highest coefficient first.
func poly64(x float64, c ...float64) float64 {
	y := c[0]
	for _, k := range c[1:] {
		y = float64(y*x) + k
	}
	return y
}

// rotate turns (x, y) by quarters of a circle.
func rotate[T float32 | float64](x, y T, quarters uint32) (T, T) {
	switch quarters % 4 {
	case 1:
		return -y, x
	case 2:
		return -x, -y
	case 3:
		return y, -x
	}
	return x, y
}
