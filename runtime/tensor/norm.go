package tensor

import (
	"fmt"

	"github.com/asyncgen/asyncgen/runtime/op"
)

// LayerNorm returns t less the mean of its elements along axis, divided by the square root of their variance
// plus eps. If there is a gain, a vector as long as the axis, the results along it are multiplied by its elements, and
// those of a bias are added: layer normalisation (Ba, Kiros and Hinton 2016). It panics if there are more
// vectors, or of another length.
//
//asyncgen:api op batch
//go:noinline
func (t *Tensor) LayerNorm(axis int, eps float64, gainAndBias ...*Tensor) *Tensor {
	return t.norm(op.LayerNorm, axis, eps, 2, gainAndBias)
}

// RMSNorm returns t divided by the square root of the mean of the squares along axis plus eps. If there is a
// gain, a vector as long as the axis, the results along it are multiplied by its elements (Zhang and
// Sennrich 2019). It panics if there are more vectors, or of another length.
//
//asyncgen:api op batch
//go:noinline
func (t *Tensor) RMSNorm(axis int, eps float64, gain ...*Tensor) *Tensor {
	return t.norm(op.RMSNorm, axis, eps, 1, gain)
}

// norm is d of t with some vectors, most at most.
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
