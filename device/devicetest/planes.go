package devicetest

import (
	"math"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/kernel"
)

// window is a random Window along an axis: that of a convolution or pooling, or that of a gradient.
func (s *suite) window(longest int) device.Window {
	for {
		in, size, stride, pad, step := 1+s.rnd.IntN(longest), 1+s.rnd.IntN(4), 1+s.rnd.IntN(3), s.rnd.IntN(3), 1+s.rnd.IntN(2)
		if s.rnd.IntN(3) == 0 {
			stride, pad, step = 1, 0, 1
		}
		span := in + 2*pad - (size-1)*step - 1
		if span < 0 {
			continue
		}
		out := span/stride + 1
		switch s.rnd.IntN(4) {
		case 0: // the gradient of the input
			return device.Window{In: out, Out: in, Size: size, Stride: 1, Pad: -pad, Step: -step, Holes: stride}
		case 1: // the gradient of the weights
			return device.Window{In: in, Out: size, Size: out, Stride: step, Pad: pad, Step: stride, Holes: 1}
		}
		return device.Window{In: in, Out: out, Size: size, Stride: stride, Pad: pad, Step: step, Holes: 1}
	}
}

// meets lists the places of a window that have an element at place i of the result. elements has the
// index of each along the axis, or -1 if it is outside. Places in holes are left out.
func meets(w device.Window, i int) (places, elements []int) {
	for k := range w.Size {
		at := i*w.Stride - w.Pad + k*w.Step
		if at%w.Holes != 0 {
			continue
		}
		if at /= w.Holes; at < 0 || at >= w.In {
			at = -1
		}
		places, elements = append(places, k), append(elements, at)
	}
	return places, elements
}

// strided sets operand i of c to ordinary elements over the axes, contiguous or not.
func strided[T number](s *suite, c *device.Command, i int, shape device.Shape) (data []T, strides []int) {
	strides, span := shape.Strides(), shape.Size()
	if s.rnd.IntN(2) == 0 {
		strides, span = s.view(shape)
		c.Args.Strides[i] = strides
	}
	c.Off[i] = s.rnd.IntN(4)
	data = ordinary[T](s, c.Off[i]+span)
	c.Buf[i] = put(s, data)
	return data[c.Off[i]:], strides
}

func testConv(s *suite) {
	var single, double roundings
	for range 20 {
		convolve[float32](s, &single)
		convolve[float64](s, &double)
	}
	// Without channels all sums are 0.
	w := device.Window{In: 3, Out: 3, Size: 1, Stride: 1, Step: 1, Holes: 1}
	empty := put(s, []float32{})
	c := device.Command{Kernel: convKernel[float32](), N: 18, Buf: [4]*device.Buffer{nil, empty, empty},
		Args: &device.Args{Shape: device.Shape{1, 1, 2}, Ints: []int{0}, Window: &[2]device.Window{w, w}}}
	for i, got := range compute[float32](s, c) {
		if got != 0 {
			s.Errorf("element %d of a convolution of no channels is %v", i, got)
		}
	}
}

// convKernel is the kernel of convolutions.
func convKernel[T number]() *device.Kernel {
	dt := device.DTypeOf[T]()
	return device.NewKernel("conv", device.Conv, nil, dt, dt, dt)
}

