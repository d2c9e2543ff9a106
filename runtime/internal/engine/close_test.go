package engine

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/asyncgen/asyncgen/device"
)

// Close waits for pending operations, also those of several goroutines. After it, results can be read and
// released, and every call that enqueues panics.
func TestUsedAfterClose(t *testing.T) {
	onAll(t, func(s *setup) {
		x := s.apply(addOne, s.from(1, 2, 3))
		bad := s.apply(failing, x)
		y := s.fetch(x)
		k, _, open := blocking()
		if s.e.mode == Async { // with work that is not done
			last := s.apply(k, x)
			go func() {
				s.e.stream(s.dev).exec.nudge()
				open()
			}()
			defer func() {
				if err := last.Wait(bg, "read"); err != nil {
					s.Errorf("what was pending: %v", err)
				}
			}()
		}
		var wg sync.WaitGroup
		errs := make([]error, 3)
		for i := range errs {
			wg.Go(func() { errs[i] = s.e.Close() })
		}
		wg.Wait()
		told := 0
		for _, err := range errs {
			if errors.Is(err, errBoom) {
				told++
			} else if err != nil {
				s.Errorf("Close: %v", err)
			}
		}
		if told != 1 {
			s.Errorf("%d of several calls of Close have returned the failure", told)
		}
		if err := s.e.Close(); err != nil {
			s.Errorf("Close again: %v", err)
		}
		if !bad.Ready() || !errors.Is(bad.Wait(bg, "read"), errBoom) {
			s.Errorf("the failure is now %v", bad.Err())
		}
		if err := y.Wait(bg, "read"); err != nil || device.Slice[float64](y.Buffer(), 0, 3)[2] != 4 {
			s.Errorf("the result is now %v, %v", y.Buffer(), err)
		}
		if err := s.e.WaitAll(context.Background()); err != nil {
			s.Errorf("WaitAll: %v", err)
		}
		out := s.new(3)
		for range 2 {
			for what, f := range map[string]func(){
				"Enqueue":                  func() { unary(s.e, addOne, out, x) },
				"Copy":                     func() { s.e.Copy(x, 0, 3, device.Float64, s.host) },
				"NewStorage, a new device": func() { s.e.NewStorage(newCPU(1), 8) },
			} {
				if v := recovered(f); v != usedAfterClose {
					s.Errorf("%s: got %v", what, v)
				}
			}
		}
		s.e.Release(x)
		if err := x.Wait(bg, "read"); x.Buffer() != nil && x.own.Ptr == nil || err != nil && !errors.Is(err, errReleased) {
			s.Errorf("released: %v, %v", x.Buffer(), err)
		}
	})
}

func recovered(f func()) (v any) {
	defer func() { v = recover() }()
	f()
	return nil
}
