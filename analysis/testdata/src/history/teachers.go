package history

import (
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// Networks that teach, in a function that the step calls.

type pupil struct {
	teacher, frozen, own, net nn.Module
	opt                       *optim.Optimizer
}

func newPupil() *pupil {
	p := &pupil{teacher: nn.Dense(4), frozen: nn.Frozen(nn.Dense(4)), own: nn.Dense(4), net: nn.Dense(4)}
	p.opt = optim.SGD(append(p.net.Params(), p.own.Params()...), 0.1)
	return p
}

func (p *pupil) wanted(x *tensor.Tensor) *tensor.Tensor {
	return p.teacher.Forward(x).Softmax(1) // want `gradients go through p.teacher, but the step doesn't train it`
}

func (p *pupil) given(x *tensor.Tensor) *tensor.Tensor { return p.frozen.Forward(x).Softmax(1) }

func (p *pupil) head(x *tensor.Tensor) *tensor.Tensor { return p.own.Forward(x) }

func (p *pupil) target(x *tensor.Tensor) *tensor.Tensor { return p.teacher.Forward(x).Detach() }

func (p *pupil) step(x *tensor.Tensor) {
	y := p.head(p.net.Forward(x))
	p.opt.Minimize(nn.MSELoss(y, p.wanted(x)))
	p.opt.Minimize(nn.MSELoss(y, p.given(x)))
	p.opt.Minimize(nn.MSELoss(y, p.target(x)))
}
