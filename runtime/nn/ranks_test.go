package nn_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/cpu"
	"github.com/asyncgen/asyncgen/device/wire"
	"github.com/asyncgen/asyncgen/device/wire/wiretest"
	"github.com/asyncgen/asyncgen/internal/turns"
	asyncrt "github.com/asyncgen/asyncgen/runtime"
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// onRanks runs f on n goroutines, each as a rank of a job, and waits for all that they have enqueued. A rank
// computes on processors of its own: on a device that ranks share, operations would not be in the order of one
// program.
func onRanks(t *testing.T, w *wiretest.Network, n int, f func(job *wire.Job, own device.Device)) {
	t.Helper()
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			job, err := wire.NewJob(w.Rank(i), wire.Options{Program: "test"})
			if err != nil {
				t.Error(err)
				return
			}
			f(job, device.Wrap("cpu", device.KindCPU, cpu.New()))
			for peer := range n {
				if peer != i {
					asyncrt.Synchronize(job.To(peer)) // what has failed, f has seen
					asyncrt.Synchronize(job.From(peer))
				}
			}
			job.Close()
		})
	}
	wg.Wait()
}

// A noisy module draws, from a generator of its own, a number that grows with its input.
type noisy struct {
	body nn.Module
	gen  *tensor.Generator
	rest nn.Module
}

func (n *noisy) Forward(x *tensor.Tensor) *tensor.Tensor {
	return n.rest.Forward(n.gen.Dropout(n.body.Forward(x), 0.3))
}

func (n *noisy) Params() []*nn.Param { return nn.Params(n) }

// A trial is a model to train, and what it is trained on.
type trial struct {
	name  string
	model func() nn.Module // the same weights each time, and a generator of its own
	x     func(g *tensor.Generator, rows int) *tensor.Tensor
	y     func(g *tensor.Generator, rows int) *tensor.Tensor
	loss  func(pred, target *tensor.Tensor) *tensor.Tensor
}

func trials() []trial {
	vectors := func(width int) func(g *tensor.Generator, rows int) *tensor.Tensor {
		return func(g *tensor.Generator, rows int) *tensor.Tensor { return g.Randn(rows, width) }
	}
	tensor.Seed(7)
	plain := newNet() // with a buffer
	plain.Forward(tensor.Ones(2, 12))
	plain = nn.Clone(plain)
	conv := alike()
	conv.Forward(tensor.Ones(1, 2, 8, 8))
	first, last := nn.Sequential(nn.Dense(300), nn.ReLU()), nn.Dense(5) // a weight that is halved
	last.Forward(first.Forward(tensor.Ones(1, 40)))
	return []trial{
		{"perceptron", func() nn.Module { return nn.Clone(plain) }, vectors(12), vectors(5), nn.MSELoss},
		{"convnet", func() nn.Module { return nn.Clone(conv) },
			func(g *tensor.Generator, rows int) *tensor.Tensor { return g.Randn(rows, 2, 8, 8) },
			func(g *tensor.Generator, rows int) *tensor.Tensor { return g.RandInt(0, 3, rows) }, nn.CrossEntropy},
		{"noisy", func() nn.Module {
			return &noisy{nn.Clone(first), tensor.NewGenerator(11), nn.Clone(last)}
		}, vectors(40), vectors(5), nn.MSELoss},
	}
}

// learn trains for some steps, and returns all that can be seen of it. job may be nil. Batches differ in length.
func (c trial) learn(t *testing.T, job *wire.Job, own device.Device, devs []device.Device, steps, bucket int) (got training, err error) {
	model := c.model()
	how := nn.Parallel{Devices: devs, Job: job, Bucket: bucket}
	rank, ranks := 0, 1
	if job != nil {
		rank, ranks = job.Rank(), job.Size()
	}
	if rank > 0 { // rank 0's count
		for _, p := range nn.Params(model) {
			p.Set(p.Value().Detach().MulScalar(2))
		}
	}
	net := nn.DataParallel(model, how)
	opt := optim.Adam(net.Params(), 0.01)
	data := tensor.NewGenerator(3)
	for step := range steps {
		rows := []int{16, 16, 24, 16}[step%4]
		x, y := c.x(data, rows), c.y(data, rows)
		from, to := rank*rows/ranks, (rank+1)*rows/ranks
		loss := net.Loss(c.loss, x.Slice(0, from, to).To(own), y.Slice(0, from, to).To(own))
		opt.Minimize(loss)
		if err := loss.Wait(); err != nil {
			return got, err
		}
		got.losses = append(got.losses, loss.Item())
	}
	for _, cell := range nn.Cells(model) {
		if _, ok := cell.(*tensor.Generator); ok {
			got.values = append(got.values, cell.Value().As(tensor.Float32).Float32s())
			continue
		}
		v := cell.Value()
		if err := v.Wait(); err != nil {
			return got, err
		}
		got.values = append(got.values, v.Float32s())
	}
	return got, nil
}

