package history

import (
	"fmt"

	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// A learner adds to a list that its callers keep.
type learner struct {
	net nn.Module
	opt *optim.Optimizer
}

func (l *learner) learn(losses []*tensor.Tensor, x *tensor.Tensor) []*tensor.Tensor {
	d := l.net.Forward(x)
	l.opt.Minimize(d.Square().Mean())
	return append(losses, d.Norm()) // want `losses keeps the history of d.Norm\(\) of every iteration, and is only read; keep d.Norm\(\).Detach\(\)`
}

func (l *learner) note(norms []*tensor.Tensor, x *tensor.Tensor) []*tensor.Tensor {
	norms = append(norms, l.net.Forward(x).Norm()) // want `norms keeps the history`
	return norms
}

// both is for Backward of all that was appended.
func (l *learner) collect(terms []*tensor.Tensor, x *tensor.Tensor) []*tensor.Tensor {
	return append(terms, l.net.Forward(x).Norm())
}

func (l *learner) loop(xs []*tensor.Tensor) {
	l.net.Params()
	var losses, norms, terms []*tensor.Tensor
	for _, x := range xs {
		losses = l.learn(losses, x)
		norms = l.note(norms, x)
		terms = l.collect(terms, x)
	}
	fmt.Println(tensor.Stack(0, losses...).Mean(), tensor.Stack(0, norms...).Mean())
	tensor.Stack(0, terms...).Mean().Backward()
}

func (l *learner) heads(x *tensor.Tensor) (y, value *tensor.Tensor) {
	h := l.net.Forward(x)
	return h.MulScalar(2), h.Mean()
}

// values keeps one of several results.
func (l *learner) values(xs []*tensor.Tensor) []float32 {
	vals := make([]*tensor.Tensor, len(xs))
	for i, x := range xs {
		_, vals[i] = l.heads(x) // want `vals keeps the history of l.heads\(x\) of every iteration`
	}
	return tensor.Stack(0, backwards(vals)...).Detach().Float32s()
}

// backwards is given the list, whose history is for its callers.
func backwards(vals []*tensor.Tensor) []*tensor.Tensor {
	sums := make([]*tensor.Tensor, len(vals))
	last := tensor.Zeros()
	for i := len(vals) - 1; i >= 0; i-- {
		last = vals[i].AddScaled(last, 0.9)
		sums[i] = last
	}
	return sums
}
