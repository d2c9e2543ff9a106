package roundtrip

import (
	"math/rand"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// Parameters that are computed from tensors by way of the host.

type sent struct{ weights []*tensor.Tensor }

func averageOnHost(params []*tensor.Param, updates []sent) {
	for i, p := range params {
		sum := make([]float32, p.Value().Size())
		for _, u := range updates {
			for j, v := range u.weights[i].Float32s() { // want `u.weights\[i\].Float32s\(\) waits for the device, and its value only goes back`
				sum[j] += v / float32(len(updates))
			}
		}
		p.Set(tensor.From(sum, p.Value().Shape()...))
	}
}

func decay(p *tensor.Param, rate float32) {
	v := p.Value().Float32s() // want `p.Value\(\).Float32s\(\) waits for the device, and its value only goes back`
	for i := range v {
		v[i] *= rate
	}
	p.Set(tensor.From(v, p.Value().Shape()...))
}

func averageOnDevice(params []*tensor.Param, updates []sent) {
	for i, p := range params {
		sum := tensor.Zeros(p.Value().Shape()...)
		for _, u := range updates {
			sum = sum.Add(u.weights[i])
		}
		p.Set(sum.DivScalar(float64(len(updates))))
	}
}

func reset(p *tensor.Param) {
	v := make([]float32, p.Value().Size())
	for i := range v {
		v[i] = rand.Float32()
	}
	p.Set(tensor.From(v, p.Value().Shape()...))
}

// The host looks at the values.
func inspect(p *tensor.Param, show func([]float32)) {
	v := p.Value().Float32s()
	for i := range v {
		v[i] /= 2
	}
	show(v)
	p.Set(tensor.From(v, p.Value().Shape()...))
}

// What is added up is an answer, and the parameter is set to something else.
func norms(p *tensor.Param, ts []*tensor.Tensor, start []float32) []float32 {
	sum := make([]float32, len(start))
	for _, t := range ts {
		for i, v := range t.Float32s() {
			sum[i] += v
		}
	}
	p.Set(tensor.From(start))
	return sum
}

// The arithmetic is in functions.

func decayInHelper(p *tensor.Param, rate float32) {
	v := p.Value().Float32s() // want `p.Value\(\).Float32s\(\) waits for the device, and its value only goes back`
	scaleBy(v, 1-rate)
	clipTo(v, 3)
	p.Set(tensor.From(v, p.Value().Shape()...))
}

func scaledByHelper(x *tensor.Tensor) *tensor.Tensor {
	v := x.Float32s() // want `x.Float32s\(\) waits for the device, and its value only goes back`
	scaleBy(v, 2)
	return tensor.From(v)
}

func scaleBy(v []float32, by float32) {
	for i := range v {
		v[i] *= by
	}
}

func clipTo(v []float32, limit float32) {
	for i, w := range v {
		v[i] = min(max(w, -limit), limit)
	}
}

// The functions do more: one looks at an order, one keeps the list, and one answers.

func smoothedInHelper(p *tensor.Param) {
	v := p.Value().Float32s()
	smoothOver(v)
	p.Set(tensor.From(v, p.Value().Shape()...))
}

func keptInHelper(p *tensor.Param) {
	v := p.Value().Float32s()
	keepScaled(v)
	p.Set(tensor.From(v, p.Value().Shape()...))
}

func answeredByHelper(p *tensor.Param) float32 {
	v := p.Value().Float32s()
	top := highest(v)
	p.Set(tensor.From(v, p.Value().Shape()...))
	return top
}

func smoothOver(v []float32) {
	last := float32(0)
	for i := range v {
		v[i] = (v[i] + last) / 2
		last = v[i]
	}
}

var kept []float32

func keepScaled(v []float32) {
	for i := range v {
		v[i] /= 2
	}
	kept = v
}

func highest(v []float32) (top float32) {
	for _, w := range v {
		top = max(top, w)
	}
	return top
}
