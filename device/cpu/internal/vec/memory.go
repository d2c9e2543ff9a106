package vec

import (
	"unsafe"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/kernel"
)

// The loops in assembly.
var (
	streams  single[func(dst, src unsafe.Pointer, n int)]
	fills    single[func(dst unsafe.Pointer, word uint64, n int)]
	rowTakes single[func(dst, src unsafe.Pointer, places *int, n, size, bytes int)]
	ramps    table[device.DType, func(dst unsafe.Pointer, first int, start, step uint64, n int)]
)

// shortest is how many bytes the loops in assembly that move bytes move, at least.
const shortest = 64

// uninterrupted is how many bytes a function in assembly writes in one call: some ten microseconds'
// work. A call may write twice as many.
const uninterrupted = 64 << 10

// Fill sets n elements at dst, of the given size, to the value with the Bits s.
func Fill(dst unsafe.Pointer, size int, s uint64, n int) {
	if f := fills.get(); f != nil && n*size >= shortest {
		switch size {
		case 1:
			s = s & 0xff * 0x0101010101010101
		case 2:
			s = s & 0xffff * 0x0001000100010001
		case 4:
			s = s<<32 | s&0xffffffff
		}
		for n *= size; n > 0; { // by parts, none of them too short
			part := n
			if part > 2*uninterrupted {
				part = uninterrupted
			}
			(*f)(dst, s, part)
			dst, n = unsafe.Add(dst, part), n-part
		}
		return
	}
	switch size {
	case 1:
		fillSlice(slice[uint8](dst, n), uint8(s))
	case 2:
		fillSlice(slice[uint16](dst, n), uint16(s))
	case 4:
		fillSlice(slice[uint32](dst, n), uint32(s))
	default:
		fillSlice(slice[uint64](dst, n), s)
	}
}

func fillSlice[T any](dst []T, v T) {
	for i := range dst {
		dst[i] = v
	}
}

// Stream copies n bytes that do not overlap. Where the machine can, it writes past the caches,
// which saves reading the lines that are overwritten. That pays for results that are too large to
// stay in a cache. Other goroutines see the result after a [Fence] only.
func Stream(dst, src unsafe.Pointer, n int) {
	if f := streams.get(); f != nil && n >= shortest {
		(*f)(dst, src, n)
		return
	}
	copy(slice[byte](dst, n), slice[byte](src, n))
}

// TakeRows copies a row for each of the places, one after the other to dst, which overlaps none of them. A row is width
// elements of size bytes, and begins at src, a place's elements further. The rows that come next are on their way from
// memory while one is copied.
func TakeRows(dst, src unsafe.Pointer, places []int, width, size int) {
	bytes := width * size
	f := rowTakes.get()
	if f == nil || bytes < shortest || bytes > uninterrupted {
		for i, place := range places {
			copy(slice[byte](unsafe.Add(dst, i*bytes), bytes), slice[byte](unsafe.Add(src, place*size), bytes))
		}
		return
	}
	for len(places) > 0 {
		n := min(len(places), uninterrupted/bytes)
		(*f)(dst, src, &places[0], n, size, bytes)
		dst, places = unsafe.Add(dst, n*bytes), places[n:]
	}
}

// Ramp sets the n numbers at dst, of type dt: number i becomes start + (first+i)*step, computed in that
// type with each operation rounded. start and step are Bits.
func Ramp(dt device.DType, dst unsafe.Pointer, first int, start, step uint64, n int) {
	f, ok := ramps.get(dt)
	if !ok || first+n > 1<<31 {
		switch dt {
		case device.Float32:
			ramp[float32](dst, first, start, step, n)
		case device.Float64:
			ramp[float64](dst, first, start, step, n)
		default:
			ramp[int64](dst, first, start, step, n)
		}
		return
	}
	for n > 0 {
		part := min(n, uninterrupted/8)
		f(dst, first, start, step, part)
		dst, first, n = unsafe.Add(dst, part*dt.Size()), first+part, n-part
	}
}

func ramp[T number](dst unsafe.Pointer, first int, start, step uint64, n int) {
	a, b := kernel.Value[T](start), kernel.Value[T](step)
	for i, d := 0, slice[T](dst, n); i < len(d); i++ {
		d[i] = a + T(T(first+i)*b)
	}
}
