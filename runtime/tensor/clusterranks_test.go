package tensor_test

import (
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/cpu"
	"github.com/asyncgen/asyncgen/device/sim"
	"github.com/asyncgen/asyncgen/device/wire"
	"github.com/asyncgen/asyncgen/device/wire/wiretest"
	"github.com/asyncgen/asyncgen/internal/turns"
	asyncrt "github.com/asyncgen/asyncgen/runtime"
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// A simulatedJob is the machines of a Cluster, each as a rank of a job in this process, with simulated GPUs. Messages
// take the time that the Cluster says. To enqueue takes none, as ranks have one clock together.
type simulatedJob struct {
	t    *testing.T
	jobs []*wire.Job
	gpus [][]device.Device
}

func newSimulatedJob(t *testing.T, c tensor.Cluster) *simulatedJob {
	w := wiretest.New(c.Machines)
	w.Model(c.Network, time.Duration(c.Message*float64(time.Second)))
	j := &simulatedJob{t, make([]*wire.Job, c.Machines), make([][]device.Device, c.Machines)}
	hosts := map[device.Device]device.Device{}
	for rank := range j.gpus {
		host := device.Wrap("cpu", device.KindCPU, cpu.New())
		for i := range c.GPUs {
			gpu := device.Wrap(fmt.Sprintf("sim:%d", i), device.KindSimulated, sim.New(c.GPU))
			j.gpus[rank] = append(j.gpus[rank], gpu)
			hosts[gpu] = host
		}
	}
	tensor.SetHosts(t, hosts)
	j.each(func(rank int) {
		var err error
		if j.jobs[rank], err = wire.NewJob(w.Rank(rank), wire.Options{Program: "test", Timeout: -1}); err != nil {
			t.Error(err)
		}
	})
	if t.Failed() {
		t.FailNow()
	}
	return j
}

// each runs f on all ranks, which enqueue without a wait.
func (j *simulatedJob) each(f func(rank int)) {
	var wg sync.WaitGroup
	for rank := range j.jobs {
		wg.Go(func() { f(rank) })
	}
	wg.Wait()
}

// finish waits for all that ranks have enqueued. It returns the time by the clock of the simulator, in seconds.
func (j *simulatedJob) finish() float64 {
	if err := asyncrt.WaitAll(); err != nil {
		j.t.Error(err)
	}
	return sim.Now().Seconds()
}

// allReduce is simulatedAllReduce over ranks.
func (j *simulatedJob) allReduce(size int) float64 {
	terms := make([][]*tensor.Tensor, len(j.jobs))
	j.each(func(rank int) {
		for _, d := range j.gpus[rank] {
			terms[rank] = append(terms[rank], tensor.On(d).Ones(size))
		}
	})
	begin := j.finish()
	j.each(func(rank int) { tensor.Dead(tensor.AllReduceOver(j.jobs[rank], terms[rank]...)...) })
	return j.finish() - begin - sim.VirtualDefaults().Latency.Seconds()
}

// step is simulatedStep over ranks.
func (j *simulatedJob) step(rows int, widths []int) float64 {
	nets, opts := make([]*nn.Replicas, len(j.jobs)), make([]*optim.Optimizer, len(j.jobs))
	gpus := len(j.gpus[0])
	var layers []nn.Module
	for _, width := range widths[1:] {
		layers = append(layers, nn.Dense(width), nn.ReLU())
	}
	net := nn.Sequential(layers[:len(layers)-1]...)
	net.Forward(tensor.Ones(1, widths[0])) // draws weights: ranks would all draw from the one generator of the process
	j.each(func(rank int) {
		how := nn.Parallel{Devices: j.gpus[rank], Shards: gpus * len(j.jobs), Job: j.jobs[rank]}
		nets[rank] = nn.DataParallel(nn.Clone(net), how)
		opts[rank] = optim.SGD(nets[rank].Params(), 0.01)
	})
	xs, ys := make([]*tensor.Tensor, len(j.jobs)), make([]*tensor.Tensor, len(j.jobs))
	for rank := range j.jobs {
		gpu := tensor.On(j.gpus[rank][0])
		xs[rank], ys[rank] = gpu.Ones(rows*gpus, widths[0]), gpu.Zeros(rows*gpus, 1)
	}
	run := func(steps int) float64 {
		begin := j.finish()
		for range steps {
			j.each(func(rank int) { opts[rank].Minimize(nets[rank].Loss(nn.MSELoss, xs[rank], ys[rank])) })
		}
		return j.finish() - begin
	}
	run(1)
	return (run(4) - run(2)) / 2
}

// On several machines, a Cluster has the times of the simulator.
func TestClusterOverRanks(t *testing.T) {
	if testing.Short() {
		t.Skip("for minutes, it computes on kernels with the race detector")
	}
	o := sim.VirtualDefaults()
	o.Host = 0
	cluster := func(machines, gpus int) tensor.Cluster {
		return tensor.Cluster{GPU: o, Machines: machines, GPUs: gpus, Network: 25e9, Message: 5e-6}
	}
	step := func(t *testing.T, c tensor.Cluster, j *simulatedJob, rows int, widths ...int) {
		what, model := fmt.Sprintf("step of %d with %d rows", widths, rows), c.StepTime(perceptron(rows, widths...))
		simulated := j.step(rows, widths)
		checkTime(t, what, simulated, model)
		c.Machines = 1
		t.Logf("%s: %.1f %% of the speed of GPUs that send nothing", what, 100*c.StepTime(perceptron(rows, widths...))/simulated)
	}
	if *machines != "few" { // they compute: half a minute, and an hour with the race detector
		for _, n := range []int{2, 4} {
			t.Run(fmt.Sprintf("%d machines, mlp", n), func(t *testing.T) {
				c := cluster(n, 1)
				step(t, c, newSimulatedJob(t, c), 1024, 512, 2048, 512, 1)
			})
		}
	}
	o.Flops, o.Memory = 1e12, 200e9 // as in TestClusterIsSimulated
	for _, n := range [][2]int{{2, 1}, {2, 2}, {4, 1}} {
		name := fmt.Sprintf("%d machines of %d GPUs", n[0], n[1])
		if *machines == "few" && !turns.Has(t, name) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			c := cluster(n[0], n[1])
			j := newSimulatedJob(t, c)
			for _, bytes := range []int{1 << 10, 1 << 20, 16 << 20} {
				checkTime(t, fmt.Sprintf("all-reduce of %d bytes", bytes), j.allReduce(bytes/4), c.AllReduceTime(float64(bytes)))
			}
			for _, widths := range [][]int{{64, 1024, 1024, 1}, {512, 512, 512, 512, 512, 512, 1}} {
				step(t, c, j, 16, widths...)
				if *machines != "few" { // GPUs still compute when the first sums are over
					step(t, c, j, 256, widths...)
				}
			}
		})
	}
}

// checkTime fails the test if a time by the model, in seconds, differs by more than 5 % from that by the simulator.
func checkTime(t *testing.T, what string, simulated, model float64) {
	t.Helper()
	t.Logf("%s: %.1f µs by the simulator, %.1f by the model", what, 1e6*simulated, 1e6*model)
	if !(math.Abs(model/simulated-1) <= 0.05) {
		t.Errorf("%s: %.1f µs by the simulator, %.1f by the model: want 5 %% at most between them", what, 1e6*simulated, 1e6*model)
	}
}
