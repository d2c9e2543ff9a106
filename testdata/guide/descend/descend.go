// Package descend is an example of how code that computes with tensors is tested.
package descend

import (
	"fmt"
	"io"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// Descend takes steps down a bowl from x, prints how high each ends, and returns the least height.
//
//asyncgen:kernel
func Descend(w io.Writer, x *tensor.Tensor, steps int) (least float64) {
	for i := range steps {
		x = x.Sub(x.MulScalar(0.25))
		height := x.Square().Sum()
		least = height.Item()
		fmt.Fprintf(w, "step %d: %.4f\n", i, least)
	}
	return least
}
