package engine

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/asyncgen/asyncgen/device"
)

// stalled are the producers that wait at a bound.
type stalled struct {
	// n is how many producers are parked or about to park. While it is not 0, executors publish at
	// once what has finished.
	n    atomic.Int32
	mu   sync.Mutex
	cond sync.Cond
}

// wake lets them look again.
//
// No wake is missed: a producer raises n, has all executors settle, and then looks for room once
// more. Whoever finishes something later sees n, publishes that and calls wake.
func (s *stalled) wake() {
	if s.n.Load() > 0 {
		s.mu.Lock()
		s.cond.Broadcast()
		s.mu.Unlock()
	}
}

// admit counts bytes as in flight, after waiting until the bound allows it.
func (e *Engine) admit(bytes int64, op *Op, pc uintptr) {
	if bytes == 0 {
		return
	}
	for {
		// An operation larger than the bound may go alone, when nothing else is in flight; or it
		// could never go.
		now := e.inFlight.Load()
		sum := now + bytes
		if limit := e.limit.Load(); limit != 0 && sum > limit && now != 0 {
			e.stallFor(nil, bytes, op.Cmd.Kernel, pc)
			continue
		}
		if !e.inFlight.CompareAndSwap(now, sum) {
			continue
		}
		for top := e.peak.Load(); sum > top && !e.peak.CompareAndSwap(top, sum); top = e.peak.Load() {
		}
		return
	}
}

// stallFor waits until the ring of st has room, or, if st is nil, until the bound on bytes has. While
// it waits it executes whatever is ready, on all devices.
func (e *Engine) stallFor(st *stream, bytes int64, k *device.Kernel, pc uintptr) {
	e.settle()
	if e.hasRoom(st, bytes) {
		return // done or inFlight had lagged behind
	}
	if e.virtual.Load() != nil { // see stamp
		e.outside(func() { e.awaitRoom(st, bytes) })
		return
	}
	start := now()
	var h help
	e.outside(func() { h = e.awaitRoom(st, bytes) })
	e.countStall(k.Name, pc, since(start), h)
}

// awaitRoom is stallFor once it is known that there is no room yet.
func (e *Engine) awaitRoom(st *stream, bytes int64) (h help) {
	p := forOthers
	for looks := 0; !e.hasRoom(st, bytes); looks++ {
		if ops, some := e.helpAnywhere(p); some {
			h.rest()
			h.ops += ops
			p, looks = forOthers, 0
			continue
		}
		if e.IsShort() {
			p, _ = e.relief.await(context.Background(), forOthers)
			continue
		}
		h.look()
		if looks < e.looks {
			pause(pauses)
			continue
		}
		if e.mode == Shuffle {
			e.doze(looks - e.looks) // nobody wakes us: what another goroutine enqueues runs only when somebody looks
			continue
		}
		// From here on, a goroutine that finishes something publishes it and then broadcasts, so nothing is missed.
		e.stalled.n.Add(1)
		for _, other := range e.allStreams() {
			other.exec.settle()
			other.exec.hurry()
		}
		e.stalled.mu.Lock()
		if !e.hasRoom(st, bytes) {
			e.stalled.cond.Wait()
		}
		e.stalled.mu.Unlock()
		e.stalled.n.Add(-1)
	}
	h.rest()
	return h
}

// settle brings done of all streams and inFlight up to date.
func (e *Engine) settle() {
	for _, st := range e.allStreams() {
		st.exec.settle()
	}
}

// hasRoom reports whether the ring of st has room, or, if st is nil, the bound on bytes. It does
// not reserve the room: another producer may take it first, and the caller then stalls again.
func (e *Engine) hasRoom(st *stream, bytes int64) bool {
	if st != nil {
		return st.enqueued()-st.done.Load() < uint64(st.capacity())
	}
	used, limit := e.inFlight.Load(), e.limit.Load()
	return limit == 0 || used == 0 || used+bytes <= limit
}

// helpAnywhere executes a little on each stream, see executor.helpSome: what frees the room may be
// on any.
func (e *Engine) helpAnywhere(p patience) (ops int64, some bool) {
	for _, st := range e.allStreams() {
		n, did := st.exec.helpSome(p)
		ops += n
		some = some || did
	}
	return ops, some
}
