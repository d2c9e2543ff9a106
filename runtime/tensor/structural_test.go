package tensor_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/internal/turns"
	"github.com/asyncgen/asyncgen/runtime/op"
	"github.com/asyncgen/asyncgen/runtime/tensor"
	"gonum.org/v1/gonum/mat"
)

// fold is what each reduction computes of the elements, in row-major order, in float64.
var fold = map[string]func(x []float64) float64{
	"Sum":    folding(0, func(acc, v float64) float64 { return acc + v }),
	"Prod":   folding(1, func(acc, v float64) float64 { return acc * v }),
	"Max":    folding(math.Inf(-1), math.Max),
	"Min":    folding(math.Inf(1), math.Min),
	"All":    folding(1, func(acc, v float64) float64 { return acc * v }),
	"Any":    folding(0, math.Max),
	"ArgMax": func(x []float64) float64 { return float64(slices.Index(x, slices.Max(x))) },
	"ArgMin": func(x []float64) float64 { return float64(slices.Index(x, slices.Min(x))) },
}

// ofNothing lists the reductions that panic if there are no elements to reduce.
var ofNothing = []string{"Max", "Min", "ArgMax", "ArgMin"}

func folding(acc float64, f func(acc, v float64) float64) func(x []float64) float64 {
	return func(x []float64) float64 {
		acc := acc
		for _, v := range x {
			acc = f(acc, v)
		}
		return acc
	}
}

// Every reduction, over every set of axes, with the axes kept or not, of views and other tensors.
func TestReductions(t *testing.T) {
	everywhere(t, func(t *testing.T, on device.Device) {
		r := newRand(t)
		for _, red := range reductions {
			for _, dt := range device.DTypes() {
				if !red.def.Types.Has(dt) || !turns.Has(t, fmt.Sprint(red.def, dt)) {
					continue
				}
				for _, shape := range [][]int{{}, {9}, {3, 4}, {2, 3, 2}, {0}, {3, 0}, {1, 5}, {200}} {
					in := op.Interval{Lo: 1, Hi: 2}
					if dt == tensor.Int64 { // products would wrap around
						in = op.Interval{Lo: -1, Hi: 1}
					}
					if dt == tensor.Float16 { // they would be infinite
						in = op.Interval{Lo: 0.95, Hi: 1.05}
					}
					a := random(r, dt, shape, in)
					for axes := range 1 << len(shape) {
						checkReduction(t, red.def, red.call, asView(r, a, on), a, subset(axes, len(shape)), false)
						checkReduction(t, red.def, red.keep, asView(r, a, on), a, subset(axes, len(shape)), true)
					}
				}
			}
		}
	})
}

// subset returns the axes whose bits are set, every other one as a negative number.
func subset(bits, rank int) []int {
	var axes []int
	for i := range rank {
		if bits>>i&1 != 0 {
			axes = append(axes, i-i%2*rank)
		}
	}
	return axes
}

func checkReduction(t *testing.T, d *op.Def, call func(*tensor.Tensor, ...int) *tensor.Tensor,
	x *tensor.Tensor, a array, axes []int, keep bool) {
	t.Helper()
	rank := len(a.shape)
	isReduced := make([]bool, rank)
	for i := range isReduced {
		isReduced[i] = len(axes) == 0 || slices.Contains(axes, i) || slices.Contains(axes, i-rank)
	}
	want := array{dtype: a.dtype, shape: []int{}}
	if strings.HasPrefix(d.Name, "Arg") {
		want.dtype = tensor.Int64
	}
	kept := []int{} // the shape with the reduced axes kept
	length := 1     // how many elements a result is made of
	for i, n := range a.shape {
		if isReduced[i] {
			length *= n
			n = 1
		}
		kept = append(kept, n)
		if !isReduced[i] || keep {
			want.shape = append(want.shape, n)
		}
	}
	groups := map[string][]float64{}
	for _, index := range indices(a.shape) {
		group := slices.Clone(index)
		for i := range group {
			if isReduced[i] {
				group[i] = 0
			}
		}
		key := fmt.Sprint(group)
		groups[key] = append(groups[key], a.at(index))
	}
	what := fmt.Sprintf("%s %v%v axes %v keep %v", d.Name, a.dtype, a.shape, axes, keep)
	if length == 0 && slices.Contains(ofNothing, d.Name) {
		if m := mistake(func() { call(x, axes...) }); m == nil || m.Text != op.MistakeEmpty {
			t.Errorf("%s of nothing: %v", what, m)
		}
		return
	}
	for _, index := range indices(kept) {
		want.data = append(want.data, fold[d.Name](groups[fmt.Sprint(index)]))
	}
	// The error bound for any order of adding: one unit for each operation.
	check(t, what, call(x, axes...), want, float64(max(a.size()/max(len(want.data), 1), 1)))
}

