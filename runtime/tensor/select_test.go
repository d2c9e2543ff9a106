package tensor_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/runtime/internal/engine"
	"github.com/asyncgen/asyncgen/runtime/op"
	"github.com/asyncgen/asyncgen/runtime/tensor"
	"gonum.org/v1/gonum/mat"
)

// randomIndex returns indices into an axis of length n, negative ones too.
func randomIndex(r *rand.Rand, n int, shape ...int) array {
	a := array{tensor.Int64, shape, make([]float64, device.Shape(shape).Size())}
	for i := range a.data {
		a.data[i] = float64(r.IntN(2*n) - n)
	}
	return a
}

// fromEnd returns index i of an axis of length n as a number from 0.
func fromEnd(i float64, n int) int {
	if i < 0 {
		return int(i) + n
	}
	return int(i)
}

func TestTake(t *testing.T) {
	everywhere(t, func(t *testing.T, on device.Device) {
		r := newRand(t)
		for _, dt := range device.DTypes() {
			for _, shape := range [][]int{{5}, {4, 3}, {2, 3, 4}, {3, 0}} {
				for axis, n := range shape {
					for _, of := range [][]int{{}, {3}, {2, 2}, {0}} {
						if n == 0 && device.Shape(of).Size() > 0 {
							continue
						}
						a, i := random(r, dt, shape, op.Interval{Lo: -9, Hi: 9}), randomIndex(r, max(n, 1), of...)
						want := array{dt, slices.Concat(shape[:axis], of, shape[axis+1:]), nil}
						for _, at := range indices(want.shape) {
							k := fromEnd(i.at(at[axis:axis+len(of)]), n)
							want.data = append(want.data, a.at(slices.Concat(at[:axis], []int{k}, at[axis+len(of):])))
						}
						x, index := asView(r, a, on), asView(r, i, on)
						check(t, fmt.Sprintf("Take %v%v axis %d by %v", dt, shape, axis, of), x.Take(axis-len(shape), index), want, 0)
						if axis == 0 && len(of) == 0 {
							check(t, "RowAt", x.RowAt(index), want, 0)
							check(t, "Row", x.Row(int(index.ItemInt())), want, 0)
						}
					}
				}
			}
		}
	})
}

func TestPickAndOneHot(t *testing.T) {
	everywhere(t, func(t *testing.T, on device.Device) {
		r := newRand(t)
		for _, shape := range [][]int{{4}, {3, 5}, {2, 3, 4}, {0, 3}} {
			last := len(shape) - 1
			a, i := random(r, tensor.Float64, shape, op.Interval{Lo: -9, Hi: 9}), randomIndex(r, shape[last], shape[:last]...)
			picked, hot := array{tensor.Float64, shape[:last], nil}, array{tensor.Float32, shape, nil}
			for _, at := range indices(shape[:last]) {
				k := fromEnd(i.at(at), shape[last])
				picked.data = append(picked.data, a.at(append(slices.Clone(at), k)))
				for j := range shape[last] {
					v := 0.0
					if j == k {
						v = 1
					}
					hot.data = append(hot.data, v)
				}
			}
			check(t, fmt.Sprintf("Pick of %v", shape), asView(r, a, on).Pick(asView(r, i, on)), picked, 0)
			for k, at := range i.data {
				i.data[k] = float64(fromEnd(at, shape[last])) // classes don't count from the end
			}
			check(t, fmt.Sprintf("OneHot of %v", shape), asView(r, i, on).OneHot(shape[last]), hot, 0)
			check(t, fmt.Sprintf("PickClasses of %v", shape), asView(r, a, on).PickClasses(asView(r, i, on)), picked, 0)
		}
	})
}

