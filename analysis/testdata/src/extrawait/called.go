package extrawait

import (
	"errors"
	"fmt"
	"time"

	"batch"

	asyncrt "github.com/asyncgen/asyncgen/runtime"
	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// Waits in what a loop calls are waits in the loop.

type engine struct {
	opt *optim.Optimizer
	out []*tensor.Tensor
}

func settle(x *tensor.Tensor) error { return x.Wait() }

func try(b Batch) (err error) {
	loss := batch.Loss(w, b)
	defer func() { err = errors.Join(err, loss.Wait()) }()
	return nil
}

func (e *engine) step(b Batch) {
	loss := batch.Loss(w, b)
	defer loss.Wait()
	e.opt.Minimize(loss)
}

func (e *engine) sync() {
	if err := asyncrt.WaitAll(); err != nil {
		panic(err)
	}
}

func (e *engine) full(b Batch) {
	e.opt.Minimize(batch.Loss(w, b))
	e.sync()
}

func (e *engine) called(data []Batch) error {
	for _, b := range data {
		if err := settle(batch.Loss(w, b)); err != nil { // want `wait in loop: settle waits for the device in each iteration \(x.Wait\(\) at called.go:22\); wait once after the loop \[AT009\]`
			return err
		}
	}
	for _, b := range data {
		if err := try(b); err != nil { // want `wait in loop: try waits for the device in each iteration \(loss.Wait\(\) at called.go:26\)`
			return err
		}
	}
	for _, b := range data {
		e.step(b) // want `wait in loop: e.step waits .*; wait once after the loop, as the runtime bounds how far it runs ahead \[AT009\]`
	}
	for _, b := range data {
		e.full(b) // want `wait in loop: e.full waits for the device in each iteration \(e.sync at called.go:44, then asyncrt.WaitAll\(\) at called.go:37\)`
	}
	flush := func() { e.sync() }
	for _, b := range data {
		e.out = append(e.out, batch.Loss(w, b))
		flush() // want `wait in loop: flush waits`
	}
	return nil
}

// once settles after a loop of its own, and rarely in it.
func (e *engine) once(data []Batch) {
	for i, b := range data {
		e.out = append(e.out, batch.Loss(w, b))
		if i%100 == 0 {
			e.sync()
		}
	}
	e.sync()
}

func stopped(b Batch) time.Duration {
	start := time.Now()
	batch.Loss(w, b).Wait()
	return time.Since(start)
}

func (e *engine) fine(data []Batch, x *tensor.Tensor) float64 {
	for range 10 {
		e.once(data)
	}
	for _, b := range data {
		settle(x) // older than the loop
		e.out = append(e.out, batch.Loss(w, b))
	}
	for _, b := range data {
		fmt.Println(stopped(b))
	}
	total := 0.0
	for _, b := range data {
		loss := batch.Loss(w, b)
		settle(loss)
		total += loss.Item() // AT001 speaks of it
	}
	return total
}
