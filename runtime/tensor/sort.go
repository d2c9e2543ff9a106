package tensor

import (
	"fmt"

	"github.com/asyncgen/asyncgen/runtime/op"
)

// An Order is a direction to sort in. Either sort is stable: equal elements, such as 0 and -0, stay in the order they
// have in the tensor. NaNs come last in both.
type Order bool

// The orders.
const (
	Ascending  Order = false // the least element is the first
	Descending Order = true  // the greatest element is the first
)

// String is "ascending" or "descending".
//
//asyncgen:api meta
func (o Order) String() string {
	if o == Descending {
		return "descending"
	}
	return "ascending"
}

// Sort returns t sorted along axis. The gradient of each element goes to the place that the element came from.
//
//asyncgen:api op batch
//go:noinline
func (t *Tensor) Sort(axis int, order Order) *Tensor {
	axis = t.axis("Sort", axis)
	t.ordered("Sort")
	indices := t.first(t.shape[axis], axis, order)
	defer indices.letGo()
	return structural(op.Along, op.Attr{Axis: axis}, operands{t, indices}, true)
}

// ArgSort returns the indices that sort t along axis, as an int64 tensor of t's shape: element i is the place that
// element i of [Tensor.Sort] comes from.
//
//asyncgen:api op batch
//go:noinline
func (t *Tensor) ArgSort(axis int, order Order) *Tensor {
	axis = t.axis("ArgSort", axis)
	return t.first(t.shape[axis], axis, order)
}

// TopK returns the first k elements of [Tensor.Sort] along axis, and the first k indices of [Tensor.ArgSort]. These
// are the k greatest with [Descending] and the k least with [Ascending]. It panics if k is negative or greater than
// the length of the axis.
//
//asyncgen:api op
//go:noinline
func (t *Tensor) TopK(k, axis int, order Order) (values, indices *Tensor) {
	axis = t.axis("TopK", axis)
	t.ordered("TopK")
	if n := t.shape[axis]; k < 0 || k > n {
		wrong("TopK", fmt.Sprintf("%s: the first %d of %d", op.MistakeRange, k, n), t)
	}
	indices = t.first(k, axis, order)
	return structural(op.Along, op.Attr{Axis: axis}, operands{t, indices}, true), indices
}

// ordered panics unless t's elements have an order.
func (t *Tensor) ordered(name string) {
	if !op.Ordered.Has(t.dtype) {
		wrong(name, op.Unsupported(op.Ordered), t)
	}
}

// first returns the indices of the first k elements of t along axis.
func (t *Tensor) first(k, axis int, order Order) *Tensor {
	return structural(op.ArgSort, op.Attr{Axis: axis, To: k, Back: order == Descending}, operands{t}, false)
}
