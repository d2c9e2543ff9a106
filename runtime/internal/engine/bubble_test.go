package engine

import (
	"context"
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asyncgen/asyncgen/device"
)

var bubbles = flag.Int("bubbles", 150, "number of random programs that run in a bubble of their own")

// In a bubble of testing/synctest the engine blocks only on channels. So synctest notices a program that
// hangs as soon as everybody sleeps, and goroutines that are left at its end; and timers fire only when
// nobody has anything else to do.
func TestRandomProgramsInBubbles(t *testing.T) {
	first := *seed
	if first == 0 {
		first = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d", first)
	var next atomic.Uint64
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			w := newWorld()
			w.close()
			for i := next.Add(1) - 1; i < uint64(*bubbles) && !t.Failed(); i = next.Add(1) - 1 {
				runInBubble(t, w, first+i)
			}
		})
	}
	wg.Wait()
}

func runInBubble(t *testing.T, w *world, seed uint64) {
	again := fmt.Sprintf("to run it alone: go test ./runtime/internal/engine -run InBubbles -bubbles 1 -seed %d", seed)
	// A program may also get nowhere without sleeping.
	busy := time.AfterFunc(*hang, func() {
		pprof.Lookup("goroutine").WriteTo(os.Stderr, 2)
		panic(fmt.Sprintf("program %d hangs; %s", seed, again))
	})
	defer busy.Stop()
	defer func() {
		if v := recover(); v != nil {
			fmt.Fprintf(os.Stderr, "program %d: %v\n%s\n", seed, v, again)
			panic(v)
		}
	}()
	synctest.Test(t, func(t *testing.T) {
		w.open()
		defer w.close()
		if err := runProgram(w, seed, true); err != nil {
			t.Errorf("program %d: %v\n%s", seed, err, again)
		}
	})
}

// A bubble's time stands still while one of its goroutines waits for a lock. So a goroutine that may hold
// a lock must not sleep by that time. It may want to when the holder of a stream's lock has no processor:
// here the holder gets none until another goroutine has given up spinning.
func TestNoBubbleTimePassesAtALock(t *testing.T) {
	locks := []struct {
		name string
		hold func(st *stream) (release func())
	}{
		{"ring", func(st *stream) func() {
			for {
				if t := st.tail.Load(); t&1 == 0 && st.tail.CompareAndSwap(t, t|1) {
					return func() { st.tail.Store(t) }
				}
				runtime.Gosched()
			}
		}},
		{"flow", func(st *stream) func() {
			var f *flow
			switch x := st.exec.(type) {
			case *flow:
				f = x
			case *shuffledFlow:
				f = x.flow
			default:
				return func() {}
			}
			f.lock.lock()
			return f.lock.unlock
		}},
	}
	calls := []struct {
		name string
		do   func(s *setup, x, y *Storage)
	}{
		{"Enqueue", func(s *setup, x, y *Storage) { s.apply(addOne, y) }},
		{"Copy from the host", func(s *setup, x, y *Storage) { s.e.Copy(x, 0, 1, device.Float64, s.dev) }},
		{"Copy to the host", func(s *setup, x, y *Storage) { s.fetch(y) }},
		{"Release", func(s *setup, x, y *Storage) { s.e.Release(y) }},
		{"Bulk", func(s *setup, x, y *Storage) { s.e.Bulk(func() {}) }},
		{"Stats", func(s *setup, x, y *Storage) { s.e.Stats() }},
		{"Mark", func(s *setup, x, y *Storage) { s.e.Mark() }},
		{"Ready", func(s *setup, x, y *Storage) { y.Ready() }},
		{"Hasten", func(s *setup, x, y *Storage) { y.Hasten() }},
		{"Wait", func(s *setup, x, y *Storage) { y.Wait(bg, "read") }},
		{"Wait with a context", func(s *setup, x, y *Storage) {
			ctx, cancel := context.WithTimeout(bg, time.Hour)
			defer cancel()
			y.Wait(ctx, "read")
		}},
		{"WaitAll", func(s *setup, x, y *Storage) { s.e.WaitAll(bg) }},
		{"WaitAll at a bound", func(s *setup, x, y *Storage) {
			s.e.SetLimit(8)
			s.fetch(s.apply(addOne, s.apply(addOne, y)))
			s.e.WaitAll(bg)
		}},
	}
	for _, lock := range locks {
		for _, call := range calls {
			t.Run(lock.name+", "+call.name, func(t *testing.T) {
				for _, k := range kindsOfDevice {
					for _, mode := range []Mode{Async, Shuffle} {
						runOn(t, k.make(t), Options{Mode: mode, Seed: 1, MaxBytes: -1}, func(s *setup) {
							x := fromFloats(s.e, s.host, 1)
							y := s.e.Copy(x, 0, 1, device.Float64, s.dev)
							s.fetch(y)
							var releases []func()
							for _, st := range s.e.allStreams() {
								releases = append(releases, lock.hold(st))
							}
							withoutProcessor(func() {
								for _, release := range releases {
									release()
								}
							}, func() {
								synctest.Test(t, func(*testing.T) {
									began := time.Now()
									call.do(s, x, y)
									if took := time.Since(began); took != 0 {
										t.Errorf("%s, mode %v: %v have passed in the bubble", k.name, mode, took)
									}
								})
							})
						})
					}
				}
			})
		}
	}
}

// withoutProcessor calls f, in which a goroutine of a bubble may wait for what release gives back. It calls
// release when such a goroutine has given up spinning, or when f has returned.
func withoutProcessor(release, f func()) {
	var returned atomic.Bool
	var wg sync.WaitGroup
	wg.Go(func() {
		for !returned.Load() && !isGivenUp() {
			runtime.Gosched()
		}
		release()
	})
	f()
	returned.Store(true)
	wg.Wait()
}

// isGivenUp reports whether a goroutine in a bubble is asleep in the engine, and whether a goroutine,
// perhaps another, sleeps because it has spun for a lock for long.
func isGivenUp() bool {
	text := make([]byte, 1<<20)
	inBubble, inBackoff := false, false
	for g := range strings.SplitSeq(string(text[:runtime.Stack(text, true)]), "\n\n") {
		state, stack, _ := strings.Cut(g, "\n")
		if !strings.Contains(state, "[sleep") && !strings.Contains(state, "[sync.Mutex.Lock") {
			continue
		}
		inBubble = inBubble || strings.Contains(state, "synctest bubble") && strings.Contains(stack, "/engine.")
		inBackoff = inBackoff || strings.Contains(stack, "/engine.backoff(")
	}
	return inBubble && inBackoff
}
