package tensor

import (
	"fmt"
	"slices"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/runtime/internal/engine"
	"github.com/asyncgen/asyncgen/runtime/op"
)

// Selection by indices that are tensors: their values need not be computed when the operation is enqueued. Negative
// indices count from the end. If an index is out of range, the result fails.

// Take returns the parts of t at the given indices along axis, as NumPy's take: the axes of index, an int64 tensor,
// replace that axis. With axis 0 and a vector of indices, the result consists of rows of t, as in an embedding.
//
//asyncgen:api op batch fails
//go:noinline
func (t *Tensor) Take(axis int, index *Tensor) *Tensor {
	t.mustTake("Take", index)
	return structural(op.Gather, op.Attr{Axis: t.axis("Take", axis)}, operands{t, index}, true)
}

// RowAt is [Tensor.Row] with an index that may not have been computed yet, an
// int64 tensor with one element. The result is no view.
//
//asyncgen:api op batch fails
//go:noinline
func (t *Tensor) RowAt(i *Tensor) *Tensor {
	t.mustTake("RowAt", i)
	i.single("RowAt")
	if len(t.shape) == 0 {
		wrong("RowAt", op.MistakeRank, t)
	}
	index := i.reshape(device.Shape{})
	defer index.letGo()
	return structural(op.Gather, op.Attr{}, operands{t, index}, true)
}

// Pick returns one element from each vector along t's last axis. index is an int64 tensor with t's other axes; it has
// one index for each vector. Of a matrix, Pick returns one element of each row, such as the score of the right label.
//
//asyncgen:api op batch fails
//go:noinline
func (t *Tensor) Pick(index *Tensor) *Tensor { return t.pick("Pick", index, op.NoClasses) }

func (t *Tensor) pick(name string, index *Tensor, classes op.Classes) *Tensor {
	t.mustTake(name, index)
	last := len(t.shape) - 1
	if last < 0 {
		wrong(name, op.MistakeRank, t)
	}
	if !slices.Equal(t.shape[:last], index.shape) {
		wrong(name, op.MistakeBroadcast+": the indices have all axes but the last", t, index)
	}
	return structural(op.Gather, op.Attr{Axis: last, Shared: last, Classes: classes}, operands{t, index}, true)
}

// TakeClasses is [Tensor.Take] with indices that are numbers of classes: if one is negative, the result fails.
//
//asyncgen:api op batch fails
//go:noinline
func (t *Tensor) TakeClasses(axis int, classes *Tensor) *Tensor {
	t.mustTake("TakeClasses", classes)
	return structural(op.Gather, op.Attr{Axis: t.axis("TakeClasses", axis), Classes: op.TakeClasses}, operands{t, classes}, true)
}

// PickClasses is [Tensor.Pick] with indices that are numbers of classes, such as labels: if one is negative, the result
// fails.
//
//asyncgen:api op batch fails
//go:noinline
func (t *Tensor) PickClasses(classes *Tensor) *Tensor {
	return t.pick("PickClasses", classes, op.PickClasses)
}

// mustTake panics, about the operation with the given name, if index can't be one of t whatever the shapes are.
func (t *Tensor) mustTake(name string, index *Tensor) {
	if index == nil {
		wrong(name, op.MistakeNil, t)
	}
	t.isRow(name)
	index.isRow(name)
	if index.dtype != Int64 {
		wrong(name, op.MistakeIndices, t, index)
	}
	if _, same := device.Join(t.storage.Device(), index.storage.Device()); !same {
		wrong(name, op.MistakeDevices, t, index)
	}
}

// OneHot returns a float32 tensor with a new last axis of length n. For each element i of t, an int64 tensor, it has a
// vector that is 1 at index i and 0 elsewhere. If an i is negative or not less than n, the result fails.
//
//asyncgen:api op batch fails
//go:noinline
func (t *Tensor) OneHot(n int) *Tensor {
	checked("OneHot", []int{n})
	if t.dtype != Int64 {
		wrong("OneHot", op.MistakeIndices, t)
	}
	rank := len(t.shape)
	one := filled(1, nil, Float32, t.storage.Device())
	defer one.letGo()
	ones := structural(op.BroadcastTo, op.Attr{Shape: t.Shape()}, operands{one}, false)
	defer ones.letGo()
	a := op.Attr{Axis: rank, Shared: rank, Classes: op.OneHot, Shape: append(t.Shape(), n)}
	return structural(op.ScatterAdd, a, operands{ones, t}, false)
}

