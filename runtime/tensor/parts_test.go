package tensor_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/internal/turns"
	"github.com/asyncgen/asyncgen/runtime/op"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// made returns the array of the given shape whose elements are those of a at the indices that from returns, or v where
// it returns nil.
func (a array) made(shape []int, v float64, from func(at []int) []int) array {
	out := array{a.dtype, slices.Clone(shape), nil}
	for _, at := range indices(shape) {
		if source := from(slices.Clone(at)); source != nil {
			out.data = append(out.data, a.at(source))
		} else {
			out.data = append(out.data, v)
		}
	}
	return out
}

// partCases calls f with arrays of all types and many shapes, and an axis of each.
func partCases(t *testing.T, f func(t *testing.T, r *sample, on device.Device, what string, a array, axis int)) {
	everywhere(t, func(t *testing.T, on device.Device) {
		r := &sample{Rand: newRand(t)}
		for _, dt := range device.DTypes() {
			for _, shape := range [][]int{{5}, {1}, {4, 3}, {2, 3, 4}, {0}, {3, 0}, {0, 2}} {
				for axis := range shape {
					f(t, r, on, fmt.Sprintf("%v%v axis %d", dt, shape, axis), random(r.Rand, dt, shape, op.Interval{Lo: -9, Hi: 9}), axis)
				}
			}
		}
	})
}

// with returns shape with another length of an axis.
func with(shape []int, axis, n int) []int {
	shape = slices.Clone(shape)
	shape[axis] = n
	return shape
}

// moved returns at with another index along an axis.
func moved(at []int, axis, i int) []int {
	at[axis] = i
	return at
}

func TestSplitChunkAndUnbind(t *testing.T) {
	partCases(t, func(t *testing.T, r *sample, on device.Device, what string, a array, axis int) {
		n, x := a.shape[axis], asView(r.Rand, a, on)
		lengths := []int{r.IntN(n + 1), 0}
		lengths = append(lengths, n-lengths[0])
		from := 0
		for i, part := range x.Split(axis-len(a.shape), lengths...) {
			check(t, "Split "+what, part, a.made(with(a.shape, axis, lengths[i]), 0, func(at []int) []int { return moved(at, axis, at[axis]+from) }), 0)
			from += lengths[i]
			if part.Size() > 0 && !part.SharesMemory(x) {
				t.Errorf("Split %s copies", what)
			}
		}
		chunks := x.Chunk(axis, 3)
		for i, part := range chunks {
			if d := chunks[0].Dim(axis) - part.Dim(axis); d < 0 || d > 1 || i > 0 && part.Dim(axis) > chunks[i-1].Dim(axis) {
				t.Errorf("Chunk %s: part %d has length %d, the first %d", what, i, part.Dim(axis), chunks[0].Dim(axis))
			}
		}
		if len(chunks) != 3 {
			t.Errorf("Chunk %s: %d parts", what, len(chunks))
		}
		check(t, "Concat of Chunk "+what, tensor.Concat(axis, chunks...), a, 0)
		parts := x.Unbind(axis)
		if len(parts) != n {
			t.Fatalf("Unbind %s: %d parts", what, len(parts))
		}
		shape := slices.Delete(slices.Clone(a.shape), axis, axis+1)
		for i, part := range parts {
			check(t, "Unbind "+what, part, a.made(shape, 0, func(at []int) []int { return slices.Insert(at, axis, i) }), 0)
		}
	})
}

