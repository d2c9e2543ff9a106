package loopread

import (
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// A loop over episodes, each of which waits for its actions.

type environment interface {
	Step(action int64) (obs []float32, reward float64, done bool)
}

func episode(net nn.Module, env environment) *tensor.Tensor {
	x := tensor.Zeros(4)
	var scores []*tensor.Tensor
	for done := false; !done; {
		scores = append(scores, net.Forward(x))
		obs, _, end := env.Step(scores[len(scores)-1].ArgMax().ItemInt()) // want `blocking read in loop`
		x, done = tensor.From(obs), end
	}
	return tensor.Stack(0, scores...).Mean()
}

func episodes(net nn.Module, opt *optim.Optimizer, env environment) (sum float64) {
	for range 100 {
		loss := episode(net, env)
		opt.Minimize(loss)
		sum += loss.Item()
	}
	return sum
}

func batchwise(net nn.Module, opt *optim.Optimizer, xs []*tensor.Tensor) (sum float64) {
	for _, x := range xs {
		loss := net.Forward(x).Mean()
		opt.Minimize(loss)
		sum += loss.Item() // want `blocking read in loop`
	}
	return sum
}
