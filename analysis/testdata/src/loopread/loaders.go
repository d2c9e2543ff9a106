package loopread

import (
	"context"

	"github.com/asyncgen/asyncgen/runtime/data"
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// A loop over a loader goes through data.
func fromLoader(loader *data.Loader, net nn.Module, opt *optim.Optimizer) (total float64, err error) {
	for b, err := range loader.All() {
		if err != nil {
			return total, err
		}
		loss := nn.MSELoss(net.Forward(b.X), b.Y)
		opt.Minimize(loss)
		total += loss.Item() // want `only kept`
	}
	return total, nil
}

// So what comes after it is once per epoch.
func fromLoaders(ctx context.Context, train, valid *data.Loader, net nn.Module, opt *optim.Optimizer) (all []float64, err error) {
	for range 10 {
		total := tensor.Zeros(1)
		for b, err := range train.AllContext(ctx) {
			if err != nil {
				return nil, err
			}
			opt.Minimize(nn.MSELoss(net.Forward(b.X), b.Y))
		}
		for b, err := range valid.All() {
			if err != nil {
				return nil, err
			}
			total = total.Add(nn.MSELoss(net.Forward(b.X), b.Y))
		}
		all = append(all, total.Item())
	}
	return all, nil
}

// A list of tensors in it is weights, and no data.
func norms(loader *data.Loader, weights []*tensor.Tensor) (total float64) {
	for b := range loader.All() {
		norm := b.X.Sum()
		for _, w := range weights {
			norm = norm.Add(w.Mul(w).Sum())
		}
		total += norm.Item() // want `only kept`
	}
	return total
}

// The tensors of a batch are made of data, and nobody waits for them.
func labels(loader *data.Loader) (all []float32) {
	for b := range loader.All() {
		all = append(all, b.Y.Float32s()...)
	}
	return all
}
