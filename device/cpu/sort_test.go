package cpu

import (
	"math"
	"slices"
	"testing"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/kernel"
)

// The first of many elements are those that kernel.ArgSort puts first, also of equal ones and NaNs, wherever they lie.
func TestFirst(t *testing.T) {
	everyISA(t, func(t *testing.T) {
		testFirst[float32](t)
		testFirst[float64](t)
		testFirst[int64](t)
	})
}

func testFirst[T number](t *testing.T) {
	rnd := newRand(t)
	k := device.NewKernel("argsort", device.ArgSort, nil, device.Int64, device.DTypeOf[T]())
	for name, value := range map[string]func(i, n int) float64{
		"random":     func(int, int) float64 { return 1000 * rnd.NormFloat64() },
		"few":        func(int, int) float64 { return float64(rnd.IntN(3) - 1) },
		"equal":      func(int, int) float64 { return 7 },
		"zeros":      func(int, int) float64 { return math.Copysign(0, rnd.Float64()-0.5) },
		"rising":     func(i, _ int) float64 { return float64(i) },
		"falling":    func(i, n int) float64 { return float64(n - i) },
		"NaN":        func(int, int) float64 { return math.NaN() },
		"mostly NaN": func(i, _ int) float64 { return []float64{math.NaN(), float64(i % 3)}[rnd.IntN(20)/19] },
		"some NaN":   func(i, _ int) float64 { return []float64{rnd.NormFloat64(), math.NaN()}[rnd.IntN(20)/19] },
		"infinite":   func(int, int) float64 { return math.Inf(rnd.IntN(2)*2 - 1) },
	} {
		for range 8 {
			rows, n := 1+rnd.IntN(3), 8+rnd.IntN(600)
			if rnd.IntN(4) == 0 {
				n = 2000 + rnd.IntN(4000)
			}
			most := 1 + rnd.IntN(n/8)
			x := make([]T, rows*n)
			for i := range x {
				x[i] = kernel.Value[T](kernel.BitsOf(value(i%n, n), device.DTypeOf[T]()))
			}
			for _, descending := range []bool{false, true} {
				c := device.Command{Kernel: k, N: rows * most, Args: &device.Args{Shape: device.Shape{rows, n}, Kept: 1, Ints: []int{most, 0}}}
				if descending {
					c.Args.Ints[1] = 1
				}
				c.Buf[0], c.Buf[1] = device.HostBuffer(int64(8*c.N)), bufferOf(x)
				if err := Run(&c); err != nil {
					t.Fatal(err)
				}
				for row := range rows {
					got := device.Slice[int64](c.Buf[0], row*most, most)
					for i, want := range kernel.ArgSort(x[row*n:][:n], descending)[:most] {
						if int(got[i]) != want {
							t.Fatalf("%s %T, descending %v: place %d of the first %d of %d is %d, want %d", name, x[0], descending, i, most, n, got[i], want)
						}
					}
				}
			}
		}
	}
}

func bufferOf[T device.Element](x []T) *device.Buffer {
	b := device.HostBuffer(int64(len(x) * device.DTypeOf[T]().Size()))
	copy(device.Slice[T](b, 0, len(x)), x)
	return b
}

// What keepFirst keeps is what sorting puts first, also where partitions are of no use.
func TestKeepFirst(t *testing.T) {
	rnd := newRand(t)
	for n := range 200 {
		for _, different := range []int{1, 3, 1000} {
			list := make([]int, n+1)
			for i := range list {
				list[i] = rnd.IntN(different)
			}
			sorted, k := slices.Sorted(slices.Values(list)), 1+rnd.IntN(n+1)
			keepFirst(list, k, func(p, q int) bool { return p < q })
			last, first := list[k-1], slices.Sorted(slices.Values(list[:k]))
			slices.Sort(list)
			if last != sorted[k-1] || !slices.Equal(first, sorted[:k]) || !slices.Equal(list, sorted) {
				t.Fatalf("the first %d of %v are %v, the last %d", k, sorted, first, last)
			}
		}
	}
}
