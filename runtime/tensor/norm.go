package tensor

import (
	"fmt"

	"github.com/asyncgen/asyncgen/runtime/op"
)

// LayerNorm returns (t - mean) / sqrt(variance + eps), with mean and variance along axis. This is layer normalisation
// (Ba, Kiros and Hinton 2016). The optional first vector is the gain: it multiplies the results. The optional second
// vector is the bias: it is added after that. Both are as long as the axis. LayerNorm panics if there are more vectors,
// or if one has another length.
//
//asyncgen:api op batch
//go:noinline
func (t *Tensor) LayerNorm(axis int, eps float64, gainAndBias ...*Tensor) *Tensor {
	return t.norm(op.LayerNorm, axis, eps, 2, gainAndBias)
}

// RMSNorm returns t / sqrt(mean(t²) + eps), with the mean along axis (Zhang and Sennrich 2019). An optional vector, as
// long as the axis, is the gain: it multiplies the results. RMSNorm panics if there are more vectors, or if the gain
// has another length.
//
//asyncgen:api op batch
//go:noinline
func (t *Tensor) RMSNorm(axis int, eps float64, gain ...*Tensor) *Tensor {
	return t.norm(op.RMSNorm, axis, eps, 1, gain)
}

// norm applies the operation d to t and the vectors. It panics if there are more than most vectors.
func (t *Tensor) norm(d *op.Def, axis int, eps float64, most int, vectors []*Tensor) *Tensor {
	in := operands{t}
	if len(vectors) > most {
		wrong(d.Name, fmt.Sprintf("%s: %d, and it takes %d", op.MistakeVector, len(vectors), most), t)
	}
	for i, v := range vectors {
		if v == nil {
			wrong(d.Name, op.MistakeNil, t)
		}
		if len(v.shape) != 1 {
			wrong(d.Name, op.MistakeVector, t, v)
		}
		in[i+1] = v
	}
	t.floats(d.Name)
	return structural(d, op.Attr{Axis: t.axis(d.Name, axis), Scalars: [2]float64{eps}}, in, true)
}
