package cpu

import (
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/cpu/internal/vec"
	"github.com/asyncgen/asyncgen/device/kernel"
)

// randomWindow is how windows may lie along an axis: as in a convolution, or as in one of its gradients.
func randomWindow(rnd *rand.Rand, longest int) device.Window {
	for {
		in, size, stride, pad, step := 1+rnd.IntN(longest), 1+rnd.IntN(4), 1, 0, 1
		if rnd.IntN(3) == 0 {
			size = 1 + rnd.IntN(2*longest)
		}
		if rnd.IntN(2) == 0 {
			stride, pad, step = 1+rnd.IntN(3), rnd.IntN(4), 1+rnd.IntN(3)
		}
		span := in + 2*pad - (size-1)*step - 1
		if span < 0 {
			continue
		}
		out := span/stride + 1
		switch rnd.IntN(4) {
		case 0: // of the input
			return device.Window{In: out, Out: in, Size: size, Stride: 1, Pad: -pad, Step: -step, Holes: stride}
		case 1: // of the windows
			return device.Window{In: in, Out: size, Size: out, Stride: step, Pad: pad, Step: stride, Holes: 1}
		}
		return device.Window{In: in, Out: out, Size: size, Stride: stride, Pad: pad, Step: step, Holes: 1}
	}
}

// randomOperand sets operand i of c to random elements over an axis list, contiguous or not.
func randomOperand(rnd *rand.Rand, c *device.Command, i int, dt device.DType, shape device.Shape) (strides []int) {
	strides, size := shape.Strides(), shape.Size()
	if rnd.IntN(2) == 0 {
		strides, size = randomView(rnd, shape)
		c.Args.Strides[i] = strides
	}
	c.Off[i] = rnd.IntN(4)
	c.Buf[i] = randomBuffer(rnd, dt, c.Off[i]+size)
	return strides
}

// at is the place with the given index.
func at(strides []int, index ...int) int {
	place := 0
	for i, k := range index {
		place += k * strides[i]
	}
	return place
}

func TestConvIsItsLoops(t *testing.T) {
	everySplit(t, func(t *testing.T) {
		rnd := newRand(t)
		testConv[float32](t, rnd)
		testConv[float64](t, rnd)
	})
	t.Run("stages", func(t *testing.T) {
		defer func(old int) { stageBytes = old }(stageBytes)
		stageBytes = 1000
		testConv[float32](t, newRand(t))
	})
}

func testConv[T float32 | float64](t *testing.T, rnd *rand.Rand) {
	dt := device.DTypeOf[T]()
	k := device.NewKernel("conv", device.Conv, nil, dt, dt, dt)
	for range 150 {
		w := &[2]device.Window{randomWindow(rnd, 10), randomWindow(rnd, 1+rnd.IntN(40))}
		n, g, o, c := 1+rnd.IntN(3), 1+rnd.IntN(3), 1+rnd.IntN(20), 1+rnd.IntN(5)
		switch rnd.IntN(6) {
		case 0:
			n = 1 + rnd.IntN(40)
		case 1:
			g, o = 1+rnd.IntN(20), 1
		case 2:
			c = 1 + rnd.IntN(60)
		}
		if work := n * g * o * c * w[0].Out * w[0].Size * w[1].Out * w[1].Size; work > 1<<19 {
			continue
		}
		cmd := device.Command{Kernel: k, N: n * g * o * w[0].Out * w[1].Out, Args: &device.Args{Shape: device.Shape{n, g, o}, Ints: []int{c}, Window: w}}
		as := randomOperand(rnd, &cmd, 1, dt, device.Shape{n, g, c, w[0].In, w[1].In})
		bs := randomOperand(rnd, &cmd, 2, dt, device.Shape{g, o, c, w[0].Size, w[1].Size})
		plane := w[0].Out * w[1].Out
		os := []int{g * o * plane, o * plane, plane}
		if rnd.IntN(2) == 0 { // in another order
			size := plane
			for _, axis := range rnd.Perm(3) {
				os[axis] = size
				size *= cmd.Args.Shape[axis]
			}
			cmd.Args.Strides[0] = os
		}
		cmd.Buf[0] = device.HostBuffer(int64(cmd.N * dt.Size()))
		if err := Run(&cmd); err != nil {
			t.Fatal(err)
		}
		for range 40 {
			i, j, l := rnd.IntN(n), rnd.IntN(g), rnd.IntN(o)
			y, x := rnd.IntN(w[0].Out), rnd.IntN(w[1].Out)
			want := convElement[T](&cmd, w, as, bs, c, i, j, l, y, x)
			got := load(cmd.Buf[0], dt, at(os, i, j, l)+y*w[1].Out+x)
			if !sameBits(dt, got, kernel.Bits(want)) {
				t.Fatalf("%v, %d channels, windows %+v, strides %v: element %d %d %d %d %d is %v, want %v",
					cmd.Args.Shape, c, *w, cmd.Args.Strides, i, j, l, y, x, kernel.Value[T](got), want)
			}
		}
	}
}

