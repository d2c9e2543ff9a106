package batch

import "github.com/asyncgen/asyncgen/runtime/tensor"

// A Gauge is the only type with its method, which waits.
type Gauge struct{}

func (*Gauge) Gauged(t *tensor.Tensor) float64 { return t.Square().Item() } // want Gauged:`waits`

// An A and a B have the same method. Only one waits.
type A struct{}
type B struct{}

func (*A) Rated(t *tensor.Tensor) float64 { return t.Square().Item() } // want Rated:`waits`
func (*B) Rated(t *tensor.Tensor) float64 { return float64(t.Dim(0)) }
