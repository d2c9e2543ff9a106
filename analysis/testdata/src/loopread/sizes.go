package loopread

import "github.com/asyncgen/asyncgen/runtime/tensor"

// What computes a size waits for its own work, even if its operand is finished.

type table struct{ cols []*tensor.Tensor }

func (t *table) col(i int) *tensor.Tensor { return t.cols[i] }

func sizes(xs []*tensor.Tensor, t *table, masks map[string]*tensor.Tensor) (list []int, kept []*tensor.Tensor) {
	for _, x := range xs {
		list = append(list, x.Unique().Size()) // want `x.Unique\(\) waits for the device in each iteration`
	}
	n := 0
	for i := range t.cols {
		n += t.col(i).NonZero().Dim(0) // want `NonZero\(\) waits`
	}
	for name := range masks {
		kept = append(kept, xs[0].MaskedSelect(masks[name])) // want `MaskedSelect\(masks\[name\]\) waits`
	}
	return append(list, n), kept
}

// Silent.

func once(x *tensor.Tensor, xs []*tensor.Tensor) (n int) {
	n = x.NonZero().Dim(0)
	for i := range 3 {
		n += xs[i].Unique().Size()
	}
	for i, x := range xs {
		if i%100 == 0 {
			n += x.Unique().Size()
		}
	}
	return n
}
