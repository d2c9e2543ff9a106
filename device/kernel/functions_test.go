package kernel

import (
	"encoding/binary"
	"flag"
	"hash/fnv"
	"math"
	"math/big"
	"math/bits"
	"math/rand/v2"
	"sync"
	"testing"
)

var (
	everyFlag   = flag.Uint64("every", 1999, "the tests of functions of float32 take each n-th one; 1 takes all of them")
	doublesFlag = flag.Int("doubles", 300, "how many random operands the tests of functions of float64 take in each range")
)

// A function of one number, and other ways to compute it.
type function struct {
	prim  Prim
	limit float64 // the largest error allowed, in ulp
	host  func(float64) float64
	exact func(*big.Float) *big.Float // for operands and results that are finite and not 0
}

var allFunctions = []function{
	{PrimExp, 1, math.Exp, bigExp},
	{PrimExpm1, 2, math.Expm1, bigExpm1},
	{PrimLog, 2, math.Log, bigLog},
	{PrimLog1p, 2, math.Log1p, bigLog1p},
	{PrimSin, 2, math.Sin, func(x *big.Float) *big.Float { return bigSine(x, 0) }},
	{PrimCos, 2, math.Cos, func(x *big.Float) *big.Float { return bigSine(x, 1) }},
	{PrimTanh, 2, math.Tanh, bigTanh},
	{PrimErf, 2, math.Erf, bigErf},
}

// TestFunctions32 compares the functions of float32 with those of package math. math.Sin and math.Cos
// are not exact enough for large numbers: these are reduced modulo pi/2 first. go test -run
// Functions32 -every 1 -timeout 2h takes all of float32, some seven minutes of a processor for each
// function.
func TestFunctions32(t *testing.T) {
	for _, f := range allFunctions {
		t.Run(f.prim.String(), func(t *testing.T) {
			t.Parallel()
			mine := f.prim.Func(f32).(func(float32) float32)
			want := f.host
			if f.prim == PrimSin || f.prim == PrimCos {
				want = func(x float64) float64 { return hostSine(f.host, x) }
			}
			worst, at := 0.0, float32(0)
			check := func(x float32) {
				got, want := mine(x), want(float64(x))
				if got != got && want != want {
					return
				}
				off := ulps32(got, want)
				if !(off <= worst) {
					worst, at = off, x
				}
				if !(off <= f.limit) || math.Signbit(float64(got)) != math.Signbit(want) {
					t.Errorf("%v of %v (%#x) is %v, want %v: %.3f ulp off", f.prim, x, math.Float32bits(x), got, float32(want), off)
				}
			}
			for _, x := range edges {
				check(float32(x))
			}
			for b := uint64(0); b < 1<<32 && !t.Failed(); b += *everyFlag {
				check(math.Float32frombits(uint32(b)))
			}
			t.Logf("at most %.3f ulp off, at %v", worst, at)
		})
	}
}

// TestPow32 compares pow of float32 with math.Pow. The errors of math.Pow grow with the exponent, but are far below the
// digits of float32.
func TestPow32(t *testing.T) {
	worst := 0.0
	check := func(x, y float32) {
		got, want := pow32(x, y), math.Pow(float64(x), float64(y))
		if got != got && want != want {
			return
		}
		off := ulps32(got, want)
		worst = max(worst, off)
		if !(off <= 0.501) || math.Signbit(float64(got)) != math.Signbit(want) {
			t.Errorf("%v to the power of %v is %v, want %v: %.3f ulp off", x, y, got, float32(want), off)
		}
	}
	for _, x := range edges {
		for _, y := range edges {
			check(float32(x), float32(y))
		}
	}
	rnd := newRand(t)
	for range 100000 {
		check(math.Float32frombits(rnd.Uint32()), math.Float32frombits(rnd.Uint32()))
		check(float32(rnd.NormFloat64()), float32(rnd.IntN(40)-20))
		check(float32(math.Abs(rnd.NormFloat64())), float32(10*rnd.NormFloat64()))
		check(float32(1+rnd.NormFloat64()/1000), float32(10000*rnd.NormFloat64()))
	}
	t.Logf("at most %.4f ulp off", worst)
}