func convolve[T float32 | float64](s *suite, rounding *roundings) {
	if lacks[T](s) {
		return
	}
	w := &[2]device.Window{s.window(8), s.window(20)}
	n, g, o, channels := 1+s.rnd.IntN(3), 1+s.rnd.IntN(3), 1+s.rnd.IntN(8), 1+s.rnd.IntN(4)
	if s.rnd.IntN(4) == 0 {
		n = 1 + s.rnd.IntN(20)
	}
	plane := w[0].Out * w[1].Out
	shape := device.Shape{n, g, o}
	c := device.Command{Kernel: convKernel[T](), N: shape.Size() * plane, Args: &device.Args{Shape: shape, Ints: []int{channels}, Window: w}}
	a, as := strided[T](s, &c, 1, device.Shape{n, g, channels, w[0].In, w[1].In})
	b, bs := strided[T](s, &c, 2, device.Shape{g, o, channels, w[0].Size, w[1].Size})
	out := append(append(device.Shape{}, shape...), plane).Strides()[:3]
	if s.rnd.IntN(2) == 0 { // the images' planes side by side
		out = []int{plane, o * n * plane, n * plane}
		c.Args.Strides[0] = out
	}
	got := compute[T](s, c)
	walk(device.Shape{n, g, o, w[0].Out, w[1].Out}, func(index []int) {
		if s.rnd.IntN(4) > 0 {
			return // checking some elements is enough
		}
		var once, twice T
		want, size := 0.0, 0.0
		ks, ys := meets(w[0], index[3])
		ls, xs := meets(w[1], index[4])
		for channel := range channels {
			for p, k := range ks {
				for q, l := range ls {
					x, y := T(0), b[at([]int{index[1], index[2], channel, k, l}, bs)]
					if ys[p] >= 0 && xs[q] >= 0 {
						x = a[at([]int{index[0], index[1], channel, ys[p], xs[q]}, as)]
					}
					once, twice = kernel.MulAdd(x, y, once), twice+T(x*y)
					want += float64(x) * float64(y)
					size += math.Abs(float64(x) * float64(y))
				}
			}
		}
		v := got[at(index[:3], out)+index[3]*w[1].Out+index[4]]
		rounding.note(same(v, once), same(v, twice))
		terms := channels * len(ks) * len(ls)
		if bound := float64(terms+1) * (epsilon[T]() + 0x1p-53) * size; rounding.none() || math.Abs(float64(v)-want) > bound {
			s.Fatalf("%v, %d channels, windows %+v, strides %v: element %v is %v, want %v or, if products are rounded, %v", shape, channels, *w, c.Args.Strides, index, v, once, twice)
		}
	})
	if !s.b.Caps().BatchInvariant {
		return
	}
	i := s.rnd.IntN(n)
	alone, args := c, *c.Args
	args.Shape, args.Strides[0], args.Strides[1] = device.Shape{1, g, o}, nil, as
	alone.Args, alone.N = &args, g*o*plane
	alone.Off[1] += i * as[0]
	for e, v := range compute[T](s, alone) {
		if want := got[at([]int{i, e / plane / o, e / plane % o}, out)+e%plane]; !same(v, want) {
			s.Fatalf("%v, %d channels, windows %+v: element %d of image %d is %v, and %v alone", shape, channels, *w, e, i, want, v)
		}
	}
}

func testPool(s *suite) {
	for range 15 {
		pool[float32](s)
		pool[float64](s)
	}
}

// pool compares Pool and ArgPool with loops. The elements have few different values, NaN among them.
func pool[T float32 | float64](s *suite) {
	if lacks[T](s) {
		return
	}
	w := &[2]device.Window{s.window(8), s.window(20)}
	shape := device.Shape{1 + s.rnd.IntN(3), 1 + s.rnd.IntN(3)}
	dt := device.DTypeOf[T]()
	c := device.Command{N: shape.Size() * w[0].Out * w[1].Out, Args: &device.Args{Shape: shape, Window: w}}
	_, strides := strided[T](s, &c, 1, device.Shape{shape[0], shape[1], w[0].In, w[1].In})
	data := make([]T, int(c.Buf[1].Bytes)/dt.Size())
	for i := range data {
		data[i] = T(s.rnd.IntN(5)) - 2
		switch s.rnd.IntN(40) {
		case 0:
			data[i] = T(math.NaN())
		case 1:
			data[i] = T(math.Inf(-1))
		case 2:
			data[i] = T(negativeZero)
		}
	}
	c.Buf[1] = put(s, data)
	data = data[c.Off[1]:]
	c.Kernel = device.NewKernel("sum", device.Pool, kernel.ReduceSum, dt, dt)
	sums := compute[T](s, c)
	c.Kernel = device.NewKernel("max", device.Pool, kernel.ReduceMax, dt, dt)
	greatest := compute[T](s, c)
	c.Kernel = device.NewKernel("argmax", device.ArgPool, kernel.ReduceMax, device.Int64, dt)
	places := compute[int64](s, c)
	i := 0
	walk(device.Shape{shape[0], shape[1], w[0].Out, w[1].Out}, func(index []int) {
		sum, most, place := T(0), T(math.Inf(-1)), int64(-1)
		_, ys := meets(w[0], index[2])
		_, xs := meets(w[1], index[3])
		for _, y := range ys {
			for _, x := range xs {
				if y < 0 || x < 0 {
					continue
				}
				v := data[at([]int{index[0], index[1], y, x}, strides)]
				sum += v
				if place < 0 || most == most && (v != v || v > most) {
					place = int64(y*w[1].In + x)
				}
				most = max(most, v)
			}
		}
		if !same(sums[i], sum) || !same(greatest[i], most) || places[i] != place {
			s.Fatalf("%v of %v, windows %+v, strides %v: at %v the sum is %v, want %v, the greatest %v, want %v, its place %d, want %d",
				dt, shape, *w, strides, index, sums[i], sum, greatest[i], most, places[i], place)
		}
		i++
	})
}
