package asyncrt_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/cpu"
	"github.com/asyncgen/asyncgen/device/devicetest"
	"github.com/asyncgen/asyncgen/device/fault"
	"github.com/asyncgen/asyncgen/device/report"
	"github.com/asyncgen/asyncgen/device/sim"
	asyncrt "github.com/asyncgen/asyncgen/runtime"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// eachFaulty runs f on devices whose calls can be made to fail. It checks that no memory of theirs is in use at the
// end.
func eachFaulty(t *testing.T, f func(t *testing.T, b *fault.Backend, on tensor.Maker)) {
	for name, open := range map[string]func() device.Backend{
		"cpu": func() device.Backend { return cpu.New() },
		"sim": func() device.Backend { return sim.New(sim.Options{}) },
	} {
		t.Run(name, func(t *testing.T) {
			b := fault.New(open())
			f(t, b, tensor.On(device.Wrap(name, device.KindSimulated, b)))
			if live := devicetest.Live(b, 0); live != 0 {
				t.Errorf("%d bytes are lost", live)
			}
			if err := b.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

const loopSteps = 24

// loopAsWritten reads a value in each step, calls host with the number of the step, and prints now and then.
func loopAsWritten(on tensor.Maker, out io.Writer, host func(i int), _ int) (total float64) {
	w := on.Full(0.5, 30, 30)
	for i := range loopSteps {
		w = w.MatMul(w).MulScalar(0.1).AddScalar(0.01)
		loss := w.Sum()
		host(i)
		total += loss.Item()
		if i%3 == 0 {
			fmt.Fprintf(out, "step %d loss %.6f\n", i, loss.Item())
		}
	}
	fmt.Fprintf(out, "total %.6f\n", total)
	return total
}

// loopLater is loopAsWritten in the form that the generator gives it.
func loopLater(on tensor.Maker, out io.Writer, host func(i int), window int) (total float64) {
	later := asyncrt.NewLater[struct{}](window)
	defer later.Close()
	w := on.Full(0.5, 30, 30)
	for i := range loopSteps {
		w = w.MatMul(w).MulScalar(0.1).AddScalar(0.01)
		loss := w.Sum()
		lossAt := later.Read(loss)
		later.Do(func() {
			host(i)
			total += lossAt.Item()
			if i%3 == 0 {
				fmt.Fprintf(out, "step %d loss %.6f\n", i, lossAt.Item())
			}
		})
	}
	later.Flush()
	fmt.Fprintf(out, "total %.6f\n", total)
	return total
}

// A breakingWriter breaks at its n-th write. From then on it fails or, if value is not nil, panics with value.
type breakingWriter struct {
	bytes.Buffer
	n     int
	value any
}

func (w *breakingWriter) Write(p []byte) (int, error) {
	w.n--
	switch {
	case w.n > 0:
		return w.Buffer.Write(p)
	case w.value != nil:
		panic(w.value)
	}
	return 0, io.ErrClosedPipe
}

// raise has the ways in which a function can end without returning.
var raise = map[string]func(){
	"an error":        func() { panic(io.ErrUnexpectedEOF) },
	"a string":        func() { panic("enough") },
	"a runtime error": func() { var m map[int]int; m[0] = 1 },
	"nil":             func() { panic(nil) },
	"Goexit":          runtime.Goexit,
}

// where matches the part of errors that differs between two forms of a loop.
var where = regexp.MustCompile(report.Where)

// An outcome says how a loop has ended.
type outcome struct {
	output, end string
	total       float64
}

// outcomeOf runs loop on a goroutine of its own.
func outcomeOf(loop func(tensor.Maker, io.Writer, func(int), int) float64, on tensor.Maker, window int, out *breakingWriter, host func(int)) (o outcome) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		o.end = "Goexit"
		defer func() {
			if v := recover(); v != nil {
				o.end = where.ReplaceAllString(fmt.Sprintf("%T %v", v, v), "")
			}
		}()
		o.total = loop(on, out, host, window)
		o.end = "returned"
	}()
	<-done
	o.output = out.String()
	return o
}

// Whatever goes wrong in a loop, in whichever step, the deferred form prints what the loop prints and ends as it
// does. Host code panics in several ways, a writer breaks, or an operation fails. Nothing runs after that, no
// failure is lost, and no goroutine is left.
func TestLaterFaults(t *testing.T) {
	eachFaulty(t, func(t *testing.T, b *fault.Backend, on tensor.Maker) {
		want := outcomeOf(loopAsWritten, on, 0, &breakingWriter{n: 1000}, func(int) {})
		if want.end != "returned" {
			t.Fatal(want.end)
		}
		goroutines := runtime.NumGoroutine()
		compare := func(what string, run func(loop func(tensor.Maker, io.Writer, func(int), int) float64, window int) outcome) {
			t.Helper()
			want := run(loopAsWritten, 0)
			for _, window := range []int{1, 2, 64} {
				if got := run(loopLater, window); got != want {
					t.Errorf("%s, window %d:\ngot  %+v\nwant %+v", what, window, got, want)
				}
			}
		}
		each := 1
		if testing.Short() {
			each = loopSteps / 2 // this takes twenty times as long with the race detector
		}
		for n := 1; n <= loopSteps+1; n += each {
			for name, raise := range raise {
				compare(fmt.Sprintf("%s in step %d", name, n), func(loop func(tensor.Maker, io.Writer, func(int), int) float64, window int) outcome {
					last := 0
					o := outcomeOf(loop, on, window, &breakingWriter{n: 1000}, func(i int) {
						if last = i + 1; last == n {
							raise()
						}
					})
					if last > n {
						t.Errorf("%s in step %d: step %d has run, too", name, n, last)
					}
					if err := asyncrt.WaitAll(); err != nil {
						t.Errorf("%s in step %d: %v", name, n, err)
					}
					return o
				})
			}
			for _, value := range []any{nil, io.ErrClosedPipe, "broken"} {
				compare(fmt.Sprintf("write %d: %v", n, value), func(loop func(tensor.Maker, io.Writer, func(int), int) float64, window int) outcome {
					o := outcomeOf(loop, on, window, &breakingWriter{n: n, value: value}, func(int) {})
					if err := asyncrt.WaitAll(); err != nil {
						t.Errorf("write %d: %v: %v", n, value, err)
					}
					return o
				})
			}
			for _, kind := range []fault.Kind{fault.Fail, fault.Panic} {
				f := fault.Faults{Call: fault.Command, Kind: kind, Kernel: "MatMul", N: int64(n)}
				compare(fmt.Sprintf("%+v", f), func(loop func(tensor.Maker, io.Writer, func(int), int) float64, window int) outcome {
					b.Arm(f)
					defer b.Arm(fault.Faults{})
					last := 0
					o := outcomeOf(loop, on, window, &breakingWriter{n: 1000}, func(i int) { last = i + 1 })
					err := asyncrt.WaitAll()
					if n <= loopSteps && (last != n || len(parts(err)) != 1 || !errors.Is(err, fault.ErrInjected)) || n > loopSteps && err != nil {
						t.Errorf("%+v, window %d: step %d was the last, WaitAll: %v", f, window, last, err)
					}
					return o
				})
			}
		}
		for deadline := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > goroutines && time.Now().Before(deadline); {
			runtime.Gosched() // goroutines of the device and of timers end by themselves
		}
		if now := runtime.NumGoroutine(); now > goroutines {
			t.Errorf("%d goroutines, %d before", now, goroutines)
		}
	})
}

// The error of an operation wraps whatever its kernel panics with. All formats print it with the operation.
func TestKernelPanics(t *testing.T) {
	eachFaulty(t, func(t *testing.T, b *fault.Backend, on tensor.Maker) {
		x := on.As(tensor.Int64).Ones(3)
		if err := x.Wait(); err != nil {
			t.Fatal(err)
		}
		for _, cause := range []error{io.ErrUnexpectedEOF, &asyncrt.SyncError{Call: "Item"}, fmt.Errorf("as it were: %w", io.ErrNoProgress)} {
			b.Arm(fault.Faults{Call: fault.Submit, Kind: fault.Panic, Rate: 1, Err: cause})
			err := x.AddScalar(1).Wait()
			b.Arm(fault.Faults{})
			op, isOp := errors.AsType[*asyncrt.OpError](err)
			if !isOp || !errors.Is(err, cause) || op.Op != "AddScalar" {
				t.Fatalf("%T %v", err, err)
			}
			want := fmt.Sprintf("asyncgen: AddScalar int64[3] from int64[3] on %v, enqueued at %s:%d: kernel panicked: fault: Submit", op.Device, op.File, op.Line)
			for _, format := range []string{"%v", "%s", "%+v"} {
				if got := fmt.Sprintf(format, err); !strings.HasPrefix(got, want) {
					t.Errorf("%s prints %s, want %s", format, got, want)
				}
			}
		}
		err := x.Div(on.As(tensor.Int64).Zeros(3)).Wait()
		if e, ok := errors.AsType[runtime.Error](err); !ok || !strings.Contains(e.Error(), "divide by zero") {
			t.Errorf("a runtime error: %v", err)
		}
		if n := len(parts(asyncrt.WaitAll())); n != 4 {
			t.Errorf("WaitAll has %d failures, want 4", n)
		}
		if got := x.Sum().ItemInt(); got != 3 {
			t.Errorf("afterwards the sum is %d", got)
		}
	})
}

// Try returns the failure of a read in it, if no inner Try has returned it. Everything else passes through any
// number of Trys.
func TestNestedTry(t *testing.T) {
	one, zero := tensor.From([]int64{1}), tensor.From([]int64{0})
	bad, worse := one.Div(zero), one.Div(zero).AddScalar(1)
	var inner error
	outer := asyncrt.Try(func() {
		inner = asyncrt.Try(func() { bad.Item() })
		worse.Item()
		t.Error("a read of a failure has returned")
	})
	if inner == nil || outer == nil || inner == outer || inner != bad.Wait() || outer != worse.Wait() {
		t.Errorf("inner %v, outer %v", inner, outer)
	}
	if err := asyncrt.Try(func() {
		defer func() {
			if err := asyncrt.Try(func() { worse.Item() }); err != worse.Wait() {
				t.Errorf("while a failure is on its way: %v", err)
			}
		}()
		bad.Item()
	}); err != bad.Wait() {
		t.Errorf("with another in a deferred function: %v", err)
	}
	for name, raise := range raise {
		o := outcomeOf(func(tensor.Maker, io.Writer, func(int), int) float64 {
			err := asyncrt.Try(func() {
				err := asyncrt.Try(raise)
				t.Errorf("%s has become %v", name, err)
			})
			t.Errorf("%s has become %v", name, err)
			return 0
		}, tensor.Maker{}, 0, &breakingWriter{}, nil)
		bare := outcomeOf(func(tensor.Maker, io.Writer, func(int), int) float64 { raise(); return 0 }, tensor.Maker{}, 0, &breakingWriter{}, nil)
		if o != bare {
			t.Errorf("%s: %q through Try, %q without", name, o.end, bare.end)
		}
	}
	if n := len(parts(asyncrt.WaitAll())); n != 2 {
		t.Errorf("WaitAll has %d failures, want 2", n)
	}
}

// If f panics in AllowSync, its waits are no longer allowed afterwards.
func TestAllowSyncPanics(t *testing.T) {
	on, g := gated()
	x := tensor.On(on).Ones(1).Tanh()
	defer asyncrt.SyncMode(asyncrt.SyncMode(asyncrt.Error))
	for name, raise := range raise {
		if name == "Goexit" {
			continue // its goroutine does nothing after it
		}
		raised := func() (raised bool) {
			defer func() { raised = recover() != nil }()
			asyncrt.AllowSync(func() { asyncrt.AllowSync(raise) })
			return false
		}()
		if _, forbidden := errors.AsType[*asyncrt.SyncError](x.Wait()); !raised || !forbidden {
			t.Errorf("%s: it was raised: %v, waiting is forbidden: %v", name, raised, forbidden)
		}
	}
	g.let(1)
	asyncrt.AllowSync(func() {
		if err := x.Wait(); err != nil {
			t.Error(err)
		}
	})
}
