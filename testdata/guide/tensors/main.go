// Command tensors makes tensors, computes with them and looks at parts of them.
package main

import (
	"fmt"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

func main() {
	x := tensor.From([]float32{1, 2, 3, 4, 5, 6}, 2, 3)
	w := tensor.Ones(3, 2)
	fmt.Println(x.Shape(), x.DType(), x.Size()) // known at once

	y := x.MatMul(w).AddScalar(0.5) // returns at once
	fmt.Println(y)                  // waits for y

	fmt.Println(x.Row(-1).Float32s())         // the last row, as a Go slice
	fmt.Println(x.Sub(x.Slice(1, 0, 1)))      // less its first column: [2 3] and [2 1] are broadcast
	fmt.Println(x.Sum(0), x.MeanKeep(1))      // over axis 0; over axis 1, which stays with length 1
	fmt.Printf("%.2f\n", x.T().Sqrt())        // the verb is for each element
	fmt.Println(x.ArgMax(1), x.GtScalar(4.5)) // int64 and bool tensors
	fmt.Println(x.As(tensor.Int64).DivInt(2)) // conversions are explicit

	columns := tensor.From([]int{2, 0})
	fmt.Println(x.Take(1, columns))

	tensor.Seed(7)
	fmt.Printf("%.3f\n", tensor.Randn(3))
}
