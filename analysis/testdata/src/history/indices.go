package history

import (
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// Results that no gradient passes, and that are detached at once.

type sorter struct {
	net nn.Module
	opt *optim.Optimizer
}

func newSorter() *sorter {
	net := nn.Sequential(nn.Dense(4), nn.ReLU(), nn.Dense(1))
	return &sorter{net, optim.SGD(net.Params(), 0.1)}
}

func (s *sorter) learn(x, y *tensor.Tensor) { s.opt.Minimize(nn.MSELoss(s.net.Forward(x), y)) }

func (s *sorter) orders(xs []*tensor.Tensor) []int64 {
	list := make([]*tensor.Tensor, len(xs))
	for i, x := range xs {
		list[i] = s.score(x).ArgSort(0, tensor.Descending)
	}
	return tensor.Concat(0, list...).Int64s()
}

func (s *sorter) score(x *tensor.Tensor) *tensor.Tensor { return s.net.Forward(x).Reshape(-1) }

func (s *sorter) hits(xs []*tensor.Tensor) float64 {
	hits, broken := tensor.Zeros(), tensor.Zeros()
	for _, x := range xs {
		hits = hits.Add(s.score(x).GtScalar(0.5).Sum())
		broken = broken.Add(s.score(x).IsNaN().Any())
	}
	return hits.Item() + broken.Item()
}

func (s *sorter) sorted(xs []*tensor.Tensor) []float32 {
	list := make([]*tensor.Tensor, len(xs))
	for i, x := range xs {
		list[i] = s.score(x).Sort(0, tensor.Descending) // want `AT023`
	}
	return tensor.Concat(0, list...).Float32s()
}

func (s *sorter) values(xs []*tensor.Tensor) (list []float64) {
	for _, x := range xs {
		value := s.net.Forward(x).Reshape(-1).Detach()
		list = append(list, value.Sum().Item())
	}
	for _, x := range xs {
		value := s.net.Forward(x).Reshape(-1) // want `keeps what a gradient needs`
		list = append(list, value.Sum().Item())
	}
	return list
}

// The second result of TopK has indices, and labels have no history.
func (s *sorter) found(xs, labels []*tensor.Tensor) float64 {
	found, top := tensor.Zeros(), tensor.Zeros()
	for i, x := range xs {
		best, at := s.score(x).TopK(3, 0, tensor.Descending)
		found = found.Add(labels[i].Take(0, at).Sum())
		top = top.Add(best.Sum()) // want `top keeps the history of best.Sum\(\) of every iteration`
	}
	return found.Item() + top.Item()
}

// Two sums in one statement.
func (s *sorter) both(xs, ys []*tensor.Tensor) float64 {
	a, b := tensor.Zeros(), tensor.Zeros()
	for i, x := range xs {
		l := nn.MSELoss(s.net.Forward(x), ys[i])
		s.opt.Minimize(l)
		a, b = a.Add(l), b.Add(l.Detach()) // want `a keeps the history of l of every iteration, and is only read; add l.Detach\(\)`
	}
	return a.Item() + b.Item()
}
