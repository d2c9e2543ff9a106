package tensor_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/runtime/op"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// randomOnes returns shape with some axes that are not the given one of length 1.
func (s *sample) randomOnes(shape []int, axis int) []int {
	shape = slices.Clone(shape)
	for i := range shape {
		if i != axis && s.IntN(4) == 0 {
			shape[i] = 1
		}
	}
	return shape
}

func TestTakeAlong(t *testing.T) {
	partCases(t, func(t *testing.T, r *sample, on device.Device, what string, a array, axis int) {
		n := a.shape[axis]
		for _, k := range []int{0, 1, 2, 7} {
			if n == 0 && k > 0 {
				continue
			}
			i := randomIndex(r.Rand, max(n, 1), r.randomOnes(with(a.shape, axis, k), axis)...)
			x := random(r.Rand, a.dtype, r.randomOnes(a.shape, axis), op.Interval{Lo: -9, Hi: 9})
			shape, _ := op.Broadcast(with(x.shape, axis, 1), with(i.shape, axis, 1))
			want := x.made(with(shape, axis, k), 0, func(at []int) []int {
				// the place in x is where it is broadcast from, except along the axis
				source := slices.Clone(at)
				source[axis] = fromEnd(i.at(at), n)
				return source
			})
			check(t, fmt.Sprintf("TakeAlong %s by %v", what, i.shape), asView(r.Rand, x, on).TakeAlong(axis-len(a.shape), asView(r.Rand, i, on)), want, 0)
		}
	})
}

// Scatter, ScatterAdd, IndexCopy and IndexAdd are what a loop over the indices in row-major order gives: also if
// several name one place.
func TestScatter(t *testing.T) {
	partCases(t, func(t *testing.T, r *sample, on device.Device, what string, a array, axis int) {
		n := a.shape[axis]
		for _, k := range []int{0, 1, 2, 7} {
			if n == 0 && k > 0 {
				continue
			}
			run := func(name string, f, add func(index, src *tensor.Tensor) *tensor.Tensor, i array, place func(at []int) int) {
				shape := with(a.shape, axis, k)
				src := random(r.Rand, a.dtype, r.randomOnes(shape, axis)[r.IntN(len(shape)):], op.Interval{Lo: -9, Hi: 9})
				replaced, sums := array{a.dtype, a.shape, slices.Clone(a.data)}, make([]float64, len(a.data))
				for _, at := range indices(shape) {
					to := a.place(moved(slices.Clone(at), axis, place(at)))
					replaced.data[to] = src.at(at)
					sums[to] += src.at(at)
					if a.dtype.Wide() == tensor.Float32 {
						sums[to] = float64(float32(sums[to]))
					}
				}
				what := fmt.Sprintf("%s by %v from %v", what, i.shape, src.shape)
				check(t, name+"replaced "+what, f(asView(r.Rand, i, on), asView(r.Rand, src, on)), replaced, 0)
				if !op.Numbers.Has(a.dtype) {
					if m := mistake(func() { add(i.tensor(on), src.tensor(on)) }); m == nil || m.Text != op.Unsupported(op.Numbers) {
						t.Errorf("%sadded %s: %v", name, what, m)
					}
					return
				}
				added := array{a.dtype, a.shape, nil}
				for i, v := range a.data {
					sum := v + sums[i]
					if a.dtype.IsStorage() {
						sum = rounded(float64(float32(sum)), a.dtype)
					}
					added.data = append(added.data, sum)
				}
				check(t, name+"added "+what, add(asView(r.Rand, i, on), asView(r.Rand, src, on)), added, 0)
			}
			x := asView(r.Rand, a, on)
			i := randomIndex(r.Rand, max(n, 1), r.randomOnes(with(a.shape, axis, k), axis)...)
			run("each ", func(index, src *tensor.Tensor) *tensor.Tensor { return x.Scatter(axis, index, src) },
				func(index, src *tensor.Tensor) *tensor.Tensor { return x.ScatterAdd(axis-len(a.shape), index, src) },
				i, func(at []int) int { return fromEnd(i.at(at), n) })
			v := randomIndex(r.Rand, max(n, 1), k)
			run("parts ", func(index, src *tensor.Tensor) *tensor.Tensor { return x.IndexCopy(axis, index, src) },
				func(index, src *tensor.Tensor) *tensor.Tensor { return x.IndexAdd(axis-len(a.shape), index, src) },
				v, func(at []int) int { return fromEnd(v.data[at[axis]], n) })
		}
	})
}

