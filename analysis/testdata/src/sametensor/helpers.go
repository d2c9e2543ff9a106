package sametensor

import (
	"slices"

	"batch"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

func equal[T comparable](x, y T) bool { return x == y }

func has[T comparable](list []T, x T) bool {
	for i := range list {
		if list[i] != x {
			continue
		}
		return true
	}
	return false
}

func byHelper(x, y *tensor.Tensor, list []*tensor.Tensor, n int) bool {
	return equal(x.Square(), y) || // want `equal\(x.Square\(\), y\) compares two tensors that are never the same one; compare elements with Eq`
		equal(x, y) || // want `equal\(x, y\) compares two tensors by identity`
		equal(n, len(list)) ||
		has(list, x) ||
		slices.Contains(list, x) ||
		slices.Index(list, x.Reshape(-1)) > 0 || // want `slices.Index looks for a tensor that was just made, and so is in no list`
		x.Detach() == y // want `never the same one`
}

func elsewhere(w, x *tensor.Tensor, b batch.Batch) bool {
	l := batch.Loss(w, b)
	return l == x // want `never the same one`
}

// The one call of until passes a function that makes a tensor; what exported functions are given, nobody knows.

func until(x *tensor.Tensor, f func(*tensor.Tensor) *tensor.Tensor) *tensor.Tensor {
	for range 100 {
		y := f(x)
		if y == x { // want `y == x compares two tensors that are never the same one`
			break
		}
		x = y
	}
	return x
}

func Until(x *tensor.Tensor, f func(*tensor.Tensor) *tensor.Tensor) *tensor.Tensor {
	for range 100 {
		y := f(x)
		if y == x { // want `by identity`
			break
		}
		x = y
	}
	return x
}

func cosine(x *tensor.Tensor) *tensor.Tensor { return until(x, (*tensor.Tensor).Square) }
