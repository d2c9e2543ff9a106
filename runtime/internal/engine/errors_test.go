package engine

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/report"
)

// binary enqueues out = k(a, b) with shapes for messages.
func (s *setup) binary(k *device.Kernel, a, b *Storage) *Storage {
	out := s.new(1)
	shape := device.Shape{1}
	s.e.Enqueue(&Op{
		Cmd:      device.Command{Kernel: k, N: 1},
		Operands: [device.MaxOperands]*Storage{out, a, b},
		Shapes:   [device.MaxOperands]*device.Shape{&shape, &shape, &shape},
	})
	return out
}

var (
	addUp = fakeKernel("addup", 2, func(c *device.Command) error {
		vals(c, 0)[0] = vals(c, 1)[0] + vals(c, 2)[0]
		return nil
	})
	failing2 = fakeKernel("failing2", 2, func(*device.Command) error { return errors.New("another") })
)

func TestFirstCause(t *testing.T) {
	onAll(t, func(s *setup) {
		good := s.from(1)
		late := s.apply(failing, good)
		early := s.binary(failing2, good, good)
		// If several inputs are spoiled, the first operand's error counts, not the one that came first.
		for _, c := range []struct {
			a, b *Storage
			want *Storage
		}{{early, late, early}, {late, early, late}, {good, late, late}, {early, good, early}} {
			got := s.binary(addUp, c.a, c.b)
			next := s.binary(failing, got, late) // skipped, so it does not fail
			for _, x := range []*Storage{got, next} {
				if err := x.Wait(bg, "read"); err == nil || err != c.want.Wait(bg, "read") {
					s.Errorf("got %v, want %v", err, c.want.Err())
				}
			}
		}
		s.want(s.apply(addOne, good), 2) // not a dependent
		err := s.e.WaitAll(bg)
		joined := err.(interface{ Unwrap() []error }).Unwrap()
		if len(joined) != 2 || joined[0] != late.Err() || joined[1] != early.Err() {
			s.Errorf("WaitAll: %v", err)
		}
		if err := s.e.WaitAll(bg); err != nil {
			s.Errorf("second WaitAll: %v", err)
		}
		if s.apply(addOne, late).Wait(bg, "read") != late.Err() {
			s.Error("an error was forgotten")
		}
	})
}

func TestOverwritingHeals(t *testing.T) {
	onAll(t, func(s *setup) {
		x := s.from(1)
		y := s.apply(failing, x)
		bad := s.apply(addOne, y)
		unary(s.e, addOne, y, x)
		s.want(s.apply(addOne, y), 3)
		if err := bad.Wait(bg, "read"); !errors.Is(err, errBoom) {
			s.Errorf("the dependent of the failure: %v", err)
		}
	})
}

func TestOpError(t *testing.T) {
	onAll(t, func(s *setup) {
		one := s.from(1)
		x := s.binary(failing2, one, one)
		_, _, line, _ := runtime.Caller(0)
		var oe *OpError
		if err := x.Wait(bg, "read"); !errors.As(err, &oe) {
			s.Fatalf("got %v", err)
		}
		if oe.Op != "failing2" || oe.Device != s.dev || len(oe.Shapes) != 3 || !strings.HasSuffix(oe.File, "errors_test.go") {
			s.Errorf("got %+v", oe)
		}
		_ = line // binary is the caller; it is in a test, so it counts as the user's
		want := fmt.Sprintf("asyncgen: failing2 float64[1] from float64[1] float64[1] on %s, enqueued at %s:%d: another", s.dev.Name(), oe.File, oe.Line)
		all := s.e.WaitAll(bg)
		for _, format := range []string{"%v", "%s", "%+v", "%q"} {
			want := want
			if format == "%q" {
				want = strconv.Quote(want)
			}
			if got := fmt.Sprintf(format, oe); got != want {
				s.Errorf("%s is %s, want %s", format, got, want)
			}
			if got := fmt.Sprintf(format, all); got != want {
				s.Errorf("%s of WaitAll is %s, want %s", format, got, want)
			}
		}
		if got := regexp.MustCompile(report.Where).ReplaceAllString(want, ""); got != "asyncgen: another" {
			s.Errorf("without where it was, the text is %q", got)
		}
	})
}

