package kernel

import (
	"testing"

	"github.com/asyncgen/asyncgen/device"
)

// The work of commands of all codes, counted by hand.
func TestWorkOf(t *testing.T) {
	const f4, f8, i8, b1 = device.Float32, device.Float64, device.Int64, device.Bool
	x, y := Arg(0, f4), Arg(1, f4)
	sigmoid := Div(Const(1, f4), Add(Const(1, f4), Exp(Neg(x)))) // four operations
	row := device.Shape{3, 5}
	rows := func(body device.Body, in ...device.DType) device.Command {
		c := device.Command{Kernel: device.NewKernel("k", device.Rows, body, f4, in...), N: 15, Args: &device.Args{Shape: row, Kept: 1}}
		c.Args.Strides[2], c.Args.Strides[3] = []int{1}, []int{1}
		return c
	}
	command := func(code device.Code, body device.Body, n int, args *device.Args, out device.DType, in ...device.DType) device.Command {
		return device.Command{Kernel: device.NewKernel("k", code, body, out, in...), N: n, Args: args}
	}
	strided := func(a device.Args, strides ...[]int) *device.Args {
		copy(a.Strides[1:], strides)
		return &a
	}
	tests := []struct {
		name string
		c    device.Command
		want Work
	}{
		{"map", command(device.Map, sigmoid, 10, nil, f4, f4), Work{40, 80}},
		{"map of two types", command(device.Map, Cast(Lt(x, y), f8), 10, nil, f8, f4, f4), Work{20, 160}},
		{"map of a shared part", command(device.Map, Mul(Exp(x), Exp(x)), 10, nil, f4, f4), Work{20, 80}},
		{"map of an operand that is broadcast", command(device.Map, Add(x, y), 15, strided(device.Args{Shape: row}, []int{5, 1}, []int{0, 1}), f4, f4, f4), Work{15, 4 * (15 + 15 + 5)}},
		{"map of one element for all", command(device.Map, Add(x, y), 15, strided(device.Args{Shape: row}, nil, []int{0, 0}), f4, f4, f4), Work{15, 4 * (15 + 15 + 1)}},
		{"map of nothing", command(device.Map, x, 0, strided(device.Args{Shape: device.Shape{0, 5}}, []int{0, 1}), f4, f4), Work{}},
		{"reduce", command(device.Reduce, ReduceSum, 3, &device.Args{Shape: row, Kept: 1}, f4, f4), Work{15, 4 * (3 + 15)}},
		{"reduce of an expression", command(device.Reduce, FoldOf{ReduceSum, Mul(x, y)}, 3, &device.Args{Shape: row, Kept: 1}, f4, f4, f4), Work{30, 4 * (3 + 30)}},
		{"argreduce", command(device.ArgReduce, ReduceMax, 3, &device.Args{Shape: row, Kept: 1}, i8, f4), Work{15, 3*8 + 15*4}},
		{"scan", command(device.Scan, ReduceSum, 15, &device.Args{Shape: row, Kept: 1, Ints: []int{0}}, f4, f4), Work{15, 120}},
		{"argsort", command(device.ArgSort, nil, 6, &device.Args{Shape: row, Kept: 1, Ints: []int{2, 0}}, i8, f4), Work{15 * 3, 6*8 + 15*4}},
		{"argsort of rows of one", command(device.ArgSort, nil, 3, &device.Args{Shape: device.Shape{3, 1}, Kept: 1, Ints: []int{1, 0}}, i8, f4), Work{0, 3*8 + 3*4}},
		{"softmax", rows(Softmax, f4), Work{75, 120}},
		{"logsoftmax", rows(LogSoftmax, f4), Work{75, 120}},
		{"layernorm", rows(LayerNorm, f4), Work{75, 120}},
		{"layernorm with gain and bias", rows(LayerNorm, f4, f4, f4), Work{105, 120 + 2*5*4}},
		{"rmsnorm with gain", rows(RMSNorm, f4, f4), Work{60, 120 + 5*4}},
		{"matmul", command(device.MatMul, nil, 6, &device.Args{Ints: []int{2, 3, 4}}, f4, f4, f4), Work{6 * 8, 4 * (6 + 8 + 12)}},
		{"matmul in batches with the same right side", command(device.MatMul, nil, 42, strided(device.Args{Shape: device.Shape{7}, Ints: []int{2, 3, 4}},
			[]int{8, 4, 1}, []int{0, 3, 1}), f4, f4, f4), Work{42 * 8, 4 * (42 + 56 + 12)}},
		{"matmul with an expression", command(device.MatMul, Max(Add(x, y), Const(0, f4)), 6, &device.Args{Ints: []int{2, 3, 4}}, f4, f4, f4, f4), Work{6 * 10, 4 * (6 + 8 + 12 + 3)}},
		// Two images of 5 x 5 with two groups of two input and three output channels. The windows are
		// 3 x 3, padded by one, in steps of two: 3 x 3 results.
		{"conv", command(device.Conv, nil, 2*2*3*9, &device.Args{Shape: device.Shape{2, 2, 3}, Ints: []int{2}, Window: &[2]device.Window{
			{In: 5, Out: 3, Size: 3, Stride: 2, Pad: 1, Step: 1, Holes: 1}, {In: 5, Out: 3, Size: 3, Stride: 2, Pad: 1, Step: 1, Holes: 1}}}, f4, f4, f4),
			Work{2 * (2 * 2 * 3 * 9) * 2 * 9, 4 * (2*2*3*9 + 2*2*2*25 + 2*3*2*9)}},
		// Along an axis with holes of one, 3 x 3 pairs of a result and a place of the window. The five
		// with an even sum are not in a hole.
		{"conv with holes", command(device.Conv, nil, 9, &device.Args{Shape: device.Shape{1, 1, 1}, Ints: []int{1}, Window: &[2]device.Window{
			{In: 3, Out: 3, Size: 3, Stride: 1, Step: 1, Holes: 2}, {In: 3, Out: 3, Size: 3, Stride: 1, Step: 1, Holes: 2}}}, f4, f4, f4),
			Work{2 * 25, 4 * (9 + 9 + 9)}},
		// Along an axis of 4, the windows are -1, 0, 1 and 1, 2, 3. The place -1 is padding, so 5 count.
		{"pool", command(device.Pool, ReduceMax, 5*4, &device.Args{Shape: device.Shape{5}, Window: &[2]device.Window{
			{In: 4, Out: 2, Size: 3, Stride: 2, Pad: 1, Step: 1, Holes: 1}, {In: 4, Out: 2, Size: 3, Stride: 2, Pad: 1, Step: 1, Holes: 1}}}, f4, f4),
			Work{5 * 25, 4 * (20 + 80)}},
		{"argpool", command(device.ArgPool, ReduceMax, 4, &device.Args{Shape: device.Shape{1}, Window: &[2]device.Window{
			{In: 4, Out: 2, Size: 2, Stride: 2, Step: 1, Holes: 1}, {In: 4, Out: 2, Size: 2, Stride: 2, Step: 1, Holes: 1}}}, i8, f4),
			Work{16, 4*8 + 16*4}},
		{"gather", command(device.Gather, nil, 15, strided(device.Args{Shape: row, Ints: []int{100, 5}}, []int{0, 1}, []int{1, 0}), f4, f4, i8), Work{0, 60 + 60 + 3*8}},
		{"scatteradd", command(device.ScatterAdd, nil, 50, strided(device.Args{Shape: row, Ints: []int{10, 5}}, nil, []int{1, 0}), f4, f4, i8), Work{15, 2*200 + 60 + 3*8}},
		{"copy", command(device.Copy, nil, 10, nil, b1, b1), Work{0, 20}},
		{"concat", command(device.Concat, nil, 10, &device.Args{Shape: device.Shape{2}, Parts: []device.Part{{N: 2}, {N: 3}}}, f4), Work{0, 80}},
		{"fill", command(device.Fill, nil, 10, nil, f8), Work{0, 80}},
		{"iota", command(device.Iota, nil, 10, nil, i8), Work{20, 80}},
		{"uniform", command(device.Random, Uniform, 10, nil, f4), Work{220, 40}},
		{"normal", command(device.Random, Normal, 10, nil, f8), Work{450, 80}},
		{"ints", command(device.Random, Ints, 10, &device.Args{Ints: []int{0, 6}}, i8), Work{420, 80}},
		{"math", command(device.Math, MathPow, 10, nil, f8, f8, f8), Work{10, 240}},
		{"host", command(device.Host, &HostFunc{}, 3*4, &device.Args{Ints: []int{3, 5, 2, 9}}, f8, f8, f8), Work{0, 8 * (3*4 + 3*5 + 3*2)}},
		{"upload", command(device.Upload, nil, 10, nil, f4, f4), Work{0, 80}},
		{"download", command(device.Download, nil, 10, nil, f4, f4), Work{0, 80}},
	}
	seen := map[string]bool{}
	for _, test := range tests {
		seen[test.c.Kernel.Code.String()] = true
		if got := WorkOf(&test.c); got != test.want {
			t.Errorf("%s: %+v, want %+v", test.name, got, test.want)
		}
	}
	for code := device.Code(0); code <= device.Download; code++ {
		if !seen[code.String()] {
			t.Errorf("the work of %v is not tested", code)
		}
	}
}
