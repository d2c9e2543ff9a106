package engine

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/asyncgen/asyncgen/device"
)

var errEnded = errors.New("ended")

// scoped returns dev in a new scope, and a function that ends the scope.
func scoped(dev device.Device) (device.Device, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(bg)
	return device.WithContext(ctx, dev), cancel
}

// When a scope ends, its operations that have not begun, and those that depend on them, never begin. Other
// operations are not affected.
func TestEndOfAScope(t *testing.T) {
	onDevices(t, func(s *setup) {
		request, end := scoped(s.dev)
		hold, started, open := blocking()
		defer open()
		in := func(k *device.Kernel, x *Storage) *Storage { return unary(s.e, k, s.e.NewStorage(request, 8), x) }
		x := s.from(1)
		early := in(addOne, x)
		if err := early.Wait(bg, "read"); err != nil {
			s.Error(err)
		}
		running := in(hold, early)
		s.e.stream(s.dev).exec.flush()
		<-started
		ran := false
		never := fakeKernel("never", 1, func(*device.Command) error { ran = true; return nil })
		if s.e.stream(s.dev).onHost { // a queue may have it already
			running = in(never, running)
		}
		end(errEnded)
		late := in(never, early)
		after := s.apply(addOne, late) // in no scope
		other := s.apply(addOne, early)
		open()
		for what, y := range map[string]*Storage{"its operation": late, "what depends on it": after} {
			err := y.Wait(bg, "read")
			if e, ok := errors.AsType[*OpError](err); !ok || !errors.Is(err, errEnded) || e.Op != "never" || e.Line == 0 {
				s.Errorf("%s: %+v", what, err)
			}
		}
		if err := running.Wait(bg, "read"); s.e.stream(s.dev).onHost != errors.Is(err, errEnded) {
			s.Errorf("what had been enqueued: %v", err)
		}
		if ran {
			s.Error("an operation of the scope has begun after its end")
		}
		s.want(early, 2)
		s.want(other, 3)
		if err := s.e.Synchronize(bg, request); !errors.Is(err, errEnded) {
			s.Errorf("the error of the scope is %v", err)
		}
		if err := s.e.WaitAll(bg); err != nil {
			s.Errorf("the end of a scope is a failure: %v", err)
		}
	})
}

// A wait for a scope waits for the scope's own operations only, and returns their errors.
func TestSynchronizeScope(t *testing.T) {
	onDevices(t, func(s *setup) {
		a, _ := scoped(s.dev)
		b, _ := scoped(s.dev)
		both, _ := device.Join(a, b)
		x := s.from(1)
		in := func(d device.Device, k *device.Kernel, x *Storage) *Storage {
			return unary(s.e, k, s.e.NewStorage(d, 8), x)
		}
		of := in(a, addOne, x)
		badA, badB, badBoth := in(a, failing, x), in(b, failing, of), in(both, failing, of)
		copied := s.e.Copy(of, 0, 1, device.Float64, newCPU(1).Within(a))
		if s.e.stream(s.dev).onHost {
			hold, _, open := blocking()
			defer open()
			s.apply(hold, x)       // in no scope
			in(b, hold, s.from(1)) // in another scope
		}
		if err := s.e.Synchronize(bg, a); !sameErrors(err, badA.Err(), badBoth.Err()) {
			s.Errorf("the errors of the first scope are %v", err)
		}
		if !of.Ready() || !copied.Ready() {
			s.Error("what belongs to the scope is not ready")
		}
		if d := of.Device(); d != a || copied.Device().Scope() != a.Scope() {
			s.Errorf("they are on %v and %v", d, copied.Device())
		}
		cancelled, cancel := context.WithCancel(bg)
		cancel()
		if err := s.e.Synchronize(cancelled, a); err != nil {
			s.Errorf("with nothing to wait for: %v", err)
		}
		if s.e.stream(s.dev).onHost {
			if err := s.e.Synchronize(cancelled, b); !errors.Is(err, context.Canceled) {
				s.Errorf("with a blocked operation: %v", err)
			}
			return
		}
		if err := s.e.WaitAll(bg); !sameErrors(err, badB.Err()) {
			s.Errorf("the errors of the rest are %v", err)
		}
	})
}

// sameErrors reports whether err joins exactly these errors.
func sameErrors(err error, want ...error) bool {
	var got []error
	if err != nil {
		got = err.(interface{ Unwrap() []error }).Unwrap()
	}
	if len(got) != len(want) {
		return false
	}
	for i := range got {
		if got[i] != want[i] {
			return false
		}
	}
	return true
}

// A copy to the host is Ready only when its gate on the host's stream has finished. So the gate belongs to
// the scope as well: otherwise Synchronize could return a moment before the copy is Ready.
func TestSynchronizeScopeWaitsForWhatACopyHasWritten(t *testing.T) {
	runOn(t, newGPU(t), Options{Mode: Async}, func(s *setup) {
		hold, _, open := blocking()
		defer open()
		request, _ := scoped(s.dev)
		x := unary(s.e, hold, s.e.NewStorage(request, 8), s.from(1))
		copied := s.e.Copy(x, 0, 1, device.Float64, s.host.Within(request))
		st := s.e.stream(s.host)
		if _, ok := st.exec.nextOf(request.Scope(), 0, st.enqueued()); !ok || st.enqueued() != 1 {
			t.Errorf("of %d places on the host's stream, belongs to the scope: %v", st.enqueued(), ok)
		}
		open()
		if err := s.e.Synchronize(bg, request); err != nil || !copied.Ready() {
			t.Errorf("ready %v, %v", copied.Ready(), err)
		}
	})
}

