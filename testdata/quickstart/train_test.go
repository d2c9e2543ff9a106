package main

import (
	"testing"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// TestTrainAsync holds the generated kernel against the one it was made from.
func TestTrainAsync(t *testing.T) {
	w := tensor.Rand(4)
	var batches []*tensor.Tensor
	for range 200 {
		batches = append(batches, tensor.Rand(8, 4))
	}
	if got, want := trainAsync(w, batches), train(w, batches); got != want {
		t.Errorf("trainAsync returns %v, train %v", got, want)
	}
}
