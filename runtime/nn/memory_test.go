package nn_test

import (
	"runtime/debug"
	"testing"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/cpu"
	"github.com/asyncgen/asyncgen/internal/turns"
	asyncrt "github.com/asyncgen/asyncgen/runtime"
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// Layers let go of what they compute on the way: training and use leave nothing behind, without the collector.
func TestLayersLeaveNothing(t *testing.T) {
	probe := device.MemoryOf(cpu.New())
	if _, err := probe.Alloc(1); err != nil || probe.Stats().Live > 4096 {
		t.Skipf("a byte takes %d, as in checked builds: what is in use says little (%v)", probe.Stats().Live, err)
	}
	asyncrt.WaitAll() // other tests have made operations fail
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	leavesNothing := func(t *testing.T, k kind, _ nn.Module, small *tensor.Tensor) {
		turns.Take(t)
		const samples = 256
		b := cpu.New()
		dev := device.Wrap("cpu", device.KindSimulated, b)
		repeated := small.To(dev).Unsqueeze(0).BroadcastTo(append([]int{samples}, small.Shape()...)...)
		x := repeated.Reshape(append([]int{samples * k.shape[0]}, k.shape[1:]...)...)
		m := k.make()
		step := func() {
			y := m.Forward(x)
			if y.DType().IsFloat() && len(m.Params()) > 0 {
				squares := y.Square()
				l := squares.Sum()
				l.Backward()
				tensor.Dead(squares, l)
			}
			tensor.Dead(y)
			for _, p := range m.Params() {
				p.ZeroGrad()
			}
			z := nn.Frozen(m).Forward(x)
			tensor.Dead(z)
		}
		live := func() int64 {
			if err := asyncrt.WaitAll(); err != nil {
				t.Error(err)
			}
			return device.MemoryOf(b).Stats().Live
		}
		step()
		before := live()
		for range 8 {
			step()
		}
		if after := live(); after > before+4*samples {
			t.Errorf("%d bytes are in use after a step, %d after 8 more", before, after)
		}
	}
	each(t, leavesNothing)
	t.Run("dropout of weights", func(t *testing.T) {
		k := kind{make: func() nn.Module { return nn.MultiHeadAttention(8, 4, nn.Heads{Causal: true, Dropout: 0.5}) }, shape: []int{4, 3, 5}}
		leavesNothing(t, k, nil, k.input(tensor.NewGenerator(4)))
	})
}
