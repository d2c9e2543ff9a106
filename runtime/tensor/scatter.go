package tensor

import (
	"context"
	"slices"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/kernel"
	"github.com/asyncgen/asyncgen/runtime/op"
)

// Selection with an index for each element, and its reverse: a tensor with elements replaced, or added to, at places
// that indices name. Indices are as in select.go.

// TakeAlong returns elements of t along axis by an index for each, as NumPy's take_along_axis and PyTorch's gather. For
// a matrix and axis 1, element i,j of the result is t[i, index[i,j]]: any number of elements of each row. index is an
// int64 tensor with as many axes as t. Lengths of axes other than the given one are broadcast.
//
//asyncgen:api op batch fails
//go:noinline
func (t *Tensor) TakeAlong(axis int, index *Tensor) *Tensor {
	t.mustTake("TakeAlong", index)
	axis = t.axis("TakeAlong", axis)
	whole, each := t.Shape(), index.Shape()
	if len(each) != len(whole) {
		wrong("TakeAlong", op.MistakeRank+": the indices have as many axes as the tensor", t, index)
	}
	whole[axis], each[axis] = 1, 1
	shape, ok := op.Broadcast(whole, each)
	if !ok {
		wrong("TakeAlong", op.MistakeBroadcast, t, index)
	}
	whole, each = slices.Clone(shape), shape
	whole[axis], each[axis] = t.shape[axis], index.shape[axis]
	x := structural(op.BroadcastTo, op.Attr{Shape: whole}, operands{t}, true)
	at := structural(op.BroadcastTo, op.Attr{Shape: each}, operands{index}, false)
	defer letGo(x, at)
	return structural(op.TakeAlong, op.Attr{Axis: axis}, operands{x, at}, true)
}

// Scatter returns t with elements along axis replaced by those of src: the reverse of [Tensor.TakeAlong]. For a matrix
// and axis 1, element i,j of src replaces t[i, index[i,j]]. If several replace one element, the last of them in
// row-major order stays, on every device. index is an int64 tensor with as many axes as t; lengths other than that of
// the given axis are broadcast to those of t, and src is broadcast to the shape that index has then. An element that
// was replaced gets gradient 0, and so does one of src that did not stay.
//
//asyncgen:api op batch fails
//go:noinline
func (t *Tensor) Scatter(axis int, index, src *Tensor) *Tensor {
	axis, at, from := t.scattered("Scatter", axis, index, src)
	defer letGo(at, from)
	if at.size == 0 {
		return t.same("Scatter")
	}
	last := at.last(axis, t.shape[axis])
	defer last.letGo()
	stays := structural(op.Along, op.Attr{Axis: axis}, operands{from, last}, true)
	return t.replaced(last, stays)
}

// ScatterAdd returns t with elements of src added along axis. The operands are those of [Tensor.Scatter]. For a matrix
// and axis 1, element i,j of src is added to t[i, index[i,j]]. Elements for the same place are added up in row-major
// order, from 0 on, and the sum is added to the element of t.
//
//asyncgen:api op batch fails
//go:noinline
func (t *Tensor) ScatterAdd(axis int, index, src *Tensor) *Tensor {
	t.mustAdd("ScatterAdd")
	axis, at, from := t.scattered("ScatterAdd", axis, index, src)
	defer letGo(at, from)
	return t.plus(op.AddAlong, axis, at, from)
}

// scattered returns the operands of a scatter into t, broadcast.
func (t *Tensor) scattered(name string, axis int, index, src *Tensor) (at int, places, from *Tensor) {
	t.mustTake(name, index)
	t.mustFit(name, src)
	axis = t.axis(name, axis)
	if len(index.shape) != len(t.shape) {
		wrong(name, op.MistakeRank+": the indices have as many axes as the tensor", t, index)
	}
	shape := t.Shape()
	shape[axis] = index.shape[axis]
	for _, x := range []*Tensor{index, src} {
		if both, ok := op.Broadcast(x.shape, shape); !ok || !slices.Equal(both, shape) {
			wrong(name, op.MistakeBroadcast, t, index, src)
		}
	}
	if t.shape[axis] == 0 && shape.Size() > 0 {
		wrong(name, op.MistakeRange+": the axis has no elements", t, index)
	}
	places = structural(op.BroadcastTo, op.Attr{Shape: shape}, operands{index}, false)
	return axis, places, structural(op.BroadcastTo, op.Attr{Shape: shape}, operands{src}, true)
}

