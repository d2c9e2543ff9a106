package sametensor

import "github.com/asyncgen/asyncgen/runtime/tensor"

func square(x *tensor.Tensor) *tensor.Tensor {
	y := x.Mul(x)
	return y
}

func cached(c *cache, x *tensor.Tensor) *tensor.Tensor {
	if c.seen != nil {
		return c.seen
	}
	return x.Mul(x)
}

func older(x, want *tensor.Tensor, c *cache) int {
	if square(x) == want { // want `never the same one`
		return 1
	}
	got := square(x)
	if got != want { // want `never the same one`
		return 2
	}
	if cached(c, x) == want { // want `by identity`
		return 3
	}
	cur := x
	for i := range 100 {
		next := cur.MulScalar(0.5)
		if next == cur { // want `next == cur compares two tensors that are never the same one`
			return i
		}
		cur = next
	}
	last := x
	for i := range 100 {
		next := last.MulScalar(0.5)
		last = next
		if last == next { // want `by identity`
			return i
		}
	}
	return 0
}