func TestMeanAndNorm(t *testing.T) {
	everywhere(t, func(t *testing.T, on device.Device) {
		x := tensor.FromOn(on, []float32{1, 2, 3, 6}, 2, 2)
		check(t, "Mean", x.Mean(), array{tensor.Float32, []int{}, []float64{3}}, 0)
		check(t, "Mean 0", x.Mean(0), array{tensor.Float32, []int{2}, []float64{2, 4}}, 0)
		check(t, "MeanKeep", x.MeanKeep(-1), array{tensor.Float32, []int{2, 1}, []float64{1.5, 4.5}}, 0)
		check(t, "Norm", x.Norm(), array{tensor.Float32, []int{}, []float64{math.Sqrt(50)}}, 1)
		check(t, "Mean of nothing", tensor.On(on).Zeros(0).Mean(), array{tensor.Float32, []int{}, []float64{math.NaN()}}, 0)
	})
}

// MatMul and Dot are near to gonum's in float64, and in float32 within the error bound for any order of adding.
func TestMatMul(t *testing.T) {
	everywhere(t, func(t *testing.T, on device.Device) {
		r := newRand(t)
		for _, dt := range []device.DType{tensor.Float32, tensor.Float64} {
			for _, n := range [][3]int{{1, 1, 1}, {2, 3, 4}, {5, 1, 2}, {17, 33, 9}, {3, 64, 1}} {
				a := random(r, dt, []int{n[0], n[1]}, op.Interval{Lo: -1, Hi: 1})
				b := random(r, dt, []int{n[1], n[2]}, op.Interval{Lo: -1, Hi: 1})
				x, y := asView(r, a, on), asView(r, b, on)
				var want mat.Dense
				want.Mul(mat.NewDense(n[0], n[1], a.data), mat.NewDense(n[1], n[2], b.data))
				got := values(x.MatMul(y))
				byRow, byColumn := []float64{}, []float64{}
				for i := range n[0] {
					byRow = append(byRow, values(x.Row(i).MatMul(y))...)
				}
				for j := range n[2] {
					byColumn = append(byColumn, values(x.MatMul(y.T().Row(j)))...)
				}
				eps := math.Ldexp(1, -52)
				if dt == tensor.Float32 {
					eps = math.Ldexp(1, -23)
				}
				for i, v := range got {
					if exact := want.At(i/n[2], i%n[2]); !(math.Abs(v-exact) <= float64(n[1])*eps) {
						t.Fatalf("%v %v: element %d is %v, gonum has %v", dt, n, i, v, exact)
					}
					if other := byColumn[i%n[2]*n[0]+i/n[2]]; byRow[i] != v || other != v {
						t.Fatalf("%v %v: element %d is %v, by rows %v, by columns %v: must be the same bits", dt, n, i, v, byRow[i], other)
					}
				}
				dot := x.Row(0).Dot(y.T().Row(0)).Item()
				if exact := want.At(0, 0); !(math.Abs(dot-exact) <= float64(n[1])*eps) {
					t.Fatalf("%v %v: Dot is %v, gonum has %v", dt, n, dot, exact)
				}
			}
		}
		empty := tensor.On(on).Zeros(2, 0).MatMul(tensor.On(on).Zeros(0, 3))
		check(t, "an inner length of 0", empty, array{tensor.Float32, []int{2, 3}, make([]float64, 6)}, 0)
	})
}

// A model is a view as the list of its elements.
type model struct {
	shape []int
	data  []float64
}

