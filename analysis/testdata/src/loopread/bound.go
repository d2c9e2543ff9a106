package loopread

import "github.com/asyncgen/asyncgen/runtime/tensor"

type reader struct{ read func() float64 }

// bound methods of tensors are called by variables.
func bound(xs []*tensor.Tensor, r reader) (sum float64, n int) {
	for _, x := range xs {
		get := x.Norm().Item
		sum += get() // want `blocking read in loop: get\(\) waits`
	}
	for _, x := range xs {
		wait, size := x.Norm().Wait, x.Norm().Dim
		if wait() != nil {
			n += size(0)
		}
		sum += r.read()
	}
	for _, x := range xs {
		get := x.Item
		if n > 3 {
			get = x.Norm().Item
		}
		sum += get() // one of two
	}
	for _, x := range xs {
		if len(x.Norm().Float32s()) > 3 { // want `AT001`
			break
		}
	}
	return sum, n
}
