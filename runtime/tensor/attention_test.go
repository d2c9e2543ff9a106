package tensor_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// An attentionCase is a random call of Attention.
type attentionCase struct {
	lead                    []int
	heads, groups           int // 0: no axis of heads
	queries, keys, in, out  int
	causal                  bool
	mask                    string // "", "bool" or "float"
	maskShape, factorShape  []int  // factorShape is nil if there are no factors
	q, k, v, maskElements   []float64
	factors                 []float64
	qShape, kShape, vShape  []int
	resultShape, allWeights []int
}

func (c *attentionCase) String() string {
	return fmt.Sprintf("q %v, k %v, v %v, causal %v, mask %q %v, factors %v", c.qShape, c.kShape, c.vShape, c.causal, c.mask, c.maskShape, c.factorShape)
}

func randomAttention(r *rand.Rand) *attentionCase {
	c := &attentionCase{queries: 1 + r.IntN(40), in: 1 + r.IntN(9), out: 1 + r.IntN(9), causal: r.IntN(2) == 0}
	c.keys = c.queries + r.IntN(10)
	if !c.causal {
		c.keys = 1 + r.IntN(40)
	}
	for range r.IntN(3) {
		c.lead = append(c.lead, 1+r.IntN(3))
	}
	heads := func(n int) []int { return slices.Clone(c.lead) }
	if r.IntN(4) > 0 {
		c.groups = 1 + r.IntN(3)
		c.heads = c.groups * (1 + r.IntN(3))
		heads = func(n int) []int { return append(slices.Clone(c.lead), n) }
	}
	c.qShape = append(heads(c.heads), c.queries, c.in)
	c.kShape = append(heads(c.groups), c.keys, c.in)
	c.vShape = append(heads(c.groups), c.keys, c.out)
	c.resultShape = append(heads(c.heads), c.queries, c.out)
	c.allWeights = append(heads(c.heads), c.queries, c.keys)
	c.q, c.k, c.v = normal(r, size(c.qShape)), normal(r, size(c.kShape)), normal(r, size(c.vShape))
	c.mask = []string{"", "bool", "float"}[r.IntN(3)]
	narrow := func() []int {
		shape := slices.Clone(c.allWeights[r.IntN(len(c.allWeights)):])
		for i := range shape {
			if r.IntN(3) == 0 {
				shape[i] = 1
			}
		}
		return shape
	}
	if c.mask != "" {
		c.maskShape = narrow()
		c.maskElements = normal(r, size(c.maskShape))
	}
	if r.IntN(3) == 0 {
		c.factorShape = narrow()
		c.factors = normal(r, size(c.factorShape))
	}
	return c
}

func size(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}

func normal(r *rand.Rand, n int) []float64 {
	xs := make([]float64, n)
	for i := range xs {
		xs[i] = r.NormFloat64()
	}
	return xs
}

// options returns the options of the call, with a mask on the default device.
func (c *attentionCase) options() tensor.AttentionOptions {
	how := tensor.AttentionOptions{Causal: c.causal}
	switch m := tensor.From(c.maskElements, c.maskShape...); c.mask {
	case "bool":
		how.Mask = m.GtScalar(-0.5)
	case "float":
		how.Mask = m
	}
	if c.factors != nil {
		how.Factors = tensor.From(c.factors, c.factorShape...)
	}
	return how
}

// reference computes the result as the formula says, one query after the other.
func (c *attentionCase) reference() []float64 {
	result := make([]float64, size(c.resultShape))
	perGroup := 1
	if c.heads > 0 {
		perGroup = c.heads / c.groups
	}
	for row := range result[:len(result)/c.out] {
		query := row % c.queries
		group := row / c.queries / perGroup
		var weights []float64
		sum := 0.0
		for key := range c.keys {
			score := 0.0
			for i := range c.in {
				score += c.q[row*c.in+i] * c.k[(group*c.keys+key)*c.in+i]
			}
			score /= math.Sqrt(float64(c.in))
			hidden := c.causal && key > c.keys-c.queries+query
			switch m := c.at(c.maskElements, c.maskShape, row, key); c.mask {
			case "bool":
				hidden = hidden || m <= -0.5
			case "float":
				score += m
			}
			w := math.Exp(score)
			if hidden {
				w = 0
			}
			weights = append(weights, w)
			sum += w
		}
		for key, w := range weights {
			factor := 1.0
			if c.factors != nil {
				factor = c.at(c.factors, c.factorShape, row, key)
			}
			for i := range c.out {
				if sum > 0 {
					result[row*c.out+i] += factor * w / sum * c.v[(group*c.keys+key)*c.out+i]
				}
			}
		}
	}
	return result
}

