package tensor_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/runtime/op"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// A randomIndices is a list of indices with what they mean.
type randomIndices struct {
	at     []tensor.Index
	places [][]int // of each axis: the places that are selected, in order
	shape  []int   // of the result
	isView bool
}

// newIndices draws indices of a tensor with the given shape.
func newIndices(r *rand.Rand, shape []int) (x randomIndices) {
	x.isView = true
	ellipsis := r.IntN(2*len(shape) + 2) // the axis before which it is; none if there is no such axis
	for axis := 0; axis <= len(shape); axis++ {
		for r.IntN(5) == 0 {
			x.at, x.shape = append(x.at, tensor.NewAxis()), append(x.shape, 1)
		}
		if axis == ellipsis {
			x.at = append(x.at, tensor.Ellipsis())
			for rest := r.IntN(len(shape) - axis + 1); rest > 0; rest-- {
				x.all(shape[axis])
				axis++
			}
		}
		if axis == len(shape) {
			break
		}
		if ellipsis >= len(shape) && r.IntN(5) == 0 { // no more indices
			for _, n := range shape[axis:] {
				x.all(n)
			}
			break
		}
		x.axis(r, shape[axis])
	}
	return x
}

func (x *randomIndices) all(n int) {
	places := make([]int, n)
	for i := range places {
		places[i] = i
	}
	x.places, x.shape = append(x.places, places), append(x.shape, n)
}

// axis draws an index for an axis of length n.
func (x *randomIndices) axis(r *rand.Rand, n int) {
	negative := func(i int) int { // sometimes counted from the end
		if i < n && r.IntN(2) == 0 {
			return i - n
		}
		return i
	}
	switch r.IntN(5) {
	case 0:
		if n > 0 {
			i := r.IntN(n)
			x.at, x.places = append(x.at, tensor.At(negative(i))), append(x.places, []int{i})
			return
		}
		fallthrough
	case 1:
		x.at = append(x.at, tensor.All())
		x.all(n)
	default:
		from, to, step := r.IntN(n+1), r.IntN(n+1), 1+r.IntN(3)
		if r.IntN(3) == 0 && n > 0 {
			step = -step
		}
		if from > to != (step < 0) {
			from, to = to, from
		}
		if step < 0 {
			from = min(from, n-1)
			to = min(from, to)
		}
		first, end := negative(from), negative(to)
		switch isOpen := r.IntN(4); {
		case isOpen == 0 && step > 0:
			from, first = 0, tensor.Start
		case isOpen == 0:
			from, first = n-1, tensor.End
		case isOpen == 1 && step > 0:
			to, end = n, tensor.End
		case isOpen == 1:
			to, end = -1, tensor.Start
		}
		places := []int{}
		for i := from; step > 0 && i < to || step < 0 && i > to; i += step {
			places = append(places, i)
		}
		index := tensor.Range(first, end)
		if step != 1 || r.IntN(2) == 0 {
			index = index.Step(step)
		}
		x.isView = x.isView && (step > 0 || len(places) < 2)
		x.at, x.places, x.shape = append(x.at, index), append(x.places, places), append(x.shape, len(places))
	}
}

// selected lists the places in a.data of what x selects, in row-major order.
func (x randomIndices) selected(a array) []int {
	var lengths, list []int
	for _, places := range x.places {
		lengths = append(lengths, len(places))
	}
	for _, index := range indices(lengths) {
		for axis, i := range index {
			index[axis] = x.places[axis][i]
		}
		list = append(list, a.place(index))
	}
	return list
}

func randomShape(r *rand.Rand, rank, longest int) []int {
	shape := make([]int, rank)
	for i := range shape {
		shape[i] = r.IntN(longest + 1)
	}
	return shape
}

// Index and SetIndex are what loops over the selected places give, and Index is a view where it goes forwards.
func TestIndex(t *testing.T) {
	everywhere(t, func(t *testing.T, on device.Device) {
		r := newRand(t)
		for range 300 {
			dt := device.DTypes()[r.IntN(len(device.DTypes()))]
			a := random(r, dt, randomShape(r, r.IntN(5), 5), op.Interval{Lo: -9, Hi: 9})
			if r.IntN(3) > 0 {
				for i, n := range a.shape {
					a.shape[i] = max(n, 1)
				}
				a = random(r, dt, a.shape, op.Interval{Lo: -9, Hi: 9})
			}
			i := newIndices(r, a.shape)
			x := asView(r, a, on)
			want := array{dt, append([]int{}, i.shape...), nil}
			places := i.selected(a)
			for _, at := range places {
				want.data = append(want.data, a.data[at])
			}
			what := fmt.Sprintf("%v%v %v", dt, a.shape, i.at)
			got := x.Index(i.at...)
			check(t, what, got, want, 0)
			if len(places) > 0 && got.SharesMemory(x) != i.isView {
				t.Errorf("%s: a view is %v, want %v", what, got.SharesMemory(x), i.isView)
			}

			shape := slices.Clone(want.shape[r.IntN(len(want.shape)+1):])
			for axis := range shape {
				if r.IntN(4) == 0 {
					shape[axis] = 1
				}
			}
			v := random(r, dt, shape, op.Interval{Lo: -9, Hi: 9})
			after := array{dt, a.shape, slices.Clone(a.data)}
			for k, index := range indices(want.shape) {
				after.data[places[k]] = v.at(index)
			}
			check(t, what+" = ", x.SetIndex(asView(r, v, on), i.at...), after, 0)
			check(t, what+" afterwards", x, a, 0)
			if t.Failed() {
				return
			}
		}
	})
}

func TestIndexStrings(t *testing.T) {
	for want, x := range map[string]tensor.Index{
		":": tensor.All(), "::2": tensor.All().Step(2), "::-1": tensor.All().Step(-1), "1:": tensor.Range(1, tensor.End), ":-1": tensor.Range(tensor.Start, -1),
		"5:2:-3": tensor.Range(5, 2).Step(-3), "-4": tensor.At(-4), "...": tensor.Ellipsis(), "newaxis": tensor.NewAxis(),
	} {
		if got := x.String(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestIndexGradients(t *testing.T) {
	everywhere(t, func(t *testing.T, on device.Device) {
		r := newRand(t)
		some := func(shape ...int) array { return random(r, tensor.Float64, shape, op.Interval{Lo: -2, Hi: 2}) }
		for _, at := range [][]tensor.Index{
			{tensor.Range(1, 3)}, {tensor.All(), tensor.At(1)}, {tensor.All().Step(2), tensor.NewAxis(), tensor.Range(1, tensor.End).Step(3)},
			{tensor.Ellipsis(), tensor.All().Step(-1)}, {tensor.Range(tensor.End, 1).Step(-2), tensor.At(-2)}, {tensor.Range(2, 2)}, {},
		} {
			checkGradient(t, r, on, fmt.Sprint("Index ", at), func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].Index(at...).Square() }, some(4, 5))
			part := tensor.On(on).Zeros(4, 5).Index(at...).Shape()
			checkGradient(t, r, on, fmt.Sprint("SetIndex ", at), func(x ...*tensor.Tensor) *tensor.Tensor {
				return x[0].Mul(x[1].Sum()).SetIndex(x[1].Square(), at...).Square()
			}, some(4, 5), some(part[max(len(part)-1, 0):]...))
		}
	})
}
