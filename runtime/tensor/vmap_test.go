package tensor_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/internal/turns"
	"github.com/asyncgen/asyncgen/runtime/internal/engine"
	"github.com/asyncgen/asyncgen/runtime/op"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// rowByRow does in a loop what VMap does.
func rowByRow(f function, xs ...*tensor.Tensor) *tensor.Tensor {
	var results []*tensor.Tensor
	for i := range xs[0].Dim(0) {
		var rows []*tensor.Tensor
		for _, x := range xs {
			rows = append(rows, x.Row(i))
		}
		results = append(results, f(rows...))
	}
	return tensor.Stack(0, results...)
}

// A sample says how many percent of the cases are checked: all on the CPU, and fewer on slow devices.
type sample struct {
	*rand.Rand
	percent int
	fails   bool // values of one row may make the checked operations fail
}

func newSample(t *testing.T, on device.Device) *sample {
	s := &sample{Rand: newRand(t), percent: 100}
	if !strings.HasSuffix(t.Name(), "cpu/async") {
		s.percent = 10
	}
	if on != device.CPU() {
		s.percent = 3
	}
	return s
}

// checkRows compares f for all rows at once with f row by row, for every choice of operands that differ from row to
// row. The other operands are the same for all rows. Each operand is given as a function that makes it with the
// given leading axes.
func (s *sample) checkRows(t *testing.T, what string, f function, operands ...func(lead ...int) *tensor.Tensor) {
	t.Helper()
	for has := 1; has < 1<<len(operands); has++ {
		for _, n := range []int{3, 1} {
			if s.IntN(100) >= s.percent {
				continue
			}
			all, xs := shared(f, has, n, operands)
			name, want := fmt.Sprintf("%s, %d rows of operands %b", what, n, has), rowByRow(all, xs...)
			sameBits(t, name, tensor.VMap(all, xs...), want)
			if got := sureRows(n, all, xs...); got != nil {
				sameBits(t, name+", sure", got, want)
			} else if !s.fails {
				t.Errorf("%s: VMapSure is not sure", name)
			}
		}
		if s.IntN(100) < s.percent {
			s.checkNoRows(t, what, has, f, operands)
		}
	}
}

// sureRows returns the result of VMapSure, or nil if that panics with an Unsure.
func sureRows(n int, f function, xs ...*tensor.Tensor) (result *tensor.Tensor) {
	defer func() {
		if p := recover(); p != nil {
			if _, ok := p.(*tensor.Unsure); !ok {
				panic(p)
			}
		}
	}()
	return tensor.VMapSure(0, n, 1<<30, false, func(row func(*tensor.Tensor) *tensor.Tensor) *tensor.Tensor {
		var rows []*tensor.Tensor
		for _, x := range xs {
			rows = append(rows, row(x))
		}
		return f(rows...)
	})
}

// shared returns f as a function of the operands whose bits are set in has, and n rows of each of these. The other
// operands are the same for all rows.
func shared(f function, has, n int, operands []func(lead ...int) *tensor.Tensor) (all function, xs []*tensor.Tensor) {
	var same []*tensor.Tensor
	for i, operand := range operands {
		if has>>i&1 != 0 {
			xs = append(xs, operand(n))
		} else {
			same = append(same, operand())
		}
	}
	return func(rows ...*tensor.Tensor) *tensor.Tensor {
		var in []*tensor.Tensor
		r, s := rows, same
		for i := range operands {
			if has>>i&1 != 0 {
				in, r = append(in, r[0]), r[1:]
			} else {
				in, s = append(in, s[0]), s[1:]
			}
		}
		return f(in...)
	}, xs
}

// checkNoRows checks that f of no rows has the shape that it has for one row, with no rows.
func (s *sample) checkNoRows(t *testing.T, what string, has int, f function, operands []func(lead ...int) *tensor.Tensor) {
	t.Helper()
	run := func(n int) *tensor.Tensor {
		all, xs := shared(f, has, n, operands)
		return tensor.VMap(all, xs...)
	}
	none, one := run(0), run(1)
	if want := append([]int{0}, one.Shape()[1:]...); !slices.Equal(none.Shape(), want) || none.DType() != one.DType() || none.Wait() != nil {
		t.Errorf("%s, no rows of operands %b: %i, error %v, want the shape %v", what, has, none, none.Wait(), want)
	}
}

// maker returns a function that makes random tensors, often as views.
func maker(r *rand.Rand, on device.Device, dt device.DType, in op.Interval, shape ...int) func(lead ...int) *tensor.Tensor {
	return func(lead ...int) *tensor.Tensor { return asView(r, random(r, dt, slices.Concat(lead, shape), in), on) }
}

