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
	if !ok || r != kernel.ReduceSum && r != kernel.ReduceMax || len(k.In) != 1 || !k.Out.IsFloat() || k.In[0] != k.Out {
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
	w := x.window
	rows, cols := indices(&w[0]), indices(&w[1])
	count := w[0].Out * w[1].Out
	out := slice[int64](x.out, c.N)
	pool.Run(x.n*w[0].Out, grainOf(4*w[1].Out*w[0].Size*w[1].Size), func(lo, hi int) {
		for r := lo; r < hi; r++ {
			plane, i := r/w[0].Out, r%w[0].Out
			src := x.plane(plane)
			ys := rows[i*w[0].Size:][:w[0].Size]
			row := out[plane*count+i*w[1].Out:][:w[1].Out]
			for j := range row {
				row[j] = greatest[T](&x, src, ys, cols[j*w[1].Size:][:w[1].Size])
			}
		}
	})
	return nil
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
