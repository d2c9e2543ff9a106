package asyncrt_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/devicetest"
	_ "github.com/asyncgen/asyncgen/device/opencl"
	asyncrt "github.com/asyncgen/asyncgen/runtime"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

var seed = flag.Uint64("seed", 1, "seed of the randomised tests")

// A gate is a slow device, executed by the program's threads: each Tanh waits for a token.
type gate struct {
	device.Backend
	tokens chan struct{}
}

func (g *gate) Submit(cmds []device.Command) (device.Ticket, error) {
	for _, c := range cmds {
		if c.Kernel.Name == "Tanh" {
			<-g.tokens
		}
	}
	return g.Backend.Submit(cmds)
}

func (g *gate) let(n int) {
	for range n {
		g.tokens <- struct{}{}
	}
}

func gated() (device.Device, *gate) {
	g := &gate{device.CPU().Backend(), make(chan struct{}, 1000)}
	return device.Wrap("gated", device.KindSimulated, g), g
}

// devices runs f on the CPU, on a simulated accelerator and, if there is a driver, on a device of OpenCL.
func devices(t *testing.T, f func(t *testing.T, on device.Device)) {
	for _, name := range devicetest.Names(t) {
		t.Run(name, func(t *testing.T) {
			on, err := device.Open(name)
			if err != nil {
				t.Fatal(err)
			}
			f(t, on)
		})
	}
}

// Do queues while values have not arrived, and runs nothing. With a full window it waits once, until the entry in
// the middle and those before it have run.
func TestLaterWindow(t *testing.T) {
	on, g := gated()
	later := asyncrt.NewLater[struct{}](8)
	x := tensor.On(on).Ones(1, 2)
	var log []int
	step := func(i int) {
		x = x.Tanh()
		at := later.Read(x.Sum())
		later.Do(func() {
			at.Item()
			log = append(log, i)
		})
	}
	for i := range 8 {
		step(i)
	}
	if len(log) > 0 {
		t.Fatalf("entries %v ran without their values", log)
	}
	before := asyncrt.Stats()
	go func() { // tokens come after the wait has begun, or entries would run before the window is full
		awaitIn(t, ").await") // pendingValues has returned by then
		g.let(5)
	}()
	step(8)
	if want := []int{0, 1, 2, 3, 4}; !slices.Equal(log, want) {
		t.Errorf("a full window ran %v, want %v", log, want)
	}
	if after := asyncrt.Stats(); after.Waits-before.Waits != 1 {
		t.Errorf("a full window waited %d times, want once", after.Waits-before.Waits)
	}
	g.let(4)
	if err := asyncrt.WaitAll(); err != nil {
		t.Fatal(err)
	}
	later.Do(func() { log = append(log, 9) }) // all values are there, and entries run at the next call
	if want := []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}; !slices.Equal(log, want) {
		t.Errorf("with all values there, %v ran, want %v", log, want)
	}
	if state, exited := later.Flush(); exited || state != struct{}{} {
		t.Errorf("Flush reports an exit")
	}
}

// awaitIn waits until a goroutine is executing the given function.
func awaitIn(t *testing.T, function string) {
	for range 100_000 {
		if isIn(function) {
			return
		}
		runtime.Gosched()
	}
	t.Errorf("no goroutine gets to %s", function)
}

// isIn reports whether a goroutine is executing the given function.
func isIn(function string) bool {
	for size := 1 << 16; ; size *= 2 {
		stacks := make([]byte, size)
		if n := runtime.Stack(stacks, true); n < size {
			return strings.Contains(string(stacks[:n]), function+"(")
		}
	}
}

// Random programs run their deferred work in program order, whatever the window is and whatever is ready. Nested
// work runs in its place.
func TestLaterOrder(t *testing.T) {
	devices(t, func(t *testing.T, on device.Device) {
		t.Logf("seed %d (go test -run '%s' -seed N)", *seed, t.Name())
		r := rand.New(rand.NewPCG(*seed, 0))
		for range 50 {
			later := asyncrt.NewLater[int](1 + r.IntN(10))
			var got, want []string
			x := tensor.On(on).Zeros(2)
			for i := range r.IntN(60) {
				x = x.AddScalar(1)
				switch r.IntN(6) {
				case 0:
					at := later.Read(x)
					want = append(want, fmt.Sprint(i, " ", float32(i+1)))
					later.Do(func() { got = append(got, fmt.Sprint(i, " ", at.Float32s()[1])) })
				case 1:
					at := later.Read(x.Sum())
					want = append(want, fmt.Sprint("nested ", 2*i+2), "inner", "innermost", "after")
					later.Do(func() {
						got = append(got, fmt.Sprint("nested ", at.Item()))
						inner := later.Read(x)
						later.Do(func() {
							inner.Err()
							got = append(got, "inner")
							later.Do(func() { got = append(got, "innermost") })
						})
						later.Do(func() { got = append(got, "after") })
					})
				case 2:
					want = append(want, fmt.Sprint("no value ", i))
					later.Do(func() { got = append(got, fmt.Sprint("no value ", i)) })
				case 3:
					later.Read(x) // never used
				case 4:
					later.Flush()
					if !slices.Equal(got, want) {
						t.Fatalf("after Flush:\n%v\nwant\n%v", got, want)
					}
				}
			}
			later.Close()
			if !slices.Equal(got, want) {
				t.Fatalf("got\n%v\nwant\n%v", got, want)
			}
		}
	})
}

