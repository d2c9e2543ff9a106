package hiddenloop

import (
	"fmt"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

type event struct {
	step int
	loss *tensor.Tensor
}

type observer interface {
	Step(e event)
	Epoch(e event)
}

// funcs make observers of functions.
type (
	stepFunc  func(e event)
	epochFunc func(e event)
)

func (f stepFunc) Step(e event) { f(e) }
func (f stepFunc) Epoch(event)  {}

func (f epochFunc) Step(int)      {}
func (f epochFunc) Epoch(e event) { f(e) }

func observers() (list []observer, finals []epochFunc) {
	lowest := 1e9
	list = append(list, stepFunc(func(e event) {
		lowest = min(lowest, e.loss.Item()) // want `AT012`
	}), stepFunc(func(e event) {
		if e.step%100 == 0 {
			fmt.Println(e.loss.Item())
		}
	}))
	finals = append(finals, epochFunc(func(e event) { fmt.Println(e.loss.Item()) }))
	return list, finals
}
