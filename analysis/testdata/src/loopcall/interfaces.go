package loopcall

import (
	"batch"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// Two implementations agree.
type network interface {
	Loss(b Batch) *tensor.Tensor
	Score(b Batch) float64
	Log(i int, t *tensor.Tensor)
	Each(n int, f func(int))
}

type small struct{ w *tensor.Tensor }

func (s small) Loss(b Batch) *tensor.Tensor { return batch.Loss(s.w, b) }
func (s small) Score(b Batch) float64       { return s.Loss(b).Item() }
func (s small) Log(i int, t *tensor.Tensor) { show(t) } // want `show waits`
func (s small) Each(n int, f func(int))     { batch.Each(n, f) }

type large struct{ w *tensor.Tensor }

func (l *large) Loss(b Batch) *tensor.Tensor { return b.X.MatMul(l.w) }
func (l *large) Score(b Batch) float64       { return b.X.MatMul(l.w).Item() }
func (l *large) Log(i int, t *tensor.Tensor) {
	if i%100 == 0 {
		show(t)
	}
}
func (l *large) Each(n int, f func(int)) { batch.Twice(f) }

func agree(n network, data []Batch) (total float64) {
	for i, b := range data {
		total += n.Score(b) // want `n.Score waits`
		loss := n.Loss(b)
		total += batch.Value(loss) // want `batch.Value waits`
		n.Log(i, loss)
	}
	n.Each(len(data), func(i int) {
		total += n.Score(data[i]) // want `n.Score waits`
	})
	return
}

// Two don't.
type source interface {
	Next() *tensor.Tensor
	Pair() (x, y *tensor.Tensor)
}

type file struct{}

func (file) Next() *tensor.Tensor        { return tensor.Zeros(3) }
func (file) Pair() (x, y *tensor.Tensor) { return tensor.Randn(3), tensor.Zeros(3) }

type noise struct{}

func (noise) Next() *tensor.Tensor        { return tensor.Randn(3) }
func (noise) Pair() (x, y *tensor.Tensor) { return tensor.Randn(3), tensor.Randn(3) }

func differ(s source, data []Batch) (total float64) {
	for _, b := range data {
		batch.Loss(w, b)
		total += batch.Value(s.Next())
		_, y := s.Pair()
		total += batch.Value(y)
		x, _ := s.Pair()
		total += batch.Value(x) // want `batch.Value waits`
	}
	return
}

// These are too many.
type reader interface {
	Read(t *tensor.Tensor) float64
}

type r1 struct{}
type r2 struct{}
type r3 struct{}
type r4 struct{}

func (r1) Read(t *tensor.Tensor) float64 { return t.Item() }
func (r2) Read(t *tensor.Tensor) float64 { return t.Item() }
func (r3) Read(t *tensor.Tensor) float64 { return t.Item() }
func (r4) Read(t *tensor.Tensor) float64 { return t.Item() }

func many(r reader, data []Batch) (total float64) {
	for _, b := range data {
		total += r.Read(batch.Loss(w, b))
	}
	return
}

// A variable that is assigned once, a value of a type, says which it is.
type lazy struct{ sum *tensor.Tensor }

func (l *lazy) Read(t *tensor.Tensor) float64 { l.sum = t; return 0 }

func oneReader(data []Batch) (total float64) {
	var r reader = r1{}
	for _, b := range data {
		total += r.Read(batch.Loss(w, b)) // want `r.Read waits`
	}
	return
}

func oneLazyReader(data []Batch) (total float64) {
	var r reader = &lazy{}
	for _, b := range data {
		total += r.Read(batch.Loss(w, b))
	}
	return
}

func oneReaderOfTwo(data []Batch, eager bool) (total float64) {
	var r reader = &lazy{}
	if eager {
		r = r1{}
	}
	for _, b := range data {
		total += r.Read(batch.Loss(w, b))
	}
	return
}
