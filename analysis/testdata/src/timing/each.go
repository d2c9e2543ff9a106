package timing

import (
	"fmt"
	"time"

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
