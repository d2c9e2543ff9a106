package cpu

import (
	"runtime"
	"sync"
	"unsafe"

	"github.com/asyncgen/asyncgen/device/cpu/internal/vec"
	"github.com/asyncgen/asyncgen/device/pool"
)

// A convolution by tiles is a product of matrices. The first has a group's windows as rows, and the
// second a column for each place of each image. The second would be many times as large as the
// images, so it never exists as a whole: each worker copies a few panels of its columns, for a block
// of the inner length, from the images when it needs them.
const (
	convDepth   = 2048      // bytes of the inner length at once, see blockSizes
	panelsBytes = 256 << 10 // of the second matrix at once, for the second cache
	mostPanels  = 8
	laterBytes  = 512 << 10 // of results that tiles can't write where they belong, at once
)

// stageBytes bounds the bytes of copied planes, and those of copied windows, at one time. Tests make it small.
var stageBytes = 32 << 20

// A convTiles is a scene of a conv that is computed by tiles.
type convTiles struct {
	*conv
	*scene
	*vec.Products
	tileWidth int

	// The stage at hand: some images and some channels.
	n0, n1, c0, c1 int
	// copies: of planes, by group, image and channel; of b, by group and panel of rows
	planes, panelsOfB     unsafe.Pointer
	image, group, channel int // distances in elements of what is read, copies or not
	groupOfB              int // bytes of the copy of b for a group
	rowPanels             int

	columns, panels int // of a group's result
	each            int // panels are computed together
	units, parts    int // of them, and of the rows
}

// tiles computes the scene's places by tiles.
func (x *conv) tiles(p *vec.Products, s *scene) {
	t := &convTiles{conv: x, scene: s, Products: p, tileWidth: 2 * p.Lanes}
	t.rowPanels = (x.o + p.Rows - 1) / p.Rows
	taps := len(s.taps)
	channels, images := x.c, x.n
	for channels > 1 && (x.g*x.o*channels*taps*x.size > stageBytes || x.g*channels*s.plane*x.size > stageBytes) {
		channels = (channels + 1) / 2
	}
	for images > 1 && x.g*images*channels*s.plane*x.size > stageBytes {
		images = (images + 1) / 2
	}
	t.groupOfB = x.o*channels*taps*x.size + t.rowPanels*slack
	copied := takeSpare(x.g*t.groupOfB + slack)
	defer giveSpare(copied)
	t.panelsOfB = copied.Ptr
	if s.plane > 0 {
		planes := takeSpare(x.g*images*channels*s.plane*x.size + slack)
		defer giveSpare(planes)
		t.planes = planes.Ptr
	}
	for t.c0 = 0; t.c0 < x.c; t.c0 = t.c1 {
		t.c1 = min(x.c, t.c0+channels)
		pool.Run(x.g*t.rowPanels, grainOf(x.o*(t.c1-t.c0)*taps/t.rowPanels*2), t.copyWindows)
		for t.n0 = 0; t.n0 < x.n; t.n0 = t.n1 {
			t.n1 = min(x.n, t.n0+images)
			t.stage()
		}
	}
}

// stage adds what the channels at hand give to the images at hand.
func (t *convTiles) stage() {
	images, channels := t.n1-t.n0, t.c1-t.c0
	t.image, t.group, t.channel = t.as[0], t.as[1], t.as[2]
	if t.plane > 0 {
		t.channel, t.image, t.group = t.plane, channels*t.plane, images*channels*t.plane
		pool.Run(t.g*images*channels, grainOf(2*t.plane), t.copyPlanes)
	}
	t.columns = images * t.count()
	t.panels = (t.columns + t.tileWidth - 1) / t.tileWidth
	workers := runtime.GOMAXPROCS(0)
	depth := min(convDepth, channels*len(t.taps)*t.Size)
	t.each = max(1, min(mostPanels, panelsBytes/(depth*t.tileWidth), t.g*t.panels/(4*workers)))
	t.units = (t.panels + t.each - 1) / t.each
	most := max(1, laterBytes/(t.each*t.tileWidth*t.Size*t.Rows)) // panels of rows at once
	t.parts = max((t.rowPanels+most-1)/most, min((4*workers+t.g*t.units-1)/(t.g*t.units), t.rowPanels/4), 1)
	operations := t.o * channels * len(t.taps) / t.parts * t.each * t.tileWidth / vectorProducts
	pool.Run(t.g*t.units*t.parts, grainOf(operations), t.compute)
}

