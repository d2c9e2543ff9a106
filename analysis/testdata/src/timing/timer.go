package timing

import (
	"fmt"
	"time"

	asyncrt "github.com/asyncgen/asyncgen/runtime"
)

func called(t *asyncrt.Timer) string {
	fmt.Println("device:", t.Enqueued())              // want `t.Enqueued\(\) is the time it took to enqueue the work, not to do it, and nothing here says so; ask Wait \[AT020\]`
	return fmt.Sprintf("forward: %v", t.Enqueued()/8) // want `AT020`
}

// Silent.

func enqueueTime(t *asyncrt.Timer) string { return fmt.Sprint("forward: ", t.Enqueued()) }

func both(t *asyncrt.Timer, n int) (a, b time.Duration, perCall time.Duration) {
	fmt.Println("enqueueing took", t.Enqueued())
	fmt.Println("all:", t.Enqueued(), t.Wait())
	d := t.Enqueued()
	return d, t.Enqueued(), t.Enqueued() / time.Duration(n)
}
