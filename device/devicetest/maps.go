package devicetest

import (
	"math"
	"math/big"
	"sync"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/kernel"
)

// A judge computes a primitive in float64. If exact, a backend's result must be the judge's, rounded
// once. Otherwise it may be 2 units in the last place off.
type judge struct {
	exact bool
	one   func(x float64) float64
	two   func(x, y float64) float64
	holds func(x, y float64) bool
	ints  func(x, y int64) int64 // unary primitives do not use y
	bools func(x, y bool) bool
}

var judges = map[kernel.Prim]judge{
	kernel.PrimNeg:   {exact: true, one: func(x float64) float64 { return math.Copysign(x, flipped(x)) }, ints: func(x, _ int64) int64 { return ^x + 1 }},
	kernel.PrimAbs:   {exact: true, one: func(x float64) float64 { return math.Copysign(x, 1) }, ints: func(x, _ int64) int64 { return (x ^ x>>63) - x>>63 }},
	kernel.PrimAdd:   {exact: true, two: func(x, y float64) float64 { return x + y }, ints: func(x, y int64) int64 { return int64(uint64(x) + uint64(y)) }},
	kernel.PrimSub:   {exact: true, two: func(x, y float64) float64 { return x - y }, ints: func(x, y int64) int64 { return int64(uint64(x) - uint64(y)) }},
	kernel.PrimMul:   {exact: true, two: func(x, y float64) float64 { return x * y }, ints: func(x, y int64) int64 { return int64(uint64(x) * uint64(y)) }},
	kernel.PrimDiv:   {exact: true, two: func(x, y float64) float64 { return x / y }, ints: quotient},
	kernel.PrimMax:   {exact: true, two: nanWins(math.Max), ints: func(x, y int64) int64 { return max(x, y) }},
	kernel.PrimMin:   {exact: true, two: nanWins(math.Min), ints: func(x, y int64) int64 { return min(x, y) }},
	kernel.PrimPow:   {two: raised, ints: power},
	kernel.PrimMod:   {exact: true, two: math.Mod},
	kernel.PrimSqrt:  {exact: true, one: math.Sqrt},
	kernel.PrimExp:   {one: exponential},
	kernel.PrimExpm1: {one: math.Expm1},
	kernel.PrimLog:   {one: logarithm},
	kernel.PrimLog1p: {one: math.Log1p},
	kernel.PrimSin:   {one: func(x float64) float64 { return sine(x, 0) }},
	kernel.PrimCos:   {one: func(x float64) float64 { return sine(x, 1) }},
	kernel.PrimTanh:  {one: math.Tanh},
	kernel.PrimErf:   {one: math.Erf},
	kernel.PrimFloor: {exact: true, one: math.Floor},
	kernel.PrimCeil:  {exact: true, one: math.Ceil},
	kernel.PrimRound: {exact: true, one: math.RoundToEven},
	kernel.PrimShl:   {ints: func(x, n int64) int64 { return low(new(big.Int).Lsh(big.NewInt(x), shift(n))) }},
	kernel.PrimShr:   {ints: func(x, n int64) int64 { return low(new(big.Int).Rsh(big.NewInt(x), shift(n))) }},
	kernel.PrimEq:    {holds: func(x, y float64) bool { return x == y }, bools: func(x, y bool) bool { return x == y }},
	kernel.PrimNe:    {holds: func(x, y float64) bool { return x != y }, bools: func(x, y bool) bool { return x != y }},
	kernel.PrimLt:    {holds: func(x, y float64) bool { return x < y }},
	kernel.PrimLe:    {holds: func(x, y float64) bool { return x <= y }},
	kernel.PrimAnd:   {bools: func(x, y bool) bool { return x && y }, ints: func(x, y int64) int64 { return ^(^x | ^y) }},
	kernel.PrimOr:    {bools: func(x, y bool) bool { return x || y }, ints: func(x, y int64) int64 { return ^(^x & ^y) }},
	kernel.PrimNot:   {bools: func(x, _ bool) bool { return !x }, ints: func(x, _ int64) int64 { return -1 - x }},
	kernel.PrimWhere: {}, // testWhere
	kernel.PrimCast:  {}, // testCast
}

