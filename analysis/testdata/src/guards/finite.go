package guards

import (
	"time"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

type event struct {
	at time.Duration
}

func finite(xs []*tensor.Tensor, w *tensor.Tensor) {
	for _, x := range xs {
		y := x.MatMul(w)
		if y.IsNaN().Any().Item() != 0 {
			continue
		}
		mark() // want `always`
	}
}

func everySecond(events []event) {
	var last time.Duration
	for _, e := range events {
		if e.at-last < time.Second {
			continue
		}
		last = e.at
		mark() // want `rarely`
	}
}
