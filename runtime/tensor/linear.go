package tensor

import "github.com/asyncgen/asyncgen/runtime/op"

// Linear returns t·w + b. w is a matrix, and b is a vector as long as a row of w, which is added to each row of the
// product. The bits are those of MatMul and Add; devices that can do so compute both in one command. Linear panics if
// the inner lengths of the product differ or if b has another length.
//
//asyncgen:api op batch
//go:noinline
func (t *Tensor) Linear(w, b *Tensor) *Tensor { return t.linear(op.Linear, w, b) }

// LinearReLU returns t.Linear(w, b).ReLU(), with the same bits. Devices that can do so compute it in one command.
// If gradients are needed, Linear followed by ReLU is faster: LinearReLU computes the derivative of ReLU once for
// each operand.
//
//asyncgen:api op batch
//go:noinline
func (t *Tensor) LinearReLU(w, b *Tensor) *Tensor { return t.linear(op.LinearReLU, w, b) }

func (t *Tensor) linear(d *op.Def, w, b *Tensor) *Tensor {
	if w == nil || b == nil {
		wrong(d.Name, op.MistakeNil, t)
	}
	if len(t.shape) == 0 || len(w.shape) != 2 {
		wrong(d.Name, op.MistakeRank, t, w, b)
	}
	if t.shape[len(t.shape)-1] != w.shape[0] {
		wrong(d.Name, op.MistakeMatMul, t, w, b)
	}
	if len(b.shape) != 1 || b.shape[0] != w.shape[1] {
		wrong(d.Name, op.MistakeBias, t, w, b)
	}
	// of a type for storage, the product is rounded
	if t.storage.Device().Caps().Epilogues && d.Types.Has(t.dtype) && !t.dtype.IsStorage() {
		return structural(d, op.Attr{}, operands{t, w, b}, true)
	}
	product := structural(op.MatMul, op.Attr{}, operands{t, w}, true)
	sum := elementwise(op.Add, [2]float64{}, operands{product, b}, true)
	defer product.letGo()
	if d == op.Linear {
		return sum
	}
	defer sum.letGo()
	return elementwise(op.ReLU, [2]float64{}, operands{sum}, true)
}
