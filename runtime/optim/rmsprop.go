package optim

import (
	"github.com/asyncgen/asyncgen/device/kernel"
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// RMSPropOptions are options of [RMSProp].
type RMSPropOptions struct {
	// Alpha is how much of the average of squares each step keeps, from 0 to less than 1; 0: 0.99.
	Alpha float64
	// Eps is added to the root of the average; 0: 1e-8.
	Eps float64
	// Momentum is the share of the steps before that each step keeps, from 0 on.
	Momentum float64
	// Centered takes the square of an average of the gradients off the average of squares. What is less than 0 then,
	// by rounding, counts as 0.
	Centered bool
	// Decay times the parameter is added to its gradient.
	Decay float64
}

// RMSProp returns an optimiser that divides the gradient of each element by the root of an average of its squares
// (Tieleman and Hinton 2012). Each step subtracts from the parameter
//
//	rate * gradient / (sqrt(square) + Eps)
//
// or, with Momentum, rate times a sum of such quotients, which is multiplied by Momentum before each is added.
// "square", "momentum" and, if Centered, "mean" of [Optimizer.State] are the averages and the sum; they begin
// with 0. RMSProp panics with a [tensor.Mistake] if the rate or an option is out of its range, infinite or NaN.
//
//asyncgen:api pure
func RMSProp(params []*nn.Param, rate float64, options ...RMSPropOptions) *Optimizer {
	o := only("RMSProp", options)
	o.Alpha = option("RMSProp", "Alpha", o.Alpha, 0.99, 1)
	o.Eps = option("RMSProp", "Eps", o.Eps, 1e-8, inf)
	o.Momentum = option("RMSProp", "Momentum", o.Momentum, 0, inf)
	o.Decay = option("RMSProp", "Decay", o.Decay, 0, inf)
	return newOptimizer("RMSProp", params, rate, o)
}

func (o RMSPropOptions) uses() []slot {
	use := []slot{square}
	if o.Centered {
		use = append(use, mean)
	}
	if o.Momentum != 0 {
		use = append(use, momentum)
	}
	return use
}

func (o RMSPropOptions) next(u *update) *tensor.Tensor {
	g := u.decayed(o.Decay)
	v := u.set(square, averageSquare.keeping(o.Alpha), fixed(1-o.Alpha), g)
	if o.Centered {
		v = u.temp(variance.Of(v, u.set(mean, average.keeping(o.Alpha), fixed(1-o.Alpha), g)))
	}
	if o.Momentum == 0 && u.isPlain() {
		return u.with(ratioStep, rateAnd(o.Eps)).Of(u.x, g, v)
	}
	direction := u.temp(ratio.With(o.Eps).Of(g, v))
	if o.Momentum != 0 {
		direction = u.set(momentum, fading, fixed(o.Momentum, 1), direction)
	}
	if u.isPlain() {
		return u.against(direction)
	}
	return u.along(direction, 0)
}

// variance is that of elements with the mean x[1], if the mean of their squares is x[0].
var variance = tensor.Fuse("variance", 2, func(x ...*kernel.Expr) *kernel.Expr {
	return kernel.Max(kernel.Sub(x[0], kernel.Mul(x[1], x[1])), kernel.Const(0, x[0].DType()))
})