// TestFunctionBits: the results have the same bits on every architecture. On some, the compiler fuses
// x*y + z unless a conversion forbids it. TestFunctions32 and TestFunctions64 check that the results
// are right.
func TestFunctionBits(t *testing.T) {
	want := map[string]uint64{ // found on amd64
		"exp of float32":   0x6cbb58ac6939fc,
		"exp of float64":   0xb45382120365dd8a,
		"expm1 of float32": 0xd53d4f9d7ed4b5a3,
		"expm1 of float64": 0xcf6f3f8eab4084d0,
		"log of float32":   0xaeddd51768dd61c4,
		"log of float64":   0xb4aca03cb99eede0,
		"log1p of float32": 0x3e37f4655c4d5a3,
		"log1p of float64": 0x67822c86433c5713,
		"sin of float32":   0x1ede3c63f8b16642,
		"sin of float64":   0xac4b02d45e333eb8,
		"cos of float32":   0xf7f3da83a6c4c9d0,
		"cos of float64":   0xf4565c66744753ca,
		"tanh of float32":  0x96889d0ebf530d0f,
		"tanh of float64":  0xb6edf2d43d48beac,
		"erf of float32":   0x1603bf56df31343d,
		"erf of float64":   0x13ffb62c000bc872,
		"pow of float32":   0x488563c4327ea813,
		"pow of float64":   0xa2669a8f7b421992,
	}
	hashOf := func(next func(rnd *rand.Rand) uint64) uint64 {
		h, rnd := fnv.New64a(), rand.New(rand.NewPCG(1, 2))
		for range 20000 {
			binary.Write(h, binary.LittleEndian, next(rnd))
		}
		return h.Sum64()
	}
	const nan = 1 << 63 // stands for every NaN
	check := func(name string, next func(rnd *rand.Rand) uint64) {
		if got := hashOf(next); got != want[name] {
			t.Errorf("%q: %#x, not %#x", name, got, want[name])
		}
	}
	bits32 := func(v float32) uint64 {
		if v != v {
			return nan
		}
		return uint64(math.Float32bits(v))
	}
	bits64 := func(v float64) uint64 {
		if v != v {
			return nan
		}
		return math.Float64bits(v)
	}
	for _, f := range allFunctions {
		short, long := f.prim.Func(f32).(func(float32) float32), f.prim.Func(f64).(func(float64) float64)
		check(f.prim.String()+" of float32", func(rnd *rand.Rand) uint64 { return bits32(short(float32(someNumber(rnd, 8, 1<<17)))) })
		check(f.prim.String()+" of float64", func(rnd *rand.Rand) uint64 { return bits64(long(someNumber(rnd, 11, 1<<33))) })
	}
	check("pow of float32", func(rnd *rand.Rand) uint64 {
		return bits32(pow32(float32(math.Abs(someNumber(rnd, 8, 100))), float32(someNumber(rnd, 5, 100))))
	})
	check("pow of float64", func(rnd *rand.Rand) uint64 {
		return bits64(pow64(math.Abs(someNumber(rnd, 11, 100)), someNumber(rnd, 8, 100)))
	})
}

// someNumber returns a random number: half of the time one with any of 2**bits exponents, otherwise
// one of magnitude at most limit.
func someNumber(rnd *rand.Rand, bits int, limit float64) float64 {
	sign := float64(1 - 2*rnd.IntN(2))
	if rnd.IntN(2) == 0 {
		return sign * limit * float64(rnd.Float64()*rnd.Float64())
	}
	return math.Ldexp(sign*(1+rnd.Float64()), rnd.IntN(1<<bits)-1<<(bits-1))
}

// ulps32 is the distance from want to got in ulps: distances between float32s near want.
func ulps32(got float32, want float64) float64 {
	const tooLarge = 0x1p128
	g := float64(got)
	if math.IsInf(g, 0) {
		g = math.Copysign(tooLarge, g)
	}
	want = max(-tooLarge, min(want, tooLarge))
	if got != got || want != want {
		return math.Inf(1)
	}
	_, e := math.Frexp(min(math.Abs(want), math.MaxFloat32))
	return math.Abs(g-want) / math.Ldexp(1, max(e, -125)-24)
}

// hostSine is f, math.Sin or math.Cos, of a float32. It reduces large numbers itself: f is not exact
// enough for those that are close to a multiple of pi/2.
func hostSine(f func(float64) float64, x float64) float64 {
	if !(math.Abs(x) > 1<<20) || math.IsInf(x, 0) {
		return f(x)
	}
	k, rest := quartersOf(math.Abs(x))
	if f(0) == 1 { // the cosine is the sine of a quarter more
		k++
	}
	var y float64
	if k%2 == 0 {
		y = math.Sin(rest)
	} else {
		y = math.Cos(rest)
	}
	if k&2 != 0 {
		y = -y
	}
	if x < 0 && f(0) == 0 {
		return -y
	}
	return y
}

