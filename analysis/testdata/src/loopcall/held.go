package loopcall

import (
	"batch"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// Functions in fields that are set once: those of other packages and of the library, and methods that take their
// receiver as the first argument.

type heldMeter struct{ of func(*tensor.Tensor) float64 }

func newHeldMeter() *heldMeter { return &heldMeter{of: batch.Value} }

func (m *heldMeter) sum(data []Batch) (total float64) {
	for _, b := range data {
		total += m.of(batch.Loss(w, b)) // want `m.of waits for the device in each iteration`
	}
	return total
}

type column[T any] struct{ of func(*tensor.Tensor) T }

func (c column[T]) all(data []Batch) (list []T) {
	for _, b := range data {
		list = append(list, c.of(batch.Loss(w, b)))
	}
	return list
}

type row[T any] struct{ of func(*model, Batch) T }

func (r row[T]) all(m *model, data []Batch) (list []T) {
	for _, b := range data {
		list = append(list, r.of(m, b)) // want `r.of waits for the device in each iteration`
	}
	return list
}

func held(m *model, data []Batch) (total float64) {
	newHeldMeter().sum(data)
	column[float64]{of: (*tensor.Tensor).Item}.all(data) // a read, of which AT001 speaks
	row[float64]{of: (*model).score}.all(m, data)
	e := (*model).score
	for _, b := range data {
		total += e(m, b) // want `e waits for the device in each iteration`
	}
	return total
}

// Silent.

type either struct{ of func(*tensor.Tensor) float64 }

func (e either) sum(data []Batch) (total float64) {
	for _, b := range data {
		total += e.of(batch.Loss(w, b))
	}
	return total
}

func several(data []Batch, of func(*tensor.Tensor) float64) float64 {
	return either{of: batch.Value}.sum(data) + either{of: of}.sum(data)
}

type open struct{ Of func(*tensor.Tensor) float64 }

func (o open) sum(data []Batch) (total float64) {
	for _, b := range data {
		total += o.Of(batch.Loss(w, b)) // others may set it
	}
	return total
}

func opened(data []Batch) float64 { return open{Of: batch.Value}.sum(data) }
