package valueshape

import "github.com/asyncgen/asyncgen/runtime/tensor"

// lengths were known before the values.
func lengths(xs []*tensor.Tensor) (ys []*tensor.Tensor) {
	for _, x := range xs {
		v := x.AddScalar(1).Float32s()
		order := make([]int, len(v))
		n := cap(v)
		ys = append(ys, tensor.Zeros(n+len(order)))
	}
	for _, x := range xs {
		v := x.AddScalar(1).Float32s() // want `AT026`
		ys = append(ys, tensor.Zeros(int(v[0])))
	}
	return ys
}