func TestPad(t *testing.T) {
	partCases(t, func(t *testing.T, r *sample, on device.Device, what string, a array, axis int) {
		n := a.shape[axis]
		before, after := r.IntN(4), r.IntN(4)
		longer := with(a.shape, axis, before+n+after)
		got := asView(r.Rand, a, on).Pad(axis-len(a.shape), before, after, 1)
		check(t, "Pad "+what, got, a.made(longer, 1, func(at []int) []int {
			if i := at[axis] - before; 0 <= i && i < n {
				return moved(at, axis, i)
			}
			return nil
		}), 0)
		for border, period := range map[tensor.Border]int{tensor.Reflect: 2*n - 2, tensor.Replicate: 0, tensor.Circular: n} {
			before, after := before, after
			switch {
			case n == 0:
				before, after = 0, 0
			case border == tensor.Reflect:
				before, after = min(before, n-1), min(after, n-1)
			case border == tensor.Circular:
				before, after = min(before, n), min(after, n)
			}
			want := a.made(with(a.shape, axis, before+n+after), 0, func(at []int) []int {
				i := at[axis] - before
				for border != tensor.Replicate && (i < 0 || i >= n) { // walk to the period in which it lies
					switch {
					case border == tensor.Circular && i < 0:
						i += period
					case border == tensor.Circular:
						i -= period
					case i < 0:
						i = -i
					default:
						i = period - i
					}
				}
				return moved(at, axis, min(max(i, 0), n-1))
			})
			check(t, fmt.Sprintf("PadWith %v %s by %d and %d", border, what, before, after), asView(r.Rand, a, on).PadWith(border, axis, before, after), want, 0)
		}
	})
}

func TestFlipRollAndRepeat(t *testing.T) {
	partCases(t, func(t *testing.T, r *sample, on device.Device, what string, a array, axis int) {
		n := a.shape[axis]
		check(t, "Flip "+what, asView(r.Rand, a, on).Flip(axis-len(a.shape)), a.made(a.shape, 0, func(at []int) []int { return moved(at, axis, n-1-at[axis]) }), 0)
		check(t, "Flip of all "+what, asView(r.Rand, a, on).Flip(), a.made(a.shape, 0, func(at []int) []int {
			for i, n := range a.shape {
				at[i] = n - 1 - at[i]
			}
			return at
		}), 0)
		shift := r.IntN(30) - 15
		check(t, fmt.Sprint("Roll ", what, " by ", shift), asView(r.Rand, a, on).Roll(axis, shift), a.made(a.shape, 0, func(at []int) []int {
			return moved(at, axis, ((at[axis]-shift)%n+n)%n)
		}), 0)
		times := r.IntN(4)
		check(t, fmt.Sprint("RepeatInterleave ", what, " by ", times), asView(r.Rand, a, on).RepeatInterleave(axis, times),
			a.made(with(a.shape, axis, n*times), 0, func(at []int) []int { return moved(at, axis, at[axis]/times) }), 0)
		if n > 0 {
			size, step := 1+r.IntN(n), 1+r.IntN(3)
			windows := append(with(a.shape, axis, (n-size)/step+1), size)
			check(t, fmt.Sprint("Unfold ", what, " to ", size, " each ", step), asView(r.Rand, a, on).Unfold(axis, size, step), a.made(windows, 0, func(at []int) []int {
				last := len(at) - 1
				return moved(at[:last], axis, at[axis]*step+at[last])
			}), 0)
		}
		counts := randomShape(r.Rand, 1+r.IntN(len(a.shape)+1), 3)
		shape := slices.Clone(a.shape)
		for len(shape) < len(counts) {
			shape = slices.Insert(shape, 0, 1)
		}
		for i, count := range counts {
			shape[len(shape)-len(counts)+i] *= count
		}
		check(t, fmt.Sprint("Tile ", what, " by ", counts), asView(r.Rand, a, on).Tile(counts...), a.made(shape, 0, func(at []int) []int {
			at = at[len(at)-len(a.shape):]
			for i := range at {
				at[i] %= a.shape[i]
			}
			return at
		}), 0)
	})
}

