package cpu

import (
	"slices"
	"unsafe"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/cpu/internal/vec"
)

// What convolutions and pooling have in common: windows on planes.

// A lattice is a set of places of the result along one axis, equally far apart, for which the same
// places of the window have an element. These places of the window are its taps.
type lattice struct {
	first, step, count int // the places first + u*step, for u < count
	tap, tapStep, taps int // the taps tap + t*tapStep, for t < taps
	base, down, across int // base + u*down + t*across is the index of the element that they have there
}

// latticesOf returns lattices that together cover all places of the result.
func latticesOf(w *device.Window) []lattice {
	period := w.Holes / gcd(w.Holes, w.Stride)
	tapPeriod := w.Holes / gcd(w.Holes, w.Step)
	all := make([]lattice, 0, period)
	for i := range min(period, w.Out) {
		l := lattice{first: i, step: period, count: (w.Out - i + period - 1) / period,
			tapStep: tapPeriod, down: period * w.Stride / w.Holes, across: tapPeriod * w.Step / w.Holes}
		for k := range min(tapPeriod, w.Size) {
			if at, ok := w.At(i, k); ok {
				l.tap, l.base, l.taps = k, at, (w.Size-k+tapPeriod-1)/tapPeriod
				break
			}
		}
		all = append(all, l)
	}
	return all
}

// gcd is the greatest common divisor of x > 0 and |y|.
func gcd(x, y int) int {
	for y != 0 {
		x, y = y, x%y
	}
	return max(x, -x)
}

// isInside reports whether all elements that the lattice uses are inside an axis of length n.
func (l *lattice) isInside(n int) bool {
	down, across := (l.count-1)*l.down, (l.taps-1)*l.across
	return l.base+min(0, across) >= 0 && l.base+down+max(0, across) < n
}

// A line is one axis of a copied plane. The copy is made so that neighbouring places read neighbouring
// elements (for a line of taps, so that neighbouring taps do). If places are step elements apart, the
// elements with the same remainder modulo step therefore lie together: a line has one part for each
// remainder.
type line struct {
	parts  []linePart
	length int
	starts []int // where the elements for each tap begin; for a line of taps, those for each place
}

// A linePart has the elements first, first + step, ... of an axis; some may be outside of the axis. The
// part begins at place at of the line.
type linePart struct{ first, step, at, length int }

// newLine is the line for m groups of elements. The first elements of neighbouring groups are other
// apart, from base on; each group has n elements, step > 0 apart.
func newLine(base, step, n, other, m int) line {
	type span struct{ rest, from, to int }
	var spans []span
	rest := func(i int) (r, q int) {
		r, q = i*other%step, i*other/step
		if r < 0 {
			r, q = r+step, q-1
		}
		return r, q
	}
	for i := range m {
		r, q := rest(i)
		at := slices.IndexFunc(spans, func(s span) bool { return s.rest == r })
		if at < 0 {
			at, spans = len(spans), append(spans, span{r, q, q})
		}
		spans[at].from, spans[at].to = min(spans[at].from, q), max(spans[at].to, q)
	}
	var l line
	for _, s := range spans {
		part := linePart{base + s.rest + s.from*step, step, l.length, s.to - s.from + n}
		l.parts, l.length = append(l.parts, part), l.length+part.length
	}
	for i := range m {
		r, q := rest(i)
		at := slices.IndexFunc(spans, func(s span) bool { return s.rest == r })
		l.starts = append(l.starts, l.parts[at].at+q-spans[at].from)
	}
	return l
}

// A scene says where one lattice of rows and one of columns find their elements: in the operand if
// possible, otherwise in padded copies of its planes. Distances are in elements.
type scene struct {
	rows, cols lattice
	isTurned   bool  // neighbouring taps are neighbours, not neighbouring places of a row
	taps       []int // where the element for each tap is, in row-major order, relative to that for the first
	places     []int // isTurned: where the element for each place of the result is
	down       int   // not isTurned: how far the elements for rows of the result are apart
	base       int   // of the first, in a plane of the operand or of a copy

	plane              int // elements of a copied plane; 0: none is copied
	rowLine, colLine   line
	height, width      int // of the operand's planes
	rowStride, stride  int
	outRows, outColumn int // places of the result
}

