package kernel

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math"
	"math/big"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/asyncgen/asyncgen/device"
)

// A composed is a function made of primitives, and the same in package math.
type composed struct {
	name   string
	limit  float64 // the largest error allowed, in ulp: a whole one above the largest of millions of operands
	lo, hi float64 // of the operands that are drawn
	one    func(x *Expr) *Expr
	host   func(x float64) float64
	two    func(x, y *Expr) *Expr
	hosts  func(x, y float64) float64
	exact  func(x *big.Float) *big.Float // instead of a host that is too far off in float64; of numbers above 0
	odd    bool                          // f(-x) is -f(x)
}

var allComposed = []composed{
	{name: "Log2", limit: 2, lo: 0, hi: 100, one: Log2, host: math.Log2, exact: func(x *big.Float) *big.Float { return bigQuo(bigLog(x), bigLog(bigOf(2))) }},
	{name: "Log10", limit: 3, lo: 0, hi: 100, one: Log10, host: math.Log10, exact: func(x *big.Float) *big.Float { return bigQuo(bigLog(x), bigLog(bigOf(10))) }},
	{name: "Exp2", limit: 2, lo: -150, hi: 128, one: Exp2, host: math.Exp2},
	{name: "Rsqrt", limit: 2, lo: 0, hi: 100, one: Rsqrt, host: func(x float64) float64 { return 1 / math.Sqrt(x) }},
	{name: "Tan", limit: 4, lo: -10, hi: 10, odd: true, one: Tan, host: math.Tan, exact: func(x *big.Float) *big.Float { return bigQuo(bigSine(x, 0), bigSine(x, 1)) }},
	{name: "Asin", limit: 3, lo: -1, hi: 1, one: Asin, host: func(x float64) float64 { return math.Atan2(x, math.Sqrt((1-x)*(1+x))) }},
	{name: "Acos", limit: 3, lo: -1, hi: 1, one: Acos, host: func(x float64) float64 { return 2 * math.Atan2(math.Sqrt(1-x), math.Sqrt(1+x)) }},
	{name: "Atan", limit: 3, lo: -5, hi: 5, one: Atan, host: math.Atan},
	{name: "Sinh", limit: 3, lo: -90, hi: 90, one: Sinh, host: math.Sinh, odd: true, exact: bigSinh},
	{name: "Cosh", limit: 3, lo: -90, hi: 90, one: Cosh, host: math.Cosh},
	{name: "Asinh", limit: 3, lo: -100, hi: 100, one: Asinh, host: math.Asinh},
	{name: "Acosh", limit: 3, lo: 1, hi: 100, one: Acosh, host: math.Acosh},
	{name: "Atanh", limit: 3, lo: -1, hi: 1, one: Atanh, host: math.Atanh},
	{name: "Trunc", lo: -9, hi: 9, one: Trunc, host: math.Trunc},
	{name: "Softplus", limit: 3, lo: -80, hi: 80, one: Softplus, host: func(x float64) float64 { return max(x, 0) + math.Log1p(math.Exp(-math.Abs(x))) }},
	{name: "Atan2", limit: 3, lo: -5, hi: 5, two: Atan2, hosts: func(y, x float64) float64 { return math.Copysign(math.Atan2(y, x), y) }},
	{name: "Hypot", limit: 3, lo: -5, hi: 5, two: Hypot, hosts: math.Hypot},
	{name: "Mod", lo: -50, hi: 50, two: Mod, hosts: math.Mod},
	{name: "LogAddExp", limit: 3, lo: 0, hi: 50, two: LogAddExp, hosts: func(x, y float64) float64 {
		if x == y {
			return x + math.Ln2
		}
		return max(x, y) + math.Log1p(math.Exp(-math.Abs(x-y)))
	}},
}