// IndexCopy returns t with parts along axis replaced by those of src: the reverse of [Tensor.Take] with a vector of
// indices. Part i of src replaces part index[i] of t, such as a row for axis 0. If several replace one part, the last
// of them stays, on every device. src is broadcast to the shape of t with the length of index along axis. Gradients are
// as for [Tensor.Scatter].
//
//asyncgen:api op batch fails
//go:noinline
func (t *Tensor) IndexCopy(axis int, index, src *Tensor) *Tensor {
	axis, from := t.indexed("IndexCopy", axis, index, src)
	defer from.letGo()
	if index.size == 0 {
		return t.same("IndexCopy")
	}
	last := index.last(0, t.shape[axis])
	stays := from.along(axis, last.same("IndexCopy"))
	each := alongAxis(last, axis, len(t.shape))
	defer letGo(last, each)
	return t.replaced(each, stays)
}

// IndexAdd returns t with parts of src added along axis. The operands are those of [Tensor.IndexCopy]: part i of src is
// added to part index[i] of t, such as a row for axis 0. Parts for the same place are added up in the order of index,
// from 0 on, and the sum is added to the part of t.
//
//asyncgen:api op batch fails
//go:noinline
func (t *Tensor) IndexAdd(axis int, index, src *Tensor) *Tensor {
	t.mustAdd("IndexAdd")
	axis, from := t.indexed("IndexAdd", axis, index, src)
	defer from.letGo()
	return t.plus(op.ScatterAdd, axis, index, from)
}

// plus returns t and what d adds up of from, at the places along axis that index names.
func (t *Tensor) plus(d *op.Def, axis int, index, from *Tensor) *Tensor {
	return inWide([]*Tensor{t, from}, func(x []*Tensor) *Tensor {
		sums := structural(d, op.Attr{Axis: axis, Shape: t.Shape()}, operands{x[1], index}, true)
		defer sums.letGo()
		return elementwise(op.Add, [2]float64{}, operands{x[0], sums}, true)
	})
}

// indexed returns the parts of an IndexCopy or IndexAdd, broadcast.
func (t *Tensor) indexed(name string, axis int, index, src *Tensor) (at int, from *Tensor) {
	t.mustTake(name, index)
	t.mustFit(name, src)
	axis = t.axis(name, axis)
	if len(index.shape) != 1 {
		wrong(name, op.MistakeRank+": the indices are a vector", t, index)
	}
	shape := t.Shape()
	shape[axis] = index.size
	if both, ok := op.Broadcast(src.shape, shape); !ok || !slices.Equal(both, shape) {
		wrong(name, op.MistakeBroadcast, t, index, src)
	}
	if t.shape[axis] == 0 && index.size > 0 {
		wrong(name, op.MistakeRange+": the axis has no elements", t, index)
	}
	return axis, structural(op.BroadcastTo, op.Attr{Shape: shape}, operands{src}, true)
}

// last returns which element of t names each place last. t has indices of n places along axis, and at
// least one element. The result has, for each place, the number of that element along axis, or -1 if no
// element names the place.
//
// A stable sort makes neighbours of those that name one place, and keeps them in order. The last of each run is added
// to the zeros of its place.
func (t *Tensor) last(axis, n int) *Tensor {
	k := t.shape[axis]
	places := elementwise(op.FromEnd, [2]float64{float64(n)}, operands{t}, false)
	order := places.first(k, axis, Ascending)
	sorted := structural(op.Along, op.Attr{Axis: axis}, operands{places, order}, false)
	rest := sorted.part(axisPart{axis, 1, k - 1, 1})
	next := structural(op.Scatter, op.Attr{Axis: axis, To: k, Key: kernel.Bits(int64(-1))}, operands{rest}, false)
	numbers := elementwise(op.LastOfRun, [2]float64{}, operands{sorted, next, order}, false)
	shape := t.Shape()
	shape[axis] = n
	found := structural(op.AddAlong, op.Attr{Axis: axis, Shape: shape}, operands{numbers, sorted}, false)
	defer letGo(places, order, sorted, rest, next, numbers, found)
	return elementwise(op.SubScalar, [2]float64{1}, operands{found}, false)
}

