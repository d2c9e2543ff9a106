// Command train teaches a small network which points of a square lie within a circle.
package main

import (
	"fmt"

	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

const (
	points = 2048
	batch  = 64
)

func main() {
	tensor.Seed(1)
	x := tensor.Uniform(-1, 1, points, 2)
	inside := x.Square().Sum(1).LtScalar(0.5).As(tensor.Int64) // a class for each point: 0 or 1

	net := nn.Sequential(nn.Dense(32), nn.ReLU(), nn.Dense(2))
	opt := optim.SGD(net.Params(), 0.5)
	for epoch := range 5 {
		total := 0.0
		for i := 0; i < points; i += batch {
			scores := net.Forward(x.Slice(0, i, i+batch))
			loss := nn.CrossEntropy(scores, inside.Slice(0, i, i+batch))
			opt.Minimize(loss)
			total += loss.Item()
		}
		right := net.Forward(x).ArgMax(1).Eq(inside).As(tensor.Float32).Mean()
		fmt.Printf("epoch %d: loss %.3f, %.1f %% right\n", epoch, total*batch/points, 100*right.Item())
	}
}
