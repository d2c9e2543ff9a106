// Command accuracy trains a small classifier and counts, after each epoch, how
// many of the examples it has never seen it gets right: sample by sample, as one
// writes it down, with the class of the largest score read for each.
//
// Results go to standard output, times to standard error.
//
//	go run ./testdata/programs/accuracy [-small]
package main

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

const (
	features  = 16
	classes   = 10
	batchSize = 64
	spread    = 1.2 // of the examples of a class around its center
)

// A batch is a few examples: x has a row for each, labels its class.
type batch struct {
	x      *tensor.Tensor
	labels []int64
}

func main() {
	small := flag.Bool("small", false, "two epochs and few examples")
	flag.Parse()
	epochs, train, test := 5, 16, 64
	if *small {
		epochs, train, test = 2, 16, 8
	}

	tensor.Seed(1)
	source := newSource()
	trainSet, testSet := source.batches(train), source.batches(test)
	net := nn.Sequential(nn.Dense(32), nn.ReLU(), nn.Dense(classes))
	net.Forward(trainSet[0].x) // gives the weights their shapes
	opt := optim.SGD(net.Params(), 0.05)

	fmt.Printf("untrained: %d of %d right\n", correct(net, testSet), test*batchSize)
	start := time.Now()
	for epoch := range epochs {
		trainEpoch(net, opt, trainSet)
		right := correct(net, testSet)
		fmt.Printf("epoch %d: %d of %d right, %.1f %%\n", epoch, right, test*batchSize, 100*float64(right)/float64(test*batchSize))
	}
	fmt.Fprintf(os.Stderr, "%d epochs in %v\n", epochs, time.Since(start).Round(time.Microsecond))
}

// correct counts the examples whose class gets the largest score.
func correct(model nn.Module, data []batch) int {
	right := 0
	for _, b := range data {
		scores := model.Forward(b.x)
		for i, label := range b.labels {
			if scores.Row(i).ArgMax().ItemInt() == label {
				right++
			}
		}
	}
	return right
}

// trainEpoch learns from each batch once.
func trainEpoch(model nn.Module, opt *optim.Optimizer, data []batch) {
	for _, b := range data {
		loss := nn.CrossEntropy(model.Forward(b.x), tensor.From(b.labels, len(b.labels)))
		opt.Minimize(loss)
	}
}

// A source draws examples: points around the center of their class.
type source struct {
	centers *tensor.Tensor // a row for each class
	classes *rand.Rand
}

func newSource() source {
	return source{tensor.Randn(classes, features), rand.New(rand.NewPCG(1, 2))}
}

func (s source) batches(n int) []batch {
	data := make([]batch, n)
	for i := range data {
		labels := make([]int64, batchSize)
		for j := range labels {
			labels[j] = s.classes.Int64N(classes)
		}
		centers := s.centers.Take(0, tensor.From(labels, batchSize))
		noise := tensor.Randn(batchSize, features).MulScalar(spread)
		data[i] = batch{centers.Add(noise), labels}
	}
	return data
}
