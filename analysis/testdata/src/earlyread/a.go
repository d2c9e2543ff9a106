package earlyread

import (
	"fmt"

	"batch"

	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

type Batch = batch.Batch

var w *tensor.Tensor

func update(opt *optim.Optimizer, loss *tensor.Tensor) { opt.Minimize(loss) }

func early(data []Batch, opt *optim.Optimizer) (total float64) {
	for _, b := range data {
		loss := batch.Loss(w, b)
		total += loss.Item() // want `early read in loop: loss.Item\(\) waits for the device before opt.Minimize gives it more to do; read after that \[AT024\]`
		opt.Minimize(loss)
	}
	for i, b := range data {
		loss := batch.Loss(w, b)
		fmt.Println(loss) // want `fmt.Println waits`
		if i > 10 {
			loss.Backward()
		}
	}
	for _, b := range data {
		loss := batch.Loss(w, b)
		total += batch.Value(loss) // want `before update gives it`
		update(opt, loss)
	}
	return
}

// Silent.

func others(data []Batch, opt *optim.Optimizer) (total, last float64) {
	for i, b := range data {
		loss := batch.Loss(w, b)
		opt.Minimize(loss)
		total += loss.Item()
		if i%100 == 0 {
			opt.Minimize(loss) // rarely
		}
	}
	for i, b := range data {
		loss := batch.Loss(w, b)
		v := loss.Item()
		if v < 100 {
			opt.Minimize(loss)
		}
		if i%100 == 0 {
			fmt.Println(batch.Loss(w, b).Item())
		}
		opt.Minimize(loss.MulScalar(batch.Loss(w, b).Item()))
	}
	for _, b := range data {
		loss := batch.Loss(w, b)
		total += loss.Item()
	}
	opt.Minimize(w)
	return
}

func weight(loss *tensor.Tensor) float64 { return loss.Item() }

// The step needs the value that a function returns.
func needed(data []Batch, opt *optim.Optimizer) {
	for _, b := range data {
		loss := batch.Loss(w, b)
		if weight(loss) > 1 {
			opt.SetRate(opt.Rate() / 2)
		}
		opt.Minimize(loss)
	}
	for _, b := range data {
		loss := batch.Loss(w, b)
		v := weight(loss)
		opt.Minimize(loss.MulScalar(v))
	}
}
