package cpu

import (
	"math"
	"slices"
	"unsafe"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/cpu/internal/vec"
	"github.com/asyncgen/asyncgen/device/kernel"
	"github.com/asyncgen/asyncgen/device/pool"
)

func newPool(k *device.Kernel) (runner, error) {
	r, ok := k.Body.(kernel.Reducer)
	if !ok || r != kernel.ReduceSum && r != kernel.ReduceMax || len(k.In) != 1 || !k.Out.IsFloat() || k.Out.IsStorage() || k.In[0] != k.Out {
		return nil, unsupported(k)
	}
	return runPool, nil
}

func newArgPool(k *device.Kernel) (runner, error) {
	if r, ok := k.Body.(kernel.Reducer); !ok || r != kernel.ReduceMax || len(k.In) != 1 || k.Out != device.Int64 {
		return nil, unsupported(k)
	}
	switch k.In[0] {
	case device.Float32:
		return argPool[float32], nil
	case device.Float64:
		return argPool[float64], nil
	}
	return nil, unsupported(k)
}

// A pooling is a Pool or ArgPool command.
type pooling struct {
	size    int    // of an element of the operand
	planes  view   // where they begin
	stride  [2]int // of rows and columns
	in, out unsafe.Pointer
	n       int // how many planes
	window  *[2]device.Window
}

func newPooling(c *device.Command, x *pooling) error {
	shape, w := c.Args.Shape, c.Args.Window
	of := append(slices.Clone(shape), w[0].In, w[1].In)
	strides := contiguousOr(c.Args.Strides[1], of...)
	rank := len(shape)
	*x = pooling{size: c.Kernel.In[0].Size(), n: shape.Size(), window: w, stride: [2]int(strides[rank:])}
	if !makeView(&x.planes, shape, strides[:rank]) {
		return errRank(shape)
	}
	x.out = pointer(c, 0, c.Kernel.Out.Size(), c.N)
	if !slices.Contains(of, 0) {
		x.in = inBuffer(c, 1, x.size, of, strides)
	}
	return nil
}

func (x *pooling) plane(i int) unsafe.Pointer { return unsafe.Add(x.in, x.planes.offset(i)*x.size) }

func runPool(c *device.Command) error {
	if c.N <= 0 {
		return nil
	}
	var x pooling
	if err := newPooling(c, &x); err != nil {
		return err
	}
	if x.runClipped(c) {
		return nil
	}
	dt := c.Kernel.Out
	begin, tap := 0.0, vec.TapSum
	if c.Kernel.Body.(kernel.Reducer) == kernel.ReduceMax {
		begin, tap = math.Inf(-1), vec.TapMax
	}
	f := vec.TapsOf(tap, dt)
	for _, rows := range latticesOf(&x.window[0]) {
		for _, cols := range latticesOf(&x.window[1]) {
			x.fold(newScene(x.window, rows, cols, x.stride[0], x.stride[1], false), f, kernel.BitsOf(begin, dt))
		}
	}
	return nil
}

// fold folds the elements for the scene's places, beginning with the given bits.
func (x *pooling) fold(s *scene, f vec.Taps, begin uint64) {
	out := s.outRows * s.outColumn * x.size
	if len(s.taps) == 0 {
		for i := range x.n {
			s.setPlaces(unsafe.Add(x.out, i*out), x.size, begin)
		}
		return
	}
	offsets := make([]int, 0, len(s.taps)) // in bytes
	for _, at := range s.taps {
		offsets = append(offsets, at*x.size)
	}
	pool.Run(x.n, grainOf((2*s.plane+s.count()*len(s.taps))/2), func(lo, hi int) {
		results := 0
		if !s.isDense() {
			results = s.count() * x.size
		}
		mem := takeSpare(results + s.plane*x.size + 1)
		defer giveSpare(mem)
		copied := unsafe.Add(mem.Ptr, results)
		for i := lo; i < hi; i++ {
			src := x.plane(i)
			if s.plane > 0 {
				s.copyPlane(copied, src, x.size, begin)
				src = copied
			}
			s.planeTaps(f, nil, unsafe.Pointer(&offsets[0]), len(offsets), unsafe.Add(src, s.base*x.size), unsafe.Add(x.out, i*out), mem.Ptr, x.size)
		}
	})
}

// argPool runs ArgPool.
func argPool[T float32 | float64](c *device.Command) error {
	if c.N <= 0 {
		return nil
	}
	var x pooling
	if err := newPooling(c, &x); err != nil {
		return err
	}
	if x.runClipped(c) {
		return nil
	}
	p := placing[T]{pooling: &x, out: slice[int64](x.out, c.N), rows: indices(&x.window[0]), cols: indices(&x.window[1])}
	dt := c.Kernel.In[0]
	p.max, p.where, p.find = vec.TapsOf(vec.TapMax, dt), vec.TapsOf(vec.TapWhere, dt), vec.FindOf(dt)
	for _, rows := range latticesOf(&x.window[0]) {
		for _, cols := range latticesOf(&x.window[1]) {
			p.run(newScene(x.window, rows, cols, x.stride[0], x.stride[1], false))
		}
	}
	return nil
}

