package adjacentread

import (
	"fmt"

	"batch"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

type Batch = batch.Batch

var w *tensor.Tensor

func numbers(data []Batch) (total, right float64) {
	for _, b := range data {
		loss := batch.Loss(w, b)
		hits := b.X.MatMul(w).Sum()
		total += loss.Item()
		right += hits.Item()          // want `second read in loop: hits.Item\(\) could come with the read before it; stack the tensors and read once \[AT007\]`
		fmt.Println(loss.Item())      // want `loss.Item\(\) has been read in this iteration; keep the value \[AT007\]`
		v := hits.AddScalar(1).Item() // want `could come with`
		right += v
	}
	return
}

func again(data []Batch, given *tensor.Tensor) (total float64) {
	for i, b := range data {
		y := b.X.MatMul(w)
		total += y.At(i, 0)
		total += y.At(i, 1)
		if y.At(i, 0) > 1 { // want `y.At\(i, 0\) has been read`
			total++
		}
		total += given.Item()
		total += given.Item() // want `has been read`
	}
	return
}

// Silent.

func others(data []Batch, k func() int) (total float64) {
	for i, b := range data {
		loss := batch.Loss(w, b)
		v := loss.Item()
		total += b.X.MulScalar(v).Norm().Item() // needs it
		loss = loss.AddScalar(1)
		total += loss.Item() // another tensor by now // want `could come with`
		if i > 0 {
			total += batch.Loss(w, b).Item() // perhaps
		}
		if i > 1 {
			total += b.Y.At(i)
		} else {
			total -= b.Y.At(i)
		}
		total += b.Y.At(k())
		total += b.Y.At(k())
	}
	for i, b := range data {
		loss := batch.Loss(w, b)
		total += loss.Item()
		if i%100 == 0 {
			fmt.Println(loss.Item())
		}
	}
	for _, b := range data {
		y := b.X.MatMul(w)
		fmt.Println(y.Float32s(), y.Sum().Float32s()) // no numbers
	}
	loss := batch.Loss(w, data[0])
	return loss.Item() + loss.Item()
}
