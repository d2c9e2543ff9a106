package sametensor

import (
	"slices"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// Functions that do nothing but compare.

func Same(x, y *tensor.Tensor) bool { return x == y } // want `x == y compares two tensors by identity`

func differ(x, y *tensor.Tensor) bool { return (x != y) } // want `by identity`

var alike = func(x, y *tensor.Tensor) bool { return x == y } // want `by identity`

func unlike(list, others []*tensor.Tensor) bool {
	list = slices.CompactFunc(list, func(x, y *tensor.Tensor) bool {
		return x == y // want `by identity`
	})
	return slices.EqualFunc(list, others, differ)
}

func includes(list []*tensor.Tensor, x *tensor.Tensor) bool {
	return slices.ContainsFunc(list, func(y *tensor.Tensor) bool { return y == x }) // want `by identity`
}

// settled gets a tensor of its own in each iteration.
func settled(x *tensor.Tensor) int {
	old, _ := assigned(x)
	for n := 1; ; n++ {
		labels, far := assigned(x.Add(old))
		if labels == old { // want `labels == old compares two tensors that are never the same one`
			return n
		}
		if far == x { // want `never the same one`
			return 0
		}
		old = labels
	}
}

func assigned(x *tensor.Tensor) (labels, far *tensor.Tensor) {
	d := x.Square()
	return d.ArgMax(1), d.Max()
}
