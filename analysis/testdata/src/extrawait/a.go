package extrawait

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"time"

	"batch"

	asyncrt "github.com/asyncgen/asyncgen/runtime"
	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

type Batch = batch.Batch

var w *tensor.Tensor

func each(x *tensor.Tensor, n int) *tensor.Tensor {
	var y *tensor.Tensor
	for range n {
		y = x.AddScalar(1)
		y.Wait() // want `wait in loop: y.Wait\(\) waits for the device in each iteration; wait once after the loop \[AT009\]`
	}
	return y
}

func all(data []Batch) ([]*tensor.Tensor, error) {
	var out []*tensor.Tensor
	for _, b := range data {
		out = append(out, batch.Loss(w, b))
		if err := asyncrt.WaitAll(); err != nil { // want `asyncrt.WaitAll\(\) waits for the device`
			return nil, err
		}
	}
	for _, b := range data {
		y := batch.Loss(w, b)
		if err := y.WaitContext(context.Background()); err != nil { // want `AT009`
			return nil, err
		}
		out = append(out, y)
	}
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		batch.Loss(w, data[0]).Wait() // info: the loop waits for its user anyway // want `AT009`
	}
	return out, nil
}

func before(x *tensor.Tensor, data []Batch) (total float64) {
	y := x.AddScalar(1)
	// What follows needs it.
	y.Wait() // want `y.Wait\(\) is not needed: what follows waits for the same \[AT009\]`
	fmt.Println(y.Item())
	for _, b := range data {
		loss := batch.Loss(w, b)
		_ = loss.Wait() // want `is not needed`
		total += 2 * float64(loss.Item())
	}
	return total
}

func keptComment(y *tensor.Tensor) float64 {
	y.Wait() /* to be sure */ // want `is not needed`
	return y.Item()
}

// The runtime bounds how far a loop runs ahead, also one that trains.
func trained(data []Batch, opt *optim.Optimizer) (total float64, err error) {
	for _, b := range data {
		loss := batch.Loss(w, b)
		opt.Minimize(loss)
		if err := loss.Wait(); err != nil { // want `wait once after the loop, as the runtime bounds how far it runs ahead`
			return 0, err
		}
	}
	for _, b := range data {
		opt.Minimize(batch.Loss(w, b))
		if err := asyncrt.WaitAll(); err != nil { // want `AT009`
			return 0, err
		}
	}
	for _, b := range data { // and so does the read
		loss := batch.Loss(w, b)
		opt.Minimize(loss)
		if err := loss.Wait(); err != nil { // want `wait in loop: loss.Wait`
			return 0, err
		}
		total += loss.Item()
	}
	return total, nil
}

func timers(data []Batch, opt *optim.Optimizer) (times []time.Duration) {
	for _, b := range data {
		t := asyncrt.StartTimer()
		opt.Minimize(batch.Loss(w, b))
		t.Stop()
		fmt.Println(t.Wait()) // want `t.Wait\(\) waits for the device in each iteration; keep the timers, and ask them after the loop`
	}
	var kept []*asyncrt.Timer
	for _, b := range data {
		t := asyncrt.StartTimer()
		opt.Minimize(batch.Loss(w, b))
		t.Stop()
		kept = append(kept, t)
	}
	for _, t := range kept {
		times = append(times, t.Wait()) // silent: the loop enqueues nothing
	}
	whole := asyncrt.StartTimer()
	for _, b := range data {
		opt.Minimize(batch.Loss(w, b))
	}
	return append(times, whole.Wait()) // silent: once
}

func stage(in []Batch, out chan<- *tensor.Tensor) error {
	for _, b := range in {
		y := batch.Loss(w, b)
		if err := y.Wait(); err != nil { // want `y.Wait\(\) waits for the device in each iteration; wait once`
			return err
		}
		out <- y
	}
	return nil
}

type filter interface {
	apply(x *tensor.Tensor) *tensor.Tensor
}

type scaled struct{ by float64 }

func (s scaled) apply(x *tensor.Tensor) *tensor.Tensor { return x.MulScalar(s.by) }

func filtered(x *tensor.Tensor, filters []filter) error {
	for _, f := range filters {
		x = f.apply(x)
		if err := x.Wait(); err != nil { // want `x.Wait\(\) waits for the device in each iteration`
			return err
		}
	}
	return nil
}

// Silent.

func others(data []Batch, opt *optim.Optimizer, x *tensor.Tensor, outs []chan *tensor.Tensor, done chan int) (total float64, err error) {
	for i, b := range data {
		loss := batch.Loss(w, b)
		opt.Minimize(loss)
		loss.Wait() // bounds the queue
		x.Wait()
		if i%100 == 0 {
			asyncrt.WaitAll()
		}
	}
	for i, b := range data {
		y := batch.Loss(w, b)
		if i%100 == 0 {
			y.Wait()
		}
		x.Wait() // older than the loop
	}
	for _, b := range data {
		y := batch.Loss(w, b)
		y.Wait()
		done <- y.Dim(0)
		outs[y.Dim(0)] <- y
	}
	for _, b := range data {
		y := batch.Loss(w, b)
		asyncrt.WaitAll()
		fmt.Println(y.Ready())
	}
	for range 10 {
		for _, b := range data {
			batch.Loss(w, b)
		}
		asyncrt.WaitAll()
	}
	var prev *tensor.Tensor
	for _, b := range data {
		y := batch.Loss(w, b)
		if prev != nil {
			prev.Wait() // the device has work by now
		}
		prev = y
	}
	for _, b := range data {
		b.X.Wait() // nothing is enqueued
	}
	if err := x.Wait(); err != nil {
		return 0, err
	}
	total += x.Item()
	x.Wait()
	fmt.Println("there")
	fmt.Println(x.Item())
	x.Wait()
	total += float64(len(data)) * other().Item()
	x.Wait()
	fmt.Println(other(), x.Item())
	x.Wait()
	_ = len(data) > 1 && x.Item() > 1
	x.Wait()
	v, err := x.ItemContext(context.Background())
	return total + v, err
}

func other() *tensor.Tensor { return w }

func timed(data []Batch) {
	for _, b := range data {
		start := time.Now()
		batch.Loss(w, b).Wait()
		fmt.Println(time.Since(start))
	}
}
