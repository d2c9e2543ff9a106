package devicetest

import (
	"errors"
	"math"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/kernel"
)

// hostMath are the functions that a Math kernel can ask for, from the host's
// package math.
var hostMath = map[string]any{
	"Exp":       math.Exp,
	"Exp2":      math.Exp2,
	"Expm1":     math.Expm1,
	"Log":       math.Log,
	"Log2":      math.Log2,
	"Log10":     math.Log10,
	"Log1p":     math.Log1p,
	"Sin":       math.Sin,
	"Cos":       math.Cos,
	"Tan":       math.Tan,
	"Asin":      math.Asin,
	"Acos":      math.Acos,
	"Atan":      math.Atan,
	"Sinh":      math.Sinh,
	"Cosh":      math.Cosh,
	"Tanh":      math.Tanh,
	"Cbrt":      math.Cbrt,
	"Erf":       math.Erf,
	"Erfc":      math.Erfc,
	"Trunc":     math.Trunc,
	"Round":     math.Round,
	"Pow":       math.Pow,
	"Mod":       math.Mod,
	"Remainder": math.Remainder,
	"Atan2":     math.Atan2,
	"Hypot":     math.Hypot,
	"Copysign":  math.Copysign,
}

// testMath checks that functions have the bits that they have on the host. A device may say instead
// that it has none of them.
func testMath(s *suite) {
	x, y := pairs(floats[float64](s, 20))
	if err := s.try(device.Command{Kernel: mathKernel(kernel.MathExp), N: 1, Buf: [4]*device.Buffer{put(s, []float64{0}), put(s, []float64{0})}}); errors.Is(err, device.ErrUnsupported) {
		s.Log("the device has no functions of the host")
		return
	}
	for _, f := range kernel.MathFuncs() {
		c := device.Command{Kernel: mathKernel(f), N: len(x), Buf: [4]*device.Buffer{nil, put(s, x), put(s, y)}}
		for i, got := range compute[float64](s, c) {
			var want float64
			switch f := hostMath[f.String()].(type) {
			case func(float64) float64:
				want = f(x[i])
			case func(float64, float64) float64:
				want = f(x[i], y[i])
			}
			if !same(got, want) {
				s.Fatalf("%v of %v, %v is %v, the host has %v", f, x[i], y[i], got, want)
			}
		}
	}
}

func mathKernel(f kernel.MathFunc) *device.Kernel {
	in := []device.DType{device.Float64, device.Float64}
	return device.NewKernel(f.String(), device.Math, f, device.Float64, in[:f.Arity()]...)
}

// testHost checks a Host command: the function is called for each example with the elements of that example, and its
// error becomes the command's. A device may say instead that it calls no functions.
func testHost(s *suite) {
	failure := errors.New("the first element is negative")
	scaled := &kernel.HostFunc{Name: "devicetest scaled", Call: func(dst, x, y []float64, ints []int) error {
		if x[0] < 0 {
			return failure
		}
		for i := range dst {
			dst[i] = float64(ints[0])*x[i%len(x)] + y[len(y)-1]
		}
		return nil
	}}
	k := device.NewKernel("scaled", device.Host, scaled, device.Float64, device.Float64, device.Float64)
	command := func(first float64) device.Command {
		return device.Command{Kernel: k, N: 8, Args: &device.Args{Ints: []int{2, 2, 3, 10}},
			Buf: [4]*device.Buffer{nil, put(s, []float64{1, 2, first, 4}), put(s, []float64{0, 0, 5, 0, 0, 6})}}
	}
	c := command(3)
	c.Buf[0] = put(s, make([]float64, 8))
	if err := s.try(c); errors.Is(err, device.ErrUnsupported) {
		s.Log("the device calls no functions of the host")
		return
	}
	want := []float64{15, 25, 15, 25, 36, 46, 36, 46}
	for i, got := range compute[float64](s, command(3)) {
		if got != want[i] {
			s.Errorf("element %d is %v, want %v", i, got, want[i])
		}
	}
	c = command(-1)
	c.Buf[0] = put(s, make([]float64, 8))
	if err := s.try(c); !errors.Is(err, failure) {
		s.Errorf("a function that fails: error %v", err)
	}
}
