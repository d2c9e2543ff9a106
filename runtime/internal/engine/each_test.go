package engine

import (
	"context"
	"errors"
	"testing"
)

// Waiting for several storages is one wait; the error is that of the first that is spoiled.
func TestWaitEach(t *testing.T) {
	onDevices(t, func(s *setup) {
		k, _, open := blocking()
		defer open()
		x := s.from(1)
		a := s.apply(k, x)
		ctx, cancel := context.WithCancel(bg)
		cancel()
		if err := WaitEach(ctx, "each", []*Storage{x, a}); !errors.Is(err, context.Canceled) {
			s.Errorf("with a cancelled context: %v", err)
		}
		bad, worse := s.apply(failing, a), s.apply(failing, x)
		before := s.e.Stats().Waits
		go open()
		if err := WaitEach(bg, "each", []*Storage{x, a, bad, s.apply(addOne, a), worse}); err == nil || err != bad.Err() {
			s.Errorf("got %v, want %v", err, bad.Err())
		}
		if waits := s.e.Stats().Waits - before; waits > 1 {
			s.Errorf("%d waits", waits)
		}
		s.want(a, 2)
		if err := WaitEach(bg, "each", []*Storage{x, a}); err != nil {
			s.Error(err)
		}
	})
}