// CumSum returns the running sums of t along axis: element i is the sum of t's elements 0 to i, added in this order.
//
//asyncgen:api op batch
//go:noinline
func (t *Tensor) CumSum(axis int) *Tensor {
	return structural(op.CumSum, op.Attr{Axis: t.axis("CumSum", axis)}, operands{t}, true)
}

// Concat joins ts along axis. It panics if there are none, or if they differ in element type, in device, or in the
// length of another axis.
//
//asyncgen:api op batch
//go:noinline
func Concat(axis int, ts ...*Tensor) *Tensor { return concat("Concat", axis, ts) }

// Stack joins ts along a new axis: with axis 0, ts are the rows of the result. It panics if there are none, or if they
// differ in element type, device or shape.
//
//asyncgen:api op batch
//go:noinline
func Stack(axis int, ts ...*Tensor) *Tensor {
	if axis == 0 {
		if blocks := rowsTogether(ts); len(blocks) > 0 {
			return stackBlocks(blocks)
		}
	}
	if out := stackAtOnce(axis, ts); out != nil {
		return out
	}
	rows := make([]*Tensor, len(ts))
	for i, t := range ts {
		if t == nil {
			wrong("Stack", op.MistakeNil)
		}
		if !slices.Equal(t.shape, ts[0].shape) {
			wrong("Stack", op.MistakeShapes, ts[0], t)
		}
		rows[i] = t.unsqueeze("Stack", axis)
		defer rows[i].letGo()
	}
	return concat("Stack", axis, rows)
}

// rowsTogether returns handles of tensors that together have the rows ts. Neighbouring rows of one
// tensor become one handle, so there are fewer handles than rows. It returns none if there are no
// neighbours, or if the result would not be the same.
func rowsTogether(ts []*Tensor) (blocks []*Tensor) {
	isRow := func(t *Tensor) bool {
		return t != nil && t.dead == 0 && t.node == nil && t.dtype == ts[0].dtype && t.storage.Device() == ts[0].storage.Device() && slices.Equal(t.shape, ts[0].shape)
	}
	if len(ts) < 2 || !isRow(ts[0]) || !isRow(ts[1]) || !follows(ts, 1, 0) || slices.ContainsFunc(ts, func(t *Tensor) bool { return !isRow(t) }) {
		return nil
	}
	for from := 0; from < len(ts); {
		to := from + 1
		for to < len(ts) && follows(ts, to, from) {
			to++
		}
		blocks = append(blocks, ts[from].rows(to-from, ts[min(from+1, to-1)].off-ts[from].off))
		from = to
	}
	return blocks
}

// follows reports whether ts[i] continues the run of rows that begins with ts[from]: it is in the same
// tensor, as far behind ts[i-1] as ts[from+1] is behind ts[from].
func follows(ts []*Tensor, i, from int) bool {
	step := ts[from+1].off - ts[from].off
	return step > 0 && ts[i].storage == ts[from].storage && ts[i].off-ts[i-1].off == step && slices.Equal(ts[i].strides, ts[from].strides)
}

// rows returns a tensor with n rows. t is the first one, and each of the others begins step elements
// behind the one before.
func (t *Tensor) rows(n, step int) *Tensor {
	t.hold()
	u := &Tensor{storage: t.storage, shape: append(device.Shape{n}, t.shape...), off: t.off, size: n * t.size, dtype: t.dtype}
	if n > 1 && (t.strides != nil || step != t.size) {
		strides := t.strides
		if strides == nil {
			strides = t.shape.Strides()
		}
		u.strides = append([]int{step}, strides...)
	} else if n == 1 && t.strides != nil {
		u.strides = append([]int{t.size}, t.strides...)
	}
	return u
}

// stackBlocks returns the rows of blocks in one tensor: a view if there is but one, and it would
// not keep much more memory than it has elements.
func stackBlocks(blocks []*Tensor) *Tensor {
	if b := blocks[0]; len(blocks) == 1 && 2*bytesFor(b.size, b.dtype) >= b.storage.Bytes() {
		return b
	}
	defer letGo(blocks...)
	return concat("Stack", 0, blocks)
}

