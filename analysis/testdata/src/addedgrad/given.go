package addedgrad

import (
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/optim"
)

// Optimisers that a function is given are those that its callers in the package pass.

func minimise(opt *optim.Optimizer, net nn.Module, batches []batch) {
	for _, b := range batches {
		opt.Minimize(nn.MSELoss(net.Forward(b.x), b.y))
	}
}

func twoSteps(maker, judge nn.Module, batches []batch) {
	made, judged := optim.SGD(maker.Params(), 0.1), optim.SGD(judge.Params(), 0.1)
	for _, b := range batches {
		judged.ZeroGrad()
		judge.Forward(b.x).Mean().Backward()
		judged.Step()
		judge.Forward(maker.Forward(b.x)).Mean().Backward() // want `call made.ZeroGrad\(\) before, or made.Minimize`
		made.Step()
	}
}

func inLiteral(batches []batch) {
	net, other := nn.Dense(4), nn.Dense(4)
	opt, rest := optim.SGD(net.Params(), 0.1), optim.SGD(other.Params(), 0.1)
	minimise(rest, other, batches)
	step := func(b batch) {
		nn.MSELoss(net.Forward(b.x), b.y).Backward() // want `call opt.ZeroGrad\(\) before, or opt.Minimize`
		opt.Step()
	}
	for _, b := range batches {
		step(b)
	}
}
