package timing

import (
	"time"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// A function that is timed, and waits in what it returns.

func tookErr(f func() error) (time.Duration, error) {
	start := time.Now()
	err := f()
	return time.Since(start), err
}

func waitsInReturn(x *tensor.Tensor) (time.Duration, error) {
	return tookErr(func() error {
		y := x.MatMul(x)
		return y.Wait()
	})
}

func leavesItUnfinished(x *tensor.Tensor, save func() error) (time.Duration, error) {
	return tookErr(func() error { // want `tookErr tells the time it took to enqueue the work`
		x.MatMul(x)
		return nil
	})
}
