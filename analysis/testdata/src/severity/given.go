package severity

import (
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// Lists of results of layers that others have made, and may have frozen.

type predictor struct{ Net nn.Module }

type monitor struct{ net nn.Module }

func (m *monitor) score(x *tensor.Tensor) *tensor.Tensor {
	return m.net.Forward(x).Sub(x).Square().Mean()
}

func (p predictor) roll(x *tensor.Tensor, n int) []float32 {
	out := make([]*tensor.Tensor, n)
	for i := range out {
		out[i] = p.Net.Forward(x.AddScalar(float64(i)))
	}
	return tensor.Concat(0, out...).Float32s()
}

func (m *monitor) all(xs []*tensor.Tensor) []float32 {
	var scores []*tensor.Tensor
	for _, x := range xs {
		scores = append(scores, m.score(x))
	}
	return tensor.Stack(0, scores...).Float32s()
}

func Embed(net nn.Module, xs []*tensor.Tensor) (all []float32) {
	ys := make([]*tensor.Tensor, len(xs))
	for i, x := range xs {
		ys[i] = net.Forward(x)
	}
	for _, y := range ys {
		all = append(all, y.Float32s()...)
	}
	return all
}

// Layers that the package makes or trains, and what isn't a list of the function.

type learner struct{ net nn.Module }

func (l *learner) fit(x, y *tensor.Tensor) {
	optim.SGD(l.net.Params(), 0.1).Minimize(nn.MSELoss(l.net.Forward(x), y))
}

func (l *learner) errors(xs, ys []*tensor.Tensor) []float32 {
	var list []*tensor.Tensor
	for i, x := range xs {
		list = append(list, nn.MSELoss(l.net.Forward(x), ys[i])) // want `list keeps the history`
	}
	return tensor.Stack(0, list...).Float32s()
}

func made(xs []*tensor.Tensor) []float32 {
	net := nn.Sequential(nn.Dense(8), nn.ReLU())
	var list []*tensor.Tensor
	for _, x := range xs {
		list = append(list, net.Forward(x)) // want `list keeps the history`
	}
	return tensor.Stack(0, list...).Float32s()
}

func (p predictor) total(xs []*tensor.Tensor) float64 {
	total := tensor.Zeros()
	for _, x := range xs {
		total = total.Add(p.Net.Forward(x)) // want `total keeps the history`
	}
	return total.Item()
}
