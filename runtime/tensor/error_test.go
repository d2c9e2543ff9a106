package tensor_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/runtime/internal/engine"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// line returns the line number of its caller.
func line() int {
	_, _, n, _ := runtime.Caller(1)
	return n
}

// failing returns a tensor whose computation fails, and the line that enqueued it.
func failing(on device.Device) (*tensor.Tensor, int) {
	x, zero := tensor.FromOn(on, []int64{1, 2}), tensor.FromOn(on, []int64{1, 0})
	return x.Div(zero), line()
}

// A failure spoils everything that depends on it, and nothing else. It names the operation and the line that
// enqueued it.
func TestFailure(t *testing.T) {
	for _, name := range []string{"cpu", "sim:0"} {
		for _, mode := range []engine.Mode{engine.Async, engine.Naive, engine.Shuffle} {
			t.Run(fmt.Sprint(name, mode), func(t *testing.T) {
				on, err := device.Open(name)
				if err != nil {
					t.Fatal(err)
				}
				e := engine.New(engine.Options{Mode: mode})
				defer tensor.SetEngine(e)()
				testFailure(t, on, e)
			})
		}
	}
}

func testFailure(t *testing.T, on device.Device, e *engine.Engine) {
	bad, at := failing(on)
	late := bad.AddScalar(1).As(tensor.Float32).Sum() // skipped, as bad has failed
	good := tensor.On(on).Ones(2).Sum()

	err := bad.Wait()
	var op *engine.OpError
	if !errors.As(err, &op) {
		t.Fatalf("Wait: %v, want an OpError", err)
	}
	if op.Op != "Div" || !strings.HasSuffix(op.File, "error_test.go") || op.Line != at || op.Device != on {
		t.Errorf("the error is of %s on %v at %s:%d, want Div on %v at error_test.go:%d", op.Op, op.Device, op.File, op.Line, on, at)
	}
	if len(op.Shapes) != 3 || !op.Shapes[1].Equal([]int{2}) || op.DTypes[1] != tensor.Int64 {
		t.Errorf("the operands are %v %v", op.DTypes, op.Shapes)
	}
	var fault runtime.Error
	if !errors.As(err, &fault) || !strings.Contains(fault.Error(), "divide by zero") {
		t.Errorf("the cause is %v", op.Err)
	}
	if good.Item() != 2 {
		t.Error("what does not depend on the failure has another value")
	}

	for what, read := range map[string]func() error{
		"Wait":            late.Wait,
		"Wait for all":    func() error { return tensor.Wait(good, late, bad) },
		"WaitContext":     func() error { return late.WaitContext(context.Background()) },
		"ItemContext":     func() error { _, err := late.ItemContext(context.Background()); return err },
		"Float32sContext": func() error { _, err := late.Float32sContext(context.Background()); return err },
		"MarshalJSON":     func() error { _, err := json.Marshal(late); return errors.Unwrap(err) },
		"Item":            func() error { return raised(func() { late.Item() }) },
		"ItemInt":         func() error { return raised(func() { bad.Row(0).ItemInt() }) },
		"ItemOf":          func() error { return raised(func() { tensor.ItemOf[float32](late) }) },
		"At":              func() error { return raised(func() { bad.At(0) }) },
		"Float32s":        func() error { return raised(func() { late.Float32s() }) },
		"Int64s":          func() error { return raised(func() { bad.Int64s() }) },
		"Matrix":          func() error { return raised(func() { late.Reshape(1, 1).Matrix() }) },
		"To":              func() error { return raised(func() { late.To(device.CPU()).Item() }) },
	} {
		if got := read(); got != error(op) {
			t.Errorf("%s: %v, want the error of the operation that failed", what, got)
		}
	}

	failed := "<failed: " + strings.TrimPrefix(op.Error(), "asyncgen: ") + ">"
	var logged strings.Builder
	slog.New(slog.NewTextHandler(&logged, nil)).Info("x", "loss", late, "list", bad)
	for what, got := range map[string]string{"Sprint": fmt.Sprint(late), "%.3f": fmt.Sprintf("%.3f", late), "String": bad.String()} {
		if got != failed {
			t.Errorf("%s: %s", what, got)
		}
	}
	if strings.Count(logged.String(), failed) != 2 {
		t.Errorf("slog: %s", logged.String())
	}
	if want := fmt.Sprintf("error_test.go:%d: %v>", at, op.Err); !strings.HasSuffix(failed, want) {
		t.Errorf("the line is not named: %s", failed)
	}
	if got := fmt.Sprintf("%i", late); got != "float32[] on "+on.Name() {
		t.Errorf("%%i: %s", got)
	}

	if err := e.WaitAll(context.Background()); !errors.Is(err, op) || strings.Contains(err.Error(), "\n") {
		t.Errorf("WaitAll: %v, want the one failure", err)
	}
	if err := e.WaitAll(context.Background()); err != nil {
		t.Errorf("WaitAll again: %v", err)
	}
}

