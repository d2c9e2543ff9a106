package main

import (
	"math"
	"testing"

	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// TestCorrect holds the count against the scores of the same perceptron in
// float64. Examples whose two best scores are too near to tell are few.
func TestCorrect(t *testing.T) {
	tensor.Seed(3)
	s := newSource()
	train, data := s.batches(4), s.batches(6)
	net := nn.Sequential(nn.Dense(32), nn.ReLU(), nn.Dense(classes))
	net.Forward(train[0].x)
	trainEpoch(net, optim.SGD(net.Params(), 0.05), train)

	var layers [][]float64 // weights and biases
	for _, p := range net.Params() {
		layers = append(layers, p.Value().As(tensor.Float64).Flatten().Float64s())
	}
	right, unclear := 0, 0
	for _, b := range data {
		xs := b.x.As(tensor.Float64).Flatten().Float64s()
		for i, label := range b.labels {
			hidden := dense(xs[i*features:(i+1)*features], layers[0], layers[1])
			for j := range hidden {
				hidden[j] = max(hidden[j], 0)
			}
			best, second, at := math.Inf(-1), math.Inf(-1), 0
			for class, score := range dense(hidden, layers[2], layers[3]) {
				if score > best {
					best, second, at = score, best, class
				} else {
					second = max(second, score)
				}
			}
			if best-second < 1e-4 {
				unclear++
			} else if int64(at) == label {
				right++
			}
		}
	}
	if unclear > 3 {
		t.Errorf("%d examples are not clear", unclear)
	}
	if got := correct(net, data); got < right || got > right+unclear {
		t.Errorf("%d right, want %d to %d", got, right, right+unclear)
	}
	if n := correct(net, nil); n != 0 {
		t.Errorf("%d of no examples right", n)
	}
}

// dense is x·w + b for a row x.
func dense(x, w, b []float64) []float64 {
	y := append([]float64(nil), b...)
	for j := range y {
		for i, v := range x {
			y[j] += v * w[i*len(b)+j]
		}
	}
	return y
}
