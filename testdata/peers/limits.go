package main

import (
	"runtime"
	"sync"
	"time"
	"unsafe"
)

// together runs f on every thread at the same time, again and again, and returns how often a second one thread has, at best of many windows.
func together(budget float64, f func(thread int)) float64 {
	threads := runtime.GOMAXPROCS(0)
	best := 0.0
	for end := time.Now().Add(time.Duration(budget * 1e9)); time.Now().Before(end); {
		start := time.Now()
		var all sync.WaitGroup
		for t := 1; t < threads; t++ {
			all.Go(func() { f(t) })
		}
		f(0)
		all.Wait()
		best = max(best, 1/time.Since(start).Seconds())
	}
	return best
}

// peakFlops is how many multiplications and additions a second fused multiply-adds in registers reach.
func peakFlops(budget float64) float64 {
	const rounds = 1 << 18
	return together(budget, func(int) { multiplyAdds(rounds) }) * float64(rounds) * flopsOfRound * float64(runtime.GOMAXPROCS(0))
}

// triadBytes is how many bytes a second x = y + 3*z moves, for arrays that have as many bytes together as the workload's.
func triadBytes(q question) float64 {
	threads := runtime.GOMAXPROCS(0)
	n := max(64, int(q.Bytes)/12/threads/64*64)
	arrays := make([][3][]float32, threads)
	for t := range arrays {
		for i := range arrays[t] {
			arrays[t][i] = aligned(n)
		}
	}
	calls := max(1, 1<<18/n)
	run := func(f func(x, y, z *float32, n int)) float64 {
		return together(q.Budget/2, func(t int) {
			a := &arrays[t]
			for range calls {
				f(&a[0][0], &a[1][0], &a[2][0], n)
			}
		})
	}
	return max(run(triad), run(triadPast)) * float64(calls) * 12 * float64(n) * float64(threads)
}

// aligned returns n numbers that begin at a multiple of 64 bytes.
func aligned(n int) []float32 {
	x := make([]float32, n+16)
	for i := range x {
		x[i] = 1
	}
	skip := -uintptr(unsafe.Pointer(&x[0])) % 64 / 4
	return x[skip:][:n]
}
