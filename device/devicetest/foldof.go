package devicetest

import (
	"math"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/kernel"
)

// testReduceOf folds expressions of several inputs.
func testReduceOf(s *suite) {
	for range 12 {
		reduceOf[float32](s)
		reduceOf[float64](s)
		reduceOf[int64](s)
	}
}

func reduceOf[T number](s *suite) {
	if lacks[T](s) {
		return
	}
	dt := device.DTypeOf[T]()
	x, y, z := kernel.Arg(0, dt), kernel.Arg(1, dt), kernel.Arg(2, dt)
	for _, test := range []struct {
		by     kernel.Reducer
		e      *kernel.Expr
		inputs int
		f      func(x, y, z T) T // the expression, each step rounded
	}{
		{kernel.ReduceSum, x, 1, func(x, _, _ T) T { return x }},
		{kernel.ReduceSum, kernel.Mul(x, y), 2, func(x, y, _ T) T { return x * y }},
		{kernel.ReduceSum, kernel.Mul(x, x), 1, func(x, _, _ T) T { return x * x }},
		{kernel.ReduceMax, kernel.Sub(kernel.Mul(x, y), kernel.Mul(x, z)), 3, func(x, y, z T) T { return T(x*y) - T(x*z) }},
		{kernel.ReduceSum, kernel.Add(kernel.Mul(kernel.Sub(x, y), kernel.Const(3, dt)), z), 3, func(x, y, z T) T { return T(T(x-y)*3) + z }},
	} {
		k := device.NewKernel("fold of "+test.e.String(), device.Reduce, kernel.FoldOf{By: test.by, Expr: test.e}, dt, []device.DType{dt, dt, dt}[:test.inputs]...)
		c, elements := reduction(s, ordinary[T])
		c.Kernel = k
		in := [3][][]T{elements, elements, elements}
		for i := 1; i < test.inputs; i++ {
			in[i] = over(s, &c, i+1, ordinary[T])
		}
		for i, got := range compute[T](s, c) {
			list, sum, size := make([]T, len(elements[i])), 0.0, 0.0
			for j := range list {
				list[j] = test.f(in[0][i][j], in[1][i][j], in[2][i][j])
				sum += float64(list[j])
				size += math.Abs(float64(list[j]))
			}
			if want := kernel.Fold(test.by, list); !same(got, want) {
				s.Fatalf("%s by %v of %d elements of shape %v, %d kept, strides %v, is %v, want %v", k.Name, test.by, len(list), c.Args.Shape, c.Args.Kept, c.Args.Strides, got, want)
			}
			if bound := float64(len(list)) * (epsilon[T]() + 0x1p-53) * size; test.by == kernel.ReduceSum && math.Abs(float64(got)-sum) > bound {
				s.Fatalf("%s of %d elements adds up to %v, want %v within %v", k.Name, len(list), got, sum, bound)
			}
		}
	}
	// An expression from numbers to bools.
	c, elements := reduction(s, ordinary[T])
	c.Kernel = device.NewKernel("all less", device.Reduce, kernel.FoldOf{By: kernel.ReduceAll, Expr: kernel.Lt(x, y)}, device.Bool, dt, dt)
	others := over(s, &c, 2, func(s *suite, n int) []T {
		list := ordinary[T](s, n)
		for i := range list {
			list[i] += 3
		}
		return list
	})
	for i, got := range compute[bool](s, c) {
		want := true
		for j, v := range elements[i] {
			want = want && v < others[i][j]
		}
		if got != want {
			s.Fatalf("whether %v are all less than %v: %v, want %v", elements[i], others[i], got, want)
		}
	}
}

// over makes operand i of a Map or Reduce command, the first that it has not yet. It returns the elements for each
// result.
func over[T device.Element](s *suite, c *device.Command, i int, values func(*suite, int) []T) (elements [][]T) {
	shape, kept := c.Args.Shape, c.Args.Kept
	strides, span := s.view(shape)
	given, off := strides, s.rnd.IntN(5)
	if s.rnd.IntN(3) == 0 {
		given, strides, span = nil, shape.Strides(), shape.Size()
	}
	data := values(s, off+span)
	if i < device.MaxOperands {
		c.Buf[i], c.Off[i], c.Args.Strides[i] = put(s, data), off, given
	} else {
		c.Args.Parts = append(c.Args.Parts, device.Part{Buf: put(s, data), Off: off, Strides: given})
	}
	walk(shape[:kept], func(outer []int) {
		var x []T
		walk(shape[kept:], func(inner []int) {
			x = append(x, data[off+at(outer, strides[:kept])+at(inner, strides[kept:])])
		})
		elements = append(elements, x)
	})
	return elements
}
