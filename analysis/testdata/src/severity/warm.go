package severity

import (
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

type runner struct{ net nn.Module }

// Before anybody asks.
func (r *runner) WarmUp(sizes ...int) error {
	for _, n := range sizes {
		if err := r.net.Forward(tensor.Zeros(n, 8)).Wait(); err != nil {
			return err
		}
	}
	return nil
}

func (r *runner) Swarm(xs []*tensor.Tensor) error {
	for _, x := range xs {
		if err := r.net.Forward(x).Wait(); err != nil { // want `AT009`
			return err
		}
	}
	return nil
}

func (r *runner) Run(xs []*tensor.Tensor) error {
	for _, x := range xs {
		if err := r.net.Forward(x).Wait(); err != nil { // want `AT009`
			return err
		}
	}
	return nil
}
