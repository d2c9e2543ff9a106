package loopdata

import (
	"math"
	"math/rand"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

type decoder struct {
	width int
	rate  float32
	last  *tensor.Tensor
}

func (d *decoder) mask() *tensor.Tensor { return tensor.Ones(d.width, d.width).Transpose(0, 1) }

func (d *decoder) oneHot(i int) *tensor.Tensor {
	v := make([]float32, d.width)
	v[i] = d.rate
	return tensor.From(v)
}

// next depends on what the loop sets.
func (d *decoder) next() *tensor.Tensor { return d.last.AddScalar(1) }

func (d *decoder) run(xs []*tensor.Tensor, floor float32) (ys []*tensor.Tensor) {
	low := func() *tensor.Tensor { return tensor.From([]float32{floor, d.rate}) }
	for _, x := range xs {
		x = x.Mul(tensor.From([]float32{0.99})) // want `makes the same tensor in each iteration`
		x = x.Add(d.mask())                     // want `d.mask\(\) makes the same tensor`
		x = x.Add(d.oneHot(0))                  // want `d.oneHot\(0\) makes the same tensor`
		x = x.Add(low())                        // want `low\(\) makes the same tensor`
		x = x.Sub(tensor.Zeros(1))              // want `tensor.Zeros\(1\) makes the same tensor`
		ys = append(ys, x)
	}
	return ys
}

func hann(n int) []float32 {
	list := make([]float32, n)
	for i := range list {
		list[i] = half(float32(math.Cos(float64(i))))
	}
	return list
}

func half(x float32) float32 { return x / 2 }

func draws(n int) []float32 {
	list := make([]float32, n)
	for i := range list {
		list[i] = rand.Float32()
	}
	return list
}

func frames(xs []*tensor.Tensor, n int) (ys []*tensor.Tensor) {
	for i, x := range xs {
		ys = append(ys, x.Mul(tensor.From(hann(n)))) // want `tensor.From\(hann\(n\)\) makes the same tensor`
		ys = append(ys, x.Mul(tensor.From(hann(i))))
		ys = append(ys, x.Mul(tensor.From(draws(n))))
	}
	return ys
}

// Silent from here on.

func (d *decoder) others(xs []*tensor.Tensor, rates []float32) (ys []*tensor.Tensor) {
	for i, x := range xs {
		x = x.Mul(tensor.From([]float32{rates[i]}))
		x = x.Add(d.oneHot(i))
		ys = append(ys, x)
	}
	for _, x := range xs {
		d.last = x
		ys = append(ys, d.next())
	}
	for _, x := range xs {
		d.rate /= 2
		ys = append(ys, x.Add(d.oneHot(0)))
	}
	level := float32(1)
	at := func() *tensor.Tensor { return tensor.From([]float32{level}) }
	for _, x := range xs {
		level /= 2
		ys = append(ys, x.Add(at()))
	}
	return ys
}
