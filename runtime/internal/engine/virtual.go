package engine

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/internal/bubble"
)

// Devices may tell times by a clock of a model, which moves when the program does something (device.VirtualClock). What
// the program does, the engine alone knows: that it enqueues something, and when; that it waits, and for what. So
//
//   - push stamps each record with the time, after it has added what enqueueing costs, and a queue
//     passes that on, later by what the operation has waited for on other streams (issue);
//   - what has finished leaves its time for those who use what it has written (times), and passes it on across links;
//   - who waits moves the clock to the time of what it has waited for (reach), whether or not it really had to: what
//     is really there may not be there yet by the clock.
//
// An operation on a CPU takes no time: it is finished when what it reads is. With one goroutine in
// the program, all of these times depend on the program alone. Without such a device all of this
// costs a load here and there.

// aLook is what it costs a program to look at a value that is not ready, so that one that looks
// until it is comes to an end.
const aLook = 100 * time.Nanosecond

// A timing is when something had finished by the clock of a model.
type timing struct{ at atomic.Int64 }

// note notes that it was not before t.
func (x *timing) note(t time.Duration) {
	for {
		at := x.at.Load()
		if int64(t) <= at || x.at.CompareAndSwap(at, int64(t)) {
			return
		}
	}
}

func (x *timing) get() time.Duration { return time.Duration(x.at.Load()) }

// now is the time: that of a model, if there is a device that has one.
func (e *Engine) now() time.Duration {
	if clock := e.virtual.Load(); clock != nil {
		return clock.Now()
	}
	if e.onChannels() {
		return now()
	}
	return bubble.Now().Sub(epoch)
}

// Now is the time since some moment by the clock that e's devices have: that of a model, or else the system's.
func (e *Engine) Now() time.Duration { return e.now() }

// reach moves the clock, if there is one, to t, for a program that has waited until then by a call
// with the given name. It counts that as a wait, in which ops operations were executed. If waiting
// is forbidden, and t has not come, it returns an error.
func (e *Engine) reach(clock *device.VirtualClock, t time.Duration, name string, pc uintptr, ops int64) error {
	if clock.Now() >= t {
		return nil
	}
	if err := e.allow(name, pc); err != nil {
		return err
	}
	took := clock.Reach(t)
	e.countWait(name, pc, took, help{ops: ops, idle: took})
	return nil
}

// stamp notes when the program enqueues r, at whose place in the ring something else has been: as
// far as the program is concerned that has to be finished. tail is held.
func (st *stream) stamp(clock *device.VirtualClock, r *record) {
	if took := clock.Reach(r.stamp.Finished()); took > 0 {
		st.e.countStall(r.kernel.Name, r.pc, took, help{idle: took})
	}
	r.stamp.Finish(0)
	if r.isGate || r.isRelease() {
		r.stamp.Issued = clock.Now()
		return
	}
	r.stamp.Issued = clock.Spend(st.host)
}

// arrives is when all that r reads on other streams than st is there, and what st has held back for it.
func (r *record) arrives(st *stream) time.Duration {
	at := r.stamp.Issued
	for i, s := range r.operands {
		if s != nil && s.st != st && r.writes>>i&1 == 0 {
			at = max(at, s.at())
		}
	}
	return at
}

// arrivesOnHost is arrives on a synchronous device, where what is on the same stream is waited for as well.
func (r *record) arrivesOnHost() time.Duration {
	if r.isRelease() {
		return 0
	}
	at := r.stamp.Issued
	if r.isGate {
		return max(at, r.link.at)
	}
	for _, s := range r.operands {
		if s != nil {
			at = max(at, s.at())
		}
	}
	for _, s := range r.more {
		at = max(at, s.at())
	}
	return at
}

// pass passes the time of r on, which has finished and stands at seq, to what it has written on st.
func (st *stream) pass(r *record, seq uint64) {
	if r.writes != 0 {
		st.times.set(seq, r.stamp.Finished())
	}
	if r.scope != nil {
		r.scope.Note(r.stamp.Finished())
	}
}

// at is when the newest finished writer of s had, by the clock of a model.
func (s *Storage) at() time.Duration {
	if fin := s.fin.Load(); fin > 0 {
		return s.st.times.get(fin - 1)
	}
	return 0 // it was there before, or the program has waited for it, see runNow
}

