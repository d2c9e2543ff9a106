package loopread

import (
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/optim"
)

// A learning rate that the device computes.

func bolder(net nn.Module, opt, other *optim.Optimizer, data []Batch) (rates []float64) {
	for _, b := range data {
		loss := nn.MSELoss(net.Forward(b.X), b.Y)
		opt.Minimize(loss)
		opt.SetRateF64(loss.F64())
		rates = append(rates, opt.Rate()) // want `opt.Rate waits for the device in each iteration; the device computes the rate; RateF64 doesn't wait`
		rates = append(rates, other.Rate())
	}
	for range data {
		opt.SetRate(opt.Rate() / 2)
	}
	return rates
}