// An operation that never begins takes no memory, and its output has no buffer.
func TestEndOfAScopeTakesNoMemory(t *testing.T) {
	onDevices(t, func(s *setup) {
		request, end := scoped(s.dev)
		x := s.from(1, 2, 3)
		end(errEnded)
		y := unary(s.e, addOne, s.e.NewStorage(request, 3*8), x)
		lacks := unary(s.e, addOne, s.e.NewStorage(request, scarce(3)), x)
		for _, z := range []*Storage{y, lacks} {
			if err := z.Wait(bg, "read"); !errors.Is(err, errEnded) || z.Buffer() != nil {
				s.Errorf("the error is %v, the memory %v", err, z.Buffer())
			}
		}
		s.want(x, 1, 2, 3)
	})
}

// A failure belongs to its scope and to its guess: Synchronize returns it once the guess was kept, and
// nobody returns it again. Operations that the end of a scope has kept from running are no failures of a
// guess either.
func TestScopesInGuesses(t *testing.T) {
	onDevices(t, func(s *setup) {
		request, end := scoped(s.dev)
		x := s.from(1)
		in := func(k *device.Kernel) *Storage { return unary(s.e, k, s.e.NewStorage(request, 8), x) }
		sp := s.e.Speculate()
		first := sp.Guess()
		bad := in(failing)
		outside := s.apply(failing, x)
		second := sp.Guess()
		in(failing)
		sp.End()
		if err := s.e.Synchronize(bg, request); err != nil {
			s.Errorf("before the guess is kept: %v", err)
		}
		first.Keep()
		second.Discard()
		if err := s.e.Synchronize(bg, request); !sameErrors(err, bad.Err()) {
			s.Errorf("after it: %v", err)
		}
		if err := s.e.WaitAll(bg); !sameErrors(err, outside.Err()) {
			s.Errorf("the rest: %v", err)
		}
		end(errEnded)
		sp = s.e.Speculate()
		third := sp.Guess()
		late := in(failing)
		sp.End()
		third.Keep()
		if err := late.Wait(bg, "read"); !errors.Is(err, errEnded) {
			s.Errorf("after the end of the scope: %v", err)
		}
		if err := s.e.WaitAll(bg); err != nil {
			s.Errorf("at last: %v", err)
		}
	})
}

// A storage belongs to the scope that it was made in, however it was made.
func TestStoragesOfAScope(t *testing.T) {
	onDevices(t, func(s *setup) {
		request, _ := scoped(s.dev)
		x := fromFloats(s.e, request, 1, 2)
		for what, y := range map[string]*Storage{
			"made":    s.e.NewStorage(request, 8),
			"adopted": x,
			"copied":  s.e.Copy(x, 0, 2, device.Float64, request),
			"fetched": s.e.Copy(x, 0, 2, device.Float64, s.host.Within(request)),
		} {
			if y.Device().Scope() != request.Scope() {
				s.Errorf("%s: the scope is lost", what)
			}
		}
		if d := s.e.Copy(x, 0, 2, device.Float64, s.dev).Device(); d != s.dev {
			s.Error("a copy out of the scope is in it")
		}
	})
}

// A bug: more failures than WaitAll returns, which nobody had asked for, hid the failures of a scope from
// a wait for it.
func TestFailuresOfAScopeAmongMany(t *testing.T) {
	onDevices(t, func(s *setup) {
		request, _ := scoped(s.dev)
		x := s.from(1)
		fails := func(d device.Device) *Storage { return unary(s.e, failing, s.e.NewStorage(d, 8), x) }
		for range maxRoots + 1 {
			fails(s.dev)
		}
		const others = 2*maxRoots + 3
		var ends []context.CancelCauseFunc
		for i := range others {
			d, end := scoped(s.dev)
			fails(d)
			ends = append(ends, end)
			if i%500 == 0 {
				s.e.Mark().Wait(bg, "mark")
				for _, end := range ends {
					end(errEnded)
				}
			}
		}
		s.e.Mark().Wait(bg, "mark")
		if n := len(s.e.stream(s.dev).roots.of); n > 2*maxRoots {
			s.Errorf("the failures of %d scopes are kept that have ended", n)
		}
		own := fails(request)
		if err := s.e.Synchronize(bg, request); !sameErrors(err, own.Err()) {
			s.Errorf("the errors of the scope are %v", err)
		}
		for range maxRoots + 2 {
			fails(request)
		}
		all := joined(s.e.Synchronize(bg, request))
		if len(all) != maxRoots+1 || all[maxRoots].Error() != "asyncgen: and 2 more failed operations" {
			s.Errorf("the scope has %d errors, the last of them %v", len(all), last(all))
		}
		all = joined(s.e.WaitAll(bg))
		if want := fmt.Sprintf("asyncgen: and %d more failed operations", 1+others); len(all) != maxRoots+1 || all[maxRoots].Error() != want {
			s.Errorf("there are %d errors in all, the last of them %v, want %s", len(all), last(all), want)
		}
	})
}
