package engine

import (
	"fmt"
	"testing"

	"github.com/asyncgen/asyncgen/device"
)

// tinyCPU is a fakeCPU that has calls compute what is tiny.
type tinyCPU struct{ fakeCPU }

func (c *tinyCPU) RunTiny(cmd *device.Command) error { return runCommand(cmd) }

func newTinyCPU() device.Device {
	return device.Wrap("cpu", device.KindCPU, &tinyCPU{fakeCPU{workers: 1}})
}

// byCalls returns how many operations were computed by calls.
func byCalls(e *Engine) (n uint64) {
	for _, st := range e.allStreams() {
		n += st.computed()
	}
	return n
}

// Which operations calls compute, and which they don't.
func TestCallsComputeWhatIsTiny(t *testing.T) {
	dear := func(e *Engine, out, in *Storage) {
		e.Enqueue(&Op{Cmd: device.Command{Kernel: addOne, N: 1}, Operands: [device.MaxOperands]*Storage{out, in}, Cost: tinyCost + 1})
	}
	for _, c := range []struct {
		name string
		o    Options
		do   func(e *Engine, dev device.Device, one *Storage)
		want uint64
	}{
		{"an operation", Options{}, func(e *Engine, dev device.Device, one *Storage) {
			unary(e, addOne, e.NewStorage(dev, 8), one)
		}, 1},
		{"a chain", Options{}, func(e *Engine, dev device.Device, one *Storage) {
			for range 100 {
				one = unary(e, addOne, e.NewStorage(dev, 8), one)
			}
		}, 100},
		{"in a scope", Options{}, func(e *Engine, dev device.Device, one *Storage) {
			unary(e, addOne, e.NewStorage(device.WithContext(t.Context(), dev), 8), one)
		}, 1},
		{"a result in memory of its own", Options{}, func(e *Engine, dev device.Device, one *Storage) {
			unary(e, addOne, e.NewStorage(dev, 24), fromFloats(e, dev, 1, 2, 3))
		}, 0},
		{"a storage that is written again", Options{}, func(e *Engine, dev device.Device, one *Storage) {
			two := unary(e, addOne, e.NewStorage(dev, 8), one)
			unary(e, addOne, two, one)
		}, 1},
		{"what takes long", Options{}, func(e *Engine, dev device.Device, one *Storage) {
			dear(e, e.NewStorage(dev, 8), one)
		}, 0},
		{"all, also what takes long", Options{Tiny: TinyAll}, func(e *Engine, dev device.Device, one *Storage) {
			dear(e, e.NewStorage(dev, 8), one)
		}, 1},
		{"none", Options{Tiny: TinyNone}, func(e *Engine, dev device.Device, one *Storage) {
			unary(e, addOne, e.NewStorage(dev, 8), one)
		}, 0},
		{"naive", Options{Mode: Naive}, func(e *Engine, dev device.Device, one *Storage) {
			unary(e, addOne, e.NewStorage(dev, 8), one)
		}, 0},
		{"shuffle", Options{Mode: Shuffle}, func(e *Engine, dev device.Device, one *Storage) {
			unary(e, addOne, e.NewStorage(dev, 8), one)
		}, 0},
		{"with a report", Options{Report: t.TempDir() + "/report"}, func(e *Engine, dev device.Device, one *Storage) {
			unary(e, addOne, e.NewStorage(dev, 8), one)
		}, 0},
		{"recorded", Options{}, func(e *Engine, dev device.Device, one *Storage) {
			defer e.Record(func(Event) {})()
			unary(e, addOne, e.NewStorage(dev, 8), one)
		}, 0},
		{"where waits are forbidden", Options{}, func(e *Engine, dev device.Device, one *Storage) {
			defer e.SetSyncPolicy(e.SetSyncPolicy(Error))
			unary(e, addOne, e.NewStorage(dev, 8), one)
		}, 0},
		{"while somebody speculates", Options{}, func(e *Engine, dev device.Device, one *Storage) {
			s := e.Speculate()
			s.Guess().Keep()
			defer s.End()
			unary(e, addOne, e.NewStorage(dev, 8), one)
		}, 0},
		{"what fails", Options{}, func(e *Engine, dev device.Device, one *Storage) {
			unary(e, failing, e.NewStorage(dev, 8), one)
		}, 0},
		{"what reads what has failed", Options{}, func(e *Engine, dev device.Device, one *Storage) {
			bad := unary(e, failing, e.NewStorage(dev, 8), one)
			bad.Wait(bg, "test")
			unary(e, addOne, e.NewStorage(dev, 8), bad)
		}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.o.Mode == 0 {
				c.o.Mode = Async
			}
			e, dev := newEngine(t, c.o), newTinyCPU()
			c.do(e, dev, fromFloats(e, dev, 1))
			e.WaitAll(bg)
			if got := byCalls(e); got != c.want {
				t.Errorf("calls have computed %d operations, want %d", got, c.want)
			}
			if s := e.Stats(); s.Executed+s.Skipped != s.Enqueued || s.InFlightBytes != 0 {
				t.Errorf("counts %+v", s)
			}
		})
	}
}

