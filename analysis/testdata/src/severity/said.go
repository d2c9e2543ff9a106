package severity

import (
	"boards"

	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// Functions whose comments say how often they are called.

// Halver halves the rate when the loss grows.
type Halver struct {
	opt  *optim.Optimizer
	last float64
}

// Observe is called after each batch.
func (h *Halver) Observe(loss *tensor.Tensor) {
	v := loss.Item() // want `AT005`
	if v > h.last {
		h.opt.SetRate(0.1)
	}
	h.last = v
}

// Noisy adds noise. It runs in every training step.
func Noisy(x *tensor.Tensor) *tensor.Tensor {
	v := x.Float32s() // want `AT003`
	v[0]++
	return tensor.From(v)
}

// Watch is called once for each epoch, with the mean.
func (h *Halver) Watch(loss *tensor.Tensor) {
	v := loss.Item()
	if v > h.last {
		h.opt.SetRate(0.1)
	}
	h.last = v
}

// Judge is for each batch to ask when it likes.
func (h *Halver) Judge(loss *tensor.Tensor) bool { return loss.Item() > h.last }

// Every is called in each step, and reads now and then.
func (h *Halver) Every(step int, loss *tensor.Tensor) {
	if step%100 == 0 {
		h.last = loss.Item()
	}
}

// Rates that depend on one norm.

func adaptive(opt *optim.Optimizer, base float64) func(norm *tensor.Tensor) {
	return func(norm *tensor.Tensor) {
		opt.SetRate(base / (1 + norm.Item())) // want `AT003`
	}
}

func Scaled(opt *optim.Optimizer, norm *tensor.Tensor) {
	opt.SetRate(1 / norm.Item()) // want `AT003`
}

// Silent: a rate of the host.
func given(opt *optim.Optimizer) func(norm *tensor.Tensor, rate float64) {
	return func(norm *tensor.Tensor, rate float64) { opt.SetRate(rate) }
}

// Weights that callers compute with.

type weigher interface {
	weight(loss *tensor.Tensor) float64
}

type even float64

func (e even) weight(*tensor.Tensor) float64 { return float64(e) }

type inverse struct{}

func (inverse) weight(loss *tensor.Tensor) float64 {
	return 1 / loss.Item() // want `AT012`
}

func weighedBy(w weigher, losses []*tensor.Tensor) *tensor.Tensor {
	total := tensor.Zeros(1)
	for _, l := range losses {
		total = total.Add(l.MulScalar(w.weight(l)))
	}
	return total
}

// Silent: callers only show them.

type shower interface {
	show(loss *tensor.Tensor) float64
}

func (e even) show(*tensor.Tensor) float64 { return float64(e) }

func (inverse) show(loss *tensor.Tensor) float64 { return loss.Item() }

func shown(w shower, losses []*tensor.Tensor) (all []float64) {
	for _, l := range losses {
		all = append(all, w.show(l.MulScalar(2)))
	}
	return all
}

// A field of a report of another package.
type worst struct {
	norm float64
	all  []float64
}

func (w *worst) Record(r boards.Report) {
	if v := r.NormValue(); v > w.norm { // want `AT010`
		w.norm = v
	}
}
