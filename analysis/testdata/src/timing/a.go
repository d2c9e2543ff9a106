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

func argument(x *tensor.Tensor) {
	start := time.Now()
	z := x.MatMul(w)
	fmt.Println(z, time.Since(start)) // want `AT020`
}

func restarted(x *tensor.Tensor) {
	start := time.Now()
	y := x.MatMul(w)
	fmt.Println(time.Since(start)) // want `AT020`
	fmt.Println(y)

	start = time.Now()
	y = x.MatMul(w)
	y.Wait()
	fmt.Println(time.Since(start))
}

// Silent from here on.

func finished(x *tensor.Tensor, f func(*tensor.Tensor), data []Batch) {
	start := time.Now()
	y := x.MatMul(w)
	y.Wait()
	fmt.Println(time.Since(start))

	start = time.Now()
	z := x.MatMul(w)
	fmt.Println(z)
	fmt.Println(time.Since(start))

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

func deferredReading(x *tensor.Tensor) *tensor.Tensor {
	start := time.Now()
	defer func() {
		fmt.Println(time.Since(start)) // want `AT020`
	}()
	return x.MatMul(w)
}

func deferredOperand(x *tensor.Tensor) (y *tensor.Tensor, took time.Duration) {
	defer func(t time.Time) { took = time.Since(t) }(time.Now()) // want `AT020`
	if x.Dim(0) == 0 {
		return x, 0
	}
	return x.MatMul(w), 0
}

// What returns a value has waited for it, unless it fails.
func deferredWaiting(x *tensor.Tensor) (v float64, err error) {
	start := time.Now()
	defer func() { fmt.Println(time.Since(start)) }()
	y := x.MatMul(w)
	if y.Dim(0) == 0 {
		return 0, fmt.Errorf("empty")
	}
	return y.Item(), nil
}

func deferredWait(x *tensor.Tensor) (y *tensor.Tensor) {
	start := time.Now()
	defer func() {
		y.Wait()
		fmt.Println(time.Since(start))
	}()
	return x.MatMul(w)
}

func deferredOther(x *tensor.Tensor, f func(), until time.Time) *tensor.Tensor {
	y := x.MatMul(w)
	defer func(t time.Time) { fmt.Println(time.Since(t)) }(until)
	defer func(t time.Time) { fmt.Println(time.Since(t)) }(time.Now()) // nothing is enqueued since
	return y
}

func deferredUnknown(x *tensor.Tensor, f func()) *tensor.Tensor {
	start := time.Now()
	defer func() { fmt.Println(time.Since(start)) }()
	y := x.MatMul(w)
	f() // may wait
	return y
}

func deferredEnqueueing(x *tensor.Tensor) *tensor.Tensor {
	start := time.Now()
	defer func() { fmt.Println("enqueued in", time.Since(start)) }()
	return x.MatMul(w)
}

// Which of two was faster is no question of a limit.
func race(x *tensor.Tensor, limit time.Duration) string {
	t0 := time.Now()
	a := x.MatMul(w)
	ta := time.Since(t0) // want `AT020`
	t1 := time.Now()
	b := x.MatMul(a)
	b.Wait()
	tb := time.Since(t1)
	if ta < tb {
		return "a"
	}
	return "b"
}

func slower(x *tensor.Tensor, limit time.Duration) bool {
	t0 := time.Now()
	x.MatMul(w).Wait()
	first := time.Since(t0)
	t1 := time.Now()
	x.MatMul(w)
	return time.Since(t1) > 2*first // want `AT020`
}

func stillLimits(x *tensor.Tensor, limit time.Duration) {
	start := time.Now()
	for {
		x = x.MatMul(w)
		spent := time.Since(start)
		if allowed := limit / 2; spent > allowed {
			break
		}
	}
}

func enqueuedAndDone(x *tensor.Tensor) {
	start := time.Now()
	x.MatMul(x)
	fmt.Println("enqueued and computed in", time.Since(start)) // want `the time it took to enqueue the work`
}

func laps(xs []*tensor.Tensor) {
	start := time.Now()
	for i, x := range xs {
		y := x.MatMul(x)
		now := time.Now()
		fmt.Println(i, now.Sub(start), y.Dim(0)) // want `now.Sub\(start\) is the time it took to enqueue`
		start = now
	}
}

func phases(x *tensor.Tensor) map[string]time.Duration {
	took := make(map[string]time.Duration)
	start := time.Now()
	lap := func(name string) {
		took[name] = time.Since(start)
		start = time.Now()
	}
	y := x.MatMul(x)
	lap("first") // want `lap tells the time it took to enqueue the work`
	z := y.MatMul(x)
	z.Wait()
	lap("second")
	return took
}
