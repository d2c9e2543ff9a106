// Package bubble is for a library that is used in bubbles of testing/synctest and outside of them
// in the same process. A bubble has its own goroutines, timers and time; a goroutine of it must not
// wait on a WaitGroup that is used outside, nor leave a goroutine or a channel to others. So what
// all share is made, and is waited for, outside of any bubble.
package bubble

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// In reports whether the caller is in a bubble. The clock gives it away.
func In() bool { return Told(time.Now()) }

// Told reports whether now is a reading of the clock in a bubble, which has no monotonic part.
func Told(now time.Time) bool { return now == now.Round(0) }

// Outside calls f on a goroutine outside of any bubble, or here if the caller is outside. It
// returns, or panics, when f has. Meanwhile the bubble's time does not pass: the caller is not
// durably blocked.
func Outside(f func()) {
	if !In() {
		f()
		return
	}
	start()
	j := &job{f: f}
	j.done.Lock()
	jobs.mu.Lock()
	jobs.list = append(jobs.list, j)
	if !jobs.isRung {
		jobs.isRung = true
		jobs.bell.Unlock()
	}
	jobs.mu.Unlock()
	j.done.Lock() // until it has been unlocked
	if j.panicked {
		panic(j.value)
	}
}

// Now is the time outside of any bubble.
func Now() time.Time {
	if now := time.Now(); !Told(now) {
		return now
	}
	var now time.Time // which escapes
	Outside(func() { now = time.Now() })
	return now
}

// Sleep sleeps by the clock outside of any bubble. Who may hold a lock must not sleep by that of a bubble:
// that stands still as long as anybody there waits for the lock.
func Sleep(d time.Duration) { Outside(func() { time.Sleep(d) }) }

type job struct {
	f        func()
	done     sync.Mutex // locked until f has returned
	panicked bool
	value    any
}

// jobs are what dispatch is to start. It waits for a mutex: nobody is tied to a bubble by that, as by a channel.
var jobs struct {
	mu     sync.Mutex // guards the rest
	list   []*job
	isRung bool       // bell was unlocked, and dispatch has not looked since
	bell   sync.Mutex // locked while there is nothing to do

	starting sync.Mutex // held while dispatch is started
	started  atomic.Bool
}

// start starts dispatch, if that has not been done before. A goroutine of a bubble can't start one that is
// outside; but what the collector calls when it has found that something is gone is outside.
func start() {
	if jobs.started.Load() {
		return
	}
	jobs.starting.Lock()
	defer jobs.starting.Unlock()
	if jobs.started.Load() {
		return
	}
	jobs.bell.Lock()
	escape(func() {
		if jobs.started.CompareAndSwap(false, true) {
			go dispatch()
		}
	})
}

// escape has the collector call f, and returns when it has, once or twice: by a cleanup and by a finalizer,
// as one of the program's own may be in the way of the others of its kind, and wait for us.
func escape(f func()) {
	var called atomic.Bool
	forget(func() {
		f()
		called.Store(true)
	})
	for !called.Load() {
		runtime.GC()
	}
}

// forget makes two things and drops them. When the collector has noticed, it calls f for each.
//
//go:noinline
func forget(f func()) {
	runtime.AddCleanup(new([4]*int), func(int) { f() }, 0)
	runtime.SetFinalizer(new([4]*int), func(*[4]*int) { f() })
}

// dispatch is a goroutine that never ends.
func dispatch() {
	for {
		jobs.bell.Lock()
		jobs.mu.Lock()
		list := jobs.list
		jobs.list, jobs.isRung = nil, false
		jobs.mu.Unlock()
		for _, j := range list {
			go j.run()
		}
	}
}

func (j *job) run() {
	defer j.done.Unlock()
	defer func() { j.value = recover() }()
	j.panicked = true
	j.f()
	j.panicked = false
}
