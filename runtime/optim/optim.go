// Package optim provides optimisers, which give the parameters of a model their next values.
//
// Nothing in this package waits: updates are enqueued like any operation.
package optim

import (
	"fmt"
	"math"
	"slices"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// An Optimizer changes parameters along their gradients. It is for one
// goroutine at a time.
type Optimizer struct {
	params []*nn.Param
	rate   float64
}

var _ nn.Stateful = (*Optimizer)(nil)

// SGD returns an optimiser that does stochastic gradient descent: each step subtracts rate times
// the gradient from the parameters. It panics with a [tensor.Mistake] if the rate is negative,
// infinite or NaN.
//
//asyncgen:api pure
func SGD(params []*nn.Param, rate float64) *Optimizer {
	mustRate("SGD", rate)
	return &Optimizer{params: slices.Clone(params), rate: rate}
}

// Rate returns the learning rate.
//
//asyncgen:api value
func (o *Optimizer) Rate() float64 { return o.rate }

// mustRate panics unless parameters can move against their gradients by rate.
func mustRate(name string, rate float64) {
	if !(rate >= 0) || math.IsInf(rate, 1) {
		panic(&tensor.Mistake{Package: "optim", Op: name, Text: fmt.Sprintf("the learning rate is %v, want a number from 0 on", rate)})
	}
}

// SetRate gives the optimiser another learning rate, from the next Step on. It panics with a
// [tensor.Mistake] if that is negative, infinite or NaN.
//
//asyncgen:api mutate
func (o *Optimizer) SetRate(to float64) {
	mustRate("SetRate", to)
	tensor.Changing(rate{o})
	o.rate = to
}

// Cells lists everything that Step or SetRate changes: the parameters, and the learning rate as a
// float64 tensor on the CPU.
//
//asyncgen:api meta
func (o *Optimizer) Cells() []tensor.Cell {
	cells := make([]tensor.Cell, 0, len(o.params)+1)
	for _, p := range o.params {
		cells = append(cells, p)
	}
	return append(cells, rate{o})
}

// rate is the Cell of an optimiser's learning rate.
type rate struct{ o *Optimizer }

// Value implements tensor.Cell. The tensor is never pending.
//
//go:noinline
func (r rate) Value() *tensor.Tensor { return tensor.FromOn(device.CPU(), []float64{r.o.rate}) }

// Set implements tensor.Cell. It reads t, which doesn't wait if Value has made t.
//
//go:noinline
func (r rate) Set(t *tensor.Tensor) { r.o.rate = t.Item() }

// Step gives each parameter that has a gradient its next value.
//
//asyncgen:api mutate
//go:noinline
func (o *Optimizer) Step() {
	for _, p := range o.params {
		if g := p.Grad(); g != nil {
			v := p.Value()
			x := v.Detach()
			y := next(x, g, o.rate)
			p.Set(y)
			tensor.Dead(g, v, x, y)
		}
	}
}

// next returns x after a step against g, by one kernel: x + (-rate)*g rounds as x - rate*g does.
func next(x, g *tensor.Tensor, rate float64) *tensor.Tensor { return x.AddScaled(g, -rate) }

// ZeroGrad drops the gradients of all parameters.
//
//asyncgen:api mutate
func (o *Optimizer) ZeroGrad() {
	for _, p := range o.params {
		p.ZeroGrad()
	}
}

// Minimize takes one step that makes loss smaller: ZeroGrad, loss.Backward, Step.
//
//asyncgen:api mutate
//go:noinline
func (o *Optimizer) Minimize(loss *tensor.Tensor) {
	o.ZeroGrad()
	loss.Backward()
	o.Step()
}
