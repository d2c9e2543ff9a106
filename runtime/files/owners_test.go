package files_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/cpu"
	"github.com/asyncgen/asyncgen/device/wire"
	"github.com/asyncgen/asyncgen/device/wire/wiretest"
	asyncrt "github.com/asyncgen/asyncgen/runtime"
	"github.com/asyncgen/asyncgen/runtime/files"
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// A sharded is training in which ranks share what the optimiser remembers.
type sharded struct {
	dir   string
	ranks int
	zero  int
	steps int
	kill  bool // rank 1 dies after the checkpoint of step 3
}

// run goes on from the last checkpoint, saves one after the third step, and returns the weights of all ranks.
func (s sharded) run(t *testing.T) (weights [][]float32) {
	w := wiretest.New(s.ranks)
	weights = make([][]float32, s.ranks)
	models := make([]nn.Module, s.ranks)
	for i := range models {
		tensor.Seed(5)
		models[i] = nn.Sequential(nn.Dense(30), nn.ReLU(), nn.Dense(20), nn.ReLU(), nn.Dense(3))
		models[i].Forward(tensor.Ones(1, 10))
	}
	var wg, read sync.WaitGroup
	read.Add(s.ranks)
	var mu sync.Mutex
	holders := map[string]int{} // guarded by mu
	for i := range s.ranks {
		wg.Go(func() {
			job, err := wire.NewJob(w.Rank(i), wire.Options{Program: "test"})
			if err != nil {
				t.Error(err)
				return
			}
			defer job.Close()
			dev := device.Wrap("cpu", device.KindCPU, cpu.New())
			net := nn.DataParallel(models[i], nn.Parallel{Job: job, Devices: []device.Device{dev}, Bucket: 600, Zero: s.zero})
			opt := optim.Adam(net.Params(), 0.01)
			run := files.NewCheckpoints(s.dir, files.Parts{"model": net, "optimizer": opt})
			step, err := run.Resume()
			if err != nil {
				t.Error(err)
			}
			read.Done()
			read.Wait() // none has saved
			for ; step < s.steps; step++ {
				if step == 3 {
					opt.Gather()
					if job.Rank() == 0 {
						if err := run.Save(step); err != nil {
							t.Error(err)
						}
						if s.kill {
							w.Kill(1, 7)
						}
					}
				}
				g := tensor.NewGenerator(uint64(step))
				x, y := g.Randn(16, 10), g.Randn(16, 3)
				from, to := i*16/s.ranks, (i+1)*16/s.ranks
				opt.Minimize(net.Loss(nn.MSELoss, x.Slice(0, from, to).To(dev), y.Slice(0, from, to).To(dev)))
			}
			mu.Lock()
			for name, c := range opt.State() {
				if b, ok := c.(*nn.Buffer); ok && b.IsSet() {
					holders[name]++
				}
			}
			mu.Unlock()
			for _, p := range net.Params() {
				v := p.Value()
				if err := v.Wait(); err == nil {
					weights[i] = append(weights[i], v.Float32s()...)
				} else if !s.kill {
					t.Error(err)
				}
			}
			for peer := range s.ranks {
				if peer != i {
					asyncrt.Synchronize(job.To(peer)) // what has failed, f has seen
					asyncrt.Synchronize(job.From(peer))
				}
			}
		})
	}
	wg.Wait()
	for name, n := range holders {
		if s.zero > 0 && n != 1 && !s.kill {
			t.Errorf("stage %d: %d of %d ranks hold %s", s.zero, n, s.ranks, name)
		}
	}
	return weights
}

// file returns the bytes of the checkpoint of step 3.
func (s sharded) file(t *testing.T) []byte {
	b, err := os.ReadFile(filepath.Join(s.dir, "step-0000000003.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// A checkpoint of ranks that share the state of an optimiser is the file of one process. After a rank has died, any
// number of ranks goes on from it, at any stage, with the bits of a run that nothing has happened to.
func TestShardedCheckpoint(t *testing.T) {
	alone := sharded{dir: t.TempDir(), ranks: 1, steps: 6}
	want := alone.run(t)[0]
	for zero := range 3 {
		for _, ranks := range []int{2, 4} {
			s := sharded{dir: t.TempDir(), ranks: ranks, zero: zero, steps: 6, kill: true}
			s.run(t)
			if !bytes.Equal(s.file(t), alone.file(t)) {
				t.Errorf("stage %d: the checkpoint of %d ranks differs from that of one", zero, ranks)
			}
			for _, again := range []sharded{{ranks: 1}, {ranks: 2, zero: 2}, {ranks: 4, zero: 1}} {
				again.dir, again.steps = s.dir, 6
				for rank, got := range again.run(t) {
					if !slices.Equal(got, want) {
						t.Errorf("stage %d on %d ranks, then %d on %d: rank %d has other weights", zero, ranks, again.zero, again.ranks, rank)
					}
				}
			}
		}
	}
}

// Rank 0 can't save what it doesn't have.
func TestShardedCheckpointWithoutGather(t *testing.T) {
	for zero, want := range []string{"", "all ranks call Gather", "all ranks call Gather"} {
		got := ""
		w := wiretest.New(2)
		var wg sync.WaitGroup
		for i := range 2 {
			wg.Go(func() {
				job, err := wire.NewJob(w.Rank(i), wire.Options{Program: "test"})
				if err != nil {
					t.Error(err)
					return
				}
				dev := device.Wrap("cpu", device.KindCPU, cpu.New())
				p := nn.NewParam(tensor.On(dev).Ones(200))
				q := nn.NewParam(tensor.On(dev).Ones(200))
				net := nn.DataParallel(pair{p, q}, nn.Parallel{Job: job, Devices: []device.Device{dev}, Bucket: 100, Zero: zero})
				opt := optim.Adam(net.Params(), 0.1)
				opt.Minimize(net.Loss(nn.MSELoss, tensor.On(dev).Ones(4, 200), tensor.On(dev).Zeros(4, 200)))
				if i == 0 {
					func() {
						defer func() {
							if r := recover(); r != nil {
								got = fmt.Sprint(r)
							}
						}()
						if err := files.NewCheckpoints(t.TempDir(), files.Parts{"optimizer": opt}).Save(1); err != nil {
							t.Error(err)
						}
					}()
				}
				asyncrt.Synchronize(job.To(1 - i))
				asyncrt.Synchronize(job.From(1 - i))
				job.Close()
			})
		}
		wg.Wait()
		if !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("stage %d: %q, want %q", zero, got, want)
		}
	}
}

// pair is a module of two weights.
type pair struct{ P, Q *nn.Param }

func (m pair) Forward(x *tensor.Tensor) *tensor.Tensor { return x.Mul(m.P.Value()).Mul(m.Q.Value()) }
func (m pair) Params() []*nn.Param                     { return nn.Params(m) }
