package tensor_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/runtime/op"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// specimens are operands of one element type. Their values are the same in all types, as far as a type has them.
type specimens struct {
	x, y             *tensor.Tensor // [4 6], of numbers from -2 to 2, and from 0.5 to 4
	v, w             *tensor.Tensor // [6], numbers like those of y
	matrix           *tensor.Tensor // [6 4]
	square           *tensor.Tensor // [4 4], symmetric and positive definite
	complex          *tensor.Tensor // [6 2]
	sorted           *tensor.Tensor // [6]
	images, kernel   *tensor.Tensor // [2 2 6 5], [2 2 3 2]
	turned           *tensor.Tensor // [2 3 3 2]: the kernel of a transposed convolution with two groups of one channel
	queries, keys    *tensor.Tensor // [2 5 4], [2 300 4]
	index, each, row *tensor.Tensor // int64: [3] and [4 3], below 4; [4], below 6
	mask, causal     *tensor.Tensor // bool: [4 6], [5 300]
	half, two        tensor.F64
	one              tensor.I64
}

// specimensOf returns operands with values of type dt, in the type as, on a device. Floats are multiples of 1/64 up to
// 4, which all floating-point types have.
func specimensOf(dt, as device.DType, on device.Device) *specimens {
	r := rand.New(rand.NewPCG(*seed, 0)) // always the same
	draw := func(lo, hi float64, shape ...int) *tensor.Tensor {
		a := array{tensor.Float64, shape, make([]float64, device.Shape(shape).Size())}
		for i := range a.data {
			a.data[i] = math.Round(64*(lo+(hi-lo)*r.Float64())) / 64
			switch {
			case dt == tensor.Bool:
				a.data[i] = float64(r.IntN(2))
			case !dt.IsFloat():
				a.data[i] = float64(1 + r.IntN(5))
			}
		}
		return a.tensor(on).As(as)
	}
	s := &specimens{
		x: draw(-2, 2, 4, 6), y: draw(0.5, 4, 4, 6), v: draw(0.5, 4, 6), w: draw(0.5, 4, 6), matrix: draw(-2, 2, 6, 4),
		complex: draw(-2, 2, 6, 2), images: draw(-2, 2, 2, 2, 6, 5), kernel: draw(-2, 2, 2, 2, 3, 2), turned: draw(-2, 2, 2, 1, 3, 2),
		queries: draw(-2, 2, 2, 5, 4), keys: draw(-2, 2, 2, 300, 4),
		index: tensor.FromOn(on, []int64{2, 0, 2}), each: tensor.FromOn(on, []int64{1, 1, 3, 0, 2, 2, 3, 3, 3, -1, 0, -4}, 4, 3), row: tensor.FromOn(on, []int64{1, 5, 0, -1}),
		half: tensor.Const(0.5), two: tensor.Const(2), one: tensor.ConstInt(1),
	}
	s.sorted = tensor.FromOn(on, []float64{0, 1, 1, 2, 3, 3}).As(dt).As(as)
	square := []float64{5, 1, 0.5, -1, 1, 4, 0.25, 1, 0.5, 0.25, 3, 0, -1, 1, 0, 6}
	s.square = tensor.FromOn(on, square, 4, 4).As(dt).As(as)
	var mask, causal []bool
	for i := range 24 {
		mask = append(mask, i%3 == 0)
	}
	for i := range 5 * 300 {
		causal = append(causal, i%300 != 7)
	}
	s.mask, s.causal = tensor.FromOn(on, mask, 4, 6), tensor.FromOn(on, causal, 5, 300)
	return s
}

// A typed is a call of an operation with operands of any type.
type typed struct {
	takes op.Types // the call is a mistake with others
	call  func(s *specimens) []*tensor.Tensor
	// steps is the call as the operations that it is documented to be, each rounded; nil: the result is rounded once.
	steps func(s *specimens) []*tensor.Tensor
	wide  device.DType // in which it is computed with float16 and bfloat16; 0: float32
	// draws says that it draws other numbers in float64 than in float32.
	draws bool
}

func one(takes op.Types, f func(s *specimens) *tensor.Tensor) typed {
	return typed{takes: takes, call: list(f)}
}

