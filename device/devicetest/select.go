package devicetest

import (
	"errors"
	"fmt"
	"math"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/kernel"
)

func testArgReduce(s *suite) {
	argReduce(s, ordinary[float32])
	argReduce(s, ordinary[float64])
	argReduce(s, ordinary[int64])
	argReduce(s, edges[float32])
	argReduce(s, edges[float64])
	argReduce(s, func(s *suite, n int) []int64 {
		x := make([]int64, n)
		for i := range x {
			x[i] = intEdges[s.rnd.IntN(len(intEdges))]
		}
		return x
	})
}

// edges returns n numbers, many of them equal, some of them zeros of either sign, infinities or NaN.
func edges[T float32 | float64](s *suite, n int) []T {
	few := []float64{0, negativeZero, 1, 1, -1, -1, math.Inf(1), math.Inf(-1)}
	if s.rnd.IntN(2) == 0 {
		few = append(few, math.NaN())
	}
	x := make([]T, n)
	for i := range x {
		x[i] = T(few[s.rnd.IntN(len(few))])
	}
	return x
}

func argReduce[T number](s *suite, values func(*suite, int) []T) {
	if lacks[T](s) {
		return
	}
	dt := device.DTypeOf[T]()
	for _, r := range []kernel.Reducer{kernel.ReduceMax, kernel.ReduceMin} {
		k := device.NewKernel("arg"+r.String(), device.ArgReduce, r, device.Int64, dt)
		sign := 1.0
		if r == kernel.ReduceMin {
			sign = -1
		}
		for range 25 {
			c, elements := reduction(s, values)
			c.Kernel = k
			for i, got := range compute[int64](s, c) {
				want := -1
				for j, v := range elements[i] {
					if want < 0 {
						want = j
						continue
					}
					best := elements[i][want]
					if best == best && (v != v || compare(v, best)*sign > 0) {
						want = j
					}
				}
				if got != int64(want) {
					s.Fatalf("%s of %v %v is %d, want %d", k.Name, dt, elements[i], got, want)
				}
			}
		}
	}
}

// compare is 1 if x is greater than y, -1 if it is less, otherwise 0.
func compare[T number](x, y T) float64 {
	switch {
	case x > y:
		return 1
	case x < y:
		return -1
	}
	return 0
}

func testScan(s *suite) {
	scan(s, kernel.ReduceSum, ordinary[float32], 0, func(x, y float32) float32 { return x + y })
	scan(s, kernel.ReduceSum, ordinary[float64], 0, func(x, y float64) float64 { return x + y })
	scan(s, kernel.ReduceSum, ordinary[int64], 0, func(x, y int64) int64 { return x + y })
	scan(s, kernel.ReduceProd, ordinary[int64], 1, func(x, y int64) int64 { return x * y })
	scan(s, kernel.ReduceMax, edges[float32], float32(math.Inf(-1)), func(x, y float32) float32 { return max(x, y) })
	scan(s, kernel.ReduceMin, ordinary[float64], math.Inf(1), func(x, y float64) float64 { return min(x, y) })
	scan(s, kernel.ReduceAny, bools, false, func(x, y bool) bool { return x || y })
}

func scan[T device.Element](s *suite, r kernel.Reducer, values func(*suite, int) []T, identity T, f func(x, y T) T) {
	if lacks[T](s) {
		return
	}
	dt := device.DTypeOf[T]()
	k := device.NewKernel("scan "+r.String(), device.Scan, r, dt, dt)
	for range 20 {
		c, elements := reduction(s, values)
		c.Kernel, c.N = k, c.Args.Shape.Size()
		back := s.rnd.IntN(2)
		c.Args.Ints = []int{back}
		c.Args.Strides[0] = s.order(c.Args.Shape, c.Args.Kept)
		got := inOrder(compute[T](s, c), c.Args.Shape, c.Args.Strides[0])
		for _, x := range elements {
			acc := identity
			for i := range x {
				if back == 1 {
					i = len(x) - 1 - i
				}
				if acc = f(acc, x[i]); !same(got[i], acc) {
					s.Fatalf("%s of %v, back %d: element %d is %v, want %v", k.Name, x, back, i, got[i], acc)
				}
			}
			got = got[len(x):]
		}
	}
}