// Every operation gives each row of a batch the bits of that row alone, for every type. The operations are taken
// from the definitions.
func TestVMapOperations(t *testing.T) {
	everywhere(t, func(t *testing.T, on device.Device) {
		r := newSample(t, on)
		covered := map[*op.Def]bool{}
		for _, o := range elementwiseOps {
			covered[o.def] = true
			for _, dt := range device.DTypes() {
				if !o.def.Types.Has(dt) || !turns.Has(t, fmt.Sprint(o.def, dt)) {
					continue
				}
				for _, shapes := range shapesOf(o.def.Tensors) {
					var in []func(...int) *tensor.Tensor
					for i, shape := range shapes {
						of := dt
						if o.def.Cond && i == 0 {
							of = tensor.Bool
						}
						in = append(in, maker(r.Rand, on, of, domain(o.def, i, dt), shape...))
					}
					r.fails = o.def.Fails && !dt.IsFloat()
					r.checkRows(t, fmt.Sprintf("%v %v %v", o.def, dt, shapes), func(x ...*tensor.Tensor) *tensor.Tensor { return o.call(2, x...) }, in...)
				}
			}
		}
		for _, red := range reductions {
			covered[red.def] = true
			for _, dt := range device.DTypes() {
				if !red.def.Types.Has(dt) {
					continue
				}
				r.fails = false
				for _, shape := range [][]int{{}, {9}, {3, 4}, {2, 3, 2}, {300}} {
					x := maker(r.Rand, on, dt, op.Interval{Lo: -2, Hi: 2}, shape...)
					for bits := range 1 << len(shape) {
						axes := subset(bits, len(shape))
						what := fmt.Sprintf("%v %v%v axes %v", red.def, dt, shape, axes)
						r.checkRows(t, what, func(x ...*tensor.Tensor) *tensor.Tensor { return red.call(x[0], axes...) }, x)
						r.checkRows(t, what+" kept", func(x ...*tensor.Tensor) *tensor.Tensor { return red.keep(x[0], axes...) }, x)
					}
				}
			}
		}
		for _, s := range structuralCalls(on) {
			for _, d := range s.defs {
				covered[d] = true
			}
			for _, dt := range device.DTypes() {
				if !s.types.Has(dt) {
					continue
				}
				var in []func(...int) *tensor.Tensor
				for i, shape := range s.shapes {
					make := maker(r.Rand, on, dt, op.Interval{Lo: -2, Hi: 2}, shape...)
					if s.indexed && i == len(s.shapes)-1 {
						make = func(lead ...int) *tensor.Tensor {
							return asView(r.Rand, randomIndex(r.Rand, 3, slices.Concat(lead, shape)...), on)
						}
					}
					in = append(in, make)
				}
				r.fails = s.indexed
				r.checkRows(t, fmt.Sprintf("%s %v %v", s.what, dt, s.shapes), s.f, in...)
			}
		}
		for _, d := range op.List() {
			if (d.Expr != nil || d.Batch != nil) && !covered[d] && !slices.Contains(inner, d) {
				t.Errorf("%v is not tested", d)
			}
		}
	})
}

// inner has the operations that no program calls for a row: those that only other operations use, tested above, and
// those of gradients, whose batching rules package op tests.
var inner = []*op.Def{op.Finite, op.Root, op.Scale, op.Wins, op.MathMax, op.MathMin, op.Contiguous, op.Scatter, op.AlongAdd,
	op.ConvKernel, op.ArgMaxPool2D, op.SpreadPool2D}

// fromStart returns indices of an axis of length 3 as numbers from 0.
func fromStart(index *tensor.Tensor) *tensor.Tensor {
	return tensor.Where(index.LtScalar(0), index.AddInt(3), index)
}

type structuralCall struct {
	what    string
	defs    []*op.Def
	types   op.Types
	shapes  [][]int
	indexed bool // the last operand has indices into an axis of length 3
	f       function
}