// quartersOf splits a float32 x above 2**20: x = rest + pi/2*(4n+k) for some n, with rest between
// -pi/4 and pi/4. It takes a ten-thousandth of circleOf's time: x is an integer of 24 bits times a
// power of two, and digitUnits has each power in quarters of a circle.
func quartersOf(x float64) (k uint, rest float64) {
	m, e := math.Frexp(x)
	n, unit := uint64(m*(1<<24)), digitUnits()[e-21]
	hi, lo := bits.Mul64(n, unit.lo)
	hi += n * unit.hi
	k = uint(hi >> 62)
	hi, lo = hi<<2|lo>>62, lo<<2 // a fraction of a quarter
	sign := 1.0
	if hi >= 1<<63 { // the next multiple is nearer
		k, sign = k+1, -1
		hi, lo = ^hi, ^lo
	}
	zeros := bits.LeadingZeros64(hi)
	hi = hi<<zeros | lo>>(64-zeros)
	return k, sign * math.Ldexp(float64(hi), -64-zeros) * (math.Pi / 2)
}

// A fixed128 is a number below 4, with 126 binary digits behind the point.
type fixed128 struct{ hi, lo uint64 }

// digitUnits are the values, in quarters of a circle and modulo 4, of the last digit of float32s from
// 2**20 on. The first of these digits is worth 2**-3, each next one twice as much.
var digitUnits = sync.OnceValue(func() []fixed128 {
	const digits = 400
	all := make([]fixed128, 128-20)
	for i := range all {
		unit := new(big.Int).Lsh(big.NewInt(1), uint(126+digits+i-3))
		unit.Quo(unit, halfPi(digits))
		all[i].lo = new(big.Int).And(unit, new(big.Int).SetUint64(math.MaxUint64)).Uint64()
		unit.Rsh(unit, 64)
		all[i].hi = unit.And(unit, new(big.Int).SetUint64(math.MaxUint64)).Uint64()
	}
	return all
})

// TestHostSine compares hostSine with a sum of the series.
func TestHostSine(t *testing.T) {
	rnd := newRand(t)
	for range 2000 {
		x := math.Float32frombits(math.Float32bits(1<<20) + rnd.Uint32N(math.Float32bits(math.MaxFloat32)-math.Float32bits(1<<20)) + 1)
		if rnd.IntN(2) == 0 {
			x = -x
		}
		for i, f := range []func(float64) float64{math.Sin, math.Cos} {
			got, want := hostSine(f, float64(x)), bigSine(big.NewFloat(float64(x)).SetPrec(300), uint(i))
			if off := ulps64(got, want); !(off <= 4) {
				t.Errorf("function %d of %v (%#x) is %v, want %v: %.3f ulp off", i, x, math.Float32bits(x), got, want, off)
			}
		}
	}
}

// circleOf splits x: x = r + pi/2*(4k+q) for some k, with 0 <= r < pi/2. It divides numbers with this many binary
// digits behind the point.
func circleOf(x float64, digits uint) (q uint, r *big.Float) {
	m, e := math.Frexp(x)
	n := big.NewInt(int64(m * (1 << 53)))
	if shift := int(digits) + e - 53; shift >= 0 {
		n.Lsh(n, uint(shift))
	} else {
		n.Rsh(n, uint(-shift)) // drops only zeros: digits is large enough
	}
	quotient, rest := n.QuoRem(n, halfPi(digits), new(big.Int))
	q = uint(new(big.Int).And(quotient, big.NewInt(3)).Uint64())
	r = new(big.Float).SetPrec(digits).SetInt(rest)
	return q, r.SetMantExp(r, -int(digits))
}

var halfPis sync.Map // by digits

// halfPi is pi/2 * 2**digits, by Machin's formula.
func halfPi(digits uint) *big.Int {
	if v, ok := halfPis.Load(digits); ok {
		return v.(*big.Int)
	}
	one := new(big.Int).Lsh(big.NewInt(1), digits+64)
	arctan := func(n int64) *big.Int { // of 1/n
		sum, term := new(big.Int), new(big.Int).Div(one, big.NewInt(n))
		for k := int64(1); term.Sign() != 0; k += 2 {
			part := new(big.Int).Div(term, big.NewInt(k))
			if k%4 == 1 {
				sum.Add(sum, part)
			} else {
				sum.Sub(sum, part)
			}
			term.Div(term, big.NewInt(n*n))
		}
		return sum
	}
	v := new(big.Int).Mul(arctan(5), big.NewInt(8)) // pi/2 = 8 arctan(1/5) - 2 arctan(1/239)
	v.Sub(v, new(big.Int).Mul(arctan(239), big.NewInt(2)))
	v.Rsh(v, 64)
	halfPis.Store(digits, v)
	return v
}

