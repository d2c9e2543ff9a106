package kernel_test

import (
	"fmt"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/kernel"
)

func ExampleDiff() {
	x, y := kernel.Arg(0, device.Float64), kernel.Arg(1, device.Float64)
	gate := kernel.Mul(kernel.Tanh(x), y)
	fmt.Println(gate)
	fmt.Println(kernel.Diff(gate, 0))
	fmt.Println(kernel.Diff(gate, 1))
	// Output:
	// tanh(x) * y
	// y * (1 - (tanh(x) * tanh(x)))
	// tanh(x)
}

func ExampleExpr_Eval() {
	x := kernel.Arg(0, device.Float32)
	e := kernel.Where(kernel.Lt(x, kernel.Imm(0, device.Float32)), kernel.Sqrt(x), kernel.Const(-1, device.Float32))
	for _, v := range []float32{4, 144} {
		bits := e.Eval([]uint64{kernel.Bits(v)}, []uint64{kernel.Bits[float32](100)})
		fmt.Println(kernel.Value[float32](bits))
	}
	// Output:
	// 2
	// -1
}
