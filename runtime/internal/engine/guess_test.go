package engine

import (
	"errors"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/asyncgen/asyncgen/device"
)

// Discarded operations that have not begun never begin, even if they are enqueued after Discard. Their
// results are spoiled, their failures are not returned, and operations before, after and beside them are
// not affected.
func TestDiscardCancels(t *testing.T) {
	onDevices(t, func(s *setup) {
		block, started, open := blocking()
		defer open()
		var ran atomic.Int64
		count := fakeKernel("count", 1, func(c *device.Command) error {
			ran.Add(1)
			return errBoom
		})
		x := s.apply(block, s.from(1))
		<-started
		before := s.apply(addOne, x)
		sp := s.e.Speculate()
		first := sp.Guess()
		kept := s.apply(addOne, before)
		second := sp.Guess()
		var unwanted []*Storage
		for range 20 {
			unwanted = append(unwanted, s.apply(count, kept))
		}
		third := sp.Guess()
		unwanted = append(unwanted, s.apply(count, kept), s.fetch(s.apply(addOne, kept)))
		beside := make(chan *Storage)
		go func() { beside <- s.apply(addOne, x) }()
		other := <-beside
		first.Keep()
		second.Discard()
		third.Discard()
		unwanted = append(unwanted, s.apply(count, kept), s.fetch(s.apply(addOne, kept)))
		sp.End()
		after := s.apply(addOne, kept)
		open()
		s.want(before, 3)
		s.want(kept, 4)
		s.want(other, 3)
		s.want(after, 5)
		if err := s.e.WaitAll(bg); err != nil {
			s.Errorf("WaitAll: %v", err)
		}
		if n := ran.Load(); n != 0 && s.dev.Backend().Caps().Synchronous { // another kind has got them before
			s.Errorf("%d unwanted operations have run", n)
		}
		for i, u := range unwanted {
			if err := u.Err(); !errors.Is(err, ErrDiscarded) && (s.dev.Backend().Caps().Synchronous || i > 21) {
				s.Errorf("result %d of an unwanted operation: %v", i, err)
			}
		}
		if st := s.e.Stats(); st.InFlightBytes != 0 || st.Executed+st.Skipped != st.Enqueued {
			s.Errorf("left over: %+v", st)
		}
	})
}

// WaitAll returns the failures of a guess once it is kept, in program order, whenever they happen. Those
// of a nested guess it returns once both are kept.
func TestFailuresOfGuesses(t *testing.T) {
	onAll(t, func(s *setup) {
		fail := func() *Storage { return s.apply(failing, s.from(1)) }
		rootsAre := func(when string, want ...*Storage) {
			s.Helper()
			err := s.e.WaitAll(bg)
			var got []error
			if err != nil {
				got = err.(interface{ Unwrap() []error }).Unwrap()
			}
			ok := len(got) == len(want)
			for i := 0; ok && i < len(got); i++ {
				ok = got[i] == want[i].Err()
			}
			if !ok {
				s.Errorf("%s: %d failures, %v", when, len(got), err)
			}
		}
		sp := s.e.Speculate()
		outer := sp.Guess()
		a := fail()
		inner := s.e.Speculate()
		one, two := inner.Guess(), (*Guess)(nil)
		b := fail()
		two = inner.Guess()
		fail()
		inner.End()
		c := fail() // part of outer alone
		next := sp.Guess()
		d := fail()
		sp.End()
		e := fail()
		if !errors.Is(c.Wait(bg, "read"), errBoom) {
			s.Error("a failure is not seen in its place")
		}
		rootsAre("undecided", e)
		one.Keep()
		two.Discard()
		rootsAre("part of what is undecided")
		outer.Keep()
		rootsAre("kept", a, b, c)
		next.Keep()
		rootsAre("kept, too", d)

		sp = s.e.Speculate()
		outer = sp.Guess()
		inner = s.e.Speculate()
		one = inner.Guess()
		fail()
		one.Keep()
		inner.End()
		outer.Discard()
		fail()
		two = s.e.Speculate().Guess()
		fail() // within what is discarded already
		two.Keep()
		sp.End()
		rootsAre("discarded")
	})
}

// A failure that comes after the decision is treated like one that came before.
func TestLateFailuresOfGuesses(t *testing.T) {
	onDevices(t, func(s *setup) {
		block, started, open := blocking()
		defer open()
		x := s.apply(block, s.from(1))
		<-started
		sp := s.e.Speculate()
		kept := sp.Guess()
		a := s.apply(failing, x)
		unwanted := sp.Guess()
		s.apply(failing, x)
		sp.End()
		kept.Keep()
		unwanted.Discard()
		open()
		err := s.e.WaitAll(bg)
		if err == nil || len(err.(interface{ Unwrap() []error }).Unwrap()) != 1 || !errors.Is(err, a.Err()) {
			s.Errorf("WaitAll: %v", err)
		}
	})
}