// shift is by how many binary digits a count shifts.
func shift(n int64) uint {
	if n < 0 || n > 64 {
		return 64
	}
	return uint(n)
}

// low is x modulo 2**64.
func low(x *big.Int) int64 {
	return int64(new(big.Int).And(x, new(big.Int).SetUint64(math.MaxUint64)).Uint64())
}

func flipped(x float64) float64 {
	if math.Signbit(x) {
		return 1
	}
	return -1
}

func nanWins(f func(x, y float64) float64) func(x, y float64) float64 {
	return func(x, y float64) float64 {
		if x != x || y != y {
			return math.NaN()
		}
		return f(x, y)
	}
}

// exponential is math.Exp, whose assembly for amd64 overflows a little early.
func exponential(x float64) float64 {
	if 709 < x && x < 710 {
		return math.Exp(x-1) * math.E
	}
	return math.Exp(x)
}

// sine is the sine of x plus this many quarters of a circle. math.Sin is a few ulp off near its zeros,
// so sine first subtracts the quarters in x with enough digits.
func sine(x float64, quarters int64) float64 {
	if math.IsInf(x, 0) || x != x {
		return math.NaN()
	}
	if x < 0 && quarters == 0 {
		return -sine(-x, 0)
	}
	circle := new(big.Float).SetPrec(halfPi().Prec()).SetFloat64(math.Abs(x))
	nearest := new(big.Float).Quo(circle, halfPi())
	n, _ := nearest.Add(nearest, big.NewFloat(0.5)).Int(nil)
	rest, _ := circle.Sub(circle, new(big.Float).Mul(new(big.Float).SetPrec(halfPi().Prec()).SetInt(n), halfPi())).Float64()
	n.Add(n, big.NewInt(quarters))
	switch n.And(n, big.NewInt(3)).Int64() {
	case 0:
		return math.Sin(rest)
	case 1:
		return math.Cos(rest)
	case 2:
		return -math.Sin(rest)
	}
	return -math.Cos(rest)
}

// halfPi is pi/2 with enough digits for the largest float64, by Machin's formula.
var halfPi = sync.OnceValue(func() *big.Float {
	const prec = 1300
	arctan := func(n int64) *big.Int { // of 1/n
		sum, term := new(big.Int), new(big.Int).Lsh(big.NewInt(1), prec+20)
		term.Quo(term, big.NewInt(n))
		for k := int64(1); term.Sign() != 0; k += 2 {
			sum.Add(sum, new(big.Int).Quo(term, big.NewInt(k*(2-k%4))))
			term.Quo(term, big.NewInt(n*n))
		}
		return sum
	}
	v := new(big.Int).Mul(arctan(5), big.NewInt(8))
	v.Sub(v, new(big.Int).Mul(arctan(239), big.NewInt(2)))
	f := new(big.Float).SetPrec(prec).SetInt(v)
	return f.SetMantExp(f, -(prec + 20))
})

// logarithm is math.Log, but right for denormal numbers: on amd64, math.Log is not.
func logarithm(x float64) float64 {
	if isDenormal(x) {
		return math.Log(x*0x1p60) - 60*math.Ln2
	}
	return math.Log(x)
}

// raised is x to the power of y, by products and square roots of many digits: math.Pow is 30 ulp off
// for large results. raised uses math.Pow only for special cases, where it is right. For a denormal x
// math.Pow gets the root of x instead, as it takes the logarithm unless y is an integer.
func raised(x, y float64) float64 {
	host := math.Pow(x, y)
	if isDenormal(x) && y != math.Trunc(y) {
		host = math.Pow(math.Sqrt(x), 2*y)
	}
	isPlain := func(v float64) bool { return v != 0 && v-v == 0 }
	if !isPlain(x) || !isPlain(y) || !isPlain(host) || math.Abs(x) == 1 {
		return host
	}
	many := func(v float64) *big.Float { return new(big.Float).SetPrec(200).SetFloat64(v) }
	result, base := many(1), many(math.Abs(x))
	whole, rest := math.Modf(math.Abs(y))
	for n, square := uint64(whole), many(math.Abs(x)); n > 0; n /= 2 {
		if n%2 == 1 {
			result.Mul(result, square)
		}
		square.Mul(square, square)
	}
	for i := 0; rest > 0 && i < 130; i++ { // the binary digits of the rest
		base.Sqrt(base)
		if rest *= 2; rest >= 1 {
			rest--
			result.Mul(result, base)
		}
	}
	if y < 0 {
		result.Quo(many(1), result)
	}
	v, _ := result.Float64()
	return math.Copysign(v, host)
}

