// Command ranks teaches a small network which points of a square lie within a circle, as one of several processes.
package main

import (
	"errors"
	"fmt"
	"log"

	"github.com/asyncgen/asyncgen/device/wire"
	"github.com/asyncgen/asyncgen/device/wire/wiretest"
	asyncrt "github.com/asyncgen/asyncgen/runtime"
	"github.com/asyncgen/asyncgen/runtime/data"
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

func main() {
	transport := wiretest.New(1).Rank(0) // to no others, so that the program runs anywhere

	job, err := wire.NewJob(transport, wire.Options{}) // waits until all ranks have come
	if err != nil {
		log.Fatal(err)
	}
	tensor.Seed(1) // all ranks draw the same points
	points := tensor.Uniform(-1, 1, 2048, 2)
	inside := points.Square().Sum(1).LtScalar(0.5).As(tensor.Int64)
	set := data.Pair(data.ArrayOf[float32](points), data.ArrayOf[int64](inside))

	batches := data.NewLoader(set, 64, data.Options{Shuffle: true, Seed: 1, Rank: job.Rank(), Ranks: job.Size()})
	model := nn.Sequential(nn.Dense(32), nn.ReLU(), nn.Dense(2))
	net := nn.DataParallel(model, nn.Parallel{Job: job})
	opt := optim.SGD(net.Params(), 0.5)
	total := tensor.Scalar(0)
	for b, err := range batches.All() {
		if err != nil {
			log.Fatal(err)
		}
		loss := net.Loss(nn.CrossEntropy, b.X, b.Y) // of the whole batch, on all ranks
		opt.Minimize(loss)
		total = total.Add(loss.Detach())
	}
	if job.Rank() == 0 {
		fmt.Printf("%d ranks: mean loss %.3f\n", job.Size(), total.Item()/float64(batches.Len()))
	}
	// What is enqueued has to be sent before the job is closed.
	if err := errors.Join(asyncrt.WaitAll(), job.Close()); err != nil {
		log.Fatal(err)
	}
}
