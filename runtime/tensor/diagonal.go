package tensor

import (
	"slices"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/runtime/op"
)

// Diagonals and triangles of matrices: the last two axes are the matrix, and the others number matrices. Diagonal k has
// the elements whose column is their row + k: the main diagonal is number 0, and those above it have positive numbers.

// Tril returns the lower triangle of matrices: t with 0 above diagonal k. It panics if t has fewer than two axes.
//
//asyncgen:api op batch
//go:noinline
func (t *Tensor) Tril(k int) *Tensor { return t.triangle("Tril", op.Ge, k) }

// Triu returns the upper triangle of matrices: t with 0 below diagonal k. It panics if t has fewer than two axes.
//
//asyncgen:api op batch
//go:noinline
func (t *Tensor) Triu(k int) *Tensor { return t.triangle("Triu", op.Le, k) }

// triangle returns t with 0 except where d holds of two columns: that of diagonal k in this row, and the element's.
func (t *Tensor) triangle(name string, d *op.Def, k int) *Tensor {
	rows, columns := t.matrix(name)
	k = min(max(k, -rows), columns) // beyond, all is on one side
	dev := t.storage.Device()
	own, on := counting(0, 1, columns, dev), counting(k, 1, rows, dev)
	column := on.reshape(device.Shape{rows, 1})
	keep, zero := elementwise(d, [2]float64{}, operands{column, own}, false), filled(0, nil, t.dtype, dev)
	defer letGo(own, on, column, keep, zero)
	return elementwise(op.Where, [2]float64{}, operands{keep, t, zero}, true)
}

// matrix returns the lengths of the last two axes of t.
func (t *Tensor) matrix(name string) (rows, columns int) {
	t.isRow(name)
	rank := len(t.shape)
	if rank < 2 {
		wrong(name, op.MistakeRank, t)
	}
	return t.shape[rank-2], t.shape[rank-1]
}

// Diagonal returns diagonal k of matrices as vectors. It has no elements where k lies outside of the matrix. The result
// is a view of t, unless t is itself a view whose elements lie in another order or have gaps in between: then t may
// have to be copied. Diagonal panics if t has fewer than two axes.
//
//asyncgen:api view batch
//go:noinline
func (t *Tensor) Diagonal(k int) *Tensor {
	rows, columns := t.matrix("Diagonal")
	p := axisPart{axis: len(t.shape) - 2, step: columns + 1}
	switch {
	case 0 <= k && k < columns:
		p.from, p.n = k, min(rows, columns-k)
	case -rows < k && k < 0:
		p.from, p.n = -k*columns, min(rows+k, columns)
	}
	joined := t.reshape(append(slices.Clone(t.shape[:p.axis]), rows*columns))
	defer joined.letGo()
	return joined.part(p)
}

// Diag returns square matrices with the vectors along t's last axis on diagonal k, and 0 elsewhere. It panics if t has
// no axes. [Tensor.Diagonal] is the reverse.
//
//asyncgen:api op batch
//go:noinline
func (t *Tensor) Diag(k int) *Tensor {
	last := len(t.shape) - 1
	if last < 0 {
		wrong("Diag", op.MistakeRank, t)
	}
	n := t.shape[last] + max(k, -k)
	shape := checked("Diag", append(t.Shape()[:last], n, n))
	a := op.Attr{Axis: last, From: max(k, -k*n), To: n * n, Step: n + 1}
	joined := structural(op.Scatter, a, operands{t}, true)
	defer joined.letGo()
	return joined.reshape(shape)
}