func list(f func(s *specimens) *tensor.Tensor) func(s *specimens) []*tensor.Tensor {
	return func(s *specimens) []*tensor.Tensor { return []*tensor.Tensor{f(s)} }
}

// of64 is a call that is computed in float64, whatever the type.
func of64(f func(s *specimens) []*tensor.Tensor) typed {
	return typed{takes: op.Floats, call: f, wide: tensor.Float64}
}

func inSteps(f, steps func(s *specimens) *tensor.Tensor) typed {
	return typed{takes: op.Numbers, call: list(f), steps: list(steps)}
}

func drawn(f func(s *specimens) *tensor.Tensor) typed {
	return typed{takes: op.Floats, call: list(f), draws: true}
}

var window = tensor.Pool{Window: tensor.Pair{3, 2}, Stride: tensor.Pair{2, 1}, Padding: tensor.Both(1)}

// typedCalls has a call of every operation, beside those of elementwiseOps.
var typedCalls = map[string]typed{
	// With numbers.
	"AddF64":       one(op.Numbers, func(s *specimens) *tensor.Tensor { return s.x.AddF64(s.two) }),
	"SubF64":       one(op.Numbers, func(s *specimens) *tensor.Tensor { return s.x.SubF64(s.two) }),
	"MulF64":       one(op.Numbers, func(s *specimens) *tensor.Tensor { return s.x.MulF64(s.two) }),
	"DivF64":       one(op.Numbers, func(s *specimens) *tensor.Tensor { return s.x.DivF64(s.two) }),
	"AddScaledF64": one(op.Numbers, func(s *specimens) *tensor.Tensor { return s.x.AddScaledF64(s.y, s.two) }),
	"LerpF64":      one(op.Floats, func(s *specimens) *tensor.Tensor { return s.x.LerpF64(s.y, s.half) }),
	"LeakyReLUF64": one(op.Floats, func(s *specimens) *tensor.Tensor { return s.x.LeakyReLUF64(s.half) }),
	"ELUF64":       one(op.Floats, func(s *specimens) *tensor.Tensor { return s.x.ELUF64(s.half) }),
	"EqF64":        one(op.Ordered, func(s *specimens) *tensor.Tensor { return s.x.EqF64(s.two) }),
	"NeF64":        one(op.Ordered, func(s *specimens) *tensor.Tensor { return s.x.NeF64(s.two) }),
	"LtF64":        one(op.Ordered, func(s *specimens) *tensor.Tensor { return s.x.LtF64(s.two) }),
	"LeF64":        one(op.Ordered, func(s *specimens) *tensor.Tensor { return s.x.LeF64(s.two) }),
	"GtF64":        one(op.Ordered, func(s *specimens) *tensor.Tensor { return s.x.GtF64(s.two) }),
	"GeF64":        one(op.Ordered, func(s *specimens) *tensor.Tensor { return s.x.GeF64(s.two) }),
	"AddInt":       one(op.Integers, func(s *specimens) *tensor.Tensor { return s.x.AddInt(3) }),
	"SubInt":       one(op.Integers, func(s *specimens) *tensor.Tensor { return s.x.SubInt(3) }),
	"MulInt":       one(op.Integers, func(s *specimens) *tensor.Tensor { return s.x.MulInt(3) }),
	"DivInt":       one(op.Integers, func(s *specimens) *tensor.Tensor { return s.x.DivInt(3) }),

	// Reductions.
	"Sum":        one(op.Numbers, func(s *specimens) *tensor.Tensor { return s.x.Sum(1) }),
	"SumKeep":    one(op.Numbers, func(s *specimens) *tensor.Tensor { return s.x.SumKeep(0) }),
	"Prod":       one(op.Numbers, func(s *specimens) *tensor.Tensor { return s.x.Prod(1) }),
	"ProdKeep":   one(op.Numbers, func(s *specimens) *tensor.Tensor { return s.x.ProdKeep(0) }),
	"Max":        one(op.Ordered, func(s *specimens) *tensor.Tensor { return s.x.Max(1) }),
	"MaxKeep":    one(op.Ordered, func(s *specimens) *tensor.Tensor { return s.x.MaxKeep(0) }),
	"Min":        one(op.Ordered, func(s *specimens) *tensor.Tensor { return s.x.Min(1) }),
	"MinKeep":    one(op.Ordered, func(s *specimens) *tensor.Tensor { return s.x.MinKeep(0) }),
	"ArgMax":     one(op.Ordered, func(s *specimens) *tensor.Tensor { return s.x.ArgMax(1) }),
	"ArgMaxKeep": one(op.Ordered, func(s *specimens) *tensor.Tensor { return s.x.ArgMaxKeep(0) }),
	"ArgMin":     one(op.Ordered, func(s *specimens) *tensor.Tensor { return s.x.ArgMin(1) }),
	"ArgMinKeep": one(op.Ordered, func(s *specimens) *tensor.Tensor { return s.x.ArgMinKeep(0) }),
	"All":        one(op.Bools, func(s *specimens) *tensor.Tensor { return s.x.All(1) }),
	"AllKeep":    one(op.Bools, func(s *specimens) *tensor.Tensor { return s.x.AllKeep(1) }),
	"Any":        one(op.Bools, func(s *specimens) *tensor.Tensor { return s.x.Any(1) }),
	"AnyKeep":    one(op.Bools, func(s *specimens) *tensor.Tensor { return s.x.AnyKeep(1) }),
	"Mean":       one(op.Floats, func(s *specimens) *tensor.Tensor { return s.x.Mean(1) }),
	"MeanKeep":   one(op.Floats, func(s *specimens) *tensor.Tensor { return s.x.MeanKeep() }),
	"Var":        one(op.Floats, func(s *specimens) *tensor.Tensor { return s.x.Var(1, 1) }),
	"VarKeep":    one(op.Floats, func(s *specimens) *tensor.Tensor { return s.x.VarKeep(0, 0) }),
	"Std":        one(op.Floats, func(s *specimens) *tensor.Tensor { return s.x.Std(0, 1) }),
	"StdKeep":    one(op.Floats, func(s *specimens) *tensor.Tensor { return s.x.StdKeep(1) }),
	"Norm":       one(op.Floats, func(s *specimens) *tensor.Tensor { return s.x.Norm() }),
	"VectorNorm": {takes: op.Floats, call: func(s *specimens) (all []*tensor.Tensor) {
		for _, p := range []float64{1, 2, 3.7, math.Inf(1)} {
			all = append(all, s.x.VectorNorm(p, 1))
		}
		return all
	}},
	"VectorNormKeep": one(op.Floats, func(s *specimens) *tensor.Tensor { return s.x.VectorNormKeep(3, 0) }),
	"LogSumExp":      one(op.Floats, func(s *specimens) *tensor.Tensor { return s.x.LogSumExp(0) }),
	"Trace":          one(op.Numbers, func(s *specimens) *tensor.Tensor { return s.square.Trace() }),
	"IsClose":        one(op.Floats, func(s *specimens) *tensor.Tensor { return s.x.IsClose(s.y, 0.33, 1e-8) }),
	"AllClose":       one(op.Floats, func(s *specimens) *tensor.Tensor { return s.x.AllClose(s.x, 1e-3, 1e-8) }),
	"BinCount":       one(op.Integers, func(s *specimens) *tensor.Tensor { return s.x.BinCount(8) }),

	// Along an axis.
	"CumSum":  one(op.Numbers, func(s *specimens) *tensor.Tensor { return s.x.CumSum(1) }),
	"CumProd": one(op.Numbers, func(s *specimens) *tensor.Tensor { return s.x.CumProd(1) }),
	"CumMax":  one(op.Numbers, func(s *specimens) *tensor.Tensor { return s.x.CumMax(1) }),
	"CumMin":  one(op.Numbers, func(s *specimens) *tensor.Tensor { return s.x.CumMin(0) }),
	"Sort":    one(op.Ordered, func(s *specimens) *tensor.Tensor { return s.x.Sort(1, tensor.Descending) }),
	"ArgSort": one(op.Ordered, func(s *specimens) *tensor.Tensor { return s.x.ArgSort(0, tensor.Ascending) }),
	"TopK": {takes: op.Ordered, call: func(s *specimens) []*tensor.Tensor {
		v, i := s.x.TopK(2, 1, tensor.Descending)
		return []*tensor.Tensor{v, i}
	}},
	"Median":     one(op.Floats, func(s *specimens) *tensor.Tensor { return s.x.Median(1) }),
	"Quantile":   one(op.Floats, func(s *specimens) *tensor.Tensor { return s.x.Quantile(0.37, 1) }),
	"Unique":     one(op.Ordered, func(s *specimens) *tensor.Tensor { return s.x.Unique() }),
	"Softmax":    one(op.Floats, func(s *specimens) *tensor.Tensor { return s.x.Softmax(1) }),
	"LogSoftmax": one(op.Floats, func(s *specimens) *tensor.Tensor { return s.x.LogSoftmax(0) }),
	"LayerNorm":  one(op.Floats, func(s *specimens) *tensor.Tensor { return s.x.LayerNorm(1, 1e-5, s.v, s.w) }),
	"RMSNorm":    one(op.Floats, func(s *specimens) *tensor.Tensor { return s.x.RMSNorm(1, 1e-5, s.v) }),
	"SearchSorted": {takes: op.Ordered, call: func(s *specimens) []*tensor.Tensor {
		return []*tensor.Tensor{s.sorted.SearchSorted(s.y, false), s.sorted.SearchSorted(s.y, true)}
	}},

	// Products.
	"MatMul": one(op.Numbers, func(s *specimens) *tensor.Tensor { return s.x.MatMul(s.matrix) }),
	"Outer":  one(op.Numbers, func(s *specimens) *tensor.Tensor { return s.v.Outer(s.w) }),
	"Dot": inSteps(func(s *specimens) *tensor.Tensor { return s.v.Dot(s.w) },
		func(s *specimens) *tensor.Tensor { return s.v.Mul(s.w).Sum() }),
	"Linear": inSteps(func(s *specimens) *tensor.Tensor { return s.y.Linear(s.matrix, s.bias()) },
		func(s *specimens) *tensor.Tensor { return s.y.MatMul(s.matrix).Add(s.bias()) }),
	"LinearReLU": inSteps(func(s *specimens) *tensor.Tensor { return s.y.LinearReLU(s.matrix, s.bias()) },
		func(s *specimens) *tensor.Tensor { return s.y.MatMul(s.matrix).Add(s.bias()).ReLU() }),
	"Einsum": {takes: op.Numbers, call: func(s *specimens) []*tensor.Tensor {
		return []*tensor.Tensor{tensor.Einsum("ij,jk,ij->k", s.x, s.matrix, s.y), tensor.Einsum("ij,j->ij", s.x, s.v), tensor.Einsum("ij->j", s.x)}
	}},
	"Conv1D": one(op.Floats, func(s *specimens) *tensor.Tensor {
		return s.sequences(s.images).Conv1D(s.sequences(s.kernel), tensor.Conv{Padding: tensor.Both(1)})
	}),
	"Conv2D": one(op.Floats, func(s *specimens) *tensor.Tensor {
		return s.images.Conv2D(s.kernel, tensor.Conv{Padding: tensor.Both(1)})
	}),
	"ConvTranspose1D": one(op.Floats, func(s *specimens) *tensor.Tensor {
		return s.sequences(s.images).ConvTranspose1D(s.sequences(s.kernel), tensor.ConvTranspose{Stride: tensor.Both(2)})
	}),
	"ConvTranspose2D": one(op.Floats, func(s *specimens) *tensor.Tensor {
		return s.images.ConvTranspose2D(s.turned, tensor.ConvTranspose{Stride: tensor.Both(2), Groups: 2})
	}),
	"Attention": {takes: op.Floats, call: func(s *specimens) []*tensor.Tensor {
		return []*tensor.Tensor{
			tensor.Attention(s.queries, s.keys, s.keys, tensor.AttentionOptions{}),
			// of more keys than bfloat16 has integers
			tensor.Attention(s.queries, s.keys, s.keys, tensor.AttentionOptions{Causal: true}),
			tensor.Attention(s.queries, s.keys, s.keys, tensor.AttentionOptions{Mask: s.causal, Scale: 0.3}),
			tensor.Attention(s.queries, s.queries, s.queries, tensor.AttentionOptions{Mask: s.queries.Slice(2, 0, 1)}),
		}
	}},

	// Planes.
	"MaxPool1D": one(op.Floats, func(s *specimens) *tensor.Tensor { return s.images.MaxPool1D(window) }),
	"MaxPool2D": one(op.Floats, func(s *specimens) *tensor.Tensor { return s.images.MaxPool2D(window) }),
	"AvgPool1D": one(op.Floats, func(s *specimens) *tensor.Tensor { return s.images.AvgPool1D(window) }),
	"AvgPool2D": one(op.Floats, func(s *specimens) *tensor.Tensor { return s.images.AvgPool2D(window) }),
	"AdaptiveAvgPool2D": {takes: op.Floats, call: func(s *specimens) []*tensor.Tensor {
		return []*tensor.Tensor{s.images.AdaptiveAvgPool2D(3, 5), s.images.AdaptiveAvgPool2D(4, 3)}
	}},
	"Interpolate": {takes: op.Floats, call: func(s *specimens) []*tensor.Tensor {
		return []*tensor.Tensor{s.images.Interpolate(tensor.Nearest, 4, 9), s.images.Interpolate(tensor.Bilinear, 9, 7)}
	}},

	// Linear algebra and transforms.
	"Solve":    of64(list(func(s *specimens) *tensor.Tensor { return s.square.Solve(s.sides()) })),
	"Inverse":  of64(list(func(s *specimens) *tensor.Tensor { return s.square.Inverse() })),
	"Det":      of64(list(func(s *specimens) *tensor.Tensor { return s.square.Det() })),
	"Cholesky": of64(list(func(s *specimens) *tensor.Tensor { return s.square.Cholesky() })),
	"QR":       of64(func(s *specimens) []*tensor.Tensor { q, r := s.x.QR(); return []*tensor.Tensor{q, r} }),
	"SVD":      of64(func(s *specimens) []*tensor.Tensor { u, d, v := s.x.SVD(); return []*tensor.Tensor{u, d, v} }),
	"Eigh":     of64(func(s *specimens) []*tensor.Tensor { d, v := s.square.Eigh(); return []*tensor.Tensor{d, v} }),
	"FFT":      of64(list(func(s *specimens) *tensor.Tensor { return s.complex.FFT() })),
	"IFFT":     of64(list(func(s *specimens) *tensor.Tensor { return s.complex.IFFT() })),
	"RFFT":     of64(list(func(s *specimens) *tensor.Tensor { return s.x.RFFT() })),

	// Selection and replacing.
	"Take":         one(op.All, func(s *specimens) *tensor.Tensor { return s.x.Take(0, s.index) }),
	"TakeClasses":  one(op.All, func(s *specimens) *tensor.Tensor { return s.x.TakeClasses(1, s.index) }),
	"TakeAlong":    one(op.All, func(s *specimens) *tensor.Tensor { return s.x.TakeAlong(1, s.each) }),
	"Pick":         one(op.All, func(s *specimens) *tensor.Tensor { return s.x.Pick(s.row) }),
	"PickClasses":  one(op.All, func(s *specimens) *tensor.Tensor { return s.x.PickClasses(s.classes()) }),
	"OneHot":       one(op.Integers, func(s *specimens) *tensor.Tensor { return s.x.OneHot(6) }),
	"RowAt":        one(op.All, func(s *specimens) *tensor.Tensor { return s.x.RowAt(s.index.Row(0)) }),
	"RowI64":       one(op.All, func(s *specimens) *tensor.Tensor { return s.x.RowI64(s.one) }),
	"SliceI64":     one(op.All, func(s *specimens) *tensor.Tensor { return s.x.SliceI64(1, s.one, 2) }),
	"MaskedSelect": one(op.All, func(s *specimens) *tensor.Tensor { return s.x.MaskedSelect(s.mask) }),
	"NonZero":      one(op.All, func(s *specimens) *tensor.Tensor { return s.x.NonZero() }),
	"SetIndex": one(op.All, func(s *specimens) *tensor.Tensor {
		return s.x.SetIndex(s.y.Slice(1, 0, 2), tensor.All(), tensor.Range(1, 5).Step(2))
	}),
	"IndexCopy":  one(op.All, func(s *specimens) *tensor.Tensor { return s.x.IndexCopy(0, s.index, s.y.Slice(0, 0, 3)) }),
	"IndexAdd":   one(op.Numbers, func(s *specimens) *tensor.Tensor { return s.x.IndexAdd(0, s.index, s.y.Slice(0, 0, 3)) }),
	"Scatter":    one(op.All, func(s *specimens) *tensor.Tensor { return s.x.Scatter(1, s.each, s.y.Slice(1, 0, 3)) }),
	"ScatterAdd": one(op.Numbers, func(s *specimens) *tensor.Tensor { return s.x.ScatterAdd(1, s.each, s.y.Slice(1, 0, 3)) }),
	"MaskedFill": one(op.All, func(s *specimens) *tensor.Tensor { return s.x.MaskedFill(s.mask, 1) }),

	// Joining, taking apart, order and size.
	"Concat":           one(op.All, func(s *specimens) *tensor.Tensor { return tensor.Concat(1, s.x, s.y) }),
	"Stack":            one(op.All, func(s *specimens) *tensor.Tensor { return tensor.Stack(1, s.x, s.y) }),
	"Split":            {takes: op.All, call: func(s *specimens) []*tensor.Tensor { return s.x.Split(1, 2, 0, 4) }},
	"Chunk":            {takes: op.All, call: func(s *specimens) []*tensor.Tensor { return s.x.Chunk(1, 4) }},
	"Unbind":           {takes: op.All, call: func(s *specimens) []*tensor.Tensor { return s.x.Unbind(1) }},
	"Meshgrid":         {takes: op.All, call: func(s *specimens) []*tensor.Tensor { return tensor.Meshgrid(s.v, s.w) }},
	"Flip":             one(op.All, func(s *specimens) *tensor.Tensor { return s.x.Flip() }),
	"Roll":             one(op.All, func(s *specimens) *tensor.Tensor { return s.x.Roll(1, 2) }),
	"Tile":             one(op.All, func(s *specimens) *tensor.Tensor { return s.x.Tile(2, 3) }),
	"Unfold":           one(op.All, func(s *specimens) *tensor.Tensor { return s.x.Unfold(1, 2, 1) }),
	"RepeatInterleave": one(op.All, func(s *specimens) *tensor.Tensor { return s.x.RepeatInterleave(1, 2) }),
	"Pad":              one(op.All, func(s *specimens) *tensor.Tensor { return s.x.Pad(1, 1, 2, 1) }),
	"PadWith":          one(op.All, func(s *specimens) *tensor.Tensor { return s.x.PadWith(tensor.Reflect, 1, 2, 1) }),
	"Tril":             one(op.All, func(s *specimens) *tensor.Tensor { return s.x.Tril(0) }),
	"Triu":             one(op.All, func(s *specimens) *tensor.Tensor { return s.x.Triu(1) }),
	"Diag":             one(op.All, func(s *specimens) *tensor.Tensor { return s.v.Diag(1) }),
	"Diagonal":         one(op.All, func(s *specimens) *tensor.Tensor { return s.x.Diagonal(1) }),

	// Views and moves.
	"Reshape":     one(op.All, func(s *specimens) *tensor.Tensor { return s.x.Reshape(3, 8) }),
	"Flatten":     one(op.All, func(s *specimens) *tensor.Tensor { return s.x.Flatten() }),
	"Squeeze":     one(op.All, func(s *specimens) *tensor.Tensor { return s.x.Slice(0, 1, 2).Squeeze(0) }),
	"Unsqueeze":   one(op.All, func(s *specimens) *tensor.Tensor { return s.x.Unsqueeze(1) }),
	"T":           one(op.All, func(s *specimens) *tensor.Tensor { return s.x.T() }),
	"Transpose":   one(op.All, func(s *specimens) *tensor.Tensor { return s.images.Transpose(2, 0, 3, 1) }),
	"BroadcastTo": one(op.All, func(s *specimens) *tensor.Tensor { return s.v.BroadcastTo(3, 6) }),
	"Row":         one(op.All, func(s *specimens) *tensor.Tensor { return s.x.Row(-1) }),
	"Slice":       one(op.All, func(s *specimens) *tensor.Tensor { return s.x.Slice(1, 2, 5) }),
	"Index":       one(op.All, func(s *specimens) *tensor.Tensor { return s.x.Index(tensor.At(1), tensor.All().Step(-1)) }),
	"Eager":       one(op.All, func(s *specimens) *tensor.Tensor { return s.x.Eager() }),
	"Lazy":        one(op.All, func(s *specimens) *tensor.Tensor { return s.x.Lazy() }),
	"Detach":      one(op.All, func(s *specimens) *tensor.Tensor { return s.x.Detach() }),
	"To":          one(op.All, func(s *specimens) *tensor.Tensor { return s.x.To(device.CPU()) }),
	"As":          one(op.All, func(s *specimens) *tensor.Tensor { return s.y.As(tensor.Int64) }),
	"AllReduce":   {takes: op.Numbers, call: func(s *specimens) []*tensor.Tensor { return tensor.AllReduce(s.x, s.y) }},

	// Tensors like others, and draws.
	"ZerosLike": one(op.All, func(s *specimens) *tensor.Tensor { return tensor.ZerosLike(s.x) }),
	"OnesLike":  one(op.All, func(s *specimens) *tensor.Tensor { return tensor.OnesLike(s.x) }),
	"FullLike":  one(op.All, func(s *specimens) *tensor.Tensor { return tensor.FullLike(s.x, 1) }),
	"RandLike":  drawn(func(s *specimens) *tensor.Tensor { return tensor.RandLike(s.x) }),
	"RandnLike": drawn(func(s *specimens) *tensor.Tensor { return tensor.RandnLike(s.x) }),
	"Dropout":   drawn(func(s *specimens) *tensor.Tensor { return s.x.Dropout(0.3) }),
	"Multinomial": {takes: op.Floats, draws: true, call: func(s *specimens) []*tensor.Tensor {
		return []*tensor.Tensor{s.y.Multinomial(4, false), s.y.Multinomial(9, true)}
	}},
}

