package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/cpu"
	"github.com/asyncgen/asyncgen/device/kernel"
	"github.com/asyncgen/asyncgen/device/wire"
	"github.com/asyncgen/asyncgen/device/wire/wiretest"
)

// A rank is a process of a job, played by an engine with a device of its own.
type rank struct {
	job *wire.Job
	e   *Engine
	cpu device.Device
}

// inJob runs f as n ranks, on an engine each. In a bubble, engines have much to do in a minute of its time.
func inJob(t *testing.T, n int, o Options, w *wiretest.Network, f func(r *rank)) {
	var wg sync.WaitGroup
	for i := range n {
		o, timeout := o, time.Duration(0)
		if o.Channels {
			timeout = 50 * time.Millisecond
		}
		wg.Go(func() {
			job, err := wire.NewJob(w.Rank(i), wire.Options{Program: "p", Timeout: timeout})
			if err != nil {
				t.Error(err)
				return
			}
			o.Seed = uint64(i)
			r := &rank{job, New(o), device.Wrap("cpu", device.KindCPU, cpu.New())}
			f(r)
			r.e.Close()
			job.Close()
		})
	}
	wg.Wait()
}

// made returns a storage of two numbers, v and v+1, that an operation computes.
func (r *rank) made(v float64) *Storage {
	x := r.e.FromHost(r.cpu, hostOf(v-1, v))
	y := r.e.NewStorage(r.cpu, 16)
	r.e.Enqueue(&Op{Cmd: device.Command{Kernel: messageInc, N: 2}, Operands: [device.MaxOperands]*Storage{y, x}})
	return y
}

func hostOf(v ...float64) *device.Buffer {
	b := device.HostBuffer(int64(8 * len(v)))
	copy(device.Slice[float64](b, 0, len(v)), v)
	return b
}

func get2(s *Storage) (string, error) {
	if err := s.Wait(context.Background(), "test"); err != nil {
		return "", err
	}
	return fmt.Sprint(device.Slice[float64](s.Buffer(), 0, 2)), nil
}

var modes = []Mode{Async, Shuffle, Naive}

// A number goes around a ring of ranks, and each adds one to it, in every mode.
func TestMessagesAroundRing(t *testing.T) {
	for _, mode := range modes {
		const n = 3
		w := wiretest.New(n)
		w.Shuffle(1)
		inJob(t, n, Options{Mode: mode}, w, func(r *rank) {
			me := r.job.Rank()
			before, next := (me+n-1)%n, (me+1)%n
			s := r.made(1)
			for range 40 {
				if me > 0 {
					s = r.e.Receive(r.job.From(before), r.cpu, 2, device.Float64, 1)
				}
				to := r.e.NewStorage(r.cpu, 16)
				r.e.Enqueue(&Op{Cmd: device.Command{Kernel: messageInc, N: 2}, Operands: [device.MaxOperands]*Storage{to, s}})
				r.e.Send(r.job.To(next), to, 0, 2, device.Float64, 1)
				if me == 0 {
					s = r.e.Receive(r.job.From(before), r.cpu, 2, device.Float64, 1)
				}
			}
			if me == 0 {
				if got, err := get2(s); err != nil || got != "[121 122]" {
					t.Errorf("mode %v: got %s, %v", mode, got, err)
				}
			}
			if err := r.e.WaitAll(t.Context()); err != nil {
				t.Errorf("mode %v: rank %d: %v", mode, me, err)
			}
		})
	}
}

// Results that are received later take no memory yet, but for some that keep the network busy.
func TestReceivesAheadTakeLittle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inJob(t, 2, Options{Mode: Async, Channels: true}, wiretest.New(2), func(r *rank) {
			const n, numbers = 64, 1 << 17 // of 1 MiB
			other, x := 1-r.job.Rank(), r.e.FromHost(r.cpu, device.HostBuffer(8*numbers))
			for range n {
				r.e.Receive(r.job.From(other), r.cpu, numbers, device.Float64, 1)
			}
			time.Sleep(10 * flushTick)
			if live, most := device.MemoryOf(r.cpu.Backend()).Live(), r.job.From(other).Caps().Ahead*3/2; live > most {
				t.Errorf("%d bytes are in use before a message is there, want at most %d", live, most)
			}
			for range n {
				r.e.Send(r.job.To(other), x, 0, numbers, device.Float64, 1)
			}
			if err := r.e.WaitAll(t.Context()); err != nil {
				t.Error(err)
			}
		})
	})
}

