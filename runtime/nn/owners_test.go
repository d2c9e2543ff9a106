package nn_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/wire"
	"github.com/asyncgen/asyncgen/device/wire/wiretest"
	"github.com/asyncgen/asyncgen/internal/turns"
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// optimisers are all that there are, with all that they can remember.
var optimisers = map[string]func(params []*nn.Param) *optim.Optimizer{
	"SGD": func(p []*nn.Param) *optim.Optimizer { return optim.SGD(p, 0.01) },
	"Momentum": func(p []*nn.Param) *optim.Optimizer {
		return optim.SGD(p, 0.01, optim.SGDOptions{Momentum: 0.9, Decay: 0.1})
	},
	"Adam":  func(p []*nn.Param) *optim.Optimizer { return optim.Adam(p, 0.01) },
	"AdamW": func(p []*nn.Param) *optim.Optimizer { return optim.AdamW(p, 0.01) },
	"RMSProp": func(p []*nn.Param) *optim.Optimizer {
		return optim.RMSProp(p, 0.01, optim.RMSPropOptions{Momentum: 0.5, Centered: true})
	},
	"AdaDelta": func(p []*nn.Param) *optim.Optimizer { return optim.AdaDelta(p, 1) },
	"Group": func(p []*nn.Param) *optim.Optimizer {
		isMatrix := func(p *nn.Param) bool { return p.Value().Rank() > 1 }
		others := slices.DeleteFunc(slices.Clone(p), isMatrix)
		matrices := slices.DeleteFunc(slices.Clone(p), func(p *nn.Param) bool { return !isMatrix(p) })
		g := optim.Group(optim.AdamW(matrices, 0.01), optim.SGD(others, 0.01, optim.SGDOptions{Momentum: 0.9}))
		g.Schedule = optim.Cosine(10, 0.1)
		return g
	},
	"Guard": func(p []*nn.Param) *optim.Optimizer {
		o := optim.Adam(p, 0.01)
		o.Guard = true
		return o
	},
}

// A zeroRun is a few steps of training in one way.
type zeroRun struct {
	trial
	make   func(params []*nn.Param) *optim.Optimizer
	clips  bool // by norm; then the sums are all there before the step
	spoils bool // the third loss is NaN
}

// learn returns the losses, norms and weights of a rank. With a job it takes its part of each batch.
func (r zeroRun) learn(t *testing.T, how nn.Parallel, own device.Device) (got training, net *nn.Replicas, opt *optim.Optimizer) {
	rank, ranks := 0, 1
	if how.Job != nil {
		rank, ranks = how.Job.Rank(), how.Job.Size()
	}
	net = nn.DataParallel(r.model(), how)
	opt = r.make(net.Params())
	data := tensor.NewGenerator(3)
	for step := range 4 {
		x, y := data.Randn(16, 12), data.Randn(16, 5)
		if r.spoils && step == 2 {
			y = y.Div(y.Sub(y))
		}
		from, to := rank*16/ranks, (rank+1)*16/ranks
		loss := net.Loss(nn.MSELoss, x.Slice(0, from, to).To(own), y.Slice(0, from, to).To(own))
		if r.clips {
			opt.ZeroGrad()
			loss.Backward()
			norm := optim.ClipNorm(net.Params(), 0.1).Item()
			if math.IsNaN(norm) {
				norm = -1 // NaN would not be equal to itself
			}
			got.losses = append(got.losses, norm)
			opt.Step()
		} else {
			opt.Minimize(loss)
		}
		if err := loss.Wait(); err != nil {
			t.Error(err)
		}
		if !r.spoils {
			got.losses = append(got.losses, loss.Item())
		}
	}
	for d := range how.Devices {
		for i, p := range nn.Params(net.Replica(d)) {
			v := p.Value()
			if err := v.Wait(); err != nil {
				t.Error(err)
			}
			if d == 0 {
				got.values = append(got.values, v.Float32s())
			} else if !slices.Equal(v.Float32s(), got.values[i]) {
				t.Errorf("parameter %d of replica %d differs from that of the first", i, d)
			}
		}
	}
	return got, net, opt
}

// Training has the same bits at each stage of ZeRO, on any number of ranks and devices, with every optimiser.
func TestZeroBits(t *testing.T) {
	c := trials()[0]
	for name, make := range optimisers {
		for _, clips := range []bool{false, true} {
			run := zeroRun{c, make, clips, name == "Guard"}
			want, _, _ := run.learn(t, nn.Parallel{Devices: []device.Device{device.CPU()}, Bucket: 600}, device.CPU())
			for _, ranks := range []int{1, 2, 4, 8} { // with 8 shards, the hosts of 8 ranks add up sums
				for devices := 1; devices <= 2 && devices*ranks <= 8; devices++ {
					if isOne := ranks == 2 && devices == 1; !isOne && name != "Adam" && name != "Group" && name != "Guard" {
						continue // the rules differ, and not what is sent
					}
					if !turns.Has(t, fmt.Sprint(name, clips, ranks, devices)) {
						continue
					}
					for zero := 1; zero <= 2; zero++ {
						w := wiretest.New(ranks)
						w.Shuffle(uint64(ranks + devices))
						onRanks(t, w, ranks, func(job *wire.Job, own device.Device) {
							devs := []device.Device{own}
							if devices > 1 || zero == 2 && clips || ranks == 8 && job.Rank()%2 == 1 {
								devs = simulated(devices)
							}
							got, _, _ := run.learn(t, nn.Parallel{Devices: devs, Job: job, Bucket: 600, Zero: zero}, own)
							if !got.equal(want) {
								t.Errorf("%s, clips %t, stage %d: rank %d of %d, with %d devices: losses %v, want %v", name, clips, zero, job.Rank(), ranks, devices, got.losses, want.losses)
							}
						})
					}
				}
			}
		}
	}
}

