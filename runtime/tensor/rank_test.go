package tensor_test

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
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// onRanks runs f on n goroutines, each as a rank of a job. Messages arrive in an order that depends on seed. A
// rank computes on processors of its own, which are the host of its sims: on a device that ranks share, operations
// would not be in the order of one program.
func onRanks(t *testing.T, n int, seed uint64, f func(job *wire.Job, own device.Device)) {
	t.Helper()
	e, done := ownEngine()
	defer done()
	w := wiretest.New(n)
	if seed > 0 {
		w.Shuffle(seed)
	}
	owns, hosts := make([]device.Device, n), map[device.Device]device.Device{}
	sims = map[device.Device][]device.Device{}
	for i := range owns {
		owns[i] = device.Wrap("cpu", device.KindCPU, cpu.New())
		sims[owns[i]] = simulated(2)
		for _, dev := range sims[owns[i]] {
			hosts[dev] = owns[i]
		}
	}
	tensor.SetHosts(t, hosts)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			job, err := wire.NewJob(w.Rank(i), wire.Options{Program: "test"})
			if err != nil {
				t.Error(err)
				return
			}
			f(job, owns[i])
			for peer := range n {
				if peer != i {
					e.Synchronize(t.Context(), job.To(peer)) // what has failed, f has seen
					e.Synchronize(t.Context(), job.From(peer))
				}
			}
			if err := job.Close(); err != nil {
				t.Errorf("rank %d: %v", i, err)
			}
		})
	}
	wg.Wait()
}

// sims has two simulated devices of each rank of onRanks, by its own device.
var sims map[device.Device][]device.Device

// A sum has the same bits on any number of ranks, with any number of devices each; it is that of AllReduce.
func TestAllReduceOverBits(t *testing.T) {
	const terms = 8
	for _, size := range []int{0, 1, 1000, 8 << 10, 2<<20 + 4096} {
		var ts []*tensor.Tensor
		g := tensor.NewGenerator(uint64(size))
		for range terms {
			ts = append(ts, g.Randn(size))
		}
		want := tensor.AllReduce(ts...)[0].Float32s()
		for _, ranks := range []int{1, 2, 4, 8} {
			for _, kind := range []string{"cpu", "sim", "sim, sim", "sim, cpu"} { // one term on each: hosts add
				devices := strings.Count(kind, ",") + 1
				if size > 1<<20 && (ranks == 1 || devices == 1 && kind == "cpu" || testing.Short()) || devices > terms/ranks {
					continue
				}
				if !turns.Has(t, fmt.Sprint(size, ranks, kind)) {
					continue
				}
				onRanks(t, ranks, uint64(size), func(job *wire.Job, own device.Device) {
					devs := []device.Device{own}
					switch kind {
					case "sim", "sim, sim":
						devs = sims[own][:devices]
					case "sim, cpu":
						devs = []device.Device{sims[own][0], own}
					}
					per := terms / ranks
					var mine []*tensor.Tensor
					for i := range per {
						mine = append(mine, ts[job.Rank()*per+i].To(devs[i*devices/per]))
					}
					for i, sum := range tensor.AllReduceOver(job, mine...) {
						if sum.Device() != devs[i*devices/per] || !slices.Equal(sum.Float32s(), want) {
							t.Errorf("%d elements, rank %d of %d, %s: result %d differs", size, job.Rank(), ranks, kind, i)
						}
					}
				})
			}
		}
	}
}

// All ranks get what each has, and what one has.
func TestGatherAndBroadcastOver(t *testing.T) {
	for n := 1; n <= 7; n++ {
		onRanks(t, n, uint64(n), func(job *wire.Job, dev device.Device) {
			if job.Rank()%2 == 1 {
				dev = sims[dev][0]
			}
			mine := tensor.On(dev).Arange(0, 6, 1).Reshape(2, 3).T().AddScalar(10 * float64(job.Rank())) // with strides
			for rank, got := range tensor.AllGatherOver(job, mine) {
				if want := mine.AddScalar(10 * float64(rank-job.Rank())); got.Device() != dev || got.Shape().String() != "[3 2]" || !slices.Equal(got.Float32s(), want.Float32s()) {
					t.Errorf("%d ranks: of rank %d: %v, want %v", n, rank, got, want)
				}
			}
			for root := range n {
				got, want := tensor.BroadcastOver(job, root, mine.T()), mine.T().AddScalar(10*float64(root-job.Rank()))
				if got.Device() != dev || got.Shape().String() != "[2 3]" || !slices.Equal(got.Float32s(), want.Float32s()) {
					t.Errorf("%d ranks: from %d: %v, want %v", n, root, got, want)
				}
			}
		})
	}
}

