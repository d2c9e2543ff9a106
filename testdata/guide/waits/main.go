// Command waits descends a bowl, and looks at how far it has come after every step.
package main

import (
	"fmt"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

func descend(x *tensor.Tensor, steps int) (history []float64) {
	for range steps {
		x = x.Sub(x.MulScalar(0.1))
		height := x.Square().Sum()
		history = append(history, height.Item())
	}
	return history
}

func main() {
	tensor.Seed(1)
	history := descend(tensor.Randn(1000), 200)
	fmt.Printf("from %.3f to %.3g in %d steps\n", history[0], history[len(history)-1], len(history))
}
