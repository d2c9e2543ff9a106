package hiddenloop

import (
	"stepping"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// A function that callers give to a loop, of a type with a name.

type world struct {
	vel  *tensor.Tensor
	tops []float64
}

type integrator func(w *world, dt float64)

func traced() integrator {
	return func(w *world, dt float64) {
		w.vel = w.vel.MulScalar(dt)
		w.tops = append(w.tops, w.vel.Norm().Item()) // want `AT012`
	}
}

func (w *world) advance(step integrator, n int) {
	for range n {
		step(w, 0.1)
	}
}

// Functions that become options.

type settings struct {
	onStep func(loss *tensor.Tensor)
	report func(loss *tensor.Tensor)
}

type option func(*settings)

// Reporting is called with each loss.
func Reporting(f func(loss *tensor.Tensor)) option { return func(s *settings) { s.report = f } }

// OnStep is called in each step.
func OnStep(f func(loss *tensor.Tensor)) option { return func(s *settings) { s.onStep = f } }

func fitWith(w *world, n int, options ...option) {
	s := settings{onStep: func(*tensor.Tensor) {}, report: func(*tensor.Tensor) {}}
	for _, o := range options {
		o(&s)
	}
	for range n {
		w.vel = w.vel.MulScalar(0.1)
		s.report(w.vel)
	}
}

func fitted(w *world) (all []float64, last *tensor.Tensor) {
	fitWith(w, 100, Reporting(func(loss *tensor.Tensor) {
		all = append(all, loss.Item()) // want `AT012`
	}))
	fitWith(w, 100, Reporting(func(loss *tensor.Tensor) { last = loss }))
	fitWith(w, 100, OnStep(func(loss *tensor.Tensor) {
		all = append(all, loss.Item()) // want `AT012`
	}))
	stepping.OnBatch(func(loss *tensor.Tensor) {
		all = append(all, loss.Item()) // want `AT012`
	})
	stepping.OnStart(func(loss *tensor.Tensor) {
		all = append(all, loss.Item())
	})
	return all, last
}