func (m model) reorder(shape []int, from func(index []int) []int) model {
	a := array{shape: m.shape, data: m.data}
	out := model{shape: shape}
	for _, index := range indices(shape) {
		out.data = append(out.data, a.at(from(index)))
	}
	return out
}

// Random sequences of views agree with the model, and so does an operation on each.
func TestViews(t *testing.T) {
	everywhere(t, func(t *testing.T, on device.Device) {
		r := newRand(t)
		for range 60 {
			x := tensor.On(on).As(tensor.Float64).Arange(0, 24, 1)
			m := model{[]int{24}, values(x)}
			path := ""
			for range 1 + r.IntN(6) {
				var step string
				x, m, step = randomView(r, x, m)
				path += "." + step
				if m.shape == nil || len(m.data) > 500 {
					break
				}
				want := array{tensor.Float64, m.shape, m.data}
				check(t, path, x, want, 0)
				check(t, path+" + 0", x.AddScalar(0), want, 0)
				if t.Failed() {
					return
				}
			}
		}
	})
}

func randomView(r *rand.Rand, x *tensor.Tensor, m model) (*tensor.Tensor, model, string) {
	rank := len(m.shape)
	switch k := r.IntN(7); {
	case k == 0 && rank > 0:
		axes := r.Perm(rank)
		shape := make([]int, rank)
		for i, axis := range axes {
			shape[i] = m.shape[axis]
		}
		return x.Transpose(axes...), m.reorder(shape, func(index []int) []int {
			from := make([]int, rank)
			for i, axis := range axes {
				from[axis] = index[i]
			}
			return from
		}), fmt.Sprintf("Transpose(%v)", axes)
	case k == 1 && rank > 0:
		axis := r.IntN(rank)
		from := r.IntN(m.shape[axis] + 1)
		to := from + r.IntN(m.shape[axis]-from+1)
		shape := slices.Clone(m.shape)
		shape[axis] = to - from
		return x.Slice(axis-rank, from, to), m.reorder(shape, func(index []int) []int {
			index = slices.Clone(index)
			index[axis] += from
			return index
		}), fmt.Sprintf("Slice(%d, %d, %d)", axis-rank, from, to)
	case k == 2 && rank > 0 && m.shape[0] > 0:
		i := r.IntN(m.shape[0])
		return x.Row(i - m.shape[0]), m.reorder(slices.Clone(m.shape[1:]), func(index []int) []int {
			return append([]int{i}, index...)
		}), fmt.Sprintf("Row(%d)", i-m.shape[0])
	case k == 3 && rank < 5:
		axis := r.IntN(rank + 1)
		return x.Unsqueeze(axis), model{slices.Insert(slices.Clone(m.shape), axis, 1), m.data}, fmt.Sprintf("Unsqueeze(%d)", axis)
	case k == 4 && rank < 5:
		n := 1 + r.IntN(3)
		shape := append([]int{n}, m.shape...)
		return x.BroadcastTo(shape...), m.reorder(shape, func(index []int) []int { return index[1:] }), fmt.Sprintf("BroadcastTo(%v)", shape)
	case k == 5:
		shape := slices.DeleteFunc(slices.Clone(m.shape), func(n int) bool { return n == 1 })
		return x.Squeeze(), model{append([]int{}, shape...), m.data}, "Squeeze()"
	default:
		shape := factors(r, len(m.data))
		return x.Reshape(shape...), model{shape, m.data}, fmt.Sprintf("Reshape(%v)", shape)
	}
}

// factors returns a shape with n elements.
func factors(r *rand.Rand, n int) []int {
	if n == 0 {
		return []int{2, 0, 3}
	}
	shape := []int{}
	for rest := n; ; {
		var divisors []int
		for d := 1; d <= rest; d++ {
			if rest%d == 0 {
				divisors = append(divisors, d)
			}
		}
		d := divisors[r.IntN(len(divisors))]
		shape = append(shape, d)
		if rest /= d; rest == 1 || len(shape) == 4 {
			return append(shape, rest)
		}
	}
}

