package history

import (
	"fmt"

	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// A criterion is a loss of which this package knows nothing: what it computes has the history of what it is given.
type criterion interface {
	Loss(pred, want *tensor.Tensor) *tensor.Tensor
}

func byInterface(net nn.Module, c criterion, data []*tensor.Tensor) float64 {
	total := tensor.Zeros()
	for _, x := range data {
		total = total.Add(c.Loss(net.Forward(x), x)) // want `total keeps the history of c.Loss\(net.Forward\(x\), x\) of every iteration`
	}
	return total.Item()
}

func byValue(net nn.Module, loss func(pred, want *tensor.Tensor) *tensor.Tensor, data []*tensor.Tensor) {
	sum := tensor.Zeros()
	for _, x := range data {
		sum = sum.Add(loss(net.Forward(x), x)) // want `AT023`
	}
	fmt.Println(sum.Item())
}

func untracked(c criterion, data []*tensor.Tensor) float64 {
	total := tensor.Zeros()
	for _, x := range data {
		total = total.Add(c.Loss(x, x)) // silent: nothing has a history
	}
	return total.Item()
}

// Places of elements have no history, whichever method chooses them.

type picker interface {
	pick(scores *tensor.Tensor) *tensor.Tensor
}

type top struct{}

func (top) pick(scores *tensor.Tensor) *tensor.Tensor { return scores.ArgMax(1) }

type ordered struct{}

func (ordered) pick(scores *tensor.Tensor) *tensor.Tensor {
	return scores.ArgSort(1, tensor.Descending)
}

func pickAll(net nn.Module, p picker, ids *tensor.Tensor, n int) []int64 {
	for range n {
		ids = tensor.Concat(1, ids, p.pick(net.Forward(ids)))
	}
	return ids.Int64s()
}
