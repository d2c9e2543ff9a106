package optim

import (
	"math"
	"slices"

	"github.com/asyncgen/asyncgen/device/kernel"
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// ClipNorm multiplies all gradients by one number, if they are longer than limit, taken as one vector: then their
// norm is limit. It goes between Backward and Step. The result is the norm before, the root of the sum of all
// squares, as a tensor without axes on the device of the first gradient and in its element type, float32 for half
// types; 0 if there are no gradients.
//
// The number is min(1, limit / (norm + 1e-6)), as in PyTorch. The device computes it, and ClipNorm does not wait. If
// the norm is NaN, all gradients become NaN; see [Optimizer].Guard. ClipNorm panics with a [tensor.Mistake] if limit is
// negative or NaN.
//
// Of the replicas of [nn.DataParallel], it is given the Params of all. Their gradients are the same, and count once.
//
//asyncgen:api mutate 0
//go:noinline
func ClipNorm(params []*nn.Param, limit float64) *tensor.Tensor {
	mustLimit("ClipNorm", limit)
	params = distinct("ClipNorm", params)
	sum := sumOver(slices.Values(oneOfCopies(params)), func(g *tensor.Tensor) *tensor.Tensor {
		if g.DType().IsStorage() { // squares are often out of its range
			g = g.As(g.DType().Wide())
			defer tensor.Dead(g)
		}
		return squares.Sum(nil, g)
	})
	if sum == nil {
		return tensor.Scalar(0)
	}
	norm := sum.Sqrt()
	by := &scale{[]*tensor.Tensor{shrink.With(limit).Of(norm)}}
	eachGradient(params, func(g *tensor.Tensor) *tensor.Tensor { return g.Mul(by.like(g)) })
	by.dead()
	tensor.Dead(sum)
	return norm
}

// oneOfCopies returns the first of each Param's copies in a list. See [tensor.Param.First].
func oneOfCopies(params []*nn.Param) (list []*nn.Param) {
	seen := make(map[*nn.Param]bool, len(params))
	for _, p := range params {
		if !seen[p.First()] {
			list = append(list, p)
		}
		seen[p.First()] = true
	}
	return list
}

var (
	squares = tensor.Fuse("ClipNorm", 1, func(x ...*kernel.Expr) *kernel.Expr { return kernel.Mul(x[0], x[0]) })
	shrink  = tensor.FuseScalars("ClipNorm", 1, 1, func(x ...*kernel.Expr) *kernel.Expr {
		norm, limit := x[0], x[1]
		tiny, one := kernel.Const(1e-6, norm.DType()), kernel.Const(1, norm.DType())
		return kernel.Min(kernel.Div(limit, kernel.Add(norm, tiny)), one)
	})
)

// ClipValue replaces elements of gradients that are greater than limit by limit, and those less than -limit by
// -limit. NaN stays NaN. It goes between Backward and Step, and does not wait. ClipValue panics with a
// [tensor.Mistake] if limit is negative or NaN.
//
//asyncgen:api mutate 0
//go:noinline
func ClipValue(params []*nn.Param, limit float64) {
	mustLimit("ClipValue", limit)
	params = distinct("ClipValue", params)
	clamp := clamp.With(-limit, limit)
	eachGradient(params, func(g *tensor.Tensor) *tensor.Tensor { return clamp.Of(g) })
}

var clamp = tensor.FuseScalars("ClipValue", 1, 2, func(x ...*kernel.Expr) *kernel.Expr {
	return kernel.Min(kernel.Max(x[0], x[1]), x[2])
})

func mustLimit(name string, limit float64) {
	if limit < 0 || math.IsNaN(limit) {
		wrong(name, "the limit is %v, want a number from 0 on", limit)
	}
}

// eachGradient replaces each gradient by what f makes of it.
func eachGradient(params []*nn.Param, f func(g *tensor.Tensor) *tensor.Tensor) {
	for _, p := range params {
		if g := p.Grad(); g != nil {
			clipped := f(g)
			p.SetGrad(clipped)
			tensor.Dead(g, clipped)
		}
	}
}
