package history

import (
	"batch"
	"fmt"

	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// averages forget numbers, but no history.
func averages(m *model, opt *optim.Optimizer, data []batch.Batch) float64 {
	avg, cut, state := tensor.Zeros(), tensor.Zeros(), tensor.Zeros(3)
	for _, b := range data {
		loss := m.loss(b)
		opt.Minimize(loss)
		avg = avg.MulScalar(0.9).Add(loss.MulScalar(0.1)) // want `avg keeps the history of loss.MulScalar\(0.1\)`
	}
	for _, b := range data {
		cut = cut.MulScalar(0.9).Add(m.loss(b).Detach())
	}
	for _, b := range data {
		state = state.MatMul(m.w.Value()).Add(m.forward(b.X)) // want `state keeps the history of every iteration before`
	}
	fmt.Println(state)
	return avg.Item() + cut.Item()
}