// Training gives the same bits on any number of ranks with any number of devices, and without ranks.
func TestRanksBits(t *testing.T) {
	for _, c := range trials() {
		for _, bucket := range []int{0, 600} {
			want, err := c.learn(t, nil, device.CPU(), []device.Device{device.CPU()}, 4, bucket)
			if err != nil {
				t.Fatal(err)
			}
			for _, ranks := range []int{1, 2, 4, 8} { // with 8 shards, the hosts of 8 ranks add up sums
				for devices := 1; devices <= 2 && devices*ranks <= 8; devices++ {
					if !turns.Has(t, fmt.Sprint(c.name, bucket, ranks, devices)) {
						continue
					}
					w := wiretest.New(ranks)
					w.Shuffle(uint64(ranks + devices))
					onRanks(t, w, ranks, func(job *wire.Job, own device.Device) {
						devs := []device.Device{own}
						if devices > 1 || bucket > 0 || ranks == 8 && job.Rank()%2 == 1 {
							devs = simulated(devices)
						}
						got, err := c.learn(t, job, own, devs, 4, bucket)
						if err != nil {
							t.Error(err)
						}
						if !got.equal(want) {
							t.Errorf("%s, bucket %d: rank %d of %d, with %d devices: losses %v, want %v", c.name, bucket, job.Rank(), ranks, devices, got.losses, want.losses)
						}
					})
				}
			}
		}
	}
}

// When a rank dies, after any number of messages, the others end with an error that says so.
func TestRanksLoseOne(t *testing.T) {
	for _, zero := range []int{0, 2} {
		t.Run(fmt.Sprintf("zero=%d", zero), func(t *testing.T) { testRanksLoseOne(t, zero) })
	}
}

func testRanksLoseOne(t *testing.T, zero int) {
	const ranks = 3
	c := trials()[0]
	c.x, c.y = func(g *tensor.Generator, _ int) *tensor.Tensor { return g.Randn(24, 12) }, func(g *tensor.Generator, _ int) *tensor.Tensor { return g.Randn(24, 5) }
	shards := nn.Parallel{Shards: 6, Zero: zero, Bucket: 600}
	total := -1
	for n := 0; total < 0 || n < total; n++ {
		w := wiretest.New(ranks)
		var ready sync.WaitGroup
		ready.Add(ranks)
		errs := make([]error, ranks)
		onRanks(t, w, ranks, func(job *wire.Job, own device.Device) {
			ready.Done()
			ready.Wait() // all have come
			if job.Rank() == 1 && total >= 0 {
				w.Kill(1, n)
			}
			shards := shards
			shards.Job, shards.Devices = job, []device.Device{own}
			net := nn.DataParallel(c.model(), shards)
			opt := optim.SGD(net.Params(), 0.1)
			data := tensor.NewGenerator(3)
			for range 2 {
				opt.Minimize(net.Loss(c.loss, data.Randn(8, 12).To(own), data.Randn(8, 5).To(own)))
			}
			for _, p := range net.Params() {
				if err := p.Value().Wait(); err != nil {
					errs[job.Rank()] = err
				}
			}
		})
		if total < 0 {
			total = w.Sent(1) - 1 // one was to say that it has come
			if err := errors.Join(errs...); err != nil || total < 5 {
				t.Fatalf("%d messages: %v", total, err)
			}
			n = -1
			continue
		}
		some := false
		for rank, err := range errs {
			some = some || rank != 1 && err != nil
			if err != nil && (!errors.Is(err, device.ErrLost) || !strings.Contains(err.Error(), ".go:")) {
				t.Errorf("after %d messages: rank %d: %v", n, rank, err)
			}
		}
		if !some && n < total-1 { // the last may be one that no weight needs
			t.Errorf("after %d of %d messages, nobody has noticed", n, total)
		}
	}
}

