package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/asyncgen/asyncgen/device"
)

// mortal is a device that is lost when it gets a command of the kernel dying. It does not run that command.
type mortal struct {
	device.Backend
	silent bool // it never reports commands that it has not run as done

	mu   sync.Mutex
	lost bool
	last device.Ticket // that was run
}

var dying = fakeKernel("dying", 1, func(*device.Command) error { panic("a lost device has run a command") })

var errFell = fmt.Errorf("fell off the bus: %w", device.ErrLost)

func (m *mortal) isLost() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.lost
}

func (m *mortal) Alloc(bytes int64) (*device.Buffer, error) {
	if m.isLost() {
		return nil, errFell
	}
	return m.Backend.Alloc(bytes)
}

func (m *mortal) Submit(cmds []device.Command) (device.Ticket, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.lost {
		return 0, errFell
	}
	for i, c := range cmds {
		if c.Kernel == dying {
			m.lost = true
			if m.Caps().Synchronous {
				return 0, errFell
			}
			if i > 0 {
				m.last, _ = m.Backend.Submit(cmds[:i])
			}
			return m.last + device.Ticket(len(cmds)-i), nil
		}
	}
	last, err := m.Backend.Submit(cmds)
	if err == nil {
		m.last = last
	}
	return last, err
}

// never reports whether the command with ticket t will never run.
func (m *mortal) never(t device.Ticket) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.lost && t > m.last
}

func (m *mortal) Done(t device.Ticket) bool {
	if m.never(t) {
		return !m.silent
	}
	return m.Backend.Done(t)
}

func (m *mortal) Wait(ctx context.Context, t device.Ticket) error {
	if m.never(t) {
		m.Backend.Wait(ctx, m.last) // so that what finishes does not depend on time
		return errFell
	}
	return m.Backend.Wait(ctx, t)
}

func (m *mortal) Failure(t device.Ticket) error {
	if m.never(t) {
		return errFell
	}
	return m.Backend.Failure(t)
}

// onMortals runs f with every kind of device that can be lost, in every mode, with and without bounds that
// stall producers.
func onMortals(t *testing.T, f func(s *setup)) {
	for _, k := range kindsOfDevice {
		for _, silent := range []bool{false, true} {
			for _, o := range []Options{
				{Mode: Async, MaxBytes: -1}, {Mode: Async, MaxBytes: 64, Ring: 2, Workers: 2}, {Mode: Async, Ring: 8}, {Mode: Naive}, {Mode: Shuffle, Seed: 1},
			} {
				d := k.make(t)
				if silent && d.Backend().Caps().Synchronous {
					continue
				}
				t.Run(fmt.Sprintf("%s/silent=%v/%+v", k.name, silent, o), func(t *testing.T) {
					runOn(t, device.Wrap(d.Name(), d.Kind(), &mortal{Backend: d.Backend(), silent: silent}), o, f)
				})
			}
		}
	}
}

// A lost device stays lost: everything enqueued on it fails with the first cause. Other devices go on.
func TestLost(t *testing.T) {
	onMortals(t, func(s *setup) {
		elsewhere := newCPU(1)
		other := fromFloats(s.e, elsewhere, 1)
		x := s.from(1)
		before := s.apply(addOne, x)
		if err := before.Wait(bg, "read"); err != nil {
			s.Fatalf("before the loss: %v", err)
		}
		end := s.apply(dying, x)
		dependent := s.apply(addOne, end)
		first := end.Wait(bg, "read")
		var oe *OpError
		if !errors.As(first, &oe) || oe.Op != "dying" || oe.Line == 0 || !strings.HasSuffix(oe.File, "_test.go") || !errors.Is(first, device.ErrLost) {
			s.Fatalf("the loss is %+v", first)
		}
		if err := dependent.Wait(bg, "read"); err != first {
			s.Errorf("a dependent: %+v", err)
		}
		if err := s.e.WaitAll(bg); len(rootsOf(err)) != 1 || rootsOf(err)[0] != first {
			s.Errorf("WaitAll: %v", err)
		}
		if err := s.e.WaitAll(bg); err != nil {
			s.Errorf("WaitAll again: %v", err)
		}

		big := s.apply(addOne, s.from(1, 2, 3, 4, 5, 6, 7, 8, 9))
		for range 300 {
			later := s.apply(addOne, s.apply(dying, s.apply(addOne, x)))
			if later.Err() != nil && later.Err() != first {
				s.Errorf("later: %+v", later.Err())
			}
			other = unary(s.e, addOne, s.e.NewStorage(elsewhere, 8), other)
		}
		if err := s.e.Synchronize(bg, elsewhere); err != nil {
			s.Errorf("another device: %+v", err)
		}
		for name, y := range map[string]*Storage{"later": s.apply(addOne, x), "later and larger": big, "uploaded": s.apply(addOne, s.from(1))} {
			if err := y.Wait(bg, "read"); err != first {
				s.Errorf("%s: %+v, want the first cause", name, err)
			}
		}
		if err := s.e.WaitAll(bg); len(rootsOf(err)) != 1 || rootsOf(err)[0] != first {
			s.Errorf("WaitAll after more was enqueued: %v", err)
		}
		if got := device.Slice[float64](other.Buffer(), 0, 1)[0]; other.Wait(bg, "read") != nil || got != 301 {
			s.Errorf("another device has %v, %v", got, other.Err())
		}

		copied := s.e.Copy(before, 0, 1, device.Float64, elsewhere)
		err := copied.Wait(bg, "read")
		if reachable := s.dev.Backend().Caps().HostMemory; reachable && err != nil || !reachable && err != first {
			s.Errorf("a copy to another device: %+v", err)
		}
		s.e.Release(before, big)
		if err := s.e.Close(); err != nil && (len(rootsOf(err)) != 1 || rootsOf(err)[0] != first) {
			s.Errorf("Close: %v", err)
		}
		if m := s.e.Stats(); m.InFlightBytes != 0 {
			s.Errorf("%d bytes are in flight for ever", m.InFlightBytes)
		}
	})
}

