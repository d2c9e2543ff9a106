package vec

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/kernel"
)

var everyFlag = flag.Uint64("every", 9973, "the test of functions of float32 takes each n-th one; 1 takes all of them")

var functionPrims = []kernel.Prim{
	kernel.PrimExp, kernel.PrimExpm1, kernel.PrimLog, kernel.PrimLog1p, kernel.PrimSin, kernel.PrimCos, kernel.PrimTanh, kernel.PrimErf,
}

// TestFunctions compares the loops with the functions of package kernel on numbers from the whole
// range: go test -run TestFunctions -every 1 takes all of float32.
func TestFunctions(t *testing.T) {
	eachISA(t, func(t *testing.T) {
		rnd := newRand(t)
		for _, p := range functionPrims {
			const block = 4099 // no multiple of a vector
			x32, y32 := make([]float32, 0, block), make([]float32, block)
			f32, loop32 := p.Func(device.Float32).(func(float32) float32), PrimLoop(p, device.Float32, NoScalar)
			check32 := func() {
				loop32(unsafe.Pointer(&y32[0]), unsafe.Pointer(&x32[0]), nil, nil, 0, len(x32))
				for i, x := range x32 {
					if want := f32(x); !same(device.Float32, kernel.Bits(y32[i]), kernel.Bits(want)) {
						t.Fatalf("%v of float32 %v (%#x) is %v, want %v", p, x, math.Float32bits(x), y32[i], want)
					}
				}
				x32 = x32[:0]
			}
			for b := uint64(0); b < 1<<32; b += *everyFlag {
				if x32 = append(x32, math.Float32frombits(uint32(b))); len(x32) == block {
					check32()
				}
			}
			check32()

			x64 := make([]float64, 0, 60000)
			for range cap(x64) / 4 {
				x64 = append(x64, math.Float64frombits(rnd.Uint64()), rnd.NormFloat64(), math.Exp2(float64(rnd.IntN(11)))*(2*rnd.Float64()-1), 1e-300*rnd.NormFloat64())
			}
			y64 := make([]float64, len(x64))
			f64 := p.Func(device.Float64).(func(float64) float64)
			PrimLoop(p, device.Float64, NoScalar)(unsafe.Pointer(&y64[0]), unsafe.Pointer(&x64[0]), nil, nil, 0, len(x64))
			for i, x := range x64 {
				if want := f64(x); !same(device.Float64, kernel.Bits(y64[i]), kernel.Bits(want)) {
					t.Fatalf("%v of float64 %v (%#x) is %v, want %v", p, x, math.Float64bits(x), y64[i], want)
				}
			}
		}
	})
}

// A loop in Go costs no less than one in assembly, and none costs nothing.
func TestCost(t *testing.T) {
	type key struct {
		p  kernel.Prim
		dt device.DType
	}
	slow := map[key]int{}
	eachISA(t, func(t *testing.T) { // Go is the first
		for _, p := range kernel.Prims() {
			for _, dt := range device.DTypes() {
				c, k := Cost(p, dt), key{p, dt}
				if Current() == Go {
					slow[k] = c
				}
				if c < 1 || c > slow[k] {
					t.Errorf("%v of %v costs %d, in Go %d", p, dt, c, slow[k])
				}
			}
		}
	})
	for _, p := range functionPrims {
		if c := slow[key{p, device.Float32}]; c < 100 {
			t.Errorf("%v costs %d in Go", p, c)
		}
	}
}

// TestPow compares the loops of pow with the function of package kernel, edges with edges and at random.
func TestPow(t *testing.T) {
	t.Run("float32", func(t *testing.T) {
		testPow(t, func(rnd *rand.Rand) float32 { return math.Float32frombits(rnd.Uint32()) })
	})
	t.Run("float64", func(t *testing.T) {
		testPow(t, func(rnd *rand.Rand) float64 { return math.Float64frombits(rnd.Uint64()) })
	})
}

// testPow is TestPow for one type; any makes numbers of any magnitude.
func testPow[T float32 | float64](t *testing.T, any func(*rand.Rand) T) {
	dt := device.DTypeOf[T]()
	var x, y []T
	for _, v := range edges {
		for _, w := range edges {
			x, y = append(x, T(v)), append(y, T(w))
		}
	}
	rnd := newRand(t)
	for range 30000 {
		v := T(math.Exp(rnd.NormFloat64()))
		x = append(x, any(rnd), T(rnd.NormFloat64()), T(rnd.NormFloat64()), v, any(rnd))
		y = append(y, any(rnd), T(10*rnd.NormFloat64()), T(rnd.IntN(20)-10), T((rnd.Float64()*1455-745)/math.Log(float64(v))), T(rnd.NormFloat64()))
	}
	got := make([]T, len(x))
	f := kernel.PrimPow.Func(dt).(func(T, T) T)
	check := func(t *testing.T, i int, x, y T) {
		if want := f(x, y); !same(dt, kernel.Bits(got[i]), kernel.Bits(want)) {
			t.Fatalf("%v to the power of %v is %v, want %v", x, y, got[i], want)
		}
	}
	eachISA(t, func(t *testing.T) {
		loop := func(form Form) Loop { return PrimLoop(kernel.PrimPow, dt, form) }
		dst, px, py := unsafe.Pointer(&got[0]), unsafe.Pointer(&x[0]), unsafe.Pointer(&y[0])
		loop(NoScalar)(dst, px, py, nil, 0, len(x))
		for i := range x {
			check(t, i, x[i], y[i])
		}
		for _, s := range edges {
			const n = 1000
			if first := loop(FirstScalar); first != nil {
				first(dst, nil, py, nil, kernel.Bits(T(s)), n)
				for i := range n {
					check(t, i, T(s), y[i])
				}
			}
			if second := loop(SecondScalar); second != nil {
				second(dst, px, nil, nil, kernel.Bits(T(s)), n)
				for i := range n {
					check(t, i, x[i], T(s))
				}
			}
		}
	})
}

func BenchmarkFunctions(b *testing.B) {
	defer Use(Current())
	const n = 4096
	for _, p := range append([]kernel.Prim{kernel.PrimPow}, functionPrims...) {
		for _, a := range Has() {
			Use(a)
			b.Run(fmt.Sprintf("%v/float32/%v", p, a), func(b *testing.B) {
				x, y := make([]float32, n), make([]float32, n)
				for i := range x {
					x[i] = float32(i)/n*8 + 0.01
				}
				benchmarkLoop(b, PrimLoop(p, device.Float32, NoScalar), unsafe.Pointer(&y[0]), unsafe.Pointer(&x[0]), n)
			})
			b.Run(fmt.Sprintf("%v/float64/%v", p, a), func(b *testing.B) {
				x, y := make([]float64, n), make([]float64, n)
				for i := range x {
					x[i] = float64(i)/n*8 + 0.01
				}
				benchmarkLoop(b, PrimLoop(p, device.Float64, NoScalar), unsafe.Pointer(&y[0]), unsafe.Pointer(&x[0]), n)
			})
		}
	}
}

func benchmarkLoop(b *testing.B, loop Loop, y, x unsafe.Pointer, n int) {
	for b.Loop() {
		loop(y, x, x, nil, 0, n) // y is for pow
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/element")
}
