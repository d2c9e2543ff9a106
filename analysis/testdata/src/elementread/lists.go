package elementread

import "github.com/asyncgen/asyncgen/runtime/tensor"

// Elements of a tensor in a list, which stays the same in the inner loop.

func returns(net func(*tensor.Tensor) *tensor.Tensor, xs []*tensor.Tensor) [][]float64 {
	rewards := make([]*tensor.Tensor, len(xs))
	for t, x := range xs {
		rewards[t] = net(x)
	}
	out := make([][]float64, len(xs))
	for t := len(rewards) - 1; t >= 0; t-- {
		for i := range rewards[t].Dim(0) {
			out[t] = append(out[t], rewards[t].At(i)) // want `rewards\[t\].At\(i\) reads one part of rewards\[t\] in each iteration`
		}
	}
	return out
}

func replaced(net func(*tensor.Tensor) *tensor.Tensor, xs []*tensor.Tensor, t int) (sum float64) {
	for i := range 100 {
		sum += xs[t].At(i)
		xs[t] = net(xs[t])
	}
	return sum
}