// The offset of a view without elements may be behind the end of the memory.
func TestViewsWithoutElementsBehindTheEnd(t *testing.T) {
	everywhere(t, func(t *testing.T, on device.Device) {
		x := tensor.On(on).Ones(3, 4)
		for what, v := range map[string]*tensor.Tensor{
			"rows, then columns": x.Slice(0, 3, 3).Slice(1, 1, 4), "columns, then rows": x.Slice(1, 4, 4).Slice(0, 2, 3),
			"a row of nothing": tensor.On(on).Ones(0, 3).T().Row(2), "none of the last row": x.Slice(0, 3, 3).T().Row(2),
		} {
			check(t, what+": sum", v.Sum(), array{tensor.Float32, []int{}, []float64{0}}, 0)
			check(t, what+": product", v.Prod(), array{tensor.Float32, []int{}, []float64{1}}, 0)
			check(t, what+": both", tensor.Concat(0, v, v).Add(v.Mean()).Sum(), array{tensor.Float32, []int{}, []float64{0}}, 0)
		}
	})
}

// Views share memory, except for a Reshape that has to copy.
func TestViewsShare(t *testing.T) {
	x := tensor.Arange(0, 12, 1).Reshape(3, 4)
	for what, v := range map[string]*tensor.Tensor{
		"Reshape": x.Reshape(2, -1), "Flatten": x.Flatten(), "T": x.T(), "Slice": x.Slice(0, 1, 2), "Row": x.Row(1),
		"BroadcastTo": x.BroadcastTo(2, 3, 4), "Unsqueeze": x.Unsqueeze(0), "Detach": x.Detach(), "Track": x.Track(),
		"Reshape of rows": x.Slice(0, 1, 3).Reshape(8), "Reshape within axes": x.Slice(1, 0, 2).Reshape(3, 1, 2),
	} {
		if !v.SharesMemory(x) {
			t.Errorf("%s copies", what)
		}
	}
	if x.T().Reshape(12).SharesMemory(x) {
		t.Error("a transposed matrix can't be flattened in place")
	}
}

func TestConversions(t *testing.T) {
	everywhere(t, func(t *testing.T, on device.Device) {
		const big = 1 << 62
		x := tensor.FromOn(on, []float64{-1.5, 0, 2.5, 16777217, 1e300, math.NaN(), math.Inf(-1)})
		check(t, "float32", x.As(tensor.Float32), array{tensor.Float32, []int{7},
			[]float64{-1.5, 0, 2.5, 16777216, math.Inf(1), math.NaN(), math.Inf(-1)}}, 0)
		if got, want := x.As(tensor.Int64).Int64s(), []int64{-1, 0, 2, 16777217, math.MaxInt64, 0, math.MinInt64}; !slices.Equal(got, want) {
			t.Errorf("int64: %v, want %v", got, want)
		}
		check(t, "bool", x.As(tensor.Bool), array{tensor.Bool, []int{7}, []float64{1, 0, 1, 1, 1, 1, 1}}, 0)
		i := tensor.FromOn(on, []int64{big, -3, 0})
		check(t, "from int64", i.As(tensor.Float32), array{tensor.Float32, []int{3}, []float64{big, -3, 0}}, 0)
		check(t, "from bool", i.As(tensor.Bool).As(tensor.Int64), array{tensor.Int64, []int{3}, []float64{1, 1, 0}}, 0)
		if !x.As(tensor.Float64).SharesMemory(x) {
			t.Error("As of the same type is a copy")
		}
	})
}

// To copies tensors and views between devices, and returns a view if they are there already.
func TestTo(t *testing.T) {
	everywhere(t, func(t *testing.T, on device.Device) {
		x := tensor.Arange(0, 6, 1).Reshape(2, 3)
		y := x.T().To(on)
		if y.Device() != on {
			t.Errorf("To(%v) is on %v", on, y.Device())
		}
		want := array{tensor.Float32, []int{3, 2}, []float64{0, 3, 1, 4, 2, 5}}
		check(t, "there", y, want, 0)
		check(t, "and back", y.AddScalar(1).To(device.CPU()).SubScalar(1), want, 0)
		if !y.To(on).SharesMemory(y) {
			t.Error("To the same device is a copy")
		}
	})
}
