package loopcall

import "github.com/asyncgen/asyncgen/runtime/tensor"

// Methods of types of other packages.

type gauge interface {
	Gauged(t *tensor.Tensor) float64
}

type rated interface {
	Rated(t *tensor.Tensor) float64
}

func measured(g gauge, r rated, xs []*tensor.Tensor) (sum float64) {
	for _, x := range xs {
		sum += g.Gauged(x.MulScalar(2)) // want `g.Gauged waits for the device in each iteration`
		sum += r.Rated(x.MulScalar(2))
	}
	return sum
}
