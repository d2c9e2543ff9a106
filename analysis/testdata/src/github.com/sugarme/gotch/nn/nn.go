// Package nn has some signatures of the package of this name.
package nn

import "github.com/sugarme/gotch/ts"

type (
	Optimizer struct{ _ int }
	Linear    struct{ Ws *ts.Tensor }
)

func (l *Linear) Forward(xs *ts.Tensor) *ts.Tensor        { return nil }
func (opt *Optimizer) MustBackwardStep(loss *ts.Tensor)   {}
func (opt *Optimizer) BackwardStep(loss *ts.Tensor) error { return nil }
