// Command gradients differentiates: with respect to tensors, and to the parameters of a model.
package main

import (
	"fmt"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

func main() {
	x := tensor.From([]float32{1, 2, 3}).Track() // gradients are asked for x
	y := x.Square().Sum()
	g := tensor.Grad(y, x)[0]
	fmt.Println(g) // 2x

	w := tensor.NewParam(tensor.From([]float32{0.5, -1, 2})) // a cell with a value and a gradient
	loss := w.Value().Mul(x.Detach()).Sum().Square()
	loss.Backward() // adds to the gradients of the parameters
	fmt.Println(w.Grad())

	w.Set(w.Value().Detach().AddScaled(w.Grad(), -0.01)) // a step downhill
	w.ZeroGrad()
	fmt.Printf("%.3f\n", w.Value())
}
