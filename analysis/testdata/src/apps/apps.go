// Package apps passes on what it is given.
package apps

import (
	"trainers"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

type App struct{ t *trainers.Trainer }

func (a *App) Losses(f func(loss *tensor.Tensor)) { a.t.Hook(f) }
func (a *App) Totals(f func(loss *tensor.Tensor)) { trainers.WithPass(f)(a.t) }

// A Frame draws, and Error measures.
type Frame struct{}

func (Frame) View(loss *tensor.Tensor) { println(loss.Item()) }

func Error() trainers.Metric {
	return func(pred, y *tensor.Tensor) float64 { return pred.Sub(y).Mean().Item() }
}
