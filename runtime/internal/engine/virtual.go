package engine

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/internal/bubble"
	"github.com/asyncgen/asyncgen/internal/trace"
)

// Devices may have the clock of a model, which moves only when the program does something
// (device.VirtualClock). Only the engine knows when the program enqueues, and when and for what it
// waits. So
//
//   - push advances the clock by the cost of enqueueing, and stamps each record with the time; a queue
//     passes the stamp to the device, delayed until the inputs from other streams are there (arrives);
//   - an operation that has finished leaves its time for the users of what it wrote (times), also
//     across links;
//   - a wait moves the clock to the time of what it waits for (reach), even if that has really
//     finished: by the clock it may not have finished yet.
//
// An operation on a CPU takes no time: it finishes when its inputs have. With one goroutine in the
// program, all these times depend on the program alone. Without such a device all of this costs a
// load here and there.

// aLook is how far the clock moves when the program looks at a value that is not ready. Without it, a
// loop that looks until the value is ready would never end.
const aLook = 100 * time.Nanosecond

// A timing is when something had finished by the clock of a model.
type timing struct{ at atomic.Int64 }

// note moves the time to t, if t is later.
func (x *timing) note(t time.Duration) {
	for {
		at := x.at.Load()
		if int64(t) <= at || x.at.CompareAndSwap(at, int64(t)) {
			return
		}
	}
}

// get returns the latest time noted, or 0.
func (x *timing) get() time.Duration { return time.Duration(x.at.Load()) }

// now returns the time by the clock of a model, if a device has one, or else by the system's clock.
func (e *Engine) now() time.Duration {
	if clock := e.virtual.Load(); clock != nil {
		return clock.Now()
	}
	if e.onChannels() {
		return now()
	}
	return bubble.Now().Sub(epoch)
}

// Now returns the time since some fixed moment, by the clock of a model, if a device has one, or else by
// the system's clock.
func (e *Engine) Now() time.Duration { return e.now() }

// reach moves the clock to t, for a call with the given name that waits until then. If the clock has
// not come to t yet, that counts as a wait, with ops operations executed; if waiting is forbidden,
// reach returns a *SyncError instead. id is the operation that the call waits for, if it is one.
func (e *Engine) reach(clock *device.VirtualClock, t time.Duration, name string, pc uintptr, ops int64, id trace.ID) error {
	if clock.Now() >= t {
		return nil
	}
	if err := e.allow(name, pc); err != nil {
		return err
	}
	took := clock.Reach(t)
	end := clock.Now()
	e.countWait(name, pc, span{end - took, end}, help{ops: ops, idle: took}, id)
	return nil
}

// stamp stamps r with the time at which the program enqueues it. By the clock, the operation that used
// the same record before has to finish first; if it has not, that counts as a stall. The lock in tail
// is held.
func (st *stream) stamp(clock *device.VirtualClock, r *record) {
	if took := clock.Reach(r.stamp.Finished()); took > 0 {
		end := clock.Now()
		st.e.countStall(r.kernel.Name, r.pc, span{end - took, end}, help{idle: took})
	}
	r.stamp.Finish(0)
	if r.isGate || r.isRelease() {
		r.stamp.Issued = clock.Now()
		return
	}
	r.stamp.Issued = clock.Spend(st.host)
}

// arrives returns when r was enqueued, or when the last of its inputs on other streams than st was
// ready, if that is later.
func (r *record) arrives(st *stream) time.Duration {
	at := r.stamp.Issued
	for i, s := range r.operands {
		if s != nil && s.st != st && r.writes>>i&1 == 0 {
			at = max(at, s.at())
		}
	}
	return at
}

// arrivesOnHost is arrives for a synchronous device, where operands on the same stream count as well.
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

// pass notes the time at which r, the finished operation at seq, has finished: for the storages that
// it wrote on st, and for its scope.
func (st *stream) pass(r *record, seq uint64) {
	if r.writes != 0 {
		st.times.set(seq, r.stamp.Finished())
	}
	if r.scope != nil {
		r.scope.Note(r.stamp.Finished())
	}
}

// at returns when the newest finished writer of s had finished, by the clock of a model.
func (s *Storage) at() time.Duration {
	if fin := s.fin.Load(); fin > 0 {
		return s.st.times.get(fin - 1)
	}
	return 0 // s came from the host, or the program has waited for it already, see runNow
}

// times are the finish times of all operations of a stream. They are not in Storage, which must not
// grow: results fit a size class of the Go allocator.
type times struct {
	mu     sync.RWMutex
	chunks []*[timesChunk]time.Duration // nil where nothing was set
}

const timesChunk = 1024

// set notes that the operation at seq has finished at t.
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

// get returns the time that was set, or 0.
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
	if err := e.reach(clock, s.at(), name, pc, h.ops, s.lastWriter()); err != nil {
		return err
	}
	return s.Err()
}

// finish really waits for s, which takes no time by the clock of the model.
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
	var last trace.ID
	for _, s := range ss {
		h, err := s.finish(ctx)
		if err != nil {
			return err
		}
		ops += h.ops
		if s.at() > at {
			at, last = s.at(), s.lastWriter()
		}
	}
	if len(ss) > 0 {
		if err := ss[0].st.e.reach(clock, at, name, pc, ops, last); err != nil {
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
	return e.reach(clock, at, name, pc, ops, trace.ID{})
}

// finishReally is finish without moving the clock of the model. It returns how many operations it has
// executed.
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
	return e.reach(clock, s.Noted(), name, pc, ops, trace.ID{})
}