// TestFunctions64 compares the functions of float64 with sums of their series.
func TestFunctions64(t *testing.T) {
	seeds := newRand(t)
	for _, f := range allFunctions {
		rnd := newRandFrom(seeds)
		t.Run(f.prim.String(), func(t *testing.T) {
			t.Parallel()
			mine := f.prim.Func(f64).(func(float64) float64)
			worst, at := 0.0, 0.0
			check := func(x float64) {
				got := mine(x)
				if isPlain := func(v float64) bool { return v != 0 && v-v == 0 }; !isPlain(x) || !isPlain(got) {
					// Overflow and underflow begin nearly where the host's do.
					host := f.host(x)
					isNear := math.Abs(host) < 0x1p-1073 && math.Abs(got) < 0x1p-1073 || math.Abs(host) >= math.MaxFloat64 && math.Abs(got) >= math.MaxFloat64
					if !same(got, host) && !(isNear && math.Signbit(got) == math.Signbit(host)) {
						t.Errorf("%v of %v is %v, want %v", f.prim, x, got, host)
					}
					return
				}
				off := ulps64(got, f.exact(big.NewFloat(x).SetPrec(300)))
				if !(off <= worst) {
					worst, at = off, x
				}
				if !(off <= f.limit) {
					t.Errorf("%v of %v (%#x) is %v: %.3f ulp off", f.prim, x, math.Float64bits(x), got, off)
				}
			}
			for _, x := range edges {
				for _, x := range []float64{x, -x, math.Nextafter(x, 9), math.Nextafter(x, -9)} {
					check(x)
				}
			}
			for _, x := range []float64{
				709.78, 709.79, -708.3, -708.4, -745.1, -745.2, 0.55, 0.5499999999999999, 6, 5.9, 19.06, 22, -36.7, -37.5, 0x1p-26, 0x1p-54, 0x1p-55,
				0x1p-1022, 0x1.fffffp-1023, math.MaxFloat64, 0x1p1000, 1 << 30, 1<<30 + 1, 1<<30 + 0x1p-22, 0x1p62, math.Sqrt2, math.Sqrt2 / 2,
				0x1.6ac5b262ca1ffp+849, // the float64 that comes closest to a multiple of pi/2
			} {
				for _, x := range []float64{x, -x} {
					check(x)
				}
			}
			for range *doublesFlag {
				check(math.Float64frombits(rnd.Uint64()))                      // of any magnitude
				check(rnd.NormFloat64() * math.Exp2(float64(rnd.IntN(24)-12))) // of usual ones
				check(rnd.Float64()*2 - 1)                                     // around 0
				check(1 + rnd.NormFloat64()*math.Exp2(float64(-rnd.IntN(50)))) // around 1
				// around the zeros of sine and cosine
				check(float64(rnd.IntN(1<<22)) * math.Pi / 4 * (1 + 0x1p-52*rnd.NormFloat64()))
				check(math.Exp2(float64(rnd.IntN(11))) * (rnd.Float64()*2 - 1)) // as exp likes them
				// around the ends of its reduction
				check(float64(rnd.IntN(2048)-1024) * math.Ln2 / 2 * (1 + rnd.NormFloat64()/500))
			}
			t.Logf("at most %.3f ulp off, at %v", worst, at)
		})
	}
}

