package tensor

import (
	"fmt"

	"github.com/asyncgen/asyncgen/runtime/op"
)

// VMapRows is [VMap] over the rows [from, to) of tensors. Within f, row(x) stands for any one of these rows of x.
//
//	best := tensor.VMapRows(0, len(labels), func(row func(*tensor.Tensor) *tensor.Tensor) *tensor.Tensor {
//		return row(xs).MatMul(w).ArgMax()
//	})
//
// VMapRows panics if from is negative or above to. row panics if its tensor has no axes or fewer than to rows.
//
//asyncgen:api call 2 once
//go:noinline
func VMapRows(from, to int, f func(row func(*Tensor) *Tensor) *Tensor) *Tensor {
	return vmapRows("VMapRows", from, to, nil, f)
}

// vmapRows is VMapRows, or VMapSure if sure is not nil.
func vmapRows(name string, from, to int, sure *sure, f func(row func(*Tensor) *Tensor) *Tensor) *Tensor {
	if from < 0 || from > to {
		panic(&Mistake{Op: name, Text: fmt.Sprintf("%s: from %d to %d", op.MistakeRange, from, to)})
	}
	v := newVMap(to - from)
	v.sure = sure
	defer v.end()
	r := f(func(x *Tensor) *Tensor {
		switch {
		case x == nil:
			wrong(name, op.MistakeNil)
		case len(x.shape) == 0:
			wrong(name, op.MistakeRank, x)
		case to > x.shape[0]:
			wrong(name, fmt.Sprintf("%s: row %d", op.MistakeRange, to-1), x)
		case from == 0 && to == x.shape[0]:
			return v.row(x.same(name))
		}
		return v.row(x.Slice(0, from, to))
	})
	if r == nil {
		wrong(name, op.MistakeNil)
	}
	if v.spoilt {
		wrong(name, op.MistakeRow)
	}
	whole := v.whole(r)
	if sure != nil && whole.node != nil {
		if !sure.detach {
			v.unsure(0, "the result is tracked")
		}
		defer whole.letGo()
		return whole.detached()
	}
	return whole
}
