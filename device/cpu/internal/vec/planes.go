package vec

import (
	"math"
	"unsafe"

	"github.com/asyncgen/asyncgen/device"
)

// A Tap is how [Taps] combines rows.
type Tap uint8

const (
	TapMulAdd Tap = iota // 0, then the sum so far plus the row times a weight, rounded as in products of matrices
	TapSum               // 0, then the sum so far plus the row
	TapMax               // -Inf, then the greater one; NaN if one is NaN
	TapWhere             // 0, then the bits of the weight where the row is equal to what dst was before, or NaN
)

// Taps combines k > 0 rows of src into one row of dst, and does the same for several rows of dst:
//
//	for r := range rows {
//		for j := range cols {
//			x := begin
//			for p := range k {
//				x = combine(x, w[p], src[at[p] + r*down + j])
//			}
//			dst[r*ld + j] = x
//		}
//	}
//
// where at, down and ld are in bytes, and cols and rows are above 0. It reads w only for TapMulAdd and
// TapWhere, and dst only for TapWhere.
type Taps func(k int, w, at, src, dst unsafe.Pointer, cols, rows, down, ld int)

type (
	tapKey struct {
		tap Tap
		dt  device.DType
	}
	collectFunc = func(k int, at, src, dst unsafe.Pointer, step, last int)
)

var (
	taps     table[tapKey, Taps]
	collects table[int, collectFunc]
)

// TapsOf returns the loop for float32 or float64.
func TapsOf(t Tap, dt device.DType) Taps {
	if f, ok := taps.get(tapKey{t, dt}); ok {
		return f
	}
	if dt == device.Float32 {
		return tapsTwin[float32](t)
	}
	return tapsTwin[float64](t)
}

func tapsTwin[T float32 | float64](t Tap) Taps {
	return func(k int, w, at, src, dst unsafe.Pointer, cols, rows, down, ld int) {
		offsets := unsafe.Slice((*int)(at), k)
		for r := range rows {
			row := unsafe.Slice((*T)(unsafe.Add(dst, r*ld)), cols)
			from := unsafe.Add(src, r*down)
			switch t {
			case TapMulAdd:
				clear(row)
				addTaps(row, unsafe.Slice((*T)(w), k), offsets, from)
			case TapSum:
				clear(row)
				for _, off := range offsets {
					for j, v := range unsafe.Slice((*T)(unsafe.Add(from, off)), cols) {
						row[j] += v
					}
				}
			case TapWhere:
				whereTaps(row, unsafe.Slice((*T)(w), k), offsets, from)
			default:
				for j := range row {
					row[j] = T(math.Inf(-1))
				}
				for _, off := range offsets {
					for j, v := range unsafe.Slice((*T)(unsafe.Add(from, off)), cols) {
						row[j] = max(row[j], v)
					}
				}
			}
		}
	}
}

// whereTaps replaces each m of row by a weight: that of the last tap whose element is m or NaN, or 0 if
// there is none. The elements of tap p begin at from + offsets[p].
func whereTaps[T float32 | float64](row, w []T, offsets []int, from unsafe.Pointer) {
	for j, m := range row {
		row[j] = 0
		for p := len(offsets) - 1; p >= 0; p-- {
			x := *(*T)(unsafe.Add(from, offsets[p]+j*int(unsafe.Sizeof(m))))
			if x == m || x != x {
				row[j] = w[p]
				break
			}
		}
	}
}

// addTaps adds to row, for each tap p, w[p] times the row that begins at from + offsets[p]. It adds
// four taps at once, which saves loads and stores of row.
func addTaps[T float32 | float64](row, w []T, offsets []int, from unsafe.Pointer) {
	at := func(p int) []T { return unsafe.Slice((*T)(unsafe.Add(from, offsets[p])), len(row)) }
	p := 0
	for ; p+4 <= len(w); p += 4 {
		w0, w1, w2, w3 := w[p], w[p+1], w[p+2], w[p+3]
		x0, x1, x2, x3 := at(p), at(p+1), at(p+2), at(p+3)
		x0, x1, x2, x3 = x0[:len(row)], x1[:len(row)], x2[:len(row)], x3[:len(row)]
		for j, v := range row {
			v += T(w0 * x0[j])
			v += T(w1 * x1[j])
			v += T(w2 * x2[j])
			v += T(w3 * x3[j])
			row[j] = v
		}
	}
	for ; p < len(w); p++ {
		for j, v := range at(p) {
			row[j] += T(w[p] * v)
		}
	}
}

// Collect copies 1 to 2*Lanes elements from each of the places src + at[p], for p < k, k > 0, to
// dst, dst + step and so on. It writes nothing else.
func (p *Products) Collect(k, cols int, at *int, src, dst unsafe.Pointer, step int) {
	v := 0
	if cols > p.Lanes {
		cols -= p.Lanes
		v = 1
	}
	p.collects[v](k, unsafe.Pointer(at), src, dst, step, cols*p.Size/4)
}