// newScene is the scene for planes with the given strides.
func newScene(w *[2]device.Window, rows, cols lattice, rowStride, stride int, isTurned bool) *scene {
	s := &scene{rows: rows, cols: cols, isTurned: isTurned, height: w[0].In, width: w[1].In, rowStride: rowStride, stride: stride,
		outRows: w[0].Out, outColumn: w[1].Out}
	rowOf, colOf := func(t int) int { return t * rows.across * rowStride }, func(t int) int { return t * cols.across * stride }
	s.down, s.base = rows.down*rowStride, rows.base*rowStride+cols.base*stride
	place := func(u, v int) int { return u*s.down + v*cols.down*stride }
	next, n := cols.down, cols.count
	if isTurned {
		next, n = cols.across, cols.taps
	}
	isDirect := rows.isInside(s.height) && cols.isInside(s.width) && (next*stride == 1 || n == 1)
	if !isDirect {
		s.base = 0
		s.rowLine = newLine(rows.base, rows.down, rows.count, rows.across, rows.taps)
		if isTurned {
			s.colLine = newLine(cols.base, cols.across, cols.taps, cols.down, cols.count)
		} else {
			s.colLine = newLine(cols.base, cols.down, cols.count, cols.across, cols.taps)
		}
		pitch := s.colLine.length
		s.plane, s.down = s.rowLine.length*pitch, pitch
		rowOf = func(t int) int { return s.rowLine.starts[t] * pitch }
		colOf = func(t int) int { return s.colLine.starts[t] }
		place = func(u, v int) int { return u*pitch + v }
		if isTurned {
			colOf = func(t int) int { return t }
			place = func(u, v int) int { return u*pitch + s.colLine.starts[v] }
		}
	}
	for t := range rows.taps {
		for l := range cols.taps {
			s.taps = append(s.taps, rowOf(t)+colOf(l))
		}
	}
	if isTurned {
		for u := range rows.count {
			for v := range cols.count {
				s.places = append(s.places, place(u, v))
			}
		}
	}
	return s
}

// isDense reports whether the scene's places are all places of the result.
func (s *scene) isDense() bool { return s.rows.step == 1 && s.cols.step == 1 }

// count is how many places there are.
func (s *scene) count() int { return s.rows.count * s.cols.count }

// placeOf is where place u,v is in a plane of the result.
func (s *scene) placeOf(u, v int) int {
	return (s.rows.first+u*s.rows.step)*s.outColumn + s.cols.first + v*s.cols.step
}

// copyPlane copies the plane of the operand whose first element is at src. Elements have the given size
// in bytes; pad has the bits of those that are outside of the plane.
func (s *scene) copyPlane(dst, src unsafe.Pointer, size int, pad uint64) {
	if size == 4 {
		copyPlane(s, slice[uint32](dst, s.plane), src, uint32(pad))
	} else {
		copyPlane(s, slice[uint64](dst, s.plane), src, pad)
	}
}

func copyPlane[T uint32 | uint64](s *scene, dst []T, src unsafe.Pointer, pad T) {
	pitch := s.colLine.length
	for _, part := range s.rowLine.parts {
		for i := range part.length {
			row := dst[(part.at+i)*pitch:][:pitch]
			y := part.first + i*part.step
			if y < 0 || y >= s.height {
				fillSlice(row, pad)
				continue
			}
			from := unsafe.Add(src, y*s.rowStride*int(unsafe.Sizeof(pad)))
			for _, p := range s.colLine.parts {
				copyPart(row[p.at:][:p.length], from, p, s.width, s.stride, pad)
			}
		}
	}
}