// If an index is out of range, the result fails, and so does what depends on it. The error names the index. Nothing
// else is affected.
func TestIndexOutOfRange(t *testing.T) {
	for _, name := range []string{"cpu", "sim:0"} {
		dev, err := device.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, mode := range []engine.Mode{engine.Async, engine.Naive} {
			e := engine.New(engine.Options{Mode: mode, Workers: 2})
			restore := tensor.SetEngine(e)
			x := tensor.On(dev).Arange(0, 6, 1).Reshape(3, 2)
			bad := tensor.FromOn(dev, []int64{0, 3, -4})
			for what, y := range map[string]*tensor.Tensor{
				"Take":       x.Take(0, bad),
				"RowAt":      x.RowAt(bad.Row(1)),
				"Pick":       x.T().Take(0, bad.Slice(0, 0, 2).Sub(bad.Slice(0, 0, 2))).T().Pick(bad),
				"OneHot":     bad.OneHot(3),
				"TakeAlong":  x.TakeAlong(0, bad.Unsqueeze(1)),
				"Scatter":    x.Scatter(0, bad.Unsqueeze(1), bad.As(tensor.Float32).Unsqueeze(1)),
				"ScatterAdd": x.ScatterAdd(0, bad.Unsqueeze(1), tensor.On(dev).Scalar(1)),
				"IndexCopy":  x.IndexCopy(0, bad, tensor.On(dev).Scalar(1)),
				"IndexAdd":   x.IndexAdd(0, bad, tensor.On(dev).Scalar(1)),
				"Count":      bad.Abs().BinCount(3),
			} {
				var failed *engine.OpError
				var at *device.IndexError
				if err := y.AddScalar(1).Wait(); !errors.As(err, &failed) || !errors.As(err, &at) {
					t.Errorf("%s: error %v", what, err)
				} else if at.Index != 3 && what != "Pick" && (at.Index != -4 || what != "Scatter" && what != "IndexCopy") {
					t.Errorf("%s: the error is about index %d", what, at.Index)
				} else if isClass := what == "OneHot" || what == "Count"; strings.Contains(failed.Error(), "label or class") != isClass {
					t.Errorf("%s: the error is %v", what, failed)
				}
			}
			if got := x.Take(0, tensor.FromOn(dev, []int64{-3})).Float32s(); got[0] != 0 || got[1] != 1 {
				t.Errorf("a row afterwards is %v", got)
			}
			restore()
			e.Close() // returns the failures once more
		}
	}
}

func TestCumSum(t *testing.T) {
	everywhere(t, func(t *testing.T, on device.Device) {
		r := newRand(t)
		for _, dt := range []device.DType{tensor.Float32, tensor.Float64, tensor.Int64} {
			for _, shape := range [][]int{{7}, {3, 4}, {2, 3, 2}, {0}, {2, 0}} {
				for axis := range shape {
					a := random(r, dt, shape, op.Interval{Lo: 0, Hi: 9})
					want := array{dt, shape, make([]float64, len(a.data))}
					step := device.Shape(shape[axis+1:]).Size()
					for i, at := range indices(shape) {
						if want.data[i] = a.data[i]; at[axis] > 0 {
							want.data[i] += want.data[i-step]
						}
						if dt == tensor.Float32 {
							want.data[i] = float64(float32(want.data[i]))
						}
					}
					check(t, fmt.Sprintf("CumSum %v%v axis %d", dt, shape, axis), asView(r, a, on).CumSum(axis-len(shape)), want, 0)
				}
			}
		}
	})
}

func TestConcatAndStack(t *testing.T) {
	everywhere(t, func(t *testing.T, on device.Device) {
		r := newRand(t)
		for _, dt := range device.DTypes() {
			for _, shape := range [][]int{{3}, {2, 3}, {2, 1, 3}, {0, 2}} {
				for axis := range shape {
					var parts []array
					var ts []*tensor.Tensor
					want := array{dt, slices.Clone(shape), nil}
					want.shape[axis] = 0
					for range 1 + r.IntN(4) {
						s := slices.Clone(shape)
						s[axis] = r.IntN(4)
						a := random(r, dt, s, op.Interval{Lo: -9, Hi: 9})
						parts, ts = append(parts, a), append(ts, asView(r, a, on))
						want.shape[axis] += s[axis]
					}
					for _, at := range indices(want.shape) {
						i, k := slices.Clone(at), 0
						for ; i[axis] >= parts[k].shape[axis]; k++ {
							i[axis] -= parts[k].shape[axis]
						}
						want.data = append(want.data, parts[k].at(i))
					}
					check(t, fmt.Sprintf("Concat %v%v axis %d of %d", dt, shape, axis, len(ts)), tensor.Concat(axis-len(shape), ts...), want, 0)
				}
				for axis := range len(shape) + 1 {
					a, b := random(r, dt, shape, op.Interval{Lo: -9, Hi: 9}), random(r, dt, shape, op.Interval{Lo: -9, Hi: 9})
					want := array{dt, slices.Insert(slices.Clone(shape), axis, 2), nil}
					for _, at := range indices(want.shape) {
						of := a
						if at[axis] == 1 {
							of = b
						}
						want.data = append(want.data, of.at(slices.Delete(slices.Clone(at), axis, axis+1)))
					}
					check(t, fmt.Sprintf("Stack %v%v axis %d", dt, shape, axis), tensor.Stack(axis, asView(r, a, on), asView(r, b, on)), want, 0)
				}
			}
		}
	})
}

