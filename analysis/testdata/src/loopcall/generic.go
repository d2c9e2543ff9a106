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

// A function is given one whose results have a method that only callers know.

func sumOf[E any, S valuer](list []E, f func(E) S) (total float64) {
	for _, e := range list {
		total += f(e).Item()
	}
	return total
}

func sumOfSums[E any, S valuer](lists [][]E, f func(E) S) (total float64) {
	for _, list := range lists {
		total += sumOf(list, f)
	}
	return total
}

func largest[E any](list []E, f func(E) valuer) (top float64) {
	for _, e := range list {
		v := f(e)
		top = max(top, v.Item())
	}
	return top
}

func first[S valuer](f func() S) float64 { return f().Item() }

func byFunctions(data []Batch, all [][]Batch, ns []number) (total float64) {
	loss := func(b Batch) *tensor.Tensor { return batch.Loss(w, b) }
	total += sumOf(data, loss)                                        // want `sumOf waits for the device in each iteration \(f\(e\).Item\(\) at generic.go:\d+\)`
	total += sumOfSums(all, loss)                                     // want `sumOfSums waits for the device in each iteration`
	total += sumOf(ns, func(n number) number { return n })            // a number
	total += sumOf(data, func(b Batch) *tensor.Tensor { return b.X }) // there already
	total += largest(ns, func(n number) valuer { return n })
	for _, b := range data {
		total += first(func() *tensor.Tensor { return batch.Loss(w, b) }) // want `AT010`
	}
	return total
}
