package addedgrad

import (
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

type batch struct{ x, y *tensor.Tensor }

func train(net nn.Module, batches []batch) {
	opt := optim.SGD(net.Params(), 0.1)
	for _, b := range batches {
		nn.MSELoss(net.Forward(b.x), b.y).Backward() // want `nn.MSELoss\(net.Forward\(b.x\), b.y\).Backward\(\) adds to the gradients of all steps before, and nothing drops them; call opt.ZeroGrad\(\) before, or opt.Minimize \[AT036\]`
		opt.Step()
	}
}

// A pair is a network that makes samples, and one that judges them.
type pair struct {
	maker, judge nn.Module
	make, hone   *optim.Optimizer
}

func newPair() *pair {
	p := &pair{maker: nn.Dense(8), judge: nn.Dense(1)}
	p.make = optim.SGD(p.maker.Params(), 0.1)
	p.hone = optim.SGD(p.judge.Params(), 0.1)
	return p
}

func (p *pair) judged(x *tensor.Tensor) { p.hone.Minimize(p.judge.Forward(x).Mean()) }

func (p *pair) made(z *tensor.Tensor) {
	p.judge.Forward(p.maker.Forward(z)).Mean().Backward() // want `call p.make.ZeroGrad\(\) before, or p.make.Minimize`
	p.make.Step()
}

// Silent.

func accumulated(net nn.Module, batches []batch, every int) {
	opt := optim.SGD(net.Params(), 0.1)
	for i, b := range batches {
		nn.MSELoss(net.Forward(b.x), b.y).Backward()
		if i%every == every-1 {
			opt.Step()
			opt.ZeroGrad()
		}
	}
}

func shared(net nn.Module, batches []batch) {
	begin := optim.SGD(net.Params(), 0.1)
	opt := optim.SGD(net.Params(), 0.01)
	for _, b := range batches {
		begin.ZeroGrad()
		nn.MSELoss(net.Forward(b.x), b.y).Backward()
		opt.Step()
	}
}

func once(net nn.Module, b batch) {
	opt := optim.SGD(net.Params(), 0.1)
	nn.MSELoss(net.Forward(b.x), b.y).Backward()
	opt.Step()
}

func anew(nets []nn.Module, b batch) {
	for _, net := range nets {
		opt := optim.SGD(net.Params(), 0.1)
		nn.MSELoss(net.Forward(b.x), b.y).Backward()
		opt.Step()
	}
}

// Step is given an optimiser by callers, who may drop the gradients.
func Step(opt *optim.Optimizer, net nn.Module, batches []batch) {
	for _, b := range batches {
		nn.MSELoss(net.Forward(b.x), b.y).Backward()
		opt.Step()
	}
}
