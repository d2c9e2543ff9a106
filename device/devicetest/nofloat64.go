package devicetest

import (
	"errors"
	"slices"
	"strings"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/kernel"
)

// lacks reports whether T is float64 and the device says that it has no float64. In that case only
// testNoFloat64 tests commands that compute with T.
func lacks[T device.Element](s *suite) bool {
	return device.DTypeOf[T]() == device.Float64 && s.b.Caps().NoFloat64
}

// usesFloat64 reports whether e computes or reads a float64.
func usesFloat64(e *kernel.Expr) bool {
	return slices.ContainsFunc(e.Nodes(), func(x *kernel.Expr) bool { return x.DType() == device.Float64 })
}

// testNoFloat64 checks that a device without float64 refuses commands that compute with it, with an
// error that names the kernel, and then goes on. On other devices the same commands work.
func testNoFloat64(s *suite) {
	const n, f32, f64 = 6, device.Float32, device.Float64
	x, y := kernel.Arg(0, f64), kernel.Arg(1, f64)
	in, single, index, out := put(s, make([]float64, n)), put(s, make([]float32, n)), put(s, make([]int64, n)), s.alloc(8*n)
	row := &device.Args{Shape: device.Shape{n}, Kept: 0, Ints: []int{n, 0}}
	of := func(name string, code device.Code, body device.Body, to device.DType, args *device.Args, n int, from ...*device.Buffer) device.Command {
		types := make([]device.DType, len(from))
		for i, b := range from {
			types[i] = map[*device.Buffer]device.DType{in: f64, single: f32, index: device.Int64}[b]
		}
		c := device.Command{Kernel: device.NewKernel(name, code, body, to, types...), N: n, Args: args}
		copy(c.Buf[:], append([]*device.Buffer{out}, from...))
		return c
	}
	w := device.Window{In: n, Out: n, Size: 1, Stride: 1, Step: 1, Holes: 1}
	one := device.Window{In: 1, Out: 1, Size: 1, Stride: 1, Step: 1, Holes: 1}
	for _, c := range []device.Command{
		of("a sum of two", device.Map, kernel.Add(x, y), f64, nil, n, in, in),
		of("a comparison", device.Map, kernel.Lt(x, y), device.Bool, nil, n, in, in),
		of("from float32", device.Map, kernel.Cast(kernel.Arg(0, f32), f64), f64, nil, n, single),
		of("to float32", device.Map, kernel.Cast(x, f32), f32, nil, n, in),
		of("something in between", device.Map, kernel.Cast(kernel.Sqrt(kernel.Cast(kernel.Arg(0, f32), f64)), f32), f32, nil, n, single),
		of("a sum", device.Reduce, kernel.ReduceSum, f64, row, 1, in),
		of("where the most is", device.ArgReduce, kernel.ReduceMax, device.Int64, row, 1, in),
		of("sums up to each", device.Scan, kernel.ReduceSum, f64, row, n, in),
		of("an order", device.ArgSort, nil, device.Int64, row, n, in),
		of("a product", device.MatMul, nil, f64, &device.Args{Strides: [device.MaxOperands][]int{nil, {3, 1}, {2, 1}}, Ints: []int{2, 2, 3}}, 4, in, in),
		of("a convolution", device.Conv, nil, f64, &device.Args{Shape: device.Shape{1, 1, 1}, Ints: []int{1}, Window: &[2]device.Window{one, w},
			Strides: [device.MaxOperands][]int{nil, {n, n, n, n, 1}, {1, 1, 1, 1, 1}}}, n, in, in),
		of("random numbers", device.Random, kernel.Uniform, f64, nil, n),
	} {
		err := s.try(c)
		if !s.b.Caps().NoFloat64 {
			if err != nil {
				s.Errorf("%s: error %v", c.Kernel.Name, err)
			}
		} else if !errors.Is(err, device.ErrUnsupported) || !strings.Contains(err.Error(), c.Kernel.Name) || !strings.Contains(err.Error(), "float64") {
			s.Errorf("%s: error %v does not say that there is no float64", c.Kernel.Name, err)
		}
	}
	s.do(of("a sum of float32", device.Map, kernel.Add(kernel.Arg(0, f32), kernel.Arg(1, f32)), f32, nil, n, single, single))
}