// structuralCalls returns uses of all operations that are neither elementwise nor reductions.
func structuralCalls(on device.Device) []structuralCall {
	calls := []structuralCall{
		{"Take", []*op.Def{op.Gather}, op.All, [][]int{{3, 2}, {2, 2}}, true, func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].Take(0, x[1]) }},
		{"Take along the last axis", nil, op.All, [][]int{{2, 3}, {4}}, true, func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].Take(-1, x[1]) }},
		{"Take one", nil, op.All, [][]int{{2, 3, 2}, {}}, true, func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].Take(1, x[1]) }},
		{"RowAt", nil, op.All, [][]int{{3}, {1}}, true, func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].RowAt(x[1]) }},
		{"Pick", nil, op.All, [][]int{{2, 3}, {2}}, true, func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].Pick(x[1]) }},
		{"Pick from a vector", nil, op.All, [][]int{{3}, {}}, true, func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].Pick(x[1]) }},
		{"PickClasses", nil, op.All, [][]int{{2, 3}, {2}}, true, func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].PickClasses(fromStart(x[1])) }},
		{"TakeClasses", nil, op.All, [][]int{{3, 2}, {2}}, true, func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].TakeClasses(0, fromStart(x[1])) }},
		{"OneHot", []*op.Def{op.ScatterAdd}, 1 << tensor.Int64, [][]int{{2, 2}}, true, func(x ...*tensor.Tensor) *tensor.Tensor { return fromStart(x[0]).OneHot(3) }},
		{"CumSum", []*op.Def{op.CumSum}, op.Numbers, [][]int{{3, 4}}, false, func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].CumSum(0) }},
		{"Sort", []*op.Def{op.ArgSort, op.Along}, op.Numbers, [][]int{{3, 4}}, false, func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].Sort(0, tensor.Ascending) }},
		{"ArgSort", nil, op.Numbers, [][]int{{7}}, false, func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].ArgSort(0, tensor.Descending) }},
		{"TopK", nil, op.Numbers, [][]int{{2, 40}}, false, func(x ...*tensor.Tensor) *tensor.Tensor {
			values, indices := x[0].TopK(3, 1, tensor.Descending)
			return values.Add(indices.As(values.DType()))
		}},
		{"As float32", []*op.Def{op.As}, op.All, [][]int{{3}}, false, func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].As(tensor.Float32) }},
		{"As bool", nil, op.All, [][]int{{}}, false, func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].As(tensor.Bool) }},
		{"To", []*op.Def{op.To}, op.All, [][]int{{2, 2}}, false, func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].To(device.CPU()).To(on) }},
		{"Reshape", []*op.Def{op.Reshape}, op.All, [][]int{{2, 6}}, false, func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].T().Reshape(3, -1) }},
		{"Flatten", nil, op.All, [][]int{{2, 3}}, false, func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].Flatten() }},
		{"Transpose", []*op.Def{op.Transpose}, op.All, [][]int{{2, 3, 4}}, false, func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].Transpose(2, 0, 1) }},
		{"Slice", []*op.Def{op.Slice}, op.All, [][]int{{2, 4}}, false, func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].Slice(-1, 1, -1) }},
		{"Row", []*op.Def{op.Row}, op.All, [][]int{{2, 3}}, false, func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].Row(-1) }},
		{"Row of a vector", nil, op.All, [][]int{{3}}, false, func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].Row(1) }},
		{"BroadcastTo", []*op.Def{op.BroadcastTo}, op.All, [][]int{{2, 1}}, false, func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].BroadcastTo(3, 2, 2) }},
		{"Unsqueeze", nil, op.All, [][]int{{2}}, false, func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].Unsqueeze(-1).Squeeze().Unsqueeze(0) }},
		{"Detach", nil, op.All, [][]int{{2}}, false, func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].Detach() }},
		{"Concat", nil, op.All, [][]int{{2, 1}, {2, 3}}, false, func(x ...*tensor.Tensor) *tensor.Tensor { return tensor.Concat(1, x[0], x[1], x[0]) }},
		{"Stack", nil, op.All, [][]int{{2}, {2}}, false, func(x ...*tensor.Tensor) *tensor.Tensor { return tensor.Stack(-1, x...) }},
		{"Dot", nil, op.Floats, [][]int{{200}, {200}}, false, func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].Dot(x[1]) }},
		{"Norm", nil, op.Floats, [][]int{{70}}, false, func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].Norm() }},
		{"Mean", nil, op.Floats, [][]int{{3, 5}}, false, func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].Mean(-1) }},
		{"LayerNorm", []*op.Def{op.LayerNorm}, op.Floats, [][]int{{5, 3}}, false, func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].LayerNorm(0, 0.1) }},
		{"LayerNorm with a gain", nil, op.Floats, [][]int{{5, 3}, {3}}, false, func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].LayerNorm(1, 0.1, x[1]) }},
		{"LayerNorm with gain and bias", nil, op.Floats, [][]int{{2, 4, 3}, {4}, {4}}, false, func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].LayerNorm(1, 0.1, x[1], x[2]) }},
		{"RMSNorm", []*op.Def{op.RMSNorm}, op.Floats, [][]int{{80}, {80}}, false, func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].RMSNorm(0, 0.1, x[1]) }},
		{"Softmax", []*op.Def{op.Softmax}, op.Floats, [][]int{{5, 3}}, false, func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].Softmax(0) }},
		{"LogSoftmax", []*op.Def{op.LogSoftmax}, op.Floats, [][]int{{7}}, false, func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].LogSoftmax(-1) }},
		{"LogSumExp", nil, op.Floats, [][]int{{2, 3}}, false, func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].LogSumExp() }},
		{"numbers", nil, op.Floats, [][]int{{2}, {1}}, false, func(x ...*tensor.Tensor) *tensor.Tensor {
			c := x[0].Sum().F64().Add(tensor.Const(1)).Div(x[1].F64()).Sqrt()
			return x[0].AddScaledF64(x[0].MulF64(c), c.Gt(tensor.Const(0)).ChooseF64(c, tensor.Const(2)))
		}},
		{"functions of the host", []*op.Def{op.HostMath}, op.Floats, [][]int{{2}, {}}, false, func(x ...*tensor.Tensor) *tensor.Tensor {
			return x[0].MulF64(x[0].Sum().F64().Sin().Hypot(x[1].F64())).AddF64(x[1].F64().Exp())
		}},
		{"Index", nil, op.All, [][]int{{4, 2, 3}}, false, func(x ...*tensor.Tensor) *tensor.Tensor {
			return x[0].Index(tensor.Range(1, tensor.End).Step(2), tensor.NewAxis(), tensor.At(-1), tensor.All().Step(-1))
		}},
		{"SetIndex", []*op.Def{op.Put}, op.All, [][]int{{4, 3}, {3}}, false, func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].SetIndex(x[1], tensor.All().Step(-2)) }},
		{"SetIndex of an element", nil, op.All, [][]int{{4, 3}, {}}, false, func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].SetIndex(x[1], tensor.At(1), tensor.At(-1)) }},
		{"Pad", nil, op.All, [][]int{{2, 3}}, false, func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].Pad(-1, 1, 2, 1) }},
		{"PadWith", nil, op.All, [][]int{{2, 3}}, false, func(x ...*tensor.Tensor) *tensor.Tensor {
			return x[0].PadWith(tensor.Reflect, 1, 1, 2).PadWith(tensor.Circular, 0, 2, 0)
		}},
		{"Flip", nil, op.All, [][]int{{2, 3}}, false, func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].Flip() }},
		{"Roll", nil, op.All, [][]int{{4, 3}}, false, func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].Roll(0, 3) }},
		{"Tile", nil, op.All, [][]int{{2, 3}}, false, func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].Tile(2, 1, 2) }},
		{"Unfold", nil, op.All, [][]int{{2, 7}}, true, func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].Unfold(-1, 3, 2) }},
		{"RepeatInterleave", nil, op.All, [][]int{{2, 3}}, false, func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].RepeatInterleave(-1, 2) }},
		{"Tril", nil, op.All, [][]int{{3, 3}}, false, func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].Tril(-1) }},
		{"Triu", nil, op.All, [][]int{{2, 2, 3}}, false, func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].Triu(1) }},
		{"Diagonal", nil, op.All, [][]int{{3, 4}}, false, func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].T().Diagonal(1) }},
		{"Diag", nil, op.All, [][]int{{3}}, false, func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].Diag(-1) }},
		{"Split", nil, op.All, [][]int{{2, 3}}, false, func(x ...*tensor.Tensor) *tensor.Tensor { return tensor.Concat(1, x[0].Split(1, 1, 2)...) }},
		{"Unbind", nil, op.All, [][]int{{2, 3}}, false, func(x ...*tensor.Tensor) *tensor.Tensor { return tensor.Stack(0, x[0].Unbind(1)...) }},
		{"MaskedFill", nil, op.All, [][]int{{2, 3}, {3}}, false, func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].MaskedFill(x[1].As(tensor.Bool), 1) }},
		{"TakeAlong", []*op.Def{op.TakeAlong}, op.All, [][]int{{2, 3}, {2, 4}}, true, func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].TakeAlong(1, x[1]) }},
		{"TakeAlong of one row", nil, op.All, [][]int{{1, 3}, {2, 4}}, true, func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].TakeAlong(1, x[1]) }},
		{"Scatter", []*op.Def{op.FromEnd, op.LastOfRun}, op.All, [][]int{{3, 2}, {4, 2}, {4, 2}}, true, func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].Scatter(0, x[2], x[1]) }},
		{"ScatterAdd", []*op.Def{op.AddAlong}, op.Numbers, [][]int{{2, 3}, {}, {1, 2}}, true, func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].ScatterAdd(1, x[2], x[1]) }},
		{"IndexCopy", nil, op.All, [][]int{{2, 3}, {4}, {4}}, true, func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].IndexCopy(1, x[2], x[1]) }},
		{"IndexAdd", nil, op.Numbers, [][]int{{3, 2}, {4, 2}, {4}}, true, func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].IndexAdd(0, x[2], x[1]) }},
		{"Conv1D", nil, op.Floats, [][]int{{2, 4, 9}, {6, 2, 3}}, false, func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].Conv1D(x[1], conv1D) }},
		{"ConvTranspose1D", nil, op.Floats, [][]int{{4, 5}, {4, 2, 3}}, false, func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].ConvTranspose1D(x[1], convTranspose1D) }},
		{"ConvTranspose2D", []*op.Def{op.ConvInput}, op.Floats, [][]int{{2, 4, 3, 2}, {4, 3, 2, 2}}, false, func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].ConvTranspose2D(x[1], convTranspose2D) }},
		{"MaxPool1D", nil, op.Floats, [][]int{{2, 9}}, false, func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].MaxPool1D(pool1D) }},
		{"AvgPool1D", nil, op.Floats, [][]int{{9}}, false, func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].AvgPool1D(pool1D) }},
		{"AdaptiveAvgPool2D", nil, op.Floats, [][]int{{2, 5, 6}}, false, func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].AdaptiveAvgPool2D(3, 4) }},
		{"AdaptiveAvgPool2D evenly", nil, op.Floats, [][]int{{4, 6}}, false, func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].AdaptiveAvgPool2D(2, 3) }},
		{"Interpolate", nil, op.Floats, [][]int{{2, 3, 4}}, false, func(x ...*tensor.Tensor) *tensor.Tensor {
			return x[0].Interpolate(tensor.Bilinear, 5, 2).Interpolate(tensor.Nearest, 3, 3)
		}},
		{"Dropout", []*op.Def{op.Dropout}, op.Floats, [][]int{{2, 9}}, false, func(x ...*tensor.Tensor) *tensor.Tensor {
			return tensor.NewGenerator(1).Dropout(x[0], 0.5)
		}},
		{"Multinomial", []*op.Def{op.Waiting}, op.Floats, [][]int{{2, 5}}, false, func(x ...*tensor.Tensor) *tensor.Tensor {
			return tensor.NewGenerator(1).Multinomial(x[0].Abs(), 4, false)
		}},
		{"Multinomial with replacement", nil, op.Floats, [][]int{{2, 5}}, false, func(x ...*tensor.Tensor) *tensor.Tensor {
			return tensor.NewGenerator(1).Multinomial(x[0].Square(), 9, true)
		}},
		{"SearchSorted", []*op.Def{op.Before, op.Clamped}, op.Numbers, [][]int{{5}, {2, 3}}, false, func(x ...*tensor.Tensor) *tensor.Tensor {
			return x[0].Sort(0, tensor.Ascending).SearchSorted(x[1], false)
		}},
		{"SearchSorted from the right", []*op.Def{op.NotAfter}, op.Numbers, [][]int{{2, 5}, {2, 3}}, false, func(x ...*tensor.Tensor) *tensor.Tensor {
			return x[0].Sort(1, tensor.Ascending).SearchSorted(x[1], true)
		}},
		{"CumProd", []*op.Def{op.CumProd}, op.Numbers, [][]int{{3, 4}}, false, func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].CumProd(0) }},
		{"CumMax", []*op.Def{op.CumMax}, op.Numbers, [][]int{{3, 4}}, false, func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].CumMax(1) }},
		{"CumMin", []*op.Def{op.CumMin}, op.Numbers, [][]int{{5}}, false, func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].CumMin(0) }},
		{"Std", nil, op.Floats, [][]int{{3, 4}}, false, func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].Std(1, 0) }},
		{"VectorNorm", nil, op.Floats, [][]int{{3, 4}}, false, func(x ...*tensor.Tensor) *tensor.Tensor {
			return x[0].VectorNorm(3, 1).Add(x[0].VectorNorm(2, 1)).Add(x[0].VectorNorm(math.Inf(1), 1))
		}},
		{"Quantile", []*op.Def{op.Between}, op.Floats, [][]int{{5, 2}}, false, func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].Quantile(0.3, 0) }},
		{"Outer", nil, op.Numbers, [][]int{{3}, {2}}, false, func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].Outer(x[1]) }},
		{"Trace", nil, op.Numbers, [][]int{{2, 3, 3}}, false, func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].Trace() }},
		{"Einsum", nil, op.Floats, [][]int{{2, 3, 3}, {3, 4}}, false, func(x ...*tensor.Tensor) *tensor.Tensor { return tensor.Einsum("bii,ij->bj", x[0], x[1]) }},
		{"Einsum with dots", nil, op.Floats, [][]int{{2, 1, 3}, {4, 3}}, false, func(x ...*tensor.Tensor) *tensor.Tensor { return tensor.Einsum("...i,...i", x[0], x[1]) }},
		{"AllClose", []*op.Def{op.Close}, op.Floats, [][]int{{3}, {3}}, false, func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].AllClose(x[1], 0.5, 0.5) }},
		{"BinCount", nil, 1 << tensor.Int64, [][]int{{2, 2}}, true, func(x ...*tensor.Tensor) *tensor.Tensor { return fromStart(x[0]).BinCount(3) }},
		{"Solve", []*op.Def{op.HostArray}, op.Floats, [][]int{{3, 3}, {3, 2}}, true, func(x ...*tensor.Tensor) *tensor.Tensor {
			return x[0].Add(tensor.On(on).As(x[0].DType()).Eye(3).MulScalar(9)).Solve(x[1].As(x[0].DType()))
		}},
		{"FFT", nil, op.Floats, [][]int{{2, 4, 2}}, false, func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].FFT() }},
		{"constants", nil, op.Floats, [][]int{{2}}, false, func(x ...*tensor.Tensor) *tensor.Tensor { return tensor.On(on).Ones(3) }},
	}
	for _, c := range convCases {
		calls = append(calls, structuralCall{c.String(), []*op.Def{op.Conv2D}, op.Floats, [][]int{c.image, c.kernel}, false,
			func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].Conv2D(x[1], c.Conv) }})
	}
	for _, c := range poolCases {
		calls = append(calls,
			structuralCall{fmt.Sprintf("MaxPool2D %v", c), []*op.Def{op.MaxPool2D}, op.Floats, [][]int{c.shape}, false,
				func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].MaxPool2D(c.Pool) }},
			structuralCall{fmt.Sprintf("AvgPool2D %v", c), []*op.Def{op.SumPool2D}, op.Floats, [][]int{c.shape}, false,
				func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].AvgPool2D(c.Pool) }})
	}
	for _, shapes := range [][][]int{
		{{3}, {3, 2}}, {{2, 3}, {3}}, {{2, 3}, {3, 4}}, {{1, 3}, {3, 1}}, {{4, 2, 3}, {3, 2}}, {{2, 3}, {4, 3, 2}}, {{4, 1, 3}, {4, 3, 2}},
		{{3}, {2, 3, 2}}, {{2, 2, 3}, {3}}, {{2, 1, 2, 3}, {4, 3, 1}}, {{5, 70}, {70, 9}}, {{70}, {70, 3}}, {{2, 0}, {0, 3}},
	} {
		calls = append(calls, structuralCall{"MatMul", []*op.Def{op.MatMul}, op.Floats, shapes, false,
			func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].MatMul(x[1]) }})
	}
	for _, shapes := range [][][]int{{{3}, {3, 2}, {2}}, {{4, 3}, {3, 5}, {5}}, {{2, 2, 3}, {3, 70}, {70}}, {{2, 0}, {0, 3}, {3}}} {
		calls = append(calls,
			structuralCall{"Linear", []*op.Def{op.Linear}, op.Floats, shapes, false,
				func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].Linear(x[1], x[2]) }},
			structuralCall{"LinearReLU", []*op.Def{op.LinearReLU}, op.Floats, shapes, false,
				func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].LinearReLU(x[1], x[2]) }})
	}
	return calls
}

