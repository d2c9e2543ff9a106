// Command quickstart is the example of asyncgen's README: a kernel whose
// asynchronous form is generated.
package main

import (
	"fmt"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

func main() {
	tensor.Seed(1)
	w := tensor.Rand(4)
	var batches []*tensor.Tensor
	for range 5 {
		batches = append(batches, tensor.Rand(8, 4))
	}
	fmt.Printf("total %.4f\n", trainAsync(w, batches))
}