// An operation whose input is not ready does not hold up the program, however small it is.
func TestTinyOperationsBehindOneThatIsBlocked(t *testing.T) {
	e, dev := newEngine(t, Options{Mode: Async, Tiny: TinyAll}), newTinyCPU()
	k, started, open := blocking()
	defer open()
	x := unary(e, k, e.NewStorage(dev, 24), fromFloats(e, dev, 1, 2, 3))
	<-started
	first := x
	for range 1000 {
		x = e.NewStorage(dev, 8)
		unary(e, addOne, x, first)
		first = x
	}
	if byCalls(e) != 0 || x.Ready() {
		t.Errorf("calls have computed %d operations; the last is ready: %v", byCalls(e), x.Ready())
	}
	open()
	if err := x.Wait(bg, "test"); err != nil {
		t.Fatal(err)
	}
	if got := device.Slice[float64](x.Buffer(), 0, 1)[0]; got != 1002 {
		t.Errorf("got %v, want 1002", got)
	}
}

// A failure is the same whether a call met it first or not.
func TestFailuresOfTinyOperations(t *testing.T) {
	for _, k := range []*device.Kernel{failing, panicking} {
		var got []string
		for _, p := range []TinyPolicy{TinyNone, TinyAll} {
			e, dev := newEngine(t, Options{Mode: Async, Tiny: p}), newTinyCPU()
			shape := device.Shape{1, 1}
			one := fromFloats(e, dev, 1)
			var outs []*Storage
			for i := range 3 {
				op := Op{Cmd: device.Command{Kernel: k, N: 1}, Operands: [device.MaxOperands]*Storage{e.NewStorage(dev, 8), one}}
				op.Shapes[0] = &shape
				if i == 1 {
					op.Cmd.Kernel = addOne
				}
				e.Enqueue(&op)
				outs = append(outs, op.Operands[0])
			}
			outs = append(outs, unary(e, addOne, e.NewStorage(dev, 8), outs[0]))
			text := ""
			for _, s := range outs {
				text += fmt.Sprintf("%+v\n", s.Wait(bg, "test"))
			}
			for _, err := range joined(e.WaitAll(bg)) {
				text += fmt.Sprintf("%+v\n", err)
			}
			if wants := map[TinyPolicy]uint64{TinyAll: 1}[p]; byCalls(e) != wants {
				t.Errorf("calls have computed %d operations, want %d", byCalls(e), wants)
			}
			got = append(got, text)
		}
		if got[0] != got[1] {
			t.Errorf("%s, computed by calls:\n%s\nby others:\n%s", k.Name, got[1], got[0])
		}
	}
}

func TestNoCallComputesAfterClose(t *testing.T) {
	e, dev := New(Options{Mode: Async}), newTinyCPU()
	one, out := fromFloats(e, dev, 1), e.NewStorage(dev, 8)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if v := recover(); v != usedAfterClose {
			t.Errorf("panic %v, want %q", v, usedAfterClose)
		}
	}()
	unary(e, addOne, out, one)
}