// Random programs of several operations and nested VMaps.
func TestVMapPrograms(t *testing.T) {
	everywhere(t, func(t *testing.T, on device.Device) {
		r := newRand(t)
		w := random(r, tensor.Float32, []int{4, 4}, op.Interval{Lo: -1, Hi: 1}).tensor(on)
		for range 12 {
			x := maker(r, on, tensor.Float32, op.Interval{Lo: -1, Hi: 1}, 3, 4)(5)
			y := maker(r, on, tensor.Float32, op.Interval{Lo: -1, Hi: 1}, 4)(5)
			var steps []int
			for range 1 + r.IntN(6) {
				steps = append(steps, r.IntN(9))
			}
			f := func(in ...*tensor.Tensor) *tensor.Tensor {
				x, y := in[0], in[1]
				for _, s := range steps {
					switch s {
					case 0:
						x = x.MatMul(w).Tanh()
					case 1:
						y = x.MatMul(y).Softmax(0).MatMul(x)
					case 2:
						x = tensor.Stack(0, y, x.Mean(0), x.Row(-1))
					case 3:
						x = x.Take(0, x.ArgMax(0).Slice(0, 0, 3).Sub(x.ArgMax(0).Slice(0, 0, 3)))
					case 4:
						y = y.MulF64(x.Norm().F64()).CumSum(0)
					case 5: // rows of the row
						x = tensor.VMap(func(rows ...*tensor.Tensor) *tensor.Tensor { return rows[0].Sub(y).Mul(w.MatMul(rows[0])) }, x)
					case 6: // rows of the inner VMap alone, with an outer row
						x = tensor.VMap(func(rows ...*tensor.Tensor) *tensor.Tensor { return y.Add(rows[0]).MulScalar(0.5) }, w.Slice(0, 0, 3))
					case 7:
						x = tensor.Concat(0, x.Slice(0, 1, 3), y.Unsqueeze(0))
					case 8:
						h := x.Exp()
						x = h.Div(h.SumKeep(1))
						tensor.Dead(h)
					}
				}
				return x.Add(y)
			}
			sameBits(t, fmt.Sprint(steps), tensor.VMap(f, x, y), rowByRow(f, x, y))
		}
	})
}

