package nn_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/fault"
	"github.com/asyncgen/asyncgen/device/sim"
	asyncrt "github.com/asyncgen/asyncgen/runtime"
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// A net maps vectors to vectors by a weight of its own, and centres what a layer makes of them.
type net struct {
	body  nn.Module
	scale *nn.Param
	mean  *centred
}

func newNet() *net {
	return &net{nn.Sequential(nn.Dense(32), nn.ReLU(), nn.LayerNorm(), nn.Dense(5)), nn.NewParam(tensor.On(device.CPU()).Full(0.5, 5)), &centred{mean: nn.NewBuffer(nil)}}
}

func (n *net) Forward(x *tensor.Tensor) *tensor.Tensor {
	return n.mean.Forward(n.body.Forward(x).Mul(n.scale.Value()))
}

func (n *net) Params() []*nn.Param { return nn.Params(n) }

func ExampleDataParallel() {
	model := nn.Sequential(nn.Dense(64), nn.ReLU(), nn.Dense(1))
	// of a machine with GPUs: device.GPUs()
	net := nn.DataParallel(model, nn.Parallel{Devices: []device.Device{device.CPU()}})
	opt := optim.SGD(net.Params(), 0.1)
	x, y := tensor.Ones(16, 2), tensor.Zeros(16, 1)
	for range 20 {
		opt.Minimize(nn.MSELoss(net.Forward(x), y))
	}
	fmt.Println(model.Forward(x).Abs().Max().Item() < 0.01)
	// Output: true
}

// simulated returns n devices that cost nothing.
func simulated(n int) []device.Device {
	devs := make([]device.Device, n)
	for i := range devs {
		devs[i] = device.Wrap(fmt.Sprintf("sim:%d", i), device.KindSimulated, sim.New(sim.Options{Queue: 64}))
	}
	return devs
}

// A training is a few steps, and all that can be seen of them.
type training struct {
	losses []float64
	values [][]float32 // of parameters and buffers of the first replica
}

// train takes a few steps with a new model on some devices, by the loss of what Forward gives, or
// by Loss. It checks that all replicas are equal after each.
func train(t *testing.T, how nn.Parallel, rows int, byLoss bool) (got training) {
	t.Helper()
	tensor.Seed(7)
	model := newNet()
	par := nn.DataParallel(model, how)
	opt := optim.SGD(par.Params(), 0.1)
	data := tensor.NewGenerator(3)
	for step := range 4 {
		x, y := data.Randn(rows, 12), data.Randn(rows, 5)
		var loss *tensor.Tensor
		if byLoss {
			loss = par.Loss(nn.MSELoss, x, y)
		} else {
			loss = nn.MSELoss(par.Forward(x), y)
		}
		opt.Minimize(loss)
		got.losses = append(got.losses, loss.Item())
		for i, dev := range how.Devices {
			replica := par.Replica(i).(*net)
			for j, p := range replica.Params() {
				first := model.Params()[j]
				if p.Value().Device() != dev {
					t.Fatalf("step %d: parameter %d of replica %d is on %v", step, j, i, p.Value().Device())
				}
				if !slices.Equal(p.Value().Float32s(), first.Value().Float32s()) || !slices.Equal(p.Grad().Float32s(), first.Grad().Float32s()) {
					t.Fatalf("step %d: parameter %d of replica %d differs from that of the first", step, j, i)
				}
			}
			if !slices.Equal(replica.mean.mean.Value().Float32s(), model.mean.mean.Value().Float32s()) {
				t.Fatalf("step %d: the buffer of replica %d differs", step, i)
			}
		}
	}
	for _, p := range model.Params() {
		got.values = append(got.values, p.Value().Float32s())
	}
	got.values = append(got.values, model.mean.mean.Value().Float32s())
	return got
}

func (a training) equal(b training) bool {
	return slices.Equal(a.losses, b.losses) && slices.EqualFunc(a.values, b.values, slices.Equal[[]float32])
}

