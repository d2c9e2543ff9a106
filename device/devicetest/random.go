package devicetest

import (
	"math"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/kernel"
)

// draw returns n elements of a stream.
func draw[T device.Element](s *suite, d kernel.Distribution, key, pos uint64, n int, bounds ...int) []T {
	s.Helper()
	c := device.Command{Kernel: device.NewKernel(d.String(), device.Random, d, device.DTypeOf[T]()), N: n, Imm: [2]uint64{key, pos}}
	if len(bounds) > 0 {
		c.Args = &device.Args{Ints: bounds}
	}
	return compute[T](s, c)
}

func testRandom(s *suite) {
	// The first known answer of Random123 for Philox4x32-10: key and counter 0.
	for i, word := range []uint32{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8} {
		if got, want := draw[float32](s, kernel.Uniform, 0, uint64(i), 1)[0], float32(word>>8)/(1<<24); got != want {
			s.Errorf("uniform float32 %d with key 0 is %v, want %v", i, got, want)
		}
	}
	stream[float32](s, kernel.Uniform)
	stream[float64](s, kernel.Uniform)
	stream[float32](s, kernel.Normal)
	stream[float64](s, kernel.Normal)
	stream[int64](s, kernel.Ints, -3, 1000)

	const n = 100000
	moments(s, "uniform float32", draw[float32](s, kernel.Uniform, 1, 0, n), 0.5, 1./12)
	moments(s, "normal float32", draw[float32](s, kernel.Normal, 3, 0, n), 0, 1)
	if !lacks[float64](s) {
		moments(s, "uniform float64", draw[float64](s, kernel.Uniform, 2, 0, n), 0.5, 1./12)
		moments(s, "normal float64", draw[float64](s, kernel.Normal, 4, 0, n), 0, 1)
	}
	dice := draw[int64](s, kernel.Ints, 5, 0, n, 1, 7)
	moments(s, "ints", dice, 3.5, 35./12)
	for _, v := range dice {
		if v < 1 || v > 6 {
			s.Fatalf("a die shows %d", v)
		}
	}
}

// stream draws a stream in pieces, far from its beginning, and compares with the definition.
func stream[T device.Element](s *suite, d kernel.Distribution, bounds ...int) {
	if lacks[T](s) {
		return
	}
	var lo, hi int64
	if len(bounds) > 0 {
		lo, hi = int64(bounds[0]), int64(bounds[1])
	}
	key, pos, n := s.rnd.Uint64(), s.rnd.Uint64()>>1, 1000
	want := make([]T, n)
	kernel.Draw(d, key, pos, lo, hi, want)
	for i := 0; i < n; {
		m := min(1+s.rnd.IntN(300), n-i)
		for j, got := range draw[T](s, d, key, pos+uint64(i), m, bounds...) {
			if !same(got, want[i+j]) {
				s.Fatalf("%v: element %d with key %d is %v, want %v", d, pos+uint64(i+j), key, got, want[i+j])
			}
		}
		i += m
	}
}

// moments checks mean and variance. The keys are fixed, so it passes always or never.
func moments[T number](s *suite, name string, x []T, mean, variance float64) {
	n := float64(len(x))
	m1, m2 := 0.0, 0.0
	for _, v := range x {
		d := float64(v) - mean
		m1 += d / n
		m2 += d * d / n
	}
	if math.Abs(m1) > 5*math.Sqrt(variance/n) || math.Abs(m2/variance-1) > 0.03 {
		s.Errorf("%s: mean %v, variance %v, want %v and %v", name, mean+m1, m2, mean, variance)
	}
}
