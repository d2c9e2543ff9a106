package tensor_test

import (
	"math"
	"strings"
	"testing"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/runtime/internal/engine"
	"github.com/asyncgen/asyncgen/runtime/op"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// A mistake panics at the call with the operation, the shapes and the types, before anything is enqueued or drawn.
func TestMistakes(t *testing.T) {
	e := engine.New(engine.Options{})
	defer tensor.SetEngine(e)()
	x := tensor.From([]float32{1, 2, 3, 4, 5, 6}, 2, 3)
	d := tensor.From([]float64{1, 2, 3})
	i := tensor.From([]int64{1, 2, 3})
	b := tensor.From([]bool{true, false, true})
	far, err := device.Open("sim:0")
	if err != nil {
		t.Fatal(err)
	}
	y := tensor.FromOn(far, []float32{1, 2, 3})
	g := tensor.NewGenerator(1)
	one, plane, square := tensor.Ones(1, 1), tensor.Ones(1, 1, 4, 4), tensor.Ones(1, 1, 3, 3)
	const many = math.MaxInt / 64 // elements can be addressed, but not its square
	if err := e.WaitAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	enqueued := e.Stats().Enqueued

	for _, c := range []struct {
		f    func()
		want string // the beginning of the message, after "tensor: "
	}{
		{func() { x.Add(tensor.From([]float32{1, 2})) }, "Add: " + op.MistakeBroadcast + ": float32[2 3], float32[2]"},
		{func() { tensor.Where(b, x, tensor.From([]float32{1, 2})) }, "Where: " + op.MistakeBroadcast + ": bool[3], float32[2 3], float32[2]"},
		{func() { x.Mul(d) }, "Mul: " + op.MistakeDTypes + ": float32[2 3], float64[3]"},
		{func() { tensor.Where(d, d, d) }, "Where: " + op.MistakeCondition + ": float64[3], float64[3], float64[3]"},
		{func() { tensor.Where(b, x, d) }, "Where: " + op.MistakeDTypes + ": bool[3], float32[2 3], float64[3]"},
		{func() { x.Sub(nil) }, "Sub: " + op.MistakeNil},
		{func() { tensor.Grad(x.Track().Sum(), nil) }, "Grad: " + op.MistakeNil},
		{func() { tensor.Grad(nil, x.Track()) }, "Grad: " + op.MistakeNil},
		{func() { tensor.NewParam(nil).Set(nil) }, "Set: " + op.MistakeNil},
		{func() { tensor.Wait(x, nil) }, "Wait: " + op.MistakeNil},
		{func() { x.Sub(y) }, "Sub: " + op.MistakeDevices + ": float32[2 3] on cpu, float32[3] on sim:0"},
		{func() { i.Exp() }, "Exp: " + op.MistakeType + " (it takes float32 or float64 or float16 or bfloat16: convert with As): int64[3]"},
		{func() { x.And(x) }, "And: " + op.MistakeType + " (it takes bool: convert with As): float32[2 3]"},
		{func() { i.AddScalar(0.5) }, "AddScalar: " + op.MistakeScalar + ": int64[3]"},
		{func() { i.AddScalar(math.NaN()) }, "AddScalar: " + op.MistakeScalar},
		{func() { i.MulScalar(1e19) }, "MulScalar: " + op.MistakeScalar},
		{func() { i.AddScalar(1<<53 + 1) }, "AddScalar: " + op.MistakeExact + ": FullInt, AddInt and the like take an int64: int64[3]"},
		{func() { i.GtScalar(-1 << 53) }, "GtScalar: " + op.MistakeExact},
		{func() { i.LtF64(tensor.Const(1 << 60)) }, "LtScalar: " + op.MistakeExact},
		{func() { i.EqScalar(0.5) }, "EqScalar: " + op.MistakeScalar},
		{func() { x.Sort(2, tensor.Ascending) }, "Sort: " + op.MistakeAxis},
		{func() { b.Sort(0, tensor.Ascending) }, "Sort: " + op.Unsupported(op.Ordered) + ": bool[3]"},
		{func() { b.TopK(1, 0, tensor.Ascending) }, "TopK: " + op.Unsupported(op.Ordered) + ": bool[3]"},
		{func() { b.Unique() }, "Unique: " + op.Unsupported(op.Ordered) + ": bool[3]"},
		{func() { b.Slice(0, 0, 0).Unique() }, "Unique: " + op.Unsupported(op.Ordered) + ": bool[0]"},
		{func() { x.IsClose(d, 0, 0) }, "IsClose: " + op.MistakeDTypes},
		{func() { x.AddInt(1) }, "AddInt: " + op.MistakeType + " (it takes int64: convert with As): float32[2 3]"},
		{func() { tensor.On(far).As(tensor.Int64).Full(1<<53, 2) }, "Full: " + op.MistakeExact},
		{func() { tensor.On(far).As(tensor.Int64).Full(0.5, 2) }, "Full: " + op.MistakeScalar + ": 0.5"},
		{func() { tensor.On(far).As(tensor.Int64).Scalar(math.NaN()) }, "Scalar: " + op.MistakeScalar},
		{func() { tensor.On(far).As(tensor.Int64).Arange(1<<53, 1<<53+9, 1) }, "Arange: " + op.MistakeExact},
		{func() { tensor.On(far).As(tensor.Int64).Linspace(0, 1<<60, 2) }, "Linspace: " + op.MistakeExact},
		{func() { tensor.FullInt(1, -1) }, "FullInt: " + op.MistakeShape},
		{func() { tensor.FullInt(1<<53 + 1).At() }, "At: " + op.MistakeExact + ", such as 9007199254740993: AtInt returns an int64: int64[]"},
		{func() { tensor.FullInt(math.MaxInt64).At() }, "At: " + op.MistakeExact},
		{func() { x.AtInt(0, 0) }, "AtInt: " + op.MistakeType},
		{func() { i.AtInt(3) }, "AtInt: " + op.MistakeRange + ": 3"},
		{func() { b.Sum() }, "Sum: " + op.MistakeType + " (it takes float32 or float64 or int64 or float16 or bfloat16: convert with As): bool[3]"},
		{func() { i.Mean() }, "Mean: " + op.MistakeType},
		{func() { x.Sum(2) }, "Sum: " + op.MistakeAxis + ": 2: float32[2 3]"},
		{func() { x.MaxKeep(-3) }, "MaxKeep: " + op.MistakeAxis + ": -3"},
		{func() { x.Sum(1, -1) }, "Sum: " + op.MistakeTwice + ": [1 -1]"},
		{func() { tensor.Zeros(0, 2).Min(0) }, "Min: " + op.MistakeEmpty + ": float32[0 2]"},
		// a mistake although the result would have no elements
		{func() { tensor.Zeros(0, 0).Max(0) }, "Max: " + op.MistakeEmpty + ": float32[0 0]"},
		{func() { x.MatMul(x) }, "MatMul: " + op.MistakeMatMul + ": float32[2 3], float32[2 3]"},
		{func() { x.Row(0).MatMul(x.Row(1)) }, "MatMul: " + op.MistakeRank},
		{func() { x.MatMul(d) }, "MatMul: " + op.MistakeDTypes},
		{func() { x.MatMul(y) }, "MatMul: " + op.MistakeDevices + ": float32[2 3] on cpu, float32[3] on sim:0"},
		{func() { x.MatMul(nil) }, "MatMul: " + op.MistakeNil},
		{func() { b.Reshape(1, 3).MatMul(b) }, "MatMul: " + op.MistakeType},
		{func() { x.Dot(x) }, "Dot: " + op.MistakeRank},
		{func() { d.Dot(d.Slice(0, 1, 3)) }, "Dot: " + op.MistakeMatMul},
		{func() { d.Dot(nil) }, "Dot: " + op.MistakeNil},
		{func() { x.Reshape(4) }, "Reshape: " + op.MistakeReshape + ": to [4]: float32[2 3]"},
		{func() { x.Reshape(-1, 4) }, "Reshape: " + op.MistakeReshape},
		{func() { x.Reshape(-1, -1) }, "Reshape: " + op.MistakeReshape},
		{func() { x.Transpose(0) }, "Transpose: " + op.MistakeRank},
		{func() { x.Transpose(0, 0) }, "Transpose: " + op.MistakeTwice},
		{func() { d.T() }, "T: " + op.MistakeRank},
		{func() { x.Slice(2, 0, 1) }, "Slice: " + op.MistakeAxis},
		{func() { x.Slice(1, 0, 4) }, "Slice: " + op.MistakeRange + ": 4"},
		{func() { x.Slice(1, 2, 1) }, "Slice: " + op.MistakeRange + ": from 2 to 1"},
		{func() { x.Row(2) }, "Row: " + op.MistakeRange},
		{func() { x.Sum().Row(0) }, "Row: " + op.MistakeRank},
		{func() { x.BroadcastTo(3, 3) }, "BroadcastTo: " + op.MistakeBroadcast + ": to [3 3]: float32[2 3]"},
		{func() { x.BroadcastTo(3) }, "BroadcastTo: " + op.MistakeBroadcast},
		{func() { x.BroadcastTo(-1, 2, 3) }, "BroadcastTo: " + op.MistakeShape},
		{func() { x.Unsqueeze(3) }, "Unsqueeze: " + op.MistakeAxis},
		{func() { x.Squeeze(0) }, "Squeeze: " + op.MistakeReshape},
		{func() { x.Dim(2) }, "Dim: " + op.MistakeAxis},
		{func() { x.As(99) }, "As: " + op.MistakeType},
		{func() { tensor.On(far).As(0) }, "As: " + op.MistakeType},
		{func() { x.Item() }, "Item: " + op.MistakeItem + ": float32[2 3]"},
		{func() { d.Sum().ItemInt() }, "ItemInt: " + op.MistakeType},
		{func() { tensor.ItemOf[int64](d.Sum()) }, "ItemOf: " + op.MistakeType},
		{func() { x.At(0) }, "At: " + op.MistakeRank + ": index [0]: float32[2 3]"},
		{func() { x.At(0, 3) }, "At: " + op.MistakeRange + ": 3"},
		{func() { x.Float64s() }, "Float64s: " + op.MistakeType + " (it takes float64: convert with As): float32[2 3]"},
		{func() { d.Matrix() }, "Matrix: " + op.MistakeRank},
		{func() { i.Reshape(1, 3).Matrix() }, "Matrix: " + op.MistakeType},
		{func() { tensor.FromOn(device.CPU(), []float32{}, 0, 2).Matrix() }, "Matrix: " + op.MistakeEmpty},
		{func() { tensor.From([]float32{1}, 2) }, "From: " + op.MistakeLength + ": 1 elements, want 2: float32[2]"},
		{func() { tensor.From([]float32{1}, -1) }, "From: " + op.MistakeShape + ": [-1]"},
		{func() { tensor.Zeros(math.MaxInt, 2) }, "Zeros: " + op.MistakeShape},
		{func() { tensor.Arange(0, 1, 0) }, "Arange: " + op.MistakeRange},
		{func() { tensor.ArangeInt(0, 1, 0) }, "ArangeInt: " + op.MistakeRange},
		{func() { tensor.ArangeInt(math.MinInt64, math.MaxInt64, 1) }, "ArangeInt: " + op.MistakeRange},
		{func() { tensor.Linspace(0, 1, -1) }, "Linspace: " + op.MistakeShape},
		{func() { tensor.Eye(-1) }, "Eye: " + op.MistakeShape},
		{func() { g.Rand(-1) }, "Rand: " + op.MistakeShape},
		{func() { g.RandInt(3, 3) }, "RandInt: " + op.MistakeRange},
		{func() { tensor.On(far).As(tensor.Int64).Rand(2) }, "Rand: " + op.MistakeType},
		{func() { plane.Conv2D(square, tensor.Conv{Dilation: tensor.Both(math.MaxInt)}) }, "Conv2D: " + op.MistakeWindow},
		{func() { plane.Conv2D(square, tensor.Conv{Padding: tensor.Both(math.MaxInt)}) }, "Conv2D: " + op.MistakeWindow},
		{func() { plane.Conv2D(square, tensor.Conv{Padding: tensor.Both(many)}) }, "Conv2D: " + op.MistakeShape},
		{func() { one.BroadcastTo(many, 1).Add(one.BroadcastTo(1, many)) }, "Add: " + op.MistakeShape},
		{func() { one.Slice(1, 0, 0).BroadcastTo(many, 0).MatMul(one.Slice(0, 0, 0).BroadcastTo(0, many)) }, "MatMul: " + op.MistakeShape},
		{func() { x.Sum().Backward() }, "Backward: " + op.MistakeGradient},
		{func() { x.Track().Exp().Backward() }, "Backward: " + op.MistakeItem},
		{func() { tensor.Grad(x.Track().Sum(), x) }, "Grad: " + op.MistakeGradient},
		{func() { i.Norm() }, "Norm: " + op.MistakeType + " (it takes float32 or float64 or float16 or bfloat16: convert with As): int64[3]"},
		{func() { i.AddScaledF64(nil, tensor.Const(1)) }, "AddScaled: " + op.MistakeNil},
		{func() { x.Take(0, d) }, "Take: " + op.MistakeIndices + ": float32[2 3], float64[3]"},
		{func() { y.Take(0, i) }, "Take: " + op.MistakeDevices + ": float32[3] on sim:0, int64[3] on cpu"},
		{func() { x.Take(0, nil) }, "Take: " + op.MistakeNil + ": float32[2 3]"},
		{func() { x.RowAt(d) }, "RowAt: " + op.MistakeIndices},
		{func() { x.RowAt(i) }, "RowAt: " + op.MistakeItem},
		{func() { x.TakeClasses(0, d) }, "TakeClasses: " + op.MistakeIndices},
		{func() { x.PickClasses(i) }, "PickClasses: " + op.MistakeBroadcast},
		{func() { x.Pick(b) }, "Pick: " + op.MistakeIndices},
		{func() { x.Pick(i) }, "Pick: " + op.MistakeBroadcast},
		{func() { x.Conv2D(nil, tensor.Conv{}) }, "Conv2D: " + op.MistakeNil + ": float32[2 3]"},
		{func() { x.Conv2D(x, tensor.Conv{}) }, "Conv2D: " + op.MistakeRank + " (it takes images [N C H W], or one [C H W], and a kernel [O C/groups KH KW]): float32[2 3], float32[2 3]"},
		{func() { x.Reshape(2, 1, 3).Conv2D(d.Reshape(1, 1, 1, 3), tensor.Conv{}) }, "Conv2D: " + op.MistakeDTypes},
		{func() { x.Reshape(2, 1, 3).Conv2D(y.Reshape(1, 1, 1, 3), tensor.Conv{}) }, "Conv2D: " + op.MistakeDevices},
		{func() { i.Reshape(1, 1, 3).Conv2D(i.Reshape(1, 1, 1, 3), tensor.Conv{}) }, "Conv2D: " + op.MistakeType},
		{func() { x.Reshape(2, 1, 3).Conv2D(x.Reshape(1, 1, 2, 3), tensor.Conv{}) }, "Conv2D: " + op.MistakeChannels},
		{func() { x.Reshape(2, 1, 3).Conv2D(x.Reshape(3, 1, 1, 2), tensor.Conv{Groups: 2}) }, "Conv2D: " + op.MistakeChannels},
		{func() { x.Reshape(2, 1, 3).Conv2D(x.Reshape(3, 2, 1, 1), tensor.Conv{Groups: -1}) }, "Conv2D: " + op.MistakeChannels},
		{func() { x.Reshape(1, 2, 3).Conv2D(x.Reshape(1, 1, 3, 2), tensor.Conv{}) }, "Conv2D: " + op.MistakeWindow + ": larger than the image with its padding, or empty: float32[1 2 3], float32[1 1 3 2]"},
		{func() { x.Reshape(1, 2, 3).Conv2D(x.Reshape(1, 1, 2, 3), tensor.Conv{Dilation: tensor.Both(2)}) }, "Conv2D: " + op.MistakeWindow},
		{func() { x.Reshape(1, 2, 3).Conv2D(tensor.Zeros(1, 1, 0, 1), tensor.Conv{}) }, "Conv2D: " + op.MistakeWindow},
		{func() { x.Reshape(1, 2, 3).Conv2D(x.Reshape(1, 1, 2, 3), tensor.Conv{Padding: tensor.Pair{0, -1}}) }, "Conv2D: " + op.MistakeWindow + ": strides and dilations are at least 1, paddings at least 0"},
		{func() { x.MaxPool2D(tensor.Pool{}) }, "MaxPool2D: " + op.MistakeWindow + ": windows and strides are at least 1, paddings at least 0 and below the window: float32[2 3]"},
		{func() { x.MaxPool2D(tensor.Pool{Window: tensor.Both(3)}) }, "MaxPool2D: " + op.MistakeWindow + ": larger than the plane with its padding: float32[2 3]"},
		{func() { x.MaxPool2D(tensor.Pool{Window: tensor.Both(2), Padding: tensor.Pair{0, 2}}) }, "MaxPool2D: " + op.MistakeWindow},
		{func() { x.Row(0).MaxPool2D(tensor.Pool{Window: tensor.Both(1)}) }, "MaxPool2D: " + op.MistakeRank},
		{func() { i.Reshape(1, 3).MaxPool2D(tensor.Pool{Window: tensor.Both(1)}) }, "MaxPool2D: " + op.MistakeType},
		{func() { tensor.Zeros(0, 1).MaxPool2D(tensor.Pool{Window: tensor.Both(2), Padding: tensor.Both(1)}) }, "MaxPool2D: " + op.MistakeEmpty},
		{func() { i.Reshape(1, 3).AvgPool2D(tensor.Pool{Window: tensor.Both(1)}) }, "AvgPool2D: " + op.MistakeType},
		{func() { x.AvgPool2D(tensor.Pool{Window: tensor.Both(2), Stride: tensor.Both(-1)}) }, "AvgPool2D: " + op.MistakeWindow},
		{func() { x.Index(tensor.At(2)) }, "Index: " + op.MistakeRange + ": 2: float32[2 3]"},
		{func() { x.Index(tensor.Range(0, 3)) }, "Index: " + op.MistakeRange + ": 3: float32[2 3]"},
		{func() { x.Index(tensor.All(), tensor.Range(2, 1)) }, "Index: " + op.MistakeRange + ": 2:1 of axis 1: float32[2 3]"},
		{func() { x.Index(tensor.Range(0, 1).Step(-1)) }, "Index: " + op.MistakeRange + ": 0:1:-1 of axis 0"},
		{func() { x.Index(tensor.Range(2, 0).Step(-1)) }, "Index: " + op.MistakeRange + ": 2:0:-1 of axis 0"},
		{func() { x.Index(tensor.All(), tensor.All(), tensor.At(0)) }, "Index: " + op.MistakeRank + ": for the indices [: : 0]"},
		{func() { x.Index(tensor.Ellipsis(), tensor.Ellipsis()) }, "Index: " + op.MistakeRank},
		{func() { tensor.All().Step(0) }, "Step: " + op.MistakeStep + ": : by 0"},
		{func() { tensor.At(1).Step(2) }, "Step: " + op.MistakeStep + ": 1 by 2"},
		{func() { x.SetIndex(nil) }, "SetIndex: " + op.MistakeNil},
		{func() { x.SetIndex(d, tensor.At(0)) }, "SetIndex: " + op.MistakeDTypes},
		{func() { x.SetIndex(y, tensor.At(0)) }, "SetIndex: " + op.MistakeDevices},
		{func() { x.SetIndex(x, tensor.At(0)) }, "SetIndex: " + op.MistakeBroadcast + ": the part has the shape [3]: float32[2 3], float32[2 3]"},
		{func() { x.Split(1, 1, 1) }, "Split: " + op.MistakeReshape + ": lengths [1 1]: float32[2 3]"},
		{func() { x.Split(1, math.MaxInt, math.MaxInt, 5) }, "Split: " + op.MistakeReshape},
		{func() { x.Chunk(1, 0) }, "Chunk: " + op.MistakeRange},
		{func() { x.Unbind(2) }, "Unbind: " + op.MistakeAxis},
		{func() { x.Pad(0, -1, 0, 0) }, "Pad: " + op.MistakeShape},
		{func() { x.Pad(0, math.MaxInt, 1, 0) }, "Pad: " + op.MistakeShape},
		{func() { i.Pad(0, 1, 1, 0.5) }, "Pad: " + op.MistakeScalar},
		{func() { x.PadWith(tensor.Reflect, 1, 0, 3) }, "PadWith: " + op.MistakeShape + ": reflect with 0 elements before and 3 after axis 1"},
		{func() { x.PadWith(tensor.Circular, 1, 4, 0) }, "PadWith: " + op.MistakeShape},
		{func() { one.Slice(1, 0, 0).PadWith(tensor.Replicate, 1, 1, 0) }, "PadWith: " + op.MistakeShape},
		{func() { x.PadWith(9, 1, 0, 0) }, "PadWith: " + op.MistakeShape + ": Border(9)"},
		{func() { x.Flip(2) }, "Flip: " + op.MistakeAxis},
		{func() { x.Tile(-1) }, "Tile: " + op.MistakeShape},
		{func() { x.Tile(math.MaxInt, 2) }, "Tile: " + op.MistakeShape},
		{func() { x.Unfold(0, 0, 1) }, "Unfold: " + op.MistakeWindow},
		{func() { x.Unfold(0, 99, 1) }, "Unfold: " + op.MistakeWindow},
		{func() { x.RepeatInterleave(0, -1) }, "RepeatInterleave: " + op.MistakeShape},
		{func() { d.Tril(0) }, "Tril: " + op.MistakeRank},
		{func() { d.Diagonal(0) }, "Diagonal: " + op.MistakeRank},
		{func() { d.Diag(math.MinInt) }, "Diag: " + op.MistakeShape},
		{func() { x.TakeAlong(0, nil) }, "TakeAlong: " + op.MistakeNil},
		{func() { x.TakeAlong(0, x) }, "TakeAlong: " + op.MistakeIndices},
		{func() { x.TakeAlong(0, i) }, "TakeAlong: " + op.MistakeRank},
		{func() { x.TakeAlong(0, i.Slice(0, 0, 2).Unsqueeze(0)) }, "TakeAlong: " + op.MistakeBroadcast},
		{func() { x.Scatter(0, i, x) }, "Scatter: " + op.MistakeRank},
		{func() { x.Scatter(0, i.Unsqueeze(0), nil) }, "Scatter: " + op.MistakeNil},
		{func() { x.Scatter(0, i.Unsqueeze(0), x) }, "Scatter: " + op.MistakeBroadcast},
		{func() { one.Slice(1, 0, 0).Scatter(1, i.Unsqueeze(0), one) }, "Scatter: " + op.MistakeRange},
		{func() { b.ScatterAdd(0, i, b) }, "ScatterAdd: " + op.MistakeType},
		{func() { x.IndexCopy(0, i.Unsqueeze(0), x) }, "IndexCopy: " + op.MistakeRank},
		{func() { x.IndexCopy(0, i, d) }, "IndexCopy: " + op.MistakeDTypes},
		{func() { x.IndexAdd(0, i, x) }, "IndexAdd: " + op.MistakeBroadcast},
		{func() { x.MaskedFill(d, 0) }, "MaskedFill: " + op.MistakeCondition},
		{func() { i.MaskedFill(b, 0.5) }, "MaskedFill: " + op.MistakeScalar},
		{func() { x.MaskedFill(b.Slice(0, 0, 2), 0) }, "MaskedFill: " + op.MistakeBroadcast},
		{func() { d.Row(0).MaskedSelect(b) }, "MaskedSelect: " + op.MistakeBroadcast},
		{func() { y.MaskedSelect(b) }, "MaskedSelect: " + op.MistakeDevices},
		{func() { x.Conv1D(d, tensor.Conv{}) }, "Conv1D: " + op.MistakeRank},
		{func() { plane.ConvTranspose2D(nil, tensor.ConvTranspose{}) }, "ConvTranspose2D: " + op.MistakeNil},
		{func() { plane.ConvTranspose2D(d, tensor.ConvTranspose{}) }, "ConvTranspose2D: " + op.MistakeDTypes},
		{func() { plane.ConvTranspose2D(one, tensor.ConvTranspose{}) }, "ConvTranspose2D: " + op.MistakeRank},
		{func() { plane.ConvTranspose2D(square, tensor.ConvTranspose{Groups: 2}) }, "ConvTranspose2D: " + op.MistakeChannels},
		{func() { plane.ConvTranspose2D(square, tensor.ConvTranspose{OutputPadding: tensor.Both(1)}) }, "ConvTranspose2D: " + op.MistakeWindow},
		{func() { plane.ConvTranspose2D(square, tensor.ConvTranspose{Padding: tensor.Both(3)}) }, "ConvTranspose2D: " + op.MistakeWindow},
		{func() { plane.ConvTranspose2D(square, tensor.ConvTranspose{Stride: tensor.Both(math.MaxInt)}) }, "ConvTranspose2D: " + op.MistakeWindow},
		{func() { d.Row(0).MaxPool1D(tensor.Pool{Window: tensor.Both(1)}) }, "MaxPool1D: " + op.MistakeRank},
		{func() { plane.AdaptiveAvgPool2D(0, 1) }, "AdaptiveAvgPool2D: " + op.MistakeWindow},
		{func() { plane.AdaptiveAvgPool2D(1<<62, 1) }, "AdaptiveAvgPool2D: " + op.MistakeShape},
		{func() { plane.Interpolate(tensor.Nearest, 0, 1) }, "Interpolate: " + op.MistakeShape + ": nearest to 0 rows and 1 columns"},
		{func() { plane.Interpolate(7, 1, 1) }, "Interpolate: " + op.MistakeShape + ": Interpolation(7) to 1 rows"},
		{func() { g.Set(nil) }, "Set: " + op.MistakeNil},
		{func() { g.Set(d) }, "Set: " + op.MistakeShape},
		{func() { i.Track() }, "Track: " + op.MistakeType},
		{func() { tensor.NewParam(i) }, "Set: " + op.MistakeType},
		{func() { tensor.NewParam(nil).Value() }, "Value: " + op.MistakeNoParameter},
	} {
		m := mistake(c.f)
		if m == nil || !strings.HasPrefix(m.Error(), "tensor: "+c.want) {
			t.Errorf("got %v\nwant tensor: %s", m, c.want)
		}
	}
	if g.Value().Int64s()[1] != 0 {
		t.Error("a draw that panicked has advanced the generator")
	}
	// x.Sum, x.Track().Exp and others are operands of mistakes, and are enqueued.
	if got := e.Stats().Enqueued - enqueued; got > 13 {
		t.Errorf("%d operations were enqueued", got)
	}
}
