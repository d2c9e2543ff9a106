package growth

import (
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// Tensors that are kept for a number of each.

func peakOfEach(net nn.Module, xs []*tensor.Tensor) (peak float64) {
	var ys []*tensor.Tensor
	for _, x := range xs {
		ys = append(ys, net.Forward(x)) // want `ys keeps net.Forward\(x\) of every iteration, and only a number of it is used; keep that \[AT022\]`
	}
	for i, y := range ys {
		peak = max(peak, y.MulScalar(2).Max().Item())
		ys[i] = nil
	}
	return peak
}

func peakOfAll(a, x *tensor.Tensor, n int) float64 {
	states := make([]*tensor.Tensor, 0, n)
	for range n {
		x = a.MatMul(x)
		states = append(states, x) // want `states keeps x of every iteration, and only a number of it is used; bring each to a number, or go on with the one so far`
	}
	return tensor.Stack(0, states...).Max().Item()
}

func atIndices(a, x *tensor.Tensor, n int) (total float64) {
	outs := make([]*tensor.Tensor, n)
	for i := range n {
		x = a.MatMul(x)
		outs[i] = x // want `outs keeps x of every iteration`
	}
	for i := range outs {
		total += outs[i].Sum().Item()
	}
	return total
}

func byKey(net nn.Module, xs map[string]*tensor.Tensor) map[string]float64 {
	ys, sums := make(map[string]*tensor.Tensor), make(map[string]float64)
	for k, x := range xs {
		ys[k] = net.Forward(x) // want `ys keeps net.Forward\(x\) of every iteration`
	}
	for k, y := range ys {
		sums[k] = y.Sum().Item()
	}
	return sums
}

type wave struct {
	u     *tensor.Tensor
	trail []*tensor.Tensor
}

func (g *wave) step() { g.u = g.u.Mul(g.u.Slice(0, 0, 9)) }

func (g *wave) energy() float64 { return g.u.Mul(g.u).Sum().Item() }

func (g *wave) most(n int) float64 {
	for range n {
		g.step()
		g.trail = append(g.trail, g.u) // want `g.trail keeps g.u of every iteration`
	}
	return tensor.Stack(0, g.trail...).Max().Item()
}

// Silent.

func numbers(net nn.Module, opt *optim.Optimizer, xs []*tensor.Tensor) float64 {
	var losses []*tensor.Tensor
	for _, x := range xs {
		loss := nn.MSELoss(net.Forward(x), x)
		opt.Minimize(loss)
		losses = append(losses, loss.Detach())
	}
	return tensor.Stack(0, losses...).Mean().Item()
}

func reducedFirst(a, x *tensor.Tensor, n int) float64 {
	var peaks []*tensor.Tensor
	for range n {
		x = a.MatMul(x)
		peaks = append(peaks, x.Max())
	}
	return tensor.Stack(0, peaks...).Max().Item()
}

func unrolled(a, x *tensor.Tensor, opt *optim.Optimizer, n int) {
	var outs []*tensor.Tensor
	for range n {
		x = a.MatMul(x)
		outs = append(outs, x) // the gradient needs it
	}
	opt.Minimize(tensor.Stack(0, outs...).Mean())
}

func returned(a, x *tensor.Tensor, n int) (float64, []*tensor.Tensor) {
	outs := make([]*tensor.Tensor, n)
	for i := range n {
		x = a.MatMul(x)
		outs[i] = x
	}
	return tensor.Stack(0, outs...).Mean().Item(), outs
}

func usedAgain(a, x *tensor.Tensor, n int) (total float64) {
	var outs []*tensor.Tensor
	for range n {
		x = a.MatMul(x)
		outs = append(outs, x)
	}
	for i, y := range outs {
		total += y.Max().Item() + y.Mul(outs[n-1-i]).Sum().Item()
	}
	return total
}

func alongAnAxis(a, x *tensor.Tensor, n int) []float32 {
	var outs []*tensor.Tensor
	for range n {
		x = a.MatMul(x)
		outs = append(outs, x)
	}
	return tensor.Stack(0, outs...).Max(0).Float32s()
}

func few(x *tensor.Tensor) float64 {
	var outs []*tensor.Tensor
	for range 3 {
		x = x.MatMul(x)
		outs = append(outs, x)
	}
	return tensor.Stack(0, outs...).Max().Item()
}

func sampled(a, x *tensor.Tensor, n int) float64 {
	var outs []*tensor.Tensor
	for i := range n {
		x = a.MatMul(x)
		if i%100 == 0 {
			outs = append(outs, x)
		}
	}
	return tensor.Stack(0, outs...).Max().Item()
}

func place(a, x *tensor.Tensor, n int) int64 {
	var outs []*tensor.Tensor
	for range n {
		x = a.MatMul(x)
		outs = append(outs, x)
	}
	return tensor.Stack(0, outs...).ArgMax().ItemInt() // no number of each tells
}

func largest(net nn.Module) (most float64) {
	var squares []*tensor.Tensor
	for _, p := range net.Params() { // they are few
		squares = append(squares, p.Value().Square())
	}
	for _, s := range squares {
		most = max(most, s.Sum().Item())
	}
	return most
}