// Scatter moves elements as they are, -0 and NaN too, and what it does not name does not matter.
func TestScatterKeepsBits(t *testing.T) {
	everywhere(t, func(t *testing.T, on device.Device) {
		nan, zero := math.NaN(), math.Copysign(0, -1)
		x := tensor.FromOn(on, []float64{nan, 1, zero, 3})
		index := tensor.FromOn(on, []int64{3, 1, -1, -3})
		src := tensor.FromOn(on, []float64{nan, 5, zero, nan})
		want := []float64{nan, nan, zero, zero}
		for what, got := range map[string]*tensor.Tensor{"Scatter": x.Scatter(0, index, src), "IndexCopy": x.IndexCopy(0, index, src)} {
			for i, v := range got.Float64s() {
				if math.Float64bits(v) != math.Float64bits(want[i]) && !(math.IsNaN(v) && math.IsNaN(want[i])) {
					t.Errorf("%s: element %d is %v, want %v", what, i, v, want[i])
				}
			}
		}
	})
}

func TestMasks(t *testing.T) {
	everywhere(t, func(t *testing.T, on device.Device) {
		r := &sample{Rand: newRand(t)}
		for _, dt := range device.DTypes() {
			for _, shape := range [][]int{{}, {5}, {3, 4}, {2, 3, 2}, {0}, {2, 0}} {
				a := random(r.Rand, dt, shape, op.Interval{Lo: -9, Hi: 9})
				m := random(r.Rand, tensor.Bool, r.randomOnes(shape, -1)[r.IntN(len(shape)+1):], op.Interval{})
				filled, selected := array{dt, shape, slices.Clone(a.data)}, array{dt, nil, nil}
				for i, at := range indices(shape) {
					if m.at(at) != 0 {
						filled.data[i] = 1
						selected.data = append(selected.data, a.data[i])
					}
				}
				selected.shape = []int{len(selected.data)}
				what := fmt.Sprintf("%v%v by %v", dt, shape, m.shape)
				check(t, "MaskedFill "+what, asView(r.Rand, a, on).MaskedFill(asView(r.Rand, m, on), 1), filled, 0)
				check(t, "MaskedSelect "+what, asView(r.Rand, a, on).MaskedSelect(asView(r.Rand, m, on)), selected, 0)
			}
		}
	})
}

func TestScatterGradients(t *testing.T) {
	everywhere(t, func(t *testing.T, on device.Device) {
		r := newRand(t)
		some := func(shape ...int) array { return random(r, tensor.Float64, shape, op.Interval{Lo: -2, Hi: 2}) }
		each := tensor.FromOn(on, []int64{2, 0, -1, 1, 2, 1}, 2, 3)
		part := tensor.FromOn(on, []int64{2, 0, -1})
		mask := tensor.FromOn(on, []bool{true, false, true, false}, 4)
		for _, c := range []struct {
			what string
			f    function
			in   []array
		}{
			{"TakeAlong", func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].TakeAlong(1, each).Square() }, []array{some(2, 4)}},
			{"TakeAlong of one row", func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].TakeAlong(1, each).Square() }, []array{some(1, 4)}},
			{"Scatter", func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].Scatter(1, each, x[1]).Square() }, []array{some(2, 4), some(2, 3)}},
			{"Scatter of one row", func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].Scatter(0, each, x[1]).Square() }, []array{some(3, 3), some(3)}},
			{"ScatterAdd", func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].ScatterAdd(1, each, x[1]).Square() }, []array{some(2, 4), some(2, 3)}},
			{"IndexCopy", func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].IndexCopy(0, part, x[1]).Square() }, []array{some(3, 2), some(3, 2)}},
			{"IndexAdd", func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].IndexAdd(1, part, x[1]).Square() }, []array{some(2, 4), some(3)}},
			{"MaskedFill", func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].MaskedFill(mask, 2).Square() }, []array{some(2, 4)}},
			{"MaskedSelect", func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].MaskedSelect(mask).Square() }, []array{some(2, 4)}},
		} {
			checkGradient(t, r, on, c.what, c.f, c.in...)
		}
	})
}
