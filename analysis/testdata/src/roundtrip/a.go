package roundtrip

import (
	"fmt"
	"math"

	"batch"

	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

type Batch = batch.Batch

var w *tensor.Tensor

func normalise(x, m *tensor.Tensor) *tensor.Tensor {
	for range 100 {
		x = m.MatMul(x)
		n := x.Norm().Item() // want `round trip in loop: x.Norm\(\).Item\(\) waits for the device in each iteration, and its value goes back into a tensor operation; use the tensor itself \[AT003\]`
		x = x.MulScalar(1 / n)
	}
	return x
}

func forms(x *tensor.Tensor, data []Batch) (total float64) {
	for _, b := range data {
		x = x.AddScalar(math.Sqrt(batch.Loss(w, b).Item()))                 // want `use the tensor itself \[`
		x = tensor.From(x.Float32s())                                       // want `AT003`
		x = x.Row(int(x.Norm().ItemInt()))                                  // want `AT003`
		x = tensor.From([]float32{float32(batch.Loss(w, b).Item())}).Add(x) // want `AT003`
		v := batch.Loss(w, b).Item()                                        // want `use the tensor itself there, and read what the host keeps after the loop \[`
		total += v
		scaled := v * 2
		x = x.MulScalar(scaled)
	}
	return
}

func sizes(data []Batch) (ys []*tensor.Tensor) {
	for _, b := range data {
		n := int(batch.Loss(w, b).Item()) // AT026
		ys = append(ys, tensor.Zeros(n))
		k := int(batch.Loss(w, b).Item()) // want `AT003`
		ys = append(ys, tensor.Ones(k), w.MulScalar(float64(k)))
	}
	return ys
}

func clip(x *tensor.Tensor, data []Batch, opt *optim.Optimizer) {
	for _, b := range data {
		loss := batch.Loss(x, b)
		norm := loss.Norm().Item() // want `AT003`
		opt.Minimize(loss.MulScalar(1 / max(norm, 1)))
	}
}

// Silent.

func others(x *tensor.Tensor, data []Batch) (total float64) {
	scale := w.Norm().Item()
	for i, b := range data {
		x = x.MulScalar(scale)
		loss := batch.Loss(x, b)
		total += loss.Item() // AT001
		if i%100 == 0 {
			x = x.MulScalar(loss.Item())
		}
		v := batch.Loss(w, b).Item() // AT005
		if v > 1 {
			x = x.MulScalar(v)
		}
		fmt.Println(batch.Loss(w, b).Item()) // AT004
	}
	return
}