// TestPow64 compares pow of float64 with e**(y*log(x)) in 300 binary digits. Where the logarithm or a
// finite result is missing, it compares with math.Pow.
func TestPow64(t *testing.T) {
	worst, of := 0.0, [2]float64{}
	check := func(x, y float64) {
		got, host := pow64(x, y), math.Pow(x, y)
		isPlain := func(v float64) bool { return v != 0 && v-v == 0 }
		if !isPlain(x) || !isPlain(y) || !isPlain(got) || math.Abs(x) == 1 {
			// Overflow and underflow begin nearly where the host's do. Denormal numbers are left out: the
			// host's logarithm of them is wrong on amd64.
			isNear := math.Abs(host) < 0x1p-1073 && math.Abs(got) < 0x1p-1073 || math.Abs(host) >= math.MaxFloat64 && math.Abs(got) >= math.MaxFloat64
			if isDenormal := isPlain(x) && math.Abs(x) < 0x1p-1022; !isDenormal && !same(got, host) && !(isNear && math.Signbit(got) == math.Signbit(host)) {
				t.Errorf("%v to the power of %v is %v, want %v", x, y, got, host)
			}
			return
		}
		want := bigExp(bigMul(bigOf(y), bigLog(bigOf(math.Abs(x)))))
		if x < 0 && math.Mod(y, 2) != 0 {
			want.Neg(want)
		}
		off := ulps64(got, want)
		if !(off <= worst) {
			worst, of = off, [2]float64{x, y}
		}
		if !(off <= 2) {
			t.Errorf("%v to the power of %v is %v: %.3f ulp off", x, y, got, off)
		}
	}
	for _, x := range edges {
		for _, y := range edges {
			for _, sign := range []float64{1, -1} {
				check(x, sign*y)
				check(-x, sign*y)
			}
		}
	}
	// A power that is a small integer is exact.
	for x := 1.0; x < 60; x++ {
		for y, want := 0.0, 1.0; want < 1<<53/60 && y < 16; y, want = y+1, want*x {
			if got := pow64(x, y); got != want {
				t.Errorf("%v to the power of %v is %v, want %v", x, y, got, want)
			}
		}
	}
	rnd := newRand(t)
	for range *doublesFlag {
		x := math.Exp(2 * rnd.NormFloat64())
		check(math.Float64frombits(rnd.Uint64()), math.Float64frombits(rnd.Uint64()))
		check(x, 10*rnd.NormFloat64())
		check(-x, float64(rnd.IntN(100)-50))
		check(x, (rnd.Float64()*1455-745)/math.Log(x)) // of any magnitude
		near := 1 + rnd.NormFloat64()*math.Exp2(float64(-rnd.IntN(52)))
		check(near, (rnd.Float64()*1455-745)/math.Log(math.Abs(near)))
		small := math.Float64frombits(rnd.Uint64() >> (12 + rnd.IntN(52)))
		check(small, rnd.Float64()*2-1)
		check(math.Sqrt2*(1+0x1p-50*rnd.NormFloat64()), 1000*rnd.NormFloat64())
	}
	t.Logf("at most %.4f ulp off, at %v", worst, of)
}

// ulps64 is the distance from want to got in ulps: distances between float64s near want. want is not 0.
func ulps64(got float64, want *big.Float) float64 {
	diff := new(big.Float).SetPrec(300).Sub(big.NewFloat(got).SetPrec(300), want)
	e := max(want.MantExp(nil), -1021) - 53
	off, _ := diff.SetMantExp(diff, -e).Float64()
	return math.Abs(off)
}

func bigOf(x float64) *big.Float { return new(big.Float).SetPrec(300).SetFloat64(x) }

func bigAdd(x, y *big.Float) *big.Float { return bigOf(0).Add(x, y) }
func bigSub(x, y *big.Float) *big.Float { return bigOf(0).Sub(x, y) }
func bigMul(x, y *big.Float) *big.Float { return bigOf(0).Mul(x, y) }
func bigQuo(x, y *big.Float) *big.Float { return bigOf(0).Quo(x, y) }

// bigSum adds up a series until its terms are small. first is term 0, and next makes term k of the one before it.
func bigSum(first *big.Float, next func(term *big.Float, k int) *big.Float) *big.Float {
	sum, term := bigOf(0).Set(first), first
	for k := 1; ; k++ {
		term = next(term, k)
		if term.Sign() == 0 || term.MantExp(nil) < sum.MantExp(nil)-280 && k > 3 {
			return sum
		}
		sum.Add(sum, term)
	}
}

func bigExp(x *big.Float) *big.Float {
	if x.Sign() < 0 {
		return bigQuo(bigOf(1), bigExp(bigOf(0).Neg(x)))
	}
	return bigAdd(bigExpm1(x), bigOf(1))
}

// bigExpm1 sums the series for x/2**30.
func bigExpm1(x *big.Float) *big.Float {
	if x.Sign() < 0 && x.MantExp(nil) > 8 {
		return bigOf(-1)
	}
	const halvings = 30
	r := bigOf(0).SetMantExp(x, -halvings)
	y := bigSum(r, func(term *big.Float, k int) *big.Float { return bigQuo(bigMul(term, r), bigOf(float64(k+1))) })
	for range halvings { // e**2r - 1 = (e**r - 1) * (e**r + 1)
		y = bigMul(y, bigAdd(y, bigOf(2)))
	}
	return y
}

