package devicetest

import (
	"math"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/kernel"
)

// testStorage moves and converts elements of the types for storage. It tries every number of 16 bits,
// and numbers that are rounded to one.
func testStorage(s *suite) {
	moves(s, device.Float16Bits(0x3c01), anyBits[device.Float16Bits])
	moves(s, device.BFloat16Bits(0xff81), anyBits[device.BFloat16Bits])
	moves(s, int32(math.MinInt32), anyBits[int32])
	moves(s, uint8(0x81), anyBits[uint8])

	float16 := halfFormat{11, -14, 15}
	bfloat16 := halfFormat{8, -126, 127}
	halves[device.Float16Bits](s, float16)
	halves[device.BFloat16Bits](s, bfloat16)
	for range 12 {
		computed(s, float16, device.ToFloat16)
		computed(s, bfloat16, device.ToBFloat16)
	}
	integers(s, anyBits[int32](s, 1000), math.MinInt32, math.MaxInt32)
	integers(s, anyBits[uint8](s, 1000), 0, math.MaxUint8)
	betweenStorage(s, float16, bfloat16)
}

// anyBits returns n elements whose bits are all random.
func anyBits[T device.Element](s *suite, n int) []T {
	x := make([]T, n)
	for i := range x {
		x[i] = kernel.Value[T](s.rnd.Uint64())
	}
	return x
}

// moves tests what has nothing to do with the values of elements.
func moves[T device.Element](s *suite, v T, values func(*suite, int) []T) {
	transfer(s, values(s, 300))
	fillWith(s, v)
	for range 10 {
		copyViews(s, values)
		copyTo(s, values)
		copyOf(s, s.shape(), values)
		gather(s, values)
		concat(s, values)
	}
}

// A halfFormat is a format of 16 bits: how many bits are significant, and the exponents of normal numbers.
type halfFormat struct{ digits, least, most int }

// value is the number with these bits.
func (f halfFormat) value(bits uint16) float64 {
	fraction := f.digits - 1
	exponent, rest, sign := int(bits&0x7fff)>>fraction, float64(bits&(1<<fraction-1)), 1-2*float64(bits>>15)
	switch {
	case exponent == 0:
		return sign * math.Ldexp(rest, f.least-fraction)
	case exponent > 2*f.most && rest > 0:
		return math.NaN()
	case exponent > 2*f.most:
		return sign * math.Inf(1)
	}
	return sign * math.Ldexp(float64(int(1)<<fraction)+rest, exponent-f.most-fraction)
}

// round is the number nearest to x, ties to even.
func (f halfFormat) round(x float64) float64 {
	if x == 0 || x != x || math.IsInf(x, 0) {
		return x
	}
	_, exponent := math.Frexp(x)
	place := math.Ldexp(1, max(exponent-1, f.least)-f.digits+1) // of the last digit
	y := math.Copysign(math.RoundToEven(x/place)*place, x)
	if math.Abs(y) >= math.Ldexp(1, f.most+1) {
		return math.Copysign(math.Inf(1), x)
	}
	return y
}

