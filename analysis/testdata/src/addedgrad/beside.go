package addedgrad

import (
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/optim"
)

// Two functions train one network, and only one of them drops the gradients.

func first(net nn.Module, batches []batch) {
	opt := optim.SGD(net.Params(), 0.1)
	for _, b := range batches {
		opt.Minimize(nn.MSELoss(net.Forward(b.x), b.y))
	}
}

func tuned(net nn.Module, feed <-chan batch) {
	opt := optim.SGD(net.Params(), 0.01)
	for b := range feed {
		nn.MSELoss(net.Forward(b.x), b.y).Backward() // want `call opt.ZeroGrad\(\) before, or opt.Minimize`
		opt.Step()
	}
}

func both(batches []batch, feed <-chan batch) {
	net := nn.Dense(8)
	first(net, batches)
	tuned(net, feed)
}

// perEpoch drops the gradients once for all steps of an epoch.
func perEpoch(net nn.Module, batches []batch) {
	opt := optim.SGD(net.Params(), 0.1)
	for range 10 {
		opt.ZeroGrad()
		for _, b := range batches {
			nn.MSELoss(net.Forward(b.x), b.y).Backward()
			opt.Step()
		}
	}
}

// A trainer leaves the loop to its callers, which drop the gradients.
type trainer struct {
	net nn.Module
	opt *optim.Optimizer
}

func newTrainer(net nn.Module) *trainer { return &trainer{net, optim.SGD(net.Params(), 0.1)} }

func (t *trainer) step(b batch) {
	nn.MSELoss(t.net.Forward(b.x), b.y).Backward()
	t.opt.Step()
}

func (t *trainer) train(batches []batch) {
	for _, b := range batches {
		t.step(b)
		t.opt.ZeroGrad()
	}
}
