// Package gotorch has some signatures of the package of this name.
package gotorch

type (
	Tensor    struct{ T *int }
	Optimizer struct{ _ int }
)

func Randn(shape []int64, requiresGrad bool) Tensor { return Tensor{} }
func MM(a, b Tensor) Tensor                         { return Tensor{} }
func GC()                                           {}

func (a Tensor) Mean() Tensor                             { return Tensor{} }
func (a Tensor) Item() any                                { return nil }
func (a Tensor) String() string                           { return "" }
func (a Tensor) Backward()                                {}
func (a *Tensor) AddI(other Tensor, alpha float32) Tensor { return Tensor{} }
func (opt Optimizer) Step()                               {}
func (opt Optimizer) ZeroGrad()                           {}
