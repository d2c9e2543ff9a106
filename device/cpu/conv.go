package cpu

import (
	"runtime"
	"slices"
	"unsafe"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/cpu/internal/vec"
	"github.com/asyncgen/asyncgen/device/pool"
)

func newConv(k *device.Kernel) (runner, error) {
	if len(k.In) != 2 || !k.Out.IsFloat() || k.Out.IsStorage() || k.In[0] != k.Out || k.In[1] != k.Out {
		return nil, unsupported(k)
	}
	return runConv, nil
}

// A conv is one Conv command: sums of products of elements of planes (a) and windows (b). Each sum is
// accumulated in the order and with the rounding of a matrix product. The first operand of this product
// is b, as rows of c*rows*columns elements; the second is the matrix of the elements of a that each
// window covers. There are three ways to compute it, with the same bits: tiles of that product, whose
// second matrix never exists as a whole (convtiles.go); sums of shifted rows of planes, if few windows
// use the same planes or there are no tiles; zeros, if the windows are empty.
type conv struct {
	dt         device.DType
	size       int // of an element
	n, g, o, c int // as device.Conv has them
	a, b, out  unsafe.Pointer
	as, bs     [5]int // strides: of a over n, g, c, rows, columns, of b over g, o, c, rows, columns
	os         [3]int // of the planes of the result over n, g, o
	window     *[2]device.Window
}

// fewWindows is the largest number of windows for the same planes for which sums of shifted rows are faster than tiles.
const fewWindows = 4

// contiguousOr returns strides, or those of the shape if they are nil.
func contiguousOr(strides []int, shape ...int) []int {
	if strides == nil {
		return device.Shape(shape).Strides()
	}
	return strides
}

func runConv(c *device.Command) error {
	if c.N <= 0 {
		return nil
	}
	shape, w := c.Args.Shape, c.Args.Window
	x := conv{dt: c.Kernel.Out, size: c.Kernel.Out.Size(), n: shape[0], g: shape[1], o: shape[2], c: c.Args.Ints[0], window: w}
	of := []int{x.n, x.g, x.c, w[0].In, w[1].In}
	by := []int{x.g, x.o, x.c, w[0].Size, w[1].Size}
	x.as, x.bs = [5]int(contiguousOr(c.Args.Strides[1], of...)), [5]int(contiguousOr(c.Args.Strides[2], by...))
	plane := w[0].Out * w[1].Out
	x.os = [3]int{x.g * x.o * plane, x.o * plane, plane}
	if s := c.Args.Strides[0]; s != nil {
		x.os = [3]int(s)
	}
	x.out = inBuffer(c, 0, x.size, append(slices.Clone(shape), plane), append(slices.Clone(x.os[:]), 1))
	isEmpty := x.c == 0 || slices.Contains(by, 0)
	if !isEmpty && !slices.Contains(of, 0) {
		x.a = inBuffer(c, 1, x.size, of, x.as[:])
	}
	if !isEmpty {
		x.b = inBuffer(c, 2, x.size, by, x.bs[:])
	}
	for _, rows := range latticesOf(&w[0]) {
		for _, cols := range latticesOf(&w[1]) {
			if isEmpty {
				rows.taps = 0
			}
			x.part(rows, cols)
		}
	}
	return nil
}

// part computes the places of two lattices.
func (x *conv) part(rows, cols lattice) {
	products := vec.ProductsOf(x.dt)
	switch {
	case rows.taps == 0 || cols.taps == 0:
		s := newScene(x.window, rows, cols, x.as[3], x.as[4], false)
		x.eachPlane(func(_, _, _ int, out unsafe.Pointer) { s.setPlaces(out, x.size, 0) })
	case products == nil || x.o <= fewWindows:
		x.shifted(newScene(x.window, rows, cols, x.as[3], x.as[4], false))
	default:
		// Neighbouring places fill the vectors of tiles. Where there are few of them, the elements of
		// several images do: the scene is turned, and copied tap by tap.
		isTurned := cols.count < products.Lanes && x.n >= vec.TurnRows && cols.taps > cols.count && cols.across > 0
		x.tiles(products, newScene(x.window, rows, cols, x.as[3], x.as[4], isTurned))
	}
}

