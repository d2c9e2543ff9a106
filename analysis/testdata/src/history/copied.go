package history

import (
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// A learner has a network that follows the one it trains.
type agent struct {
	policy, target, twin, best, begun, teacher nn.Module
	opt                                        *optim.Optimizer
}

func (a *agent) learn(x, next *tensor.Tensor) {
	y := a.target.Forward(next).Max(1) // want `gradients go through a.target.Forward\(next\), but a.target only follows another network; use nn.Frozen\(a.target\)`
	a.opt.Minimize(nn.MSELoss(a.policy.Forward(x), y))
	y = nn.Frozen(a.target).Forward(next).Max(1)
	a.opt.Minimize(nn.MSELoss(a.policy.Forward(x), y))
	y = a.target.Forward(next).Max(1).Detach()
	a.opt.Minimize(nn.MSELoss(a.policy.Forward(x), y))
	println(a.target.Forward(x).Item())
	a.opt.Minimize(a.twin.Forward(x))
	a.opt.Minimize(a.best.Forward(x))
	a.opt.Minimize(a.begun.Forward(x))
	a.opt.Minimize(a.teacher.Forward(x)) // want `AT023`
}

func (a *agent) follow(tau float64) {
	ts := a.target.Params()
	for i, p := range a.policy.Params() {
		ts[i].Set(ts[i].Value().MulScalar(1-tau).AddScaled(p.Value(), tau))
		a.begun.Params()[i].Set(p.Value())
		a.teacher.Params()[i].Set(p.Value())
		a.twin.Params()[i].Set(a.twin.Params()[i].Value().Add(p.Value())) // the twin begins like the policy, and is trained then
	}
	for _, p := range a.best.Params() {
		p.Set(p.Value().MulScalar(0.9))
	}
	for i, p := range a.policy.Params() {
		p.Set(ts[i].Value().Sub(p.Grad()))
	}
	println(len(params(a.twin.Params())))
}

func (a *agent) average(x, next *tensor.Tensor, slow nn.Module) {
	y := slow.Forward(next) // want `gradients go through slow.Forward\(next\), but slow only follows another network; use nn.Frozen\(slow\)`
	a.opt.Minimize(nn.MSELoss(a.policy.Forward(x), y))
	for i, p := range nn.Params(a.policy) {
		nn.Params(slow)[i].Set(p.Value())
	}
}

func params(list []*nn.Param) []*nn.Param { return list }