// Training gives the same bits on any devices, with shards of one length and of several.
func TestDataParallelBits(t *testing.T) {
	devs := simulated(8)
	for _, rows := range []int{64, 61, 5} {
		for _, byLoss := range []bool{false, true} {
			want := train(t, nn.Parallel{Devices: []device.Device{device.CPU()}}, rows, byLoss)
			for _, on := range [][]device.Device{devs[:1], devs[:2], devs[:4], devs[4:], devs, {devs[0], devs[0]}, {devs[1], device.CPU()}} {
				if got := train(t, nn.Parallel{Devices: on}, rows, byLoss); !got.equal(want) {
					t.Errorf("%d rows, by Loss: %v: on %d devices\n%v, want\n%v", rows, byLoss, len(on), got, want)
				}
			}
		}
	}
	want := train(t, nn.Parallel{Devices: devs[:1], Shards: 21, Bucket: 500}, 63, true)
	for _, n := range []int{3, 7} {
		if got := train(t, nn.Parallel{Devices: devs[:n], Shards: 21, Bucket: 500}, 63, true); !got.equal(want) {
			t.Errorf("21 shards on %d devices: %v, want %v", n, got, want)
		}
	}
}

// alike is a model without what looks at a whole batch, so that training it in parallel is training it as it is.
func alike() nn.Module {
	return nn.Sequential(
		nn.Conv2D(4, tensor.Pair{3, 3}, tensor.Conv{}), nn.ReLU(), nn.MaxPool2D(tensor.Pool{Window: tensor.Pair{2, 2}}), nn.Flatten(),
		nn.Dense(16), nn.RMSNorm(), nn.Dense(3),
	)
}

// Training in parallel is training the module alone, within rounding, also where shards have
// different lengths. The module alone in float64 is what both are held against.
func TestDataParallelIsTraining(t *testing.T) {
	devs := simulated(4)
	drawn := alike()
	drawn.Forward(tensor.Ones(1, 2, 8, 8))
	for _, rows := range []int{32, 27} {
		run := func(dt device.DType, inParallel bool) (losses []float64) {
			m := nn.Clone(drawn)
			for _, p := range m.Params() {
				p.Set(p.Value().Detach().As(dt))
			}
			if inParallel {
				m = nn.DataParallel(m, nn.Parallel{Devices: devs})
			}
			data := tensor.NewGenerator(9)
			opt := optim.SGD(m.Params(), 0.1)
			for i := range 6 {
				x, labels := data.Randn(rows, 2, 8, 8).As(dt), data.RandInt(0, 3, rows)
				var loss *tensor.Tensor
				if par, ok := m.(*nn.Replicas); ok && i%2 == 1 {
					loss = par.Loss(nn.CrossEntropy, x, labels)
				} else {
					loss = nn.CrossEntropy(m.Forward(x), labels)
				}
				opt.Minimize(loss)
				losses = append(losses, loss.Item())
			}
			return losses
		}
		want := run(tensor.Float64, false)
		for dt, tolerance := range map[device.DType]float64{tensor.Float64: 1e-12, tensor.Float32: 2e-5} {
			for i, got := range run(dt, true) {
				if !(math.Abs(got-want[i]) <= tolerance) {
					t.Errorf("%d rows, %v, step %d: loss %v, want %v", rows, dt, i, got, want[i])
				}
			}
		}
	}
}

// The gradient of what the input was made of goes through all shards, with the same bits on any devices.
func TestDataParallelInput(t *testing.T) {
	devs := simulated(4)
	var want []float32
	for _, n := range []int{1, 2, 4} {
		tensor.Seed(2)
		before := nn.Embedding(10, 6)
		net := nn.DataParallel(nn.Sequential(nn.Dense(8), nn.ReLU(), nn.Dense(2)), nn.Parallel{Devices: devs[:n]})
		classes := tensor.NewGenerator(1).RandInt(0, 10, 40).To(devs[0])
		out := net.Forward(before.Forward(classes).MulScalar(3))
		out.Square().Mean().Backward()
		got := before.Params()[0].Grad().Float32s()
		if n == 1 {
			want = got
		}
		if !slices.Equal(got, want) || slices.Max(got) == 0 {
			t.Errorf("on %d devices the gradient is %v, want %v", n, got, want)
		}
	}
}

