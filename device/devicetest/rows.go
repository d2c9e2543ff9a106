package devicetest

import (
	"math"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/kernel"
)

func testRows(s *suite) {
	for _, f := range kernel.RowFuncs() {
		for range 12 {
			rowsOf(s, f, ordinary[float32])
			rowsOf(s, f, ordinary[float64])
			rowsOf(s, f, someFloats[float32])
			rowsOf(s, f, edges[float64])
		}
	}
}

// rowsOf compares the rows of a random command with package kernel's, bit for bit. It also compares rows of ordinary
// numbers with the definition in float64.
func rowsOf[T float32 | float64](s *suite, f kernel.RowFunc, values func(*suite, int) []T) {
	if lacks[T](s) {
		return
	}
	dt := device.DTypeOf[T]()
	c, elements := reduction(s, values)
	kept := c.Args.Kept
	n := c.Args.Shape[kept:].Size()
	c.N, c.Args.Strides[0] = c.Args.Shape.Size(), s.order(c.Args.Shape, kept)
	eps := T(0.01)
	c.Imm[0] = kernel.Bits(eps)
	in := []device.DType{dt}
	var vectors [2][]T
	if f.Norms() {
		for i := range s.rnd.IntN(3) {
			span := n
			strides := c.Args.Shape[kept:].Strides()
			if s.rnd.IntN(2) == 0 {
				strides, span = s.view(c.Args.Shape[kept:])
				c.Args.Strides[i+2] = strides
			}
			c.Off[i+2] = s.rnd.IntN(3)
			data := ordinary[T](s, c.Off[i+2]+span)
			c.Buf[i+2] = put(s, data)
			vectors[i] = []T{}
			walk(c.Args.Shape[kept:], func(index []int) {
				vectors[i] = append(vectors[i], data[c.Off[i+2]+at(index, strides)])
			})
			in = append(in, dt)
		}
	}
	c.Kernel = device.NewKernel(f.String(), device.Rows, f, dt, in...)
	got := inOrder(compute[T](s, c), c.Args.Shape, c.Args.Strides[0])
	for _, x := range elements {
		want := make([]T, n)
		kernel.Row(f, want, x, eps, vectors[0], vectors[1])
		most := spread(x)
		for i, v := range rowInFloat64(f, x, float64(eps), vectors[0], vectors[1]) {
			if !same(got[i], want[i]) {
				s.Fatalf("%v of %v, %d elements of shape %v, strides %v to %v: element %d is %v, want %v", f, dt, n, c.Args.Shape, c.Args.Strides[1], c.Args.Strides[0], i, got[i], want[i])
			}
			if bound := rowBound(f, x, most, float64(eps), i, v, vectors[0], vectors[1]); most < 20 && math.Abs(float64(got[i])-v) > bound {
				s.Fatalf("%v of %v: element %d of %d is %v, want %v within %v", f, dt, i, n, got[i], v, bound)
			}
		}
		got = got[n:]
	}
}

// rowBound is how far element i of f of x may be from v, its value in float64. most is the spread of x.
func rowBound[T float32 | float64](f kernel.RowFunc, x []T, most, eps float64, i int, v float64, gain, bias []T) float64 {
	bound := 40 * epsilon[T]() * (1 + math.Abs(v)) * (1 + float64(len(x))/16)
	if !f.Norms() {
		return bound
	}
	// The rounding errors of the mean, the differences to it and their squares are relative to the
	// greatest element. They are then divided by the root of eps or more.
	factor := 1.0
	if gain != nil {
		factor += math.Abs(float64(gain[i]))
	}
	if bias != nil {
		factor += math.Abs(float64(bias[i]))
	}
	return bound * factor * (1 + most/math.Sqrt(eps))
}

// spread is the greatest absolute value in x, or NaN if x has a NaN.
func spread[T float32 | float64](x []T) float64 {
	most := 0.0
	for _, v := range x {
		most = max(most, math.Abs(float64(v)))
	}
	return most
}

// rowInFloat64 is f of x by its definition.
func rowInFloat64[T float32 | float64](f kernel.RowFunc, x []T, eps float64, gain, bias []T) []float64 {
	mean, sum := 0.0, 0.0
	for _, v := range x {
		mean += float64(v) / float64(len(x))
		sum += math.Exp(float64(v))
	}
	if f == kernel.RMSNorm {
		mean = 0
	}
	variance := 0.0
	for _, v := range x {
		variance += (float64(v) - mean) * (float64(v) - mean) / float64(len(x))
	}
	y := make([]float64, len(x))
	for i, v := range x {
		switch f {
		case kernel.Softmax:
			y[i] = math.Exp(float64(v)) / sum
		case kernel.LogSoftmax:
			y[i] = float64(v) - math.Log(sum)
		default:
			y[i] = (float64(v) - mean) / math.Sqrt(variance+eps)
			if gain != nil {
				y[i] *= float64(gain[i])
			}
			if bias != nil {
				y[i] += float64(bias[i])
			}
		}
	}
	return y
}

// testCopyTo copies views to a part of a larger tensor, and checks that the rest stays as it is.
func testCopyTo(s *suite) {
	for range 40 {
		copyTo(s, ordinary[float32])
		copyTo(s, ordinary[float64])
		copyTo(s, bools)
	}
	for _, shape := range []device.Shape{{130, 70}, {65, 3, 67}, {3, 64, 9}, {200, 8}} { // more than a block
		copyOf(s, shape, ordinary[float32])
		copyOf(s, shape, ordinary[int64])
		copyOf(s, shape, bools)
	}
}

func copyTo[T device.Element](s *suite, values func(*suite, int) []T) { copyOf(s, s.shape(), values) }

func copyOf[T device.Element](s *suite, shape device.Shape, values func(*suite, int) []T) {
	from, span := s.view(shape)
	whole := append(device.Shape{}, shape...)
	for i := range whole {
		whole[i] += s.rnd.IntN(3)
	}
	c := device.Command{Kernel: kernelFor(device.Copy, device.DTypeOf[T]()), N: shape.Size(), Args: &device.Args{Shape: shape}}
	c.Args.Strides[0], c.Args.Strides[1] = whole.Strides(), from
	if s.rnd.IntN(3) == 0 {
		c.Args.Strides[1], from, span = nil, shape.Strides(), shape.Size()
	}
	c.Off[0], c.Off[1] = s.rnd.IntN(5), s.rnd.IntN(5)
	data, want := values(s, c.Off[1]+span), values(s, c.Off[0]+whole.Size()+3)
	c.Buf[0], c.Buf[1] = put(s, want), put(s, data)
	s.do(c)
	walk(shape, func(index []int) {
		want[c.Off[0]+at(index, c.Args.Strides[0])] = data[c.Off[1]+at(index, from)]
	})
	for i, got := range get[T](s, c.Buf[0], len(want)) {
		if !same(got, want[i]) {
			s.Fatalf("copy of shape %v, strides %v, to strides %v: element %d is %v, want %v", shape, from, c.Args.Strides[0], i, got, want[i])
		}
	}
}
