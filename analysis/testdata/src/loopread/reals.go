package loopread

import "github.com/asyncgen/asyncgen/runtime/tensor"

// functions of a real number compute, those of an index or a name may look up.
func lookups(f func(float64) *tensor.Tensor, at func(int) *tensor.Tensor, named func(string) *tensor.Tensor, names []string) (sum float64) {
	for x := 0.0; x < 1; x += 0.01 {
		sum += f(x).Item() // want `AT001`
	}
	w := tensor.Zeros(3)
	for i, name := range names {
		w = w.AddScalar(1)
		sum += at(i).Item() + named(name).Item()
	}
	return sum + w.Item()
}
