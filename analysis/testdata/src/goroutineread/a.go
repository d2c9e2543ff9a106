package goroutineread

import (
	"fmt"
	"sync"

	"batch"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

type Batch = batch.Batch

var w *tensor.Tensor

func show(t *tensor.Tensor) { fmt.Println(t) }

func each(data []Batch, values []float64) {
	var wg sync.WaitGroup
	for i, b := range data {
		loss := batch.Loss(w, b)
		wg.Go(func() { values[i] = loss.Item() }) // want `goroutine for each iteration: it waits in loss.Item\(\), and nothing bounds how many do; keep the tensors and read them after the loop \[AT013\]`
		go func() {                               // want `waits in batch.Loss\(w, b\).Item\(\)`
			values[i] = batch.Loss(w, b).Item()
		}()
		go func(t *tensor.Tensor) {
			fmt.Println(loss) // want `waits in fmt.Println`
		}(loss)
		go show(loss) // want `waits in show`
	}
	wg.Wait()
}

// The loop waits for what the goroutine tells it.
func acknowledged(data []Batch, ack chan float64) (total float64) {
	for _, b := range data {
		loss := batch.Loss(w, b)
		go func() { ack <- loss.Item() }()
		total += <-ack // want `goroutine for each iteration: the loop waits here for one that waits in loss.Item\(\), as if it read itself; keep the tensors and read them after the loop`
	}
	for _, b := range data {
		loss, done := batch.Loss(w, b), make(chan struct{})
		go func() {
			defer close(done)
			total += loss.Item()
		}()
		<-done // want `the loop waits here`
	}
	var wg sync.WaitGroup
	for _, b := range data {
		wg.Add(1)
		go func() {
			defer wg.Done()
			total += batch.Loss(w, b).Item()
		}()
		wg.Wait() // want `the loop waits here`
	}
	for _, b := range data {
		wg.Go(func() { total += batch.Loss(w, b).Item() }) // want `nothing bounds how many do`
	}
	wg.Wait()
	for i, b := range data {
		loss := batch.Loss(w, b)
		go func() { ack <- loss.Item() }() // want `nothing bounds how many do`
		if i >= 8 {
			total += <-ack
		}
	}
	return total
}

// Silent.

func others(data []Batch, work chan Batch, values []float64, x *tensor.Tensor) {
	var wg sync.WaitGroup
	for range len(data) {
		wg.Go(func() {
			for b := range work {
				fmt.Println(batch.Loss(w, b).Item()) // AT004
			}
		})
	}
	for i := range 4 {
		wg.Go(func() { values[i] = batch.Loss(w, data[i]).Item() })
	}
	for i, b := range data {
		loss := batch.Loss(w, b)
		if i%100 == 0 {
			go show(loss)
		}
		go show(x)
		wg.Go(func() { fmt.Println(i) })
		go func() { batch.Report(i, loss) }()
	}
	for i := range data {
		wg.Go(func() {
			sum := w
			for _, b := range data {
				sum = sum.Add(batch.Loss(w, b))
			}
			values[i] = sum.Item() // after much work
		})
	}
	go show(batch.Loss(w, data[0]))
}

func sendLoss(b Batch, res chan<- float64) { res <- batch.Loss(w, b).Item() }

func addLoss(b Batch, sum *float64, wg *sync.WaitGroup) {
	defer wg.Done()
	*sum += batch.Loss(w, b).Item()
}

// The goroutine runs a function with a name.
func byFunction(data []Batch) (out []float64) {
	for _, b := range data {
		res := make(chan float64, 1)
		go sendLoss(b, res)
		out = append(out, <-res) // want `the loop waits here for one that waits in sendLoss`
	}
	for i, b := range data {
		var wg sync.WaitGroup
		wg.Add(1)
		go addLoss(b, &out[i], &wg)
		wg.Wait() // want `the loop waits here for one that waits in addLoss`
	}
	return out
}

func ask(t *tensor.Tensor) <-chan float64 {
	ch := make(chan float64, 1)
	go func() { ch <- t.Item() }()
	return ch
}

// The goroutines are started by others.
func answered(data []Batch) (sum float64) {
	for _, b := range data {
		sum += <-ask(batch.Loss(w, b)) // want `the loop waits here in each iteration for a goroutine that waits in t.Item\(\)`
	}
	requests, replies := make(chan *tensor.Tensor), make(chan float64)
	go func() {
		for t := range requests {
			replies <- t.Item()
		}
	}()
	for _, b := range data {
		requests <- batch.Loss(w, b)
		sum += <-replies // want `for a goroutine that waits in t.Item\(\)`
	}
	for i, b := range data {
		requests <- batch.Loss(w, b)
		if i > 8 {
			sum += <-replies
		}
	}
	return sum
}