// bias returns a vector of four numbers.
func (s *specimens) bias() *tensor.Tensor { return s.v.Slice(0, 0, 4) }

// classes returns four indices of classes.
func (s *specimens) classes() *tensor.Tensor { return s.row.Slice(0, 0, 3).Tile(2).Slice(0, 0, 4) }

// sides returns a matrix of four rows and three columns.
func (s *specimens) sides() *tensor.Tensor { return s.y.Slice(1, 0, 3) }

// sequences returns the first rows of planes, as sequences.
func (s *specimens) sequences(x *tensor.Tensor) *tensor.Tensor { return x.Slice(2, 0, 1).Squeeze(2) }

// notTyped says why an operation has no row in typedCalls.
var notTyped = map[string]string{
	"Track": "the value is that of Detach; gradients are compared elsewhere", "Grad": "likewise",
	"F64": "makes no tensor", "I64": "makes no tensor", "ItemF64": "makes no tensor",
	"Arange": "TestStorageMakers", "ArangeInt": "TestArangeInt", "Eye": "TestStorageMakers", "Full": "TestStorageMakers", "FullInt": "TestStorageMakers", "Linspace": "TestStorageMakers",
	"Ones": "TestStorageMakers", "Zeros": "TestStorageMakers", "Scalar": "TestStorageMakers",
	"Rand": "TestStorageMakers", "Randn": "TestStorageMakers", "Uniform": "TestStorageMakers",
	"From": "TestStorageReads", "FromOn": "TestStorageReads", "Of": "TestStorageReads", "TryFrom": "TestStorageReads",
	"FromI64": "TestFromI64", "Adopt": "TestAdopt", "OfOn": "TestStorageReads", "FromDense": "of float64s",
	"AllReduceOver": "AllReduce, of several processes", "AllGatherOver": "copies, of several processes", "BroadcastOver": "likewise", "ReceiveOver": "likewise",
	"RandInt": "of int64s", "Permutation": "of int64s", "Bernoulli": "of zeros and ones",
}

