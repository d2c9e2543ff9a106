package loopdata

import (
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// Work that depends on parameters is the same until these change.

type process struct {
	x, y  *tensor.Tensor
	scale *nn.Param
}

func (p *process) kernel(a, b *tensor.Tensor) *tensor.Tensor {
	return a.MatMul(b.T()).Mul(p.scale.Value())
}

func (p *process) gram() *tensor.Tensor { return p.kernel(p.x, p.x) }

func (p *process) predict(xs []*tensor.Tensor) (ys []*tensor.Tensor) {
	for _, x := range xs {
		a := p.gram().Solve(p.y) // want `p.gram\(\).Solve\(p.y\) makes the same tensor in each iteration`
		ys = append(ys, p.kernel(x, p.x).MatMul(a))
	}
	return ys
}

func (p *process) fit(opt *optim.Optimizer, n int) {
	for range n {
		opt.Minimize(p.gram().Solve(p.y).Mean())
	}
}

func (p *process) extend(xs []*tensor.Tensor) (ys []*tensor.Tensor) {
	for _, x := range xs {
		ys = append(ys, p.gram().Solve(p.y))
		p.x = tensor.Concat(0, p.x, x)
	}
	return ys
}

func (p *process) nearest(xs []*tensor.Tensor) (ys []*tensor.Tensor) {
	for _, x := range xs {
		unit := p.scale.Value().Square().Sum().Mul(p.scale.Value()) // want `makes the same tensor in each iteration`
		ys = append(ys, unit.MatMul(x))
	}
	return ys
}
