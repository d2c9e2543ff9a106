package optim_test

import (
	"runtime/debug"
	"slices"
	"testing"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/cpu"
	"github.com/asyncgen/asyncgen/device/sim"
	asyncrt "github.com/asyncgen/asyncgen/runtime"
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// Training without reads takes little more memory than training that reads the loss of every batch, although
// the program runs far ahead. The collector is off, since it would help both alike, and there is no bound on
// bytes in flight.
func TestMemoryWithoutReads(t *testing.T) {
	probe := device.MemoryOf(cpu.New())
	if _, err := probe.Alloc(1); err != nil || probe.Stats().Live > 4096 {
		t.Skipf("a byte takes %d, as in checked builds: what is in use says little (%v)", probe.Stats().Live, err)
	}
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	defer asyncrt.SetLimit(asyncrt.Limit())
	asyncrt.SetLimit(0)
	for name, open := range map[string]func() device.Backend{
		"cpu": func() device.Backend { return cpu.New() },
		"sim": func() device.Backend { return sim.New(sim.Options{}) },
	} {
		train := func(read bool) (peak, live int64, losses []float64) {
			const batches, rows, inputs, hidden = 40, 32, 64, 512
			b := open()
			on := tensor.On(device.Wrap(name, device.KindSimulated, b))
			tensor.Seed(1)
			net := nn.Sequential(nn.Dense(hidden), nn.ReLU(), nn.Sequential(nn.Dense(hidden), nn.ReLU()), nn.Dense(1))
			opt := optim.SGD(net.Params(), 0.01)
			var all []*tensor.Tensor
			for range batches {
				x, y := on.Randn(rows, inputs), on.Ones(rows, 1)
				pred := net.Forward(x)
				loss := nn.MSELoss(pred, y)
				if read {
					loss.Item()
				}
				opt.Minimize(loss)
				all = append(all, loss.Detach())
				asyncrt.Dead(x, y, pred, loss)
			}
			for _, l := range all {
				losses = append(losses, l.Item())
			}
			opt.ZeroGrad()
			if err := asyncrt.WaitAll(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			s := device.MemoryOf(b).Stats()
			return s.Peak, s.Live, losses
		}
		reading, left, want := train(true)
		queueing, leftToo, got := train(false)
		if queueing*10 > reading*12 {
			t.Errorf("%s: %d bytes at most without reads, %d with a read per batch", name, queueing, reading)
		}
		t.Logf("%s: %d bytes at most without reads, %d with a read per batch", name, queueing, reading)
		// What is left are the weights, and results that are too small to be given back at once.
		if weights := int64(4 * (64*512 + 512*512)); left < weights || left > weights*7/4 || leftToo > weights*7/4 {
			t.Errorf("%s: %d and %d bytes are left, the weights have %d", name, left, leftToo, weights)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: other losses", name)
		}
	}
}
