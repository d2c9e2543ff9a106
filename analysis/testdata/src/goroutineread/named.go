package goroutineread

import (
	"sync"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

type model struct {
	w    *tensor.Tensor
	best *tensor.Tensor
}

// score computes what it waits for.
func (m *model) score(wg *sync.WaitGroup, x *tensor.Tensor, to *float64) {
	defer wg.Done()
	*to = x.MatMul(m.w).Sum().Item()
}

func (m *model) known(to *float64) { *to = m.best.Item() }

func (m *model) all(wg *sync.WaitGroup, xs []*tensor.Tensor, to *float64) {
	for _, x := range xs {
		*to += x.MatMul(m.w).Item()
	}
}

func named(m *model, xs []*tensor.Tensor, out []float64) {
	var wg sync.WaitGroup
	for i, x := range xs {
		wg.Add(1)
		go m.score(&wg, x, &out[i]) // want `AT013`
	}
	for i := range xs {
		go m.known(&out[i])
		go m.all(&wg, xs, &out[i])
	}
	wg.Wait()
}
