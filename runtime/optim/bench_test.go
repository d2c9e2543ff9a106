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

// BenchmarkCapturedStep measures a step of training, and the wait for it, as it is and captured: of a small perceptron,
// of one with 512-2048-512-1 elements and batches of 256, of convolutions that read digits, and of a transformer.
// The peak is that of the process so far: run one of them alone to see its own.
func BenchmarkCapturedStep(b *testing.B) {
	by2 := tensor.Conv{Stride: tensor.Both(2)}
	block := func() nn.Module {
		attention := nn.MultiHeadAttention(64, 4, nn.Heads{Causal: true})
		return nn.Sequential(
			nn.Residual(nn.Sequential(nn.LayerNorm(), attention)),
			nn.Residual(nn.Sequential(nn.LayerNorm(), nn.Dense(256), nn.GELU(), nn.Dense(64))),
		)
	}
	for _, model := range []struct {
		name string
		make func() (net nn.Module, opt *optim.Optimizer, x, y *tensor.Tensor)
		loss func(out, y *tensor.Tensor) *tensor.Tensor
	}{
		{"small", func() (nn.Module, *optim.Optimizer, *tensor.Tensor, *tensor.Tensor) {
			net := nn.Sequential(nn.Dense(32), nn.ReLU(), nn.Dense(1))
			return net, optim.SGD(nn.Params(net), 0.01), tensor.Randn(16, 8), tensor.Randn(16, 1)
		}, nn.MSELoss},
		{"mlp", func() (nn.Module, *optim.Optimizer, *tensor.Tensor, *tensor.Tensor) {
			net := nn.Sequential(nn.Dense(2048), nn.ReLU(), nn.Dense(512), nn.ReLU(), nn.Dense(1))
			return net, optim.SGD(nn.Params(net), 0.005), tensor.Randn(256, 512), tensor.Ones(256, 1)
		}, nn.MSELoss},
		{"digits", func() (nn.Module, *optim.Optimizer, *tensor.Tensor, *tensor.Tensor) {
			net := nn.Sequential(
				nn.Conv2D(8, tensor.Both(3), by2), nn.ReLU(), nn.Conv2D(16, tensor.Both(3), by2), nn.ReLU(),
				nn.Flatten(), nn.Dropout(0.25), nn.Dense(10))
			return net, optim.Adam(nn.Params(net), 0.001), tensor.Rand(32, 1, 28, 28), tensor.RandInt(0, 10, 32)
		}, func(out, y *tensor.Tensor) *tensor.Tensor { return nn.CrossEntropy(out, y) }},
		{"transformer", func() (nn.Module, *optim.Optimizer, *tensor.Tensor, *tensor.Tensor) {
			net := nn.Sequential(nn.Embedding(64, 64), block(), block(), nn.LayerNorm(), nn.Dense(64))
			return net, optim.AdamW(nn.Params(net), 0.003), tensor.RandInt(0, 64, 4, 32), tensor.RandInt(0, 64, 4, 32)
		}, func(out, y *tensor.Tensor) *tensor.Tensor { return nn.CrossEntropy(out, y) }},
	} {
		for _, how := range []string{"plain", "captured"} {
			b.Run(model.name+"/"+how, func(b *testing.B) {
				net, opt, x, y := model.make()
				step := func(in ...*tensor.Tensor) []*tensor.Tensor {
					loss := model.loss(net.Forward(in[0]), in[1])
					opt.Minimize(loss)
					return []*tensor.Tensor{loss}
				}
				net.Forward(x)
				if how == "captured" {
					step = tensor.Capture(step).Run
				}
				for range 3 {
					step(x, y)
				}
				for b.Loop() {
					if err := step(x, y)[0].Wait(); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(asyncrt.Stats().Memory[0].Peak)/(1<<20), "MiB-peak")
			})
		}
	}
}
