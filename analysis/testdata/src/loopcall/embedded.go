package loopcall

import (
	_ "gauges"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// Interfaces of this package, whose types are in another one. Types that embed one another have the same method.

type stroller interface {
	Walk(x *tensor.Tensor) float64
}

type bather interface {
	Swim(x *tensor.Tensor) float64
}

func walked(w stroller, xs []*tensor.Tensor) (sum float64) {
	for _, x := range xs {
		sum += w.Walk(x.MulScalar(2)) // want `AT010`
	}
	return sum
}

// Now and then.
func strolled(w stroller, xs []*tensor.Tensor) (sum float64) {
	for i, x := range xs {
		y := x.MulScalar(2)
		if i%100 == 0 {
			sum += w.Walk(y)
		}
	}
	return sum
}

// After the loop.
func rested(w stroller, xs []*tensor.Tensor) float64 {
	y := xs[0]
	for _, x := range xs {
		y = y.Add(x)
	}
	return w.Walk(y)
}

// Two types have methods of their own, and one of them doesn't wait.
func swum(s bather, xs []*tensor.Tensor) (sum float64) {
	for _, x := range xs {
		sum += s.Swim(x.MulScalar(2))
	}
	return sum
}