// Calls in several goroutines don't affect each other.
func TestVMapConcurrently(t *testing.T) {
	x := tensor.Randn(6, 5)
	f := func(rows ...*tensor.Tensor) *tensor.Tensor { return rows[0].Softmax(0).CumSum(0).Sub(rows[0]) }
	want := rowByRow(f, x)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 10 {
				if got := tensor.VMap(f, x); !slices.Equal(got.Float32s(), want.Float32s()) {
					t.Errorf("got %v, want %v", got, want)
				}
			}
		})
	}
	wg.Wait()
}

// The result of a VMap has the gradients of the loop.
func TestVMapGradient(t *testing.T) {
	everywhere(t, func(t *testing.T, on device.Device) {
		r := newRand(t)
		in := []array{random(r, tensor.Float64, []int{2, 3}, op.Interval{Lo: -1, Hi: 1}), random(r, tensor.Float64, []int{3, 2}, op.Interval{Lo: -1, Hi: 1})}
		index := tensor.FromOn(on, []int64{1, 0})
		f := func(x ...*tensor.Tensor) *tensor.Tensor {
			return tensor.VMap(func(rows ...*tensor.Tensor) *tensor.Tensor {
				return rows[0].MatMul(x[1]).LogSoftmax(0).Pick(rows[1]).Add(rows[0].Square().Sum())
			}, x[0], index)
		}
		checkGradient(t, r, on, "VMap", f, in...)
	})
}

