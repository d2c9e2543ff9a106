package vec

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/kernel"
)

func TestSquares(t *testing.T) {
	eachISA(t, func(t *testing.T) {
		rnd := newRand(t)
		t.Run("float32", func(t *testing.T) { testSquares[float32](t, rnd) })
		t.Run("float64", func(t *testing.T) { testSquares[float64](t, rnd) })
	})
}

func testSquares[T float32 | float64](t *testing.T, rnd *rand.Rand) {
	dt := device.DTypeOf[T]()
	squares := SquaresOf(dt)
	for _, atEnd := range []bool{true, false} {
		all := slice[T](guarded(t, kernel.Block*dt.Size(), atEnd), kernel.Block)
		for _, n := range foldLengths(rnd) {
			x := all[:n]
			if atEnd {
				x = all[len(all)-n:]
			}
			p := unsafe.Pointer(unsafe.SliceData(x))
			fillRandom(rnd, p, dt, n, false)
			shift := kernel.Value[T](element(rnd, dt))
			if rnd.IntN(3) > 0 { // where no edge hides the order
				shift = T(rnd.NormFloat64())
				for i := range x {
					x[i] = T(rnd.NormFloat64())
				}
			}
			list := make([]T, n)
			for i, v := range x {
				list[i] = v - shift
				list[i] *= list[i]
			}
			if got, want := squares(p, n, kernel.Bits(shift)), kernel.Bits(kernel.Fold(kernel.ReduceSum, list)); !same(dt, got, want) {
				t.Fatalf("of %d elements, less %v, atEnd=%v: %#x, want %#x", n, shift, atEnd, got, want)
			}
		}
	}
}

func TestNorms(t *testing.T) {
	eachISA(t, func(t *testing.T) {
		rnd := newRand(t)
		for vectors := range 3 {
			t.Run(fmt.Sprintf("float32/%d", vectors), func(t *testing.T) { testNorm[float32](t, rnd, vectors) })
			t.Run(fmt.Sprintf("float64/%d", vectors), func(t *testing.T) { testNorm[float64](t, rnd, vectors) })
		}
	})
}

func testNorm[T float32 | float64](t *testing.T, rnd *rand.Rand, vectors int) {
	dt := device.DTypeOf[T]()
	norm := NormOf(dt, vectors)
	for _, atEnd := range []bool{true, false} {
		var operands [4][]T // the result, x, gain, bias
		for i := range operands {
			operands[i] = slice[T](guarded(t, longest*dt.Size(), atEnd), longest)
		}
		for n := range longest + 1 {
			var parts [4][]T
			for i, all := range operands {
				parts[i] = all[:n]
				if atEnd {
					parts[i] = all[longest-n:]
				}
				fillRandom(rnd, unsafe.Pointer(unsafe.SliceData(all)), dt, longest, false)
			}
			dst, x, gain, bias := parts[0], parts[1], parts[2], parts[3]
			if rnd.IntN(4) == 0 {
				dst = x
			}
			shift, scale := kernel.Value[T](element(rnd, dt)), T(rnd.NormFloat64())
			want := make([]T, n)
			for i, v := range x {
				v -= shift
				v *= scale
				if vectors > 0 {
					v *= gain[i]
				}
				if vectors > 1 {
					v += bias[i]
				}
				want[i] = v
			}
			before := append([]T(nil), operands[0]...)
			norm(start(dst), start(x), start(gain), start(bias), kernel.Bits(shift), kernel.Bits(scale), n)
			for i := range want {
				if got := dst[i]; !same(dt, kernel.Bits(got), kernel.Bits(want[i])) {
					t.Fatalf("element %d of %d, atEnd=%v, is %v, want %v", i, n, atEnd, got, want[i])
				}
			}
			for i, v := range operands[0] {
				isDst := i < n
				if atEnd {
					isDst = i >= longest-n
				}
				if !isDst && !same(dt, kernel.Bits(v), kernel.Bits(before[i])) {
					t.Fatalf("of %d elements, atEnd=%v: wrote beside them, at %d", n, atEnd, i)
				}
			}
		}
	}
}

func start[T any](x []T) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(x)) }