// raised returns the error that f panics with.
func raised(f func()) (err error) {
	defer func() { err = recover().(error) }()
	f()
	return nil
}

// Every exported function that enqueues names the line of its caller, however deep in the library it enqueues.
func TestLines(t *testing.T) {
	e := engine.New(engine.Options{})
	defer tensor.SetEngine(e)()
	x := tensor.Ones(2, 2)
	w := tensor.NewParam(x)
	var events []engine.Event
	defer e.Record(func(ev engine.Event) { events = append(events, ev) })()
	for what, at := range map[string]func() int{
		"AddScalar": func() int { x.AddScalar(1); return line() },
		"Mean":      func() int { x.Mean(); return line() },
		"Norm":      func() int { x.Norm(); return line() },
		"Dot":       func() int { x.Row(0).Dot(x.Row(1)); return line() },
		"Where":     func() int { tensor.Where(x.Gt(x), x, x); return line() },
		"Reshape":   func() int { x.T().Reshape(4); return line() },
		"Eye":       func() int { tensor.Eye(2); return line() },
		"On":        func() int { tensor.On(x.Device()).Linspace(0, 1, 2); return line() },
		"Rand":      func() int { tensor.Rand(2); return line() },
		"Uniform":   func() int { tensor.NewGenerator(1).Uniform(0, 1, 2); return line() },
		"Backward":  func() int { w.Value().Exp().Max().Backward(); return line() },
		"Grad":      func() int { tensor.Grad(w.Value().Slice(1, 0, 1).Prod(), w.Value()); return line() },
	} {
		events = nil
		want := at()
		if len(events) == 0 && what != "On" {
			t.Errorf("%s enqueued nothing", what)
		}
		for _, ev := range events {
			if !strings.HasSuffix(ev.File, "error_test.go") || ev.Line != want {
				t.Errorf("%s: %s was enqueued at %s:%d, want line %d", what, ev.Op, ev.File, ev.Line, want)
			}
		}
	}
}

// wrapper embeds a tensor: calls through an interface pass through methods that the compiler generates.
type wrapper struct{ *tensor.Tensor }

// The line of a call is the caller's, even if the compiler has generated a method in between, or has inlined the
// calling function of another package.
func TestLinesOfCompiledCalls(t *testing.T) {
	sim, err := device.Open("sim:0")
	if err != nil {
		t.Fatal(err)
	}
	e := engine.New(engine.Options{})
	defer tensor.SetEngine(e)()
	defer func(out *os.File) { os.Stdout = out }(os.Stdout)
	if os.Stdout, err = os.OpenFile(os.DevNull, os.O_WRONLY, 0); err != nil {
		t.Fatal(err)
	}
	defer os.Stdout.Close()
	x := tensor.On(sim).Ones(2)
	exp := interface{ Exp() *tensor.Tensor }(wrapper{x}).Exp
	var events []engine.Event
	defer e.Record(func(ev engine.Event) { events = append(events, ev) })()
	for what, at := range map[string]func() int{
		"Println":    func() int { fmt.Println(x); return line() },
		"interface":  func() int { interface{ Abs() *tensor.Tensor }(wrapper{x}).Abs(); return line() },
		"method":     func() int { exp(); return line() },
		"expression": func() int { wrapper.Neg(wrapper{x}); return line() },
		"deferred":   func() (n int) { defer x.Sqrt(); return line() },
	} {
		events = nil
		want := at()
		if len(events) != 1 || !strings.HasSuffix(events[0].File, "error_test.go") || events[0].Line != want {
			t.Errorf("%s: enqueued %+v, want line %d", what, events, want)
		}
	}
}

// A gate is a CPU that holds up the operations of one kernel.
type gate struct {
	device.Backend
	kernel string
	open   chan struct{}
}

func (g *gate) Submit(cmds []device.Command) (device.Ticket, error) {
	for _, c := range cmds {
		if c.Kernel.Name == g.kernel {
			<-g.open
		}
	}
	return g.Backend.Submit(cmds)
}

// A faulty CPU fails in Fill of more than one element.
type faulty struct{ device.Backend }

var errFill = errors.New("can't fill")

func (f faulty) Submit(cmds []device.Command) (device.Ticket, error) {
	if c := cmds[0]; c.Kernel.Code == device.Fill && c.N > 1 {
		return 0, errFill
	}
	return f.Backend.Submit(cmds)
}

// The gradient of a slice is written in two commands. If the first fails, the second does not hide that.
func TestScatterFails(t *testing.T) {
	e := engine.New(engine.Options{})
	defer tensor.SetEngine(e)()
	on := device.Wrap("faulty", device.KindCPU, faulty{device.CPU().Backend()})
	x := tensor.FromOn(on, []float64{1, 2, 3}).Track()
	if err := tensor.Grad(x.Row(1), x)[0].Wait(); !errors.Is(err, errFill) {
		t.Errorf("the gradient has the error %v, want %v", err, errFill)
	}
	if err := e.Close(); !errors.Is(err, errFill) {
		t.Errorf("Close: %v", err)
	}
}