// Functions that are made of primitives are as exact as they promise, with the zeros, infinities and NaN of package
// math.
func TestComposed(t *testing.T) {
	rnd := newRand(t)
	for _, f := range allComposed {
		arity := 2
		if f.one != nil {
			arity = 1
		}
		worst := map[bool]float64{}
		check := func(x, y float64, isShort bool) {
			t.Helper()
			dt, args := f64, []uint64{Bits(x), Bits(y)}
			if isShort {
				x, y = float64(float32(x)), float64(float32(y))
				dt, args = f32, []uint64{Bits(float32(x)), Bits(float32(y))}
			}
			var e *Expr
			var want float64
			if arity == 1 {
				e, want = f.one(Arg(0, dt)), f.host(x)
				at := x
				if f.odd {
					at = math.Abs(x)
				}
				if f.exact != nil && want-want == 0 && at > 0 && at != 1 && at < 1<<60 {
					want, _ = f.exact(bigOf(at)).Float64()
					if at != x {
						want = -want
					}
				}
			} else {
				e, want = f.two(Arg(0, dt), Arg(1, dt)), f.hosts(x, y)
			}
			bits := e.Eval(args, nil)
			var got, off float64
			if isShort {
				v := Value[float32](bits)
				got, off = float64(v), ulps32(v, want)
			} else {
				got = Value[float64](bits)
				off = max(ulpsOf(got, want)-1, 0) // package math may be off, too
			}
			if got != got && want != want {
				return
			}
			worst[isShort] = max(worst[isShort], off)
			if !(off <= f.limit) || math.Signbit(got) != math.Signbit(want) {
				t.Errorf("%s of %v, %v (float32: %v) is %v, want %v: %.3f ulp", f.name, x, y, isShort, got, want, off)
			}
		}
		for _, isShort := range []bool{true, false} {
			for _, x := range edges {
				if arity == 1 {
					check(x, 0, isShort)
					continue
				}
				for _, y := range edges {
					check(x, y, isShort)
				}
			}
			for range 800 {
				draw := func() float64 { return f.lo + (f.hi-f.lo)*rnd.Float64() }
				check(draw(), draw(), isShort)
				check(draw()/1000, draw(), isShort)
			}
		}
		t.Logf("%s: at most %.2f ulp off in float32, %.2f more than package math in float64", f.name, worst[true], worst[false])
	}
}

// bigSinh is half the sum of a = exp(x)-1 and a/(a+1), and x itself where x is close to 0.
func bigSinh(x *big.Float) *big.Float {
	if x.MantExp(nil) < -100 {
		return x
	}
	a := bigExpm1(x)
	return bigQuo(bigAdd(a, bigQuo(a, bigAdd(a, bigOf(1)))), bigOf(2))
}

func ulpsOf(got, want float64) float64 {
	if got == want || got != got && want != want {
		return 0
	}
	unit := math.Nextafter(math.Abs(want), math.Inf(1)) - math.Abs(want)
	if math.IsInf(want, 0) || math.IsInf(unit, 0) {
		unit = 0x1p971
	}
	return math.Abs(got-want) / unit
}

// Log2 of a power of 2 is exact, and so is Exp2 of an integer; Log10 of the number nearest to a power of 10 is that
// power.
func TestExactPowers(t *testing.T) {
	is := func(name string, e *Expr, x, want float64) {
		t.Helper()
		got := e.Eval([]uint64{BitsOf(x, e.dtype)}, nil)
		if got != BitsOf(want, e.dtype) {
			t.Errorf("%s of %v %v is %v, want %v", name, e.dtype, x, formatBits(got, e.dtype), want)
		}
	}
	for n := -1074; n <= 1023; n++ {
		v := math.Ldexp(1, n)
		is("Log2", Log2(Arg(0, f64)), v, float64(n))
		is("Exp2", Exp2(Arg(0, f64)), float64(n), v)
		if n >= -149 && n <= 127 {
			is("Log2", Log2(Arg(0, f32)), v, float64(n))
			is("Exp2", Exp2(Arg(0, f32)), float64(n), v)
		}
	}
	for n := -307; n <= 308; n++ {
		v, _ := strconv.ParseFloat(fmt.Sprintf("1e%d", n), 64)
		is("Log10", Log10(Arg(0, f64)), v, float64(n))
		if n >= -37 && n <= 38 {
			is("Log10", Log10(Arg(0, f32)), v, float64(n))
		}
	}
}