// copyPlanes copies some of the planes at hand.
func (t *convTiles) copyPlanes(lo, hi int) {
	images, channels := t.n1-t.n0, t.c1-t.c0
	for i := lo; i < hi; i++ {
		c, n, g := i%channels, i/channels%images, i/channels/images
		t.copyPlane(unsafe.Add(t.planes, i*t.plane*t.Size), t.planeAt(t.n0+n, g, t.c0+c), t.Size, 0)
	}
}

// rowPanel is where the copy of a panel of b's rows is, and which rows these are.
func (t *convTiles) rowPanel(g, i int) (at unsafe.Pointer, from, to int) {
	from, to = cut(t.o, t.rowPanels, i), cut(t.o, t.rowPanels, i+1)
	return unsafe.Add(t.panelsOfB, g*t.groupOfB+from*(t.c1-t.c0)*len(t.taps)*t.Size+i*slack), from, to
}

// copyWindows copies some panels of b's rows for the channels at hand, column by column.
func (t *convTiles) copyWindows(lo, hi int) {
	// As many elements as possible that are equally far apart, in order.
	rows, cols := &t.rows, &t.cols
	run, step := cols.taps, cols.tapStep*t.bs[4]
	if run == 1 || rows.taps == 1 || rows.tapStep*t.bs[3] == run*step {
		if run == 1 {
			step = rows.tapStep * t.bs[3]
		}
		run *= rows.taps
		if run == 1 {
			step = t.bs[2]
		}
		if run == 1 || t.bs[2] == run*step {
			run *= t.c1 - t.c0
		}
	}
	all := (t.c1 - t.c0) * len(t.taps)
	x := tiled{Products: t.Products}
	for i := lo; i < hi; i++ {
		dst, from, to := t.rowPanel(i/t.rowPanels, i%t.rowPanels)
		for k := 0; k < all; k += run {
			at := t.weight(t.scene, i/t.rowPanels, from, t.c0+k/len(t.taps), k%len(t.taps))
			src := side{unsafe.Add(t.b, at*t.Size), t.bs[1] * t.Size, step * t.Size}
			x.copyRows(unsafe.Add(dst, k*(to-from)*t.Size), src, to-from, run)
		}
	}
}

// A convPanel is some columns of the result, as many as a tile has at most.
type convPanel struct {
	columns int
	copied  unsafe.Pointer // of the second matrix, for the block at hand
	step    int            // between its rows
	pieces  []convPiece
	c       unsafe.Pointer // of the first row
	ld      int
	isLater bool // c is memory of the worker: results wait there
}

// A convPiece is some neighbouring columns of a panel. Their elements of the second matrix are
// neighbours as well or, in a turned scene, as far apart as images. from is where these elements begin
// for the first tap. out is where the results belong, counted from the first plane of the group.
type convPiece struct{ first, length, from, out int }

// A convWork is a worker's memory for a unit.
type convWork struct {
	offsets [convDepth / 4]int // where the elements for the rows of the block are, in bytes
	panels  [mostPanels]convPanel
}

var convWorks = sync.Pool{New: func() any { return new(convWork) }}

