package loopdata

import (
	"iter"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

var filter = []float32{1, 2, 1}

var window = []float32{1, 2, 1}

type scaler struct {
	mean, last []float32
	rows       [][]float32
}

func newScaler(mean []float32, rows [][]float32) *scaler { return &scaler{mean: mean, rows: rows} }

func (s *scaler) all() iter.Seq[*tensor.Tensor] {
	return func(yield func(*tensor.Tensor) bool) {
		for _, row := range s.rows {
			mean := tensor.From(s.mean) // want `tensor.From\(s.mean\) makes the same tensor in each iteration`
			last := tensor.From(s.last)
			if !yield(tensor.From(row).Sub(mean).Sub(last)) {
				return
			}
		}
	}
}

func (s *scaler) note(row []float32) { s.last = row }

func smooth(x *tensor.Tensor, n int) *tensor.Tensor {
	for range n {
		x = x.Mul(tensor.From(filter, 3)).Mul(tensor.From(window, 3)) // want `tensor.From\(filter, 3\) makes the same tensor`
	}
	return x
}

func sharpen() { window[1]++ }
