package engine

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/pool"
)

// parkers are parkers for each way to sleep.
func parkers(t *testing.T, f func(t *testing.T, p *parker)) {
	many := &threads{}
	many.n.Store(-1000) // the bound is for others
	for name, ts := range map[string]*threads{"channel": nil, "kernel": many, "scarce": {}} {
		t.Run(name, func(t *testing.T) {
			p := &parker{}
			p.init(ts)
			f(t, p)
		})
	}
}

// Each wake ends one wait, whenever it comes. A wake without an announced wait does nothing.
func TestParkerLosesNothing(t *testing.T) {
	parkers(t, func(t *testing.T, p *parker) {
		if p.wake() {
			t.Error("woken while awake")
		}
		const rounds = 2000
		var slept, withdrawn int
		var ready sync.WaitGroup
		ready.Go(func() {
			for i := range rounds {
				p.announce()
				if i%3 == 0 && p.withdraw() {
					withdrawn++
					continue
				}
				p.wait(i%2*3, nil)
				slept++
			}
		})
		done := make(chan struct{})
		go func() {
			ready.Wait()
			close(done)
		}()
		woken := 0
		for over := false; !over; {
			select {
			case <-done:
				over = true
			default:
				if p.wake() {
					woken++
				}
				runtime.Gosched()
			}
		}
		if slept+withdrawn != rounds || woken != slept {
			t.Errorf("%d waits, %d of them withdrawn, %d slept through, %d ended by a wake", rounds, withdrawn, slept, woken)
		}
	})
}

// Of several goroutines that call wake at once, one wakes the owner.
func TestParkerIsWokenOnce(t *testing.T) {
	parkers(t, func(t *testing.T, p *parker) {
		for range 500 {
			p.announce()
			var woke atomic.Int32
			var wg sync.WaitGroup
			for range 3 {
				wg.Go(func() {
					if p.wake() {
						woke.Add(1)
					}
				})
			}
			p.wait(0, nil)
			wg.Wait()
			if n := woke.Load(); n != 1 {
				t.Fatalf("woken %d times", n)
			}
		}
	})
}

// A wait ends when its context does. A wake that comes too late does not affect the next wait.
func TestParkerStopsWaiting(t *testing.T) {
	parkers(t, func(t *testing.T, p *parker) {
		for range 500 {
			ctx, cancel := context.WithCancel(bg)
			var wg sync.WaitGroup
			var woke bool
			p.announce()
			wg.Go(cancel)
			wg.Go(func() { woke = p.wake() })
			wasWoken := p.wait(0, ctx.Done())
			wg.Wait()
			if wasWoken != woke {
				t.Fatalf("wait says woken: %v, wake says %v", wasWoken, woke)
			}

			ctx, cancel = context.WithCancel(bg)
			p.announce()
			wg.Go(func() {
				for p.state.Load() != onChannel {
					runtime.Gosched()
				}
				cancel()
				woke = p.wake() // before the other one gets to it, in most cases
			})
			wasWoken = p.wait(0, ctx.Done())
			wg.Wait()
			if wasWoken != woke || len(p.c) != 0 {
				t.Fatalf("at the same time: wait says woken: %v, wake says %v, %d tokens are left", wasWoken, woke, len(p.c))
			}

			ctx, cancel = context.WithCancel(bg)
			p.announce()
			wg.Go(cancel)
			if p.wait(0, ctx.Done()) || p.wake() {
				t.Fatal("woken by nobody")
			}
			wg.Wait()
		}
	})
}

// At most half as many goroutines as there are processors sleep in the kernel.
func TestFewThreadsSleepInTheKernel(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(5))
	var ts threads
	want := 0
	if futexes {
		want = 2
	}
	got := 0
	for range 10 {
		if ts.enter() {
			got++
		}
	}
	if got != want {
		t.Errorf("%d, want %d", got, want)
	}
	if got > 0 {
		ts.leave()
		if !ts.enter() {
			t.Error("none after one has left")
		}
	}
}

// A worker that nobody wakes soon leaves the kernel, and its processor, to others, and can still be woken.
func TestSleepInTheKernelEnds(t *testing.T) {
	if !futexes || runtime.GOMAXPROCS(0) < 2 {
		t.Skip("nobody sleeps in the kernel here")
	}
	var ts threads
	var p parker
	p.init(&ts)
	p.announce()
	done := make(chan bool)
	go func() { done <- p.wait(0, nil) }()
	for p.state.Load() != onChannel {
		runtime.Gosched()
	}
	if n := ts.n.Load(); n != 0 {
		t.Errorf("%d threads in the kernel", n)
	}
	if !p.wake() || !<-done {
		t.Error("not woken")
	}
}

// A search for a worker finds one that is just going to sleep.
func TestClaimOnTheWayToSleep(t *testing.T) {
	w := &worker{}
	w.parker.init(new(threads))
	f := &flow{workers: []*worker{w}}
	var wg sync.WaitGroup
	for i := range 100_000 {
		w.parker.announce()
		var begins atomic.Bool
		wg.Go(func() {
			begins.Store(true)
			w.parker.wait(i%3*100, nil)
		})
		for !begins.Load() {
			runtime.Gosched()
		}
		for range i % 50 {
			pause(1)
		}
		claimed, state := f.claimWorker(anyWay)
		if claimed == nil {
			w.parker.wake()
			wg.Wait()
			t.Fatalf("nobody is there, in round %d", i)
		}
		w.parker.rouse(state)
		wg.Wait()
	}
}

