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

// What a method of a type parameter or an interface is, the arguments tell.

type valuer interface{ Item() float64 }

type number float64

func (n number) Item() float64 { return float64(n) }

func note[T valuer](x T) float64 { return x.Item() }

func reveal(v valuer) { println(v.Item()) }

func notes(data []Batch, given valuer) (total float64) {
	for i, b := range data {
		total += note(batch.Loss(w, b)) // want `note waits for the device in each iteration \(x.Item\(\) at generic.go:\d+\)`
		total += note(number(i))
		reveal(batch.Loss(w, b)) // want `reveal waits for the device in each iteration`
		reveal(number(i))
		reveal(given)
	}
	return total
}
