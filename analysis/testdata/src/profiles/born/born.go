// Package born uses Born.
package born

import (
	"fmt"

	"github.com/born-ml/born/autodiff"
	"github.com/born-ml/born/nn"
	"github.com/born-ml/born/optim"
	"github.com/born-ml/born/tensor"
)

func train[B tensor.Backend](w *tensor.Tensor[float32, B], xs []*tensor.Tensor[float32, B], opt *optim.SGD[B], b B) {
	var total float32
	for _, x := range xs {
		loss := x.MatMul(w)
		opt.Step(autodiff.Backward(loss, b))
		total += loss.Raw().AsFloat32()[0] // want `AT001`
		fmt.Println(loss)
		fmt.Println(loss.Shape(), loss.Raw().NumElements())
	}
	fmt.Println(total)
}

func accuracy[B tensor.Backend](w *tensor.Tensor[float32, B], xs []*tensor.Tensor[float32, B], y *tensor.Tensor[int32, B]) (sum float32) {
	for _, x := range xs {
		sum += nn.Accuracy(x.MatMul(w), y) // want `AT001`
	}
	return sum
}

func host[B tensor.Backend](data [][]float32, b B) (sum float32) {
	for _, d := range data {
		x, err := tensor.FromSlice(d, tensor.Shape{1}, b)
		if err == nil {
			sum += x.Item()
		}
	}
	return sum
}