func testArgSort(s *suite) {
	for range 20 {
		argSort(s, ordinary[float32])
		argSort(s, ordinary[float64])
		argSort(s, ordinary[int64])
		argSort(s, edges[float32])
		argSort(s, edges[float64])
		argSort(s, someFloats[float32])
		argSort(s, someFloats[float64])
		argSort(s, someInts)
	}
}

// someFloats returns n numbers of many magnitudes, and edges.
func someFloats[T float32 | float64](s *suite, n int) []T {
	x := floats[T](s, n)
	s.rnd.Shuffle(len(x), func(i, j int) { x[i], x[j] = x[j], x[i] })
	return x[:n]
}

func someInts(s *suite, n int) []int64 {
	x := make([]int64, n)
	for i := range x {
		if x[i] = intEdges[s.rnd.IntN(len(intEdges))]; s.rnd.IntN(2) == 0 {
			x[i] = int64(s.rnd.Uint64() >> s.rnd.IntN(64))
		}
	}
	return x
}

// argSort checks that each element in the result comes after the one before it, and that all elements
// that are not in the result come after its last.
func argSort[T number](s *suite, values func(*suite, int) []T) {
	if lacks[T](s) {
		return
	}
	dt := device.DTypeOf[T]()
	for _, descending := range []bool{false, true} {
		c, elements := reduction(s, values)
		kept, n := c.Args.Kept, c.Args.Shape[c.Args.Kept:].Size()
		k := n
		switch s.rnd.IntN(4) {
		case 0:
			k = s.rnd.IntN(n + 1)
		case 1, 2:
			k = min(n, 1+s.rnd.IntN(5))
		}
		shape := append(c.Args.Shape[:kept:kept], k)
		c.Kernel, c.N = device.NewKernel("argsort", device.ArgSort, nil, device.Int64, dt), shape.Size()
		c.Args.Ints = []int{k, 0}
		if descending {
			c.Args.Ints[1] = 1
		}
		c.Args.Strides[0] = s.order(shape, kept)
		got := inOrder(compute[int64](s, c), shape, c.Args.Strides[0])
		if k == 0 {
			continue
		}
		for _, x := range elements {
			isAfter := func(i, j int64) bool { // whether element i comes after element j
				a, b := x[i], x[j]
				switch {
				case a != a && b != b || a == b:
					return i > j
				case a != a || b != b:
					return a != a
				}
				return a > b != descending
			}
			order := got[:k]
			got = got[k:]
			isChosen := make([]bool, n)
			for place, i := range order {
				if i < 0 || i >= int64(n) || isChosen[i] {
					s.Fatalf("element %d of the order is %d, again or out of range", place, i)
				}
				isChosen[i] = true
				if place > 0 && !isAfter(i, order[place-1]) {
					s.Fatalf("%v, descending %v, first %d of %d: %v, element %d, comes after %v, element %d", dt, descending, k, n, x[i], i, x[order[place-1]], order[place-1])
				}
			}
			for i, was := range isChosen {
				if !was && !isAfter(int64(i), order[k-1]) {
					s.Fatalf("%v, descending %v, first %d of %d: %v, element %d, is left out", dt, descending, k, n, x[i], i)
				}
			}
		}
	}
}

func testBatchedMatMul(s *suite) {
	batchedMatMul[float32](s)
	batchedMatMul[float64](s)
	batchedMatMul[int64](s)
}