// Every operation gives the result of its wide type rounded once, or says which types it takes, with operands of every
// element type: float16 and bfloat16 that of float32, float32 that of float64, and small integers that of int64. What
// moves elements changes none.
func TestEveryTypeEveryOperation(t *testing.T) {
	calls := map[string]typed{}
	for _, e := range elementwiseOps {
		if e.def.Unlisted {
			continue
		}
		calls[e.def.Name] = one(e.def.Types, func(s *specimens) *tensor.Tensor {
			x := []*tensor.Tensor{s.x, s.y, s.v}
			if e.def.Cond {
				x = []*tensor.Tensor{s.mask, s.x, s.y}
			}
			return e.call(2, x[:e.def.Tensors]...)
		})
	}
	for name, c := range typedCalls {
		calls[name] = c
	}
	for full, f := range tensorapi.Ours().Funcs {
		name, ok := strings.CutPrefix(full, "(*github.com/asyncgen/asyncgen/runtime/tensor.Tensor).")
		if !ok {
			name, ok = strings.CutPrefix(full, "github.com/asyncgen/asyncgen/runtime/tensor.")
		}
		switch f.Kind {
		case tensorapi.Op, tensorapi.View, tensorapi.Draw, tensorapi.Host:
			if _, has := calls[name]; ok && !has && notTyped[name] == "" {
				t.Errorf("%s has no row in typedCalls", name)
			}
		}
	}
	everywhere(t, func(t *testing.T, on device.Device) {
		newRand(t) // says which seed
		made := map[[2]device.DType]*specimens{}
		of := func(dt, as device.DType) *specimens {
			types := [2]device.DType{dt, as}
			if made[types] == nil {
				made[types] = specimensOf(dt, as, on)
			}
			return made[types]
		}
		for name, c := range calls {
			c.inEveryType(t, name, of)
		}
	})
}

