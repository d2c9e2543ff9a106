// Package guards has a call of mark for each shape of a condition that TestGuards knows. The comment beside it is what
// Package.GuardOf says of it, relative to the innermost loop or, outside of loops, to a call of the function.
package guards

import (
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

func mark() int { return 0 }

func counters(n, every, warmUp int) {
	next, left, first := every, every, true
	var batch []int
	for i := range n {
		mark() // want `always`
		if i%100 == 0 {
			mark() // want `rarely`
		} else {
			mark() // want `always`
		}
		if i%2 == 0 {
			mark() // want `always`
		}
		if i&(i-1) == 0 {
			mark() // want `rarely`
		}
		if i == n-1 || i < 3 {
			mark() // want `rarely`
		}
		if i > 3 {
			mark() // want `always`
		}
		if i < warmUp {
			mark() // want `rarely`
		}
		if i < every {
			mark() // want `always`
		}
		if i+1 >= n {
			mark() // want `rarely`
		}
		if i >= n-10 {
			mark() // want `rarely`
		}
		if i >= n-100 {
			mark() // want `always`
		}
		if i+100 > n {
			mark() // want `always`
		}
		if i == next {
			mark() // want `rarely`
			next += every
		}
		if left--; left == 0 {
			mark() // want `rarely`
			left = every
		}
		if first {
			mark() // want `rarely`
			first = false
		}
		if batch = append(batch, i); len(batch) == every {
			mark() // want `rarely`
			batch = batch[:0]
		}
		if len(batch) == every {
			mark() // want `always`
		}
		if due := i%every == 0; due && n > 3 {
			mark() // want `rarely`
		}
		_ = i%100 == 0 && mark() > 0 // want `rarely`
		_ = i%100 == 0 || mark() > 0 // want `always`
		switch i % 50 {
		case 7:
			mark() // want `rarely`
		default:
			mark() // want `always`
		}
	}
}

func others(n int, milestones []int, marked map[int]bool, verbose bool, log *slog.Logger) error {
	last, ok := time.Now(), true
	deadline := last.Add(time.Hour)
	for i := range n {
		if slices.Contains(milestones, i) || marked[i] {
			mark() // want `rarely`
		}
		if rand.Float64() < 0.01 {
			mark() // want `rarely`
		}
		if verbose || log.Enabled(nil, slog.LevelInfo) {
			mark() // want `rarely`
		}
		if time.Since(last) > time.Second {
			mark() // want `rarely`
		}
		if !time.Now().After(deadline) {
			mark() // want `always`
		}
		if err := errors.New("x"); err != nil {
			mark()                                        // want `rarely`
			return fmt.Errorf("mark %d: %w", mark(), err) // want `rarely`
		}
		ok = ok && mark() > 0 // want `always`
		if seldom(i) {
			mark() // want `rarely`
		}
		if often(i) {
			mark() // want `always`
		}
	}
	return nil
}

func seldom(i int) bool { return i%100 == 0 }

func often(i int) bool { return i > 100 }

func parameters(step, total int, flag bool) {
	mark() // want `always`
	if step == total {
		mark() // want `rarely`
	}
	if flag {
		mark() // want `rarely`
	}
}

func leaving(n int, x *tensor.Tensor) {
	for i := range n {
		if i == 7 {
			mark() // leaving the loop is not asked about here // want `always`
			break
		}
		if x.Item() > 1 {
			mark() // want `by data`
		}
		mark() // want `always`
	}
	for range n {
		if x.Item() > 1 {
			break
		}
		mark() // want `always`
	}
}

func accumulated(n, every int, opt *optim.Optimizer, x *tensor.Tensor) {
	for i := range n {
		if (i+1)%every == 0 {
			opt.Minimize(x)
			mark() // want `always`
		}
		if (i+1)%100 == 0 {
			mark() // want `rarely`
		}
	}
}

func selected(work <-chan *tensor.Tensor, tick <-chan time.Time, done <-chan int) {
	for {
		select {
		case x := <-work:
			use(x.AddScalar(1))
			mark() // want `always`
		case <-tick:
			mark() // want `rarely`
		case <-done:
			mark() // want `rarely`
			return
		}
	}
}

func use(*tensor.Tensor) {}

func cached(n int) {
	var table []int
	for i := range n {
		if table == nil {
			mark() // want `rarely`
			table = make([]int, 10)
		}
		if i%100 == 0 && i > 0 {
			func() { mark() }() // want `rarely`
		}
	}
}

func flushed(n, size int) {
	var batch []int
	flush := func() { batch = batch[:0] }
	for i := range n {
		batch = append(batch, i)
		if len(batch) == size {
			mark() // want `rarely`
			flush()
		}
	}
}

func fullOrLast(items []int, size int) {
	var batch, other []int
	at := 0
	for i, item := range items {
		batch, other = append(batch, item), append(other, item)
		if len(batch) < size && i < len(items)-1 {
			continue
		}
		mark() // want `rarely`
		at, batch = i+1, batch[:0]
	}
	for _, item := range items {
		other = append(other, item)
		if len(other) < size {
			continue
		}
		mark() // want `always`
		other = append(other, at)
	}
}
