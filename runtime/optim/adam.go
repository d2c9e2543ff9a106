package optim

import (
	"math"
	"sync"

	"github.com/asyncgen/asyncgen/device/kernel"
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// AdamOptions are options of [Adam] and [AdamW].
type AdamOptions struct {
	// Beta1 is how much of the average of gradients each step keeps, from 0 to less than 1; 0: 0.9.
	Beta1 float64
	// Beta2 is how much of the average of squares each step keeps, from 0 to less than 1; 0: 0.999.
	Beta2 float64
	// Eps is added to the root of the average of squares; 0: 1e-8.
	Eps float64
	// Decay is the weight of the decay; 0: none in Adam, 0.01 in AdamW.
	Decay float64
}

// Adam returns an optimiser that divides an average of the gradients of each element by the root of an average of their
// squares (Kingma and Ba 2015). Each step subtracts from the parameter
//
//	rate * mean / (sqrt(square) + Eps)
//
// where "mean" and "square" of [Optimizer.State] are the averages with their bias corrected: those of the paper,
// divided by 1 - Beta1^t and 1 - Beta2^t in step t of the parameter. With Decay, Decay times the parameter is
// added to its gradient first.
//
// Without Decay a step is 3 commands for each parameter, one for each tensor that it makes.
//
// Adam panics with a [tensor.Mistake] if the rate or an option is out of its range, infinite or NaN.
//
//asyncgen:api pure
func Adam(params []*nn.Param, rate float64, options ...AdamOptions) *Optimizer {
	return adam("Adam", params, rate, options, false)
}

// AdamW is [Adam] with decoupled decay: each step also subtracts rate * Decay times the parameter from it, and the
// averages know nothing of that (Loshchilov and Hutter 2019). This too is a part of the 3 commands.
//
//asyncgen:api pure
func AdamW(params []*nn.Param, rate float64, options ...AdamOptions) *Optimizer {
	return adam("AdamW", params, rate, options, true)
}

func adam(name string, params []*nn.Param, rate float64, options []AdamOptions, decoupled bool) *Optimizer {
	o, decay := only(name, options), 0.0
	if decoupled {
		decay = 0.01
	}
	o.Beta1 = option(name, "Beta1", o.Beta1, 0.9, 1)
	o.Beta2 = option(name, "Beta2", o.Beta2, 0.999, 1)
	o.Eps = option(name, "Eps", o.Eps, 1e-8, inf)
	o.Decay = option(name, "Decay", o.Decay, decay, inf)
	return newOptimizer(name, params, rate, adamRule{o, decoupled})
}

type adamRule struct {
	AdamOptions
	decoupled bool
}

func (o adamRule) uses() []slot { return []slot{mean, square} }

func (o adamRule) next(u *update) *tensor.Tensor {
	g, decay := u.g, o.Decay
	if !o.decoupled {
		g, decay = u.decayed(o.Decay), 0
	}
	m := u.set(mean, average.keeping(o.Beta1), shareOf(o.Beta1), g)
	v := u.set(square, averageSquare.keeping(o.Beta2), shareOf(o.Beta2), g)
	switch {
	case !u.isPlain():
		return u.along(u.temp(ratio.With(o.Eps).Of(m, v)), decay)
	case decay == 0:
		return u.with(ratioStep, rateAnd(o.Eps)).Of(u.x, m, v)
	}
	return u.with(decayedRatioStep(o.Eps), rateAnd(decay)).Of(u.x, m, v)
}

// shareOf is share of the steps so far.
func shareOf(beta float64) func(numbers) []float64 {
	return func(n numbers) []float64 { return []float64{share(beta, n.steps)} }
}

// share returns the weight of element t in an average in which each element weighs beta times as much as the next one:
// (1-beta) / (1-beta^t). So the average needs no correction.
func share(beta, t float64) float64 { return (1 - beta) / (1 - math.Pow(beta, t)) }

var (
	// ratio is m / (sqrt(v) + c).
	ratio     = tensor.FuseScalars("ratio", 2, 1, func(x ...*kernel.Expr) *kernel.Expr { return over(x[0], x[1], x[2]) })
	ratioStep = tensor.FuseScalars("step", 3, 2, func(x ...*kernel.Expr) *kernel.Expr {
		return against(x[0], over(x[1], x[2], x[4]), x[3])
	})
)

func over(m, v, eps *kernel.Expr) *kernel.Expr { return kernel.Div(m, kernel.Add(kernel.Sqrt(v), eps)) }

// decayedRatioStep returns the operation x - c*(m/(sqrt(v) + eps) + d*x). A command has room for two constants, c
// and d: so each eps has an operation of its own, for ever. Programs have few.
func decayedRatioStep(eps float64) *tensor.Fused {
	if f, ok := decayedRatioSteps.Load(eps); ok {
		return f.(*tensor.Fused)
	}
	f, _ := decayedRatioSteps.LoadOrStore(eps, tensor.FuseScalars("step", 3, 2, func(x ...*kernel.Expr) *kernel.Expr {
		direction := over(x[1], x[2], kernel.Const(eps, x[0].DType()))
		return against(x[0], decaying(x[0], direction, x[4]), x[3])
	}))
	return f.(*tensor.Fused)
}

var decayedRatioSteps sync.Map // from eps to *tensor.Fused
