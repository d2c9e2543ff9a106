package optim

import (
	"github.com/asyncgen/asyncgen/device/kernel"
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// SGDOptions are options of [SGD].
type SGDOptions struct {
	// Momentum is the share of the steps before that each step keeps, from 0 on; 0.9 is usual.
	Momentum float64
	// Dampening is taken off the weight of the gradient, which is 1, in all sums but the first.
	Dampening float64
	// Nesterov adds Momentum times the sum to the gradient and steps by that, as if the gradient were
	// taken further ahead (Sutskever and others 2013). It needs a Momentum above 0 and no Dampening.
	Nesterov bool
	// Decay times the parameter is added to its gradient.
	Decay float64
}

// SGD returns an optimiser that does stochastic gradient descent: each step subtracts rate times the
// gradient from the parameters. With Momentum it subtracts rate times a sum instead. Each step
// multiplies the sum by Momentum and then adds the gradient; the sum is "momentum" of
// [Optimizer.State]. Without options there is no Momentum and no Decay. SGD panics with a
// [tensor.Mistake] if the rate or an option is negative, infinite or NaN, or if Nesterov has no
// Momentum.
//
//asyncgen:api pure
func SGD(params []*nn.Param, rate float64, options ...SGDOptions) *Optimizer {
	o := only("SGD", options)
	o.Momentum = option("SGD", "Momentum", o.Momentum, 0, inf)
	o.Dampening = option("SGD", "Dampening", o.Dampening, 0, inf)
	o.Decay = option("SGD", "Decay", o.Decay, 0, inf)
	if o.Nesterov && (o.Momentum == 0 || o.Dampening != 0) {
		wrong("SGD", "Nesterov with Momentum %v and Dampening %v, want a Momentum above 0 and no Dampening", o.Momentum, o.Dampening)
	}
	return newOptimizer("SGD", params, rate, o)
}

func (o SGDOptions) uses() []slot {
	if o.Momentum == 0 {
		return nil
	}
	return []slot{momentum}
}

func (o SGDOptions) next(u *update) *tensor.Tensor {
	if o.Momentum == 0 {
		switch {
		case !u.isPlain():
			return u.along(u.decayed(o.Decay), 0)
		case o.Decay == 0:
			return u.against(u.g)
		}
		return u.with(decayedStep, rateAnd(o.Decay)).Of(u.x, u.g)
	}
	var g, sum *tensor.Tensor
	weight := 1 - o.Dampening
	if u.now.steps == 1 {
		weight = 1
	}
	if o.Decay != 0 && weight == 1 && !o.Nesterov && u.scale == nil {
		sum = u.set(momentum, decayedFading, fixed(o.Momentum, o.Decay), u.g, u.x)
	} else {
		g = u.decayed(o.Decay)
		sum = u.set(momentum, fading, fixed(o.Momentum, weight), g)
	}
	switch {
	case o.Nesterov && u.isPlain():
		return u.with(nesterov, rateAnd(o.Momentum)).Of(u.x, sum, g)
	case o.Nesterov:
		return u.along(u.temp(g.AddScaled(sum, o.Momentum)), 0)
	case u.isPlain():
		return u.against(sum)
	}
	return u.along(sum, 0)
}

var (
	decayedStep = tensor.FuseScalars("step", 2, 2, func(x ...*kernel.Expr) *kernel.Expr {
		return against(x[0], decaying(x[0], x[1], x[3]), x[2])
	})
	// decayedFading is fading of a gradient with decay, which is not stored. It has no room for a scale.
	decayedFading = pass{plain: tensor.FuseScalars("momentum", 3, 2, func(x ...*kernel.Expr) *kernel.Expr {
		return kernel.Add(kernel.Mul(x[3], x[0]), decaying(x[2], x[1], x[4]))
	})}
	nesterov = tensor.FuseScalars("step", 3, 2, func(x ...*kernel.Expr) *kernel.Expr {
		sum, g, rate, c := x[1], x[2], x[3], x[4]
		return against(x[0], kernel.Add(g, kernel.Mul(c, sum)), rate)
	})
)
