package pool

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

func withProcs(t *testing.T, n int) {
	old := runtime.GOMAXPROCS(n)
	t.Cleanup(func() { runtime.GOMAXPROCS(old) })
}

func TestRunCoversEachElementOnce(t *testing.T) {
	for _, procs := range []int{1, 2, 5} {
		t.Run(fmt.Sprint(procs), func(t *testing.T) {
			withProcs(t, procs)
			for n := range 200 {
				for _, grain := range []int{1, 3, 50, 1000} {
					seen := make([]atomic.Int32, n)
					Run(n, grain, func(lo, hi int) {
						if lo < 0 || hi > n || hi <= lo || hi-lo < grain && hi != n {
							t.Errorf("n=%d grain=%d: range %d to %d", n, grain, lo, hi)
						}
						for i := lo; i < hi; i++ {
							seen[i].Add(1)
						}
					})
					for i := range seen {
						if got := seen[i].Load(); got != 1 {
							t.Fatalf("n=%d grain=%d: element %d was met %d times", n, grain, i, got)
						}
					}
				}
			}
		})
	}
}

// TestHelpersHelp has the first range wait for another one, which only a helper can run.
func TestHelpersHelp(t *testing.T) {
	withProcs(t, 2)
	waitForHelpers() // of the test before
	var first atomic.Bool
	other := make(chan struct{})
	Run(2, 1, func(lo, hi int) {
		if first.CompareAndSwap(false, true) {
			<-other
		} else {
			close(other)
		}
	})
}

// TestNobodyWaitsForHelp runs loops inside loops, more than there are helpers.
func TestNobodyWaitsForHelp(t *testing.T) {
	withProcs(t, 3)
	var sum atomic.Int64
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			Run(10, 1, func(lo, hi int) {
				Run(hi-lo, 1, func(lo, hi int) { sum.Add(int64(hi - lo)) })
			})
		})
	}
	wg.Wait()
	if got := sum.Load(); got != 200 {
		t.Errorf("got %d, want 200", got)
	}
}

func TestPanicsReachTheCaller(t *testing.T) {
	withProcs(t, 3)
	cause := errors.New("cause")
	for _, bad := range []int{0, 7, 99} {
		func() {
			defer func() {
				if got := recover(); got != cause {
					t.Errorf("element %d: got panic %v", bad, got)
				}
			}()
			Run(100, 1, func(lo, hi int) {
				if lo <= bad && bad < hi {
					panic(cause)
				}
			})
		}()
	}
	// The next loop is not affected.
	var n atomic.Int64
	Run(100, 1, func(lo, hi int) { n.Add(int64(hi - lo)) })
	if n.Load() != 100 {
		t.Errorf("got %d elements", n.Load())
	}
}

func TestNoHelperIsLeft(t *testing.T) {
	withProcs(t, 4)
	for range 100 {
		Run(100, 1, func(lo, hi int) {})
	}
	waitForHelpers()
}

// waitForHelpers returns when those that came too late have left.
func waitForHelpers() {
	for helpers.Load() > 0 {
		runtime.Gosched()
	}
}

// Run asks those who lend for help first, and starts goroutines of its own where nobody has any to spare.
func TestLentHelpersHelp(t *testing.T) {
	withProcs(t, 3)
	waitForHelpers()
	asked, lent := 0, 0
	end := Lend(func(help func()) bool {
		asked++
		if lent == 1 {
			return false
		}
		lent++
		go help()
		return true
	})
	defer end()
	var met atomic.Int32
	all := make(chan struct{})
	loop := func() {
		met.Store(0)
		all = make(chan struct{})
		Run(3, 1, func(lo, hi int) { // each range needs the others
			if met.Add(1) == 3 {
				close(all)
			}
			<-all
		})
		waitForHelpers()
	}
	loop()
	if asked != 2 || lent != 1 {
		t.Errorf("asked %d times, lent %d", asked, lent)
	}
	end()
	loop()
	if asked != 2 {
		t.Errorf("asked %d times after the end", asked)
	}
}

// A loop in a bubble is not helped from outside, and is nothing that time waits for when it has ended.
func TestBubblesBorrowNothing(t *testing.T) {
	withProcs(t, 3)
	defer Lend(func(func()) bool {
		t.Error("asked")
		return false
	})()
	synctest.Test(t, func(t *testing.T) {
		var sum atomic.Int64
		for range 100 {
			Run(100, 1, func(lo, hi int) { sum.Add(int64(hi - lo)) })
		}
		if got := sum.Load(); got != 100*100 {
			t.Errorf("got %d", got)
		}
	})
}
