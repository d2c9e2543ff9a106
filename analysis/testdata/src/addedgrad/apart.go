package addedgrad

import (
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/optim"
)

// Backward and the step are in two functions, which a loop calls.

type apart struct {
	net nn.Module
	opt *optim.Optimizer
}

func newApart() *apart {
	net := nn.Dense(4)
	return &apart{net, optim.SGD(net.Params(), 0.1)}
}

func (a *apart) backward(b batch) { nn.MSELoss(a.net.Forward(b.x), b.y).Backward() } // want `call a.opt.ZeroGrad\(\) after the step`

func (a *apart) update() { a.opt.Step() }

func (a *apart) run(batches []batch) {
	for _, b := range batches {
		a.backward(b)
		a.update()
	}
}

func (a *apart) gradient(b batch) { nn.MSELoss(a.net.Forward(b.x), b.y).Backward() }

func (a *apart) clean(batches []batch) {
	for _, b := range batches {
		a.gradient(b)
		a.update()
		a.opt.ZeroGrad()
	}
}
