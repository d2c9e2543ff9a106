package cpu

import (
	"math"
	"unsafe"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/kernel"
	"github.com/asyncgen/asyncgen/device/pool"
)

// The windows of a pooling may be much larger than the planes, with as much padding, or lie mostly in the padding. A
// loop over all their places would take very long. The loops in this file clip a window to the plane, and walk what is
// left element by element.

// mostlyOutside decides which windows are clipped: those that have so many times more places than
// places inside of the plane. A loop over all places computes 16 results at a time, so it is faster
// unless it has 16 times as much to do.
var mostlyOutside = 16.0

// A stretch is the part of one axis that a window covers: n elements, from first on, each step (1 or -1) after the
// one before.
type stretch struct{ first, n, step int }

// stretchesOf returns the stretch for each place of the result, in the order of the window's own
// places. ok is false if neighbouring places of the window don't stand for neighbouring elements.
func stretchesOf(w *device.Window) (all []stretch, ok bool) {
	if w.Step != 1 && w.Step != -1 || w.Size < 1 {
		return nil, false
	}
	all = make([]stretch, w.Out)
	for i := range all {
		from := i*w.Stride - w.Pad // in holes
		to := from + (w.Size-1)*w.Step
		least, most := max(ceilDiv(min(from, to), w.Holes), 0), min(floorDiv(max(from, to), w.Holes), w.In-1)
		if least > most {
			continue
		}
		all[i] = stretch{least, most - least + 1, w.Step}
		if w.Step < 0 {
			all[i].first = most
		}
	}
	return all, true
}

// floorDiv is x/y for y > 0, rounded down; ceilDiv is rounded up.
func floorDiv(x, y int) int {
	q := x / y
	if q*y > x {
		q--
	}
	return q
}

func ceilDiv(x, y int) int { return -floorDiv(-x, y) }

// A clipping is a pooling by windows that are mostly outside.
type clipping struct {
	*pooling
	rows, cols []stretch
	inside     int // elements that the windows have of one plane, together
}

// clip reports whether the windows are mostly outside, and have stretches.
func (x *pooling) clip() (c clipping, ok bool) {
	c.pooling, c.inside = x, 1
	places := 1.0
	for i, to := range []*[]stretch{&c.rows, &c.cols} {
		w := &x.window[i]
		if *to, ok = stretchesOf(w); !ok {
			return c, false
		}
		n := 0
		for _, s := range *to {
			n += s.n
		}
		c.inside *= n
		places *= float64(w.Out) * math.Ceil(float64(w.Size)/float64(w.Holes))
	}
	return c, places >= mostlyOutside*float64(c.inside)
}

// clippedPool folds what the windows have: one element after the other, in the order of the window's places.
func clippedPool[T float32 | float64](x *clipping, isMax bool) {
	out := slice[T](x.out, x.n*len(x.rows)*len(x.cols))
	begin := T(0)
	if isMax {
		begin = T(math.Inf(-1))
	}
	x.each(func(at int, plane unsafe.Pointer, rows, cols stretch) {
		acc := begin
		for i := range rows.n {
			row := unsafe.Add(plane, (rows.first+i*rows.step)*x.stride[0]*x.size)
			for j := range cols.n {
				v := *(*T)(unsafe.Add(row, (cols.first+j*cols.step)*x.stride[1]*x.size))
				if isMax {
					acc = max(acc, v)
				} else {
					acc += v
				}
			}
		}
		out[at] = acc
	})
}

// clippedArgPool finds the greatest element that each window has: the first of equals, or the first NaN; or else -1.
func clippedArgPool[T float32 | float64](x *clipping) {
	out := slice[int64](x.out, x.n*len(x.rows)*len(x.cols))
	x.each(func(at int, plane unsafe.Pointer, rows, cols stretch) {
		best, where := T(math.Inf(-1)), int64(-1)
		for i := range rows.n {
			y := rows.first + i*rows.step
			row := unsafe.Add(plane, y*x.stride[0]*x.size)
			for j := range cols.n {
				c := cols.first + j*cols.step
				v := *(*T)(unsafe.Add(row, c*x.stride[1]*x.size))
				if v != v {
					out[at] = int64(y*x.window[1].In + c)
					return
				}
				if v > best || where < 0 {
					best, where = v, int64(y*x.window[1].In+c)
				}
			}
		}
		out[at] = where
	})
}

// each calls f for each place of the result, whose number is at, with the plane and the stretches of its window.
func (x *clipping) each(f func(at int, plane unsafe.Pointer, rows, cols stretch)) {
	line := len(x.cols)
	n := x.n * len(x.rows)
	pool.Run(n, grainOf(2*line+8*x.inside/len(x.rows)), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			plane := x.plane(i / len(x.rows))
			for j, cols := range x.cols {
				f(i*line+j, plane, x.rows[i%len(x.rows)], cols)
			}
		}
	})
}

// runClipped runs a Pool or ArgPool command whose windows are mostly outside. It reports false for others.
func (x *pooling) runClipped(c *device.Command) bool {
	clipped, ok := x.clip()
	if !ok {
		return false
	}
	isMax := c.Kernel.Body.(kernel.Reducer) == kernel.ReduceMax
	switch isArg, is64 := c.Kernel.Code == device.ArgPool, c.Kernel.In[0] == device.Float64; {
	case isArg && is64:
		clippedArgPool[float64](&clipped)
	case isArg:
		clippedArgPool[float32](&clipped)
	case is64:
		clippedPool[float64](&clipped, isMax)
	default:
		clippedPool[float32](&clipped, isMax)
	}
	return true
}