// convElement is an element of a Conv by its definition.
func convElement[T float32 | float64](cmd *device.Command, w *[2]device.Window, as, bs []int, c, n, g, o, y, x int) (sum T) {
	dt := device.DTypeOf[T]()
	for l := range c {
		for p := range w[0].Size {
			for q := range w[1].Size {
				row, ok := w[0].At(y, p)
				col, isToo := w[1].At(x, q)
				if !ok || !isToo {
					continue
				}
				a := T(0)
				if 0 <= row && row < w[0].In && 0 <= col && col < w[1].In {
					a = kernel.Value[T](load(cmd.Buf[1], dt, cmd.Off[1]+at(as, n, g, l, row, col)))
				}
				b := kernel.Value[T](load(cmd.Buf[2], dt, cmd.Off[2]+at(bs, g, o, l, p, q)))
				if vec.ProductsOf(dt) != nil {
					sum = kernel.MulAdd(a, b, sum)
				} else {
					sum += T(a * b)
				}
			}
		}
	}
	return sum
}

func TestPoolIsItsLoops(t *testing.T) {
	everySplit(t, func(t *testing.T) {
		rnd := newRand(t)
		testPool[float32](t, rnd)
		testPool[float64](t, rnd)
	})
}

func testPool[T float32 | float64](t *testing.T, rnd *rand.Rand) {
	dt := device.DTypeOf[T]()
	maxOf := device.NewKernel("max", device.Pool, kernel.ReduceMax, dt, dt)
	sumOf := device.NewKernel("sum", device.Pool, kernel.ReduceSum, dt, dt)
	argMax := device.NewKernel("argmax", device.ArgPool, kernel.ReduceMax, device.Int64, dt)
	for range 60 {
		w := &[2]device.Window{randomWindow(rnd, 10), randomWindow(rnd, 1+rnd.IntN(40))}
		shape := device.Shape{1 + rnd.IntN(3), 1 + rnd.IntN(4)}
		cmd := device.Command{N: shape.Size() * w[0].Out * w[1].Out, Args: &device.Args{Shape: shape, Window: w}}
		strides := randomOperand(rnd, &cmd, 1, dt, append(slices.Clone(shape), w[0].In, w[1].In))
		var results [3]*device.Buffer
		for i, k := range []*device.Kernel{maxOf, sumOf, argMax} {
			cmd.Kernel = k
			cmd.Buf[0] = device.HostBuffer(int64(cmd.N * k.Out.Size()))
			results[i] = cmd.Buf[0]
			if err := Run(&cmd); err != nil {
				t.Fatal(err)
			}
		}
		i := 0
		for n := range shape[0] {
			for c := range shape[1] {
				for y := range w[0].Out {
					for x := range w[1].Out {
						greatest, sum, where := poolElement[T](&cmd, w, strides, n, c, y, x)
						for r, want := range []uint64{kernel.Bits(greatest), kernel.Bits(sum), uint64(where)} {
							of := []device.DType{dt, dt, device.Int64}[r]
							if got := load(results[r], of, i); !sameBits(of, got, want) {
								t.Fatalf("%v, windows %+v, strides %v: element %d %d %d %d of the %s is %x, want %x", shape, *w, strides, n, c, y, x,
									[]string{"greatest", "sums", "places"}[r], got, want)
							}
						}
						i++
					}
				}
			}
		}
	}
}

// poolElement is what the elements of a Pool and of an ArgPool are by their definition.
func poolElement[T float32 | float64](cmd *device.Command, w *[2]device.Window, strides []int, n, c, y, x int) (greatest, sum T, where int64) {
	greatest, where = T(math.Inf(-1)), -1
	for p := range w[0].Size {
		for q := range w[1].Size {
			row, ok := w[0].At(y, p)
			col, isToo := w[1].At(x, q)
			if !ok || !isToo || row < 0 || row >= w[0].In || col < 0 || col >= w[1].In {
				continue
			}
			v := kernel.Value[T](load(cmd.Buf[1], device.DTypeOf[T](), cmd.Off[1]+at(strides, n, c, row, col)))
			sum += v
			if where < 0 || greatest == greatest && (v > greatest || v != v) {
				where = int64(row*w[1].In + col)
			}
			greatest = max(greatest, v)
		}
	}
	return greatest, sum, where
}

