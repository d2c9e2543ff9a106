// Command metrics fits a linear model by stochastic gradient descent, and
// watches it the way most training programs do: every batch it reads the loss,
// adds it up and keeps it, and every so many batches it prints a line.
//
// The operations are tiny, so on an accelerator the program spends most of
// its time waiting for the next loss to arrive. Nothing but the printing
// needs it that early.
//
// Results go to standard output, times to standard error.
//
//	go run ./testdata/programs/metrics [-small]
package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

const (
	features  = 8
	batchSize = 32
	rate      = 0.05
)

// A batch is a few examples: x has a row for each, y what the model should
// answer.
type batch struct {
	x, y *tensor.Tensor
}

func main() {
	small := flag.Bool("small", false, "train for one epoch instead of eight")
	flag.Parse()
	epochs := 8
	if *small {
		epochs = 1
	}

	tensor.Seed(1)
	truth := tensor.Uniform(-1, 1, features, 1)
	data := examples(truth, 256)

	start := time.Now()
	w, history := train(data, epochs)
	fmt.Fprintf(os.Stderr, "%d batches in %v\n", len(history), time.Since(start).Round(time.Microsecond))

	fmt.Printf("%d losses, from %.6f to %.6f, lowest %.6f\n", len(history), history[0], history[len(history)-1], slices.Min(history))
	fmt.Printf("distance to the truth: %.6f\n", w.Sub(truth).Norm().Item())
}

// examples makes n batches of random inputs and the answers of the true
// model, with a little noise.
func examples(truth *tensor.Tensor, n int) []batch {
	data := make([]batch, n)
	for i := range data {
		x := tensor.Randn(batchSize, features)
		noise := tensor.Randn(batchSize, 1).MulScalar(0.01)
		data[i] = batch{x, x.MatMul(truth).Add(noise)}
	}
	return data
}

// train returns the weights after several passes over the data, and the loss
// of every batch.
func train(data []batch, epochs int) (*tensor.Tensor, []float64) {
	w := tensor.Zeros(features, 1)
	var history []float64
	for epoch := range epochs {
		total := 0.0
		for i, b := range data {
			residual := b.x.MatMul(w).Sub(b.y)
			loss := residual.Square().Mean()
			gradient := b.x.T().MatMul(residual).MulScalar(2.0 / batchSize)
			w = w.Sub(gradient.MulScalar(rate))

			l := loss.Item()
			total += l
			history = append(history, l)
			if i%64 == 0 {
				fmt.Printf("epoch %d batch %3d loss %.6f\n", epoch, i, l)
			}
		}
		fmt.Printf("epoch %d mean loss %.6f\n", epoch, total/float64(len(data)))
	}
	return w, history
}