// stackAtOnce is Stack in the simple case: all ts are alike, and none has gaps or a gradient. It
// returns nil in other cases.
func stackAtOnce(axis int, ts []*Tensor) *Tensor {
	if len(ts) == 0 || ts[0] == nil {
		return nil
	}
	first := ts[0]
	if axis < 0 {
		axis += len(first.shape) + 1
	}
	if axis < 0 || axis > len(first.shape) || first.size == 0 || first.dead != 0 || !areWhole(ts) {
		return nil
	}
	dev := first.storage.Device()
	for _, t := range ts {
		if t.dead != 0 || t.node != nil || t.dtype != first.dtype || t.storage.Device() != dev || !slices.Equal(t.shape, first.shape) {
			return nil
		}
	}
	shape := slices.Insert(first.Shape(), axis, len(ts))
	return joinWhole(dev, shape, first.shape[:axis].Size(), ts)
}

// areWhole reports whether none of ts has gaps.
func areWhole(ts []*Tensor) bool {
	return !slices.ContainsFunc(ts, func(t *Tensor) bool { return t == nil || t.strides != nil })
}

// joinWhole puts ts side by side into a tensor of the given shape. ts have no gaps, the shape is not empty, and each
// of ts has the given number of rows.
func joinWhole(dev device.Device, shape device.Shape, rows int, ts []*Tensor) *Tensor {
	out := newResult(dev, ts[0].dtype, shape, false)
	parts, reads := make([]device.Part, len(ts)), make([]*engine.Storage, len(ts))
	for i, t := range ts {
		parts[i], reads[i] = device.Part{Off: t.off, N: t.size / rows}, t.now().storage
	}
	o := engine.Op{Reads: reads, Cost: int64(out.size)}
	o.Cmd = device.Command{Kernel: op.Joining(out.dtype), N: out.size, Args: &device.Args{Shape: device.Shape{rows}, Parts: parts}}
	o.Operands[0], o.Shapes[0] = out.storage, &out.shape
	eng().Enqueue(&o)
	return out
}

func concat(name string, axis int, ts []*Tensor) *Tensor {
	if len(ts) == 0 {
		wrong(name, op.MistakeNothing)
	}
	if ts[0] == nil {
		wrong(name, op.MistakeNil)
	}
	axis = ts[0].axis(name, axis)
	dev, shape := ts[0].storage.Device(), ts[0].Shape()
	tracked, hasRow := false, false
	shape[axis] = 0
	for _, t := range ts {
		if t == nil {
			wrong(name, op.MistakeNil)
		}
		hasRow = t.isRow(name) || hasRow
		if t.dtype != ts[0].dtype {
			wrong(name, op.MistakeDTypes, ts[0], t)
		}
		same := true
		if dev, same = device.Join(dev, t.storage.Device()); !same {
			wrong(name, op.MistakeDevices, ts[0], t)
		}
		if len(t.shape) != len(shape) || !slices.Equal(t.shape[:axis], shape[:axis]) || !slices.Equal(t.shape[axis+1:], shape[axis+1:]) {
			wrong(name, op.MistakeBroadcast+fmt.Sprintf(": lengths other than that of axis %d differ", axis), ts[0], t)
		}
		shape[axis] += t.shape[axis]
		tracked = tracked || t.node != nil
	}
	if hasRow {
		return concatRows(name, axis, ts)
	}
	out := join(dev, axis, shape, ts)
	if tracked {
		recordParts(out, axis, ts)
	}
	return out
}

// join puts ts one after the other into a tensor of the given shape.
func join(dev device.Device, axis int, shape device.Shape, ts []*Tensor) *Tensor {
	if shape.Size() == 0 {
		return create(op.Fill, op.Attr{Shape: shape, DType: ts[0].dtype}, dev)
	}
	if areWhole(ts) {
		return joinWhole(dev, shape, shape[:axis].Size(), ts)
	}
	whole := newResult(dev, ts[0].dtype, shape, false)
	at := 0
	for _, t := range ts {
		if t.size > 0 {
			put(op.Concat, whole, t, axis, at, 1, at > 0)
		}
		at += t.shape[axis]
	}
	return whole
}

// recordParts makes out tracked: the concatenation of ts along axis. There is a
// node for each part that is tracked, on top of that of the part before.
func recordParts(out *Tensor, axis int, ts []*Tensor) {
	from := 0
	for _, t := range ts {
		if t.node != nil {
			in := operands{t}
			if out.node != nil {
				before := *out
				in[1] = &before
			}
			record(out, op.Concat, op.Attr{Axis: axis, From: from}, in)
		}
		from += t.shape[axis]
	}
}