func TestTrianglesAndDiagonals(t *testing.T) {
	everywhere(t, func(t *testing.T, on device.Device) {
		r := newRand(t)
		for _, dt := range device.DTypes() {
			for _, shape := range [][]int{{3, 3}, {2, 5}, {5, 2}, {2, 3, 4}, {1, 1}, {0, 3}, {3, 0}, {0, 2, 2}} {
				if !turns.Has(t, fmt.Sprint(dt, shape)) {
					continue
				}
				rank := len(shape)
				rows, columns := shape[rank-2], shape[rank-1]
				for k := -rows - 2; k <= columns+2; k++ {
					a := random(r, dt, shape, op.Interval{Lo: -9, Hi: 9})
					what := fmt.Sprintf("%d of %v%v", k, dt, shape)
					below := func(at []int) bool { return at[rank-1] <= at[rank-2]+k }
					above := func(at []int) bool { return at[rank-1] >= at[rank-2]+k }
					for name, c := range map[string]struct {
						f    func(*tensor.Tensor, int) *tensor.Tensor
						keep func(at []int) bool
					}{"Tril": {(*tensor.Tensor).Tril, below}, "Triu": {(*tensor.Tensor).Triu, above}} {
						check(t, name+" "+what, c.f(asView(r, a, on), k), a.made(shape, 0, func(at []int) []int {
							if c.keep(at) {
								return at
							}
							return nil
						}), 0)
					}
					n := 0
					for i := range rows {
						if 0 <= i+k && i+k < columns {
							n++
						}
					}
					diagonal := a.made(append(slices.Clone(shape[:rank-2]), n), 0, func(at []int) []int {
						return append(at[:rank-2:rank-2], at[rank-2]+max(0, -k), at[rank-2]+max(0, k))
					})
					x := asView(r, a, on)
					check(t, "Diagonal "+what, x.Diagonal(k), diagonal, 0)
					if whole := a.tensor(on); n > 0 && diagonal.size() > 0 && !whole.Diagonal(k).SharesMemory(whole) {
						t.Errorf("Diagonal %s copies", what)
					}
					m := columns + max(k, -k)
					check(t, "Diag "+what, x.Diag(k), a.made(append(slices.Clone(shape[:rank-1]), m, m), 0, func(at []int) []int {
						if at[rank] != at[rank-1]+k {
							return nil
						}
						return append(at[:rank-1:rank-1], min(at[rank-1], at[rank]))
					}), 0)
				}
			}
		}
	})
}

func TestPartGradients(t *testing.T) {
	everywhere(t, func(t *testing.T, on device.Device) {
		r := newRand(t)
		some := func(shape ...int) array { return random(r, tensor.Float64, shape, op.Interval{Lo: -2, Hi: 2}) }
		for what, f := range map[string]function{
			"Split": func(x ...*tensor.Tensor) *tensor.Tensor {
				parts := x[0].Split(1, 1, 3)
				return parts[0].Mul(parts[1])
			},
			"Unbind": func(x ...*tensor.Tensor) *tensor.Tensor {
				rows := x[0].Unbind(0)
				return rows[0].Mul(rows[2])
			},
			"Pad": func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].Pad(0, 2, 1, 3).Square() },
			"PadWith": func(x ...*tensor.Tensor) *tensor.Tensor {
				return x[0].PadWith(tensor.Reflect, 1, 2, 3).PadWith(tensor.Replicate, 0, 0, 2).PadWith(tensor.Circular, 1, 1, 1).Square()
			},
			"Flip":             func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].Flip().Mul(x[0]) },
			"Roll":             func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].Roll(1, 3).Mul(x[0]) },
			"Tile":             func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].Tile(2, 1, 3).Square() },
			"RepeatInterleave": func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].RepeatInterleave(0, 2).Square() },
			"Unfold":           func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].Unfold(0, 2, 1).Square() },
			"Tril":             func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].Tril(1).Square() },
			"Triu":             func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].Triu(1).Square() },
			"Diagonal":         func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].Diagonal(1).Square() },
			"Diagonal of T":    func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].T().Diagonal(1).Square() },
			"Diag":             func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].Diag(-1).Square() },
		} {
			checkGradient(t, r, on, what, f, some(3, 4))
		}
	})
}

