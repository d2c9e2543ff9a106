// Command data teaches a small network which points of a square lie within a circle, and holds it against points that
// it was not taught with.
package main

import (
	"fmt"
	"log"

	"github.com/asyncgen/asyncgen/runtime/data"
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

func main() {
	tensor.Seed(1)
	points := tensor.Uniform(-1, 1, 2560, 2)
	inside := points.Square().Sum(1).LtScalar(0.5).As(tensor.Int64) // a class for each point: 0 or 1
	set := data.Pair(data.ArrayOf[float32](points), data.ArrayOf[int64](inside))

	train, valid := data.Split(set, 0.8, 1)
	batches := data.NewLoader(train, 64, data.Options{Shuffle: true, Seed: 1})
	others := data.NewLoader(valid, 256)

	net := nn.Sequential(nn.Dense(32), nn.ReLU(), nn.Dense(2))
	opt := optim.SGD(net.Params(), 0.5)
	for epoch := range 5 {
		loss, err := learn(net, opt, batches)
		if err != nil {
			log.Fatal(err)
		}
		right, err := check(net, others)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("epoch %d: loss %.3f, %.1f %% of the others right\n", epoch, loss, 100*right/float64(valid.Len()))
	}
}

// learn trains for an epoch, and returns the mean loss of its batches.
func learn(net nn.Module, opt *optim.Optimizer, batches *data.Loader) (float64, error) {
	total := 0.0
	for b, err := range batches.All() {
		if err != nil {
			return 0, err
		}
		loss := nn.CrossEntropy(net.Forward(b.X), b.Y)
		opt.Minimize(loss)
		total += loss.Item()
	}
	return total / float64(batches.Len()), nil
}

// check returns how many points are put in the right class.
func check(net nn.Module, batches *data.Loader) (float64, error) {
	net = nn.Frozen(net) // no gradients, and layers as they are in use
	right := tensor.Scalar(0)
	for b, err := range batches.All() {
		if err != nil {
			return 0, err
		}
		right = right.Add(net.Forward(b.X).ArgMax(1).Eq(b.Y).As(tensor.Float32).Sum())
	}
	return right.Item(), nil
}
