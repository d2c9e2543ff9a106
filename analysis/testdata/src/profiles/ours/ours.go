// Package ours uses our own tensors. At the default severity, values that decide what is
// computed, or whether to give up, are reported; those that may end a loop well are not.
package ours

import (
	"errors"
	"math"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

func alarm(x *tensor.Tensor) error {
	for range 100 {
		x = x.MatMul(x)
		if math.IsNaN(x.Norm().Item()) { // want `AT005`
			return errors.New("diverged")
		}
	}
	return nil
}

func converges(x *tensor.Tensor, eps float64) *tensor.Tensor {
	for range 100 {
		y := x.MatMul(x)
		if y.Sub(x).Norm().Item() < eps { // want `AT005`
			return y
		}
		x = y
	}
	return x
}

func chooses(xs []*tensor.Tensor, limit float64) (out []*tensor.Tensor) {
	for _, x := range xs {
		y := x.MatMul(x)
		if y.Norm().Item() > limit { // want `AT005`
			y = y.MulScalar(0.5)
		}
		out = append(out, y)
	}
	return out
}

func patience(x *tensor.Tensor) *tensor.Tensor {
	bad := 0
	for range 100 {
		x = x.MatMul(x)
		if x.Norm().Item() > 1 { // want `AT005`
			bad++
		}
		if bad > 5 {
			break
		}
	}
	return x
}
