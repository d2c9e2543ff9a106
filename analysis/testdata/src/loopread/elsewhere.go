package loopread

import (
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// Methods of an interface, of which one waits for what it returns.

type chooser interface {
	Choose(y *tensor.Tensor) *tensor.Tensor
}

type bestOf struct{}

func (bestOf) Choose(y *tensor.Tensor) *tensor.Tensor { return y.ArgMax(1) }

type drawn struct{ rank int }

func (d drawn) Choose(y *tensor.Tensor) *tensor.Tensor { return y.ArgSort(1, tensor.Descending) }

type hosted struct{ last float32 }

func (h *hosted) Choose(y *tensor.Tensor) *tensor.Tensor {
	v := y.Float32s()
	h.last = v[0]
	return tensor.From([]int{int(v[0])}, 1, 1)
}

func choices(net nn.Module, c chooser, x *tensor.Tensor, n int) (all []int64) {
	for range n {
		x = c.Choose(net.Forward(x))
		all = append(all, x.ItemInt()) // want `x.ItemInt\(\) waits`
	}
	return all
}