// Gradients of several calls of Backward, and of several calls of Forward in one loss, add up.
func TestDataParallelAccumulates(t *testing.T) {
	devs := simulated(2)
	net := nn.DataParallel(nn.Sequential(nn.Dense(4), nn.ReLU(), nn.Dense(1)), nn.Parallel{Devices: devs, Shards: 4})
	x := tensor.On(devs[0]).Arange(0, 24, 1).Reshape(8, 3)
	loss := func() *tensor.Tensor { return net.Forward(x).Mean() }
	grads := func() (all [][]float32) {
		for _, p := range net.Params() {
			all = append(all, p.Grad().Float32s())
			p.ZeroGrad()
		}
		return all
	}
	loss().Backward()
	once := grads()
	loss().Backward()
	loss().Backward()
	twice := grads()
	loss().Add(loss()).Backward()
	together := grads()
	for j := range once {
		for k, g := range once[j] {
			if twice[j][k] != 2*g || together[j][k] != 2*g {
				t.Fatalf("gradient %d of parameter %d is %v, and %v and %v of two", k, j, g, twice[j][k], together[j][k])
			}
		}
	}
	// A loss of some of the rows alone reaches some of the shards, and all replicas get the gradient.
	net.Forward(x).Slice(0, 0, 2).Sum().Backward()
	part := grads()
	for j := range part[:4] {
		if !slices.Equal(part[j], part[j+4]) {
			t.Errorf("parameter %d: gradients %v and %v", j, part[j], part[j+4])
		}
	}
}

// A snapshot of the module alone is restored on all devices, and one of the replicas likewise.
func TestDataParallelSnapshot(t *testing.T) {
	devs := simulated(4)
	model := newNet()
	par := nn.DataParallel(model, nn.Parallel{Devices: devs})
	opt := optim.SGD(par.Params(), 0.1)
	x, y := tensor.Randn(16, 12), tensor.Randn(16, 5)
	step := func() float64 {
		loss := par.Loss(nn.MSELoss, x, y)
		opt.Minimize(loss)
		return loss.Item()
	}
	step()
	one, all := nn.Snapshot(model), nn.Snapshot(par, opt)
	want := []float64{step(), step()}
	one.Restore()
	par.Sync()
	if got := []float64{step(), step()}; !slices.Equal(got, want) {
		t.Errorf("after the snapshot of one: %v, want %v", got, want)
	}
	all.Restore()
	if got := []float64{step(), step()}; !slices.Equal(got, want) {
		t.Errorf("after the snapshot of all: %v, want %v", got, want)
	}
	one.Restore()
	if got, want := recovered(func() { step() }), "nn: DataParallel: Loss: parameter 0 was set in some replicas only"; !strings.HasPrefix(got, want) {
		t.Errorf("without Sync: %q, want %q", got, want)
	}
	par.Sync()
	step()
	optim.ClipNorm(model.Params(), 1e-3) // of one replica
	if got, want := recovered(func() { step() }), "nn: DataParallel: Loss: parameter 0 was set in some replicas only"; !strings.HasPrefix(got, want) {
		t.Errorf("gradients of one replica are clipped: %q, want %q", got, want)
	}
}

// recovered returns what f panics with, as a string.
func recovered(f func()) (text string) {
	defer func() {
		if p := recover(); p != nil {
			text = fmt.Sprint(p)
		}
	}()
	f()
	return ""
}

// hidden has a parameter that is in no field.
type hidden func() *nn.Param

func (hidden) Forward(x *tensor.Tensor) *tensor.Tensor { return x }
func (h hidden) Params() []*nn.Param                   { return []*nn.Param{h()} }

