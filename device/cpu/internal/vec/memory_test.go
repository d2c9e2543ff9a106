package vec

import (
	"testing"
	"unsafe"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/kernel"
)

// memoryLengths are lengths in bytes: short ones and some that take many rounds.
var memoryLengths = []int{500, 511, 512, 513, 1023, 1024, 4096, 5000}

func TestFill(t *testing.T) {
	eachISA(t, func(t *testing.T) {
		rnd := newRand(t)
		for _, dt := range []device.DType{device.Bool, device.Float32, device.Int64} {
			size, most := dt.Size(), memoryLengths[len(memoryLengths)-1]
			for _, atEnd := range []bool{true, false} {
				p := guarded(t, (most+1)*size, atEnd)
				for n := range most + 1 {
					if n > 300 && rnd.IntN(100) > 0 {
						continue
					}
					dst := p
					if atEnd {
						dst = unsafe.Add(p, (most+1-n)*size)
					}
					fillSlice(slice[uint8](p, (most+1)*size), 77)
					s := element(rnd, dt)
					Fill(dst, size, s, n)
					for i := range n {
						if got := load(dst, size, i); got != s {
							t.Fatalf("%v: element %d of %d is %#x, want %#x", dt, i, n, got, s)
						}
					}
					from := uintptr(dst) - uintptr(p)
					for i, v := range slice[uint8](p, (most+1)*size) {
						if outside := uintptr(i) < from || uintptr(i) >= from+uintptr(n*size); outside && v != 77 {
							t.Fatalf("%v: %d elements: byte %d outside of them was written to", dt, n, i-int(from))
						}
					}
				}
			}
		}
	})
}

func TestStream(t *testing.T) {
	eachISA(t, func(t *testing.T) {
		rnd := newRand(t)
		most := memoryLengths[len(memoryLengths)-1]
		lengths := memoryLengths
		for n := range 300 {
			lengths = append(lengths, n)
		}
		for _, atEnd := range []bool{true, false} {
			from, to := guarded(t, most+64, atEnd), guarded(t, most+64, atEnd)
			src, dst := slice[uint8](from, most+64), slice[uint8](to, most+64)
			for _, n := range lengths {
				for i := range src {
					src[i], dst[i] = uint8(rnd.Uint32()), 77
				}
				x, y := rnd.IntN(65), rnd.IntN(65) // where they begin or end
				a, b := src[x:x+n], dst[y:y+n]
				if atEnd {
					a, b = src[len(src)-x-n:len(src)-x], dst[len(dst)-y-n:len(dst)-y]
					y = len(dst) - y - n
				}
				Stream(unsafe.Pointer(unsafe.SliceData(b)), unsafe.Pointer(unsafe.SliceData(a)), n)
				Fence()
				for i, v := range dst {
					want := uint8(77)
					if i >= y && i < y+n {
						want = a[i-y]
					}
					if v != want {
						t.Fatalf("%d bytes to %d: byte %d is %d, want %d", n, y, i, v, want)
					}
				}
			}
		}
	})
}

func TestTakeRows(t *testing.T) {
	eachISA(t, func(t *testing.T) {
		rnd := newRand(t)
		const rows = 40
		for _, size := range []int{1, 4, 8} {
			for width := 1; width*size <= 1500; width += 1 + width/8*rnd.IntN(3) {
				for _, atEnd := range []bool{true, false} {
					n := 1 + rnd.IntN(rows)
					from, to := guarded(t, rows*width*size, atEnd), guarded(t, n*width*size, atEnd)
					src, dst := slice[uint8](from, rows*width*size), slice[uint8](to, n*width*size)
					for i := range src {
						src[i] = uint8(rnd.Uint32())
					}
					first := rnd.IntN(rows) // places may be negative, where src is not the first row
					places := make([]int, n)
					for i := range places {
						places[i] = (rnd.IntN(rows) - first) * width
					}
					TakeRows(to, unsafe.Pointer(&src[first*width*size]), places, width, size)
					for i, v := range dst {
						row, at := i/(width*size), i%(width*size)
						if want := src[(first*width+places[row])*size+at]; v != want {
							t.Fatalf("%d rows of %d elements of %d bytes: byte %d of row %d is %d, want %d", n, width, size, at, row, v, want)
						}
					}
				}
			}
		}
		// More than one call in assembly takes.
		src, dst := make([]float64, 3*uninterrupted), make([]float64, 3*uninterrupted)
		for i := range src {
			src[i] = float64(i)
		}
		places := make([]int, len(src)/100)
		for i := range places {
			places[i] = (len(places) - 1 - i) * 100
		}
		TakeRows(unsafe.Pointer(&dst[0]), unsafe.Pointer(&src[0]), places, 100, 8)
		for i, v := range dst[:100*len(places)] {
			if want := float64(places[i/100] + i%100); v != want {
				t.Fatalf("element %d is %v, want %v", i, v, want)
			}
		}
	})
}

func TestRamp(t *testing.T) {
	eachISA(t, func(t *testing.T) {
		rnd := newRand(t)
		for _, dt := range []device.DType{device.Float32, device.Float64, device.Int64} {
			size := dt.Size()
			for _, atEnd := range []bool{true, false} {
				p := guarded(t, longest*size, atEnd)
				for n := range longest + 1 {
					first := []int{0, 5, 1<<24 - 3, 1<<31 - n, 1<<31 - n + 1}[rnd.IntN(5)]
					dst := p
					if atEnd {
						dst = unsafe.Add(p, (longest-n)*size)
					}
					start, step := element(rnd, dt), element(rnd, dt)
					want := make([]uint64, n)
					for i := range want {
						x := kernel.Mul(kernel.Cast(kernel.Arg(0, device.Int64), dt), kernel.Imm(1, dt))
						want[i] = kernel.Add(kernel.Imm(0, dt), x).Eval([]uint64{uint64(first + i)}, []uint64{start, step})
					}
					Ramp(dt, dst, first, start, step, n)
					for i, w := range want {
						if got := load(dst, size, i); !same(dt, got, w) {
							t.Fatalf("%v: %#x + (%d+%d)*%#x of %d is %#x, want %#x", dt, start, first, i, step, n, got, w)
						}
					}
				}
			}
		}
		// Parts follow each other.
		n := 3*uninterrupted + 5
		x := make([]float64, n)
		Ramp(device.Float64, unsafe.Pointer(&x[0]), 7, kernel.Bits(0.5), kernel.Bits(2.0), n)
		for i, v := range x {
			if v != 0.5+2*float64(7+i) {
				t.Fatalf("element %d is %v", i, v)
			}
		}
		bytes := make([]bool, n)
		Fill(unsafe.Pointer(&bytes[0]), 1, 1, n-1)
		for i, v := range bytes {
			if v != (i < n-1) {
				t.Fatalf("byte %d is %v", i, v)
			}
		}
	})
}

// The sizes of caches are powers of two, or a few times one, and each cache is larger than the one before.
func TestCaches(t *testing.T) {
	c := CachesOf()
	if c.First < 8<<10 || c.First > 1<<20 || c.Second < c.First || c.Last < c.Second || c.Last < 256<<10 || c.Last > 4<<30 {
		t.Errorf("%+v", c)
	}
	for _, n := range []int{c.First, c.Second, c.Last} {
		if n%(4<<10) != 0 {
			t.Errorf("%+v", c)
		}
	}
}
