package hiddenloop

import (
	"trainers"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// A function that an option sets.

type optional struct{ each func(*tensor.Tensor) }

func each(f func(*tensor.Tensor)) func(*optional) { return func(s *optional) { s.each = f } }

func runWith(xs []*tensor.Tensor, options ...func(*optional)) {
	var s optional
	for _, o := range options {
		o(&s)
	}
	for _, x := range xs {
		if s.each != nil {
			s.each(x.Mul(x))
		}
	}
}

func optioned(xs []*tensor.Tensor) (values []float64) {
	runWith(xs, each(func(x *tensor.Tensor) { values = append(values, x.Mean().Item()) })) // want `blocking read in hidden loop`
	return values
}

// One in a field of a generic type of another package.
func tabled(xs []*tensor.Tensor) []float64 {
	t := trainers.Table[float64]{Of: func(loss *tensor.Tensor) float64 { return loss.Item() }} // want `blocking read in hidden loop`
	return t.Fill(xs)
}

func kept(xs []*tensor.Tensor) []*tensor.Tensor {
	t := trainers.Table[*tensor.Tensor]{Of: (*tensor.Tensor).Detach}
	return t.Fill(xs)
}
