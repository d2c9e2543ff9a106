package nn

import (
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// Residual returns a Module that adds to its input what ms, one after the other, make of it (He et al.
// 2015). The shapes have to be equal, or to broadcast. Its parts are numbered, as those of a
// [Sequential].
//
//	nn.Residual(nn.LayerNorm(), nn.Dense(1024), nn.GELU(), nn.Dense(256))
//
//asyncgen:api pure
func Residual(ms ...Module) Module { return &residual{sequential: inTurn("Residual", ms)} }

type residual struct {
	place
	sequential
}

// Forward implements Module.
//
//go:noinline
func (r *residual) Forward(x *tensor.Tensor) *tensor.Tensor {
	defer inLayer(r)
	y := r.sequential.Forward(x)
	sum := x.Add(y)
	if r.sequential.isDiscreet() {
		tensor.Dead(y)
	}
	return sum
}

// String draws the modules as a tree, as that of a [Sequential].
func (r *residual) String() string { return tree(r) }

// isDiscreet reports whether the parts keep nothing of what they get.
func (r *residual) isDiscreet() bool { return r.sequential.isDiscreet() || len(r.sequential) == 0 }
