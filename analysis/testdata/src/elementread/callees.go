package elementread

import "github.com/asyncgen/asyncgen/runtime/tensor"

// Functions that read one element, which their arguments choose.

func at(m *tensor.Tensor, i, j int) float64 { return m.At(i, j) }

func trace(f func(*tensor.Tensor) *tensor.Tensor, x *tensor.Tensor) (sum float64) {
	m := f(x)
	get := func(i int) float64 { return m.At(i, i) }
	for i := range m.Dim(0) {
		sum += get(i)      // want `get reads one part of m in each iteration`
		sum += at(m, i, i) // want `at reads one part of m in each iteration`
		sum += at(x, 0, 1) // the same one
	}
	for i := range 100 {
		y := f(x)
		sum += at(y, i, i)
		m = y
		sum += get(i)
	}
	return sum
}
