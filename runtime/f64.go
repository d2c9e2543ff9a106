package asyncrt

import "github.com/asyncgen/asyncgen/runtime/tensor"

// An F64 is a float64 that may not have been computed yet: see [tensor.F64].
type F64 = tensor.F64

// A Cond is a comparison of numbers that may not have been computed yet: see [tensor.Cond].
type Cond = tensor.Cond

// Const returns v as an F64.
//
//asyncgen:api pure
func Const(v float64) F64 { return tensor.Const(v) }