// halves converts every number of 16 bits, the number halfway between each two of them, and the
// neighbours of either.
func halves[T device.Float16Bits | device.BFloat16Bits](s *suite, f halfFormat) {
	dt := device.DTypeOf[T]()
	all := make([]T, 1<<16)
	for i := range all {
		all[i] = T(i)
	}
	var singles []float32
	var doubles []float64
	for i, got := range mapOf[float32](s, kernel.Cast(kernel.Arg(0, dt), device.Float32), len(all), put(s, all)) {
		want := f.value(uint16(i))
		if !same(float64(got), want) {
			s.Fatalf("%v %#x is %v as float32, want %v", dt, i, got, want)
		}
		halfway := float32((want + f.value(uint16(i&0x8000|(i+1)&0x7fff))) / 2)
		for _, x := range []float32{got, halfway} {
			singles = append(singles, math.Nextafter32(x, -math.MaxFloat32), x, math.Nextafter32(x, math.MaxFloat32))
			doubles = append(doubles, math.Nextafter(float64(x), -math.MaxFloat64), float64(x), math.Nextafter(float64(x), math.MaxFloat64))
		}
	}
	singles, doubles = append(singles, floats[float32](s, 1000)...), append(doubles, floats[float64](s, 1000)...)
	rounds[T](s, f, singles, func(x float32) float64 { return float64(x) })
	if !lacks[float64](s) {
		rounds[T](s, f, doubles, func(x float64) float64 { return x })
	}
	var ints []int64
	for _, x := range doubles {
		if math.Abs(x) < 1<<53 {
			ints = append(ints, int64(x))
		}
	}
	rounds[T](s, f, ints, func(x int64) float64 { return float64(x) })
	rounds[T](s, f, []bool{true, false}, func(x bool) float64 { return map[bool]float64{true: 1}[x] })
	// These are halfway between two bfloat16, or behind that by less than a float64 tells.
	far := []int64{1<<62 + 1<<54, 1<<62 + 1<<54 + 1, 1<<62 + 1<<54 - 1, 1<<62 + 3<<54, math.MaxInt64, math.MinInt64}
	if f.most > 62 {
		want := []float64{0x1p62, 0x1.02p62, 0x1p62, 0x1.04p62, 0x1p63, -0x1p63}
		for i, got := range mapOf[T](s, kernel.Cast(kernel.Arg(0, device.Int64), dt), len(far), put(s, far)) {
			if f.value(uint16(got)) != want[i] {
				s.Errorf("int64 %d is %v as %v, want %v", far[i], f.value(uint16(got)), dt, want[i])
			}
		}
	}
	// To the types that a half is not computed in.
	for i, got := range mapOf[int64](s, kernel.Cast(kernel.Arg(0, dt), device.Int64), len(all), put(s, all)) {
		if want := truncate(f.value(uint16(i))); got != want {
			s.Fatalf("%v %#x is %v as int64, want %v", dt, i, got, want)
		}
	}
	for i, got := range mapOf[bool](s, kernel.Cast(kernel.Arg(0, dt), device.Bool), len(all), put(s, all)) {
		if want := f.value(uint16(i)) != 0; got != want {
			s.Fatalf("%v %#x is %v as bool", dt, i, got)
		}
	}
}

// rounds converts x to a format of 16 bits.
func rounds[T device.Float16Bits | device.BFloat16Bits, S device.Element](s *suite, f halfFormat, x []S, exactly func(S) float64) {
	from, dt := device.DTypeOf[S](), device.DTypeOf[T]()
	for i, got := range mapOf[T](s, kernel.Cast(kernel.Arg(0, from), dt), len(x), put(s, x)) {
		if want := f.round(exactly(x[i])); !same(f.value(uint16(got)), want) {
			s.Fatalf("%v %v is %v as %v, want %v", from, x[i], f.value(uint16(got)), dt, want)
		}
	}
}

// computed evaluates expressions of elements of 16 bits, which are converted first, and folds their values.
func computed[T device.Float16Bits | device.BFloat16Bits](s *suite, f halfFormat, narrow func(float32) T) {
	dt := device.DTypeOf[T]()
	values := func(s *suite, n int) []T {
		x := make([]T, n)
		for i, v := range ordinary[float32](s, n) {
			x[i] = narrow(v)
		}
		return x
	}
	single := func(x T) float32 { return float32(f.value(uint16(x))) }
	x, y := kernel.Cast(kernel.Arg(0, dt), device.Float32), kernel.Cast(kernel.Arg(1, dt), device.Float32)
	step := kernel.Sub(kernel.Mul(x, y), kernel.Const(0.75, device.Float32))
	want := func(x, y T) float32 { return float32(single(x)*single(y)) - 0.75 }

	a, b := values(s, 200), values(s, 200)
	c := device.Command{Kernel: mapKernel(kernel.Cast(step, dt)), N: len(a), Buf: [4]*device.Buffer{nil, put(s, a), put(s, b)}}
	for i, got := range compute[T](s, c) {
		if want := f.round(float64(want(a[i], b[i]))); !same(f.value(uint16(got)), want) {
			s.Fatalf("%v of %v and %v is %v, want %v", step, single(a[i]), single(b[i]), f.value(uint16(got)), want)
		}
	}

	for _, r := range []kernel.Reducer{kernel.ReduceSum, kernel.ReduceMax} {
		c, first := reduction(s, values)
		second := over(s, &c, 2, values)
		c.Kernel = device.NewKernel("fold of "+step.String(), device.Reduce, kernel.FoldOf{By: r, Expr: step}, device.Float32, dt, dt)
		for i, got := range compute[float32](s, c) {
			list := make([]float32, len(first[i]))
			for j := range list {
				list[j] = want(first[i][j], second[i][j])
			}
			if want := kernel.Fold(r, list); !same(got, want) {
				s.Fatalf("%s by %v of %d elements of shape %v, %d kept, strides %v, is %v, want %v", c.Kernel.Name, r, len(list), c.Args.Shape, c.Args.Kept, c.Args.Strides, got, want)
			}
		}
	}
}