// batchedMatMul compares each product of a command with the same product in a command of its own.
func batchedMatMul[T number](s *suite) {
	if lacks[T](s) {
		return
	}
	k := kernelFor(device.MatMul, device.DTypeOf[T]())
	for range 15 {
		m, n, depth := 1+s.rnd.IntN(9), 1+s.rnd.IntN(9), 1+s.rnd.IntN(20)
		switch s.rnd.IntN(5) {
		case 0:
			m = 1
		case 1:
			n = 1
		}
		batch := make(device.Shape, 1+s.rnd.IntN(2))
		for i := range batch {
			batch[i] = 1 + s.rnd.IntN(4)
		}
		c := device.Command{Kernel: k, N: batch.Size() * m * n, Args: &device.Args{Shape: batch, Ints: []int{m, n, depth}}}
		var strides [3][]int
		for i, size := range map[int][2]int{1: {m, depth}, 2: {depth, n}} {
			full := append(append(device.Shape{}, batch...), size[0], size[1])
			span := full.Size()
			strides[i] = full.Strides()
			if s.rnd.IntN(3) > 0 {
				strides[i], span = s.view(full)
				c.Args.Strides[i] = strides[i]
			}
			c.Off[i] = s.rnd.IntN(3)
			c.Buf[i] = put(s, ordinary[T](s, c.Off[i]+span))
		}
		got := compute[T](s, c)
		walk(batch, func(index []int) {
			one := c
			one.N = m * n
			one.Args = &device.Args{Ints: c.Args.Ints}
			for i := 1; i < 3; i++ {
				one.Off[i] += at(index, strides[i][:len(batch)])
				one.Args.Strides[i] = strides[i][len(batch):]
			}
			for i, want := range compute[T](s, one) {
				if !same(got[i], want) {
					s.Fatalf("%dx%dx%d, batch %v, strides %v %v: element %d of product %v is %v, alone %v", m, n, depth, batch, strides[1], strides[2], i, index, got[i], want)
				}
			}
			got = got[m*n:]
		})
	}
}

// A chosen is a random Gather command without its kernel and output, with its data and indices. All
// indices are in range.
type chosen[T device.Element] struct {
	device.Command
	data    []T
	indices []int64
	strides []int // of the data
	length  int
	step    int
}

func choose[T device.Element](s *suite, values func(*suite, int) []T) chosen[T] {
	shape := s.shape()
	c := chosen[T]{Command: device.Command{N: shape.Size(), Args: &device.Args{Shape: shape}}}
	var span int
	c.strides, span = s.view(shape)
	c.length, c.step = 1+s.rnd.IntN(6), span
	if s.rnd.IntN(2) == 0 && len(shape) > 0 { // an index selects a row, as in an embedding
		split := s.rnd.IntN(len(shape))
		c.strides = append(make([]int, split), shape[split:].Strides()...)
		span = max(1, shape[split:].Size())
		c.step = span
	}
	c.Off[1], c.Off[2] = s.rnd.IntN(4), s.rnd.IntN(4)
	c.data = values(s, c.Off[1]+span*c.length)
	indexStrides, indexSpan := s.view(shape)
	if split := s.rnd.IntN(len(shape) + 1); s.rnd.IntN(2) == 0 { // one index is for all of the last axes
		clear(indexStrides[split:])
	}
	c.indices = make([]int64, c.Off[2]+indexSpan)
	c.Args.Ints = []int{c.length, c.step, s.rnd.IntN(2)}
	least := c.Args.LeastIndex()
	for i := range c.indices {
		c.indices[i] = least + s.rnd.Int64N(int64(c.length)-least)
	}
	c.Buf[1], c.Buf[2] = put(s, c.data), put(s, c.indices)
	c.Args.Strides[1], c.Args.Strides[2] = c.strides, indexStrides
	return c
}

// place is where in the data the element for this index of the space lies.
func (c *chosen[T]) place(index []int) int {
	i := int(c.indices[c.Off[2]+at(index, c.Args.Strides[2])])
	if i < 0 {
		i += c.length
	}
	return at(index, c.strides) + i*c.step
}

