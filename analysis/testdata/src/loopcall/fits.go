package loopcall

import (
	"fmt"
	"iter"
	"math"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// Fits read how far they have got. A loop over fits that don't depend on each other may read what comes out.

type mixture struct{ weights, means *tensor.Tensor }

func (m *mixture) step(x *tensor.Tensor) (*mixture, *tensor.Tensor) {
	r := x.Sub(m.means).MatMul(m.weights)
	return &mixture{r.Sum(0), r.Mean(0)}, r.Mean()
}

func rounds(m *mixture, x *tensor.Tensor, n int) iter.Seq2[*mixture, float64] {
	return func(yield func(*mixture, float64) bool) {
		for range n {
			next, l := m.step(x)
			m = next
			if !yield(m, l.Item()) {
				return
			}
		}
	}
}

func climb(x *tensor.Tensor, k int) (*mixture, float64) {
	m, last := &mixture{tensor.Ones(k, k), tensor.Zeros(k)}, math.Inf(-1)
	for next, l := range rounds(m, x, 200) {
		m = next
		if l-last < 1e-5 {
			break
		}
		last = l
	}
	return m, last
}

// climbed climbs, and reads what it got once.
func climbed(x *tensor.Tensor, k int) float64 {
	m, _ := climb(x, k)
	return m.means.Norm().Item()
}

func sizes(x *tensor.Tensor) (scores []float64) {
	for k := 1; k <= 8; k++ {
		m, l := climb(x, k)
		fmt.Println(k, l, m.weights)
		scores = append(scores, m.step2(x))
	}
	return scores
}

func (m *mixture) step2(x *tensor.Tensor) float64 { return x.MatMul(m.weights).Mean().Item() }

// A solver descends along the slope of a square, and looks at it now and then.
type solver struct {
	w   *tensor.Tensor
	tol float64
}

func (s *solver) solve(a, b *tensor.Tensor) error {
	for i := range 500 {
		g := a.T().MatMul(a.MatMul(s.w).Sub(b))
		s.w = s.w.AddScaled(g, -0.1)
		if i%25 == 24 && g.Norm().Item() < s.tol {
			return nil
		}
	}
	return fmt.Errorf("no end")
}

func (s *solver) rest(a, b *tensor.Tensor) float64 { return a.MatMul(s.w).Sub(b).Norm().Item() }

func folds(as, bs []*tensor.Tensor) (rests []float64) {
	for i := range as {
		s := &solver{w: tensor.Zeros(8)}
		if err := s.solve(as[i], bs[i]); err == nil {
			rests = append(rests, s.rest(as[i], bs[i]))
		}
	}
	return rests
}

// continued goes on with what the fit has found: its iterations are those of one computation.
func continued(x *tensor.Tensor) *tensor.Tensor {
	for range 50 {
		m, _ := climb(x, 3)
		x = x.Sub(m.means.MatMul(x))
		if m.step2(x) < 1e-6 { // want `m.step2 waits`
			break
		}
	}
	return x
}
