package loopdata

import (
	"math"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

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

// causal makes a mask of n by n.
func causal(n int, low float32) *tensor.Tensor {
	mask := make([]float32, n*n)
	for i := range n {
		for j := i + 1; j < n; j++ {
			mask[i*n+j] = low
		}
	}
	return tensor.From(mask, n, n)
}

type series struct {
	name   string
	values []float32
}

func (s series) size() int { return len(s.values) }

func called(xs []*tensor.Tensor, w *tensor.Tensor, s series) (ys []*tensor.Tensor) {
	for _, x := range xs {
		y := x.Add(causal(w.Dim(0), -1e9))       // want `causal\(w.Dim\(0\), -1e9\) makes the same tensor`
		y = y.Mul(w.As(tensor.Float64))          // want `w.As\(tensor.Float64\) makes the same tensor`
		y = y.Add(tensor.Ones(s.size()))         // want `tensor.Ones\(s.size\(\)\) makes`
		y = y.Add(tensor.Ones(len(s.values), 3)) // want `tensor.Ones\(len\(s.values\), 3\) makes`
		ys = append(ys, y)
	}
	return ys
}

func each(xs []*tensor.Tensor, f func(x *tensor.Tensor)) {
	for _, x := range xs {
		f(x)
	}
}

func inLiterals(xs []*tensor.Tensor, angle float64) (ys []*tensor.Tensor) {
	each(xs, func(x *tensor.Tensor) {
		y := x.Sub(tensor.Ones(3)) // want `tensor.Ones\(3\) makes the same tensor in each iteration`
		ys = append(ys, y.Add(tensor.Ones(x.Dim(0))))
	})
	for _, x := range xs {
		kernel := []float32{0, 1, 0}
		changed := []float32{0, 1, 0}
		fill(changed)
		turn := tensor.From([]float64{math.Cos(angle), math.Sin(angle)}) // want `makes the same tensor in each iteration`
		ys = append(ys, turn)
		ys = append(ys, x.Mul(tensor.From(kernel)), x.Mul(tensor.From(changed))) // want `tensor.From\(kernel\) makes`
	}
	return ys
}

// Silent from here on.

var seen float32

// counted makes something else in each call.
func counted(n int) *tensor.Tensor {
	seen++
	return tensor.From([]float32{seen, 1}, n)
}

func noise(n int) *tensor.Tensor { return tensor.Randn(n).Add(tensor.Ones(n)) }

func given(x *tensor.Tensor, n int) *tensor.Tensor { return x.Add(tensor.Ones(n)) }

func calledInVain(xs []*tensor.Tensor, w *tensor.Tensor, s series, n int) (ys []*tensor.Tensor) {
	for i, x := range xs {
		y := x.Add(causal(x.Dim(0), -1)).Add(causal(n, float32(i))).Add(counted(n)).Add(noise(n))
		y = y.Mul(x.As(tensor.Float64)).Add(given(x, n)).Add(tensor.Ones(s.size()))
		s.values = s.values[1:]
		w = w.AddScalar(1)
		ys = append(ys, y.Add(w.As(tensor.Float64)))
	}
	return ys
}

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

func (s *state) load(w []float32) { s.weights = w }

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
