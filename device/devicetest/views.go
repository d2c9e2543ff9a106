package devicetest

import (
	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/kernel"
)

// shape returns random axes, some of length 0 or 1, some longer than any tile.
func (s *suite) shape() device.Shape {
	shape := make(device.Shape, s.rnd.IntN(5))
	for i := range shape {
		shape[i] = 1 + s.rnd.IntN(5)
	}
	if len(shape) > 0 {
		axis := s.rnd.IntN(len(shape))
		switch s.rnd.IntN(6) {
		case 0:
			shape[axis] = 0
		case 1, 2:
			shape[axis] = 1
		case 3:
			shape[axis] = 100 + s.rnd.IntN(100)
		}
	}
	return shape
}

// view returns random strides over shape, and how many elements they span. The axes are in any order;
// some are broadcast, some have gaps.
func (s *suite) view(shape device.Shape) (strides []int, span int) {
	strides, span = make([]int, len(shape)), 1
	for _, axis := range s.rnd.Perm(len(shape)) {
		if s.rnd.IntN(4) == 0 {
			continue
		}
		strides[axis] = span
		span = span*max(1, shape[axis]) + s.rnd.IntN(2)
	}
	return strides, span
}

// order returns random strides over shape without gaps; nil is row-major. Often the kept axes are the
// innermost ones in memory.
func (s *suite) order(shape device.Shape, kept int) []int {
	axes := s.rnd.Perm(len(shape)) // the innermost is the first
	switch s.rnd.IntN(3) {
	case 0:
		return nil
	case 1:
		for i := range axes {
			axes[i] = (kept - 1 - i + len(axes)) % len(axes)
		}
	}
	strides, step := make([]int, len(shape)), 1
	for _, axis := range axes {
		strides[axis] = step
		step *= max(1, shape[axis])
	}
	return strides
}

// inOrder returns the elements of an output over shape, with the given strides, in row-major order.
func inOrder[T any](out []T, shape device.Shape, strides []int) []T {
	if strides == nil {
		return out
	}
	all := make([]T, 0, len(out))
	walk(shape, func(index []int) { all = append(all, out[at(index, strides)]) })
	return all
}

// walk calls f with each index into shape, in row-major order.
func walk(shape device.Shape, f func(index []int)) {
	index := make([]int, len(shape))
	if shape.Size() == 0 {
		return
	}
	for {
		f(index)
		axis := len(shape) - 1
		for ; axis >= 0; axis-- {
			if index[axis]++; index[axis] < shape[axis] {
				break
			}
			index[axis] = 0
		}
		if axis < 0 {
			return
		}
	}
}

// at is where the element with this index lies.
func at(index, strides []int) int {
	sum := 0
	for axis, i := range index {
		sum += i * strides[axis]
	}
	return sum
}

func testViews(s *suite) {
	for range 40 {
		mapViews[float32](s)
		mapViews[float64](s)
		mapViews[int64](s)
		copyViews(s, ordinary[float32])
		copyViews(s, ordinary[float64])
		copyViews(s, ordinary[int64])
		copyViews(s, bools)
	}
}

func mapViews[T number](s *suite) {
	if lacks[T](s) {
		return
	}
	dt := device.DTypeOf[T]()
	shape := s.shape()
	c := device.Command{Kernel: mapKernel(kernel.Sub(kernel.Arg(0, dt), kernel.Arg(1, dt))), N: shape.Size(), Args: &device.Args{Shape: shape}}
	var data [2][]T
	for i := range data {
		strides, span := s.view(shape)
		if s.rnd.IntN(4) == 0 {
			strides, span = nil, shape.Size()
		}
		c.Off[i+1] = s.rnd.IntN(5)
		data[i] = ordinary[T](s, c.Off[i+1]+span)
		c.Args.Strides[i+1], c.Buf[i+1] = strides, put(s, data[i])
	}
	got := compute[T](s, c)
	k := 0
	walk(shape, func(index []int) {
		var v [2]T
		for i := range v {
			strides := c.Args.Strides[i+1]
			if strides == nil {
				strides = shape.Strides()
			}
			v[i] = data[i][c.Off[i+1]+at(index, strides)]
		}
		if got[k] != v[0]-v[1] {
			s.Fatalf("%v of %v, strides %v and %v: element %v is %v, want %v", dt, shape, c.Args.Strides[1], c.Args.Strides[2], index, got[k], v[0]-v[1])
		}
		k++
	})
}

