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

// An I64 is an int64 that may not have been computed yet: see [tensor.I64].
type I64 = tensor.I64

// ConstInt returns v as an I64.
//
//asyncgen:api pure
func ConstInt[T int | int64](v T) I64 { return tensor.ConstInt(v) }

// ConstInts returns vs as numbers, in a slice of their own: see [tensor.ConstInts].
//
//asyncgen:api pure
func ConstInts[T int | int64](vs []T) []I64 { return tensor.ConstInts(vs) }

// Either runs one of two functions, or lets the device choose between what they compute: see [tensor.Either].
//
//asyncgen:api call 1 once
//go:noinline
func Either(c Cond, then, otherwise func(), vars ...any) { tensor.Either(c, then, otherwise, vars...) }