// at returns the element for a row of queries and a key of a mask or factors of the given shape; 0 if there are none.
func (c *attentionCase) at(elements []float64, shape []int, row, key int) float64 {
	if elements == nil {
		return 0
	}
	index, at, step := row*c.keys+key, 0, 1
	for i := 1; i <= len(shape); i++ {
		n, m := c.allWeights[len(c.allWeights)-i], shape[len(shape)-i]
		if m > 1 {
			at += index % n * step
		}
		index /= n
		step *= m
	}
	return elements[at]
}

func TestAttention(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	for _, slab := range []int{1 << 18, 300} {
		defer tensor.SetAttentionSlab(slab)()
		for range 60 {
			c := randomAttention(r)
			q, k, v := tensor.From(c.q, c.qShape...), tensor.From(c.k, c.kShape...), tensor.From(c.v, c.vShape...)
			y := tensor.Attention(q, k, v, c.options())
			if !slices.Equal(y.Shape(), c.resultShape) {
				t.Fatalf("seed %d, %v: shape %v, want %v", seed, c, y.Shape(), c.resultShape)
			}
			want := c.reference()
			for i, got := range y.Float64s() {
				if !(math.Abs(got-want[i]) <= 1e-12*(1+math.Abs(want[i]))) {
					t.Fatalf("seed %d, %v: element %d is %v, want %v", seed, c, i, got, want[i])
				}
			}
		}
	}
}

// TestAttentionGradients compares gradients, and gradients of gradients, with those of the same formula in one piece.
func TestAttentionGradients(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 2))
	defer tensor.SetAttentionSlab(200)()
	for range 40 {
		c := randomAttention(r)
		g := tensor.From(normal(r, size(c.resultShape)), c.resultShape...)
		var results [2][]float64
		for i, attention := range []func(q, k, v *tensor.Tensor, how tensor.AttentionOptions) *tensor.Tensor{tensor.Attention, tensor.WholeAttention} {
			q, k, v := tensor.From(c.q, c.qShape...).Track(), tensor.From(c.k, c.kShape...).Track(), tensor.From(c.v, c.vShape...).Track()
			scaled := q.MulScalar(2) // a handle that the program does not keep
			y := attention(scaled, k, v, c.options())
			product := y.Mul(g)
			tensor.Dead(scaled, y)
			grads := tensor.Grad(product.Sum(), q, k, v)
			loss := tensor.Scalar(0).As(tensor.Float64)
			for _, x := range grads {
				results[i] = append(results[i], x.Float64s()...)
				loss = loss.Add(x.Mul(x.Sin()).Sum())
			}
			for _, x := range tensor.Grad(loss, q, k, v) {
				results[i] = append(results[i], x.Float64s()...)
			}
		}
		for i, got := range results[0] {
			if want := results[1][i]; !(math.Abs(got-want) <= 1e-10*(1+math.Abs(want))) {
				t.Fatalf("seed %d, %v: gradient %d is %v, want %v", seed, c, i, got, want)
			}
		}
	}
}

// TestAttentionOfRows compares a VMap over calls with one call.
func TestAttentionOfRows(t *testing.T) {
	q, k, v := tensor.Randn(3, 4, 10, 5), tensor.Randn(3, 2, 12, 5), tensor.Randn(3, 2, 12, 7)
	how := tensor.AttentionOptions{Causal: true, Mask: tensor.Rand(10, 12).GtScalar(0.3), Factors: tensor.Rand(4, 1, 12)}
	want := tensor.Attention(q, k, v, how).As(tensor.Float64).Float64s()
	got := tensor.VMap(func(x ...*tensor.Tensor) *tensor.Tensor { return tensor.Attention(x[0], x[1], x[2], how) }, q, k, v).As(tensor.Float64).Float64s()
	for i := range want {
		if math.Abs(got[i]-want[i]) > 1e-5 {
			t.Fatalf("element %d is %v, want %v", i, got[i], want[i])
		}
	}
}