// integers converts from and to a small type of integers.
func integers[T int32 | uint8](s *suite, x []T, least, most float64) {
	dt := device.DTypeOf[T]()
	castFrom(s, x, func(v T) float64 { return float64(v) }, func(v T) int64 { return int64(v) })
	wide := append(anyBits[int64](s, 1000), intEdges...)
	for i, got := range mapOf[T](s, kernel.Cast(kernel.Arg(0, device.Int64), dt), len(wide), put(s, wide)) {
		if want := T(wide[i]); got != want {
			s.Fatalf("int64 %d is %d as %v, want %d", wide[i], got, dt, want)
		}
	}
	for i, got := range mapOf[T](s, kernel.Cast(kernel.Arg(0, device.Bool), dt), 2, put(s, []bool{false, true})) {
		if got != T(i) {
			s.Errorf("%v is %d as %v", i == 1, got, dt)
		}
	}
	clamped := func(v float64) T {
		if v != v {
			return 0
		}
		return T(math.Trunc(min(max(v, least), most)))
	}
	edges := []float64{least, least - 0.5, least - 1, most, most + 0.5, most + 1, most + 2, 1e18, -1e18}
	singles, doubles := floats[float32](s, 100), append(floats[float64](s, 100), edges...)
	for _, v := range edges {
		singles = append(singles, float32(v))
	}
	for i, got := range mapOf[T](s, kernel.Cast(kernel.Arg(0, device.Float32), dt), len(singles), put(s, singles)) {
		if want := clamped(float64(singles[i])); got != want {
			s.Fatalf("float32 %v is %d as %v, want %d", singles[i], got, dt, want)
		}
	}
	if lacks[float64](s) {
		return
	}
	for i, got := range mapOf[T](s, kernel.Cast(kernel.Arg(0, device.Float64), dt), len(doubles), put(s, doubles)) {
		if want := clamped(doubles[i]); got != want {
			s.Fatalf("float64 %v is %d as %v, want %d", doubles[i], got, dt, want)
		}
	}
}

// betweenStorage converts between the types for storage.
func betweenStorage(s *suite, float16, bfloat16 halfFormat) {
	small, brain, ints, bytes := anyBits[device.Float16Bits](s, 3000), anyBits[device.BFloat16Bits](s, 3000), anyBits[int32](s, 3000), anyBits[uint8](s, 3000)
	rounds[device.BFloat16Bits](s, bfloat16, small, func(x device.Float16Bits) float64 { return float16.value(uint16(x)) })
	rounds[device.BFloat16Bits](s, bfloat16, ints, func(x int32) float64 { return float64(x) })
	rounds[device.BFloat16Bits](s, bfloat16, bytes, func(x uint8) float64 { return float64(x) })
	rounds[device.Float16Bits](s, float16, brain, func(x device.BFloat16Bits) float64 { return bfloat16.value(uint16(x)) })
	rounds[device.Float16Bits](s, float16, ints, func(x int32) float64 { return float64(x) })
	rounds[device.Float16Bits](s, float16, bytes, func(x uint8) float64 { return float64(x) })
	for i, got := range mapOf[uint8](s, kernel.Cast(kernel.Arg(0, device.Int32), device.Uint8), len(ints), put(s, ints)) {
		if want := uint8(ints[i]); got != want {
			s.Fatalf("int32 %d is %d as uint8, want %d", ints[i], got, want)
		}
	}
	for i, got := range mapOf[uint8](s, kernel.Cast(kernel.Arg(0, device.BFloat16), device.Uint8), len(brain), put(s, brain)) {
		if want := uint8(min(max(truncate(bfloat16.value(uint16(brain[i]))), 0), math.MaxUint8)); got != want {
			s.Fatalf("bfloat16 %#x is %d as uint8, want %d", uint16(brain[i]), got, want)
		}
	}
	for i, got := range mapOf[int32](s, kernel.Cast(kernel.Arg(0, device.Uint8), device.Int32), len(bytes), put(s, bytes)) {
		if want := int32(bytes[i]); got != want {
			s.Fatalf("uint8 %d is %d as int32", bytes[i], got)
		}
	}
}