// compute computes some units: panels of a group, for a part of the rows.
func (t *convTiles) compute(lo, hi int) {
	w := convWorks.Get().(*convWork)
	defer convWorks.Put(w)
	panel := convDepth * t.tileWidth
	most := t.rowPanels/t.parts + 1
	mem := takeSpare(t.each*panel + slack + t.each*t.tileWidth*t.Size*most*t.Rows)
	defer giveSpare(mem)
	for i := lo; i < hi; i++ {
		part, unit, g := i%t.parts, i/t.parts%t.units, i/t.parts/t.units
		r0, r1 := cut(t.rowPanels, t.parts, part), cut(t.rowPanels, t.parts, part+1)
		p0, p1 := unit*t.each, min((unit+1)*t.each, t.panels)
		panels := w.panels[:p1-p0]
		_, row, _ := t.rowPanel(g, r0)
		_, _, end := t.rowPanel(g, r1-1)
		later := unsafe.Add(mem.Ptr, t.each*panel+slack)
		for j := range panels {
			panels[j].copied = unsafe.Add(mem.Ptr, j*panel)
			t.begin(&panels[j], g, p0+j, row, end, unsafe.Add(later, j*t.tileWidth*t.Size*most*t.Rows))
		}
		t.unit(w, panels, g, r0, r1)
	}
}

// begin sets p to the i-th panel of a group, for the rows from row to end.
func (t *convTiles) begin(p *convPanel, g, i, row, end int, later unsafe.Pointer) {
	lo, hi := i*t.tileWidth, min((i+1)*t.tileWidth, t.columns)
	p.columns, p.pieces = hi-lo, p.pieces[:0]
	p.step = t.tileWidth * t.Size
	if p.columns <= t.Lanes {
		p.step /= 2
	}
	images, count := t.n1-t.n0, t.count()
	for j := lo; j < hi; {
		var piece convPiece
		if t.isTurned { // neighbours are of several images
			at, n := j/images, j%images
			piece = convPiece{j - lo, min(hi-j, images-n), n*t.image + t.places[at], (t.n0+n)*t.os[0] + t.placeOf(at/t.cols.count, at%t.cols.count)}
		} else {
			n, at := j/count, j%count
			u, v := at/t.cols.count, at%t.cols.count
			length := t.cols.count - v // to the end of the row
			if t.down == t.cols.count && t.isDense() {
				length = count - at // of the plane
			}
			piece = convPiece{j - lo, min(hi-j, length), n*t.image + u*t.down + v, (t.n0+n)*t.os[0] + t.placeOf(u, v)}
		}
		p.pieces = append(p.pieces, piece)
		j += piece.length
	}
	p.c, p.ld = later, p.step
	first := &p.pieces[0]
	p.isLater = t.isTurned || !t.isDense() || lo/count != (hi-1)/count
	if !p.isLater {
		p.c, p.ld = unsafe.Add(t.out, (g*t.os[1]+row*t.os[2]+first.out)*t.Size), t.os[2]*t.Size
	} else if t.c0 > 0 {
		t.exchange(p, g, row, end, false)
	}
}

// exchange moves the panel's results in some rows to where they belong, or back if they aren't done.
func (t *convTiles) exchange(p *convPanel, g, from, to int, isDone bool) {
	// How far the results for neighbouring columns are apart.
	step := t.cols.step
	if t.isTurned {
		step = t.os[0]
	}
	step *= t.Size
	for o := from; o < to; o++ {
		row := unsafe.Add(t.out, (g*t.os[1]+o*t.os[2])*t.Size)
		mem := unsafe.Add(p.c, (o-from)*p.ld)
		for i := range p.pieces {
			piece := &p.pieces[i]
			at, in := unsafe.Add(row, piece.out*t.Size), unsafe.Add(mem, piece.first*t.Size)
			switch {
			case isDone && t.Size == 4:
				putApart[uint32](at, in, step, piece.length)
			case isDone:
				putApart[uint64](at, in, step, piece.length)
			case t.Size == 4:
				takeApart[uint32](in, at, step, piece.length)
			default:
				takeApart[uint64](in, at, step, piece.length)
			}
		}
	}
}

