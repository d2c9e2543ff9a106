package deferredread

import (
	"context"
	"fmt"
	"log"

	"batch"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// Operands of deferred calls, before more is enqueued.

func finish(b Batch) *tensor.Tensor {
	loss := batch.Loss(w, b)
	defer fmt.Println("loss", loss.Item()) // want `deferred call: loss.Item\(\) is an argument, so it waits for the device here, before the work below is enqueued`
	return w.MatMul(b.X)
}

func ended(b Batch, end func(float64)) *tensor.Tensor {
	defer end(batch.Loss(w, b).Norm().Item()) // want `is an argument`
	y := w.MatMul(b.X)
	defer func(v []float32) { log.Print(v) }(y.Float32s()) // want `y.Float32s\(\) is an argument`
	return y.MulScalar(2)
}

// Waits that loops defer.

func checkpointed(x *tensor.Tensor, n int) {
	for range n {
		x = x.MulScalar(2)
		defer x.Wait()                            // want `x.Wait\(\) waits for the device when the function returns, once for each iteration`
		defer x.WaitContext(context.Background()) // want `AT014`
		defer func() {                            // want `AT014`
			if err := x.Wait(); err != nil {
				log.Print(err)
			}
		}()
	}
}

// Silent.

func last(b Batch) float64 {
	loss := batch.Loss(w, b)
	defer fmt.Println("loss", loss.Item()) // nothing is enqueued after this
	defer loss.Wait()
	return 1
}

func shaped(b Batch) *tensor.Tensor {
	defer fmt.Println("rows", b.X.Dim(0))
	defer func() { fmt.Println(b.X.Norm().Item()) }()
	return w.MatMul(b.X)
}