// replaced returns the elements of by where last is not -1, and those of t elsewhere. It lets go of by.
func (t *Tensor) replaced(last, by *Tensor) *Tensor {
	defer by.letGo()
	isNamed := elementwise(op.GeScalar, [2]float64{}, operands{last}, false)
	defer isNamed.letGo()
	return elementwise(op.Where, [2]float64{}, operands{isNamed, by, t}, true)
}

// mustAdd panics unless t is alive and has numbers.
func (t *Tensor) mustAdd(name string) {
	t.isRow(name)
	if !op.Numbers.Has(t.dtype) {
		wrong(name, op.Unsupported(op.Numbers), t)
	}
}

// MaskedFill returns t with value where mask, a bool tensor, is true. The two are broadcast. Elements that are replaced
// get gradient 0. MaskedFill panics if t is an int64 tensor and value is not an integer. With a tensor of values it is
// Where(mask, values, t).
//
//asyncgen:api op batch
//go:noinline
func (t *Tensor) MaskedFill(mask *Tensor, value float64) *Tensor {
	t.mustMask("MaskedFill", mask)
	if _, ok := op.Broadcast(t.shape, mask.shape); !ok {
		wrong("MaskedFill", op.MistakeBroadcast, t, mask)
	}
	c := filled(t.constant("MaskedFill", value), nil, t.dtype, t.storage.Device())
	defer c.letGo()
	return elementwise(op.Where, [2]float64{}, operands{mask, c, t}, true)
}

// MaskedSelect returns the elements of t where mask, a bool tensor, is true, as a vector in row-major order. mask is
// broadcast to the shape of t. How many elements there are depends on the values of mask: so MaskedSelect waits for
// mask, and panics with its *asyncrt.OpError if it failed. It does not wait for t. In loops, keep the
// size: [Where] or [Tensor.MaskedFill] with what counts for nothing, such as 0 in a sum.
//
//asyncgen:api read 0
//go:noinline
func (t *Tensor) MaskedSelect(mask *Tensor) *Tensor {
	t.mustMask("MaskedSelect", mask)
	mask.mustLive("MaskedSelect")
	if both, ok := op.Broadcast(mask.shape, t.shape); !ok || !slices.Equal(both, t.shape) {
		wrong("MaskedSelect", op.MistakeBroadcast, t, mask)
	}
	all := structural(op.BroadcastTo, op.Attr{Shape: t.Shape()}, operands{mask}, false)
	defer all.letGo()
	isChosen, err := sliceContext[bool](context.Background(), all, "MaskedSelect")
	if err != nil {
		panic(err)
	}
	chosen := []int64{}
	for i, is := range isChosen {
		if is {
			chosen = append(chosen, int64(i))
		}
	}
	flat := t.reshape(device.Shape{t.size})
	defer flat.letGo()
	return flat.along(0, upload(t.storage.Device(), chosen, device.Shape{len(chosen)}))
}

// mustMask panics, about the operation with the given name, if mask can't be one of t whatever the shapes are.
func (t *Tensor) mustMask(name string, mask *Tensor) {
	if mask == nil {
		wrong(name, op.MistakeNil, t)
	}
	t.isRow(name)
	mask.isRow(name)
	if mask.dtype != Bool {
		wrong(name, op.MistakeCondition, t, mask)
	}
	if _, same := device.Join(t.storage.Device(), mask.storage.Device()); !same {
		wrong(name, op.MistakeDevices, t, mask)
	}
}
