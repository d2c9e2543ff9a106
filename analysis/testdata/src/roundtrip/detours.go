package roundtrip

import (
	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// Round trips over another device.

func quantise(x *tensor.Tensor) *tensor.Tensor {
	return x.To(device.CPU()).MulScalar(255).AddScalar(1).To(x.Device()) // want `round trip: what is made of x on another device comes back`
}

func quantiseLater(x *tensor.Tensor) *tensor.Tensor {
	dev := x.Device()
	h := x.To(device.CPU())
	h = h.MulScalar(255)
	return h.To(dev) // want `round trip: what is made of x`
}

func quantiseAll(n int) (sum *tensor.Tensor) {
	sum = tensor.Zeros(8)
	for range n {
		x := tensor.Randn(8)
		sum = sum.Add(x.To(device.CPU()).MulScalar(2).To(x.Device())) // want `round trip: what is made of x`
	}
	return sum
}

// The result is needed there, or comes from elsewhere.

func gather(x, on *tensor.Tensor) *tensor.Tensor {
	return x.To(device.CPU()).MulScalar(255).To(on.Device())
}

func there(x *tensor.Tensor) *tensor.Tensor { return x.To(device.CPU()).MulScalar(255) }

func along(x, w *tensor.Tensor) *tensor.Tensor { return x.Add(w.MulScalar(2).To(x.Device())) }

func main() {
	x := tensor.Randn(8)
	x.To(device.CPU()).MulScalar(255).To(x.Device()).Item() // once
}