// inEveryType makes the call with operands of every type. of is specimensOf.
func (c typed) inEveryType(t *testing.T, name string, of func(dt, as device.DType) *specimens) {
	run := func(f func(*specimens) []*tensor.Tensor, s *specimens) (out []*tensor.Tensor, m *tensor.Mistake) {
		tensor.Seed(3)
		m = mistake(func() { out = f(s) })
		return out, m
	}
	single, _ := run(c.call, of(tensor.Float32, tensor.Float32)) // says which results have the type of the operands
	for _, dt := range device.DTypes() {
		got, m := run(c.call, of(dt, dt))
		switch takes := c.takes.Has(dt); {
		case m != nil && takes:
			t.Errorf("%s of %v: %v", name, dt, m)
		case m == nil && !takes:
			t.Errorf("%s of %v is no mistake", name, dt)
		case m != nil && !strings.Contains(m.Text, "As"):
			t.Errorf("%s of %v does not say to convert: %v", name, dt, m)
		}
		if m != nil {
			continue
		}
		wide, f, slack := device.Int64, c.call, 0.0
		switch {
		case dt == tensor.Float64 || dt == tensor.Int64:
			continue // compared with references elsewhere
		case dt == tensor.Float32:
			if wide, slack = tensor.Float64, 1e-5; c.draws {
				continue
			}
		case dt.IsFloat() && c.steps != nil:
			wide, f = dt, c.steps
		case dt.IsFloat():
			if wide = tensor.Float32; c.wide != 0 {
				wide = c.wide
			}
		}
		wanted, m := run(f, of(dt, wide))
		if m != nil {
			if dt != tensor.Bool { // logic is not of integers
				t.Errorf("%s of %v: %v", name, wide, m)
			}
			continue
		}
		for i, want := range wanted {
			if single != nil && single[i].DType() == tensor.Float32 {
				want = want.As(dt)
			}
			if got[i].DType() != want.DType() || !slices.Equal(got[i].Shape(), want.Shape()) {
				t.Errorf("%s of %v: result %d is %i, want %i", name, dt, i, got[i], want)
				continue
			}
			wants := values(want)
			for k, v := range values(got[i]) {
				w := wants[k]
				if same := v == w || v != v && w != w; !same && !(math.Abs(v-w) <= slack*max(1, math.Abs(w))) {
					t.Errorf("%s of %v: element %d of result %d is %v, want %v", name, dt, k, i, v, w)
					break
				}
			}
		}
	}
}