// rootsOf lists the failures that WaitAll has joined.
func rootsOf(err error) []error {
	if err, ok := err.(interface{ Unwrap() []error }); ok {
		return err.Unwrap()
	}
	return nil
}

// Everything in flight on a device when it is lost fails with one cause, and every wait for it ends with
// that cause.
func TestLostWithWorkPending(t *testing.T) {
	onMortals(t, func(s *setup) {
		x := s.from(1)
		var pending []*Storage
		for i := range 200 {
			k := addOne
			if i == 100 {
				k = dying
			}
			x = s.apply(k, x)
			pending = append(pending, x)
		}
		first := pending[100].Wait(bg, "read")
		if !errors.Is(first, device.ErrLost) {
			s.Fatalf("the loss is %v", first)
		}
		for i, x := range pending {
			if err := x.Wait(bg, "read"); i < 100 && err != nil || i >= 100 && err != first {
				s.Errorf("operation %d: %v", i, err)
			}
		}
		if err := s.e.Close(); len(rootsOf(err)) != 1 || rootsOf(err)[0] != first {
			s.Errorf("Close: %v", err)
		}
	})
}

// Each scope returns a loss that its operations have met, and WaitAll returns it once.
func TestLostInScopes(t *testing.T) {
	onMortals(t, func(s *setup) {
		a, b, c := device.WithContext(bg, s.dev), device.WithContext(bg, s.dev), device.WithContext(bg, s.dev)
		x := s.from(1)
		end := unary(s.e, dying, s.e.NewStorage(a, 8), x)
		first := end.Wait(bg, "read")
		for range 3 {
			unary(s.e, addOne, s.e.NewStorage(b, 8), x)
		}
		for name, d := range map[string]device.Device{"where it was found": a, "of later operations": b} {
			if err := s.e.Synchronize(bg, d); len(rootsOf(err)) != 1 || rootsOf(err)[0] != first {
				s.Errorf("the scope %s: %v", name, err)
			}
		}
		if err := s.e.Synchronize(bg, c); err != nil {
			s.Errorf("a scope without operations: %v", err)
		}
		unary(s.e, addOne, s.e.NewStorage(b, 8), x)
		unary(s.e, addOne, s.e.NewStorage(c, 8), x)
		if err := s.e.WaitAll(bg); len(rootsOf(err)) != 1 || rootsOf(err)[0] != first {
			s.Errorf("WaitAll: %v", err)
		}
	})
}

// A loss that only discarded operations have met is no failure of the program, until the program enqueues
// something on the device.
func TestLostInAGuess(t *testing.T) {
	onMortals(t, func(s *setup) {
		x := s.from(1)
		ahead := s.e.Speculate()
		guess := ahead.Guess()
		end := s.apply(dying, x)
		first := end.Wait(bg, "read")
		ahead.End()
		guess.Discard()
		if err := s.e.WaitAll(bg); err != nil {
			s.Errorf("WaitAll: %v", err)
		}
		y := s.apply(addOne, x)
		if err := s.e.WaitAll(bg); len(rootsOf(err)) != 1 || rootsOf(err)[0] != first || y.Err() != first {
			s.Errorf("WaitAll: %v, the result %v", err, y.Err())
		}
	})
}
