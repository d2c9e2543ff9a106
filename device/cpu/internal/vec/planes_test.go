package vec

import (
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/kernel"
)

func TestTaps(t *testing.T) {
	eachISA(t, func(t *testing.T) {
		testTaps[float32](t)
		testTaps[float64](t)
	})
}

// testTaps combines rows that lie flush against pages that can't be touched.
func testTaps[T float](t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	dt := device.DTypeOf[T]()
	size := dt.Size()
	in, out := newArena(t, 1<<16), newArena(t, 1<<16)
	for round := range 400 {
		k, cols, rows := 1+rnd.IntN(12), 1+rnd.IntN(130), 1+rnd.IntN(4)
		down, ld := 1+rnd.IntN(140), cols+rnd.IntN(3)
		at, furthest := make([]int, k), 0
		for p := range at {
			at[p] = rnd.IntN(200)
			furthest = max(furthest, at[p])
		}
		src := some(rnd, take[T](in, rnd, furthest+(rows-1)*down+cols))
		dst := some(rnd, take[T](out, rnd, (rows-1)*ld+cols))
		before := append([]T(nil), dst...)
		w := some(rnd, make([]T, k))
		offsets := make([]int, k)
		for p := range at {
			offsets[p] = at[p] * size
		}
		tap := Tap(round % 4)
		for i := range dst {
			// or else there is hardly anything like it
			if r, j := i/ld, i%ld; tap == TapWhere && j < cols && rnd.IntN(8) > 0 {
				dst[i] = src[at[rnd.IntN(k)]+r*down+j]
				before[i] = dst[i]
			}
		}
		TapsOf(tap, dt)(k, unsafe.Pointer(&w[0]), unsafe.Pointer(&offsets[0]), unsafe.Pointer(&src[0]), unsafe.Pointer(&dst[0]), cols, rows, down*size, ld*size)
		for i, got := range dst {
			r, j := i/ld, i%ld
			want := before[i]
			if j < cols {
				want = kernel.Value[T](map[Tap]uint64{TapMax: kernel.BitsOf(math.Inf(-1), dt)}[tap])
				for p := range at {
					switch x := src[at[p]+r*down+j]; {
					case tap == TapMax:
						want = max(want, x)
					case tap == TapWhere:
						if x == before[i] || x != x {
							want = w[p]
						}
					case tap == TapSum:
						want += x
					case ProductsOf(dt) != nil:
						want = kernel.MulAdd(w[p], x, want)
					default:
						want += T(w[p] * x)
					}
				}
			}
			if !sameNumber(got, want) {
				t.Fatalf("%v, tap %d, %d rows of %d, %d taps: element %d,%d is %v, want %v", dt, tap, rows, cols, k, r, j, got, want)
			}
		}
	}
}

// Collect copies from anywhere, and touches nothing else.
func TestCollect(t *testing.T) {
	eachProducts(t, testCollect[float32], testCollect[float64])
}

func testCollect[T float](t *testing.T, p *Products, rnd *rand.Rand) {
	in, out := newArena(t, 1<<16), newArena(t, 1<<16)
	for range 400 {
		k, cols := 1+rnd.IntN(20), 1+rnd.IntN(2*p.Lanes)
		step := cols + rnd.IntN(5)
		at, furthest := make([]int, k), 0
		for i := range at {
			at[i] = rnd.IntN(200)
			furthest = max(furthest, at[i])
		}
		src := some(rnd, take[T](in, rnd, furthest+cols))
		dst := some(rnd, take[T](out, rnd, (k-1)*step+cols))
		want := append([]T(nil), dst...)
		offsets := make([]int, k)
		for i := range at {
			offsets[i] = at[i] * p.Size
			copy(want[i*step:][:cols], src[at[i]:])
		}
		p.Collect(k, cols, &offsets[0], unsafe.Pointer(&src[0]), unsafe.Pointer(&dst[0]), step*p.Size)
		for i := range want {
			if !sameNumber(dst[i], want[i]) {
				t.Fatalf("%d rows of %d: element %d is %v, want %v", k, cols, i, dst[i], want[i])
			}
		}
	}
}
