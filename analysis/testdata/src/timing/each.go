package timing

import (
	"fmt"
	"time"

	asyncrt "github.com/asyncgen/asyncgen/runtime"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// each starts the clock in every iteration: that the iteration waits after it has
// been read is of no use.
func each(x *tensor.Tensor, n int) (all []time.Duration) {
	for range n {
		start := time.Now()
		y := x.MatMul(w)
		all = append(all, time.Since(start)) // want `AT020`
		fmt.Println(y)
	}
	for range n {
		start := time.Now()
		y := x.MatMul(w)
		fmt.Println(y)
		all = append(all, time.Since(start))
	}
	start := time.Now()
	for range n {
		y := x.MatMul(w)
		fmt.Println(y)
	}
	all = append(all, time.Since(start))
	for range n {
		start := time.Now()
		for range n {
			fmt.Println(x.MatMul(w))
		}
		all = append(all, time.Since(start))
	}
	last := time.Now()
	for range n {
		y := x.MatMul(w)
		if err := y.Wait(); err != nil {
			return nil
		}
		all = append(all, time.Since(last))
		last = time.Now()
	}
	return all
}

// again reads one clock for several stretches of time.
func again(x *tensor.Tensor) {
	start := time.Now()
	y := x.MatMul(w)
	fmt.Println(time.Since(start)) // want `AT020`
	if err := y.Wait(); err != nil || time.Since(start) > time.Minute {
		return
	}
	start = time.Now()
	y = y.AddScalar(1)
	go y.Wait()
	start = time.Now()
	fmt.Println(y.Dim(0), time.Since(start))
}

// asked tells both times in one print.
func asked(x *tensor.Tensor) {
	start := time.Now()
	y := x.MatMul(w)
	issued := time.Since(start)
	sum := y.Sum()
	asyncrt.WaitIdle()
	fmt.Println("asked in", issued, "done in", time.Since(start), sum)
}

func askedFirst(x *tensor.Tensor) {
	start := time.Now()
	y := x.MatMul(w)
	product := time.Since(start) // want `AT020`
	sum := y.Sum()
	asyncrt.WaitIdle()
	fmt.Println("product", product)
	fmt.Println("sum", time.Since(start), sum)
}
