// Package stopclock has a stopwatch that can wait.
package stopclock

import (
	"log"
	"time"

	asyncrt "github.com/asyncgen/asyncgen/runtime"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

type Watch struct{ begin time.Time }

func New() *Watch { return &Watch{begin: time.Now()} }

// Zero begins when it is started.
func Zero() *Watch { return &Watch{} }

func (w *Watch) Start() { w.begin = time.Now() }

// Lap begins anew.
func (w *Watch) Lap() time.Duration {
	d := time.Since(w.begin)
	w.begin = time.Now()
	return d
}

// Done waits before.
func (w *Watch) Done() time.Duration {
	asyncrt.WaitIdle()
	return w.Lap()
}

// Next tells how long the next one has taken: nothing, so far.
func (w *Watch) Next() time.Duration {
	w.begin = time.Now()
	return time.Since(w.begin)
}

// Note logs that there is something.
func Note(x *tensor.Tensor) { log.Print(time.Now(), x.Dim(0)) }