// Forward gives a rank the results of its own samples, the buffers those of all; nothing waits.
func TestRanksForward(t *testing.T) {
	c := trials()[0]
	x := tensor.NewGenerator(1).Randn(16, 12)
	alone := nn.DataParallel(c.model(), nn.Parallel{})
	half := x.Slice(0, 0, 8)
	optim.SGD(alone.Params(), 0).Minimize(alone.Loss(c.loss, tensor.Concat(0, half, half), tensor.Zeros(16, 5)))
	all := alone.Forward(x)
	want := alone.Replica(0).(*net).mean.mean.Value().Float32s()
	var results [2]*tensor.Tensor
	var buffers [2]nn.Module
	onRanks(t, wiretest.New(2), 2, func(job *wire.Job, own device.Device) {
		var net *nn.Replicas
		asyncrt.ForbidSync(func() {
			net = nn.DataParallel(c.model(), nn.Parallel{Job: job, Devices: simulated(1)})
			optim.SGD(net.Params(), 0).Minimize(net.Loss(c.loss, half.To(own), tensor.On(own).Zeros(8, 5)))
		})
		results[job.Rank()] = net.Forward(x.Slice(0, 8*job.Rank(), 8*job.Rank()+8).To(own))
		buffers[job.Rank()] = net.Replica(0)
		if got, want := net.String(), fmt.Sprintf("DataParallel on sim:0, rank %d of 2", job.Rank()); !strings.HasPrefix(got, want) {
			t.Errorf("%s, want %s", got, want)
		}
		if got := recovered(func() { results[job.Rank()].Sum().Backward() }); !strings.Contains(got, "Backward") {
			t.Errorf("Backward: %s", got)
		}
	})
	for rank, got := range results {
		if !slices.Equal(got.Float32s(), all.Slice(0, 8*rank, 8*rank+8).Float32s()) {
			t.Errorf("rank %d: %v, want %v", rank, got, all)
		}
		if got := buffers[rank].(*net).mean.mean.Value().Float32s(); !slices.Equal(got, want) {
			t.Errorf("rank %d: the buffer is %v, want %v", rank, got, want)
		}
	}
}

