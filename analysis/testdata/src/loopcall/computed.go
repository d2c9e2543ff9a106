package loopcall

import (
	"trainers"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// Functions that another package calls in its loop, and that compute what they read, or save a model.

// excess computes how far a loss is above a floor, and reads it.
func excess(loss, floor *tensor.Tensor) float64 { return loss.Sub(floor).Item() }

type gaps struct{ all []float64 }

type pair struct{ loss, floor *tensor.Tensor }

func (p pair) gap() float64 { return p.loss.Sub(p.floor).Item() }

func computed(t *trainers.Trainer, floor *tensor.Tensor, l *gaps) {
	t.Hook(func(loss *tensor.Tensor) {
		l.all = append(l.all, excess(loss, floor)) // want `AT010`
	})
	t.Hook(func(loss *tensor.Tensor) {
		l.all = append(l.all, pair{loss, floor}.gap()) // want `AT010`
	})
	// Now and then, when it is there, and beside the loop.
	n := 0
	t.Hook(func(loss *tensor.Tensor) {
		if n++; n%100 == 0 {
			l.all = append(l.all, pair{loss, floor}.gap())
		}
	})
	t.Hook(func(loss *tensor.Tensor) {
		if loss.Ready() {
			l.all = append(l.all, pair{loss, floor}.gap())
		}
	})
	t.Hook(func(loss *tensor.Tensor) {
		go func() { l.all = append(l.all, pair{loss, floor}.gap()) }()
	})
}
