package deferredread

import (
	"fmt"
	"log"

	"batch"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

type Batch = batch.Batch

var w *tensor.Tensor

func arguments(data []Batch) {
	for _, b := range data {
		loss := batch.Loss(w, b)
		defer log.Println("loss", loss.Item())                            // want `deferred call in loop: loss.Item\(\) is an argument, so it waits for the device in each iteration; defer one function before the loop that reads \[AT014\]`
		defer fmt.Println(batch.Value(b.X.MatMul(w)), 1)                  // want `batch.Value is an argument`
		defer func(v float64) { fmt.Println(v) }(batch.Loss(w, b).Item()) // want `is an argument`
	}
}

func later(data []Batch) (total float64) {
	for _, b := range data {
		loss := batch.Loss(w, b)
		defer fmt.Println(loss) // want `deferred call in loop: fmt.Println waits for the device when the function returns, once for each iteration, which keeps its tensors until then \[AT014\]`
		defer func() {          // want `loss.Item\(\) waits for the device when`
			total += loss.Item()
		}()
	}
	return
}

// Silent.

func others(data []Batch, x *tensor.Tensor) (total float64) {
	defer fmt.Println(x)
	defer func() { total += x.Item() }()
	for i, b := range data {
		loss := batch.Loss(w, b)
		if i == 0 {
			defer fmt.Println(loss)
			defer log.Println(loss.Item())
		}
		defer fmt.Println(x)
		defer func() { fmt.Println(total) }()
		func() {
			defer fmt.Println(loss) // AT004: when this one returns, in each iteration
		}()
	}
	for range 3 {
		loss := batch.Loss(w, data[0])
		defer fmt.Println(loss.Item())
	}
	return
}
