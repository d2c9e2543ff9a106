package loopcall

import (
	"apps"
	"plots"
	"trainers"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// What has its finding where it is written: a method with the name of a step, and what is written for this very loop.
func foundAtHome(b *trainers.Bench, xs []*tensor.Tensor) {
	trainers.Follow(xs, plots.Curve{})
	trainers.Show(xs, apps.Frame{})
	b.Metric("error", apps.Error())
}
