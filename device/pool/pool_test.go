package pool

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
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
				for _, grain := range []int{1, 3, 50, 150, 1000, 10000} {
					seen := make([]atomic.Int32, n)
					Run(n, grain, func(lo, hi int) {
						if lo < 0 || hi > n || hi <= lo || hi-lo < grain/finest && hi != n {
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

// Two goroutines that work on loops over the same elements have the same halves of them each time. One alone takes its
// own half from the front, then the other one from the back.
func TestShares(t *testing.T) {
	for range 3 {
		var got []int
		l := newLoop(80, 10, 2, func(lo, hi int) { got = append(got, lo) })
		l.run(must(l.shares[1].take(false)))
		l.work(0)
		if want := []int{40, 0, 10, 20, 30, 70, 60, 50}; !slices.Equal(got, want) {
			t.Fatalf("ranges begin at %v, want %v", got, want)
		}
	}
	for n := range 100 {
		for shares := 1; shares < 9; shares++ {
			seen := make([]int, n)
			l := newLoop(n, 1+n/20, shares, func(lo, hi int) {
				for i := lo; i < hi; i++ {
					seen[i]++
				}
			})
			l.work(n % (shares + 2)) // a goroutine that comes too late for a share works, too
			if slices.ContainsFunc(seen, func(times int) bool { return times != 1 }) || l.isLeft() {
				t.Fatalf("n=%d, %d shares: elements were met %v times", n, shares, seen)
			}
		}
	}
}

func must(i int, ok bool) int {
	if !ok {
		panic("no range is left")
	}
	return i
}

// TestHelpersHelp runs a range that waits for another one, which only a helper can run.
func TestHelpersHelp(t *testing.T) {
	withProcs(t, 2)
	waitForHelpers() // of the previous test
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

// TestNobodyWaitsForHelp runs more nested loops than there are helpers.
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

// A loop finds no helper when it begins; a goroutine that becomes idle later runs its second range.
// Help has nothing to do when no range is left.
func TestHelpLater(t *testing.T) {
	withProcs(t, 2)
	waitForHelpers() // of the previous test
	if Help() {
		t.Fatal("there is nothing to help with")
	}
	helpers.Add(1) // a helper is busy with another loop
	began, other := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		var first atomic.Bool
		Run(2, 1, func(lo, hi int) {
			if first.CompareAndSwap(false, true) {
				close(began)
				<-other
			} else {
				close(other)
			}
		})
	})
	<-began
	if Help() {
		t.Error("more help than there are processors")
	}
	helpers.Add(-1)
	if !Help() {
		t.Error("nobody helps")
		close(other)
	}
	wg.Wait()
	if Help() {
		t.Error("there is nothing to help with any more")
	}
	for i := range open {
		if open[i].Load() != nil {
			t.Errorf("loop %d is held", i)
		}
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

// waitForHelpers waits until late helpers have left.
func waitForHelpers() {
	for helpers.Load() > 0 {
		runtime.Gosched()
	}
}

// A lender is a Lender for a test.
type lender struct {
	wake   func(asleep bool) bool
	awake  bool
	coming int
}

func (l *lender) Wake(asleep bool) bool { return l.wake(asleep) }
func (l *lender) Awake() bool           { return l.awake }
func (l *lender) Coming() int           { return l.coming }

// Run asks Lenders, for those that are awake first. It starts no goroutine where there is a Lender.
func TestLentHelpersHelp(t *testing.T) {
	withProcs(t, 3)
	waitForHelpers()
	var asked []bool
	l := &lender{wake: func(asleep bool) bool {
		asked = append(asked, asleep)
		if !asleep {
			return false
		}
		go Help()
		return true
	}}
	end := Lend(l)
	defer end()
	loop := func(ranges int) {
		var met atomic.Int32
		all := make(chan struct{})
		Run(ranges, 1, func(lo, hi int) { // each range needs the others
			if met.Add(1) == int32(ranges) {
				close(all)
			}
			<-all
		})
		waitForHelpers()
	}
	for _, test := range []struct {
		ranges, coming, lookers int
		asked                   string
	}{
		{ranges: 3, asked: "[false true true]"},
		{ranges: 2, asked: "[false true]"},
		{ranges: 3, coming: 1, asked: "[false true]"},
		{ranges: 3, coming: 2, asked: "[false]"},
		{ranges: 3, lookers: 1, asked: "[false true]"},
		{ranges: 3, lookers: 2, asked: "[]"},
		{ranges: 3, lookers: 1, coming: 1, asked: "[false]"},
	} {
		asked, l.coming = nil, test.coming
		lookers.Store(int32(test.lookers))
		for range test.lookers + test.coming {
			go func() { // the help that is to come by itself
				for !Help() {
					runtime.Gosched()
				}
			}()
		}
		loop(test.ranges)
		if got := fmt.Sprint(asked); got != test.asked {
			t.Errorf("%+v: asked %s", test, got)
		}
	}
	lookers.Store(0)
	end()
	asked = nil
	loop(3) // with goroutines of its own
	if asked != nil {
		t.Errorf("asked %v after the end", asked)
	}
}

// A short loop is shared with helpers that are awake, or about to look for loops. It neither wakes nor starts any.
func TestShortLoops(t *testing.T) {
	withProcs(t, 2)
	waitForHelpers()
	const grain = 1000
	asked := 0
	l := &lender{wake: func(asleep bool) bool {
		asked++
		if asleep {
			t.Error("a helper is to be woken")
		}
		go Help()
		return true
	}}
	defer Lend(l)()
	if Worth(grain, grain) {
		t.Error("worth sharing while nobody is awake")
	}
	calls := 0
	Run(grain, grain, func(lo, hi int) { calls += hi - lo }) // not shared: the race detector checks that
	if calls != grain || asked != 0 || helpers.Load() != 0 {
		t.Errorf("%d elements, asked %d times, %d helpers", calls, asked, helpers.Load())
	}
	shared := func() {
		t.Helper()
		for n, want := range map[int]bool{0: false, 1: false, grain/finest + 1: false, 2 * (grain / finest): true, grain: true, 2 * grain: true} {
			if got := Worth(n, grain); got != want {
				t.Errorf("Worth(%d, %d) = %v", n, grain, got)
			}
		}
		var first atomic.Bool
		var once sync.Once
		other := make(chan struct{})
		Run(grain, grain, func(lo, hi int) { // the first range needs another one
			if first.CompareAndSwap(false, true) {
				<-other
			} else {
				once.Do(func() { close(other) })
			}
		})
		waitForHelpers()
	}
	l.awake = true
	shared()
	if asked != 1 {
		t.Errorf("asked %d times", asked)
	}
	l.awake = false
	Look(func() {
		go func() {
			for !Help() {
				runtime.Gosched()
			}
		}()
		shared()
	})
	if asked != 1 {
		t.Errorf("asked %d times while somebody looks for loops", asked)
	}
}

// A Lender promises help but its goroutine comes after the loop: nobody waits for it, and it finds nothing. So does
// one that has found the loop just before its end.
func TestLateHelp(t *testing.T) {
	withProcs(t, 2)
	waitForHelpers()
	asked := 0
	defer Lend(&lender{awake: true, wake: func(bool) bool {
		asked++
		return true
	}})()
	n := 0
	var found *loop
	Run(100, 1, func(lo, hi int) {
		n += hi - lo
		if l := find(); l != nil { // not in the last range
			found = l
		}
	})
	if Wanted() || Help() {
		t.Error("the loop is still there")
	}
	if !reserve(2) || reserve(2) {
		t.Error("there is one helper for two processors")
	}
	found.help()
	if n != 100 || asked != 1 {
		t.Errorf("%d elements, asked %d times", n, asked)
	}
	if got := helpers.Load(); got != 0 {
		t.Errorf("%d helpers are left", got)
	}
}

// The caller sleeps while a helper takes long. Late helpers that leave meanwhile do not wake it.
func TestJoinWaitsForTheLast(t *testing.T) {
	withProcs(t, 2)
	for range 200 {
		waitForHelpers()
		begun := make(chan struct{})
		var done atomic.Bool
		var helps atomic.Bool
		var l *loop
		l = newLoop(2, 1, 2, func(lo, hi int) {
			if !helps.CompareAndSwap(false, true) {
				return
			}
			close(begun)
			for l.state.Load()&parked == 0 { // the caller is asleep, or about to be
				runtime.Gosched()
			}
			for range 3 {
				helpers.Add(1)
				l.help()
			}
			done.Store(true)
		})
		helpers.Add(1)
		go l.help()
		<-begun
		l.work(0)
		l.join()
		if !done.Load() {
			t.Fatal("the helper is still at work")
		}
	}
	waitForHelpers()
}

// A loop in a bubble gets no help from outside. When it has ended, nothing is left that the time of
// the bubble would wait for.
func TestBubblesBorrowNothing(t *testing.T) {
	withProcs(t, 3)
	defer Lend(&lender{awake: true, wake: func(bool) bool {
		t.Error("asked")
		return false
	}})()
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
