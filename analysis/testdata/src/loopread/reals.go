package loopread

import "github.com/asyncgen/asyncgen/runtime/tensor"

// functions compute, unless they are called like what looks up.
func lookups(f func(float64) *tensor.Tensor, at func(int) *tensor.Tensor, getNamed func(string) *tensor.Tensor, names []string) (sum float64) {
	for x := 0.0; x < 1; x += 0.01 {
		sum += f(x).Item() // want `AT001`
	}
	w := tensor.Zeros(3)
	for i, name := range names {
		w = w.AddScalar(1)
		sum += at(i).Item() // want `AT001`
		sum += getNamed(name).Item()
	}
	return sum + w.Item()
}
