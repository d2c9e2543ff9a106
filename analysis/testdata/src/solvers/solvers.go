// Package solvers takes many steps.
package solvers

import "github.com/asyncgen/asyncgen/runtime/tensor"

// Walk takes n steps from x. Search takes n, or less.
func Walk(x *tensor.Tensor, n int) *tensor.Tensor {
	for range n {
		x = x.MatMul(x)
	}
	return x
}

func Search(x *tensor.Tensor, n int, enough func() bool) *tensor.Tensor {
	for range n {
		if enough() {
			break
		}
		x = x.MatMul(x)
	}
	return x
}

// Options say how often Progress is called.
type Options struct {
	Every    int
	Progress func(i int, x *tensor.Tensor)
}

// Track tells o of each step, and TrackSome of some.
func Track(x *tensor.Tensor, n int, o Options) *tensor.Tensor {
	for i := range n {
		x = x.MatMul(x)
		o.Progress(i, x.Mean())
	}
	return x
}

func TrackSome(x *tensor.Tensor, n int, o Options) *tensor.Tensor {
	for i := range n {
		x = x.MatMul(x)
		if i%o.Every == 0 {
			o.Progress(i, x.Mean())
		}
	}
	return x
}

// TrackBoth does both.
func TrackBoth(x *tensor.Tensor, n int, o Options) *tensor.Tensor {
	return TrackSome(Track(x, n, o), n, o)
}

// A Model has centres.
type Model struct {
	centres *tensor.Tensor
	Moved   *tensor.Tensor
}

// New returns a model of k centres.
func New(x *tensor.Tensor, k int) *Model { return &Model{centres: x.Slice(0, 0, k)} }

// Step moves the centres. Distance only computes.
func (m *Model) Step(x *tensor.Tensor) {
	next := m.centres.Add(x.Mean())
	m.Moved = next.Sub(m.centres)
	m.centres = next
}

func (m *Model) Distance(x *tensor.Tensor) *tensor.Tensor { return x.Sub(m.centres) }