// A Read has the value that the tensor variable had at the Read, not one assigned later.
func TestLaterSnapshot(t *testing.T) {
	devices(t, func(t *testing.T, on device.Device) {
		w := tensor.NewParam(tensor.On(on).Ones(1))
		later := asyncrt.NewLater[struct{}](64)
		defer later.Close()
		var got []float64
		for range 5 {
			at := later.Read(w.Value())
			w.Set(w.Value().Detach().AddScalar(1))
			later.Do(func() { got = append(got, at.Item()) })
		}
		later.Flush()
		if want := []float64{1, 2, 3, 4, 5}; !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	})
}

// An error is raised where the value is used. Entries before that run, and none after it. An error that nothing
// uses is not raised.
func TestLaterErrors(t *testing.T) {
	devices(t, func(t *testing.T, on device.Device) {
		bad := tensor.FromOn(on, []int64{1}).Div(tensor.FromOn(on, []int64{0}))
		var log []string
		err := asyncrt.Try(func() {
			later := asyncrt.NewLater[struct{}](64)
			defer later.Close()
			later.Read(bad)
			at := later.Read(bad)
			later.Do(func() { log = append(log, "unused") })
			later.Do(func() { log = append(log, fmt.Sprint(at.Err() != nil)) })
			later.Do(func() { log = append(log, fmt.Sprint(at.ItemInt())) })
			later.Do(func() { log = append(log, "after") })
			later.Flush()
		})
		var op *asyncrt.OpError
		if !errors.As(err, &op) || op.Op != "Div" {
			t.Errorf("the error is %v", err)
		}
		if want := []string{"unused", "true"}; !slices.Equal(log, want) {
			t.Errorf("%v ran, want %v", log, want)
		}
		if err := asyncrt.WaitAll(); !errors.Is(err, op) {
			t.Errorf("WaitAll: %v", err)
		}
	})
}

// A panic in the loop comes after the entries queued before it. A panic in an entry comes before the entries queued
// after it, which never run.
func TestLaterPanics(t *testing.T) {
	devices(t, func(t *testing.T, on device.Device) {
		var log []string
		run := func(body func(later *asyncrt.Later[struct{}], say func(string))) (value any) {
			log = nil
			defer func() { value = recover() }()
			later := asyncrt.NewLater[struct{}](64)
			defer later.Close()
			x := tensor.On(on).Ones(1)
			body(later, func(word string) {
				x = x.AddScalar(1)
				later.Read(x)
				later.Do(func() {
					log = append(log, word)
					if word == "panic" {
						panic("in an entry")
					}
				})
			})
			return nil
		}
		got := run(func(_ *asyncrt.Later[struct{}], say func(string)) {
			say("one")
			say("two")
			panic("in the loop")
		})
		if got != "in the loop" || !slices.Equal(log, []string{"one", "two"}) {
			t.Errorf("panic %v after %v", got, log)
		}
		got = run(func(later *asyncrt.Later[struct{}], say func(string)) {
			say("one")
			say("panic")
			say("never")
			later.Flush()
		})
		if got != "in an entry" || !slices.Equal(log, []string{"one", "panic"}) {
			t.Errorf("panic %v after %v", got, log)
		}
		got = run(func(later *asyncrt.Later[struct{}], say func(string)) {
			func() {
				defer func() { recover() }()
				say("panic")
				later.Flush()
			}()
			say("and on it goes")
		})
		if got != nil || !slices.Equal(log, []string{"panic", "and on it goes"}) {
			t.Errorf("panic %v after %v", got, log)
		}

		done := make(chan []string)
		go func() { // Goexit, as testing.T.FailNow uses it
			var log []string
			defer func() { done <- log }()
			later := asyncrt.NewLater[struct{}](64)
			defer later.Close()
			later.Do(func() { log = append(log, "one"); runtime.Goexit() })
			later.Do(func() { log = append(log, "never") })
		}()
		if log := <-done; !slices.Equal(log, []string{"one"}) {
			t.Errorf("Goexit after %v", log)
		}
	})
}