// Nothing times something is 0, and of a group without windows there is nothing.
func TestEmptyConv(t *testing.T) {
	everyISA(t, func(t *testing.T) {
		k := device.NewKernel("conv", device.Conv, nil, device.Float32, device.Float32, device.Float32)
		one := device.Window{In: 3, Out: 3, Size: 1, Stride: 1, Step: 1, Holes: 1}
		nothing := device.Window{In: 0, Out: 2, Size: 1, Stride: 1, Pad: 1, Step: 1, Holes: 1}
		for _, test := range []struct {
			shape  device.Shape
			c      int
			window [2]device.Window
		}{
			{device.Shape{2, 1, 9}, 0, [2]device.Window{one, one}},
			{device.Shape{2, 2, 9}, 3, [2]device.Window{nothing, one}},
			{device.Shape{2, 2, 1}, 3, [2]device.Window{one, nothing}},
			{device.Shape{0, 1, 9}, 3, [2]device.Window{one, one}},
			{device.Shape{2, 0, 9}, 3, [2]device.Window{one, one}},
			{device.Shape{2, 3, 0}, 3, [2]device.Window{one, one}},
		} {
			w := test.window
			n := test.shape.Size() * w[0].Out * w[1].Out
			c := device.Command{Kernel: k, N: n, Args: &device.Args{Shape: test.shape, Ints: []int{test.c}, Window: &w}}
			c.Buf = [4]*device.Buffer{device.HostBuffer(int64(4 * n)), device.HostBuffer(int64(4 * test.shape[0] * test.shape[1] * test.c * w[0].In * w[1].In)),
				device.HostBuffer(int64(4 * test.shape[1] * test.shape[2] * test.c * w[0].Size * w[1].Size))}
			got := device.Slice[float32](c.Buf[0], 0, n)
			fillSlice(got, 7)
			fillSlice(device.Slice[float32](c.Buf[2], 0, int(c.Buf[2].Bytes/4)), 1)
			if err := Run(&c); err != nil {
				t.Fatal(err)
			}
			if slices.ContainsFunc(got, func(v float32) bool { return v != 0 }) {
				t.Errorf("%v of %d channels, windows %+v: %v", test.shape, test.c, w, got)
			}
		}
	})
}

// An operand that reaches outside of its buffer is found before anything is written.
func TestConvStaysInBuffers(t *testing.T) {
	w := [2]device.Window{{In: 4, Out: 3, Size: 2, Stride: 1, Step: 1, Holes: 1}, {In: 4, Out: 3, Size: 2, Stride: 1, Step: 1, Holes: 1}}
	k := device.NewKernel("conv", device.Conv, nil, device.Float32, device.Float32, device.Float32)
	for _, short := range []int{0, 1, 2} {
		c := device.Command{Kernel: k, N: 2 * 5 * 9, Args: &device.Args{Shape: device.Shape{2, 1, 5}, Ints: []int{3}, Window: &w}}
		for i, n := range []int{2 * 5 * 9, 2 * 3 * 16, 5 * 3 * 4} {
			if i == short {
				n--
			}
			c.Buf[i] = device.HostBuffer(int64(4 * n))
		}
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("operand %d is short: no panic", short)
				}
			}()
			Run(&c)
		}()
	}
	p := device.Command{Kernel: device.NewKernel("max", device.Pool, kernel.ReduceMax, device.Float32, device.Float32), N: 9,
		Buf: [4]*device.Buffer{device.HostBuffer(36), device.HostBuffer(60)}, Args: &device.Args{Shape: device.Shape{}, Window: &w}}
	defer func() {
		if recover() == nil {
			t.Error("a short plane: no panic")
		}
	}()
	Run(&p)
}

// However many workers there are, and whatever is computed at once, the bits are the same.
func TestConvBySeveralWorkers(t *testing.T) {
	everyISA(t, func(t *testing.T) {
		rnd := newRand(t)
		k := device.NewKernel("conv", device.Conv, nil, device.Float32, device.Float32, device.Float32)
		defer func(old int) { grain = old }(grain)
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
		for range 6 {
			w := &[2]device.Window{randomWindow(rnd, 10), randomWindow(rnd, 20)}
			shape := device.Shape{1 + rnd.IntN(9), 1 + rnd.IntN(2), 1 + rnd.IntN(40)}
			c := device.Command{Kernel: k, N: shape.Size() * w[0].Out * w[1].Out, Args: &device.Args{Shape: shape, Ints: []int{1 + rnd.IntN(20)}, Window: w}}
			randomOperand(rnd, &c, 1, device.Float32, device.Shape{shape[0], shape[1], c.Args.Ints[0], w[0].In, w[1].In})
			randomOperand(rnd, &c, 2, device.Float32, device.Shape{shape[1], shape[2], c.Args.Ints[0], w[0].Size, w[1].Size})
			var want []float32
			for _, workers := range []int{1, 2, 7} {
				runtime.GOMAXPROCS(workers)
				grain = 1000 / workers
				c.Buf[0] = device.HostBuffer(int64(4 * c.N))
				if err := Run(&c); err != nil {
					t.Fatal(err)
				}
				got := device.Slice[float32](c.Buf[0], 0, c.N)
				if want == nil {
					want = got
				}
				for i, v := range got {
					if !sameBits(device.Float32, kernel.Bits(v), kernel.Bits(want[i])) {
						t.Fatalf("%v, windows %+v: element %d is %v by %d workers, %v by one", shape, *w, i, v, workers, want[i])
					}
				}
			}
		}
	})
}
