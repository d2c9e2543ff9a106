package loopexit

import (
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// A read decides which iterations are skipped, and a second one waits in all others.

func skipping(net nn.Module, opt *optim.Optimizer, xs []*tensor.Tensor) float64 {
	best, bad := 1e9, 0
	for _, x := range xs {
		loss := net.Forward(x).Mean()
		if loss.Item() > 1e3 { // want `value decides in loop: loss.Item\(\)`
			bad++
			continue
		}
		opt.Minimize(loss)
		norm := net.Forward(x).Norm()
		if v := norm.Item(); v < best { // want `value decides in loop: norm.Item\(\)`
			best = v
		} else if bad++; bad > 50 {
			opt.SetRate(opt.Rate() / 2)
		}
	}
	return best
}

// instead does something else with the iterations that it skips: either may be the rare case.
func instead(net nn.Module, opt *optim.Optimizer, xs []*tensor.Tensor) (sum float64) {
	for _, x := range xs {
		loss := net.Forward(x).Mean()
		if loss.Item() > 1e3 { // want `value decides in loop`
			opt.Minimize(loss.MulScalar(0.1))
			continue
		}
		opt.Minimize(loss)
		if net.Forward(x).Norm().Item() > sum { // want `value decides in loop`
			break
		}
	}
	return sum
}
