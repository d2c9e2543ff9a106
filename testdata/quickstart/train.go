package main

import (
	"fmt"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

//go:generate go tool asyncgen

//asyncgen:kernel
func train(w *tensor.Tensor, batches []*tensor.Tensor) (total float64) {
	for i, x := range batches {
		loss := x.MatMul(w).AddScalar(-1).Square().Mean()
		total += loss.Item() // waits for the device, every time
		fmt.Printf("batch %d loss %.4f\n", i, loss)
	}
	return total
}
