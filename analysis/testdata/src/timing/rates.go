package timing

import (
	"context"
	"fmt"
	"time"

	asyncrt "github.com/asyncgen/asyncgen/runtime"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// How much work there was until a deadline.

func perSecond(x *tensor.Tensor, d time.Duration) float64 {
	n := 0
	end := time.Now().Add(d)
	for time.Now().Before(end) {
		x.MatMul(w)
		n++
	}
	return float64(n) / d.Seconds() // want `float64\(n\) / d.Seconds\(\) counts work that was enqueued in time`
}

func images(x *tensor.Tensor) {
	const budget = 2 * time.Second
	var seen int
	for start := time.Now(); time.Since(start) < budget; {
		x.MatMul(w)
		seen += x.Dim(0)
	}
	fmt.Printf("%.1f images/s\n", float64(seen)/budget.Seconds()) // want `counts work that was enqueued in time`
}

func untilTimer(step func() *tensor.Tensor, d time.Duration) float64 {
	n, timer := 0, time.After(d)
	for {
		select {
		case <-timer:
			return float64(n) / d.Seconds() // want `counts work that was enqueued in time`
		default:
			step()
			n++
		}
	}
}

func untilCancelled(ctx context.Context, x *tensor.Tensor, d time.Duration) time.Duration {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	n := 0
	for ctx.Err() == nil {
		x = x.MatMul(w)
		n++
	}
	each := d / time.Duration(n) // want `d / time.Duration\(n\) counts work that was enqueued in time`
	return each
}

// Each iteration waits.
func answersPerSecond(x *tensor.Tensor, d time.Duration) float64 {
	n := 0
	end := time.Now().Add(d)
	for time.Now().Before(end) {
		x.MatMul(w).Wait()
		n++
	}
	return float64(n) / d.Seconds()
}

// The work is finished before anybody counts it.
func finishedPerSecond(x *tensor.Tensor, d time.Duration) float64 {
	n := 0
	end := time.Now().Add(d)
	for time.Now().Before(end) {
		x.MatMul(w)
		n++
	}
	asyncrt.WaitAll()
	return float64(n) / d.Seconds()
}

// The name says what is meant.
func enqueuedPerSecond(x *tensor.Tensor, d time.Duration) float64 {
	n := 0
	end := time.Now().Add(d)
	for time.Now().Before(end) {
		x.MatMul(w)
		n++
	}
	return float64(n) / d.Seconds()
}

// A mean is no rate, and neither is what no clock ends.
func searched(x *tensor.Tensor, d time.Duration, rows []float64) (*tensor.Tensor, float64) {
	sum, n := x, 0
	end := time.Now().Add(d)
	for time.Now().Before(end) {
		sum = sum.Add(x.MatMul(w))
		n++
	}
	count := 0
	for range rows {
		sum = sum.Add(x)
		count++
	}
	return sum.DivScalar(float64(n) / 2), float64(count) / d.Seconds()
}

// How far it has got, while it runs.
func progress(x *tensor.Tensor, d time.Duration, show func(float64)) {
	n := 0
	end := time.Now().Add(d)
	for time.Now().Before(end) {
		x.MatMul(w)
		n++
		show(float64(n) / d.Seconds())
	}
}

// The finding is where the clock is read.
func elapsedRate(x *tensor.Tensor, d time.Duration) float64 {
	n := 0
	start := time.Now()
	for time.Since(start) < d {
		x.MatMul(w)
		n++
	}
	took := time.Since(start) // want `time.Since\(start\) is the time it took to enqueue the work`
	return float64(n) / took.Seconds()
}