// An idle worker helps with a loop, and then with operations; a busy one does not.
func TestIdleWorkersLendAHand(t *testing.T) {
	if runtime.GOMAXPROCS(0) == 1 {
		t.Skip("nobody helps")
	}
	e, dev := newEngine(t, Options{Workers: 1}), newCPU(1)
	f := e.stream(dev).exec.(*flow)
	idle := func() {
		for f.workers[0].parker.state.Load() == awake || f.parked.Load() == 0 {
			runtime.Gosched()
		}
	}
	idle()
	for range 100 {
		helped(t)
		idle()
		if n := (*loan)(f).Coming(); n != 0 {
			t.Fatalf("%d workers are coming, and all are parked", n)
		}
	}
	k, started, open := blocking()
	x := unary(e, k, e.NewStorage(dev, 8), fromFloats(e, dev, 1))
	f.nudge()
	<-started
	if l := (*loan)(f); l.Wake(true) || l.Coming() != 0 {
		t.Error("a busy worker promises to help")
	}
	open()
	if err := x.Wait(bg, "wait"); err != nil {
		t.Error(err)
	}
}

// helped fails if nobody helps with a loop of the pool. The loop has two ranges, and the first waits for the second.
func helped(t testing.TB) {
	t.Helper()
	var first atomic.Bool
	other := make(chan struct{})
	pool.Run(2, 1, func(lo, hi int) {
		if !first.CompareAndSwap(false, true) {
			close(other)
			return
		}
		select {
		case <-other:
		case <-time.After(10 * time.Second):
			t.Error("nobody helps")
		}
	})
}

// A goroutine that waits for an operation helps with its loop.
func TestWaitersLendAHand(t *testing.T) {
	if runtime.GOMAXPROCS(0) == 1 {
		t.Skip("nobody helps")
	}
	e, dev := newEngine(t, Options{Workers: 1}), newCPU(1)
	e.looks = 1 << 40
	f := e.stream(dev).exec.(*flow)
	started, waits := make(chan struct{}), make(chan struct{})
	k := fakeKernel("loop", 1, func(c *device.Command) error {
		close(started)
		<-waits
		helped(t)
		return runCommand(&device.Command{Kernel: addOne, N: c.N, Buf: c.Buf})
	})
	x := unary(e, k, e.NewStorage(dev, 8), fromFloats(e, dev, 1))
	f.nudge()
	<-started
	go func() {
		for n := 0; n == 0; runtime.Gosched() {
			f.lock.lock()
			n = f.helpers
			f.lock.unlock()
		}
		close(waits)
	}()
	if err := x.Wait(bg, "wait"); err != nil {
		t.Error(err)
	}
}

// A worker that is about to sleep finds a loop that began after it had looked for one. Nobody else is woken for the
// loop, as the worker was to come.
func TestLastLookForLoops(t *testing.T) {
	if runtime.GOMAXPROCS(0) == 1 {
		t.Skip("nobody helps")
	}
	e, dev := newEngine(t, Options{Workers: 1}), newCPU(1)
	f := e.stream(dev).exec.(*flow)
	w := f.workers[0]
	f.parked.Add(-1) // this goroutine is the worker
	w.parker.begin()
	var wg sync.WaitGroup
	wg.Go(func() { helped(t) })
	for !pool.Wanted() {
		runtime.Gosched()
	}
	finds := w.idle()
	if !finds {
		t.Error("the worker sleeps while there is a loop")
	}
	pool.Help()
	wg.Wait()
	if finds {
		w.parker.state.Store(dormant)
		f.parked.Add(1)
	}
}

// A worker that spins counts as awake. A sleeping one is woken only if it may be.
func TestAwakeWorkers(t *testing.T) {
	for _, isAwake := range []bool{true, false} {
		if isAwake && runtime.GOMAXPROCS(0) == 1 {
			continue // nobody spins there
		}
		e, dev := newEngine(t, Options{Workers: 1}), newCPU(1)
		e.looks = 0
		if isAwake {
			e.looks = 1 << 40
		}
		f := e.stream(dev).exec.(*flow)
		l := (*loan)(f)
		idle := func() {
			for _, w := range f.workers {
				for s := awake; s < spinning || s == woken; s = w.parker.state.Load() {
					runtime.Gosched()
				}
			}
		}
		if !l.Wake(true) {
			t.Fatal("nobody was started")
		}
		for range 20 {
			idle()
			if got := l.Awake(); got != isAwake {
				t.Fatalf("Awake() = %v while workers that never sleep is %v", got, isAwake)
			}
			if got := l.Wake(false); got != isAwake {
				t.Fatalf("Wake of who is awake = %v", got)
			}
			if !isAwake && !l.Wake(true) {
				t.Fatal("nobody was woken")
			}
		}
	}
}

// A goroutine that nobody wakes for long ends, and a wake starts another one. At whatever moment the wake
// comes, it is not missed.
func TestRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seed := uint64(rand.Int64())
		t.Logf("seed %d", seed)
		rnd := rand.New(rand.NewPCG(seed, 0))
		var b bell
		var asked, served, starts atomic.Int64
		b.parker.rest(func() {
			starts.Add(1)
			go func() {
				b.begin()
				for served.Store(asked.Load()); b.wait(); {
					served.Store(asked.Load())
				}
			}()
		})
		const rounds = 2000
		for range rounds {
			time.Sleep([]time.Duration{0, 1, restAfter - 1, restAfter, restAfter + 1, 3 * restAfter}[rnd.IntN(6)])
			asked.Add(1)
			b.ring()
			if rnd.IntN(2) == 0 {
				asked.Add(1)
				b.ring()
			}
			synctest.Wait()
			if asked.Load() != served.Load() {
				t.Fatalf("asked %d times, and heard until %d", asked.Load(), served.Load())
			}
		}
		if n := starts.Load(); n < rounds/10 || n > rounds {
			t.Errorf("%d goroutines were started in %d rounds", n, rounds)
		}
		time.Sleep(2 * restAfter) // or the bubble says that a goroutine is left
	})
}
