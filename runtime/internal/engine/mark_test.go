package engine

import (
	"context"
	"errors"
	"testing"
)

// A mark is reached when everything enqueued before it has finished, in whatever order, also with
// failures. Operations enqueued after it don't matter.
func TestMark(t *testing.T) {
	onDevices(t, func(s *setup) {
		hold, _, open := blocking()
		defer open()
		x := s.from(1)
		first := s.e.Mark(s.dev)
		if err := first.Wait(bg, "mark"); err != nil {
			s.Error(err)
		}
		y := s.apply(hold, x)
		s.apply(failing, x)
		second, third := s.e.Mark(s.dev), s.e.Mark()
		hold2, _, open2 := blocking()
		defer open2()
		z := s.apply(hold2, y)
		fourth := s.e.Mark()
		if at, ok := first.Reached(); !ok || at <= 0 {
			s.Errorf("the first mark is reached: %v at %v", ok, at)
		}
		cancelled, cancel := context.WithCancel(bg)
		cancel()
		for _, m := range []*Mark{second, third, fourth} {
			if err := m.Wait(cancelled, "mark"); !errors.Is(err, context.Canceled) {
				s.Errorf("with a cancelled context: %v", err)
			}
			if _, ok := m.Reached(); ok {
				s.Error("a mark is reached while an operation before it is blocked")
			}
		}
		s.e.SetSyncPolicy(Error)
		if err := second.Wait(bg, "mark"); err == nil {
			s.Error("waiting for a mark is allowed")
		}
		s.e.SetSyncPolicy(Allow)
		open()
		if err := errors.Join(second.Wait(bg, "mark"), third.Wait(bg, "mark")); err != nil {
			s.Error(err)
		}
		at, ok := first.Reached()
		at2, ok2 := second.Reached()
		at3, ok3 := third.Reached()
		if !ok || !ok2 || !ok3 || at > at2 || at > at3 {
			s.Errorf("reached %v %v %v at %v, %v, %v", ok, ok2, ok3, at, at2, at3)
		}
		if _, ok := fourth.Reached(); ok {
			s.Error("the last mark is reached too early")
		}
		open2()
		s.want(z, 3)
		if err := fourth.Wait(bg, "mark"); err != nil {
			s.Error(err)
		}
		if err := s.e.WaitAll(bg); !errors.Is(err, errBoom) {
			s.Errorf("a mark has taken the error: %v", err)
		}
	})
}

// The second of two marks is never reached before the first, even if both are reached while the second is
// being made.
func TestMarkIsNotReachedBeforeAnEarlierOne(t *testing.T) {
	e := newEngine(t, Options{Mode: Async})
	st := e.stream(newCPU(1))
	first, second := &Mark{e: e, left: 1, at: 1}, &Mark{e: e, left: 1, at: 2}
	var s marks
	s.add(first, 1, 0, st)
	s.reach(1, st)
	s.add(second, 1, 1, st)
	at, ok := first.Reached()
	at2, ok2 := second.Reached()
	if !ok || !ok2 || at <= 2 || at2 < at {
		t.Errorf("reached %v %v at %v, %v", ok, ok2, at, at2)
	}
}

// In mode Naive marks are reached at once, and in mode Shuffle when somebody waits for them.
func TestMarkInOtherModes(t *testing.T) {
	for _, mode := range []Mode{Naive, Shuffle} {
		for _, k := range kindsOfDevice {
			runOn(t, k.make(t), Options{Mode: mode}, func(s *setup) {
				x := s.apply(addOne, s.from(1))
				m := s.e.Mark()
				if _, ok := m.Reached(); !ok && mode == Naive {
					s.Error("not reached")
				}
				if err := m.Wait(bg, "mark"); err != nil {
					s.Error(err)
				}
				if _, ok := m.Reached(); !ok || !x.Ready() {
					s.Errorf("mode %v: reached %v, ready %v", mode, ok, x.Ready())
				}
			})
		}
	}
}