func isDenormal(x float64) bool { return 0 < x && x < 0x1p-1022 }

// quotient is x / y truncated, computed from the absolute values.
func quotient(x, y int64) int64 {
	abs := func(v int64) uint64 {
		if v < 0 {
			return -uint64(v)
		}
		return uint64(v)
	}
	q := abs(x) / abs(y)
	if (x < 0) != (y < 0) {
		q = -q
	}
	return int64(q)
}

// power is x to the power of n, by n products.
func power(x, n int64) int64 {
	if n < 0 {
		if x == 1 || x == -1 && n%2 == 0 {
			return 1
		}
		if x == -1 {
			return -1
		}
		return 0
	}
	p := int64(1)
	for range n {
		p *= x
	}
	return p
}

func testPrimitives(s *suite) {
	for _, p := range kernel.Prims() {
		j, ok := judges[p]
		if !ok {
			s.Errorf("no judge for %v", p)
		}
		judgeFloats[float32](s, p, j)
		judgeFloats[float64](s, p, j)
		judgeInts(s, p, j)
		judgeBools(s, p, j)
	}
	testWhere[float32](s)
	testWhere[float64](s)
	testWhere[int64](s)
	testWhere[bool](s)
}

func judgeFloats[T float32 | float64](s *suite, p kernel.Prim, j judge) {
	if lacks[T](s) {
		return
	}
	dt := device.DTypeOf[T]()
	x, y := kernel.Arg(0, dt), kernel.Arg(1, dt)
	check := func(got T, want float64, operands ...T) {
		s.Helper()
		limit := 2.0
		if dt == device.Float64 {
			limit = 3 // the judge itself may be off by 1
		}
		if j.exact && !same(got, T(want)) || ulps(got, want) > limit {
			s.Errorf("%v of %T %v is %v, want %v (%.3g ulp)", p, got, operands, got, T(want), ulps(got, want))
		}
	}
	switch {
	case j.one != nil:
		v := floats[T](s, 500)
		for i, got := range mapOf[T](s, kernel.Apply(p, x), len(v), put(s, v)) {
			check(got, j.one(float64(v[i])), v[i])
		}
	case j.two != nil:
		v, w := pairs(floats[T](s, 10))
		for i, got := range mapOf[T](s, kernel.Apply(p, x, y), len(v), put(s, v), put(s, w)) {
			check(got, j.two(float64(v[i]), float64(w[i])), v[i], w[i])
		}
	case j.holds != nil:
		v, w := pairs(floats[T](s, 10))
		for i, got := range mapOf[bool](s, kernel.Apply(p, x, y), len(v), put(s, v), put(s, w)) {
			if want := j.holds(float64(v[i]), float64(w[i])); got != want {
				s.Errorf("%v of %v, %v is %v", p, v[i], w[i], got)
			}
		}
	case p.Func(dt) != nil && p != kernel.PrimWhere:
		s.Errorf("no judge for %v of %v", p, dt)
	}
}

func judgeInts(s *suite, p kernel.Prim, j judge) {
	x, y := kernel.Arg(0, device.Int64), kernel.Arg(1, device.Int64)
	v, w := pairs(append(ordinary[int64](s, 10), intEdges...))
	switch {
	case p.Func(device.Int64) == nil || p == kernel.PrimWhere:
		return
	case j.holds != nil:
		for i, got := range mapOf[bool](s, kernel.Apply(p, x, y), len(v), put(s, v), put(s, w)) {
			// The difference of two int64 loses digits in float64. Its sign is exact.
			order := 0.0
			if v[i] < w[i] {
				order = -1
			} else if v[i] > w[i] {
				order = 1
			}
			if want := j.holds(order, 0); got != want {
				s.Errorf("%v of %v, %v is %v", p, v[i], w[i], got)
			}
		}
		return
	case j.ints == nil:
		s.Errorf("no judge for %v of int64", p)
		return
	}
	if p == kernel.PrimDiv {
		for i := range w {
			if w[i] == 0 {
				w[i] = 5
			}
		}
	}
	if p == kernel.PrimPow {
		for i := range w {
			if w[i] %= 128; v[i] == 0 && w[i] < 0 {
				w[i] = 3
			}
		}
	}
	for i, got := range mapOf[int64](s, kernel.Apply(p, []*kernel.Expr{x, y}[:p.Arity()]...), len(v), put(s, v), put(s, w)) {
		if want := j.ints(v[i], w[i]); got != want {
			s.Errorf("%v of %v, %v is %v, want %v", p, v[i], w[i], got, want)
		}
	}
}