func copyViews[T device.Element](s *suite, values func(*suite, int) []T) {
	dt := device.DTypeOf[T]()
	shape := s.shape()
	strides, span := s.view(shape)
	off := s.rnd.IntN(5)
	data := values(s, off+span)
	c := device.Command{Kernel: kernelFor(device.Copy, dt), N: shape.Size(), Args: &device.Args{Shape: shape}}
	c.Args.Strides[1], c.Off[1], c.Buf[1] = strides, off, put(s, data)
	got := compute[T](s, c)
	k := 0
	walk(shape, func(index []int) {
		if want := data[off+at(index, strides)]; got[k] != want {
			s.Fatalf("copy of %v %v, strides %v: element %v is %v, want %v", dt, shape, strides, index, got[k], want)
		}
		k++
	})
}

func testTransfer(s *suite) {
	transfer(s, floats[float32](s, 100))
	transfer(s, floats[float64](s, 100))
	transfer(s, intEdges)
	transfer(s, bools(s, 100))
}

// transfer takes values to the device and back, in pieces and with offsets.
func transfer[T device.Element](s *suite, values []T) {
	dt := device.DTypeOf[T]()
	n := len(values)
	in, out := host(values), host(make([]T, n+3))
	there := s.alloc((n + 7) * dt.Size())
	half := n / 2
	s.do(
		device.Command{Kernel: kernelFor(device.Upload, dt), N: half, Buf: [4]*device.Buffer{there, in}, Off: [4]int{5, 0}},
		device.Command{Kernel: kernelFor(device.Upload, dt), N: n - half, Buf: [4]*device.Buffer{there, in}, Off: [4]int{5 + half, half}},
		device.Command{Kernel: kernelFor(device.Download, dt), N: n, Buf: [4]*device.Buffer{out, there}, Off: [4]int{3, 5}},
	)
	for i, got := range device.Slice[T](out, 3, n) {
		if !same(got, values[i]) {
			s.Errorf("%v came back as %v", values[i], got)
		}
	}
}

func testFillIota(s *suite) {
	fillWith(s, float32(2.5))
	fillWith(s, negativeZero)
	fillWith(s, int64(-1)<<63)
	fillWith(s, true)
	fillWith(s, false)
	ramp(s, float32(0.1), float32(0.3))
	ramp(s, 0.1, -0.7)
	ramp(s, int64(7), int64(-3))
	ramp(s, int64(1)<<62, int64(1)<<61) // wraps around
}

func fillWith[T device.Element](s *suite, v T) {
	c := device.Command{Kernel: kernelFor(device.Fill, device.DTypeOf[T]()), N: 1 + s.rnd.IntN(3000), Imm: [2]uint64{kernel.Bits(v)}}
	for i, got := range compute[T](s, c) {
		if !same(got, v) {
			s.Fatalf("element %d filled with %v is %v", i, v, got)
		}
	}
}

func ramp[T number](s *suite, start, step T) {
	if lacks[T](s) {
		return
	}
	c := device.Command{Kernel: kernelFor(device.Iota, device.DTypeOf[T]()), N: 2000, Imm: [2]uint64{kernel.Bits(start), kernel.Bits(step)}}
	for i, got := range compute[T](s, c) {
		product := T(i) * step
		if want := start + T(product); got != want {
			s.Fatalf("element %d of %v + i*%v is %v, want %v", i, start, step, got, want)
		}
	}
}

