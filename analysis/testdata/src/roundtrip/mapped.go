package roundtrip

import (
	"math"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

func mapped(x *tensor.Tensor) *tensor.Tensor {
	v := x.Float32s() // want `round trip: x.Float32s\(\) waits for the device, and its value only goes back into tensor operations; use the tensor itself \[AT003\]`
	top := float32(1e-9)
	for _, e := range v {
		top = max(top, e, -e)
	}
	for i := range v {
		v[i] = float32(math.Sqrt(float64(v[i] / top)))
	}
	return tensor.From(v)
}

// Silent.

func mixedUp(x *tensor.Tensor) *tensor.Tensor {
	v := x.Float32s()
	for i := range v {
		if i > 0 {
			v[i] += v[i-1]
		}
	}
	return tensor.From(v)
}

func filtered(x *tensor.Tensor, a float32) *tensor.Tensor {
	v := x.Float32s()
	y := float32(0)
	for i, e := range v {
		y = a*y + (1-a)*e
		v[i] = y
	}
	return tensor.From(v)
}

func askedEach(x *tensor.Tensor, ask func(float32) float32) *tensor.Tensor {
	v := x.Float32s()
	for i := range v {
		v[i] = ask(v[i])
	}
	return tensor.From(v)
}

// The result gets another form.
func roundedAs(x *tensor.Tensor) *tensor.Tensor {
	v := x.Float32s() // want `round trip`
	for i := range v {
		v[i] = float32(math.Round(float64(v[i])))
	}
	return tensor.From(v).As(tensor.Int64).Reshape(x.Shape()...)
}

// It is looked at.
func roundedAndRead(x *tensor.Tensor) (*tensor.Tensor, float64) {
	v := x.Float32s()
	for i := range v {
		v[i] = float32(math.Round(float64(v[i])))
	}
	return x, tensor.From(v).Sum().Item()
}