// Poll runs the ready entries at the front, and never waits.
func TestLaterPoll(t *testing.T) {
	on, g := gated()
	later := asyncrt.NewLater[struct{}](8)
	later.Poll() // nothing is queued
	x := tensor.On(on).Ones(1)
	var log []int
	var values []*tensor.Tensor
	read := func() asyncrt.Read {
		x = x.Tanh()
		values = append(values, x.Sum())
		return later.Read(values[len(values)-1])
	}
	do := func(i int, at asyncrt.Read) {
		later.Do(func() {
			at.Item()
			log = append(log, i)
		})
	}
	for i := range 3 {
		do(i, read())
	}
	last := read() // for the entry that is queued next, whatever runs before
	before := asyncrt.Stats()
	later.Poll()
	if after := asyncrt.Stats(); len(log) > 0 || after.Waits != before.Waits {
		t.Fatalf("entries %v ran without their values, after %d waits", log, after.Waits-before.Waits)
	}
	g.let(2)
	if err := tensor.Wait(values[:2]...); err != nil {
		t.Fatal(err)
	}
	later.Poll()
	if want := []int{0, 1}; !slices.Equal(log, want) {
		t.Errorf("with two values there, %v ran, want %v", log, want)
	}
	g.let(1)
	if err := values[2].Wait(); err != nil {
		t.Fatal(err)
	}
	later.Poll()
	do(3, last)
	later.Poll()
	if want := []int{0, 1, 2}; !slices.Equal(log, want) {
		t.Errorf("with three values there, %v ran, want %v", log, want)
	}
	g.let(1)
	later.Flush()
	later.Poll()
	if want := []int{0, 1, 2, 3}; !slices.Equal(log, want) {
		t.Errorf("in the end %v have run, want %v", log, want)
	}
}

// In a function of the backlog, Poll runs entries that this function has queued, and no entries after it.
func TestLaterPollInside(t *testing.T) {
	on, g := gated()
	later := asyncrt.NewLater[struct{}](8)
	x := tensor.On(on).Ones(1).Tanh()
	y := x.Tanh()
	var log []string
	later.Read(x)
	later.Do(func() {
		later.Poll()
		later.Read(y)
		later.Do(func() { log = append(log, "inner") })
		later.Poll()
		log = append(log, "outer")
		g.let(1)
		_ = y.Wait()
		later.Poll()
		log = append(log, "end of outer")
	})
	later.Do(func() { log = append(log, "next") })
	g.let(1)
	_ = x.Wait()
	later.Poll()
	if want := []string{"outer", "inner", "end of outer", "next"}; !slices.Equal(log, want) {
		t.Errorf("got %v, want %v", log, want)
	}
}

// A panic of an entry comes out of Poll. Entries queued after it never run, and the Later can be used again.
func TestLaterPollPanics(t *testing.T) {
	on, g := gated()
	later := asyncrt.NewLater[struct{}](8)
	bad := tensor.FromOn(on, []int64{1}).Div(tensor.FromOn(on, []int64{0}))
	x := tensor.On(on).Ones(1).Tanh()
	var log []string
	later.Read(x)
	later.Do(func() { log = append(log, "one") })
	at := later.Read(bad)
	later.Do(func() { log = append(log, fmt.Sprint(at.ItemInt())) })
	later.Do(func() { log = append(log, "never") })
	g.let(1)
	_, _ = x.Wait(), bad.Wait()
	var op *asyncrt.OpError
	if err := asyncrt.Try(later.Poll); !errors.As(err, &op) || op.Op != "Div" {
		t.Errorf("the error is %v", err)
	}
	later.Poll()
	later.Do(func() { log = append(log, "again") })
	if want := []string{"one", "again"}; !slices.Equal(log, want) {
		t.Errorf("%v ran, want %v", log, want)
	}
	_ = asyncrt.WaitAll() // discards the failure
}

// An exit that Poll takes is reported by Flush. Entries queued after it are dropped.
func TestLaterPollTakesExit(t *testing.T) {
	on, g := gated()
	later := asyncrt.NewLater[int](8)
	for i := range 8 { // so that the loop may run ahead
		if _, exited := later.BreakIf(func() bool { return false }, i); exited {
			t.Fatal("an exit that is none")
		}
	}
	x := tensor.On(on).Ones(1).Tanh()
	at := later.Read(x)
	if _, exited := later.BreakIf(func() bool { return at.Item() > 0 }, 42); exited {
		t.Fatal("an exit without its value")
	}
	later.Do(func() { t.Error("what comes after the exit ran") })
	g.let(1)
	_ = x.Wait()
	later.Poll()
	if state, exited := later.Flush(); !exited || state != 42 {
		t.Errorf("Flush gives %v, %v, want 42, true", state, exited)
	}
}

