// Package optim has the signatures of the real package that the tests need.
package optim

import (
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

type Optimizer struct{ _ int }

// SGDOptions are the options of SGD.
type SGDOptions struct{}

func SGD(params []*nn.Param, rate float64, options ...SGDOptions) *Optimizer { return nil }

func (o *Optimizer) Rate() float64      { return 0 }
func (o *Optimizer) SetRate(to float64) {}

func (o *Optimizer) SetRateF64(to tensor.F64) {}

func (o *Optimizer) Minimize(loss *tensor.Tensor) {}
func (o *Optimizer) Step()                        {}
func (o *Optimizer) ZeroGrad()                    {}

// AdamOptions are the options of Adam.
type AdamOptions struct{}

func Adam(params []*nn.Param, rate float64, options ...AdamOptions) *Optimizer { return nil }
