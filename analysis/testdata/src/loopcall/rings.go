package loopcall

import (
	"boards"
	"rings"

	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// Containers of a package that knows nothing of tensors.

type window struct{ *rings.Ring[*tensor.Tensor] }

func (w window) mean() (m float64) {
	for t := range w.All() {
		m += t.Item() / float64(w.Len())
	}
	return m
}

func windows(w window, xs []*tensor.Tensor) (sum float64) {
	for _, x := range xs {
		w.Push(x.Mean())
		sum += w.mean() // want `w.mean waits for the device`
	}
	return sum
}

// Silent: what comes out may be old, and this container has nothing of the loop.
func windowsNot(w, other window, n *rings.Ring[float64], xs []*tensor.Tensor) (sum float64) {
	for _, x := range xs {
		sum += w.Push(x.Mean()).Item()
	}
	for _, x := range xs {
		w.Push(x.Mean())
		sum += other.mean()
	}
	for _, x := range xs {
		x.Mean()
		n.Push(1)
		for v := range n.All() {
			sum += v
		}
	}
	return sum
}

// The parts of a model are no data.
func changes(all []*boards.Change, net nn.Module, xs []*tensor.Tensor) (sum float64) {
	for _, c := range all {
		sum += c.Size() // want `c.Size waits for the device in each iteration`
	}
	for range 100 {
		sum += boards.Error(net, xs)
	}
	return sum
}

// Functions that are called in a loop of another function, or at the end of a pass.
func reported(net nn.Module, xs []*tensor.Tensor, m *mean) {
	each, passes := boards.Batches(net, xs), boards.Epochs(net, xs, 100)
	each(m.report) // want `m.report waits for the device`
	passes(m.report)
}

type mean struct{ sum float64 }

func (m *mean) report(loss *tensor.Tensor) { m.sum += loss.Item() }
