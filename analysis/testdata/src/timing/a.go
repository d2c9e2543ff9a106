package timing

import (
	"fmt"
	"time"

	"batch"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

type Batch = batch.Batch

var w *tensor.Tensor

func simple(x *tensor.Tensor) *tensor.Tensor {
	start := time.Now()
	y := x.MatMul(w)
	fmt.Println(time.Since(start)) // want `time.Since\(start\) is the time it took to enqueue the work, not to do it; wait before reading the clock \[AT020\]`
	return y
}

func forms(x *tensor.Tensor) (a, b time.Duration, c float64) {
	start := time.Now()
	x.MatMul(w)
	a = time.Now().Sub(start) // want `AT020`

	begin := time.Now()
	x.MatMul(w)
	end := time.Now()
	b = end.Sub(begin) // want `AT020`

	var t0 = time.Now()
	x.MatMul(w)
	// The comment stays with what it is about.
	c = float64(1000) / time.Since(t0).Seconds() // want `AT020`
	return
}

func loops(data []Batch) {
	start := time.Now()
	for _, b := range data {
		batch.Loss(w, b)
	}
	if len(data) > 0 {
		fmt.Println(time.Since(start)) // want `AT020`
	}
	for _, b := range data {
		start := time.Now()
		batch.Loss(w, b)
		fmt.Println(time.Since(start)) // want `AT020`
	}
}

func unrelated(x *tensor.Tensor) {
	start := time.Now()
	y := x.MatMul(w)
	x.Item()
	fmt.Println(time.Since(start)) // want `AT020`
	y.Item()
}

func onePath(x *tensor.Tensor, wait bool) {
	start := time.Now()
	y := x.MatMul(w)
	if wait {
		y.Wait()
	}
	fmt.Println(time.Since(start)) // want `AT020`
}

func noFix(x *tensor.Tensor) {
	start := time.Now()
	x.MatMul(w)
	if d := time.Since(start); d > 0 { // want `AT020`
		fmt.Println(d)
	}
}

// Silent from here on.

func finished(x *tensor.Tensor, f func(*tensor.Tensor), data []Batch) {
	start := time.Now()
	y := x.MatMul(w)
	y.Wait()
	fmt.Println(time.Since(start))

	start = time.Now()
	z := x.MatMul(w)
	fmt.Println(z, time.Since(start))

	start = time.Now()
	u := batch.Value(x.MatMul(w))
	fmt.Println(u, time.Since(start))

	start = time.Now()
	f(x.MatMul(w))
	fmt.Println(time.Since(start))

	start = time.Now()
	x.Dim(0)
	fmt.Println(time.Since(start))

	start = time.Now()
	for _, b := range data {
		batch.Loss(w, b).Item()
		w = w.AddScalar(1)
	}
	fmt.Println(time.Since(start))
}

func later(data []Batch) (total float64) {
	var losses []*tensor.Tensor
	start := time.Now()
	for _, b := range data {
		losses = append(losses, batch.Loss(w, b))
	}
	for _, l := range losses {
		total += l.Item()
	}
	fmt.Println(time.Since(start))
	return
}

func onPurpose(x *tensor.Tensor) {
	start := time.Now()
	y := x.MatMul(w)
	queued := time.Since(start)
	begin := time.Now()
	y = x.MatMul(w)
	fmt.Println("time to enqueue:", time.Since(begin), queued)

	first := time.Now()
	y = x.MatMul(w)
	t1 := time.Since(first)
	y.Wait()
	t2 := time.Since(first)
	fmt.Println(t1, t2)
}

func deadline(x *tensor.Tensor, limit time.Duration) {
	start := time.Now()
	for time.Since(start) < limit {
		x = x.MatMul(w)
	}
	for {
		x = x.MatMul(w)
		if time.Since(start) > limit {
			break
		}
		elapsed := time.Since(start)
		if elapsed > limit {
			break
		}
	}
}

func dispatchCost(x *tensor.Tensor) time.Duration {
	start := time.Now()
	x.MatMul(w)
	return time.Since(start)
}