// Structural operations of several commands let go of what they make on the way.
func TestPartsKeepNothing(t *testing.T) {
	withoutCollector(t, func(t *testing.T, on tensor.Maker, live func() int64) {
		x, kernel := on.Rand(64, 64), on.Rand(1, 1, 3, 3)
		order, mask := x.ArgSort(1, tensor.Ascending), x.GtScalar(0.5)
		before := live()
		for what, f := range map[string]func() []*tensor.Tensor{
			"Index": func() []*tensor.Tensor {
				return []*tensor.Tensor{x.Index(tensor.All().Step(-1), tensor.All().Step(2), tensor.NewAxis())}
			},
			"SetIndex": func() []*tensor.Tensor {
				return []*tensor.Tensor{x.SetIndex(x, tensor.All().Step(-1), tensor.All().Step(-1))}
			},
			"Split":            func() []*tensor.Tensor { return x.Split(0, 32, 32) },
			"Unbind":           func() []*tensor.Tensor { return x.Unbind(1) },
			"Pad":              func() []*tensor.Tensor { return []*tensor.Tensor{x.Pad(0, 1, 1, 1)} },
			"PadWith":          func() []*tensor.Tensor { return []*tensor.Tensor{x.PadWith(tensor.Circular, 1, 9, 9)} },
			"Flip":             func() []*tensor.Tensor { return []*tensor.Tensor{x.Flip()} },
			"Roll":             func() []*tensor.Tensor { return []*tensor.Tensor{x.Roll(0, 5)} },
			"Tile":             func() []*tensor.Tensor { return []*tensor.Tensor{x.Tile(2, 2)} },
			"RepeatInterleave": func() []*tensor.Tensor { return []*tensor.Tensor{x.RepeatInterleave(1, 3)} },
			"Unfold":           func() []*tensor.Tensor { return []*tensor.Tensor{x.Unfold(1, 2, 1)} },
			"Tril":             func() []*tensor.Tensor { return []*tensor.Tensor{x.Tril(1)} },
			"Diagonal":         func() []*tensor.Tensor { return []*tensor.Tensor{x.T().Diagonal(1)} },
			"Diag":             func() []*tensor.Tensor { return []*tensor.Tensor{x.Diag(0)} },
			"TakeAlong":        func() []*tensor.Tensor { return []*tensor.Tensor{x.TakeAlong(1, order)} },
			"Scatter":          func() []*tensor.Tensor { return []*tensor.Tensor{x.Scatter(1, order, x)} },
			"ScatterAdd":       func() []*tensor.Tensor { return []*tensor.Tensor{x.ScatterAdd(0, order, x)} },
			"IndexCopy":        func() []*tensor.Tensor { return []*tensor.Tensor{x.IndexCopy(1, order.Row(0), x)} },
			"IndexAdd":         func() []*tensor.Tensor { return []*tensor.Tensor{x.IndexAdd(0, order.Row(0), x)} },
			"MaskedFill":       func() []*tensor.Tensor { return []*tensor.Tensor{x.MaskedFill(mask, 1)} },
			"MaskedSelect":     func() []*tensor.Tensor { return []*tensor.Tensor{x.MaskedSelect(mask)} },
			"Conv1D": func() []*tensor.Tensor {
				return []*tensor.Tensor{x.Unsqueeze(0).Conv1D(x.Unsqueeze(0), tensor.Conv{})}
			},
			"ConvTranspose2D": func() []*tensor.Tensor {
				return []*tensor.Tensor{x.Unsqueeze(0).ConvTranspose2D(kernel, tensor.ConvTranspose{})}
			},
			"AvgPool1D":         func() []*tensor.Tensor { return []*tensor.Tensor{x.AvgPool1D(pool1D)} },
			"AdaptiveAvgPool2D": func() []*tensor.Tensor { return []*tensor.Tensor{x.AdaptiveAvgPool2D(3, 64)} },
			"Interpolate":       func() []*tensor.Tensor { return []*tensor.Tensor{x.Interpolate(tensor.Bilinear, 80, 90)} },
		} {
			tensor.Dead(f()...)
			got := live()
			if got-before >= 8<<10 { // small results are left to the collector; half of x is not
				t.Errorf("%s leaves %d bytes in use", what, got-before)
			}
			before = got
		}
	})
}
