// Package gotch uses gotch.
package gotch

import (
	"fmt"
	"time"

	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/nn"
	"github.com/sugarme/gotch/ts"
)

func train(model *nn.Linear, opt *nn.Optimizer, iter *ts.Iter2) {
	var total float64
	for {
		batch, ok := iter.Next()
		if !ok {
			break
		}
		loss := model.Forward(batch.Data).MustMean(true)
		opt.MustBackwardStep(loss)
		total += loss.Float64Values()[0] // want `blocking read in loop: loss.Float64Values\(\) waits for the device .*AT001`
		loss.MustDrop()
	}
	fmt.Println(total)
}

// An operation in place changes a tensor that was made before the loop.
func inPlace(model *nn.Linear, xs []*ts.Tensor) []float64 {
	var list []float64
	sum := ts.MustZeros([]int64{1}, gotch.CPU)
	for _, x := range xs {
		sum.MustAdd_(model.Forward(x))
		list = append(list, sum.MustFloat64Value([]int64{0})) // want `AT001`
	}
	return list
}

// Views and copies to another device wait for nothing; reading them does.
func views(model *nn.Linear, xs []*ts.Tensor) {
	for _, x := range xs {
		y := model.Forward(x).MustTo(gotch.CPU, true).MustView([]int64{-1}, true)
		fmt.Println(y) // want `AT004`
		fmt.Printf("%T of %v\n", y, y.MustSize())
	}
}

func host(xs [][]float64) (sum float64) {
	for _, x := range xs {
		sum += ts.MustOfSlice(x).MustView([]int64{-1}, true).Float64Values()[0]
	}
	return sum
}

func noGrad(model *nn.Linear, xs []*ts.Tensor) (sum float64) {
	for _, x := range xs {
		ts.NoGrad(func() {
			sum += model.Forward(x).MustFloat64Value(nil) // want `AT001`
		})
	}
	return sum
}

func buffer(model *nn.Linear, xs []*ts.Tensor) {
	dst := make([]float32, 10)
	for _, x := range xs {
		model.Forward(x).MustCopyData(dst, 10) // want `AT001`
		fmt.Println(dst)
	}
}

func timed(model *nn.Linear, x *ts.Tensor) time.Duration {
	start := time.Now()
	model.Forward(x)
	return time.Since(start) // want `AT020`
}

func timedToo(model *nn.Linear, x *ts.Tensor) time.Duration {
	start := time.Now()
	model.Forward(x)
	ts.CudaSynchronize()
	return time.Since(start)
}

// Operations may be called for what they do, and tensors be compared.
func identity(x, y *ts.Tensor) bool {
	x.MustMean(true)
	return x == y
}