// The text of WaitAll's error lists only the first errors; %+v lists all, each with %+v of its cause.
func TestManyErrors(t *testing.T) {
	onAll(t, func(s *setup) {
		for range shownErrors + 5 {
			s.apply(failing, s.from(1))
		}
		err := s.e.WaitAll(bg)
		short, long := err.Error(), fmt.Sprintf("%+v", err)
		if n := strings.Count(short, "engine_test.go:"); n != shownErrors || !strings.HasSuffix(short, "\nasyncgen: and 5 more, which %+v shows") {
			s.Errorf("of %d errors: %s", n, short)
		}
		if n := strings.Count(long, "engine_test.go:"); n != shownErrors+5 || strings.Contains(long, "more") {
			s.Errorf("%%+v has %d errors: %s", n, long)
		}
	})
}

// An integer division by zero is the program's mistake, and the error says so alike on all devices.
func TestZeroDivision(t *testing.T) {
	zero := 0
	divide := fakeKernel("divide", 1, func(*device.Command) error { zero = 1 / zero; return nil })
	wrapping := fakeKernel("wrapping", 1, func(*device.Command) (err error) {
		defer func() { err = fmt.Errorf("elsewhere: %w", recover().(error)) }()
		return runCommand(&device.Command{Kernel: divide})
	})
	onAll(t, func(s *setup) {
		for _, k := range []*device.Kernel{divide, wrapping} {
			err := s.apply(k, s.from(1)).Wait(bg, "read")
			if _, isRuntime := errors.AsType[runtime.Error](err); !isRuntime || errors.Unwrap(err).Error() != "an integer is divided by zero" {
				s.Errorf("%s: %v", k.Name, err)
			}
		}
	})
}

func TestKernelPanics(t *testing.T) {
	onAll(t, func(s *setup) {
		x := s.apply(panicking, s.from(1))
		var pe *PanicError
		if err := x.Wait(bg, "read"); !errors.As(err, &pe) || pe.Value != "ouch" {
			s.Errorf("got %v", err)
		}
		wrapped := fakeKernel("panics", 1, func(*device.Command) error { panic(errBoom) })
		if err := s.apply(wrapped, s.from(1)).Wait(bg, "read"); !errors.Is(err, errBoom) {
			s.Errorf("got %v", err)
		}
		s.want(s.apply(addOne, s.from(1)), 2)
	})
}

func TestOutOfMemory(t *testing.T) {
	for _, mode := range []Mode{Async, Naive} {
		for _, gpu := range []bool{false, true} {
			dev := newCPU(1)
			if gpu {
				dev = newGPU(t)
			}
			runOn(t, dev, Options{Mode: mode}, func(s *setup) {
				x := s.from(1, 2, 3)
				y := unary(s.e, addOne, s.e.NewStorage(dev, scarce(3)), x)
				err := s.apply(addOne, y).Wait(bg, "read")
				var oe *OpError
				if !errors.As(err, &oe) || oe.Op != "addone" || !errors.Is(err, device.ErrOutOfMemory) {
					t.Errorf("got %+v", err)
				}
				if got := s.e.WaitAll(bg); !errors.Is(got, err) {
					t.Errorf("WaitAll: %v", got)
				}
				if err := s.apply(addOne, s.new(5)).Wait(bg, "read"); !errors.Is(err, errUnwritten) {
					t.Errorf("never written: %v", err)
				}
				s.want(s.apply(addOne, x), 2, 3, 4)
			})
		}
	}
}

