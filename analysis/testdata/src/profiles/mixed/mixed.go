// Package mixed uses two libraries.
package mixed

import (
	"time"

	"github.com/asyncgen/asyncgen/runtime/tensor"
	"github.com/nlpodyssey/spago/ag"
	"github.com/nlpodyssey/spago/mat"
)

func ours(w *tensor.Tensor) (total float64) {
	for range 1000 {
		w = w.AddScalar(1)
		total += w.Item() // want `AT001`
	}
	return total
}

func theirs(w mat.Tensor) (total float64) {
	for range 1000 {
		w = ag.Add(w, w)
		total += w.Item().F64()
	}
	return total
}

// When in doubt which library it is about, nothing is said about a clock.
func clock(x *tensor.Tensor, y mat.Tensor) time.Duration {
	start := time.Now()
	ag.Add(y, y)
	x.AddScalar(1)
	return time.Since(start)
}
