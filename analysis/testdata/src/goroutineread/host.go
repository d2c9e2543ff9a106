package goroutineread

import (
	"os"
	"sync"

	"batch"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// Goroutines that only wait, and those that also work for the host; the latter are of severity info.

func waiting(data []Batch, sums map[int]float64) {
	var wg sync.WaitGroup
	var mu sync.Mutex
	for i, b := range data {
		wg.Go(func() {
			v := batch.Loss(w, b).Item() // want `goroutine for each iteration: it waits in batch.Loss\(w, b\).Item\(\)`
			mu.Lock()
			sums[i] = v
			mu.Unlock()
		})
	}
	wg.Wait()
}

func working(names []string, sums []float64) {
	var wg sync.WaitGroup
	for i, name := range names {
		wg.Go(func() { // want `goroutine for each iteration: it waits in`
			data, _ := os.ReadFile(name)
			sums[i] = tensor.From([]float32{float32(len(data))}).Sum().Item()
		})
	}
	wg.Wait()
}