// If nothing is queued, Poll is one comparison. Otherwise it looks at the values of the first entry.
func BenchmarkLaterPoll(b *testing.B) {
	b.Run("empty", func(b *testing.B) {
		later := asyncrt.NewLater[struct{}](8)
		for b.Loop() {
			later.Poll()
		}
	})
	b.Run("waiting", func(b *testing.B) {
		on, g := gated()
		later := asyncrt.NewLater[struct{}](8)
		later.Read(tensor.On(on).Ones(1).Tanh())
		later.Do(func() {})
		for b.Loop() {
			later.Poll()
		}
		g.let(1)
		later.Close()
	})
}

// Entries that an entry queues before it panics still run, even if the entry runs in Close, after which nothing
// flushes.
func TestLaterCloseAfterPanicInClose(t *testing.T) {
	on, g := gated()
	x := tensor.On(on).Ones(1)
	first := x.Tanh()
	second := first.Tanh() // depends on first, so that it does not get the first token
	var log []string
	func() {
		defer func() { log = append(log, fmt.Sprint(recover())) }()
		later := asyncrt.NewLater[struct{}](64)
		defer later.Close()
		later.Read(first)
		later.Do(func() {
			log = append(log, "outer")
			later.Read(second) // still waits for its token
			later.Do(func() { log = append(log, "inner") })
			g.let(1)
			panic("panic")
		})
		later.Do(func() { log = append(log, "never") })
		g.let(1)
	}()
	if want := []string{"outer", "inner", "panic"}; !slices.Equal(log, want) {
		t.Errorf("got %v, want %v", log, want)
	}
}

func TestLaterWindowMustBePositive(t *testing.T) {
	for _, window := range []int{0, -1} {
		func() {
			defer func() {
				if want := fmt.Sprintf("asyncrt: NewLater: window %d is not positive", window); recover() != want {
					t.Errorf("NewLater(%d) did not panic with %q", window, want)
				}
			}()
			asyncrt.NewLater[int](window)
		}()
	}
}

// The methods of a Read return what those of the tensor return.
func TestRead(t *testing.T) {
	devices(t, func(t *testing.T, on device.Device) {
		f := tensor.FromOn(on, []float32{1, 2.5}, 1, 2)
		d, i, b := f.As(tensor.Float64), tensor.FromOn(on, []int64{1 << 60}), f.Gt(f)
		later := asyncrt.NewLater[struct{}](1)
		read := later.Read
		js, _ := json.Marshal(read(f))
		var logged strings.Builder
		slog.New(slog.NewTextHandler(&logged, nil)).Info("", "f", read(f))
		for what, c := range map[string][2]any{
			"Item":        {read(f.Sum()).Item(), 3.5},
			"ItemInt":     {read(i).ItemInt(), int64(1 << 60)},
			"At":          {read(f).At(0, 1), 2.5},
			"Float32s":    {fmt.Sprint(read(f).Float32s()), "[1 2.5]"},
			"Float64s":    {fmt.Sprint(read(d).Float64s()), "[1 2.5]"},
			"Int64s":      {fmt.Sprint(read(i).Int64s()), "[1152921504606846976]"},
			"Bools":       {fmt.Sprint(read(b).Bools()), "[false false]"},
			"ItemOf":      {asyncrt.ItemOf[int64](read(i)), int64(1 << 60)},
			"SliceOf":     {fmt.Sprint(asyncrt.SliceOf[bool](read(b))), "[false false]"},
			"Matrix":      {read(d).Matrix().At(0, 1), 2.5},
			"MarshalJSON": {string(js), "[[1,2.5]]"},
			"String":      {read(f).String(), "[[1.  2.5]]"},
			"Format":      {fmt.Sprintf("%.2f", read(f)), "[[1.00 2.50]]"},
			"LogValue":    {strings.Contains(logged.String(), `f="[[1.  2.5]]"`), true},
			"Err":         {read(f).Err(), nil},
		} {
			if c[0] != c[1] {
				t.Errorf("%s: got %v, want %v", what, c[0], c[1])
			}
		}
		later.Close()
	})
}

// A Read keeps no graph: the tensors of a step are freed when the step is over.
func TestReadIsDetached(t *testing.T) {
	w := tensor.NewParam(tensor.Ones(1))
	later := asyncrt.NewLater[struct{}](8)
	loss := w.Value().Exp().Sum()
	freed := make(chan struct{})
	runtime.AddCleanup(loss, func(struct{}) { close(freed) }, struct{}{})
	at := later.Read(loss)
	loss = nil
	for range 100 {
		runtime.GC()
		select {
		case <-freed:
			if got := fmt.Sprintf("%.3f", at); got != "2.718" {
				t.Errorf("the value is %s", got)
			}
			return
		default:
			runtime.Gosched()
		}
	}
	t.Error("a Read keeps the tensor, and so the graph, alive")
}
