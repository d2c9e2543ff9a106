// Package gotorch uses gotorch.
package gotorch

import (
	"fmt"

	torch "github.com/wangkuiyi/gotorch"
)

func train(w torch.Tensor, xs []torch.Tensor, opt torch.Optimizer) (losses []any) {
	for _, x := range xs {
		opt.ZeroGrad()
		loss := torch.MM(x, w).Mean()
		loss.Backward()
		opt.Step()
		losses = append(losses, loss.Item()) // want `AT001`
		torch.GC()
	}
	return losses
}

func printed(w torch.Tensor, xs []torch.Tensor) {
	for _, x := range xs {
		fmt.Println(torch.MM(x, w)) // want `AT004`
	}
}

func inPlace(sum torch.Tensor, xs []torch.Tensor) (sums []any) {
	for _, x := range xs {
		sum.AddI(x, 1)
		sums = append(sums, sum.Item()) // want `AT001`
	}
	return sums
}
