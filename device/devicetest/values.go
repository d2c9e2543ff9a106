package devicetest

import (
	"math"

	"github.com/asyncgen/asyncgen/device"
)

var negativeZero = math.Copysign(0, -1)

// floatEdges are numbers where functions and formats have special cases or limits.
var floatEdges = []float64{
	0, negativeZero, 1, -1, 0.5, -0.5, 1.5, 2.5, -2.5, 3, 10, 1e-3, 1e-8, 1e-20, math.Pi, -math.Pi / 2, 88.7, -87.4, -104, 709.7, -745,
	1e-45, -1e-40, 5e-324, 1.2e-38, 3.4e38, 1e300, -1e300, 1 << 24, 1<<24 + 1, 1 << 53, math.Inf(1), math.Inf(-1), math.NaN(),
}

var intEdges = []int64{0, 1, -1, 2, 3, -7, 10, 63, 64, 1 << 31, -1 << 40, math.MaxInt64, math.MinInt64, math.MaxInt64 - 1}

// floats returns the edges and n random numbers of many magnitudes.
func floats[T float32 | float64](s *suite, n int) []T {
	var x []T
	for _, v := range floatEdges {
		x = append(x, T(v))
	}
	for range n {
		x = append(x, T(s.rnd.NormFloat64()*math.Pow(10, float64(s.rnd.IntN(9)-6))))
	}
	return x
}

// ordinary returns n random numbers: normally distributed floats, or integers from -1000 to 999.
func ordinary[T number](s *suite, n int) []T {
	x := make([]T, n)
	for i := range x {
		if device.DTypeOf[T]() == device.Int64 {
			x[i] = T(s.rnd.IntN(2000) - 1000)
		} else {
			x[i] = T(s.rnd.NormFloat64())
		}
	}
	return x
}

func bools(s *suite, n int) []bool {
	x := make([]bool, n)
	for i := range x {
		x[i] = s.rnd.IntN(2) == 1
	}
	return x
}

// pairs returns every x with every y.
func pairs[T any](values []T) (x, y []T) {
	for _, v := range values {
		for _, w := range values {
			x, y = append(x, v), append(y, w)
		}
	}
	return x, y
}

// same reports whether x and y are the same number: NaN is NaN, 0 is not -0.
func same[T device.Element](x, y T) bool {
	if x != x || y != y {
		return x != x && y != y
	}
	switch x := any(x).(type) {
	case float32:
		return math.Float32bits(x) == math.Float32bits(any(y).(float32))
	case float64:
		return math.Float64bits(x) == math.Float64bits(any(y).(float64))
	}
	return x == y
}

// ulps is the distance from want to got, in units of the last place of want as a T.
func ulps[T float32 | float64](got T, want float64) float64 {
	rounded := T(want)
	switch {
	case got != got || want != want:
		if got != got && want != want {
			return 0
		}
		return math.Inf(1)
	case got == rounded:
		return 0
	case math.IsInf(float64(got), 0) || math.IsInf(float64(rounded), 0):
		// The largest number is one step away from infinity.
		biggest, gap := math.MaxFloat64, 0x1p971
		if device.DTypeOf[T]() == device.Float32 {
			biggest, gap = math.MaxFloat32, 0x1p104
		}
		clamp := func(v float64) float64 { return max(-biggest, min(biggest, v)) }
		return math.Abs(clamp(float64(got))-clamp(float64(rounded)))/gap + 1
	}
	return math.Abs(float64(got)-want) / gapAt[T](want)
}

// gapAt is the distance between neighbouring Ts near v.
func gapAt[T float32 | float64](v float64) float64 {
	v = math.Abs(v)
	if device.DTypeOf[T]() == device.Float32 {
		x := float32(v)
		return float64(math.Nextafter32(x, math.MaxFloat32) - x)
	}
	return math.Nextafter(v, math.MaxFloat64) - v
}

// epsilon is half the distance from 1 to the next T: the relative error of one rounding.
func epsilon[T number]() float64 {
	switch device.DTypeOf[T]() {
	case device.Float32:
		return 0x1p-24
	case device.Float64:
		return 0x1p-53
	}
	return 0
}
