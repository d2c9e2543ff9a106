package hiddenloop

import "github.com/asyncgen/asyncgen/runtime/tensor"

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
