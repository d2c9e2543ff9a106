// Package stopwatch knows nothing of tensors.
package stopwatch

import "time"

type Watch struct {
	start time.Time
	laps  []time.Duration
}

func New() *Watch { return &Watch{start: time.Now()} }

func (w *Watch) Start()  { w.start = time.Now() }
func (w *Watch) Lap()    { w.laps = append(w.laps, time.Since(w.start)) }
func (w *Watch) Report() {}

type Clock interface{ Now() time.Time }

func Time(name string, f func()) time.Duration { f(); return 0 }

type Laps struct{ byName map[string]time.Duration }

func (l *Laps) Run(name string, f func()) { f() }