func TestDataParallelMistakes(t *testing.T) {
	devs := simulated(3)
	dense := func() *nn.Replicas { return nn.DataParallel(nn.Dense(2), nn.Parallel{}) }
	for want, f := range map[string]func(){
		"nn: DataParallel: 8 shards can't be shared equally by 3 devices": func() { nn.DataParallel(nn.Dense(1), nn.Parallel{Devices: devs}) },
		"nn: DataParallel: a part of nn.sequential is frozen": func() {
			nn.DataParallel(nn.Sequential(nn.Frozen(trials0), nn.Dense(1)), nn.Parallel{Devices: devs[:1]})
		},
		"nn: DataParallel: -1 shards": func() { nn.DataParallel(nn.Dense(1), nn.Parallel{Shards: -1}) },
		"nn: Clone: parameter 0 of nn_test.hidden is in none of its fields": func() {
			p := nn.NewParam(tensor.Ones(1))
			nn.Clone(hidden(func() *nn.Param { return p }))
		},
		"nn: DataParallel: Forward: the input has no axes": func() { dense().Forward(tensor.Scalar(1)) },
		"nn: DataParallel: Loss: targets have shape [3], want one for each of 4 samples": func() {
			dense().Loss(nn.MSELoss, tensor.Ones(4, 2), tensor.Ones(3))
		},
		"nn: DataParallel: Loss: the loss has shape [1 2], want one number": func() {
			dense().Loss(func(p, y *tensor.Tensor) *tensor.Tensor { return p.Sub(y) }, tensor.Ones(8, 2), tensor.Ones(8, 2))
		},
	} {
		if got := recovered(f); !strings.HasPrefix(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// A clone has the values, is trained alone, and shares in itself what the module shares in itself.
func TestClone(t *testing.T) {
	tied := nn.Dense(3)
	m := nn.Sequential(tied, nn.ReLU(), tied, nn.Sequential(tied), newNet())
	x := tensor.Arange(0, 6, 1).Reshape(2, 3)
	early := nn.Clone(m)
	want := m.Forward(x).Float32s()
	c := nn.Clone(m)
	if got := c.Forward(x).Float32s(); !slices.Equal(got, want) {
		t.Errorf("the clone gives %v, want %v", got, want)
	}
	ps, qs := m.Params(), c.Params()
	for i := range ps {
		if slices.Index(qs, qs[i]) != slices.Index(ps, ps[i]) || slices.Contains(ps, qs[i]) {
			t.Errorf("parameter %d is shared otherwise", i)
		}
	}
	optim.SGD(qs, 0.1).Minimize(c.Forward(x).Square().Sum())
	if ps[0].Grad() != nil || slices.Equal(ps[0].Value().Float32s(), qs[0].Value().Float32s()) || early.Params()[0].IsSet() {
		t.Error("the clones are not apart")
	}
}

// Nothing waits: waiting is forbidden, and there is no mistake.
func TestDataParallelNeverWaits(t *testing.T) {
	defer asyncrt.SyncMode(asyncrt.SyncMode(asyncrt.Error))
	par := nn.DataParallel(newNet(), nn.Parallel{Devices: simulated(4)})
	opt := optim.SGD(par.Params(), 0.1)
	x, y := tensor.Randn(16, 12), tensor.Randn(16, 5)
	for range 3 {
		opt.Minimize(par.Loss(nn.MSELoss, x, y))
		opt.Minimize(nn.MSELoss(par.Forward(x), y))
	}
}

// When a device is lost, the loss and all gradients fail with that cause, and the other devices go on.
func TestDataParallelLostDevice(t *testing.T) {
	devs := simulated(3)
	lost := fault.New(sim.New(sim.Options{}))
	devs = append(devs, device.Wrap("sim:3", device.KindSimulated, lost))
	par := nn.DataParallel(nn.Sequential(nn.Dense(8), nn.ReLU(), nn.Dense(1)), nn.Parallel{Devices: devs})
	opt := optim.SGD(par.Params(), 0.1)
	x, y := tensor.Randn(16, 3), tensor.Randn(16, 1)
	opt.Minimize(par.Loss(nn.MSELoss, x, y))
	for _, dev := range devs {
		if err := asyncrt.Synchronize(dev); err != nil {
			t.Fatal(err)
		}
	}
	lost.Arm(fault.Faults{Call: fault.Command, Kind: fault.Lose, N: 5})
	loss := par.Loss(nn.MSELoss, x, y)
	opt.Minimize(loss)
	if err := loss.Wait(); !errors.Is(err, device.ErrLost) {
		t.Errorf("the loss: %v", err)
	}
	for i, p := range par.Params() {
		for what, x := range map[string]*tensor.Tensor{"gradient": p.Grad(), "value": p.Value()} {
			if err := x.Wait(); !errors.Is(err, device.ErrLost) {
				t.Errorf("the %s of parameter %d: %v", what, i, err)
			}
		}
	}
	if err := asyncrt.Synchronize(devs[3]); !errors.Is(err, device.ErrLost) {
		t.Errorf("the device: %v", err)
	}
	for _, dev := range devs[:3] {
		if got := tensor.On(dev).Ones(3).Sum().Item(); got != 3 {
			t.Errorf("%v gives %v", dev, got)
		}
	}
}

// By the model of the simulator, training on two and on four devices is at least 0.9 times as much
// faster as there are devices. If these are so fast that links are what takes long, sums go on
// between the shards of a layer.
func TestDataParallelScales(t *testing.T) {
	slow := sim.VirtualDefaults()
	slow.Flops, slow.Memory = 2e9, 5e9 // so that a small model takes as long as others do on GPUs
	fast := sim.VirtualDefaults()
	// a layer's gradients take long to travel, for what there is to compute
	fast.Flops, fast.Memory, fast.Link = 40e9, 100e9, 0.8e9
	for _, test := range []struct {
		name  string
		o     sim.Options
		least map[int]float64 // by the number of devices
	}{
		{"slow", slow, map[int]float64{1: 1, 2: 0.9, 4: 0.9}},
		// if sums went on once a layer, and not once a shard of it, it would be 0.945 and 0.776
		{"fast", fast, map[int]float64{1: 1, 2: 0.96, 4: 0.785}},
	} {
		t.Run(test.name, func(t *testing.T) { testScaling(t, test.o, test.least) })
	}
}

func testScaling(t *testing.T, o sim.Options, least map[int]float64) {
	took := map[int]time.Duration{}
	for _, n := range []int{1, 2, 4} {
		devs := make([]device.Device, n)
		for i := range devs {
			devs[i] = device.Wrap(fmt.Sprintf("sim:%d", i), device.KindSimulated, sim.New(o))
		}
		net := nn.DataParallel(nn.Sequential(
			nn.Dense(128), nn.ReLU(), nn.Dense(128), nn.ReLU(), nn.Dense(128), nn.ReLU(), nn.Dense(1),
		), nn.Parallel{Devices: devs, Bucket: 32 << 10})
		opt := optim.SGD(net.Params(), 0.01)
		x, y := tensor.On(device.CPU()).Ones(1024, 64), tensor.On(device.CPU()).Zeros(1024, 1)
		step := func() { opt.Minimize(net.Loss(nn.MSELoss, x, y)) }
		finish := func() time.Duration {
			for _, d := range devs {
				if err := asyncrt.Synchronize(d); err != nil {
					t.Fatal(err)
				}
			}
			return sim.Now()
		}
		step() // weights are drawn and copied
		begin := finish()
		step()
		step()
		took[n] = finish() - begin
		efficiency := took[1].Seconds() / took[n].Seconds() / float64(n)
		t.Logf("%d devices: %v a step, %.1f %%", n, took[n]/2, 100*efficiency)
		if !(efficiency >= least[n]) {
			t.Errorf("%d devices take %v for what one does in %v: %.1f %%, want %.1f %% at least", n, took[n], took[1], 100*efficiency, 100*least[n])
		}
	}
}
