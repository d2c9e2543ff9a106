package timing

import (
	"fmt"
	"log"
	"time"

	asyncrt "github.com/asyncgen/asyncgen/runtime"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// Functions that read a clock for others.

func timed(name string, f func()) {
	start := time.Now()
	f()
	fmt.Println(name, time.Since(start))
}

func measure(f func() *tensor.Tensor) (took time.Duration) {
	start := time.Now()
	defer func() { took = time.Since(start) }() // want `time.Since\(start\) is the time it took to enqueue the work`
	for range 10 {
		f()
	}
	return
}

func runs(f func() *tensor.Tensor, n int) (first, all time.Duration) {
	start := time.Now()
	f()
	first = time.Since(start) // want `time.Since\(start\) is the time it took to enqueue the work`
	var y *tensor.Tensor
	start = time.Now()
	for range n {
		y = f()
	}
	y.Wait()
	return first, time.Since(start)
}

func anew(name string, f func()) { timed(name+" anew", f) }

func untilDone(f func()) time.Duration {
	start := time.Now()
	f()
	asyncrt.WaitAll()
	return time.Since(start)
}

func track(name string, start time.Time) { log.Println(name, time.Since(start)) }

func waitsFor(t *tensor.Tensor, start time.Time) {
	t.Wait()
	log.Println(time.Since(start))
}

func timer(name string) func() {
	start := time.Now()
	return func() { log.Println(name, time.Since(start)) }
}

func product() { w.MatMul(w) }

func handed(x *tensor.Tensor) (y *tensor.Tensor) {
	timed("product", func() { y = x.MatMul(w) })           // want `timed tells the time it took to enqueue the work, not to do it; wait at the end of the function that it times \[AT020\]`
	anew("product", func() { y = x.MatMul(w) })            // want `anew tells the time`
	timed("product", product)                              // want `timed tells the time`
	measure(func() *tensor.Tensor { return x.MatMul(w) })  // reported in measure
	timed("product", func() { y = x.MatMul(w); y.Wait() }) // silent from here on
	timed("shape", func() { fmt.Println(x.Dim(0)) })
	timed("enqueue", func() { y = x.MatMul(w) })
	untilDone(func() { y = x.MatMul(w) })
	return y
}

func tracked(x *tensor.Tensor) *tensor.Tensor {
	defer track("product", time.Now()) // want `track tells the time it took to enqueue the work, not to do it; wait before it reads the clock \[AT020\]`
	return x.MatMul(w)
}

func trackedLater(x *tensor.Tensor) *tensor.Tensor {
	start := time.Now()
	y := x.MatMul(w)
	track("product", start) // want `track tells the time`
	return y
}

func stopped(x *tensor.Tensor) *tensor.Tensor {
	defer timer("product")() // want `timer\("product"\) tells the time`
	stop := timer("product")
	y := x.MatMul(w)
	stop() // want `stop tells the time`
	return y
}

func waiting(x *tensor.Tensor) float64 {
	defer track("product", time.Now())
	defer timer("product")()
	y := x.MatMul(w)
	start := time.Now()
	waitsFor(x.MatMul(y), start)
	track("before", time.Now())
	stop := timer("product")
	v := x.MatMul(y).Item()
	stop()
	return v
}

func dispatching(x *tensor.Tensor) *tensor.Tensor {
	defer track("dispatch", time.Now())
	return x.MatMul(w)
}
