package optim_test

import (
	"testing"

	asyncrt "github.com/asyncgen/asyncgen/runtime"
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// BenchmarkMLPStep is one step of training a small network: some 30 operations.
func BenchmarkMLPStep(b *testing.B) {
	net := nn.Sequential(nn.Dense(32), nn.ReLU(), nn.Dense(1))
	opt := optim.SGD(net.Params(), 0.01)
	x, y := tensor.Randn(16, 8), tensor.Randn(16, 1)
	b.ReportAllocs()
	for b.Loop() {
		opt.Minimize(nn.L2Loss(net.Forward(x), y))
	}
	if err := asyncrt.WaitAll(); err != nil {
		b.Fatal(err)
	}
}