// A placing is an ArgPool command: the greatest element is found first, and then the first one that is equal to it.
type placing[T float32 | float64] struct {
	*pooling
	out        []int64
	rows, cols []int // see indices
	max, where vec.Taps
	find       vec.Find
}

// A row of fewer than fewPlaces places is not worth the loops of package vec, which look at each
// window twice.
const fewPlaces = 4

// run finds the places for the scene's places.
func (p *placing[T]) run(s *scene) {
	k, count, all := len(s.taps), s.count(), s.outRows*s.outColumn
	if k == 0 {
		for i := range p.n {
			s.setPlaces(unsafe.Pointer(&p.out[i*all]), 8, math.MaxUint64)
		}
		return
	}
	if s.cols.count < fewPlaces || s.height*s.width > math.MaxInt32 {
		pool.Run(p.n, grainOf(16*count*k), func(lo, hi int) {
			for i := lo; i < hi; i++ {
				p.oneByOne(s, p.out[i*all:][:all], p.plane(i))
			}
		})
		return
	}
	// From the last tap to the first: the loop leaves the last of equals.
	offsets, indices := make([]int, k), make([]uint64, k)
	for t, at := range s.taps {
		offsets[k-1-t] = at * p.size
		index := t/s.cols.taps*s.rows.across*s.width + t%s.cols.taps*s.cols.across // relative to that of the first tap
		if p.size == 4 {
			slice[int32](start(indices), k)[k-1-t] = int32(index)
		} else {
			indices[k-1-t] = uint64(index)
		}
	}
	pool.Run(p.n, grainOf((2*s.plane+3*count*k)/2), func(lo, hi int) {
		mem := takeSpare((count + s.plane) * p.size)
		defer giveSpare(mem)
		copied := unsafe.Add(mem.Ptr, count*p.size)
		for i := lo; i < hi; i++ {
			src, found := p.plane(i), slice[T](mem.Ptr, count)
			if s.plane > 0 {
				s.copyPlane(copied, src, p.size, kernel.Bits(T(math.Inf(-1))))
				src = copied
			}
			src = unsafe.Add(src, s.base*p.size)
			s.denseTaps(p.max, nil, offsets, src, mem.Ptr, p.size)
			out := p.out[i*all:][:all]
			if s.plane > 0 && p.find(mem.Ptr, count, kernel.Bits(T(math.Inf(-1)))) < count {
				p.oneByOne(s, out, p.plane(i)) // as what stands for elements outside is equal to -Inf
				continue
			}
			s.denseTaps(p.where, start(indices), offsets, src, mem.Ptr, p.size)
			p.number(s, out, found)
		}
	})
}

// number writes the indices of found elements into out. found has them relative to the first taps; out
// gets them as indices in an operand's plane.
func (p *placing[T]) number(s *scene, out []int64, found []T) {
	cols := s.cols.count
	for u := range s.rows.count {
		at, index := s.placeOf(u, 0), int64((s.rows.base+u*s.rows.down)*s.width+s.cols.base)
		if p.size == 4 {
			for _, i := range slice[int32](start(found[u*cols:]), cols) {
				out[at] = index + int64(i)
				at, index = at+s.cols.step, index+int64(s.cols.down)
			}
			continue
		}
		for _, i := range slice[int64](start(found[u*cols:]), cols) {
			out[at] = index + i
			at, index = at+s.cols.step, index+int64(s.cols.down)
		}
	}
}

// oneByOne looks at each element of the windows.
func (p *placing[T]) oneByOne(s *scene, out []int64, src unsafe.Pointer) {
	h, w := p.window[0].Size, p.window[1].Size
	for u := range s.rows.count {
		for v := range s.cols.count {
			ys, xs := p.rows[(s.rows.first+u*s.rows.step)*h:][:h], p.cols[(s.cols.first+v*s.cols.step)*w:][:w]
			out[s.placeOf(u, v)] = greatest[T](p.pooling, src, ys, xs)
		}
	}
}

// indices lists the indices of a window's elements for each place of the result: -1 where there is none.
func indices(w *device.Window) []int {
	all := make([]int, 0, w.Out*w.Size)
	for i := range w.Out {
		for k := range w.Size {
			at, ok := w.At(i, k)
			if !ok || at < 0 || at >= w.In {
				at = -1
			}
			all = append(all, at)
		}
	}
	return all
}

// greatest is where the greatest element of a plane in the given rows and columns is.
func greatest[T float32 | float64](x *pooling, src unsafe.Pointer, rows, cols []int) int64 {
	best, at := T(math.Inf(-1)), -1
	for _, y := range rows {
		if y < 0 {
			continue
		}
		row := unsafe.Add(src, y*x.stride[0]*x.size)
		for _, c := range cols {
			if c < 0 {
				continue
			}
			v := *(*T)(unsafe.Add(row, c*x.stride[1]*x.size))
			if v != v {
				return int64(y*x.window[1].In + c)
			}
			if v > best || at < 0 {
				best, at = v, y*x.window[1].In+c
			}
		}
	}
	return int64(at)
}
