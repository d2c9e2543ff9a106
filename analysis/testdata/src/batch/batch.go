// Package batch is a library of a user, whose facts other packages import. // want package:"reaches asyncgen"
package batch

import (
	"fmt"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

type Batch struct{ X, Y *tensor.Tensor }

// Loss does not wait.
func Loss(w *tensor.Tensor, b Batch) *tensor.Tensor { // want Loss:`returns\(pending\) tracks\(0\) makes enqueues`
	return b.X.MatMul(w).Sub(b.Y).Mean()
}

// Value waits for its argument.
func Value(t *tensor.Tensor) float64 { // want Value:`waits\(0: batch.go:19 t.Item\(\)\) blocks`
	return t.Item()
}

// Deep waits for its argument, two calls deep.
func Deep(t *tensor.Tensor) float64 { return Value(t) } // want Deep:`waits\(0: batch.go:23 Value, batch.go:19 t.Item\(\)\) blocks`

func Deeper(t *tensor.Tensor) float64 { return Deep(t) } // want Deeper:`waits\(0: batch.go:25 Deep, batch.go:23 Value, batch.go:19 t.Item\(\)\) blocks`

// Deepest waits too, but nobody wants to hear of it.
func Deepest(t *tensor.Tensor) float64 { return Deeper(t) } // want Deepest:`^blocks$`

// Second waits for its second argument only.
func Second(a, b *tensor.Tensor) float64 { // want Second:`waits\(1: `
	return float64(a.Dim(0)) + b.Item()
}

// Report waits rarely.
func Report(step int, t *tensor.Tensor) { // want Report:`waits\(1 rarely: `
	if step%100 == 0 {
		fmt.Println(step, t)
	}
}

// Check waits for its argument in any case.
func Check(t *tensor.Tensor, err error) float64 { // want Check:`waits\(0: batch.go:\d+ t.Item`
	if err != nil {
		fmt.Println(t)
	}
	return t.Item()
}

// Sum waits in a loop of its own.
func Sum(ts []*tensor.Tensor) float64 { // want Sum:`waits\(0 in loop: `
	var sum float64
	for _, t := range ts {
		sum += t.Item()
	}
	return sum
}

// Same returns what it is given.
func Same(t *tensor.Tensor) *tensor.Tensor { return t.Reshape(1) } // want Same:`^returns\(0\) tracks\(0\) makes$`

// Equal compares its operands.
func Equal[T comparable](x, y T) bool { return x == y } // want Equal:`^compares\(0\|1\)$`

// Origin makes tensors of host data.
func Origin() *tensor.Tensor { return tensor.Zeros(1) } // want Origin:`^makes$`

// Each calls f in a loop, Once calls it once.
func Each(n int, f func(i int)) { // want Each:`^loops\(1\)$`
	for i := range n {
		f(i)
	}
}

func Once(f func()) { f() } // want Once:`^calls\(0\)$`

// Twice passes f on.
func Twice(f func(int)) { Each(2, f) } // want Twice:`^loops\(0\)$`

// A Mean keeps a running sum on the device.
type Mean struct {
	sum *tensor.Tensor
	n   int
}

func (m *Mean) Add(t *tensor.Tensor) { // want Add:`^sums\(0\) enqueues$` Add:`^sets batch.Mean$`
	m.sum = m.sum.Add(t)
	m.n++
}

// Value waits for what Add enqueued.
func (m *Mean) Value() float64 { // want Value:`waits\(own: .*\) blocks`
	return m.sum.Item() / float64(m.n)
}

// Show waits for what it stores first.
func (m *Mean) Show(t *tensor.Tensor) { // want Show:`waits\(own: .*\) waits\(0: .*\) blocks` Show:`^sets batch.Mean$`
	m.sum = t
	fmt.Println(m.sum)
}

// Async waits on another goroutine.
func Async(t *tensor.Tensor) {
	go fmt.Println(t)
}

// Steps iterates over results that it enqueues.
func Steps(w *tensor.Tensor, data []Batch) func(yield func(int, *tensor.Tensor) bool) { // want Steps:`^returns func\{loops\(0 with host, pending\) enqueues\}$`
	return func(yield func(int, *tensor.Tensor) bool) {
		for i, b := range data {
			if !yield(i, Loss(w, b)) {
				return
			}
		}
	}
}

// All iterates over what it is given.
func All(ts []*tensor.Tensor, yield func(*tensor.Tensor) bool) { // want All:`^loops\(1 with 0\)$`
	for _, t := range ts {
		yield(t)
	}
}

// Visit calls f with a result; Visits passes that on.
func Visit(b Batch, f func(*tensor.Tensor)) { // want Visit:`^calls\(1 with pending\) enqueues$`
	f(Loss(b.X, b))
}

func Visits(b Batch, f func(*tensor.Tensor)) { // want Visits:`^loops\(1 with pending\) enqueues$`
	for range 10 {
		Visit(b, f)
	}
}

// Reader returns a function that waits for its argument.
func Reader() func(*tensor.Tensor) float64 { return Value } // want Reader:`^returns func\{waits\(0: .*\) blocks\}$`

// Handed waits by way of a function that it passes on.
func Handed(b Batch) { Visit(b, show) } // want Handed:`^waits\(own: batch.go:\d+ show, batch.go:\d+ fmt.Println\) blocks enqueues$`

func show(t *tensor.Tensor) { fmt.Println(t) } // want show:`waits\(0: `

// Map is given the function that does the work.
func Map(f func(*tensor.Tensor) *tensor.Tensor, t *tensor.Tensor) *tensor.Tensor { // want Map:`^returns\(pending\) tracks\(1\) calls\(0 with 1\) enqueues$`
	return f(t)
}

// Logf prints its arguments.
func Logf(format string, args ...any) { fmt.Printf(format, args...) } // want Logf:`^prints\(1... by 0\)$`

// Model has a field that its method assigns.
type Model struct{ Mean *tensor.Tensor }

func (m *Model) Update(b Batch) { m.Mean = m.Mean.Add(b.X) } // want Update:`^enqueues$` Update:`^sets batch.Model$`

// Every returns a function that calls f in every n-th call.
func Every(n int) func(f func()) { // want Every:`returns func\{rarely calls\(0\)\}`
	calls := 0
	return func(f func()) {
		if calls%n == 0 {
			f()
		}
		calls++
	}
}
