package main

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// TestGenerate holds texts and likelihoods against the same transformer on slices of
// float64, which looks at the whole text for each character.
func TestGenerate(t *testing.T) {
	stopped := 0
	for seed := range uint64(8) {
		tensor.Seed(seed)
		m := newModel(16, 40)
		for _, prompt := range []string{"a", "hello there"} {
			for _, limit := range []int{0, 1, 20} {
				var out strings.Builder
				n, likelihood := m.generate(&out, encode(prompt), limit)
				text, want := oracle(m, encode(prompt), limit)
				if got := encode(out.String()); !slices.Equal(got, text) || n != len(text) || math.Abs(likelihood-want) > 1e-3 {
					t.Errorf("seed %d, prompt %q, limit %d: %v, %d characters with %g, want %v with %g", seed, prompt, limit, got, n, likelihood, text, want)
				}
				if n < limit {
					stopped++
				}
			}
		}
	}
	if stopped == 0 {
		t.Error("no text ended by itself")
	}
}

// oracle returns what follows the prompt, and the logarithm of its chance.
func oracle(m *model, text []int64, limit int) ([]int64, float64) {
	w := m.width
	weights := func(x *tensor.Tensor) []float64 { return x.As(tensor.Float64).Flatten().Float64s() }
	tokens, positions := weights(m.tokens), weights(m.positions)
	query, key, value, mix := weights(m.query), weights(m.key), weights(m.value), weights(m.mix)
	up, down, scores := weights(m.up), weights(m.down), weights(m.scores)

	prompt, likelihood := len(text), 0.0
	for len(text)-prompt < limit {
		var embedded [][]float64
		for i, token := range text {
			x := make([]float64, w)
			for j := range x {
				x[j] = tokens[int(token)*w+j] + positions[i*w+j]
			}
			embedded = append(embedded, x)
		}
		last := embedded[len(text)-1]
		q := times(last, query, w)
		attention := make([]float64, len(text))
		for i, x := range embedded {
			for j, k := range times(x, key, w) {
				attention[i] += q[j] * k / math.Sqrt(float64(w))
			}
		}
		sum := logSum(attention)
		seen := make([]float64, w)
		for i, x := range embedded {
			for j, v := range times(x, value, w) {
				seen[j] += math.Exp(attention[i]-sum) * v
			}
		}
		x := normal(plus(last, times(seen, mix, w)))
		hidden := times(x, up, 4*w)
		for i, h := range hidden {
			hidden[i] = h * 0.5 * (1 + math.Erf(h/math.Sqrt2))
		}
		x = normal(plus(x, times(hidden, down, w)))

		chances := times(x, scores, len(alphabet))
		best := 0
		for i, c := range chances {
			if c > chances[best] {
				best = i
			}
		}
		likelihood += chances[best] - logSum(chances)
		if int64(best) == stop {
			break
		}
		text = append(text, int64(best))
	}
	return text[prompt:], likelihood
}

// times is a row times a matrix with so many columns.
func times(x, matrix []float64, columns int) []float64 {
	y := make([]float64, columns)
	for i, v := range x {
		for j := range y {
			y[j] += v * matrix[i*columns+j]
		}
	}
	return y
}

func plus(x, y []float64) []float64 {
	z := make([]float64, len(x))
	for i := range z {
		z[i] = x[i] + y[i]
	}
	return z
}

// normal gives x mean 0 and variance 1.
func normal(x []float64) []float64 {
	n, mean, variance := float64(len(x)), 0.0, 0.0
	for _, v := range x {
		mean += v / n
	}
	for _, v := range x {
		variance += (v - mean) * (v - mean) / n
	}
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = (v - mean) / math.Sqrt(variance+1e-5)
	}
	return y
}

// logSum is the logarithm of the sum of e to the power of each.
func logSum(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += math.Exp(v)
	}
	return math.Log(sum)
}