func TestVMapAll(t *testing.T) {
	x := tensor.Arange(0, 6, 1).Reshape(3, 2)
	results := tensor.VMapAll(func(rows ...*tensor.Tensor) []*tensor.Tensor {
		if got := fmt.Sprintf("%i", rows[0]); got != "float32[2] on cpu" || rows[0].Size() != 2 || rows[0].Device() != device.CPU() {
			t.Errorf("a row is %s", got)
		}
		return []*tensor.Tensor{rows[0].Sum(), rows[0], tensor.Scalar(7)}
	}, x)
	check(t, "sums", results[0], array{tensor.Float32, []int{3}, []float64{1, 5, 9}}, 0)
	check(t, "rows", results[1], array{tensor.Float32, []int{3, 2}, []float64{0, 1, 2, 3, 4, 5}}, 0)
	check(t, "a constant", results[2], array{tensor.Float32, []int{3}, []float64{7, 7, 7}}, 0)
	check(t, "no rows", tensor.VMap(func(rows ...*tensor.Tensor) *tensor.Tensor { return rows[0].Exp().Sum() }, tensor.Zeros(0, 2)),
		array{tensor.Float32, []int{0}, nil}, 0)
}

// A row can't be read, and can't be used after VMap has returned.
func TestVMapMistakes(t *testing.T) {
	x := tensor.Ones(2, 2)
	p := tensor.NewParam(tensor.Ones(2))
	in := func(f func(row *tensor.Tensor)) func() {
		return func() {
			tensor.VMap(func(rows ...*tensor.Tensor) *tensor.Tensor { f(rows[0]); return rows[0] }, x)
		}
	}
	var kept *tensor.Tensor
	tensor.VMap(func(rows ...*tensor.Tensor) *tensor.Tensor { kept = rows[0].Exp(); return kept }, x)
	for what, c := range map[string]struct {
		f    func()
		text string
	}{
		"Item":                 {in(func(row *tensor.Tensor) { row.Sum().Item() }), op.MistakeRow},
		"Float32s":             {in(func(row *tensor.Tensor) { row.Float32s() }), op.MistakeRow},
		"At":                   {in(func(row *tensor.Tensor) { row.At(0) }), op.MistakeRow},
		"Matrix":               {in(func(row *tensor.Tensor) { row.Unsqueeze(0).Matrix() }), op.MistakeRow},
		"String":               {in(func(row *tensor.Tensor) { _ = row.String() }), op.MistakeRow},
		"Wait":                 {in(func(row *tensor.Tensor) { row.Wait() }), op.MistakeRow},
		"Wait of two":          {in(func(row *tensor.Tensor) { tensor.Wait(x, row) }), op.MistakeRow},
		"Ready":                {in(func(row *tensor.Tensor) { row.Ready() }), op.MistakeRow},
		"Item of an F64":       {in(func(row *tensor.Tensor) { row.Sum().F64().Item() }), op.MistakeRow},
		"Backward":             {in(func(row *tensor.Tensor) { row.Mul(p.Value()).Sum().Backward() }), op.MistakeRow},
		"Grad":                 {in(func(row *tensor.Tensor) { tensor.Grad(p.Value().Sum(), row) }), op.MistakeRow},
		"Track":                {in(func(row *tensor.Tensor) { row.Track() }), op.MistakeRow},
		"Set":                  {in(func(row *tensor.Tensor) { p.Set(row) }), op.MistakeRow},
		"shapes":               {in(func(row *tensor.Tensor) { row.Add(tensor.Ones(3)) }), op.MistakeBroadcast},
		"a product of vectors": {in(func(row *tensor.Tensor) { row.MatMul(tensor.Ones(2)) }), op.MistakeRank},
		"used dead":            {in(func(row *tensor.Tensor) { y := row.Exp(); tensor.Dead(y); y.Exp() }), op.MistakeRowEnded},
		"dead twice":           {in(func(row *tensor.Tensor) { y := row.Exp(); tensor.Dead(y, y) }), op.MistakeRowEnded},
		"afterwards":           {func() { kept.Exp() }, op.MistakeRowEnded},
		"read afterwards":      {func() { kept.Float32s() }, op.MistakeRowEnded},
		"a row of another":     {in(func(row *tensor.Tensor) { kept.Add(row) }), op.MistakeRowEnded},
		"no operands":          {func() { tensor.VMap(func(...*tensor.Tensor) *tensor.Tensor { return x }) }, op.MistakeNothing},
		"nil":                  {func() { tensor.VMap(func(...*tensor.Tensor) *tensor.Tensor { return x }, nil) }, op.MistakeNil},
		"nil result":           {func() { tensor.VMap(func(...*tensor.Tensor) *tensor.Tensor { return nil }, x) }, op.MistakeNil},
		"no axes":              {func() { tensor.VMap(func(...*tensor.Tensor) *tensor.Tensor { return x }, tensor.Scalar(1)) }, op.MistakeRank},
		"numbers of rows":      {func() { tensor.VMap(func(...*tensor.Tensor) *tensor.Tensor { return x }, x, tensor.Ones(3)) }, op.MistakeBroadcast},
	} {
		if m := mistake(c.f); m == nil || !strings.HasPrefix(m.Text, c.text) {
			t.Errorf("%s: %v, want %s", what, m, c.text)
		}
	}
	if n := tensor.Rows(); n != 0 {
		t.Errorf("%d rows are still there", n)
	}
}

// An operation that fails for one row fails for all, with the cause.
func TestVMapFailure(t *testing.T) {
	e := engine.New(engine.Options{Workers: 2})
	defer tensor.SetEngine(e)()
	x, i := tensor.Ones(3, 2), tensor.From([]int64{0, 2, 1})
	y := tensor.VMap(func(rows ...*tensor.Tensor) *tensor.Tensor { return rows[0].RowAt(rows[1]) }, x, i)
	var at *device.IndexError
	if err := y.Row(0).Wait(); !errors.As(err, &at) || at.Index != 2 {
		t.Errorf("error %v", err)
	}
	e.Close() // returns the failure once more
}
