package engine

// Bulk calls f, and wakes nobody for what f enqueues until f has returned or panicked: then each
// worker or device that has enough to do is woken once, for all of it. A device with a queue is
// handed as many operations at once as it takes.
//
// Nothing depends on f's end: whoever waits, in f or elsewhere, and whoever is at a bound executes what is there,
// and what has been enqueued starts after a while in any case (see flusher). So an operation that another goroutine
// enqueues meanwhile may begin later, too, by that much.
func (e *Engine) Bulk(f func()) {
	e.bulks.Add(1)
	defer func() {
		if e.bulks.Add(-1) > 0 {
			return
		}
		for _, st := range e.allStreams() {
			if st.collect() {
				st.exec.nudge()
			}
		}
	}()
	f()
}

// isDue reports whether what has been enqueued since somebody was last woken is worth it, and
// counts from now. tail is held.
func (st *stream) isDue() bool {
	if st.owed < wakeCost || st.e.bulks.Load() > 0 {
		return false
	}
	st.owed = 0
	return true
}

// collect is isDue when tail is not held.
func (st *stream) collect() bool {
	for i := 0; ; i++ {
		if t := st.tail.Load(); t&1 == 0 && st.tail.CompareAndSwap(t, t|1) {
			due := st.isDue()
			st.tail.Store(t)
			return due
		}
		backoff(i)
	}
}
