package engine

// Bulk calls f, and wakes nobody for what f enqueues until f has returned or panicked. Then each device
// with enough to do is woken once, for all of it; a device with a queue gets the operations in large
// batches.
//
// No operation needs the end of f to run. A goroutine that waits or is at a bound, in f or elsewhere,
// executes what is enqueued, and after a while the flusher starts it in any case. Operations that
// other goroutines enqueue meanwhile may also have to wait for the flusher.
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

// isDue reports whether enough was enqueued since the last wake to pay for another one. If so it
// starts counting anew. The lock in tail is held.
func (st *stream) isDue() bool {
	if st.owed < wakeCost || st.e.bulks.Load() > 0 {
		return false
	}
	st.owed = 0
	return true
}

// collect is isDue for a caller without the lock in tail.
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