func bigLog(x *big.Float) *big.Float {
	m := bigOf(0)
	e := x.MantExp(m)
	return bigAdd(bigLogNear(m), bigMul(bigOf(float64(e)), bigLn2()))
}

// bigLogNear improves on math.Log with Halley's method.
func bigLogNear(x *big.Float) *big.Float {
	v, _ := x.Float64()
	y := bigOf(math.Log(v))
	for range 2 {
		p := bigExp(y)
		y = bigAdd(y, bigMul(bigOf(2), bigQuo(bigSub(x, p), bigAdd(x, p))))
	}
	return y
}

var bigLn2 = sync.OnceValue(func() *big.Float { return bigLogNear(bigOf(2)) })

func bigLog1p(x *big.Float) *big.Float {
	if x.MantExp(nil) < -20 {
		power := bigOf(0).Neg(x)
		return bigSum(x, func(term *big.Float, k int) *big.Float {
			return bigQuo(bigMul(bigMul(term, power), bigOf(float64(k))), bigOf(float64(k+1)))
		})
	}
	return bigLog(bigAdd(x, bigOf(1)))
}

func bigTanh(x *big.Float) *big.Float {
	if x.MantExp(nil) > 8 {
		return bigOf(float64(x.Sign()))
	}
	y := bigExpm1(bigAdd(x, x))
	return bigQuo(y, bigAdd(y, bigOf(2)))
}

// bigSine is the sine of x plus this many quarters of a circle.
func bigSine(x *big.Float, quarters uint) *big.Float {
	v, _ := x.Float64()
	if v < 0 && quarters == 0 {
		return bigOf(0).Neg(bigSine(bigOf(-v), 0))
	}
	q, r := quarters, bigOf(math.Abs(v))
	if math.Abs(v) > 0.5 {
		var more uint
		more, r = circleOf(math.Abs(v), 1400)
		q += more
		r = bigOf(0).Set(r)
	}
	square := bigOf(0).Neg(bigMul(r, r))
	first, odd := r, 0.0
	if q%2 == 1 {
		first, odd = bigOf(1), -1
	}
	y := bigSum(first, func(term *big.Float, k int) *big.Float {
		n := 2*float64(k) + odd
		return bigQuo(bigMul(term, square), bigOf(n*(n+1)))
	})
	if q%4 >= 2 {
		y.Neg(y)
	}
	return y
}

func bigErf(x *big.Float) *big.Float {
	if x.MantExp(nil) > 3 {
		return bigOf(float64(x.Sign()))
	}
	square := bigOf(0).Neg(bigMul(x, x))
	power := x
	y := bigSum(x, func(_ *big.Float, k int) *big.Float {
		power = bigQuo(bigMul(power, square), bigOf(float64(k)))
		return bigQuo(power, bigOf(float64(2*k+1)))
	})
	half := bigOf(0).SetInt(halfPi(300))
	half.SetMantExp(half, -300)
	return bigQuo(bigMul(y, bigOf(2)), bigOf(0).Sqrt(bigMul(half, bigOf(2))))
}

// TestFma32 compares with math/big. The sums of its operands are often halfway between two float32s.
func TestFma32(t *testing.T) {
	rnd := newRand(t)
	random := func() float32 {
		b := rnd.Uint32()
		if rnd.IntN(2) == 0 {
			b &= ^uint32(0) << rnd.IntN(24) // few digits
		}
		switch rnd.IntN(4) {
		case 0:
			return math.Float32frombits(b) // of any magnitude
		case 1:
			return math.Float32frombits(b&^(0xff<<23) | uint32(20+rnd.IntN(60))<<23) // products are denormal
		}
		return math.Float32frombits(b&^(0xff<<23) | uint32(110+rnd.IntN(40))<<23)
	}
	middles := 0
	for range 200000 {
		x, y, z := random(), random(), random()
		if x != x || y != y || z != z || math.IsInf(float64(x)*float64(y)*float64(z), 0) {
			continue
		}
		sum := new(big.Float).SetPrec(0).SetFloat64(float64(x) * float64(y))
		exact := new(big.Float).SetPrec(600).Add(sum, big.NewFloat(float64(z)))
		want, _ := exact.Float32()
		if got := fma32(x, y, z); got != want {
			t.Fatalf("%b * %b + %b is %b, want %b", x, y, z, got, want)
		}
		if float32(float64(x)*float64(y)+float64(z)) != want {
			middles++
		}
	}
	if middles == 0 {
		t.Error("rounding twice was right each time")
	}
}
