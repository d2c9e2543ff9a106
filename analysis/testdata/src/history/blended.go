package history

import (
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// Copies that a function makes, which is given the lists of parameters, or the networks.

func blend(dst, src []*nn.Param, keep float64) {
	for i := range dst {
		v := dst[i].Value().MulScalar(keep).Add(src[i].Value().MulScalar(1 - keep))
		dst[i].Set(v)
	}
}

func follow(target, online nn.Module) {
	ts := target.Params()
	for i, p := range online.Params() {
		ts[i].Set(p.Value().Add(ts[i].Value()))
	}
}

type blended struct {
	online, late, later nn.Module
	opt                 *optim.Optimizer
}

func (b *blended) step(x *tensor.Tensor) {
	y := b.late.Forward(x)  // want `gradients go through b.late.Forward\(x\), but b.late only follows another network`
	z := b.later.Forward(x) // want `gradients go through b.later.Forward\(x\)`
	b.opt.Minimize(nn.MSELoss(b.online.Forward(x), y.Add(z)))
	blend(b.late.Params(), b.online.Params(), 0.99)
	follow(b.later, b.online)
}
