package tensor_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/wire"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// Losses depend on parameters that change from step to step, so those that travel together do, too. Owners have the
// gradients of a Reducer without owners, to the bit, and at that stage nobody else has. What an owner sets, Renew
// gives to all ranks. A Restore brings back where gradients are.
func TestOwnedGradients(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	const ranks, shards, count, steps = 3, 2, 6, 12
	var used [steps][]int // by step: the parameters of the loss
	rng := rand.New(rand.NewPCG(seed, 0))
	for s := range used {
		used[s] = rng.Perm(count)[:1+rng.IntN(count)]
	}
	bucket := []int{1, 50, 200, 1 << 20}[rng.IntN(4)]
	sizes := make([]int, count)
	for j := range sizes {
		sizes[j] = 1 + rng.IntN(40)
	}
	newParams := func(dev device.Device) (params []*tensor.Param) {
		g := tensor.NewGenerator(seed)
		for _, n := range sizes {
			params = append(params, tensor.NewParam(g.Randn(n).To(dev)))
		}
		return params
	}
	// backward adds gradients of the shards from one on, of each n of all.
	backward := func(dev device.Device, r *tensor.Reducer, params []*tensor.Param, step, from, n int) {
		var losses []*tensor.Tensor
		for i := range n {
			r.Shard(i, func() {
				loss := tensor.On(dev).Zeros(1)
				for _, j := range used[step] {
					x := tensor.On(dev).Full(float64(1+step+7*(from+i)+j)/10, sizes[j])
					loss = loss.Add(params[j].Value().Mul(x).Sin().Sum().Reshape(1))
				}
				losses = append(losses, loss)
			})
		}
		tensor.Concat(0, losses...).Sum().Backward()
	}
	var want [steps][count][]float32
	alone := newParams(device.CPU())
	r := tensor.NewReducer(ranks*shards, bucket, alone)
	for s := range steps {
		backward(device.CPU(), r, alone, s, 0, ranks*shards)
		for _, j := range used[s] {
			want[s][j] = alone[j].Grad().Float32s()
			alone[j].Set(alone[j].Value().Detach().AddScaled(alone[j].Grad(), 0.1))
			alone[j].ZeroGrad()
		}
		r.InStep()
	}
	for _, grads := range []bool{false, true} {
		onRanks(t, ranks, seed|1, func(job *wire.Job, own device.Device) {
			params := newParams(own)
			r := tensor.NewReducerOver(job, shards, bucket, params)
			r.Own(grads)
			for s := range steps {
				backward(own, r, params, s, shards*job.Rank(), shards)
				var cells []tensor.Cell
				for _, p := range params {
					cells = append(cells, p)
				}
				before := tensor.Snapshot(cells...)
				for _, p := range params {
					p.ZeroGrad()
					if p.HasGrad() {
						t.Errorf("seed %d: a gradient after ZeroGrad", seed)
					}
				}
				before.Restore()
				for j, p := range params {
					o, isUsed := p.Owner(), slices.Contains(used[s], j)
					g := p.Grad()
					switch isHere := isUsed && !(grads && o.IsElsewhere()); {
					case isUsed != p.HasGrad() || isUsed && (o.Job != job || o.Grads != grads) || isHere != (g != nil):
						t.Errorf("seed %d, step %d: parameter %d: owner %d of %v, a gradient %t, here %t", seed, s, j, o.Rank, o.Job, p.HasGrad(), g != nil)
					case isHere && !slices.Equal(g.Float32s(), want[s][j]):
						t.Errorf("seed %d, step %d: gradient %d differs", seed, s, j)
					}
					if isUsed && !o.IsElsewhere() {
						p.Set(p.Value().Detach().AddScaled(g, 0.1))
					}
				}
				set := tensor.Renew(params...)
				set()
				for _, p := range params {
					p.ZeroGrad()
				}
				r.InStep()
			}
			for j, p := range params {
				if !slices.Equal(p.Value().Float32s(), alone[j].Value().Float32s()) {
					t.Errorf("seed %d, owners of gradients %t: rank %d: parameter %d differs", seed, grads, job.Rank(), j)
				}
			}
		})
	}
}

// What one rank sends to another arrives, on the device that is wanted.
func TestSendOver(t *testing.T) {
	onRanks(t, 3, 1, func(job *wire.Job, dev device.Device) {
		x := tensor.On(dev).Arange(0, 6, 1).Reshape(2, 3).AddScalar(float64(job.Rank()))
		next, before := (job.Rank()+1)%3, (job.Rank()+2)%3
		tensor.SendOver(job, next, x.T()) // with strides
		on := sims[dev][0]
		got, want := tensor.ReceiveOver(job, before, on, tensor.Float32, 3, 2), x.T().AddScalar(float64(before-job.Rank()))
		if got.Device() != on || !slices.Equal(got.Float32s(), want.Float32s()) {
			t.Errorf("rank %d: %v, want %v", job.Rank(), got, want)
		}
	})
}