// held returns how many bytes of state and of gradients a rank holds.
func held(opt *optim.Optimizer, net *nn.Replicas) (state, grads int) {
	bytes := func(v *tensor.Tensor) int { return v.Size() * v.DType().Size() }
	for name, c := range opt.State() {
		if b, ok := c.(*nn.Buffer); ok && b.IsSet() && strings.Contains(name, ".") {
			state += bytes(b.Value())
		}
	}
	for _, p := range net.Params() {
		if g := p.Grad(); g != nil {
			grads += bytes(g)
		}
	}
	return state, grads
}

// Of what an optimiser remembers, and at stage 2 of the gradients, each rank holds its share, which is at most a bucket
// above the average. Together they hold all of it once.
func TestZeroMemory(t *testing.T) {
	const bucket = 600
	run := zeroRun{trial: trials()[0], make: optimisers["Adam"]}
	var layers []nn.Module
	for range 8 {
		layers = append(layers, nn.Dense(12), nn.ReLU())
	}
	layers = append(layers, nn.Dense(5))
	deep := nn.Sequential(layers...)
	deep.Forward(tensor.Ones(1, 12))
	run.model = func() nn.Module { return nn.Clone(deep) }
	_, net, opt := run.learn(t, nn.Parallel{Devices: []device.Device{device.CPU()}, Bucket: bucket}, device.CPU())
	allState, allGrads := held(opt, net)
	largest := 0
	for _, p := range net.Params() {
		largest = max(largest, 4*p.Value().Size())
	}
	for _, ranks := range []int{2, 4} {
		for zero := 0; zero <= 2; zero++ {
			states, grads := make([]int, ranks), make([]int, ranks)
			onRanks(t, wiretest.New(ranks), ranks, func(job *wire.Job, own device.Device) {
				_, net, opt := run.learn(t, nn.Parallel{Devices: []device.Device{own}, Job: job, Bucket: bucket, Zero: zero}, own)
				states[job.Rank()], grads[job.Rank()] = held(opt, net)
			})
			t.Logf("stage %d on %d ranks: state %v of %d bytes, gradients %v of %d bytes", zero, ranks, states, allState, grads, allGrads)
			check := func(what string, got []int, all, above int, isShared bool) {
				sum := 0
				for rank, n := range got {
					sum += n
					if isShared && n > all/ranks+above || !isShared && n != all {
						t.Errorf("stage %d: rank %d of %d holds %d bytes of %s, of %d", zero, rank, ranks, n, what, all)
					}
				}
				if isShared && sum != all {
					t.Errorf("stage %d: %d ranks hold %d bytes of %s together, want %d", zero, ranks, sum, what, all)
				}
			}
			check("state", states, allState, 2*(bucket+largest), zero >= 1) // two averages
			check("gradients", grads, allGrads, bucket+largest, zero == 2)
		}
	}
}

// Ranks that differ in their stage are told so, and there is no stage 3.
func TestZeroMistakes(t *testing.T) {
	if got := recovered(func() { nn.DataParallel(nn.Dense(1), nn.Parallel{Zero: 3}) }); got != "nn: DataParallel: Zero is 3, want a stage from 0 to 2" {
		t.Error(got)
	}
	var errs [2]error
	onRanks(t, wiretest.New(2), 2, func(job *wire.Job, own device.Device) {
		net := nn.DataParallel(nn.Clone(trials0), nn.Parallel{Job: job, Devices: []device.Device{own}, Zero: job.Rank()})
		net.Params()[0].Value().Wait()
		errs[job.Rank()] = job.Err()
	})
	if got := fmt.Sprint(errs); !strings.Contains(got, "do not do the same") {
		t.Error(got)
	}
}

// An optimiser whose parameters are given to other ranks does not go on without what it knew.
func TestZeroMoves(t *testing.T) {
	c := trials()[0]
	var got, alone string
	onRanks(t, wiretest.New(2), 2, func(job *wire.Job, own device.Device) {
		model := c.model()
		how := nn.Parallel{Job: job, Devices: []device.Device{own}, Bucket: 600, Zero: 1}
		net := nn.DataParallel(model, how)
		opt := optim.Adam(net.Params(), 0.1)
		opt.Minimize(net.Loss(nn.MSELoss, tensor.On(own).Ones(4, 12), tensor.On(own).Ones(4, 5)))
		how.Bucket = 1 << 20
		if job.Rank() == 1 {
			how.Job = nil
		}
		net = nn.DataParallel(model, how)
		if said := recovered(func() {
			opt.Minimize(net.Loss(nn.MSELoss, tensor.On(own).Ones(4, 12), tensor.On(own).Ones(4, 5)))
		}); said != "" {
			job.Fail(errors.New(said))
			if job.Rank() == 0 { // of a job that goes on, it has all parameters now
				got = said
			} else { // and this one has none of rank 0's
				alone = said
			}
		}
	})
	for _, said := range []string{got, alone} {
		if want := "optim: Step: parameter"; !strings.HasPrefix(said, want) || !strings.Contains(said, "is not on this rank") {
			t.Errorf("got %q, want %s", said, want)
		}
	}
}
