package optim_test

import (
	"testing"

	asyncrt "github.com/asyncgen/asyncgen/runtime"
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// BenchmarkMLPStep measures one step of training a small network: some 30 operations.
func BenchmarkMLPStep(b *testing.B) {
	net := nn.Sequential(nn.Dense(32), nn.ReLU(), nn.Dense(1))
	opt := optim.SGD(net.Params(), 0.01)
	x, y := tensor.Randn(16, 8), tensor.Randn(16, 1)
	b.ReportAllocs()
	for b.Loop() {
		opt.Minimize(nn.MSELoss(net.Forward(x), y))
	}
	if err := asyncrt.WaitAll(); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkPerceptronStep measures one step of training a network 512-2048-512-1 with batches of 1024, and
// the wait for it: 10.7 GFLOP in products.
func BenchmarkPerceptronStep(b *testing.B) {
	net := nn.Sequential(nn.Dense(2048), nn.ReLU(), nn.Dense(512), nn.ReLU(), nn.Dense(1))
	opt := optim.SGD(net.Params(), 0.005)
	x, y := tensor.Randn(1024, 512), tensor.Ones(1024, 1)
	step := func() {
		opt.Minimize(nn.MSELoss(net.Forward(x), y))
		if err := asyncrt.WaitAll(); err != nil {
			b.Fatal(err)
		}
	}
	step()
	for b.Loop() {
		step()
	}
	flops := 2.0 * 1024 * (3*2048*512 + 2*512*2048 + 3*512*1)
	b.ReportMetric(flops*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
}
