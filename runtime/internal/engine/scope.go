package engine

import (
	"context"
	"time"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/internal/trace"
)

// The engine keeps no list of scopes (device.Scope): each record says to which scope it belongs. The
// executor asks whether the scope has ended just before it begins an operation, so cancelling costs
// nothing by itself. A wait for a scope looks through the records. Operations that did not run
// because their scope had ended count as skipped; WaitAll does not return them as failures.

// drainScope is drain for the operations that belong to s.
func (e *Engine) drainScope(ctx context.Context, s *device.Scope, name string, pc uintptr) error {
	streams := e.allStreams()
	ends := make([]uint64, len(streams))
	for i, st := range streams {
		ends[i] = st.enqueued()
	}
	if err := e.finishScope(ctx, s, streams, ends, name, pc); err != nil {
		return err
	}
	return joinRoots(streams, s)
}

// finishScope is finish for the operations that belong to s.
func (e *Engine) finishScope(ctx context.Context, s *device.Scope, streams []*stream, ends []uint64, name string, pc uintptr) (err error) {
	if clock := e.virtual.Load(); clock != nil {
		return e.finishScopeVirtually(ctx, clock, s, streams, ends, name, pc)
	}
	var start time.Duration
	var h help
	for i, st := range streams {
		seq, ok := st.exec.nextOf(s, 0, ends[i])
		for ok && err == nil {
			if start == 0 {
				if err := e.allow(name, pc); err != nil {
					return err
				}
				start = now()
			}
			var there help
			there, err = st.await(ctx, goal{seq: seq})
			h.add(there)
			seq, ok = st.exec.nextOf(s, seq+1, ends[i])
		}
	}
	if start != 0 {
		e.countWait(name, pc, since(start), h, trace.ID{})
	}
	return err
}

// isOf reports whether r is an operation that belongs to s.
func (r *record) isOf(s *device.Scope) bool {
	return r.scope != nil && !r.isRelease() && r.scope.Within(s)
}

// nextOf implements executor. It schedules first, as states of operations say what is finished.
func (f *flow) nextOf(s *device.Scope, from, end uint64) (seq uint64, ok bool) {
	f.lock.lock()
	defer f.unlock()
	f.schedule(end, f.st.capacity()+1)
	for seq = max(from, f.head); seq < end; seq++ {
		if r := f.st.seq(seq); r.state != finished && r.isOf(s) {
			return seq, true
		}
	}
	return 0, false
}

// nextOf implements executor. Queues finish in order, so what is not retired is not finished.
func (q *queue) nextOf(s *device.Scope, from, end uint64) (seq uint64, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for seq = max(from, q.st.done.Load()); seq < end; seq++ {
		if q.st.seq(seq).isOf(s) {
			return seq, true
		}
	}
	return 0, false
}
