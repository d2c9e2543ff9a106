package main

import (
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// network returns two convolutions, each of which halves the image, and a layer with a score for each digit.
func network() nn.Module {
	by2 := tensor.Conv{Stride: tensor.Both(2)}
	return nn.Sequential(
		nn.Conv2D(8, tensor.Both(3), by2), nn.ReLU(),
		nn.Conv2D(16, tensor.Both(3), by2), nn.ReLU(),
		nn.Flatten(), nn.Dropout(0.25), nn.Dense(10),
	)
}

// pixels returns images as the network takes them: numbers from 0 to 1, with one channel.
func pixels(images *tensor.Tensor) *tensor.Tensor {
	return images.As(tensor.Float32).DivScalar(255).Unsqueeze(1)
}
