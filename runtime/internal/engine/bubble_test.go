package engine

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

var bubbles = flag.Int("bubbles", 300, "number of random programs that run in a bubble of their own")

// In a bubble of testing/synctest the engine waits on channels, and for nothing else. So a program that hangs is found out as soon as
// everybody sleeps, goroutines that are left when it has ended are a failure, and timers fire only when nobody has
// anything else to do.
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
