package loopdata

import (
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

type covariance interface {
	Cov(a, b *tensor.Tensor) *tensor.Tensor
}

type scaled struct{ Scale *nn.Param }

func (k scaled) Cov(a, b *tensor.Tensor) *tensor.Tensor { return a.MatMul(b).Mul(k.Scale.Value()) }

type gauss struct {
	K     covariance
	X     *tensor.Tensor
	noise float64
	other *tensor.Tensor
}

func (p *gauss) cov() *tensor.Tensor { return p.K.Cov(p.X, p.X).AddScalar(p.noise) }

func (p *gauss) predict(xs []*tensor.Tensor) (ys []*tensor.Tensor) {
	for _, x := range xs {
		inverse := p.cov().Detach().Inverse() // want `p.cov\(\).Detach\(\).Inverse\(\) makes the same tensor in each iteration`
		ys = append(ys, p.K.Cov(x, p.X).MatMul(inverse))
	}
	for _, x := range xs {
		p.X = tensor.Concat(0, p.X, x)
		ys = append(ys, p.cov().Inverse()) // of another matrix
	}
	for _, x := range xs {
		p.grow(x)
		ys = append(ys, p.cov().Inverse())
	}
	for _, x := range xs {
		ys = append(ys, p.row(x), p.rowOf(x, p.X), p.fresh(x))
	}
	for _, x := range xs {
		p.other = x
		ys = append(ys, p.moved(x))
	}
	return ys
}

func (p *gauss) grow(x *tensor.Tensor) { p.X = tensor.Concat(0, p.X, x) }

func (p *gauss) row(x *tensor.Tensor) *tensor.Tensor {
	inverse := p.cov().Inverse() // want `p.cov\(\).Inverse\(\) computes the same in each call, and a loop calls row; compute it once, and keep it`
	return p.K.Cov(x, p.X).MatMul(inverse)
}

func (p *gauss) rowOf(x, y *tensor.Tensor) *tensor.Tensor { return y.Inverse().MatMul(x) }

func (p *gauss) moved(x *tensor.Tensor) *tensor.Tensor { return p.other.Inverse().MatMul(x) }

func (p *gauss) fresh(x *tensor.Tensor) *tensor.Tensor {
	return tensor.Randn(8, 8).Inverse().MatMul(x)
}

// What a step changes is another matrix in each.
func (p *gauss) fit(opt *optim.Optimizer, n int) {
	for range n {
		opt.Minimize(p.cov().Inverse().Mean())
	}
}

// Others may fill the list.
func filledAnew(buf []float32, fill func([]float32), n int) (ys []*tensor.Tensor) {
	for range n {
		fill(buf)
		ys = append(ys, tensor.From(buf, 2, 2).Inverse())
	}
	return ys
}

func projected(all *tensor.Tensor, xs []*tensor.Tensor) (ys []*tensor.Tensor) {
	for _, x := range xs {
		_, _, v := all.SVD() // want `all.SVD\(\) makes the same tensor in each iteration`
		_, s, _ := x.SVD()
		ys = append(ys, x.MatMul(v).Mul(s))
	}
	return ys
}