// testEmpty runs every Code without elements.
func testEmpty(s *suite) {
	x := kernel.Arg(0, device.Float32)
	empty := put(s, []float32{})
	reduce := func(r kernel.Reducer) *device.Kernel {
		return device.NewKernel(r.String(), device.Reduce, r, device.Float32, device.Float32)
	}
	none := func(k *device.Kernel, args *device.Args) device.Command {
		return device.Command{Kernel: k, Args: args, Buf: [4]*device.Buffer{nil, empty, empty}}
	}
	for _, c := range []device.Command{
		none(mapKernel(kernel.Exp(x)), nil),
		none(mapKernel(kernel.Add(kernel.Exp(x), kernel.Const(1, device.Float32))), &device.Args{Shape: device.Shape{3, 0}, Strides: [4][]int{1: {0, 1}}}),
		none(reduce(kernel.ReduceSum), &device.Args{Shape: device.Shape{0, 3}, Kept: 1}),
		none(kernelFor(device.MatMul, device.Float32), &device.Args{Ints: []int{0, 3, 4}}),
		none(kernelFor(device.MatMul, device.Float32), &device.Args{Ints: []int{3, 0, 4}}),
		none(kernelFor(device.MatMul, device.Float32), &device.Args{Shape: device.Shape{0}, Ints: []int{3, 2, 4}, Strides: [4][]int{1: {12, 4, 1}, 2: {0, 2, 1}}}),
		none(convKernel[float32](), &device.Args{Shape: device.Shape{0, 1, 2}, Ints: []int{3}, Window: &[2]device.Window{}}),
		none(device.NewKernel("pool", device.Pool, kernel.ReduceSum, device.Float32, device.Float32), &device.Args{Shape: device.Shape{0}, Window: &[2]device.Window{}}),
		none(device.NewKernel("scan", device.Scan, kernel.ReduceSum, device.Float32, device.Float32), &device.Args{Shape: device.Shape{3, 0}, Kept: 1, Ints: []int{0}}),
		none(device.NewKernel("argsort", device.ArgSort, nil, device.Int64, device.Float32), &device.Args{Shape: device.Shape{3, 5}, Kept: 1, Ints: []int{0, 0}}),
		none(device.NewKernel("argsort", device.ArgSort, nil, device.Int64, device.Float32), &device.Args{Shape: device.Shape{0, 5}, Kept: 1, Ints: []int{2, 1}}),
		none(device.NewKernel("softmax", device.Rows, kernel.Softmax, device.Float32, device.Float32), &device.Args{Shape: device.Shape{3, 0}, Kept: 1}),
		none(device.NewKernel("layernorm", device.Rows, kernel.LayerNorm, device.Float32, device.Float32), &device.Args{Shape: device.Shape{0, 4}, Kept: 1, Strides: [4][]int{{1, 0}, {1, 0}}}),
		none(device.NewKernel("gather", device.Gather, nil, device.Float32, device.Float32, device.Int64),
			&device.Args{Shape: device.Shape{0, 2}, Ints: []int{0, 2}, Strides: [4][]int{1: {0, 1}, 2: {1, 0}}}),
		none(device.NewKernel("scatteradd", device.ScatterAdd, nil, device.Float32, device.Float32, device.Int64),
			&device.Args{Shape: device.Shape{3, 0}, Ints: []int{5, 0}, Strides: [4][]int{0: {0, 1}, 2: {1, 0}}}),
		none(kernelFor(device.Copy, device.Float32), &device.Args{Shape: device.Shape{0}, Strides: [4][]int{1: {7}}}),
		none(kernelFor(device.Fill, device.Float32), nil),
		none(kernelFor(device.Iota, device.Float32), nil),
		none(device.NewKernel("uniform", device.Random, kernel.Uniform, device.Float32), nil),
		none(kernelFor(device.Copy, device.Float32), nil),
	} {
		compute[float32](s, c)
	}
	// The sum of nothing is 0, and its product is 1. A product of matrices over no k is 0.
	for r, want := range map[kernel.Reducer]float32{kernel.ReduceSum: 0, kernel.ReduceProd: 1} {
		c := none(reduce(r), &device.Args{Shape: device.Shape{3, 0}, Kept: 1})
		c.N = 3
		for _, got := range compute[float32](s, c) {
			if got != want {
				s.Errorf("%v of nothing is %v", r, got)
			}
		}
	}
	arg := none(device.NewKernel("argmax", device.ArgReduce, kernel.ReduceMax, device.Int64, device.Float32), &device.Args{Shape: device.Shape{2, 0}, Kept: 1})
	arg.N = 2
	for _, got := range compute[int64](s, arg) {
		if got != -1 {
			s.Errorf("the place of the greatest of nothing is %d", got)
		}
	}
	added := none(device.NewKernel("scatteradd", device.ScatterAdd, nil, device.Float32, device.Float32, device.Int64),
		&device.Args{Shape: device.Shape{0, 2}, Ints: []int{2, 2}, Strides: [4][]int{0: {0, 1}, 2: {1, 0}}})
	added.N = 4
	for _, got := range compute[float32](s, added) {
		if got != 0 {
			s.Errorf("with nothing added an element is %v", got)
		}
	}
	c := none(kernelFor(device.MatMul, device.Float32), &device.Args{Ints: []int{2, 3, 0}})
	c.N = 6
	for _, got := range compute[float32](s, c) {
		if got != 0 {
			s.Errorf("a product over no k is %v", got)
		}
	}
}
