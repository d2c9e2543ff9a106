package tensor_test

import (
	"errors"
	"fmt"

	asyncrt "github.com/asyncgen/asyncgen/runtime"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

func Example() {
	x := tensor.Ones(2, 3)
	y := x.MulScalar(2).MatMul(x.T()).Sum() // returns at once
	fmt.Println(y.Item())                   // waits
	// Output: 24
}

func ExampleFrom() {
	x := tensor.From([]float64{1, 2, 3, 4, 5, 6}, 2, 3)
	fmt.Println(x)
	fmt.Println(x.Sum(0))
	fmt.Printf("%.2f %i\n", x.Row(1).Sqrt(), x)
	// Output:
	// [[1. 2. 3.]
	//  [4. 5. 6.]]
	// [5. 7. 9.]
	// [2.00 2.24 2.45] float64[2 3] on cpu
}

func ExampleTensor_Add_broadcasting() {
	column := tensor.From([]int64{10, 20}, 2, 1)
	row := tensor.From([]int64{1, 2, 3})
	fmt.Println(column.Add(row))
	// Output:
	// [[11 12 13]
	//  [21 22 23]]
}

func ExampleTensor_Backward() {
	w := tensor.NewParam(tensor.From([]float64{1, 2, 3}))
	w.Value().Square().Sum().Backward()
	fmt.Println(w.Grad())
	// Output: [2. 4. 6.]
}

func ExampleGrad() {
	x := tensor.From([]float64{2}).Track()
	y := x.Mul(x).Mul(x).Sum()
	first := tensor.Grad(y, x)[0]
	second := tensor.Grad(first.Sum(), x)[0]
	fmt.Println(first, second)
	// Output: [12.] [12.]
}

func ExampleTensor_Wait() {
	x, zero := tensor.From([]int64{1}), tensor.From([]int64{0})
	y := x.Div(zero).AddScalar(1)                          // returns, and so does whatever is computed from y
	failed, _ := errors.AsType[*asyncrt.OpError](y.Wait()) // whose text has the file and the line as well
	fmt.Println(failed.Op, failed.Shapes, failed.Err)
	// Output: Div [[1] [1] [1]] an integer is divided by zero
}

func ExampleWhere() {
	x := tensor.Arange(-2, 3, 1)
	fmt.Println(tensor.Where(x.Lt(tensor.Scalar(0)), x.Neg(), x))
	// Output: [2. 1. 0. 1. 2.]
}
