package loopcall

import (
	"batch"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// A meter is told how to get a tensor from what it meters.
type meter[T any] struct {
	get   func(T) *tensor.Tensor
	count func(T) int
	total float64
}

func (m *meter[T]) add(x T) { m.total += m.get(x).Item() }

func (m *meter[T]) tally(x T) { m.total += float64(m.count(x)) }

func meters(data []Batch, m *meter[Batch]) float64 {
	for _, b := range data {
		m.add(b) // want `m.add waits for the device in each iteration \(m.get\(x\).Item\(\) at generic.go:\d+\)`
		m.tally(b)
		batch.Loss(w, b)
	}
	return m.total
}
