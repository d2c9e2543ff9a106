package nn_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/sim"
	asyncrt "github.com/asyncgen/asyncgen/runtime"
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// A Minimize takes less time than ZeroGrad, Backward and Step do, by the model of the simulator: parameters are updated
// while the last gradients travel. One device takes equally long, as nothing travels. The bits are the same.
func TestOptimizerFollowsSums(t *testing.T) {
	for _, n := range []int{1, 2, 4} {
		apart, want := stepTime(t, n, func(opt *optim.Optimizer, loss *tensor.Tensor) {
			opt.ZeroGrad()
			loss.Backward()
			opt.Step()
		})
		together, got := stepTime(t, n, (*optim.Optimizer).Minimize)
		t.Logf("%d devices: %v apart, %v together, %.1f %%", n, apart, together, 100*together.Seconds()/apart.Seconds())
		if n == 1 && together != apart || n > 1 && together >= apart {
			t.Errorf("%d devices: Minimize takes %v, its parts take %v", n, together, apart)
		}
		if !slices.EqualFunc(got, want, slices.Equal[[]float32]) {
			t.Errorf("%d devices: other weights", n)
		}
	}
}

// stepTime returns how long a step takes on n devices, and the weights after some.
func stepTime(t *testing.T, n int, minimize func(opt *optim.Optimizer, loss *tensor.Tensor)) (took time.Duration, weights [][]float32) {
	o := sim.VirtualDefaults()
	o.Flops, o.Memory, o.Link = 40e9, 10e9, 0.8e9
	devs := make([]device.Device, n)
	for i := range devs {
		devs[i] = device.Wrap(fmt.Sprintf("sim:%d", i), device.KindSimulated, sim.New(o))
	}
	tensor.Seed(2)
	net := nn.DataParallel(nn.Sequential(
		nn.Dense(128), nn.ReLU(), nn.Dense(128), nn.ReLU(), nn.Dense(128), nn.ReLU(), nn.Dense(1),
	), nn.Parallel{Devices: devs, Bucket: 32 << 10})
	opt := optim.Group(optim.Adam(net.Params()[:3], 0.01), optim.Adam(net.Params()[3:], 0.02))
	x, y := tensor.On(device.CPU()).Ones(512, 64), tensor.On(device.CPU()).Zeros(512, 1)
	finish := func() time.Duration {
		for _, d := range devs {
			if err := asyncrt.Synchronize(d); err != nil {
				t.Fatal(err)
			}
		}
		return sim.Now()
	}
	minimize(opt, net.Loss(nn.MSELoss, x, y)) // weights are drawn and copied
	begin := finish()
	const steps = 3
	for range steps {
		minimize(opt, net.Loss(nn.MSELoss, x, y))
	}
	took = (finish() - begin) / steps
	for _, p := range net.Params() {
		weights = append(weights, p.Value().Float32s())
	}
	return took, weights
}