// A concatenation fails if one of its parts has failed, whichever it is.
func TestConcatOfFailure(t *testing.T) {
	e := engine.New(engine.Options{Workers: 2})
	defer tensor.SetEngine(e)()
	good := tensor.From([]int64{1, 2})
	bad := good.Div(tensor.From([]int64{0}))
	for i := range 3 {
		parts := []*tensor.Tensor{good, good, good}
		parts[i] = bad
		if err := tensor.Concat(0, parts...).Wait(); err == nil {
			t.Errorf("part %d failed, the whole did not", i)
		}
	}
	e.Close() // returns the failure once more
}

// Products of several matrices are near to gonum's, one by one, and have the bits of products of two matrices.
func TestBatchedMatMul(t *testing.T) {
	everywhere(t, func(t *testing.T, on device.Device) {
		r := newRand(t)
		for _, dt := range []device.DType{tensor.Float32, tensor.Float64} {
			for _, c := range [][2][]int{
				{{3, 2, 4}, {3, 4, 5}}, {{3, 2, 4}, {4, 5}}, {{2, 4}, {3, 4, 5}}, {{2, 1, 2, 3}, {4, 3, 2}}, {{4}, {3, 4, 5}}, {{3, 2, 4}, {4}},
				{{0, 2, 3}, {3, 2}}, {{2, 2, 0}, {2, 0, 3}}, {{1, 2, 3}, {1, 3, 2}}, {{2, 1, 3}, {2, 3, 1}},
			} {
				a, b := random(r, dt, c[0], op.Interval{Lo: -1, Hi: 1}), random(r, dt, c[1], op.Interval{Lo: -1, Hi: 1})
				x, y := asView(r, a, on), asView(r, b, on)
				got := x.MatMul(y)
				am, bm := a, b
				if len(c[0]) == 1 {
					am.shape = []int{1, c[0][0]}
				}
				if len(c[1]) == 1 {
					bm.shape = []int{c[1][0], 1}
				}
				ra, rb := len(am.shape), len(bm.shape)
				batch, ok := op.Broadcast(am.shape[:ra-2], bm.shape[:rb-2])
				if !ok {
					t.Fatal("shapes of the test")
				}
				m, k, n := am.shape[ra-2], am.shape[ra-1], bm.shape[rb-1]
				want := array{dt, slices.Clone(batch), nil}
				if len(c[0]) > 1 {
					want.shape = append(want.shape, m)
				}
				if len(c[1]) > 1 {
					want.shape = append(want.shape, n)
				}
				for _, at := range indices(batch) {
					p, q := mat.NewDense(max(m, 1), max(k, 1), nil), mat.NewDense(max(k, 1), max(n, 1), nil)
					for i := range m {
						for l := range k {
							p.Set(i, l, am.at(slices.Concat(at, []int{i, l})))
						}
					}
					for l := range k {
						for j := range n {
							q.Set(l, j, bm.at(slices.Concat(at, []int{l, j})))
						}
					}
					var product mat.Dense
					product.Mul(p, q)
					for i := range m {
						for j := range n {
							want.data = append(want.data, product.At(i, j))
						}
					}
				}
				if !slices.Equal(got.Shape(), want.shape) {
					t.Fatalf("%v: shape %v, want %v", c, got.Shape(), want.shape)
				}
				eps := math.Ldexp(float64(k+1), -52)
				if dt == tensor.Float32 {
					eps = math.Ldexp(float64(k+1), -23)
				}
				for i, v := range values(got) {
					if !(math.Abs(v-want.data[i]) <= eps) {
						t.Fatalf("%v %v: element %d is %v, gonum has %v", dt, c, i, v, want.data[i])
					}
				}
				if len(c[0]) == 3 && len(c[1]) == 3 {
					for i := range c[0][0] {
						sameBits(t, fmt.Sprintf("%v, product %d", c, i), got.Row(i), x.Row(i).MatMul(y.Row(i)))
					}
				}
			}
		}
	})
}

