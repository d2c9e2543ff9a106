package vec

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/kernel"
)

func TestDrawers(t *testing.T) {
	eachISA(t, func(t *testing.T) {
		checkDrawer[float32](t, kernel.Uniform)
		checkDrawer[float64](t, kernel.Uniform)
		checkDrawer[float32](t, kernel.Normal)
		checkDrawer[float64](t, kernel.Normal)
		checkDrawer[int64](t, kernel.Ints)
	})
}

// checkDrawer compares a drawer with kernel.Draw: for every length, from places within and across
// blocks, where words of the counter change and where the position begins anew, into memory flush
// against pages that can't be touched.
func checkDrawer[T device.Element](t *testing.T, d kernel.Distribution) {
	t.Run(fmt.Sprintf("%v/%v", d, device.DTypeOf[T]()), func(t *testing.T) {
		rnd := newRand(t)
		draw := Drawer[T](d)
		check := func(n int, pos uint64, got []T) {
			t.Helper()
			key, lo, hi := rnd.Uint64(), int64(math.MinInt64), int64(math.MaxInt64)
			if rnd.IntN(2) == 0 {
				lo = rnd.Int64N(1000) - 500
				hi = lo + 1 + rnd.Int64N(1<<rnd.IntN(62))
			}
			want := make([]T, n)
			kernel.Draw(d, key, pos, lo, hi, want)
			clear(got)
			draw(key, pos, lo, hi, got[:n])
			for i := range want {
				if kernel.Bits(got[i]) != kernel.Bits(want[i]) {
					t.Fatalf("key %#x, position %d, %d elements, from %d to %d: element %d is %v, want %v", key, pos, n, lo, hi, i, got[i], want[i])
				}
			}
			for i := n; i < len(got); i++ {
				if kernel.Bits(got[i]) != 0 {
					t.Fatalf("position %d, %d elements: element %d was written", pos, n, i)
				}
			}
		}
		const most = 3 * longest
		for _, atEnd := range []bool{true, false} {
			memory := unsafe.Slice((*T)(guarded(t, most*int(unsafe.Sizeof(*new(T))), atEnd)), most)
			for n := range most {
				dst := memory
				if atEnd {
					dst = memory[most-n:]
				}
				check(n, rnd.Uint64N(10), dst)
				check(n, position(rnd), dst)
			}
		}
		for range 4 {
			n := 3*mostBlocks*4 + rnd.IntN(1000)
			check(n, position(rnd), make([]T, n))
		}
	})
}

// position is a random one, often such that something happens soon behind it.
func position(rnd *rand.Rand) uint64 {
	switch back := rnd.Uint64N(400); rnd.IntN(4) {
	case 0:
		return 1<<33 - back // word 0 of the counter of a stream of two a block begins anew
	case 1:
		return 5<<34 - back // and of four
	case 2:
		return -back // the position does
	}
	return rnd.Uint64()
}

// TestDrawersKnowPhilox ties the loops to the first of the known answers that come with Random123.
func TestDrawersKnowPhilox(t *testing.T) {
	eachISA(t, func(t *testing.T) {
		u := make([]float32, 64)
		Drawer[float32](kernel.Uniform)(0, 0, 0, 0, u)
		for i, w := range []uint32{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8} {
			if want := float32(w>>8) / (1 << 24); u[i] != want {
				t.Errorf("element %d is %v, want %v", i, u[i], want)
			}
		}
	})
}

// What is drawn again and again leaves nothing behind.
func TestDrawersAllocateNothing(t *testing.T) {
	draw := Drawer[float32](kernel.Normal)
	dst := make([]float32, 1000)
	if n := testing.AllocsPerRun(100, func() { draw(1, 2, 0, 0, dst) }); n >= 1 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkDrawers(b *testing.B) {
	for _, a := range Has() {
		for _, n := range []int{1, 16, 100, 1 << 16} {
			benchmarkDrawer[float32](b, a, kernel.Uniform, n)
			benchmarkDrawer[float32](b, a, kernel.Normal, n)
			benchmarkDrawer[float64](b, a, kernel.Normal, n)
			benchmarkDrawer[int64](b, a, kernel.Ints, n)
		}
	}
}

func benchmarkDrawer[T device.Element](b *testing.B, a ISA, d kernel.Distribution, n int) {
	b.Run(fmt.Sprintf("%v/%v/%v/%d", d, device.DTypeOf[T](), a, n), func(b *testing.B) {
		defer Use(Current())
		Use(a)
		draw := Drawer[T](d)
		dst := make([]T, n)
		b.ReportAllocs()
		for b.Loop() {
			draw(1, 0, 0, 1000, dst)
		}
		b.ReportMetric(b.Elapsed().Seconds()*1e9/float64(b.N)/float64(n), "ns/element")
	})
}
