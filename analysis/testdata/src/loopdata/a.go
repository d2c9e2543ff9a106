package loopdata

import "github.com/asyncgen/asyncgen/runtime/tensor"

type config struct {
	Width int
	Rate  float64
}

type state struct {
	width   int
	weights []float32
}

func remade(xs []*tensor.Tensor, weights []float32, cfg config) (ys []*tensor.Tensor) {
	n := len(weights)
	for i, x := range xs {
		y := x.Mul(tensor.From(weights))                        // want `tensor.From\(weights\) makes the same tensor in each iteration; make it before the loop \[AT025\]`
		y = y.Add(tensor.Zeros(n, cfg.Width))                   // want `tensor.Zeros\(n, cfg.Width\) makes`
		y = y.Add(tensor.From([]float32{1, float32(cfg.Rate)})) // want `AT025`
		y = y.Add(tensor.Ones(x.Dim(0), i))
		y = y.Sub(tensor.From[float32](weights, n-1)) // want `AT025`
		if weights[0] > 0 {
			y = y.MulScalar(2)
		}
		ys = append(ys, y)
	}
	return ys
}

// Silent from here on.

func fill(data []float32) {}

func changing(xs []*tensor.Tensor, weights, other, third []float32, s *state, next func() float32) (ys []*tensor.Tensor) {
	for i, x := range xs {
		weights[i%len(weights)]++
		fill(other)
		alias := third
		alias[0] = 2
		y := x.Mul(tensor.From(weights)).Add(tensor.From(other)).Add(tensor.From(third))
		y = y.Add(tensor.Zeros(i)).Add(tensor.From([]float32{next()}))
		y = y.Add(tensor.From(s.weights)).Add(tensor.Zeros(s.width))
		s.grow()
		if i == 0 {
			y = y.Add(tensor.Ones(3))
		}
		ys = append(ys, y)
	}
	return ys
}

func (s *state) grow() { s.width++ }

func outer(xs []*tensor.Tensor, epochs int) (sums []*tensor.Tensor) {
	for range epochs {
		sum := tensor.Zeros()
		for _, x := range xs {
			sum = sum.Add(x)
		}
		sums = append(sums, sum)
	}
	for range 3 {
		sums = append(sums, tensor.Zeros().AddScalar(1))
	}
	for range epochs {
		sums = append(sums, tensor.Zeros())
	}
	return sums
}