// sameBits checks that got and want have the same bits.
func sameBits(t *testing.T, what string, got, want *tensor.Tensor) {
	t.Helper()
	if got.DType() != want.DType() || !slices.Equal(got.Shape(), want.Shape()) {
		t.Fatalf("%s: got %v%v, want %v%v", what, got.DType(), got.Shape(), want.DType(), want.Shape())
	}
	other := values(want)
	for i, v := range values(got) {
		if w := other[i]; math.Float64bits(v) != math.Float64bits(w) && (v == v || w == w) {
			t.Fatalf("%s: element %d is %v, want %v", what, i, v, w)
		}
	}
}

func TestSelectionGradients(t *testing.T) {
	everywhere(t, func(t *testing.T, on device.Device) {
		r := newRand(t)
		some := func(shape ...int) array { return random(r, tensor.Float64, shape, op.Interval{Lo: -2, Hi: 2}) }
		index := tensor.FromOn(on, []int64{2, 0, -1, 2})
		for _, c := range []struct {
			what string
			f    function
			in   []array
		}{
			{"Take rows", func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].Take(0, index) }, []array{some(3, 2)}},
			{"Take columns", func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].Take(1, index).Square() }, []array{some(2, 3)}},
			{"RowAt", func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].RowAt(index.Row(2)) }, []array{some(3, 2)}},
			{"Pick", func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].Pick(index).Square() }, []array{some(4, 3)}},
			{"CumSum", func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].CumSum(0).Square() }, []array{some(3, 2)}},
			{"CumSum along the last axis", func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].CumSum(-1).Square() }, []array{some(2, 3)}},
			{"Concat", func(x ...*tensor.Tensor) *tensor.Tensor { return tensor.Concat(1, x[0], x[1].Square(), x[0]).Square() }, []array{some(2, 1), some(2, 2)}},
			{"Concat with a constant", func(x ...*tensor.Tensor) *tensor.Tensor {
				return tensor.Concat(0, tensor.On(on).As(tensor.Float64).Ones(2), x[0].Exp(), tensor.On(on).As(tensor.Float64).Ones(1))
			}, []array{some(3)}},
			{"Stack", func(x ...*tensor.Tensor) *tensor.Tensor { return tensor.Stack(-1, x[0], x[1], x[0].Mul(x[1])) }, []array{some(2), some(2)}},
			{"MatMul of a batch", func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].MatMul(x[1]) }, []array{some(2, 1, 3), some(2, 3, 2)}},
			{"MatMul of a batch by a matrix", func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].MatMul(x[1]) }, []array{some(2, 2, 2), some(2, 2)}},
			{"MatMul of a matrix by a batch", func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].MatMul(x[1]) }, []array{some(2, 2), some(2, 2, 1)}},
			{"MatMul of a vector by a batch", func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].MatMul(x[1]) }, []array{some(2), some(2, 2, 2)}},
			{"Softmax", func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].Softmax(-1) }, []array{some(2, 3)}},
			{"Softmax of columns", func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].Softmax(0).Square() }, []array{some(3, 2)}},
			{"LayerNorm", func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].LayerNorm(0, 0.1) }, []array{some(3, 2)}},
			{"LayerNorm with gain and bias", func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].LayerNorm(1, 0.1, x[1], x[2]).Square() }, []array{some(2, 3, 2), some(3), some(3)}},
			{"RMSNorm", func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].RMSNorm(-1, 0.1, x[1]) }, []array{some(2, 3), some(3)}},
			{"LogSoftmax", func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].LogSoftmax(0) }, []array{some(3, 2)}},
			{"LogSumExp", func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].LogSumExp(1) }, []array{some(2, 3)}},
			{"LogSumExp of all", func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].LogSumExp() }, []array{some(2, 2)}},
		} {
			checkGradient(t, r, on, c.what, c.f, c.in...)
		}
	})
}

