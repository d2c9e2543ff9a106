package vec

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/kernel"
)

// foldLengths are all short lengths, and some around a block.
func foldLengths(rnd *rand.Rand) []int {
	var all []int
	for n := range longest + 1 {
		all = append(all, n)
	}
	return append(all, 1000+rnd.IntN(1000), kernel.Block-1, kernel.Block-rnd.IntN(64), kernel.Block)
}

func TestFolds(t *testing.T) {
	eachISA(t, func(t *testing.T) {
		rnd := newRand(t)
		for _, r := range kernel.Reducers() {
			for _, dt := range device.DTypes() {
				if r.Prim().Func(dt) == nil {
					continue
				}
				t.Run(fmt.Sprintf("%v/%v", r, dt), func(t *testing.T) {
					switch dt {
					case device.Float32:
						testFold[float32](t, rnd, r)
					case device.Float64:
						testFold[float64](t, rnd, r)
					case device.Int64:
						testFold[int64](t, rnd, r)
					default:
						testFold[bool](t, rnd, r)
					}
				})
			}
		}
	})
}

func testFold[T device.Element](t *testing.T, rnd *rand.Rand, r kernel.Reducer) {
	dt := device.DTypeOf[T]()
	fold, identity := FoldOf(r.Prim(), dt), r.Identity(dt)
	for _, atEnd := range []bool{true, false} {
		memory := guarded(t, kernel.Block*dt.Size(), atEnd)
		all := slice[T](memory, kernel.Block)
		for _, n := range foldLengths(rnd) {
			x := all[:n]
			if atEnd {
				x = all[len(all)-n:]
			}
			p := unsafe.Pointer(unsafe.SliceData(x))
			fillRandom(rnd, p, dt, n, false)
			if rnd.IntN(2) == 0 { // where no edge hides the order
				for i := range x {
					x[i] = kernel.Value[T](kernel.BitsOf(rnd.NormFloat64(), dt))
				}
			}
			if got, want := fold(p, n, identity), kernel.Bits(kernel.Fold(r, x)); !same(dt, got, want) {
				t.Fatalf("of %d elements, atEnd=%v: %#x, want %#x", n, atEnd, got, want)
			}
		}
	}
}

// Each row goes to its lane, and nothing else is touched.
func TestRowFolds(t *testing.T) {
	eachISA(t, func(t *testing.T) {
		rnd := newRand(t)
		for _, r := range kernel.Reducers() {
			for _, dt := range device.DTypes() {
				if r.Prim().Func(dt) != nil {
					testRowFold(t, rnd, r, dt)
				}
			}
		}
	})
}

func testRowFold(t *testing.T, rnd *rand.Rand, r kernel.Reducer, dt device.DType) {
	fold, size, combine := RowFoldOf(r.Prim(), dt), dt.Size(), twin(r.Prim(), dt, NoScalar)
	for _, atEnd := range []bool{true, false} {
		for _, width := range []int{1, 2, 8} {
			for _, rows := range []int{0, 1, 2, 3, 4, 5, 7, 8, 9, 4*width + 1, 8*width - 1, 8 * width} {
				count := 1 + rnd.IntN(3)
				n := count * Columns
				stride := (n + rnd.IntN(20)) * size
				x := guarded(t, max(0, rows-1)*stride+n*size, atEnd)
				lanes := guarded(t, width*n*size, atEnd)
				fillRandom(rnd, x, dt, (max(0, rows-1)*stride+n*size)/size, false)
				fillRandom(rnd, lanes, dt, width*n, false)
				want := make([]uint64, width*n) // at least as much memory
				p := unsafe.Pointer(&want[0])
				copyBytes(p, lanes, width*n*size)
				for k := range rows {
					lane := unsafe.Add(p, k%width*n*size)
					combine(lane, lane, unsafe.Add(x, k*stride), nil, 0, n)
				}
				fold(lanes, x, rows, stride, width, count)
				for i := range width * n {
					if got, want := load(lanes, size, i), load(p, size, i); !same(dt, got, want) {
						t.Fatalf("%v of %v: %d rows to %d lanes: element %d is %#x, want %#x", r, dt, rows, width, i, got, want)
					}
				}
			}
		}
	}
}

func TestFinds(t *testing.T) {
	eachISA(t, func(t *testing.T) {
		rnd := newRand(t)
		t.Run("float32", func(t *testing.T) { testFind[float32](t, rnd) })
		t.Run("float64", func(t *testing.T) { testFind[float64](t, rnd) })
		t.Run("int64", func(t *testing.T) { testFind[int64](t, rnd) })
	})
}

func testFind[T number](t *testing.T, rnd *rand.Rand) {
	dt := device.DTypeOf[T]()
	find := FindOf(dt)
	for _, atEnd := range []bool{true, false} {
		all := slice[T](guarded(t, longest*dt.Size(), atEnd), longest)
		for n := range longest + 1 {
			x := all[:n]
			if atEnd {
				x = all[longest-n:]
			}
			p := unsafe.Pointer(unsafe.SliceData(x))
			for want := range n + 1 { // where it is found first
				for i := range x {
					x[i] = T(i % 7)
				}
				value := T(9)
				if want < n {
					x[want] = value
					x[want+rnd.IntN(n-want)] = value
					switch rnd.IntN(3) {
					case 0:
						x[want] = kernel.Value[T](kernel.BitsOf(edges[len(edges)-1], dt)) // NaN
						if dt == device.Int64 {
							x[want] = value
						}
					case 1:
						for i := range x {
							x[i]++
						}
						x[want], value = T(0), kernel.Value[T](kernel.BitsOf(edges[1], dt)) // 0 is -0
					}
				}
				if got := find(p, n, kernel.Bits(value)); got != want {
					t.Fatalf("%v in %v, atEnd=%v: %d, want %d", value, x, atEnd, got, want)
				}
			}
		}
	}
}
