package droppedresult

import (
	"time"

	asyncrt "github.com/asyncgen/asyncgen/runtime"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// Results that are assigned to a variable which nobody uses any more.

func scale(xs []*tensor.Tensor) {
	for _, x := range xs {
		x = x.MulScalar(2) // want `result of x.MulScalar is thrown away, as nobody uses x any more; a tensor never changes, so return the result, or store it`
	}
}

func limit(x *tensor.Tensor) {
	x = x.Clamp(0, 1) // want `result of x.Clamp is thrown away`
}

// Silent.

func scaled(xs []*tensor.Tensor) (ys []*tensor.Tensor) {
	for _, x := range xs {
		x = x.MulScalar(2)
		ys = append(ys, x)
	}
	return ys
}

func doubled(x *tensor.Tensor, n int) {
	for range n {
		println(x.Item())
		x = x.MulScalar(2)
	}
}

func result(x *tensor.Tensor) (y *tensor.Tensor) {
	defer func() { println(x.Dim(0)) }()
	y = x
	x = x.MulScalar(2)
	y = y.MulScalar(2)
	return
}

// The time of the work is asked for.
func measuredTwice(x *tensor.Tensor) (time.Duration, time.Duration) {
	timer := asyncrt.StartTimer()
	x = x.MulScalar(2)
	timer.Stop()
	return timer.Wait(), timer.Wait()
}
