package loopcall

import (
	"fmt"
	"time"

	"batch"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// A function that asks for the time reads all the time until the end has come, or now and then.

type stopper struct {
	below float64
	until time.Time
	limit time.Duration
	last  time.Time
}

func (s *stopper) done(loss *tensor.Tensor) bool {
	switch {
	case time.Now().After(s.until):
		return true
	case loss.Item() < s.below:
		return true
	}
	return false
}

func (s *stopper) over(loss *tensor.Tensor) bool {
	if time.Since(s.last) > s.limit {
		return true
	}
	return loss.Item() < s.below
}

func (s *stopper) throttled(loss *tensor.Tensor) bool {
	if time.Since(s.last) < s.limit {
		return false
	}
	s.last = time.Now()
	return loss.Item() < s.below
}

func (s *stopper) sometimes(loss *tensor.Tensor) bool {
	if !time.Now().After(s.last) {
		return false
	}
	s.last = s.last.Add(s.limit)
	return loss.Item() < s.below
}

func stops(data []Batch, s *stopper) {
	for _, b := range data {
		if s.done(batch.Loss(w, b)) { // want `s.done waits for the device in each iteration`
			return
		}
	}
	for _, b := range data {
		if s.over(batch.Loss(w, b)) { // want `s.over waits for the device in each iteration`
			return
		}
	}
	for _, b := range data {
		if s.throttled(batch.Loss(w, b)) || s.sometimes(batch.Loss(w, b)) {
			return
		}
	}
}

func sample(x *tensor.Tensor, stride int) []float32 {
	for i := 0; i < 20; i += stride {
		x = x.Mul(w)
	}
	return x.Float32s()
}

// What each call takes, with its wait, is the question. Nobody looks at the samples.
func compared(x *tensor.Tensor) {
	for _, stride := range []int{1, 2, 5, 10, 20} {
		start := time.Now()
		samples := sample(x, stride)
		fmt.Println(stride, len(samples), time.Since(start))
	}
}

func compiled(x *tensor.Tensor) (all [][]float32) {
	for _, stride := range []int{1, 2, 5, 10, 20} {
		start := time.Now()
		samples := sample(x, stride) // want `sample waits for the device in each iteration`
		fmt.Println(stride, time.Since(start))
		all = append(all, samples)
	}
	return all
}
