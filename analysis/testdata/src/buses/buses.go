// Package buses tells functions of events, which other packages announce.
package buses

import (
	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// An Event is what handlers are told of.
type Event struct {
	Step int
	Loss *tensor.Tensor
}

// A Handler is told of events.
type Handler func(e Event)

// A Bus has handlers by the names of events.
type Bus struct{ handlers map[string][]Handler }

// On has h told of an event, and Emit tells.
func (b *Bus) On(event string, h Handler) { b.handlers[event] = append(b.handlers[event], h) }

func (b *Bus) Emit(event string, e Event) {
	for _, h := range b.handlers[event] {
		h(e)
	}
}

// Chain calls all, Named one, EveryN one in some steps, and Late one with the event before.
func Chain(hs ...Handler) Handler {
	return func(e Event) {
		for _, h := range hs {
			h(e)
		}
	}
}

func Named(name string, h Handler) Handler {
	return func(e Event) {
		println(name)
		h(e)
	}
}

func EveryN(n int, h Handler) Handler {
	return func(e Event) {
		if e.Step%n == 0 {
			h(e)
		}
	}
}

func Late(h Handler) Handler {
	var before *Event
	return func(e Event) {
		if before != nil {
			h(*before)
		}
		before = &e
	}
}

var (
	disabled bool
	onStep   []Handler
	onEpoch  []Handler
	sparse   []Handler
	byName   = map[string]Handler{}
)

// Known makes a handler known, and Enable has it called in each step.
func Known(name string, h Handler) { byName[name] = h }

func Enable(name string) {
	if h, ok := byName[name]; ok {
		Each(h)
	}
}

// Each has h called in each step, and Pass after each epoch.
func Each(h Handler) { onStep = append(onStep, h) }
func Pass(h Handler) { onEpoch = append(onEpoch, h) }

// Step tells of a step, and Epoch of an epoch.
func Step(e Event) {
	if disabled {
		return
	}
	for _, h := range onStep {
		h(e)
	}
}

// Sparse has h called in some steps, which AfterStep is told of.
func Sparse(h Handler) { sparse = append(sparse, h) }

func AfterStep(e Event) {
	if e.Step%100 == 0 {
		for _, h := range sparse {
			h(e)
		}
	}
}

func Epoch(e Event) {
	for _, h := range onEpoch {
		h(e)
	}
}

// A Callback is called in each step of Run.
type Callback func(step int, loss *tensor.Tensor) error

// A Watch is called in each step of Run, and at its end.
type Watch func(loss *tensor.Tensor) error

// Run trains w.
func Run(opt *optim.Optimizer, w *tensor.Tensor, batches []*tensor.Tensor, callbacks []Callback, watches []Watch) error {
	var loss *tensor.Tensor
	for i, b := range batches {
		loss = b.MatMul(w).Mean()
		opt.Minimize(loss)
		for _, f := range callbacks {
			if err := f(i, loss); err != nil {
				return err
			}
		}
		for _, f := range watches {
			if err := f(loss); err != nil {
				return err
			}
		}
	}
	for _, f := range watches {
		if err := f(loss); err != nil {
			return err
		}
	}
	return nil
}

// Printed is a handler that prints.
func Printed(e Event) { println(e.Loss.Item()) }
