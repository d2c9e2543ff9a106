package loopread

import (
	"fmt"

	"batch"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// What is added up is needed of all iterations, also if the sum is shown in few.
func shownSums(w *tensor.Tensor, data []batch.Batch) {
	total, average := 0.0, 0.0
	for i, b := range data {
		total += batch.Loss(w, b).Item()                    // want `only kept`
		average = 0.9*average + 0.1*batch.Loss(w, b).Item() // want `only kept`
		if i%20 == 19 {
			fmt.Println(i, total/20, average)
			total = 0
		}
	}
}