// A message whose input is spoiled spoils what is received, and not the messages around it. The same goes for one whose
// scope has ended, at either end.
func TestSpoiledMessage(t *testing.T) {
	for _, mode := range modes {
		inJob(t, 2, Options{Mode: mode}, wiretest.New(2), func(r *rank) {
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			scoped := device.WithContext(ended, r.cpu)
			if r.job.Rank() == 0 {
				bad := r.e.NewStorage(r.cpu, 16)
				r.e.Enqueue(&Op{Cmd: device.Command{Kernel: failingMessage, N: 2}, Operands: [device.MaxOperands]*Storage{bad, r.made(1)}})
				for i, s := range []*Storage{r.made(1), bad, r.made(2), r.made(3), r.made(4)} {
					to := r.job.To(1)
					if i == 3 {
						s = r.e.Copy(s, 0, 2, device.Float64, scoped)
					}
					r.e.Send(to, s, 0, 2, device.Float64, uint64(i))
				}
				r.e.WaitAll(t.Context())
				return
			}
			for i, want := range []string{"[1 2]", "rank 0 could not send it", "skip", "rank 0 could not send it", "[4 5]"} {
				on := r.cpu
				if want == "skip" {
					on = scoped
				}
				s := r.e.Receive(r.job.From(0), on, 2, device.Float64, uint64(i))
				got, err := get2(s)
				switch {
				case want == "skip":
					if !errors.Is(err, context.Canceled) {
						t.Errorf("mode %v: message %d: %v", mode, i, err)
					}
				case err != nil:
					if !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "message_test.go:") {
						t.Errorf("mode %v: message %d: %v, want %s", mode, i, err, want)
					}
				case got != want:
					t.Errorf("mode %v: message %d: %s, want %s", mode, i, got, want)
				}
			}
			if r.job.Err() != nil {
				t.Error(r.job.Err())
			}
		})
	}
}

// A rank goes silent, or dies, at each of its messages. The others end with an error that says so and have the line of
// the operation; nothing is left in use.
func TestRankIsLost(t *testing.T) {
	const rounds = 4
	for at := range rounds {
		for _, silently := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) { testRankIsLost(t, rounds, at, silently) })
		}
	}
}

func testRankIsLost(t *testing.T, rounds, at int, silently bool) {
	const n = 3
	w := wiretest.New(n)
	var ready sync.WaitGroup
	ready.Add(n)
	inJob(t, n, Options{Channels: true}, w, func(r *rank) {
		ready.Done()
		ready.Wait()
		me := r.job.Rank()
		if me == 1 {
			if silently {
				w.Silence(1, at)
			} else {
				w.Kill(1, at)
			}
		}
		s := r.made(1)
		for range rounds {
			r.e.Send(r.job.To((me+1)%n), s, 0, 2, device.Float64, 1)
			got := r.e.Receive(r.job.From((me+n-1)%n), r.cpu, 2, device.Float64, 1)
			s = r.e.NewStorage(r.cpu, 16)
			r.e.Enqueue(&Op{Cmd: device.Command{Kernel: messageInc, N: 2}, Operands: [device.MaxOperands]*Storage{s, got}})
		}
		_, err := get2(s)
		var op *OpError
		if hops := (me + n - 2) % n; at+hops >= rounds { // the loss may come too late to be noticed
			return
		}
		if !errors.Is(err, device.ErrLost) || !errors.As(err, &op) || !strings.HasSuffix(op.File, "message_test.go") {
			t.Errorf("message %d, silently %v: rank %d: %v", at, silently, me, err)
		}
		if err := r.e.WaitAll(t.Context()); !errors.Is(err, device.ErrLost) {
			t.Errorf("message %d, silently %v: rank %d: WaitAll: %v", at, silently, me, err)
		}
		late := r.e.Receive(r.job.From((me+n-1)%n), r.cpu, 2, device.Float64, 1)
		if _, err := get2(late); !errors.Is(err, device.ErrLost) {
			t.Errorf("afterwards: %v", err)
		}
	})
}

// noBody is a Body that no backend knows.
type noBody struct{}

func (noBody) Key() string { return "none" }

var (
	messageInc     = device.NewKernel("inc", device.Map, kernel.Add(kernel.Arg(0, device.Float64), kernel.Const(1, device.Float64)), device.Float64, device.Float64)
	failingMessage = device.NewKernel("failing", device.Map, noBody{}, device.Float64, device.Float64)
)

// A message can't be taken back, so none may be enqueued ahead of a test, nor be recorded.
func TestMessageRefused(t *testing.T) {
	inJob(t, 2, Options{}, wiretest.New(2), func(r *rank) {
		peer := 1 - r.job.Rank()
		x := r.made(1)
		for want, ahead := range map[string]func() (end func()){
			messageAhead: func() func() { sp := r.e.Speculate(); sp.Guess().Keep(); sp.Guess(); return sp.End },
			"refused: " + refusedCopy: func() func() {
				c := r.e.Capture(func(text string) { panic("refused: " + text) })
				return func() { c.End() }
			},
		} {
			end := ahead()
			for name, f := range map[string]func(){
				"Send":    func() { r.e.Send(r.job.To(peer), x, 0, 2, device.Float64, 1) },
				"Receive": func() { r.e.Receive(r.job.From(peer), r.cpu, 2, device.Float64, 1) },
			} {
				func() {
					defer func() {
						if got := fmt.Sprint(recover()); got != want {
							t.Errorf("%s: %s, want %s", name, got, want)
						}
					}()
					f()
				}()
			}
			end()
		}
		if err := r.e.WaitAll(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
