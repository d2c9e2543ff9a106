package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// wants checks that err says that a call waits on a line of this file.
func (s *setup) wantsSyncError(err error, call string, line int) {
	s.Helper()
	if e, ok := errors.AsType[*SyncError](err); !ok || e.Call != call || filepath.Base(e.File) != "sync_test.go" || e.Line != line {
		s.Errorf("%v, want a SyncError of %s on line %d", err, call, line)
	} else if !strings.HasSuffix(err.Error(), fmt.Sprintf("sync_test.go:%d: %s waits, which is forbidden here", line, call)) {
		s.Errorf("the error is %q", err)
	}
}

// With Error, calls that have to wait fail at once, calls for ready values succeed, and the values that
// were not waited for stay good.
func TestForbiddenWaits(t *testing.T) {
	onDevices(t, func(s *setup) {
		k, _, open := blocking()
		defer open()
		ready := s.fetch(s.from(7))
		ready.Wait(bg, "read")
		y := s.apply(k, s.from(1))
		x := s.fetch(y)
		if old := s.e.SetSyncPolicy(Error); old != Allow {
			s.Errorf("the policy was %v", old)
		}
		if err := ready.Wait(bg, "read"); err != nil {
			s.Error(err)
		}
		s.wantsSyncError(x.Wait(bg, "Item"), "Item", here(0))
		s.wantsSyncError(WaitEach(bg, "Wait", []*Storage{ready, x}), "Wait", here(0))
		s.wantsSyncError(s.e.WaitAll(bg), "WaitAll", here(0))
		s.wantsSyncError(s.e.Synchronize(bg, s.dev), "Synchronize", here(0))
		if n := s.e.Stats().Waits; n > 1 {
			s.Errorf("%d waits", n)
		}
		open()
		AllowSync(func() {
			if err := errors.Join(x.Wait(bg, "Item"), s.e.WaitAll(bg)); err != nil {
				s.Error(err)
			}
		})
		if err := errors.Join(x.Wait(bg, "Item"), s.e.WaitAll(bg)); err != nil {
			s.Errorf("what has finished: %v", err)
		}
		s.apply(k, y)
	}) // Close waits, forbidden or not
}

// Waiting is allowed in everything that AllowSync's function does on its goroutine, however deep, and also
// after a nested call; it is not allowed after the function, or on other goroutines.
func TestAllowSyncIsOfOneGoroutine(t *testing.T) {
	e, dev := newEngine(t, Options{Mode: Async}), newCPU(1)
	e.SetSyncPolicy(Error)
	k, _, open := blocking()
	defer open()
	x := fromFloats(e, dev, 1)
	unary(e, k, x, x)
	cancelled, cancel := context.WithCancel(bg)
	cancel()
	wait := func() error { // nil if it may
		if err := x.Wait(cancelled, "Item"); !errors.Is(err, context.Canceled) {
			return err
		}
		return nil
	}
	var deep func(n int) error
	deep = func(n int) error {
		if n > 0 {
			return deep(n - 1)
		}
		return wait()
	}
	AllowSync(func() {
		var other error
		var wg sync.WaitGroup
		wg.Go(func() { other = wait() })
		wg.Wait()
		if other == nil {
			t.Error("another goroutine may wait")
		}
		AllowSync(func() {})
		if err := deep(300); err != nil {
			t.Error(err)
		}
	})
	func() {
		defer func() { recover() }()
		AllowSync(func() { panic("over") })
	}()
	if wait() == nil {
		t.Error("after AllowSync, waiting is allowed")
	}
	e.SetSyncPolicy(Allow)
	if err := wait(); err != nil {
		t.Error(err)
	}
}

// With Log, each line that waits is told once, until it is set again.
func TestLoggedWaits(t *testing.T) {
	onDevices(t, func(s *setup) {
		var out bytes.Buffer
		s.e.syncs.out = &out
		s.e.SetSyncPolicy(Log)
		k, _, open := blocking()
		defer open()
		x := s.fetch(s.apply(k, s.from(1)))
		cancelled, cancel := context.WithCancel(bg)
		cancel()
		again := func() { x.Wait(cancelled, "Item") } // one line
		line := here(-1)
		for range 3 {
			again()
		}
		AllowSync(func() { x.Wait(cancelled, "Item") })
		s.e.SetSyncPolicy(Log)
		again()
		want := fmt.Sprintf("sync_test.go:%d: Item waits\n", line)
		if lines := strings.SplitAfter(out.String(), "\n"); len(lines) != 3 || !strings.HasSuffix(lines[0], want) || lines[1] != lines[0] {
			s.Errorf("told %q, want twice %q", out.String(), want)
		}
	})
}

// ForbidSync applies to one goroutine and what it calls. If it and AllowSync are nested, the inner one
// counts. Where there is neither, the policy of SetSyncPolicy counts.
func TestForbidSync(t *testing.T) {
	onDevices(t, func(s *setup) {
		k, _, open := blocking()
		defer open()
		x := s.fetch(s.apply(k, s.from(1)))
		cancelled, cancel := context.WithCancel(bg)
		cancel()
		mayWait := func() bool { return errors.Is(x.Wait(cancelled, "Item"), context.Canceled) }
		expect := func(what string, want bool) {
			s.Helper()
			if mayWait() != want {
				s.Errorf("%s: it may wait: %v", what, !want)
			}
		}
		expect("before", true)
		ForbidSync(func() {
			expect("in ForbidSync", false)
			s.wantsSyncError(x.Wait(bg, "Item"), "Item", here(0))
			s.wantsSyncError(s.e.WaitAll(bg), "WaitAll", here(0))
			var other bool
			var wg sync.WaitGroup
			wg.Go(func() { other = mayWait() })
			wg.Wait()
			if !other {
				s.Error("another goroutine may not wait")
			}
			AllowSync(func() {
				expect("in AllowSync in it", true)
				ForbidSync(func() { expect("in ForbidSync in that", false) })
				expect("behind that", true)
			})
			expect("behind AllowSync", false)
		})
		expect("behind it", true)
		func() {
			defer func() { recover() }()
			ForbidSync(func() { panic("over") })
		}()
		expect("after a panic", true)
		if n := forbidding.Load(); n != 0 {
			s.Errorf("%d calls are left", n)
		}
		s.e.SetSyncPolicy(Log)
		ForbidSync(func() { expect("with Log", false) })
		s.e.SetSyncPolicy(Error)
		expect("with Error", false)
		ForbidSync(func() { AllowSync(func() { expect("with Error, in AllowSync", true) }) })
	})
}