// eachPlane calls f for each plane of the result.
func (x *conv) eachPlane(f func(n, g, o int, out unsafe.Pointer)) {
	for n := range x.n {
		for g := range x.g {
			for o := range x.o {
				f(n, g, o, x.outAt(n, g, o))
			}
		}
	}
}

func (x *conv) outAt(n, g, o int) unsafe.Pointer {
	return unsafe.Add(x.out, (n*x.os[0]+g*x.os[1]+o*x.os[2])*x.size)
}

// planeAt is the first element of a plane of a.
func (x *conv) planeAt(n, g, c int) unsafe.Pointer {
	return unsafe.Add(x.a, (n*x.as[0]+g*x.as[1]+c*x.as[2])*x.size)
}

// weight is where the element of b for tap t of the scene is, in elements.
func (x *conv) weight(s *scene, g, o, c, t int) int {
	return g*x.bs[0] + o*x.bs[1] + c*x.bs[2] + (s.rows.tap+t/s.cols.taps*s.rows.tapStep)*x.bs[3] + (s.cols.tap+t%s.cols.taps*s.cols.tapStep)*x.bs[4]
}

// shifted computes the scene's places by sums of shifted rows: all planes of a for one image and group at a time.
func (x *conv) shifted(s *scene) {
	taps := len(s.taps)
	k := x.c * taps
	channel := x.as[2]
	if s.plane > 0 {
		channel = s.plane
	}
	offsets := make([]int, 0, k) // in bytes
	for c := range x.c {
		for _, at := range s.taps {
			offsets = append(offsets, (c*channel+at)*x.size)
		}
	}
	parts := 1 // of the windows, where there are not enough images and groups for all workers
	if all := x.n * x.g; all < 4*runtime.GOMAXPROCS(0) {
		parts = min(x.o, (4*runtime.GOMAXPROCS(0)+all-1)/all)
	}
	operations := max(1, k*s.count()*x.o/parts/productsPerOperation)
	f := vec.TapsOf(vec.TapMulAdd, x.dt)
	pool.Run(x.n*x.g*parts, grainOf(operations), func(lo, hi int) {
		weights := k * x.size
		results := 0
		if !s.isDense() {
			results = s.count() * x.size
		}
		mem := takeSpare(weights + results + x.c*s.plane*x.size + 1)
		defer giveSpare(mem)
		result := unsafe.Add(mem.Ptr, weights)
		copied := unsafe.Add(result, results)
		for i := lo; i < hi; i++ {
			n, g, part := i/parts/x.g, i/parts%x.g, i%parts
			src := x.planeAt(n, g, 0)
			if s.plane > 0 {
				src = copied
				if part == 0 || i == lo {
					for c := range x.c {
						s.copyPlane(unsafe.Add(copied, c*s.plane*x.size), x.planeAt(n, g, c), x.size, 0)
					}
				}
			}
			for o := cut(x.o, parts, part); o < cut(x.o, parts, part+1); o++ {
				x.copyWeights(s, mem.Ptr, g, o)
				s.planeTaps(f, mem.Ptr, unsafe.Pointer(&offsets[0]), k, unsafe.Add(src, s.base*x.size), x.outAt(n, g, o), result, x.size)
			}
		}
	})
}

// copyWeights copies the elements of b that window o of group g has for the scene's taps.
func (x *conv) copyWeights(s *scene, dst unsafe.Pointer, g, o int) {
	step := s.cols.tapStep * x.bs[4] * x.size
	row := 0
	for c := range x.c {
		for t := range s.rows.taps {
			from := unsafe.Add(x.b, x.weight(s, g, o, c, t*s.cols.taps)*x.size)
			if x.size == 4 {
				takeApart[uint32](unsafe.Add(dst, row), from, step, s.cols.taps)
			} else {
				takeApart[uint64](unsafe.Add(dst, row), from, step, s.cols.taps)
			}
			row += s.cols.taps * x.size
		}
	}
}