// The derivative of a composed function is that of the function, not of its branches: at powers of 2, where Log2
// rounds, at 0 and where the function is about to overflow.
func TestComposedDerivatives(t *testing.T) {
	x, y := Arg(0, f64), Arg(1, f64)
	for _, test := range []struct {
		e    *Expr
		by   int
		x, y float64
		want float64
	}{
		{Log2(x), 0, 8, 0, 1 / (8 * math.Ln2)}, {Log10(x), 0, 1000, 0, 1 / (1000 * math.Ln10)},
		{Sinh(x), 0, 0, 0, 1}, {Cosh(x), 0, 0, 0, 0}, {Sinh(x), 0, 710, 0, math.Cosh(710)}, {Asinh(x), 0, 0, 0, 1}, {Atanh(x), 0, 0, 0, 1},
		{Asinh(x), 0, 1e300, 0, 1e-300}, {Asin(x), 0, 0, 0, 1}, {Acos(x), 0, 0, 0, -1}, {Atan(x), 0, 0, 0, 1}, {Tan(x), 0, 0, 0, 1},
		{Clamp(x, Const(-1, f64), y), 0, 2, 2, 0}, {Clamp(x, Const(-1, f64), y), 0, -1, 2, 0}, {Clamp(x, Const(-1, f64), y), 0, 1, 2, 1}, {Clamp(x, Const(-1, f64), y), 0, 3, 2, 0},
		{Clamp(x, Const(-1, f64), y), 0, math.NaN(), 2, 1},
		{Hypot(x, y), 0, 0, 0, 0}, {Hypot(x, y), 1, 3e300, 4e300, 0.8}, {Atan2(x, y), 0, 0, 0, 0}, {Atan2(x, y), 1, 2e300, 0, -5e-301},
		{LogAddExp(x, y), 0, 5, 5, 0.5}, {LogAddExp(x, y), 1, math.Inf(-1), 3, 1}, {LogAddExp(x, y), 1, 1000, 0, 0},
		{Mod(x, y), 0, 7, 2, 1}, {Mod(x, y), 1, -7, 2, 3}, {Remainder(x, y), 1, -7, 2, 4}, {FloorDiv(x, y), 0, 7, 2, 0},
		{Mul(y, Log2(Mul(x, x))), 0, 2, 3, 3 * 2 / (2 * math.Ln2)},
	} {
		got := Value[float64](Diff(test.e, test.by).Eval([]uint64{Bits(test.x), Bits(test.y)}, nil))
		if !(math.Abs(got-test.want) <= 1e-14*math.Abs(test.want)) {
			t.Errorf("the derivative of %v by operand %d at %v, %v is %v, want %v", test.e, test.by, test.x, test.y, got, test.want)
		}
	}
}

// Functions that are made of primitives have the same bits everywhere: also where compilers fuse products and sums.
func TestComposedBits(t *testing.T) {
	want := map[device.DType]uint64{f32: 0xb595323e7abe4a3d, f64: 0xfb27d5d24aa75118} // found on amd64
	for dt, w := range want {
		all := fnv.New64a()
		for _, f := range allComposed {
			one, rnd := fnv.New64a(), rand.New(rand.NewPCG(1, 2))
			var e *Expr
			if f.one != nil {
				e = f.one(Arg(0, dt))
			} else {
				e = f.two(Arg(0, dt), Arg(1, dt))
			}
			for range 2000 {
				args := []uint64{BitsOf(someNumber(rnd, 8, f.hi), dt), BitsOf(someNumber(rnd, 8, f.hi), dt)}
				bits := e.Eval(args, nil)
				if v := asFloat64(bits, dt); v != v {
					bits = 1 << 63 // stands for every NaN
				}
				binary.Write(one, binary.LittleEndian, bits)
			}
			t.Logf("%s of %v: %#x", f.name, dt, one.Sum64())
			binary.Write(all, binary.LittleEndian, one.Sum64())
		}
		if got := all.Sum64(); got != w {
			t.Errorf("%v: %#x, not %#x", dt, got, w)
		}
	}
}

// Bits, shifts and what division leaves of integers.
func TestIntegerFunctions(t *testing.T) {
	x, y := Arg(0, i64), Arg(1, i64)
	rnd := newRand(t)
	floor := func(x, y int64) int64 { return int64(math.Floor(float64(x) / float64(y))) }
	for range 500 {
		a, b := rnd.Int64N(2000)-1000, rnd.Int64N(40)-20
		if b == 0 {
			b = 7
		}
		for _, test := range []struct {
			e    *Expr
			want int64
		}{
			{Mod(x, y), a % b}, {FloorDiv(x, y), floor(a, b)}, {Remainder(x, y), a - b*floor(a, b)},
			{And(x, y), a & b}, {Or(x, y), a | b}, {Xor(x, y), a ^ b}, {Not(x), ^a}, {Not(Not(x)), a}, {And(x, Const(1, i64)), a & 1}, {Or(x, Const(1, i64)), a | 1},
			{Shl(x, y), a << uint64(b)}, {Shr(x, y), a >> uint64(b)},
		} {
			if got := int64(test.e.Eval([]uint64{uint64(a), uint64(b)}, nil)); got != test.want {
				t.Errorf("%v of %d, %d is %d, want %d", test.e, a, b, got, test.want)
			}
		}
	}
	for _, e := range []*Expr{Mod(x, y), Remainder(x, y)} {
		if got := int64(e.Eval([]uint64{1 << 63, math.MaxUint64}, nil)); got != 0 {
			t.Errorf("%v of the least integer and -1 is %d", e, got)
		}
	}
}
