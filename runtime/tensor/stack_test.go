package tensor_test

import (
	"fmt"
	"testing"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/runtime/op"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// Rows of one tensor are stacked at once if they are neighbours. The result is that of [tensor.Concat], whatever
// the order, number and layout of the rows.
func TestStackRows(t *testing.T) {
	everywhere(t, func(t *testing.T, on device.Device) {
		r := newRand(t)
		for range 40 {
			dt := device.DTypes()[r.IntN(len(device.DTypes()))]
			shape := [][]int{{}, {3}, {2, 3}, {1, 2}, {0}}[r.IntN(5)]
			x := maker(r, on, dt, op.Interval{Lo: -2, Hi: 2}, shape...)(8)
			y := maker(r, on, dt, op.Interval{Lo: -2, Hi: 2}, shape...)(3)
			var rows, longer []*tensor.Tensor
			what := fmt.Sprint(dt, shape)
			for len(rows) == 0 || r.IntN(4) > 0 {
				of, from, to, step := x, r.IntN(8), 8, 1+r.IntN(2)
				switch r.IntN(4) {
				case 0:
					from = 0
				case 1:
					of, from, to = y, 0, 3
				case 2:
					to = from + 1
				}
				for i := from; i < to; i += step {
					rows = append(rows, of.Row(i))
				}
				what += fmt.Sprintf(" %d to %d of %i", from, to, of)
			}
			for _, row := range rows {
				longer = append(longer, row.Unsqueeze(0))
			}
			sameBits(t, what, tensor.Stack(0, rows...), tensor.Concat(0, longer...))
		}
	})
}

// A Stack of a few rows of a big tensor does not keep all of it. A Stack of most of its rows is a view of it.
func TestStackRowsIsAView(t *testing.T) {
	x := tensor.Randn(8, 100)
	for n, want := range map[int]bool{2: false, 3: false, 4: true, 8: true} {
		var rows []*tensor.Tensor
		for i := range n {
			rows = append(rows, x.Row(i))
		}
		if got := tensor.SameStorage(tensor.Stack(0, rows...), x); got != want {
			t.Errorf("%d rows of 8: in the same memory is %v, want %v", n, got, want)
		}
	}
}

// Gradients go through stacked rows.
func TestStackRowsTracked(t *testing.T) {
	p := tensor.NewParam(tensor.From([]float32{1, 2, 3, 4}, 2, 2))
	x := p.Value()
	tensor.Stack(0, x.Row(0), x.Row(1)).Square().Sum().Backward()
	check(t, "gradient", p.Grad(), array{tensor.Float32, []int{2, 2}, []float64{2, 4, 6, 8}}, 0)
}