// Ranks that train in different ways are told so.
func TestRanksDiffer(t *testing.T) {
	for name, how := range map[string]func(rank int) nn.Parallel{
		"buckets": func(rank int) nn.Parallel { return nn.Parallel{Bucket: 1000 + rank} },
		"shards":  func(rank int) nn.Parallel { return nn.Parallel{Shards: 4 + 4*rank} },
	} {
		errs := make([]error, 2)
		onRanks(t, wiretest.New(2), 2, func(job *wire.Job, own device.Device) {
			p := how(job.Rank())
			p.Job, p.Devices = job, []device.Device{own}
			net := nn.DataParallel(nn.Clone(trials0), p)
			net.Params()[0].Value().Wait()
			errs[job.Rank()] = job.Err()
		})
		if err := errors.Join(errs...); err == nil || !strings.Contains(err.Error(), "do not do the same") && !strings.Contains(err.Error(), "has died") {
			t.Errorf("%s: %v", name, err)
		}
	}
	// Ranks that use other layers, as large ones.
	for what, layer := range map[string]nn.Module{"gradients": trials0, "weights": nn.PReLU(1)} {
		in := map[string]int{"gradients": 4, "weights": 3}[what]
		errs := make([]error, 2)
		onRanks(t, wiretest.New(2), 2, func(job *wire.Job, own device.Device) {
			m := &one{Layers: []nn.Module{nn.Clone(layer), nn.Clone(layer)}, which: job.Rank()}
			net := nn.DataParallel(m, nn.Parallel{Job: job, Devices: []device.Device{own}})
			loss := net.Loss(nn.MSELoss, tensor.Ones(8, in).To(own), tensor.Ones(8, 3).To(own))
			loss.Wait()
			if what == "gradients" {
				loss.Backward()
			}
			for _, p := range net.Params() {
				if p.HasGrad() {
					p.Grad().Wait()
				}
			}
			errs[job.Rank()] = job.Err()
		})
		if err := errors.Join(errs...); err == nil || !strings.Contains(err.Error(), "do not do the same") {
			t.Errorf("%s of other layers: %v", what, err)
		}
	}
	onRanks(t, wiretest.New(1), 1, func(job *wire.Job, own device.Device) {
		for want, f := range map[string]func(){
			"nn: DataParallel: Loss: 7 samples on a rank that computes 8 shards, want one for each": func() {
				nn.DataParallel(nn.Dense(1), nn.Parallel{Job: job}).Loss(nn.MSELoss, tensor.Ones(7, 2), tensor.Ones(7, 1))
			},
		} {
			if got := recovered(f); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		}
	})
	onRanks(t, wiretest.New(3), 3, func(job *wire.Job, own device.Device) {
		if got, want := recovered(func() { nn.DataParallel(nn.Dense(1), nn.Parallel{Job: job}) }), "nn: DataParallel: 8 shards can't be shared equally by 3 devices"; !strings.HasPrefix(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// one is one of several layers.
type one struct {
	Layers []nn.Module
	which  int
}

func (o *one) Params() []*nn.Param { return nn.Params(o) }

func (o *one) Forward(x *tensor.Tensor) *tensor.Tensor { return o.Layers[o.which].Forward(x) }

var trials0 = func() nn.Module {
	m := nn.Dense(3)
	m.Forward(tensor.Ones(1, 4))
	return m
}()

// The weights that a model draws when it is first used are those that it draws without a job.
func TestRankDrawsWeights(t *testing.T) {
	c := trials()[0]
	learn := func(job *wire.Job, own device.Device) training {
		tensor.Seed(5)
		c.model = func() nn.Module { return newNet() }
		got, err := c.learn(t, job, own, []device.Device{own}, 3, 0)
		if err != nil {
			t.Error(err)
		}
		return got
	}
	want := learn(nil, device.CPU())
	onRanks(t, wiretest.New(1), 1, func(job *wire.Job, own device.Device) {
		if got := learn(job, own); !got.equal(want) {
			t.Errorf("losses %v, want %v", got.losses, want.losses)
		}
	})
}

// A deeper module has one layer more in each Forward, up to all of them. It adds noise behind each.
type deeper struct {
	Layers []nn.Module
	gen    *tensor.Generator // of weights and noise
	used   int
	noise  []*tensor.Tensor // of the last Forwards
}

func newDeeper(layers, used int) *deeper {
	d := &deeper{gen: tensor.NewGenerator(5), used: used}
	rand := func(_ tensor.Maker, in, out int, shape ...int) *tensor.Tensor { return d.gen.Rand(shape...) }
	for range layers {
		d.Layers = append(d.Layers, nn.Dense(6, nn.Init{Weight: rand, NoBias: true}))
	}
	return d
}

func (d *deeper) Params() []*nn.Param { return nn.Params(d) }

func (d *deeper) Forward(x *tensor.Tensor) *tensor.Tensor {
	d.used = min(d.used+1, len(d.Layers))
	for _, l := range d.Layers[:d.used] {
		noise := d.gen.Rand(x.Shape()...)
		d.noise = append(d.noise, noise)
		x = l.Forward(x).Add(noise)
	}
	return x
}

// No number is drawn both for weights of one layer and for those of another one, or for noise, also where a pass is
// computed again. What comes after a pass is drawn behind all of them, at the same place on any number of ranks.
func TestRankDrawsOnce(t *testing.T) {
	const shards = 2
	for _, used := range []int{0, 1, 3} {
		var mu sync.Mutex
		ends := map[int64]bool{}
		for _, ranks := range []int{1, 2} {
			onRanks(t, wiretest.New(ranks), ranks, func(job *wire.Job, own device.Device) {
				m := newDeeper(3, used)
				net := nn.DataParallel(m, nn.Parallel{Job: job, Shards: shards})
				x := tensor.Ones(2/ranks, 6)
				if _, err := net.Loss(nn.MSELoss, x, x).ItemContext(t.Context()); err != nil {
					t.Error(err)
				}
				var all []float32
				for _, p := range m.Params() {
					all = append(all, p.Value().Float32s()...)
				}
				for _, n := range m.noise[len(m.noise)-3*shards/ranks:] {
					all = append(all, n.Float32s()...)
				}
				at := m.gen.Value().Int64s()[1]
				all = append(all, m.gen.Rand(100).Float32s()...)
				slices.Sort(all)
				if n := len(slices.Compact(all)); n != len(all) {
					t.Errorf("%d of 3 layers used, %d ranks: %d of %d numbers are drawn twice", used, ranks, len(all)-n, len(all))
				}
				mu.Lock()
				defer mu.Unlock()
				ends[at] = true
			})
		}
		if used == 3 && len(ends) != 1 {
			t.Errorf("generators are at %v, want one place on any number of ranks", ends)
		}
	}
}
