package loopexit

import (
	"errors"
	"fmt"
	"log"
	"math"

	"batch"
	"stepping"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// A loop that asks only whether to give up is a warning: hardly ever has it to.

func alarms(w *tensor.Tensor, data []Batch) error {
	for _, b := range data {
		if math.IsNaN(batch.Loss(w, b).Item()) { // want `before more can be enqueued; look every so many iterations, or after the loop \[AT005\]`
			return errors.New("diverged")
		}
	}
	for _, b := range data {
		if math.IsInf(batch.Loss(w, b).Item(), 0) { // want `look every so many iterations`
			break
		}
	}
	for i, b := range data {
		if v := batch.Loss(w, b).Item(); v > 1e6 { // want `look every so many iterations`
			return fmt.Errorf("batch %d: %v", i, v)
		}
	}
	for _, b := range data {
		v := batch.Loss(w, b).Item() // want `look every so many iterations`
		if v > 1e6 {
			log.Fatal("diverged")
		}
	}
	return nil
}

// One that may end well is not.

func ends(w *tensor.Tensor, data []Batch) (float64, error) {
	for _, b := range data {
		v := batch.Loss(w, b).Item() // want `decide every so many iterations`
		if v < 1e-6 {
			return v, nil
		}
		if math.IsNaN(v) {
			return 0, errors.New("diverged")
		}
	}
	return 0, nil
}

// What was read before the loop does not excuse what is read in it.
func counted(from, x *tensor.Tensor) (n int64) {
	for i := from.ItemInt(); i > 0 && x.Norm().Item() > 1; i-- { // want `AT005`
		x = x.MulScalar(0.5)
		n = i
	}
	return n
}

// What a hook asks about the step before has had a step's time. For what it asks about this step, it waits.
type late struct{ last *tensor.Tensor }

func (h *late) OnStep(step int, loss *tensor.Tensor) {
	if h.last != nil && h.last.Item() > 1e9 {
		panic("it explodes")
	}
	h.last = loss.MulScalar(2)
}

func (h *late) OnEpoch(int, *tensor.Tensor) {}

type early struct{ limit float64 }

func (h *early) OnStep(step int, loss *tensor.Tensor) {
	if loss.Detach().Item() > h.limit { // want `value decides in loop`
		panic("it explodes")
	}
}

func (h *early) OnEpoch(int, *tensor.Tensor) {}

type setFirst struct{ last *tensor.Tensor }

func (h *setFirst) OnStep(step int, loss *tensor.Tensor) {
	h.last = loss.MulScalar(2)
	if h.last.Item() > 1e9 { // want `value decides in loop`
		panic("it explodes")
	}
}

func (h *setFirst) OnEpoch(int, *tensor.Tensor) {}

var _ = []stepping.Hook{new(late), new(early), new(setFirst)}
