package tensor

import (
	"fmt"

	"github.com/asyncgen/asyncgen/runtime/op"
)

// VMapRows is [VMap] over the rows from up to, but not including, to of the tensors that f asks for: row(x), in f,
// stands for any one of these rows of x.
//
//	best := tensor.VMapRows(0, len(labels), func(row func(*tensor.Tensor) *tensor.Tensor) *tensor.Tensor {
//		return row(xs).MatMul(w).ArgMax()
//	})
//
// It panics if from is negative or above to, and row panics if its tensor has no axes or not so many rows.
//
//asyncgen:api call 2 once
//go:noinline
func VMapRows(from, to int, f func(row func(*Tensor) *Tensor) *Tensor) *Tensor {
	if from < 0 || from > to {
		panic(fmt.Sprintf("tensor: VMapRows: %s: from %d to %d", op.MistakeRange, from, to))
	}
	v := newVMap(to - from)
	defer v.end()
	r := f(func(x *Tensor) *Tensor {
		switch {
		case x == nil:
			wrong("VMapRows", op.MistakeNil)
		case len(x.shape) == 0:
			wrong("VMapRows", op.MistakeRank, x)
		case to > x.shape[0]:
			wrong("VMapRows", fmt.Sprintf("%s: row %d", op.MistakeRange, to-1), x)
		case from == 0 && to == x.shape[0]:
			return v.row(x.same("VMapRows"))
		}
		return v.row(x.Slice(0, from, to))
	})
	if r == nil {
		wrong("VMapRows", op.MistakeNil)
	}
	return v.whole(r)
}
