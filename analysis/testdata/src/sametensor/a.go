package sametensor

import (
	"reflect"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

type cache struct {
	p    *tensor.Param
	seen *tensor.Tensor
}

func never(x, y *tensor.Tensor) bool {
	a, b := x.Add(y), y.Add(x)
	c := tensor.Zeros(3)
	var d = x.Mul(y)
	if d == nil {
		d = x.MatMul(y)
	}
	if a == b { // want `a == b compares two tensors that are never the same one; compare elements with Eq, or what they are read as \[AT033\]`
		return true
	}
	switch {
	case (a) != c: // want `never the same one`
	case x.Add(y) == x: // want `never the same one`
	case d == a: // want `never the same one`
	case a == x: // want `never the same one`
	case func() bool { return y == b }(): // want `never the same one`
	}
	is := func(t *tensor.Tensor) bool { return t == b } // want `by identity`
	if is(b) {
		return true
	}
	return reflect.DeepEqual(x, y) // want `reflect.DeepEqual compares how tensors are kept, not their values; compare`
}

func maybe(x, y *tensor.Tensor, list []*tensor.Tensor, c *cache) bool {
	a := x.Add(y)
	b := a
	for _, t := range list {
		if t == x { // want `t == x compares two tensors by identity, not by value; compare elements with Eq, or what they are read as \[AT033\]`
			return true
		}
	}
	e := x.Sub(y)
	p := &e
	*p = a
	return a == b || // want `by identity`
		x == y || // want `by identity`
		e == a || // want `by identity`
		c.seen != x // want `by identity`
}

// A cell gives out a new handle each time.
func cells(x *tensor.Tensor, c *cache) bool {
	if w := c.p.Value(); w == x { // want `w == x compares two tensors that are never the same one`
		return true
	}
	return c.p.Value() == c.seen // want `c.p.Value\(\) == c.seen compares two tensors that are never the same one`
}

// Silent from here on.

func silent(x, y *tensor.Tensor, c *cache) bool {
	if x == nil || nil != y {
		return false
	}
	a, b := x.Item(), y.Item()
	if a == b || x.Dim(0) == y.Dim(0) || reflect.DeepEqual(x.Float32s(), y.Float32s()) {
		return false
	}
	return x == y //asyncgen:ignore AT033 the same handle is meant
}