// Softmax and LogSoftmax are near to their definitions in float64.
func TestSoftmax(t *testing.T) {
	everywhere(t, func(t *testing.T, on device.Device) {
		r := newRand(t)
		for _, dt := range []device.DType{tensor.Float32, tensor.Float64} {
			for _, shape := range [][]int{{5}, {3, 4}, {2, 3, 2}, {2, 0}, {0, 2}, {1}} {
				for axis, n := range shape {
					a := random(r, dt, shape, op.Interval{Lo: -20, Hi: 20})
					soft, logs := array{dt, shape, nil}, array{dt, shape, nil}
					sums := array{dt, slices.Delete(slices.Clone(shape), axis, axis+1), nil}
					for _, at := range indices(shape) {
						sum := 0.0
						for k := range n {
							i := slices.Clone(at)
							i[axis] = k
							sum += math.Exp(a.at(i))
						}
						soft.data = append(soft.data, math.Exp(a.at(at))/sum)
						logs.data = append(logs.data, a.at(at)-math.Log(sum))
					}
					for _, at := range indices(sums.shape) {
						sum := 0.0
						for k := range n {
							sum += math.Exp(a.at(slices.Insert(slices.Clone(at), axis, k)))
						}
						sums.data = append(sums.data, math.Log(sum))
					}
					what := fmt.Sprintf("%v%v axis %d", dt, shape, axis)
					// The difference from the greatest element, up to 40, is rounded before its power is taken.
					check(t, "Softmax "+what, asView(r, a, on).Softmax(axis), soft, 40)
					near(t, "LogSoftmax "+what, asView(r, a, on).LogSoftmax(axis), logs)
					near(t, "LogSumExp "+what, asView(r, a, on).LogSumExp(axis), sums)
				}
			}
		}
		inf, nan := math.Inf(1), math.NaN()
		f := func(v ...float64) *tensor.Tensor { return tensor.FromOn(on, v) }
		for _, c := range []struct {
			what      string
			got, want *tensor.Tensor
		}{
			{"Softmax of great numbers", f(1000, 1000, -inf).Softmax(0), f(0.5, 0.5, 0)},
			{"Softmax of nothing but -Inf", f(-inf, -inf).Softmax(0), f(nan, nan)},
			{"Softmax with NaN", f(1, nan).Softmax(0), f(nan, nan)},
			{"LogSoftmax of a tiny share", f(0, -2000).LogSoftmax(0), f(0, -2000)},
			{"LogSumExp", f(2000, 2000).LogSumExp().SubScalar(math.Ln2), f(2000).Row(0)},
			{"LogSumExp of -Inf", f(-inf, -inf).LogSumExp(), f(-inf).Row(0)},
			{"LogSumExp of Inf", f(1, inf).LogSumExp(), f(inf).Row(0)},
			{"LogSumExp of nothing", f().LogSumExp(), f(-inf).Row(0)},
		} {
			sameBits(t, c.what, c.got, c.want)
		}
	})
}

