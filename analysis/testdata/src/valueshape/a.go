package valueshape

import "github.com/asyncgen/asyncgen/runtime/tensor"

func sizes(xs []*tensor.Tensor) (ys []*tensor.Tensor, zs [][]float32) {
	for _, x := range xs {
		n := int(x.Sum().Item()) // want `size depends on a value: x.Sum\(\).Item\(\) waits in each iteration, so that n is known; use a size that is large enough and a mask \[AT026\]`
		ys = append(ys, tensor.Zeros(n))
		zs = append(zs, make([]float32, 2*n))
		m := x.Mean().ItemInt() // want `AT026`
		ys = append(ys, x.Reshape(3, int(m)).Sum())
		k := int(x.Norm().Item())                                // AT003 speaks of the other use
		ys = append(ys, tensor.Ones(k), x.MulScalar(float64(k))) // want `size depends on a value: k`
	}
	return ys, zs
}

// Silent from here on.

func others(xs []*tensor.Tensor, k int) (ys []*tensor.Tensor) {
	n := int(xs[0].Item())
	for _, x := range xs {
		ys = append(ys, tensor.Zeros(n, k))
		i := x.Sum().ItemInt()
		ys = append(ys, x.Row(int(i)))
		ys = append(ys, x.MulScalar(x.Sum().Item()))
		if x.Mean().Item() > 3 {
			ys = append(ys, tensor.Ones(3))
		}
	}
	return ys
}