// While one operation does not finish, a thousand more are enqueued, both tiny ones and some that depend on it.
// Results that do not depend on it can be read.
func TestAsynchrony(t *testing.T) {
	for name, kind := range map[string]device.Kind{"cpu": device.KindCPU, "sim:0": device.KindSimulated} {
		t.Run(name, func(t *testing.T) {
			dev, err := device.Open(name)
			if err != nil {
				t.Fatal(err)
			}
			g := &gate{dev.Backend(), "Tanh", make(chan struct{})}
			on := device.Wrap("gated", kind, g)
			e := engine.New(engine.Options{Workers: 2})
			defer tensor.SetEngine(e)()
			x := tensor.On(on).Ones(1, 2)
			if err := x.Wait(); err != nil {
				t.Fatal(err)
			}
			blocked := x.Tanh()
			y := blocked
			for range 500 {
				y = y.AddScalar(1)
				x = x.AddScalar(1)
			}
			if blocked.Ready() || y.Ready() {
				t.Error("what depends on a blocked operation is ready")
			}
			if on.Backend().Caps().Synchronous { // everything on one queue waits for it
				if got := x.Sum().Item(); got != 1002 {
					t.Errorf("a value that does not depend on the blocked operation is %v", got)
				}
			}
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			if _, err := y.Sum().ItemContext(ctx); !errors.Is(err, context.Canceled) {
				t.Errorf("ItemContext with a cancelled context: %v", err)
			}
			// A context that ends during a wait ends the wait, even if only the waiting goroutine could execute the
			// blocked operation.
			wide := tensor.On(on).Ones(2, 3).Tanh()
			for name, wait := range map[string]func(context.Context) error{
				"ItemContext":     func(ctx context.Context) error { _, err := wide.Sum().ItemContext(ctx); return err },
				"Float32sContext": func(ctx context.Context) error { _, err := wide.T().Float32sContext(ctx); return err },
				"WaitContext":     wide.WaitContext,
			} {
				ctx, cancel := context.WithCancel(context.Background())
				go cancel()
				if err := wait(ctx); !errors.Is(err, context.Canceled) {
					t.Errorf("%s with a context that ends: %v", name, err)
				}
			}
			close(g.open)
			if got := fmt.Sprintf("%.4f", y.Sum()); got != "1001.5232" {
				t.Errorf("the sum is %s", got)
			}
			if err := e.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// A dyingContext ends after its error was asked for a given number of times.
type dyingContext struct {
	context.Context
	left atomic.Int64
}

func (c *dyingContext) Err() error {
	if c.left.Add(-1) < 0 {
		return context.Canceled
	}
	return nil
}

// A context that ends between two parts of a copy ends the copy: the caller gets all elements, or the context's
// error.
func TestContextEndsCopy(t *testing.T) {
	x := tensor.Ones(5 << 16)
	if err := x.Wait(); err != nil {
		t.Fatal(err)
	}
	never, cancel := context.WithCancel(context.Background())
	defer cancel()
	ended, whole := 0, 0
	for left := range int64(12) {
		c := &dyingContext{Context: never}
		c.left.Store(left)
		switch got, err := x.Float32sContext(c); {
		case errors.Is(err, context.Canceled) && got == nil:
			ended++
		case err == nil && len(got) == x.Size() && slices.Min(got) == 1:
			whole++
		default:
			t.Errorf("after %d questions: %d elements, %v", left, len(got), err)
		}
	}
	if ended < 5 || whole < 5 {
		t.Errorf("%d copies have ended early, and %d have not", ended, whole)
	}
}

// What has been computed can be read with a context that has ended, on any device, and so can the error of what has
// failed.
func TestEndedContextReadsWhatIsThere(t *testing.T) {
	over, cancel := context.WithCancel(context.Background())
	cancel()
	for _, name := range []string{"cpu", "sim:0"} {
		dev, err := device.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		x := tensor.On(dev).Full(3, 2).AddScalar(1)
		y := x.Sum()
		bad := tensor.From([]int64{1}).To(dev).Div(tensor.From([]int64{0}).To(dev))
		if err := tensor.Wait(x, y); err != nil {
			t.Fatal(err)
		}
		v, err1 := y.ItemContext(over)
		vs, err2 := x.Float32sContext(over)
		for range 500 { // a copy may take longer on a busy machine, but not always
			if err1 == nil && err2 == nil {
				break
			}
			v, err1 = y.ItemContext(over)
			vs, err2 = x.Float32sContext(over)
		}
		if err1 != nil || err2 != nil || v != 8 || !slices.Equal(vs, []float32{4, 4}) {
			t.Errorf("on %s: %v, %v, and %v, %v", name, v, err1, vs, err2)
		}
		failed := bad.Wait()
		if _, err := bad.ItemContext(over); failed == nil || err == nil || err.Error() != failed.Error() {
			t.Errorf("on %s: what has failed with %v: %v", name, failed, err)
		}
	}
	_ = engine.Default().WaitAll(context.Background())
}