func judgeBools(s *suite, p kernel.Prim, j judge) {
	if j.bools == nil {
		if p.Func(device.Bool) != nil && p != kernel.PrimWhere {
			s.Errorf("no judge for %v of bool", p)
		}
		return
	}
	v, w := pairs(bools(s, 9))
	x, y := kernel.Arg(0, device.Bool), kernel.Arg(1, device.Bool)
	for i, got := range mapOf[bool](s, kernel.Apply(p, []*kernel.Expr{x, y}[:p.Arity()]...), len(v), put(s, v), put(s, w)) {
		if want := j.bools(v[i], w[i]); got != want {
			s.Errorf("%v of %v, %v is %v", p, v[i], w[i], got)
		}
	}
}

func testWhere[T device.Element](s *suite) {
	if lacks[T](s) {
		return
	}
	const n = 1500
	dt := device.DTypeOf[T]()
	x, y := make([]T, n), make([]T, n)
	for i := range n {
		x[i] = kernel.Value[T](kernel.BitsOf(floatEdges[i%len(floatEdges)], dt))
		y[i] = kernel.Value[T](kernel.BitsOf(float64(s.rnd.IntN(2)), dt))
	}
	c := bools(s, n)
	e := kernel.Where(kernel.Arg(0, device.Bool), kernel.Arg(1, dt), kernel.Arg(2, dt))
	for i, got := range mapOf[T](s, e, n, put(s, c), put(s, x), put(s, y)) {
		want := y[i]
		if c[i] {
			want = x[i]
		}
		if !same(got, want) {
			s.Errorf("where of %v, %v, %v is %v", c[i], x[i], y[i], got)
		}
	}
}

func testCast(s *suite) {
	x := floats[float64](s, 100)
	ints := append(ordinary[int64](s, 100), intEdges...)
	if !lacks[float64](s) {
		castFrom(s, x, func(v float64) float64 { return v }, truncate)
	}
	castFrom(s, floats[float32](s, 100), func(v float32) float64 { return float64(v) }, func(v float32) int64 { return truncate(float64(v)) })
	castFrom(s, ints, func(v int64) float64 { return float64(v) }, func(v int64) int64 { return v })
	castFrom(s, bools(s, 50), func(v bool) float64 { return map[bool]float64{true: 1}[v] }, func(v bool) int64 { return map[bool]int64{true: 1}[v] })
	// Rounding an int64 to float32 by way of float64 would round twice.
	const twice = 1<<60 + 1<<36 + 1
	if got := mapOf[float32](s, kernel.Cast(kernel.Arg(0, device.Int64), device.Float32), 1, put(s, []int64{twice})); got[0] != 1<<60+1<<37 {
		s.Errorf("%d is %v as float32, want %v", int64(twice), got[0], float32(1<<60+1<<37))
	}
}

func castFrom[S device.Element](s *suite, x []S, exactly func(S) float64, whole func(S) int64) {
	from := device.DTypeOf[S]()
	in := put(s, x)
	to := func(dt device.DType) *kernel.Expr { return kernel.Cast(kernel.Arg(0, from), dt) }
	if !lacks[float64](s) {
		for i, got := range mapOf[float64](s, to(device.Float64), len(x), in) {
			if want := exactly(x[i]); !same(got, want) {
				s.Errorf("%v %v is %v as float64", from, x[i], got)
			}
		}
	}
	for i, got := range mapOf[int64](s, to(device.Int64), len(x), in) {
		if want := whole(x[i]); got != want {
			s.Errorf("%v %v is %v as int64, want %v", from, x[i], got, want)
		}
	}
	for i, got := range mapOf[bool](s, to(device.Bool), len(x), in) {
		if want := exactly(x[i]) != 0; got != want {
			s.Errorf("%v %v is %v as bool", from, x[i], got)
		}
	}
	for i, got := range mapOf[float32](s, to(device.Float32), len(x), in) {
		want := exactly(x[i])
		if from == device.Int64 && math.Abs(want) >= 1<<53 {
			continue // the conversion to float64 has rounded x already
		}
		if !same(got, float32(want)) {
			s.Errorf("%v %v is %v as float32, want %v", from, x[i], got, float32(want))
		}
	}
}

