// Package host computes with lists of numbers, and knows no tensors.
package host

// Solve puts the solution into x.
func Solve(x *[]float32, b []float32) error { *x = b; return nil }

// A Vector is a list of numbers.
type Vector struct{ Elements []float32 }

// Solve puts the solution into x.
func (v *Vector) Solve(x *Vector, b []float32) error { x.Elements = b; return nil }
