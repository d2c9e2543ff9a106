package loopread

import (
	"iter"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

func yields(data []Batch) iter.Seq[*tensor.Tensor] {
	return func(yield func(*tensor.Tensor) bool) {
		for _, b := range data {
			if !yield(step(b)) {
				return
			}
		}
	}
}

func pulled(data []Batch) (sum float64) {
	next, stop := iter.Pull(yields(data))
	defer stop()
	for y, ok := next(); ok; y, ok = next() {
		sum += y.Item() // want `blocking read in loop: y.Item\(\) waits`
	}
	return sum
}
