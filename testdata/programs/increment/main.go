// Command increment computes y = x + 1 many times, waiting for each result
// and waiting once at the end, and explains the two times.
//
// An operation takes t1 to enqueue, t2 to execute, and t3 until the waiting
// program sees the result. n operations with a wait after each should take
// n(t1+t2+t3). With one wait at the end, enqueueing and executing overlap, and
// they should take t1 + n*t2 + t3: but only as long as the device is the
// slower side, n*t2 > (n-1)*t1. When it is not, the device idles between
// operations and the program sets the pace, n*t1 + t2 + t3. The program
// estimates the three from experiments of their own, and puts the predictions
// beside what it measures. On the CPU the call itself computes so small a result
// of what is there: that is t1, and there is no t2 and no t3.
//
// Results go to standard output, times to standard error.
//
//	go run ./testdata/programs/increment [-small] [-device NAME,...]
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/asyncgen/asyncgen/device"
	asyncrt "github.com/asyncgen/asyncgen/runtime"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

func main() {
	small := flag.Bool("small", false, "increment 100 and 1,000 times instead of 1,000 and 10,000 times")
	names := flag.String("device", "", "where to compute: cpu, sim:0 or several (default: ASYNCGEN_DEVICE, or else cpu)")
	flag.Parse()
	counts := []int{1000, 10_000}
	if *small {
		counts = []int{100, 1000}
	}
	for _, name := range strings.Split(*names, ",") {
		dev, err := device.Open(name)
		if err != nil {
			fmt.Fprintln(os.Stderr, "increment:", err)
			os.Exit(2)
		}
		experiment(dev, counts)
	}
}

// experiment prints results, predictions and measurements for one device.
func experiment(dev device.Device, counts []int) {
	label := dev.Name()
	if dev.Kind() == device.KindSimulated {
		label += " (simulated)"
	}
	x := tensor.On(dev).Ones(1, 2)
	waitOnce(x, 1000) // the first use of a device starts it

	t := estimate(dev, x, min(3000, slices.Max(counts))) // few enough to be queued at once
	fmt.Fprintf(os.Stderr, "%s, shape %v\n", label, x.Shape())
	fmt.Fprintf(os.Stderr, "  one operation: t1 = %v to enqueue, t2 = %v to execute, t3 = %v to return\n", round(t.t1), round(t.t2), round(t.t3))
	var runs []run
	for _, n := range counts { // nothing but what is measured
		r := run{n: n}
		r.each = median(5, func() { r.y = waitEach(x, n) })
		r.once = median(5, func() { r.z = waitOnce(x, n) })
		runs = append(runs, r)
	}
	for _, r := range runs {
		fmt.Printf("%d times y = x + 1, waiting each time: %v\n", r.n, r.y)
		fmt.Printf("%d times y = x + 1, waiting once: %v\n", r.n, r.z)
		t.report(r)
	}
}

// A run is n increments done in both ways: their results, and how long that took.
type run struct {
	n          int
	y, z       *tensor.Tensor
	each, once time.Duration
}

// waitEach increments x n times and waits for every result.
func waitEach(x *tensor.Tensor, n int) *tensor.Tensor {
	var y *tensor.Tensor
	for range n {
		y = x.AddScalar(1)
		y.Wait() //asyncgen:ignore AT009 this wait is what the program measures: it has to stay in the loop
	}
	return y
}

// waitOnce increments x n times and waits at the end.
func waitOnce(x *tensor.Tensor, n int) *tensor.Tensor {
	var y *tensor.Tensor
	for range n {
		y = x.AddScalar(1)
	}
	asyncrt.WaitAll()
	return y
}

// costs are the durations of the three stages of one operation.
type costs struct{ t1, t2, t3 time.Duration }

// estimate finds the costs of y = x + 1 from bursts of that many increments.
// The calls alone, while the device works beside them, take t1 each.
// Increments of a result that takes long only have to be executed once it is
// there: that takes t2 each. What a lone increment takes beyond the two, from
// the call until Wait has returned, is t3. Where the call itself computes, the
// two are nothing.
func estimate(dev device.Device, x *tensor.Tensor, burst int) costs {
	const times = 7
	enqueue := make([]time.Duration, times)
	for i := range enqueue {
		start := time.Now()
		for range burst {
			x.AddScalar(1)
		}
		enqueue[i] = time.Since(start) / time.Duration(burst)
		asyncrt.WaitAll()
	}
	if x.AddScalar(1).Ready() {
		return costs{t1: middle(enqueue)}
	}

	// The queue is held up by a chain of products, each too small for more than
	// one processor, so that one is left for this goroutine.
	const n, links = 48, 100
	on := tensor.On(dev)
	square, left, right := on.Full(1.0/n, n, n), on.Full(1.0/n, 1, n), on.Ones(n, 2)
	var execute, tooLate []time.Duration
	for len(execute) < times && len(tooLate) < 2*times {
		chain := square
		for range links {
			chain = chain.MatMul(square)
		}
		late := left.MatMul(chain).MatMul(right) // [[1 1]], like x
		var early *tensor.Tensor
		for i := range burst {
			y := late.AddScalar(1)
			if i == burst/10 {
				early = y
			}
		}
		for !late.Ready() {
			runtime.Gosched() // Wait would need longer to notice
		}
		start := time.Now()
		noticed := !early.Ready() // before much of the burst had been executed
		asyncrt.WaitAll()
		if each := time.Since(start) / time.Duration(burst); noticed {
			execute = append(execute, each)
		} else {
			tooLate = append(tooLate, each)
		}
	}

	t := costs{t1: middle(enqueue)}
	if len(execute) > 0 {
		t.t2 = middle(execute)
	} else {
		t.t2 = slices.Max(tooLate) // a busy machine: each of them is too short
	}
	alone := median(500, func() { x.AddScalar(1).Wait() })
	t.t3 = max(0, alone-t.t1-t.t2)
	return t
}

// report prints what the operations of a run should take and what they took.
func (t costs) report(r run) {
	n, each, once := r.n, r.each, r.once
	count := time.Duration(n)
	predictEach := count * (t.t1 + t.t2 + t.t3)
	predictOnce := t.t1 + count*t.t2 + t.t3
	fmt.Fprintf(os.Stderr, "  %d times, waiting each time: n(t1+t2+t3) = %v predicted, %v measured (%v each)\n",
		n, round(predictEach), round(each), round(each/count))
	fmt.Fprintf(os.Stderr, "  %d times, waiting once:      t1+n*t2+t3  = %v predicted, %v measured (%v each)\n",
		n, round(predictOnce), round(once), round(once/count))
	if count*t.t2 <= (count-1)*t.t1 {
		fmt.Fprintf(os.Stderr, "    %d*t2 > %d*t1 does not hold (%v, %v): the device executes faster than the program enqueues\n"+
			"    and has to wait for work, so that the program sets the pace: n*t1+t2+t3 = %v predicted\n",
			n, n-1, round(count*t.t2), round((count-1)*t.t1), round(count*t.t1+t.t2+t.t3))
	}
}

// median returns the middle of the times that several calls of f take.
func median(times int, f func()) time.Duration {
	elapsed := make([]time.Duration, times)
	for i := range elapsed {
		start := time.Now()
		f()
		elapsed[i] = time.Since(start)
	}
	return middle(elapsed)
}

func middle(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}

// round keeps three digits or so, for people.
func round(d time.Duration) time.Duration {
	for _, unit := range []time.Duration{time.Second, time.Millisecond, time.Microsecond} {
		if d >= unit {
			return d.Round(unit / 100)
		}
	}
	return d
}
