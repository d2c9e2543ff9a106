package adjacentread

import (
	"fmt"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// Numbers that one statement reads one by one.

type summary struct{ lo, mean, hi float64 }

func stats(x *tensor.Tensor) (mean, lo, hi float64) {
	return x.Mean().Item(), x.Min().Item(), x.Max().Item() // want `the statement reads 3 numbers one by one`
}

func summarized(x *tensor.Tensor) summary {
	return summary{x.Min().Item(), x.Mean().Item(), x.Max().Item()} // want `3 numbers`
}

func (s *summary) set(x *tensor.Tensor) {
	s.lo, s.mean, s.hi = x.Min().Item(), x.Mean().Item(), x.Max().Item() // want `3 numbers`
}

// Silent.

func span(x *tensor.Tensor) (lo, hi float64) { return x.Min().Item(), x.Max().Item() }

func held(a, b, c *tensor.Tensor) [3]float64 { return [3]float64{a.Item(), b.Item(), c.Item()} }

func shown(x *tensor.Tensor) { fmt.Println(x.Min().Item(), x.Mean().Item(), x.Max().Item()) }
