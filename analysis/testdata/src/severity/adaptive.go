package severity

import "github.com/asyncgen/asyncgen/runtime/tensor"

// A field of a tensor that the method computes anew is no world on the host: nothing outside answers to the number.

type fluid struct{ u *tensor.Tensor }

func slope(u *tensor.Tensor) *tensor.Tensor { return u.Sub(u.MulScalar(0.5)) }

func (f *fluid) step(dt float64) { f.u = f.u.Add(slope(f.u).MulScalar(dt)) }

func (f *fluid) run(until float64) (n int) {
	for t := 0.0; t < until; n++ {
		dt := min(0.1/(slope(f.u).Max().Item()+1e-9), 0.2) // want `AT005`
		f.step(dt)
		t += dt
	}
	return n
}