// times are those of all operations of a stream. A Storage has no room for its own: results are to
// fit into a size class of the allocator.
type times struct {
	mu     sync.RWMutex
	chunks []*[timesChunk]time.Duration // nil where nothing was set
}

const timesChunk = 1024

func (x *times) set(seq uint64, t time.Duration) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for uint64(len(x.chunks)) <= seq/timesChunk {
		x.chunks = append(x.chunks, nil)
	}
	chunk := &x.chunks[seq/timesChunk]
	if *chunk == nil {
		*chunk = new([timesChunk]time.Duration)
	}
	(*chunk)[seq%timesChunk] = t
}

// get returns what was set, or 0.
func (x *times) get(seq uint64) time.Duration {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if at := seq / timesChunk; at < uint64(len(x.chunks)) && x.chunks[at] != nil {
		return x.chunks[at][seq%timesChunk]
	}
	return 0
}

// waitVirtually is Storage.Wait by the clock of a model.
func (s *Storage) waitVirtually(ctx context.Context, clock *device.VirtualClock, name string, pc uintptr) error {
	e := s.st.e
	h, err := s.finish(ctx)
	if err != nil {
		return err
	}
	if err := e.reach(clock, s.at(), name, pc, h.ops); err != nil {
		return err
	}
	return s.Err()
}

// finish really waits for s, which takes no time of the model.
func (s *Storage) finish(ctx context.Context) (h help, err error) {
	if want := s.last.Load(); s.fin.Load() < want {
		h, err = s.st.await(ctx, goal{seq: want - 1})
	}
	return h, err
}

// isReadyBy is Ready by the clock of a model.
func (s *Storage) isReadyBy(clock *device.VirtualClock) bool {
	if _, err := s.finish(untilShort); err == nil && s.at() <= clock.Now() {
		return true
	}
	clock.Spend(aLook)
	return false
}

// waitEachVirtually is WaitEach by the clock of a model.
func waitEachVirtually(ctx context.Context, clock *device.VirtualClock, name string, ss []*Storage, pc uintptr) error {
	var ops int64
	var at time.Duration
	for _, s := range ss {
		h, err := s.finish(ctx)
		if err != nil {
			return err
		}
		ops += h.ops
		at = max(at, s.at())
	}
	if len(ss) > 0 {
		if err := ss[0].st.e.reach(clock, at, name, pc, ops); err != nil {
			return err
		}
	}
	for _, s := range ss {
		if err := s.Err(); err != nil {
			return err
		}
	}
	return nil
}

// finishVirtually is finish by the clock of a model.
func (e *Engine) finishVirtually(ctx context.Context, clock *device.VirtualClock, streams []*stream, ends []uint64, name string, pc uintptr) error {
	ops, err := e.finishReally(ctx, streams, ends)
	if err != nil {
		return err
	}
	var at time.Duration
	for _, st := range streams {
		at = max(at, st.latest.get())
	}
	return e.reach(clock, at, name, pc, ops)
}

// finishReally is finish that takes no time of the model. It returns how many operations it has executed.
func (e *Engine) finishReally(ctx context.Context, streams []*stream, ends []uint64) (ops int64, err error) {
	for i, st := range streams {
		if ends[i] == 0 {
			continue
		}
		h, err := st.await(ctx, goal{seq: ends[i] - 1, all: true})
		ops += h.ops
		if err != nil {
			return ops, err
		}
		st.exec.settle()
	}
	return ops, nil
}

// finishScopeVirtually is finishScope by the clock of a model.
func (e *Engine) finishScopeVirtually(ctx context.Context, clock *device.VirtualClock, s *device.Scope, streams []*stream, ends []uint64, name string, pc uintptr) error {
	var ops int64
	for i, st := range streams {
		for seq, ok := st.exec.nextOf(s, 0, ends[i]); ok; seq, ok = st.exec.nextOf(s, seq+1, ends[i]) {
			h, err := st.await(ctx, goal{seq: seq})
			if err != nil {
				return err
			}
			ops += h.ops
		}
	}
	return e.reach(clock, s.Noted(), name, pc, ops)
}