func truncate(v float64) int64 {
	switch {
	case v != v:
		return 0
	case v >= math.MaxInt64:
		return math.MaxInt64
	case v <= math.MinInt64:
		return math.MinInt64
	}
	return int64(math.Trunc(v))
}

// testExpressions computes whole expressions: shared values, scalars, several types.
func testExpressions(s *suite) {
	const f32, f64 = device.Float32, device.Float64
	n := 3000 + s.rnd.IntN(100)
	v, w, u := ordinary[float32](s, n), ordinary[float32](s, n), ordinary[float32](s, n)
	bv, bw, bu := put(s, v), put(s, w), put(s, u)
	x, y, z := kernel.Arg(0, f32), kernel.Arg(1, f32), kernel.Arg(2, f32)

	// With a fused multiply-add, many of these would differ.
	for i, got := range mapOf[float32](s, kernel.Add(kernel.Mul(x, y), z), n, bv, bw, bu) {
		product := float32(float64(v[i]) * float64(w[i]))
		if want := float32(float64(product) + float64(u[i])); got != want {
			s.Fatalf("%v*%v + %v is %v, want %v: the product must be rounded", v[i], w[i], u[i], got, want)
		}
	}

	shared := kernel.Exp(kernel.Neg(kernel.Mul(x, x)))
	e := kernel.Sub(kernel.Mul(shared, y), kernel.Div(shared, kernel.Add(kernel.Abs(z), kernel.Const(1, f32))))
	for i, got := range mapOf[float32](s, e, n, bv, bw, bu) {
		g := math.Exp(-float64(v[i]) * float64(v[i]))
		want := g*float64(w[i]) - g/(math.Abs(float64(u[i]))+1)
		if math.Abs(float64(got)-want) > 1e-6*(1+math.Abs(want)) {
			s.Fatalf("%v at %v, %v, %v is %v, want %v", e, v[i], w[i], u[i], got, want)
		}
	}

	c := device.Command{Kernel: mapKernel(kernel.Where(kernel.Lt(x, kernel.Imm(0, f32)), kernel.Imm(1, f32), kernel.Sub(kernel.Imm(0, f32), x))), N: n}
	c.Buf[1], c.Imm = bv, [2]uint64{kernel.Bits[float32](0.25), kernel.Bits[float32](-3)}
	for i, got := range compute[float32](s, c) {
		want := 0.25 - v[i]
		if v[i] < 0.25 {
			want = -3
		}
		if got != want {
			s.Fatalf("element %d is %v, want %v", i, got, want)
		}
	}

	wide := f64
	if lacks[float64](s) {
		wide = f32
	}
	e = kernel.Cast(kernel.Add(kernel.Cast(x, wide), kernel.Cast(kernel.Cast(kernel.Lt(y, z), device.Int64), wide)), f32)
	for i, got := range mapOf[float32](s, e, n, bv, bw, bu) {
		want := float64(v[i])
		if w[i] < u[i] {
			want++
		}
		if got != float32(want) {
			s.Fatalf("%v at %v, %v, %v is %v, want %v", e, v[i], w[i], u[i], got, want)
		}
	}

	for _, e := range []*kernel.Expr{kernel.Const(2.5, f32), kernel.Imm(0, f32)} {
		c := device.Command{Kernel: mapKernel(e), N: 1500, Imm: [2]uint64{kernel.Bits[float32](2.5)}}
		for i, got := range compute[float32](s, c) {
			if got != 2.5 {
				s.Fatalf("element %d of %v is %v", i, e, got)
			}
		}
	}
	for i, got := range mapOf[float32](s, x, n, bv) {
		if got != v[i] {
			s.Fatalf("element %d of a copy is %v, want %v", i, got, v[i])
		}
	}
}
