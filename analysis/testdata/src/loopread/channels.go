package loopread

import (
	"context"
	"fmt"
	"sync"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// Tensors that others send: to read each as it comes is to wait for each.

type outcome struct {
	step int
	loss *tensor.Tensor
}

func arriving(in <-chan outcome, plain chan *tensor.Tensor, lists chan []*tensor.Tensor) (total float64) {
	for o := range in {
		total += o.loss.Item() // want `blocking read in loop: o.loss.Item\(\) waits for the device in each iteration \(its value is only kept\)`
	}
	for {
		x, ok := <-plain
		if !ok {
			break
		}
		total += x.Item() // want `blocking read in loop`
	}
	for list := range lists {
		total += list[0].Item() // want `blocking read in loop`
	}
	return total
}

func selected(ctx context.Context, in <-chan outcome) (total float64) {
	for {
		select {
		case <-ctx.Done():
			return total
		case o, ok := <-in:
			if !ok {
				return total
			}
			total += o.loss.Item() // want `blocking read in loop`
		}
	}
}

type gatherer struct {
	in, beside chan outcome
	total      float64
}

func (g *gatherer) gather() {
	for o := range g.in {
		g.total += o.loss.Item() // want `blocking read in loop`
	}
}

// reads runs beside what sends.
func (g *gatherer) reads() {
	for o := range g.beside {
		g.add(o)
		g.total += o.loss.Item()
	}
}

func (g *gatherer) add(o outcome) { g.total += float64(o.step) }

func (g *gatherer) start(data []Batch, wg *sync.WaitGroup) {
	go g.reads()
	for i, b := range data {
		g.beside <- outcome{i, step(b)}
	}
}

func readsAll(in <-chan *tensor.Tensor) (total float64) {
	for x := range in {
		total += x.Item()
	}
	return total
}

func pipeline(data []Batch, rows chan []float64, every chan outcome) (total float64) {
	ch := make(chan *tensor.Tensor, 8)
	go func() {
		defer close(ch)
		for _, b := range data {
			ch <- step(b)
		}
	}()
	for x := range ch {
		total += x.Item() // the other goroutine runs ahead
	}
	more := make(chan *tensor.Tensor, 8)
	var wg sync.WaitGroup
	wg.Go(func() { fmt.Println(readsAll(more)) })
	for _, b := range data {
		more <- step(b)
	}
	for row := range rows {
		total += row[0] * tensorOf(row).Item() // want `blocking read in loop`
	}
	n := 0
	for o := range every {
		if n++; n%100 == 0 {
			total += o.loss.Item()
		}
	}
	return total
}

func tensorOf(row []float64) *tensor.Tensor { return tensor.From(row).Sum() }
