package regrown

import "github.com/asyncgen/asyncgen/runtime/tensor"

type index struct {
	names []string
	rows  *tensor.Tensor
	log   *tensor.Tensor
	state *tensor.Tensor
	batch *tensor.Tensor
}

func build(data [][]float32) *index {
	ix := &index{}
	for _, d := range data {
		if row := tensor.From(d, 1, len(d)); ix.rows == nil {
			ix.rows = row
		} else {
			ix.rows = tensor.Concat(0, ix.rows, row) // want `ix.rows is copied in each iteration to grow by a piece`
		}
	}
	return ix
}

func tokens(next func(*tensor.Tensor) *tensor.Tensor, x *tensor.Tensor, n int) *tensor.Tensor {
	var all *tensor.Tensor
	for range n {
		x = next(x)
		if all == nil {
			all = x
			continue
		}
		all = tensor.Concat(0, all, x) // want `all is copied in each iteration`
	}
	return all
}

func (ix *index) note(x *tensor.Tensor) {
	ix.log = tensor.Concat(0, ix.log, x) // want `ix.log is copied by each call to grow by a piece; collect the pieces in a list and concatenate once, when they are asked for`
}

func (ix *index) grown(xs []*tensor.Tensor) {
	for _, x := range xs {
		ix.rows = tensor.Concat(0, ix.rows, x) // want `ix.rows is copied in each iteration to grow by a piece; that takes longer`
		ix.names = append(ix.names, ix.sum().String())
	}
}

// Silent from here on.

func (ix *index) attend(x *tensor.Tensor) *tensor.Tensor {
	ix.state = tensor.Concat(0, ix.state, x)
	return x.MatMul(ix.state)
}

func (ix *index) gather(x *tensor.Tensor) { ix.batch = tensor.Concat(0, ix.batch, x) }

func (ix *index) flush() { ix.batch = nil }

func (ix *index) total() *tensor.Tensor { return ix.log.Sum() }

func (ix *index) sum() *tensor.Tensor { return ix.rows.Sum() }
