package batch

import (
	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// Checked returns an error beside the value.
func Checked(t *tensor.Tensor) (float64, error) { // want Checked:`^waits\(0: .*\) blocks$`
	return t.Item(), nil
}

// AfterError waits for b whenever nothing has failed.
func AfterError(a, b *tensor.Tensor) (float64, error) { // want AfterError:`^waits\(0: .*\) waits\(1: .*\) blocks$`
	v, err := Checked(a)
	if err != nil {
		return 0, err
	}
	return v + b.Item(), nil
}

// Fit trains, and so does what calls it.
func Fit(opt *optim.Optimizer, w *tensor.Tensor, data []Batch) { // want Fit:`^enqueues mutates steps trains$`
	for _, b := range data {
		opt.Minimize(Loss(w, b))
	}
}

func Refit(opt *optim.Optimizer, w *tensor.Tensor, data []Batch) { // want Refit:`^enqueues mutates steps trains$`
	Fit(opt, w, data)
}
