// Command mlp trains a perceptron with two hidden layers, and shows what
// running ahead does to time and memory.
//
// It trains the same model on the same data three times: reading the loss of
// every batch; reading the losses when all batches are under way, with no
// bound on how much may be; and the same with a bound in bytes. The losses
// have to be equal. Without a read or a bound, the batches pile up, because
// the program makes them faster than the device can use them. With -capture, the
// two trainings that don't read repeat a step that is recorded once.
//
// The full size is for fast backends: 512-2048-512-1 on batches of 1024, about
// 10 GFLOP each.
//
// Results go to standard output, times and memory to standard error.
//
//	go run ./testdata/programs/mlp [-small] [-capture] [-batches N]
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"time"

	asyncrt "github.com/asyncgen/asyncgen/runtime"
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// A config is the size of the experiment.
type config struct {
	inputs    int
	hidden    [2]int
	batchSize int
	batches   int
	bound     int64 // bytes that may be in flight in the last run
}

func main() {
	small := flag.Bool("small", false, "a model and batches that slow backends train in a moment")
	batches := flag.Int("batches", 100, "how many batches to train on")
	capture := flag.Bool("capture", false, "capture the step of the trainings that don't read in between")
	flag.Parse()
	if *batches < 1 {
		fmt.Fprintln(os.Stderr, "mlp: -batches must be positive")
		os.Exit(2)
	}
	c := config{inputs: 512, hidden: [2]int{2048, 512}, batchSize: 1024, batches: *batches, bound: 64 << 20}
	if *small {
		c = config{inputs: 64, hidden: [2]int{128, 32}, batchSize: 128, batches: *batches, bound: 1 << 20}
	}
	queueing := trainQueueing
	if *capture {
		queueing = trainCaptured
	}

	var losses [3][]float64
	losses[0] = measure("a read per batch", c, 0, trainReading)
	losses[1] = measure("no read, no bound", c, 0, queueing)
	losses[2] = measure("no read, bounded", c, c.bound, queueing)
	for i, l := range losses[0] {
		if i%10 == 0 || i == len(losses[0])-1 {
			fmt.Printf("batch %3d loss %.6f\n", i, l)
		}
	}
	fmt.Println("losses equal:", slices.Equal(losses[0], losses[1]) && slices.Equal(losses[0], losses[2]))
}

// measure trains a new model by train, with at most limit bytes in flight (0:
// no bound), and prints what a batch took and by how much memory grew.
func measure(name string, c config, limit int64, train func(config, nn.Module, *optim.Optimizer) []float64) []float64 {
	asyncrt.SetLimit(limit)
	tensor.Seed(1)
	net := nn.Sequential(
		nn.Dense(c.hidden[0]), nn.ReLU(),
		nn.Dense(c.hidden[1]), nn.ReLU(),
		nn.Dense(1),
	)
	x, y := nextBatch(c)
	l2Loss(net.Forward(x), y).Wait() // the first use finds the input width and makes the weights

	stop := watchMemory()
	start := time.Now()
	losses := train(c, net, optim.SGD(net.Params(), 0.005))
	asyncrt.WaitAll()
	elapsed := time.Since(start)
	grown := stop()
	fmt.Fprintf(os.Stderr, "%-18s %9.3f ms a batch, memory grew by %6.1f MB at most, in flight were %6.1f MB at most\n",
		name+":", elapsed.Seconds()*1e3/float64(c.batches), float64(grown.process)/1e6, float64(grown.inFlight)/1e6)
	return losses
}

// nextBatch draws a batch of inputs, and the answers.
func nextBatch(c config) (x, y *tensor.Tensor) {
	return tensor.Randn(c.batchSize, c.inputs), tensor.Ones(c.batchSize, 1)
}

// l2Loss is half the mean of the squared differences.
func l2Loss(pred, target *tensor.Tensor) *tensor.Tensor {
	return nn.MSELoss(pred, target).MulScalar(0.5)
}

// trainReading reads every loss as soon as it has asked for it.
func trainReading(c config, net nn.Module, opt *optim.Optimizer) []float64 {
	var losses []float64
	for range c.batches {
		x, y := nextBatch(c)
		loss := l2Loss(net.Forward(x), y)
		losses = append(losses, loss.Item())
		opt.Minimize(loss)
	}
	return losses
}

// trainQueueing keeps the losses as tensors, and reads them at the end.
func trainQueueing(c config, net nn.Module, opt *optim.Optimizer) []float64 {
	var pending []*tensor.Tensor
	for range c.batches {
		x, y := nextBatch(c)
		loss := l2Loss(net.Forward(x), y)
		opt.Minimize(loss)
		pending = append(pending, loss.Detach())
	}
	return readAll(pending)
}

// trainCaptured is trainQueueing with a step that is recorded once and then repeated as a whole.
func trainCaptured(c config, net nn.Module, opt *optim.Optimizer) []float64 {
	step := asyncrt.Capture(func(in ...*tensor.Tensor) []*tensor.Tensor {
		loss := l2Loss(net.Forward(in[0]), in[1])
		opt.Minimize(loss)
		return []*tensor.Tensor{loss}
	})
	var pending []*tensor.Tensor
	for range c.batches {
		pending = append(pending, step.Run(nextBatch(c))[0])
	}
	return readAll(pending)
}

// readAll returns the values of tensors with one element each.
func readAll(pending []*tensor.Tensor) []float64 {
	losses := make([]float64, len(pending))
	for i, v := range tensor.Stack(0, pending...).Float32s() {
		losses[i] = float64(v)
	}
	return losses
}

// A memory is an amount of memory, in bytes.
type memory struct {
	process  int64 // taken from the system for the Go heap and not returned, and results that are not collected
	inFlight int64 // of it, results of operations that have not finished
}

// watchMemory samples what the process uses until the function that it returns
// is called, which answers by how much it grew at most.
func watchMemory() (stop func() memory) {
	debug.FreeOSMemory()
	before := memoryInUse()
	done, peak := make(chan struct{}), make(chan memory)
	go func() {
		most := before
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for running := true; running; {
			select {
			case <-tick.C:
			case <-done:
				running = false
			}
			now := memoryInUse()
			most.process = max(most.process, now.process)
			most.inFlight = max(most.inFlight, now.inFlight)
		}
		peak <- memory{most.process - before.process, most.inFlight}
	}()
	return func() memory {
		close(done)
		return <-peak
	}
}

func memoryInUse() memory {
	s := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(s)
	stats := asyncrt.Stats()
	m := memory{
		process:  int64(s[0].Value.Uint64() - s[1].Value.Uint64()),
		inFlight: stats.InFlightBytes,
	}
	for _, d := range stats.Memory {
		m.process += d.Live
	}
	return m
}