// TestAttentionCausalWithLeast has a mask with the least of all numbers: it does not make a query look at later keys.
func TestAttentionCausalWithLeast(t *testing.T) {
	for _, least := range []float64{-math.MaxFloat64, -math.MaxFloat32, -2 * math.MaxFloat32} {
		for name, attention := range map[string]func(q, k, v *tensor.Tensor, how tensor.AttentionOptions) *tensor.Tensor{
			"in parts": tensor.Attention, "in one piece": tensor.WholeAttention,
		} {
			q := tensor.On(device.Default()).As(tensor.Float64).Zeros(2, 1)
			v := tensor.From([]float64{3, 100}, 2, 1).Track()
			mask := tensor.From([]float64{least, 0, least, 0}, 2, 2)
			y := attention(q, q, v, tensor.AttentionOptions{Causal: true, Mask: mask})
			if got := y.Float64s(); got[0] != 3 || got[1] != 100 {
				t.Errorf("%s, mask %v: %v, want [3 100]", name, least, got)
			}
			if got := tensor.Grad(y.Slice(0, 0, 1).Sum(), v)[0].Float64s(); got[0] != 1 || got[1] != 0 {
				t.Errorf("%s, mask %v: gradient %v, want [1 0]", name, least, got)
			}
		}
	}
}

// Queries that find nothing, as a mask hides all keys or all that they may look at has the score -Inf, get 0 and leave
// no trace in gradients, as in PyTorch. What a query finds beside keys of the score -Inf has all the weight.
func TestAttentionOfNothing(t *testing.T) {
	inf := math.Inf(1)
	for name, attention := range map[string]func(q, k, v *tensor.Tensor, how tensor.AttentionOptions) *tensor.Tensor{
		"in parts": tensor.Attention, "in one piece": tensor.WholeAttention,
	} {
		// The squares of these numbers are infinite.
		for dt, big := range map[device.DType]float64{tensor.Float32: 1e30, tensor.Float64: 1e200} {
			for _, causal := range []bool{false, true} {
				row := func(x ...float64) *tensor.Tensor { return tensor.From(x, len(x), 1).As(dt).Track() }
				q, k, v := row(-big, -big, 1, 1), row(big, big+big/8, 3, 4), row(10, 20, 30, 40)
				mask := tensor.From([]bool{
					true, true, false, false, // both have the score -Inf
					true, false, false, false,
					false, false, false, false,
					false, false, true, true,
				}, 4, 4)
				y := attention(q, k, v, tensor.AttentionOptions{Mask: mask, Causal: causal, Scale: 1})
				share := 1 / (1 + math.E) // of the first of the last two keys
				want := []float64{0, 0, 0, 40 - 10*share}
				grads := tensor.Grad(y.Sum(), q, k, v)
				slope := 10 * share * (1 - share)
				for i, pair := range [][2][]float64{
					{elements(y), want}, {elements(grads[0]), {0, 0, 0, slope}}, {elements(grads[1]), {0, 0, -slope, slope}},
					{elements(grads[2]), {0, 0, share, 1 - share}},
				} {
					for at, got := range pair[0] {
						if !(math.Abs(got-pair[1][at]) <= 0.01) {
							t.Errorf("%s, %v, causal %v: result or gradient %d is %v, want %v", name, dt, causal, i, pair[0], pair[1])
							break
						}
					}
				}
				// A mask that hides nothing.
				q = row(-big)
				y = attention(q, row(big, big), v.Slice(0, 0, 2), tensor.AttentionOptions{Mask: tensor.From([]bool{true}), Causal: causal})
				if grads := tensor.Grad(y.Sum(), q, v); y.At(0, 0) != 0 || grads[0].At(0, 0) != 0 || !slices.Equal(elements(grads[1]), []float64{0, 0, 0, 0}) {
					t.Errorf("%s, %v: %v with the gradients %v, want 0", name, dt, y, grads)
				}
				// A key of the score -Inf beside one that has a number.
				y = attention(row(1), row(-inf, -5), row(7, 9), tensor.AttentionOptions{Mask: tensor.From([]bool{true, true}, 1, 2)})
				if got := y.At(0, 0); got != 9 {
					t.Errorf("%s, %v: %v, want 9", name, dt, got)
				}
				// Without a bool mask it is as Softmax has it.
				y = attention(row(-inf), row(1, 2), row(7, 9), tensor.AttentionOptions{})
				z := attention(row(math.NaN()), row(1, 2), row(7, 9), tensor.AttentionOptions{Mask: tensor.From([]bool{true, false}, 1, 2)})
				if !math.IsNaN(y.At(0, 0)) || !math.IsNaN(z.At(0, 0)) {
					t.Errorf("%s, %v: %v and %v, want NaN", name, dt, y, z)
				}
			}
		}
	}
}