// putApart copies n neighbours to places a step apart.
func putApart[T any](dst, src unsafe.Pointer, step, n int) {
	if from := slice[T](src, n); step == int(unsafe.Sizeof(from[0])) {
		copy(slice[T](dst, n), from)
	} else {
		for i, v := range from {
			*(*T)(unsafe.Add(dst, i*step)) = v
		}
	}
}

// takeApart is the way back.
func takeApart[T any](dst, src unsafe.Pointer, step, n int) {
	if to := slice[T](dst, n); step == int(unsafe.Sizeof(to[0])) {
		copy(to, slice[T](src, n))
	} else {
		for i := range to {
			to[i] = *(*T)(unsafe.Add(src, i*step))
		}
	}
}

// unit computes some panels of a group for some panels of rows.
func (t *convTiles) unit(w *convWork, panels []convPanel, g, r0, r1 int) {
	taps := len(t.taps)
	all := (t.c1 - t.c0) * taps
	blocks := (all*t.Size + convDepth - 1) / convDepth
	src := unsafe.Add(t.a, (t.n0*t.as[0]+t.c0*t.as[2])*t.Size)
	if t.plane > 0 {
		src = t.planes
	}
	src = unsafe.Add(src, (g*t.group+t.base)*t.Size)
	_, first, _ := t.rowPanel(g, r0)
	for block := range blocks {
		lo, hi := cut(all, blocks, block), cut(all, blocks, block+1)
		offsets := w.offsets[:hi-lo]
		c, tap := lo/taps, lo%taps
		for i := range offsets {
			offsets[i] = (c*t.channel + t.taps[tap]) * t.Size
			if tap++; tap == taps {
				c, tap = c+1, 0
			}
		}
		for i := range panels {
			t.copyPanel(&panels[i], src, offsets)
		}
		for r := r0; r < r1; r++ {
			b, from, to := t.rowPanel(g, r)
			b = unsafe.Add(b, lo*(to-from)*t.Size)
			for i := range panels {
				p := &panels[i]
				c := unsafe.Add(p.c, (from-first)*p.ld)
				t.Tile(to-from, p.columns, hi-lo, b, t.Size, (to-from)*t.Size, p.copied, p.step, c, p.ld, lo > 0 || t.c0 > 0, c)
			}
		}
	}
	_, _, last := t.rowPanel(g, r1-1)
	for i := range panels {
		if panels[i].isLater {
			t.exchange(&panels[i], g, first, last, true)
		}
	}
}

// copyPanel copies a panel of the second matrix, for the rows with the given offsets from src.
func (t *convTiles) copyPanel(p *convPanel, src unsafe.Pointer, offsets []int) {
	for i := range p.pieces {
		piece := &p.pieces[i]
		from, to := unsafe.Add(src, piece.from*t.Size), unsafe.Add(p.copied, piece.first*t.Size)
		if t.isTurned {
			t.turnPiece(to, from, piece.length, p.step, offsets)
			continue
		}
		t.Collect(len(offsets), piece.length, &offsets[0], from, to, p.step)
	}
}

// turnPiece copies rows of images as columns.
func (t *convTiles) turnPiece(dst, src unsafe.Pointer, images, step int, offsets []int) {
	x := tiled{Products: t.Products}
	image := t.image * t.Size
	for lo := 0; lo < len(offsets); {
		hi := lo + 1
		for hi < len(offsets) && offsets[hi]-offsets[hi-1] == t.Size {
			hi++
		}
		to, from := unsafe.Add(dst, lo*step), unsafe.Add(src, offsets[lo])
		n := 0
		for ; n+vec.TurnRows <= images; n += vec.TurnRows {
			t.Turn(hi-lo, unsafe.Add(from, n*image), image, vec.TurnRows, unsafe.Add(to, n*t.Size), step)
		}
		x.copyAny(unsafe.Add(to, n*t.Size), side{unsafe.Add(from, n*image), t.Size, image}, hi-lo, images-n, step)
		lo = hi
	}
}