// copyPart copies a part of a row of n elements, which begins at src.
func copyPart[T uint32 | uint64](dst []T, src unsafe.Pointer, p linePart, n, stride int, pad T) {
	lo := 0 // those before are outside
	if p.first < 0 {
		lo = min(len(dst), (-p.first+p.step-1)/p.step)
	}
	hi := 0
	if p.first < n {
		hi = min(len(dst), (n-1-p.first)/p.step+1)
	}
	hi = max(lo, hi)
	fillSlice(dst[:lo], pad)
	fillSlice(dst[hi:], pad)
	if dst = dst[lo:hi]; len(dst) == 0 {
		return
	}
	size := int(unsafe.Sizeof(pad))
	from, step := unsafe.Add(src, (p.first+lo*p.step)*stride*size), p.step*stride
	if step == 1 {
		copy(dst, slice[T](from, len(dst)))
		return
	}
	for i := range dst {
		dst[i] = *(*T)(unsafe.Add(from, i*step*size))
	}
}

// planeTaps calls f for one plane, and writes the results at the scene's places to a plane of the
// result that begins at dst. src is the element for the first tap of the first place. mem has room for
// as many results as there are places.
func (s *scene) planeTaps(f vec.Taps, w, offsets unsafe.Pointer, k int, src, dst, mem unsafe.Pointer, size int) {
	cols, ld := s.cols.count, s.outColumn*size
	to := unsafe.Add(dst, s.placeOf(0, 0)*size)
	if !s.isDense() {
		to, ld = mem, cols*size
	}
	rows := max(1, mostTaps/(k*cols))
	for u := 0; u < s.rows.count; u += rows {
		f(k, w, offsets, unsafe.Add(src, u*s.down*size), unsafe.Add(to, u*ld), cols, min(rows, s.rows.count-u), s.down*size, ld)
	}
	if s.isDense() {
		return
	}
	for u := range s.rows.count {
		for v := range cols {
			from, at := unsafe.Add(mem, (u*cols+v)*size), unsafe.Add(dst, s.placeOf(u, v)*size)
			if size == 4 {
				*(*uint32)(at) = *(*uint32)(from)
			} else {
				*(*uint64)(at) = *(*uint64)(from)
			}
		}
	}
}

// denseTaps calls f for one plane, and writes the results to dst without gaps, one for each of the
// scene's places. src is the element for the first tap of the first place.
func (s *scene) denseTaps(f vec.Taps, w unsafe.Pointer, offsets []int, src, dst unsafe.Pointer, size int) {
	cols := s.cols.count
	rows := max(1, mostTaps/(len(offsets)*cols))
	for u := 0; u < s.rows.count; u += rows {
		n := min(rows, s.rows.count-u)
		f(len(offsets), w, unsafe.Pointer(&offsets[0]), unsafe.Add(src, u*s.down*size), unsafe.Add(dst, u*cols*size), cols, n, s.down*size, cols*size)
	}
}

// mostTaps is how much of vec.Taps is done at once, which can't be interrupted: some 50 µs of its slowest kind.
const mostTaps = 1 << 18

// setPlaces sets the scene's places of a plane of the result to the given bits.
func (s *scene) setPlaces(dst unsafe.Pointer, size int, bits uint64) {
	for u := range s.rows.count {
		for v := range s.cols.count {
			at := unsafe.Add(dst, s.placeOf(u, v)*size)
			if size == 4 {
				*(*uint32)(at) = uint32(bits)
			} else {
				*(*uint64)(at) = bits
			}
		}
	}
}

// inBuffer panics unless the elements of operand i of c over the axes with the given strides are in its buffer.
func inBuffer(c *device.Command, i, size int, shape, strides []int) unsafe.Pointer {
	lo, hi := 0, 0
	for axis, n := range shape {
		lo, hi = lo+min(0, (n-1)*strides[axis]), hi+max(0, (n-1)*strides[axis])
	}
	n := int(c.Buf[i].Bytes) / size
	_ = whole[uint8](c, i)[:n:n][c.Off[i]+lo : c.Off[i]+hi+1]
	return unsafe.Add(c.Buf[i].Ptr, c.Off[i]*size)
}
