package regrown

import "github.com/asyncgen/asyncgen/runtime/tensor"

func walk(x, y *tensor.Tensor, n int) *tensor.Tensor {
	for i := range n {
		x = x.SetIndex(y, tensor.At(i), tensor.At(2*i)) // want `x is copied in each iteration to change one element; change the elements on the host, or all at once with ScatterAdd \[AT035\]`
	}
	for i := range n {
		z := x.SetIndex(y, tensor.At(i), tensor.At(i)) // each from the same x
		y = y.Add(z)
	}
	for i := range n {
		x = x.SetIndex(y, tensor.At(i)) // a row
	}
	return x.Add(y)
}