// What fails on one rank fails on all, with an error that has a line; the job goes on.
func TestAllReduceOverFails(t *testing.T) {
	t.Run("cpu", func(t *testing.T) { testAllReduceOverFails(t, false) })
	t.Run("sim", func(t *testing.T) { testAllReduceOverFails(t, true) })
}

func testAllReduceOverFails(t *testing.T, isSimulated bool) {
	onRanks(t, 3, 1, func(job *wire.Job, own device.Device) {
		if isSimulated {
			own = sims[own][0]
		}
		x := tensor.FromOn(own, []int64{1, 2})
		bad := x
		if job.Rank() == 1 {
			bad = x.Div(tensor.FromOn(own, []int64{0, 1}))
		}
		failed, good := tensor.AllReduceOver(job, bad)[0], tensor.AllReduceOver(job, x)[0]
		want := fmt.Sprintf("rank %d could not send it: an operation has failed there, or before", (job.Rank()+2)%3)
		if err := failed.Wait(); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "rank_test.go") {
			t.Errorf("rank %d: %v, want %s", job.Rank(), err, want)
		}
		if got := good.Int64s(); !slices.Equal(got, []int64{3, 6}) {
			t.Errorf("rank %d: then %v", job.Rank(), got)
		}
	})
}

// Ranks that do not ask for the same are told so.
func TestRanksDisagree(t *testing.T) {
	for name, f := range map[string]func(job *wire.Job) *tensor.Tensor{
		"shape": func(job *wire.Job) *tensor.Tensor {
			return tensor.AllReduceOver(job, tensor.Ones(2+job.Rank()))[0]
		},
		"type": func(job *wire.Job) *tensor.Tensor {
			return tensor.AllReduceOver(job, tensor.Ones(2).As([]device.DType{tensor.Int64, tensor.Float64}[job.Rank()]))[0]
		},
		"operation": func(job *wire.Job) *tensor.Tensor {
			if job.Rank() == 0 {
				return tensor.BroadcastOver(job, 0, tensor.Ones(2))
			}
			return tensor.AllReduceOver(job, tensor.Ones(2))[0]
		},
	} {
		w := wiretest.New(2)
		var wg sync.WaitGroup
		errs := make([]error, 2)
		e, done := ownEngine()
		for i := range 2 {
			wg.Go(func() {
				job, err := wire.NewJob(w.Rank(i), wire.Options{Program: "test"})
				if err != nil {
					t.Error(err)
					return
				}
				f(job).Wait()
				e.Synchronize(t.Context(), job.To(1-i))
				e.Synchronize(t.Context(), job.From(1-i))
				job.Close()
				errs[i] = job.Err()
			})
		}
		wg.Wait()
		done()
		if err := errors.Join(errs...); !errors.Is(err, device.ErrLost) || name != "shape" && !strings.Contains(err.Error(), "do not do the same") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestRankMistakes(t *testing.T) {
	onRanks(t, 1, 0, func(job *wire.Job, _ device.Device) {
		x := tensor.Ones(2)
		for want, f := range map[string]func(){
			"tensor: AllReduceOver: gradients do not go from one rank to another": func() { tensor.AllReduceOver(job, x.Track()) },
			"tensor: AllGatherOver: gradients do not go from one rank to another": func() { tensor.AllGatherOver(job, x.Track()) },
			"tensor: BroadcastOver: gradients do not go from one rank to another": func() { tensor.BroadcastOver(job, 0, x.Track()) },
			"tensor: BroadcastOver: index out of range (there is no such rank)":   func() { tensor.BroadcastOver(job, 1, x) },
			"tensor: Backward: the loss does not depend on all shards": func() {
				p := tensor.NewParam(x)
				r := tensor.NewReducerOver(job, 2, 0, []*tensor.Param{p})
				r.Shard(0, func() { p.Value().Sum().Backward() })
			},
			"tensor: AllReduceOver: no operands": func() { tensor.AllReduceOver(job) },
		} {
			if m := mistake(f); m == nil || !strings.HasPrefix(m.Error(), want) {
				t.Errorf("got %v, want %s", m, want)
			}
		}
	})
}
