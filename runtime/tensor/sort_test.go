package tensor_test

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/runtime/op"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

func ExampleTensor_TopK() {
	scores := tensor.From([]float32{0.1, 0.7, 0.2, 0.5, 0.3, 0.2}, 2, 3)
	values, indices := scores.TopK(2, 1, tensor.Descending)
	fmt.Println(values)
	fmt.Println(indices)
	// Output:
	// [[0.7 0.2]
	//  [0.5 0.3]]
	// [[1 2]
	//  [0 1]]
}

// sorted returns the first k elements of a when it is sorted along axis, and their indices. NaNs are last.
func sorted(a array, axis, k int, order tensor.Order) (values, places array) {
	shape, heads := slices.Clone(a.shape), slices.Clone(a.shape)
	shape[axis], heads[axis] = k, 1
	n := device.Shape(shape).Size()
	values, places = array{a.dtype, shape, make([]float64, n)}, array{tensor.Int64, shape, make([]float64, n)}
	for _, at := range indices(heads) {
		line := make([]float64, a.shape[axis])
		list := make([]int, len(line))
		for i := range line {
			at[axis] = i
			line[i], list[i] = a.at(at), i
		}
		slices.SortStableFunc(list, func(i, j int) int {
			x, y := line[i], line[j]
			switch {
			case x != x || y != y:
				return -cmp.Compare(x, y) // which puts NaN first
			case x == y:
				return 0
			case order == tensor.Descending:
				x, y = y, x
			}
			return cmp.Compare(x, y)
		})
		for i, from := range list[:k] {
			at[axis] = i
			values.data[values.place(at)], places.data[places.place(at)] = line[from], float64(from)
		}
	}
	return values, places
}

// tied returns random elements, many of them equal.
func tied(r *rand.Rand, dt device.DType, shape ...int) array {
	a := random(r, dt, shape, op.Interval{Lo: -9, Hi: 9})
	few := []float64{0, 1, 1, -1, math.Copysign(0, -1), math.Inf(1), math.Inf(-1), math.NaN()}
	for i := range a.data {
		if r.IntN(2) == 0 {
			a.data[i] = few[r.IntN(len(few))]
			if dt == tensor.Int64 {
				a.data[i] = float64(r.IntN(3))
			}
		}
	}
	return a
}

func TestSort(t *testing.T) {
	everywhere(t, func(t *testing.T, on device.Device) {
		r := newRand(t)
		for _, dt := range []device.DType{tensor.Float32, tensor.Float64, tensor.Int64} {
			for _, shape := range [][]int{{1}, {9}, {300}, {3, 4}, {2, 3, 4}, {4, 70}, {0}, {2, 0}, {0, 2}} {
				for axis, n := range shape {
					for _, order := range []tensor.Order{tensor.Ascending, tensor.Descending} {
						a := tied(r, dt, shape...)
						what := fmt.Sprintf("%v%v axis %d, %v", dt, shape, axis, order)
						x := asView(r, a, on)
						values, places := sorted(a, axis, n, order)
						sameBits(t, "Sort "+what, x.Sort(axis, order), values.tensor(on))
						sameBits(t, "ArgSort "+what, x.ArgSort(axis-len(shape), order), places.tensor(on))
						for _, k := range []int{0, 1, n / 20, n / 2, n} {
							if k > n {
								continue
							}
							gotValues, gotPlaces := x.TopK(k, axis, order)
							values, places := sorted(a, axis, k, order)
							sameBits(t, fmt.Sprintf("values of TopK %d, %s", k, what), gotValues, values.tensor(on))
							sameBits(t, fmt.Sprintf("indices of TopK %d, %s", k, what), gotPlaces, places.tensor(on))
						}
					}
				}
			}
		}
	})
}

func TestSortGradients(t *testing.T) {
	everywhere(t, func(t *testing.T, on device.Device) {
		r := newRand(t)
		some := func(shape ...int) array { return random(r, tensor.Float64, shape, op.Interval{Lo: -2, Hi: 2}) }
		for _, axis := range []int{0, 1} {
			checkGradient(t, r, on, fmt.Sprintf("Sort along axis %d", axis), func(x ...*tensor.Tensor) *tensor.Tensor {
				return x[0].Sort(axis, tensor.Descending).Square()
			}, some(3, 4))
			checkGradient(t, r, on, fmt.Sprintf("TopK along axis %d", axis), func(x ...*tensor.Tensor) *tensor.Tensor {
				values, _ := x[0].TopK(2, axis, tensor.Ascending)
				return values.Exp()
			}, some(3, 4))
		}
	})
}

func TestSortMistakes(t *testing.T) {
	x, b := tensor.Zeros(2, 3), tensor.From([]bool{true})
	for what, c := range map[string]struct {
		f    func()
		text string
	}{
		"Sort along no axis":      {func() { x.Sort(2, tensor.Ascending) }, op.MistakeAxis},
		"ArgSort of a number":     {func() { tensor.Scalar(1).ArgSort(0, tensor.Ascending) }, op.MistakeAxis},
		"Sort of bools":           {func() { b.Sort(0, tensor.Ascending) }, op.MistakeType},
		"TopK along no axis":      {func() { x.TopK(1, -3, tensor.Ascending) }, op.MistakeAxis},
		"TopK of too many":        {func() { x.TopK(4, 1, tensor.Ascending) }, op.MistakeRange},
		"TopK of -1":              {func() { x.TopK(-1, 1, tensor.Ascending) }, op.MistakeRange},
		"TopK of bools":           {func() { b.TopK(1, 0, tensor.Ascending) }, op.MistakeType},
		"TopK of what is no more": {func() { y := x.Neg(); tensor.Dead(y); y.TopK(1, 0, tensor.Ascending) }, op.MistakeDead},
	} {
		if m := mistake(c.f); m == nil || len(m.Text) < len(c.text) || m.Text[:len(c.text)] != c.text {
			t.Errorf("%s: %v, want %s", what, m, c.text)
		}
	}
}
