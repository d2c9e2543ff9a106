package bubble

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// Who sleeps outside, as who may hold a lock that others in the bubble wait for, is woken up, and the time
// outside is not the bubble's.
func TestTimeOutside(t *testing.T) {
	before := time.Now()
	if Told(Now()) {
		t.Error("outside, the time is told by a bubble")
	}
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		if now := Now(); Told(now) || now.Before(before) {
			t.Errorf("it is %v outside, before %v", now, before)
		}
		var mu sync.Mutex
		for range 4 {
			go func() {
				mu.Lock()
				defer mu.Unlock()
				Sleep(time.Microsecond)
			}()
		}
		synctest.Wait()
		if took := time.Since(began); took != 0 {
			t.Errorf("%v have passed", took)
		}
	})
}

// The way out does not depend on cleanups of the program's own, nor on its finalizers, though each of them
// may be in the way of others.
func TestEscape(t *testing.T) {
	drops := map[string]func(f func()){
		"cleanup":   func(f func()) { runtime.AddCleanup(new([64]*int), func(int) { f() }, 0) },
		"finalizer": func(f func()) { runtime.SetFinalizer(new([64]*int), func(*[64]*int) { f() }) },
	}
	for what, drop := range drops {
		t.Run(what, func(t *testing.T) {
			begun, end := make(chan bool), make(chan bool)
			defer close(end)
			blocked := runtime.GOMAXPROCS(0) // more than there are goroutines for it
			for range blocked {
				drop(func() { begun <- true; <-end })
			}
			for isInTheWay := false; !isInTheWay; {
				runtime.GC()
				select {
				case <-begun:
					isInTheWay = true
				default:
					runtime.Gosched()
				}
			}
			go func() {
				for range blocked - 1 {
					<-begun
				}
			}()
			synctest.Test(t, func(t *testing.T) {
				var inBubble atomic.Bool
				escape(func() { inBubble.Store(inBubble.Load() || In()) })
				if inBubble.Load() {
					t.Error("it is called in the bubble")
				}
			})
		})
	}
}

// What is called in a bubble runs outside, however many call it at once; a panic comes back; and no
// time passes meanwhile.
func TestOutside(t *testing.T) {
	if In() {
		t.Error("the test is in a bubble")
	}
	var mu sync.Mutex
	var shared sync.WaitGroup // of inside and outside
	for range 2 {
		synctest.Test(t, func(t *testing.T) {
			if !In() {
				t.Error("the bubble is none")
			}
			began := time.Now()
			for range 20 {
				go Outside(func() {
					if In() {
						t.Error("outside is in a bubble")
					}
					mu.Lock()
					defer mu.Unlock()
					shared.Go(func() {})
					shared.Wait()
					time.Sleep(time.Microsecond)
				})
			}
			synctest.Wait()
			func() {
				defer func() {
					if v := recover(); v != "ouch" {
						t.Errorf("the panic is %v", v)
					}
				}()
				Outside(func() { panic("ouch") })
				t.Error("no panic")
			}()
			if took := time.Since(began); took != 0 {
				t.Errorf("%v have passed", took)
			}
		})
	}
	shared.Go(func() {})
	shared.Wait()
	Outside(func() { shared.Go(func() {}) })
}
