// Package outputs returns tensors in structs. // want package:"reaches asyncgen"
package outputs

import "github.com/asyncgen/asyncgen/runtime/tensor"

// An Output is what a step gives.
type Output struct {
	Loss, Acc *tensor.Tensor
	Parts     []*tensor.Tensor
	Name      string
}

// Step returns a struct.
func Step(x *tensor.Tensor) Output { // want Step:`returns\(pending\) enqueues`
	y := x.AddScalar(1)
	return Output{Loss: y.Mean(), Acc: y.Norm(), Parts: []*tensor.Tensor{y}}
}

// Fill sets the fields of a variable.
func Fill(x *tensor.Tensor) *Output { // want Fill:`returns\(pending\) enqueues`
	o := new(Output)
	o.Loss = x.Mean()
	return o
}

// Of reads a field of what it is given.
func Of(o Output) float64 { return o.Loss.Item() } // want Of:`waits\(own: .*blocks`

// A Model is generic.
type Model[T any] struct {
	W    *tensor.Tensor
	Tags []T
}

// Step is a method of an instance.
func (m *Model[T]) Step(x *tensor.Tensor) Output { // want Step:`returns\(pending\) enqueues`
	return Step(x.MatMul(m.W))
}
