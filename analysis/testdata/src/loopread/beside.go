package loopread

import (
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// Readers of channels to which goroutines beside them send.

type measured struct{ loss *tensor.Tensor }

func sends(net nn.Module, xs []*tensor.Tensor, to chan<- measured) {
	for _, x := range xs {
		to <- measured{net.Forward(x).Mean()}
	}
	close(to)
}

func makesChannel(net nn.Module, xs []*tensor.Tensor) <-chan measured {
	to := make(chan measured, 8)
	go sends(net, xs, to)
	return to
}

func reads(from <-chan measured) (sum float64) {
	for m := range from {
		sum += m.loss.Item()
	}
	return sum
}

func readsUnknown(from <-chan measured) (sum float64) {
	for m := range from {
		sum += m.loss.Item() // want `blocking read in loop`
	}
	return sum
}

func starts(net nn.Module, xs []*tensor.Tensor, others chan measured) float64 {
	to, more := make(chan measured, 8), make(chan measured, 8)
	go sends(net, xs, to)
	go func() {
		more <- measured{net.Forward(xs[0])}
		close(more)
	}()
	return reads(to) + reads(more) + reads(makesChannel(net, xs)) + readsUnknown(others)
}

// What is told of each batch makes the loop over batches no outer one.

type listener interface {
	Name() string
	Update(scores, labels *tensor.Tensor)
	Value() float64
}

func toListeners(net nn.Module, batches [][2]*tensor.Tensor, all []listener) (sum float64) {
	for _, b := range batches {
		scores := net.Forward(b[0])
		sum += scores.Mean().Item() // want `AT001`
		for _, m := range all {
			m.Update(scores, b[1])
		}
	}
	return sum
}

type mean struct {
	total *tensor.Tensor
	n     float64
}

func (m *mean) Name() string { return "mean" }
func (m *mean) Update(scores, labels *tensor.Tensor) {
	m.total, m.n = m.total.Add(scores.Mean()), m.n+1
}
func (m *mean) Value() float64 { return m.total.Item() / m.n }

var _ listener = (*mean)(nil)
