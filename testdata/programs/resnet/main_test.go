package main

import (
	"slices"
	"testing"

	"github.com/asyncgen/asyncgen/runtime/data"
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// Each augmented image is the image shifted, mirrored or not, in all channels alike; all that can happen does.
func TestAugment(t *testing.T) {
	tensor.Seed(1)
	const n = 400
	x := tensor.Randn(n, 3, side, side)
	before, after := x.Flatten().Float32s(), augment(x).Flatten().Float32s()
	seen := make(map[[3]int]bool)
	for i := range n {
		size := 3 * side * side
		at, found := augmentation(before[i*size:(i+1)*size], after[i*size:(i+1)*size])
		if !found {
			t.Fatalf("image %d is another one", i)
		}
		seen[at] = true
	}
	if want := 2 * (2*border + 1) * (2*border + 1); len(seen) != want {
		t.Errorf("%d of %d augmentations were drawn", len(seen), want)
	}
}

// augmentation finds whether x was mirrored, and by how much it was shifted down and right, to become y.
func augmentation(x, y []float32) ([3]int, bool) {
	for mirrored := range 2 {
		for down := -border; down <= border; down++ {
			for right := -border; right <= border; right++ {
				want := make([]float32, len(x))
				for at := range want {
					channel, row, column := at/(side*side), at/side%side-down, at%side-right
					if mirrored == 1 {
						column = side - 1 - column
					}
					if row >= 0 && row < side && column >= 0 && column < side {
						want[at] = x[channel*side*side+row*side+column]
					}
				}
				if slices.Equal(want, y) {
					return [3]int{mirrored, down, right}, true
				}
			}
		}
	}
	return [3]int{}, false
}

// The accuracy is that of all images at once, as the running means don't depend on the batch.
func TestAccuracy(t *testing.T) {
	tensor.Seed(1)
	net, images := newResNet(4, 8), draw(50, 1)
	batches := data.NewLoader(images, 10)
	for b, err := range batches.All() {
		if err != nil {
			t.Fatal(err)
		}
		net.Forward(normalise(b.X))
	}
	use := nn.Frozen(net)
	for b := range data.NewLoader(images, 50).All() {
		right := 0
		scores := use.Forward(normalise(b.X)).ArgMax(1).Int64s()
		for i, class := range b.Y.Int64s() {
			if scores[i] == class {
				right++
			}
		}
		if got, err := accuracy(use, batches); err != nil || got != float64(right)/50 {
			t.Errorf("%v, %v, want %d of 50", got, err, right)
		}
	}
}