// If a goroutine ends, or goes on, without ending its speculation, WaitAll returns one error with the
// line. After that nothing is left of the speculation: operations of other goroutines, and later ones of
// the same goroutine, do not belong to it.
func TestLeftSpeculations(t *testing.T) {
	onAll(t, func(s *setup) {
		lines := make(chan int, 10)
		begin := func() *Speculation {
			_, _, line, _ := runtime.Caller(0)
			lines <- line + 2
			sp := s.e.Speculate()
			sp.Guess()
			s.apply(failing, s.from(1))
			return sp
		}
		var kept *Speculation
		ways := map[string]func(){
			"returns":                   func() { begin() },
			"returns, and keeps it":     func() { kept = begin() },
			"panics":                    func() { begin(); panic("ouch") },
			"leaves":                    func() { begin(); runtime.Goexit() },
			"leaves one within another": func() { begin(); begin() },
		}
		for name, way := range ways {
			var id, record uintptr
			var wg sync.WaitGroup
			wg.Go(func() {
				defer func() { _ = recover() }()
				id, record = self(), goroutine()
				way()
			})
			wg.Wait()
			for !hasEnded(id, record) || !hasNoTrace(id) {
				runtime.Gosched()
			}
			wantLeft(s, name, lines)
			for range 50 { // some of them get the record
				wg.Go(func() {
					if s.e.guess() != nil {
						s.Errorf("%s: another goroutine has the Guess of one that has ended", name)
					}
				})
			}
			wg.Wait()
		}
		runtime.KeepAlive(kept)
		func() { begin() }()
		runtime.GC()
		wantLeft(s, "forgotten", lines)
		outer := begin()
		<-lines
		func() { begin() }()
		runtime.GC()
		wantLeft(s, "forgotten within another", lines)
		if s.e.guess() != outer.last.g {
			s.Error("forgotten within another: the other one is gone, too")
		}
		outer.last.g.Discard()
		outer.End()
		func() {
			_, _, line, _ := runtime.Caller(0)
			lines <- line + 2
			s.e.NewBacklog().Add(3)
			s.e.NewBacklog()
		}()
		runtime.GC()
		wantLeft(s, "functions that were put off", lines)
	})
}

// wantLeft checks that WaitAll returns a LeftError for each of the lines, and then nothing.
func wantLeft(s *setup, name string, lines chan int) {
	s.Helper()
	left := map[int]bool{}
	var got []error
	if err := s.e.WaitAll(bg); err != nil {
		got = err.(interface{ Unwrap() []error }).Unwrap()
	}
	n := len(lines)
	for range n {
		left[<-lines] = true
	}
	if len(got) != n {
		s.Errorf("%s: WaitAll returns %d errors, not %d: %v", name, len(got), n, got)
	}
	for _, err := range got {
		var l *LeftError
		if !errors.As(err, &l) || !left[l.Line] || filepath.Base(l.File) != "guess_test.go" {
			s.Errorf("%s: WaitAll returns %v, and not about one of the lines %v", name, err, left)
		}
	}
	if err := s.e.WaitAll(bg); err != nil {
		s.Errorf("%s: WaitAll again: %v", name, err)
	}
}

// The number of a goroutine differs from those of all other goroutines, also of ended ones, whichever way
// it is found, and stays the same while the stack grows.
func TestSelf(t *testing.T) {
	me := self()
	if other := idByTrace(); other != me || hasEnded(me, goroutine()) || hasNoTrace(me) || !hasNoTrace(me+1<<40) {
		t.Errorf("goroutine %d is %d by its trace, or one of the two is not there", me, other)
	}
	if runtime.GOARCH == "amd64" && idAt == 0 {
		t.Errorf("where records have numbers was not found")
	}
	var deep func(n int) uintptr
	deep = func(n int) uintptr {
		var pad [512]byte
		if n == 0 {
			return self() + uintptr(pad[0])
		}
		return deep(n-1) + uintptr(pad[n%512])
	}
	if got := deep(1000); got != me || me == 0 {
		t.Errorf("self is %d, and %d deep in the stack", me, got)
	}
	var mu sync.Mutex
	seen := map[uintptr]bool{me: true}
	var all, wg sync.WaitGroup
	all.Add(50)
	for range 50 {
		wg.Go(func() {
			mu.Lock()
			seen[self()] = true
			mu.Unlock()
			all.Done()
			all.Wait() // all are there at the same time
		})
	}
	wg.Wait()
	if len(seen) != 51 {
		t.Errorf("51 goroutines have %d identities", len(seen))
	}
}
