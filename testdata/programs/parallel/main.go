// Command parallel trains a perceptron on one, two and four simulated accelerators, and shows that their number decides on
// nothing but time.
//
// A batch is cut into eight shards whatever the devices are, and so the losses and the weights have the same bits on any. The gradients of a layer
// travel around the ring of devices while those of the layers before it are computed. How long a step takes is what the simulator's model
// says, in virtual time: it does not depend on the machine, and nobody waits for it.
//
// With -on it trains on devices that there are instead, the first, the first two, and so on, by the clock of the system. What they have printed is
// to be compared with each other, and not with what others print: a GPU may round exponentials otherwise.
//
// With -ranks it trains on the first device of each rank of a job, instead of on one device, which gives the same bits
// again. Rank 0 trains on two and four devices by itself, and prints. A program that no launcher has started is a job of
// one rank. The number of ranks divides eight.
//
// Results go to standard output, times to standard error.
//
//	go run ./testdata/programs/parallel [-small | -fast] [-steps N] [-batch N] [-on cpu,sim:0] [-ranks]
//	mpiexec -n 4 parallel -ranks
package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/sim"
	"github.com/asyncgen/asyncgen/device/wire"
	asyncrt "github.com/asyncgen/asyncgen/runtime"
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// A config is the size of the experiment.
type config struct {
	inputs, width, layers int
	batchSize, steps      int
	bucket                int // bytes of gradients that travel together
	accelerator           sim.Options
}

func main() {
	small := flag.Bool("small", false, "a model that is trained in a moment, and slower accelerators")
	fast := flag.Bool("fast", false, "accelerators with ten times the arithmetic and five times the memory bandwidth, and links no faster")
	steps := flag.Int("steps", 4, "how many steps to train")
	batch := flag.Int("batch", 0, "how many samples a batch has; 0: 4096, or 1024 with -small")
	on := flag.String("on", "", "train on these devices, separated by commas")
	ranks := flag.Bool("ranks", false, "train over the ranks of a job, which mpiexec starts, instead of on one device")
	flag.Parse()
	if *steps < 1 {
		fmt.Fprintln(os.Stderr, "parallel: -steps must be positive")
		os.Exit(2)
	}
	c := config{inputs: 512, width: 1024, layers: 6, batchSize: 4096, steps: *steps, accelerator: sim.VirtualDefaults()}
	if !*fast {
		c.accelerator.Flops, c.accelerator.Memory = 1e12, 200e9
	}
	if *small {
		c.inputs, c.width, c.layers, c.batchSize, c.bucket = 64, 128, 4, 1024, 32<<10
		c.accelerator.Flops, c.accelerator.Memory = 2e9, 5e9
	}
	if *batch > 0 {
		c.batchSize = *batch
	}
	devices, clock := simulated(c.accelerator), sim.Now
	if *on != "" {
		devices, clock = open(*on), systemClock()
	}
	if *ranks {
		mainOverRanks(c, devices, clock) // does not return
	}
	runs := trainings(c, devices, clock)
	report(runs[0], runs[1:])
}

// trainings trains on the first device, the first two, and so on, and prints how long that takes.
func trainings(c config, devices []device.Device, clock func() time.Duration) (runs []run) {
	fmt.Fprintf(os.Stderr, "%s\n\ndevices   a step   speed-up\n", devices[0].Caps().Description)
	for n := 1; n <= len(devices); n *= 2 {
		r := train(c, nil, devices[:n], clock)
		runs = append(runs, r)
		speedUp := runs[0].step.Seconds() / r.step.Seconds()
		fmt.Fprintf(os.Stderr, "%4d %11.3f ms %6.2f, %.1f %%\n", n, r.step.Seconds()*1e3, speedUp, 100*speedUp/float64(n))
	}
	return runs
}

// report prints the losses of a training, and whether trainings on two devices, four, and so on have given the same.
func report(first run, others []run) {
	for i, l := range first.losses {
		fmt.Printf("step %d loss %.6f\n", i, l)
	}
	for i, r := range others {
		fmt.Printf("%d devices: losses equal: %t, weights equal: %t\n", 2<<i, slices.Equal(r.losses, first.losses), slices.Equal(r.weights, first.weights))
	}
}

// systemClock returns a clock that begins now.
func systemClock() func() time.Duration {
	begin := time.Now()
	return func() time.Duration { return time.Since(begin) }
}

// simulated returns four accelerators.
func simulated(o sim.Options) []device.Device {
	devices := make([]device.Device, 4)
	for i := range devices {
		devices[i] = device.Wrap(fmt.Sprintf("sim:%d", i), device.KindSimulated, sim.New(o))
	}
	return devices
}

// open returns the devices in a list.
func open(list string) []device.Device {
	var devices []device.Device
	for _, name := range strings.Split(list, ",") {
		d, err := device.Open(name)
		if err != nil {
			fmt.Fprintln(os.Stderr, "parallel:", err)
			os.Exit(2)
		}
		devices = append(devices, d)
	}
	return devices
}

// A run is what a training has given.
type run struct {
	losses  []float32
	weights []float32
	step    time.Duration
}

// train trains a new model on devices, with the other ranks of a job unless that is nil. The time leaves out the first
// step, in which the weights are drawn and copied. Other ranks than 0 return nothing: they have the same.
func train(c config, job *wire.Job, devices []device.Device, clock func() time.Duration) run {
	tensor.Seed(1)
	var layers []nn.Module
	for range c.layers {
		layers = append(layers, nn.Dense(c.width), nn.ReLU())
	}
	model := nn.Sequential(append(layers, nn.Dense(1))...)
	net := nn.DataParallel(model, nn.Parallel{Devices: devices, Bucket: c.bucket, Job: job})
	opt := optim.SGD(net.Params(), 0.01)

	losses := []*tensor.Tensor{step(c, job, net, opt)}
	asyncrt.WaitAll()
	start := clock()
	for range c.steps {
		losses = append(losses, step(c, job, net, opt))
	}
	asyncrt.WaitAll()
	took := clock() - start
	if job != nil && job.Rank() > 0 {
		return run{} // rank 0 prints
	}

	var weights []*tensor.Tensor
	for _, p := range model.Params() {
		weights = append(weights, p.Value().Flatten())
	}
	allLosses, allWeights := tensor.Stack(0, losses...), tensor.Concat(0, weights...).To(device.CPU())
	asyncrt.WaitAll()
	return run{allLosses.Float32s(), allWeights.Float32s(), took / time.Duration(c.steps)}
}

// step trains net with one batch, which is drawn on the CPU, and returns the loss. All ranks of a job draw the same
// batch.
func step(c config, job *wire.Job, net *nn.Replicas, opt *optim.Optimizer) *tensor.Tensor {
	host := tensor.On(device.CPU())
	x, y := host.Randn(c.batchSize, c.inputs), host.Ones(c.batchSize, 1)
	loss := net.Loss(nn.MSELoss, part(job, x), part(job, y))
	opt.Minimize(loss)
	return loss.Detach()
}

// part returns the part of a batch that this rank of a job computes: all of it, if job is nil.
func part(job *wire.Job, batch *tensor.Tensor) *tensor.Tensor {
	if job == nil {
		return batch
	}
	rows := batch.Dim(0)
	return batch.Slice(0, job.Rank()*rows/job.Size(), (job.Rank()+1)*rows/job.Size())
}
