package tensor_test

import (
	"fmt"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// The predicted classes of a batch: the loop that reads one after the other, and one call.
func ExampleVMap() {
	scores := tensor.From([]float32{0.1, 0.7, 0.2, 0.5, 0.3, 0.2}, 2, 3)
	for i := range 2 {
		fmt.Println(scores.Row(i).ArgMax())
	}
	fmt.Println(tensor.VMap(func(rows ...*tensor.Tensor) *tensor.Tensor { return rows[0].ArgMax() }, scores))
	// Output:
	// 1
	// 0
	// [1 0]
}

// A step that is as long as the residual says, without waiting for it.
func ExampleTensor_F64() {
	r, d := tensor.From([]float64{3, 4}), tensor.From([]float64{1, 1})
	alpha := r.Norm().F64().Div(d.Dot(d).F64())
	fmt.Println(r.Sub(d.MulF64(alpha)))
	fmt.Printf("%.1f\n", alpha)
	// Output:
	// [0.5 1.5]
	// 2.5
}

// The next input is chosen by the last output.
func ExampleTensor_RowAt() {
	table := tensor.From([]float32{0, 3, 0, 0, 0, 5, 9, 0, 0}, 3, 3)
	at := tensor.From([]int64{0}).Row(0)
	for range 3 {
		at = table.RowAt(at).ArgMax()
	}
	fmt.Println(at)
	// Output: 0
}