func TestManyFailures(t *testing.T) {
	onAll(t, func(s *setup) {
		for range 3000 {
			s.apply(failing, s.from(1))
		}
		err := s.e.WaitAll(bg)
		all := err.(interface{ Unwrap() []error }).Unwrap()
		if n := len(all); n != maxRoots+1 || !strings.Contains(all[n-1].Error(), "and 1976 more") {
			s.Errorf("%d errors, the last is %v", n, all[n-1])
		}
	})
}

// Failures on several devices are joined in program order. Synchronize takes only those of its device.
func TestFailuresOfSeveralDevices(t *testing.T) {
	for _, mode := range []Mode{Async, Naive} {
		e := newEngine(t, Options{Mode: mode})
		cpu, gpu := newCPU(2), newGPU(t)
		fail := func(d device.Device, number int) {
			shape := device.Shape{number}
			e.Enqueue(&Op{
				Cmd:      device.Command{Kernel: failing, N: 1},
				Operands: [device.MaxOperands]*Storage{e.NewStorage(d, 8), fromFloats(e, d, 1)},
				Shapes:   [device.MaxOperands]*device.Shape{&shape},
			})
		}
		enqueueAll := func() {
			for i := range 40 {
				d := cpu
				if i*i%7 < 3 {
					d = gpu
				}
				fail(d, i)
			}
		}
		enqueueAll()
		got := rootNumbers(e.WaitAll(bg))
		for i, n := range got {
			if i != n {
				t.Fatalf("mode %v: got %v", mode, got)
			}
		}
		enqueueAll()
		onGPU := rootNumbers(e.Synchronize(bg, gpu))
		onCPU := rootNumbers(e.WaitAll(bg))
		if len(onGPU)+len(onCPU) != 40 || onGPU[0] != 0 || onCPU[0] != 2 {
			t.Errorf("mode %v: on gpu %v, on cpu %v", mode, onGPU, onCPU)
		}
	}
}

// Failures that WaitAll did not return because its context ended are returned by the next one.
func TestWaitAllForgetsNothing(t *testing.T) {
	onDevices(t, func(s *setup) {
		s.apply(failing, s.from(1)).Wait(bg, "read")
		k, started, open := blocking()
		defer open()
		s.apply(k, s.from(1))
		s.e.stream(s.dev).exec.nudge()
		<-started
		ctx, cancel := context.WithCancel(bg)
		cancel()
		if err := s.e.WaitAll(ctx); !errors.Is(err, context.Canceled) {
			s.Errorf("got %v", err)
		}
		open()
		if err := s.e.WaitAll(bg); !errors.Is(err, errBoom) {
			s.Errorf("got %v", err)
		}
	})
}

// canceled returns a context that has ended.
func canceled() context.Context {
	ctx, cancel := context.WithCancel(bg)
	cancel()
	return ctx
}

// In whatever order failures arrive, the first ones in program order are kept, in order, and the
// others are counted.
func TestRootsKeepTheFirst(t *testing.T) {
	var r roots
	for _, i := range rand.New(rand.NewPCG(1, 2)).Perm(3000) {
		r.add(nil, []root{{order: uint64(i / 100), seq: uint64(i % 100), err: &OpError{Line: i}}}, 0)
	}
	list, more := r.take(nil)
	if len(list) != maxRoots || more != 3000-maxRoots {
		t.Fatalf("%d kept, %d more", len(list), more)
	}
	for i, x := range list {
		if x.err.Line != i {
			t.Fatalf("failure %d is number %d", i, x.err.Line)
		}
	}
	if list, more := r.take(nil); len(list) != 0 || more != 0 {
		t.Errorf("taken twice: %d and %d more", len(list), more)
	}
}

// rootNumbers lists the failures in err by number, which is their shape.
func rootNumbers(err error) (numbers []int) {
	for _, one := range joined(err) {
		numbers = append(numbers, one.(*OpError).Shapes[0][0])
	}
	return numbers
}