// Norms are near to their definitions in float64, and have the bits of separate operations.
func TestNorms(t *testing.T) {
	everywhere(t, func(t *testing.T, on device.Device) {
		r := newRand(t)
		for _, dt := range []device.DType{tensor.Float32, tensor.Float64} {
			for _, shape := range [][]int{{5}, {3, 4}, {2, 3, 70}, {70, 3}, {2, 0}, {0, 2}, {1}} {
				for axis, n := range shape {
					a := random(r, dt, shape, op.Interval{Lo: -3, Hi: 5})
					gain, bias := random(r, dt, []int{n}, op.Interval{Lo: -2, Hi: 2}), random(r, dt, []int{n}, op.Interval{Lo: -2, Hi: 2})
					layer, rms := array{dt, shape, nil}, array{dt, shape, nil}
					for _, at := range indices(shape) {
						i := slices.Clone(at)
						mean, square, variance := 0.0, 0.0, 0.0
						for k := range n {
							i[axis] = k
							mean += a.at(i) / float64(n)
							square += a.at(i) * a.at(i) / float64(n)
						}
						for k := range n {
							i[axis] = k
							variance += (a.at(i) - mean) * (a.at(i) - mean) / float64(n)
						}
						y := (a.at(at) - mean) / math.Sqrt(variance+0.1)
						layer.data = append(layer.data, y*gain.data[at[axis]]+bias.data[at[axis]])
						rms.data = append(rms.data, a.at(at)/math.Sqrt(square+0.1)*gain.data[at[axis]])
					}
					what := fmt.Sprintf("%v%v axis %d", dt, shape, axis)
					x := asView(r, a, on)
					g, b := asView(r, gain, on), asView(r, bias, on)
					near(t, "LayerNorm "+what, x.LayerNorm(axis, 0.1, g, b), layer)
					near(t, "RMSNorm "+what, x.RMSNorm(axis-len(shape), 0.1, g), rms)
					along := make([]int, len(shape))
					for i := range along {
						along[i] = 1
					}
					along[axis] = n
					sameBits(t, "LayerNorm without gain, "+what, x.LayerNorm(axis, 0.1).Mul(g.Reshape(along...)).Add(b.Reshape(along...)), x.LayerNorm(axis, 0.1, g, b))
					if n > 0 {
						powers := x.Sub(x.MaxKeep(axis)).Exp()
						sameBits(t, "Softmax "+what, x.Softmax(axis), powers.Div(powers.SumKeep(axis)))
					}
				}
			}
		}
	})
}

// near checks results whose error is relative to the greatest operand, not to the result.
func near(t *testing.T, what string, x *tensor.Tensor, want array) {
	t.Helper()
	if x.DType() != want.dtype || !slices.Equal(x.Shape(), want.shape) {
		t.Fatalf("%s: got %v%v, want %v%v", what, x.DType(), x.Shape(), want.dtype, want.shape)
	}
	eps := 0x1p-52
	if want.dtype == tensor.Float32 {
		eps = 0x1p-23
	}
	for i, got := range values(x) {
		if w := want.data[i]; got != w && !(math.Abs(got-w) <= 4*eps*max(1, 40)) {
			t.Fatalf("%s: element %d is %v, want %v", what, i, got, w)
		}
	}
}

func TestArgMaxEdges(t *testing.T) {
	everywhere(t, func(t *testing.T, on device.Device) {
		nan, inf, zero := math.NaN(), math.Inf(1), math.Copysign(0, -1)
		for _, c := range []struct {
			x        []float64
			max, min int64
		}{
			{[]float64{1, 3, 3, 1}, 1, 0}, {[]float64{2, nan, inf, nan}, 1, 1}, {[]float64{zero, 0, zero}, 0, 0}, {[]float64{-inf, -inf}, 0, 0}, {[]float64{5}, 0, 0},
		} {
			for _, dt := range []device.DType{tensor.Float32, tensor.Float64} {
				x := tensor.FromOn(on, c.x).As(dt)
				if got := [2]int64{x.ArgMax().ItemInt(), x.ArgMin().ItemInt()}; got != [2]int64{c.max, c.min} {
					t.Errorf("%v of %v: ArgMax, ArgMin are %v, want %d and %d", dt, c.x, got, c.max, c.min)
				}
			}
		}
	})
}