func testGather(s *suite) {
	for range 25 {
		gather(s, ordinary[float32])
		gather(s, ordinary[float64])
		gather(s, ordinary[int64])
		gather(s, bools)
	}
}

func gather[T device.Element](s *suite, values func(*suite, int) []T) {
	dt := device.DTypeOf[T]()
	c := choose(s, values)
	c.Kernel = device.NewKernel("gather", device.Gather, nil, dt, dt, device.Int64)
	got := compute[T](s, c.Command)
	k := 0
	walk(c.Args.Shape, func(index []int) {
		if want := c.data[c.Off[1]+c.place(index)]; !same(got[k], want) {
			s.Fatalf("%v of shape %v, strides %v, by indices with strides %v: element %v is %v, want %v", dt, c.Args.Shape, c.strides, c.Args.Strides[2], index, got[k], want)
		}
		k++
	})
}

func testScatterAdd(s *suite) {
	for range 25 {
		scatterAdd[float32](s)
		scatterAdd[float64](s)
		scatterAdd[int64](s)
	}
}

func scatterAdd[T number](s *suite) {
	if lacks[T](s) {
		return
	}
	dt := device.DTypeOf[T]()
	c := choose(s, ordinary[T])
	shape := c.Args.Shape
	want := make([]T, len(c.data)-c.Off[1])
	c.Args.Strides[0] = c.strides
	var span int
	other := shape.Strides()
	if c.Args.Strides[1], span = nil, shape.Size(); s.rnd.IntN(2) == 0 {
		other, span = s.view(shape)
		c.Args.Strides[1] = other
	}
	data := ordinary[T](s, c.Off[1]+span)
	c.Buf[1], c.N = put(s, data), len(want)
	walk(shape, func(index []int) { want[c.place(index)] += data[c.Off[1]+at(index, other)] })
	c.Kernel = device.NewKernel("scatteradd", device.ScatterAdd, nil, dt, dt, device.Int64)
	for i, got := range compute[T](s, c.Command) {
		if !same(got, want[i]) {
			s.Fatalf("%v of shape %v, strides %v, by indices with strides %v: element %d is %v, want %v", dt, shape, c.strides, c.Args.Strides[2], i, got, want[i])
		}
	}
}

// testIndexErrors gives commands indices that are out of range. They must fail, not take the nearest
// element, and say which index it was.
func testIndexErrors(s *suite) {
	const length = 3
	for _, code := range []device.Code{device.Gather, device.ScatterAdd} {
		k := device.NewKernel(code.String(), code, nil, device.Float32, device.Float32, device.Int64)
		for _, test := range []struct {
			bad, good int64
			classes   int
		}{
			{length, -length, 0}, {-length - 1, -1, 0}, {math.MaxInt64, -length, 0}, {math.MinInt64, length - 1, 0},
			{-1, 0, 1}, {-length, length - 1, 1}, {length, 0, 1}, {math.MinInt64, 0, 1},
		} {
			bad := test.bad
			c := device.Command{Kernel: k, N: 4 * 2, Args: &device.Args{Shape: device.Shape{4, 2}, Ints: []int{length, 2, test.classes}}}
			c.Args.Strides = [4][]int{{0, 1}, {0, 1}, {1, 0}}
			if code == device.ScatterAdd {
				c.N, c.Args.Strides[1] = length*2, nil
			}
			c.Buf = [4]*device.Buffer{s.alloc(4 * 8), put(s, make([]float32, 8)), put(s, []int64{0, test.good, bad, bad - 1})}
			var at *device.IndexError
			if err := s.try(c); !errors.As(err, &at) || at.Index != bad || at.Length != length {
				s.Errorf("%v with index %d, Args.Ints %v: error %v", code, bad, c.Args.Ints, err)
			} else if want := fmt.Sprintf("index %d is out of range of an axis of length %d", bad, length); at.Error() != want {
				s.Errorf("the error is %q, want %q", at, want)
			}
		}
	}
}