func elements(x *tensor.Tensor) []float64 { return x.As(tensor.Float64).Flatten().Float64s() }

func TestAttentionMistakes(t *testing.T) {
	x := func(shape ...int) *tensor.Tensor { return tensor.Zeros(shape...) }
	for name, call := range map[string]func(){
		"keys and values": func() { tensor.Attention(x(2, 3), x(4, 3), x(5, 3), tensor.AttentionOptions{}) },
		"widths":          func() { tensor.Attention(x(2, 3), x(4, 2), x(4, 3), tensor.AttentionOptions{}) },
		"heads":           func() { tensor.Attention(x(3, 2, 3), x(2, 4, 3), x(2, 4, 3), tensor.AttentionOptions{}) },
		"causal":          func() { tensor.Attention(x(5, 3), x(4, 3), x(4, 3), tensor.AttentionOptions{Causal: true}) },
		"mask":            func() { tensor.Attention(x(2, 3), x(4, 3), x(4, 3), tensor.AttentionOptions{Mask: x(3, 4)}) },
		"integer mask": func() {
			tensor.Attention(x(2, 3), x(4, 3), x(4, 3), tensor.AttentionOptions{Mask: x(2, 4).As(tensor.Int64)})
		},
		"factors": func() { tensor.Attention(x(2, 3), x(4, 3), x(4, 3), tensor.AttentionOptions{Factors: x(3, 4)}) },
		"bool factors": func() {
			tensor.Attention(x(2, 3), x(4, 3), x(4, 3), tensor.AttentionOptions{Factors: x(2, 4).As(tensor.Bool)})
		},
		"nil":   func() { tensor.Attention(x(2, 3), nil, x(4, 3), tensor.AttentionOptions{}) },
		"types": func() { tensor.Attention(x(2, 3), x(4, 3).As(tensor.Float64), x(4, 3), tensor.AttentionOptions{}) },
	} {
		func() {
			defer func() {
				if _, ok := recover().(*tensor.Mistake); !ok {
					t.Errorf("%s: no Mistake", name)
				}
			}()
			call()
		}()
	}
	for _, shape := range [][]int{{0, 2, 3}, {2, 0, 3}} { // no heads, no queries
		if y := tensor.Attention(x(shape...), x(shape[0], 4, 3), x(shape[0], 4, 3), tensor.AttentionOptions{}); y.Size() != 0 || y.Wait() != nil {
			t.Errorf("%v: %v", shape, y)
		}
	}
}

// Mask and factors are let go of with the graph, and at once where there is none.
func TestAttentionLetsGo(t *testing.T) {
	withoutCollector(t, func(t *testing.T, on tensor.Maker, live func() int64) {
		x := on.Ones(1, 64, 64)
		before := live()
		for _, tracked := range []bool{false, true} {
			mask, factors := on.Ones(64, 64), on.Ones(64, 64)
			p := tensor.NewParam(x.Detach())
			in := p.Value()
			if !tracked {
				in = x.Detach()
			}
			y := tensor.Attention(in, in, in, tensor.AttentionOptions{Mask: mask, Factors: factors})
			tensor.Dead(mask, factors)
			if tracked {
				sum := y.Sum()
				sum.Backward()
				p.ZeroGrad()
				tensor.Dead(sum)
			}
			tensor.Dead(in)
			tensor.Dead(y)
			if got := live(); got >= before+4*64*64 { // a mask more
				t.Errorf("tracked %v: %d bytes are in use, want %d", tracked, got, before)
			}
		}
	})
}