func TestSelectionMistakes(t *testing.T) {
	x, i := tensor.Zeros(2, 3), tensor.From([]int64{0, 1})
	for what, c := range map[string]struct {
		f    func()
		text string
	}{
		"Take by numbers":         {func() { x.Take(0, tensor.Zeros(2)) }, op.MistakeIndices},
		"Take of nil":             {func() { x.Take(0, nil) }, op.MistakeNil},
		"Take along no axis":      {func() { x.Take(2, i) }, op.MistakeAxis},
		"RowAt two":               {func() { x.RowAt(i) }, op.MistakeItem},
		"RowAt of a number":       {func() { tensor.Scalar(1).RowAt(i.Row(0)) }, op.MistakeRank},
		"RowAt of nil":            {func() { x.RowAt(nil) }, op.MistakeNil},
		"Pick too many":           {func() { x.Pick(tensor.From([]int64{0, 1, 2})) }, op.MistakeBroadcast},
		"Pick of a number":        {func() { tensor.Scalar(1).Pick(i) }, op.MistakeRank},
		"Pick of nil":             {func() { x.Pick(nil) }, op.MistakeNil},
		"OneHot of floats":        {func() { x.OneHot(3) }, op.MistakeIndices},
		"OneHot of -1":            {func() { i.OneHot(-1) }, op.MistakeShape},
		"CumSum along no axis":    {func() { x.CumSum(-3) }, op.MistakeAxis},
		"CumSum of bools":         {func() { tensor.From([]bool{true}).CumSum(0) }, op.MistakeType},
		"Concat of nothing":       {func() { tensor.Concat(0) }, op.MistakeNothing},
		"Concat of nil":           {func() { tensor.Concat(0, x, nil) }, op.MistakeNil},
		"Concat, nil first":       {func() { tensor.Concat(0, nil, x) }, op.MistakeNil},
		"Concat of types":         {func() { tensor.Concat(0, x, x.As(tensor.Float64)) }, op.MistakeDTypes},
		"Concat of shapes":        {func() { tensor.Concat(0, x, x.T()) }, op.MistakeBroadcast},
		"Concat of ranks":         {func() { tensor.Concat(0, x, x.Row(0)) }, op.MistakeBroadcast},
		"Concat of numbers":       {func() { tensor.Concat(0, tensor.Scalar(1)) }, op.MistakeAxis},
		"Stack of shapes":         {func() { tensor.Stack(0, x, x.T()) }, op.MistakeShapes},
		"Stack of nil":            {func() { tensor.Stack(0, nil) }, op.MistakeNil},
		"Stack of nothing":        {func() { tensor.Stack(0) }, op.MistakeNothing},
		"Stack along no axis":     {func() { tensor.Stack(3, x) }, op.MistakeAxis},
		"MatMul of batches":       {func() { tensor.Zeros(2, 1, 1).MatMul(tensor.Zeros(3, 1, 1)) }, op.MistakeBroadcast},
		"MatMul of lengths":       {func() { tensor.Zeros(2, 1, 2).MatMul(tensor.Zeros(2, 1, 1)) }, op.MistakeMatMul},
		"MatMul of vectors":       {func() { tensor.Zeros(2).MatMul(tensor.Zeros(2)) }, op.MistakeRank},
		"LayerNorm of integers":   {func() { i.LayerNorm(0, 1) }, op.MistakeType},
		"LayerNorm along no axis": {func() { x.LayerNorm(2, 1) }, op.MistakeAxis},
		"LayerNorm, short gain":   {func() { x.LayerNorm(1, 1, tensor.Ones(2)) }, op.MistakeVector},
		"LayerNorm by a number":   {func() { x.LayerNorm(1, 1, tensor.Scalar(1)) }, op.MistakeVector},
		"LayerNorm of types":      {func() { x.LayerNorm(1, 1, tensor.Ones(3).As(tensor.Float64)) }, op.MistakeDTypes},
		"LayerNorm by nil":        {func() { x.LayerNorm(1, 1, nil) }, op.MistakeNil},
		"RMSNorm with a bias":     {func() { x.RMSNorm(1, 1, tensor.Ones(3), tensor.Ones(3)) }, op.MistakeVector},
		"Softmax of integers":     {func() { i.Softmax(0) }, op.MistakeType},
		"LogSoftmax of integers":  {func() { i.LogSoftmax(0) }, op.MistakeType},
		"LogSumExp of integers":   {func() { i.LogSumExp() }, op.MistakeType},
		"Softmax along no axis":   {func() { x.Softmax(2) }, op.MistakeAxis},
	} {
		if m := mistake(c.f); m == nil || len(m.Text) < len(c.text) || m.Text[:len(c.text)] != c.text {
			t.Errorf("%s: %v, want %s", what, m, c.text)
		}
	}
}
