package loopread

import "github.com/asyncgen/asyncgen/runtime/tensor"

// A method of the library in a field that is set once.
type column[T any] struct{ of func(*tensor.Tensor) T }

func (c column[T]) all(data []Batch) (list []T) {
	for _, b := range data {
		list = append(list, c.of(step(b))) // want `blocking read in loop`
	}
	return list
}

func columns(data []Batch) []float64 {
	return column[float64]{of: (*tensor.Tensor).Item}.all(data)
}
