// Package plots has functions that look at losses. It knows nothing of those who call them.
package plots

import "github.com/asyncgen/asyncgen/runtime/tensor"

// Live draws each loss, Some one of many, and Later none yet.
func Live(loss *tensor.Tensor) { println(loss.Item()) }

var (
	n   int
	all []*tensor.Tensor
)

func Some(loss *tensor.Tensor) {
	if n++; n%100 == 0 {
		println(loss.Item())
	}
}

func Later(loss *tensor.Tensor) { all = append(all, loss) }

// Drawn is the sum of what Later was given.
func Drawn() float64 { return tensor.Stack(0, all...).Sum().Item() }

// Above returns a function that draws losses above a limit.
func Above(limit float64) func(loss *tensor.Tensor) {
	return func(loss *tensor.Tensor) {
		if v := loss.Item(); v > limit {
			println(v)
		}
	}
}

// A Line draws, a Point does not.
type Line struct{}

func (*Line) View(loss *tensor.Tensor) { println(loss.Item()) }

type Point struct{}

func (Point) View(loss *tensor.Tensor) { all = append(all, loss) }

// Error measures.
func Error(pred, y *tensor.Tensor) float64 { return pred.Sub(y).Mean().Item() }

// A Curve grows in each step.
type Curve struct{}

func (Curve) OnStep(loss *tensor.Tensor) { println(loss.Item()) }
