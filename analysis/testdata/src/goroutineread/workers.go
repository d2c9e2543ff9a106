package goroutineread

import (
	"runtime"
	"sync"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// A goroutine for each worker, which has its part of the data.

func byParts(f func(*tensor.Tensor) *tensor.Tensor, rows [][]float32, n int) []float64 {
	sums := make([]float64, len(rows))
	size := (len(rows) + n - 1) / n
	var wg sync.WaitGroup
	for lo := 0; lo < len(rows); lo += size {
		wg.Go(func() { sums[lo] = f(tensor.From(rows[lo])).Sum().Item() })
	}
	for w := range n {
		part := rows[w*len(rows)/n : (w+1)*len(rows)/n]
		wg.Go(func() { sums[w] = f(tensor.From(part[0])).Sum().Item() })
	}
	for w := 0; w < runtime.NumCPU(); w++ {
		wg.Go(func() { sums[w] = f(tensor.From(rows[w])).Sum().Item() })
	}
	wg.Wait()
	return sums
}

func workers(f func(*tensor.Tensor) *tensor.Tensor, rows [][]float32, numWorkers int) []float64 {
	sums := make([]float64, numWorkers)
	var wg sync.WaitGroup
	for w := range sums[:numWorkers] {
		wg.Go(func() { sums[w] = f(tensor.From(rows[w])).Sum().Item() }) // want `it waits in`
	}
	for w := range numWorkers {
		wg.Go(func() { sums[w] = f(tensor.From(rows[w])).Sum().Item() })
	}
	wg.Wait()
	return sums
}

// A goroutine for each batch: the more data, the more of them.
func byBatches(f func(*tensor.Tensor) *tensor.Tensor, rows [][]float32, size, n int) []float64 {
	sums := make([]float64, len(rows))
	var wg sync.WaitGroup
	for lo := 0; lo < len(rows); lo += size {
		wg.Go(func() { sums[lo] = f(tensor.From(rows[lo])).Sum().Item() }) // want `it waits in`
	}
	for i := range n {
		wg.Go(func() { sums[i] = f(tensor.From(rows[i])).Sum().Item() }) // want `it waits in`
	}
	wg.Wait()
	return sums
}
