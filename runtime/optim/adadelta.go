package optim

import (
	"github.com/asyncgen/asyncgen/device/kernel"
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// AdaDeltaOptions are options of [AdaDelta].
type AdaDeltaOptions struct {
	// Rho is how much of both averages each step keeps, from 0 to less than 1; 0: 0.9.
	Rho float64
	// Eps is added to both averages before the roots are taken; 0: 1e-6.
	Eps float64
	// Decay times the parameter is added to its gradient.
	Decay float64
}

// AdaDelta returns an optimiser whose steps have the unit of the parameter (Zeiler 2012). Each step
// subtracts from the parameter rate times
//
//	delta = sqrt(change + Eps) / sqrt(square + Eps) * gradient
//
// Here "square" of [Optimizer.State] is an average of the squares of gradients, this one included. "change" is an
// average of the squares of earlier deltas. Both begin with 0. The paper has a rate of 1. AdaDelta panics with a
// [tensor.Mistake] if the rate or an option is out of its range, infinite or NaN.
//
//asyncgen:api pure
func AdaDelta(params []*nn.Param, rate float64, options ...AdaDeltaOptions) *Optimizer {
	o := only("AdaDelta", options)
	o.Rho = option("AdaDelta", "Rho", o.Rho, 0.9, 1)
	o.Eps = option("AdaDelta", "Eps", o.Eps, 1e-6, inf)
	o.Decay = option("AdaDelta", "Decay", o.Decay, 0, inf)
	return newOptimizer("AdaDelta", params, rate, o)
}

func (o AdaDeltaOptions) uses() []slot { return []slot{square, change} }

func (o AdaDeltaOptions) next(u *update) *tensor.Tensor {
	g := u.decayed(o.Decay)
	v := u.set(square, averageSquare.keeping(o.Rho), fixed(1-o.Rho), g)
	direction := u.temp(delta.With(o.Eps).Of(u.present(change), v, g))
	u.set(change, averageSquare.keeping(o.Rho), fixed(1-o.Rho), direction)
	if u.isPlain() {
		return u.against(direction)
	}
	return u.along(direction, 0)
}

// delta is a step along the gradient x[2], with the averages x[0] and x[1] and Eps.
var delta = tensor.FuseScalars("AdaDelta", 3, 1, func(x ...*kernel.Expr) *kernel.Expr {
	root := func(average *kernel.Expr) *kernel.Expr { return kernel.Sqrt(kernel.Add(average, x[3])) }
	return kernel.Mul(kernel.Div(root(x[0]), root(x[1])), x[2])
})
