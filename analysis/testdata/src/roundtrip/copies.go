package roundtrip

import (
	"math"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

type average struct {
	params []*tensor.Param
	values []*tensor.Tensor
	decay  float32
}

func (a *average) update() {
	for i, p := range a.params {
		v, w := p.Value().Float32s(), a.values[i].Float32s() // want `p.Value\(\).Float32s\(\) goes back` `a.values\[i\].Float32s\(\) goes back`
		for j := range v {
			w[j] = a.decay*w[j] + (1-a.decay)*v[j]
		}
		a.values[i] = tensor.From(w)
	}
}

func halved(list []float32) []float32 {
	for i := range list {
		list[i] /= 2
	}
	return list
}

func (a *average) halve() {
	for i, v := range a.values {
		half := halved(v.Float32s()) // want `v.Float32s\(\) goes back`
		a.values[i] = tensor.From(half)
	}
	for i, v := range a.values {
		a.values[i] = tensor.From(halved(v.Float32s())) // want `v.Float32s\(\) goes back`
	}
}

func (a *average) sums() {
	for i, v := range a.values {
		sum := make([]float32, 1)
		for _, x := range v.Float32s() { // want `v.Float32s\(\) goes back`
			sum[0] += x
			sum[0] = sum[0] + x
		}
		a.values[i] = tensor.From(sum)
	}
}

func rounded(t *tensor.Tensor) *tensor.Tensor {
	list := t.Float32s() // want `round trip: t.Float32s\(\) waits`
	for i, x := range list {
		list[i] = float32(math.Round(float64(x)))
	}
	return tensor.From(list)
}

func (a *average) round() {
	for i, v := range a.values {
		a.values[i] = rounded(v) // want `round trip in loop: the value of rounded goes back into a tensor operation`
	}
}

// Silent: what is saved, and what comes from elsewhere.

func (a *average) save() (all [][]float32) {
	for _, v := range a.values {
		all = append(all, v.Float32s())
	}
	return all
}

func (a *average) load(all [][]float32) {
	for i := range a.values {
		a.values[i] = tensor.From(halved(all[i]))
	}
}

func first(ts []*tensor.Tensor) *tensor.Tensor { return rounded(ts[0]) }
