package engine

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/internal/trace"
)

// A Mark is a place in a program. It knows when everything that was enqueued there on some devices had finished.
type Mark struct {
	e       *Engine
	streams []*stream
	// ends says for each stream how many operations were enqueued when the mark was made.
	ends []uint64

	mu sync.Mutex // guards the rest
	// left is how many streams have not finished their operations.
	left int
	// at is when the last of the other streams had, and not before the mark was made.
	at time.Duration
}

// Mark marks this place of the program for the given devices, or for all if none are given. It does
// not wait.
func (e *Engine) Mark(devices ...device.Device) *Mark {
	m := &Mark{e: e, at: e.now()}
	if m.streams = e.streamsOf(devices); len(devices) == 0 {
		m.streams = slices.Clone(e.allStreams())
	}
	m.left = len(m.streams)
	for _, st := range m.streams {
		m.ends = append(m.ends, st.enqueued())
	}
	for i, st := range m.streams {
		st.exec.mark(m, m.ends[i])
	}
	return m
}

// Reached reports whether all of the operations have finished, with or without success, as far as
// the engine has noticed. It returns when the last one had, by Engine.Now; if all had finished
// before the mark was made, it returns when the mark was made. It does not wait.
//
// By the clock of a model, Reached reports whether they have finished by now. It then really waits,
// which takes no time by that clock.
func (m *Mark) Reached() (at time.Duration, ok bool) {
	if clock := m.e.virtual.Load(); clock != nil {
		_, err := m.e.finishReally(context.Background(), m.streams, m.ends)
		at = m.time()
		if err != nil || at > clock.Now() {
			clock.Spend(aLook)
			return at, false
		}
		return at, true
	}
	m.e.poll()
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.at, m.left == 0
}

// Wait waits until the mark is Reached, and helps to execute. It returns the error of ctx if that
// ends first; errors of operations are left to WaitAll. For name, see Storage.Wait.
func (m *Mark) Wait(ctx context.Context, name string) error {
	if clock := m.e.virtual.Load(); clock != nil {
		ops, err := m.e.finishReally(ctx, m.streams, m.ends)
		if err != nil {
			return err
		}
		return m.e.reach(clock, m.time(), name, callerPC(), ops, trace.ID{})
	}
	return m.e.finish(ctx, m.streams, m.ends, name, callerPC())
}

// time returns when the last of the streams that have finished their operations so far had.
func (m *Mark) time() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.at
}

// arrive notes that one more stream has finished its operations.
func (m *Mark) arrive(at time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.left--
	m.at = max(m.at, at)
}

// skip notes that the operations of one more stream had all finished when the mark was made. If at is
// not 0, the mark is not reached before that time.
func (m *Mark) skip(at time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.left--
	if at != 0 { // the times of a bubble are negative, so 0 would be later
		m.at = max(m.at, at)
	}
}

// marks are the marks that a stream has not reached. The lock of the executor guards them.
type marks struct {
	next uint64 // the least of ends; 0: there are none
	list []*Mark
	ends []uint64      // for each mark, after how many operations it is reached
	last time.Duration // when a mark was last reached; 0: none was
}

// add adds a mark that is reached after end operations of st; done of them have finished. If all have,
// some may have finished after m took its time, and an earlier mark may have been reached with them. So
// skip gives m a time that is not before that of the last mark.
func (s *marks) add(m *Mark, end, done uint64, st *stream) {
	if end <= done {
		if m.e.virtual.Load() != nil {
			m.skip(st.latest.get())
		} else {
			m.skip(s.last)
		}
		return
	}
	s.list, s.ends = append(s.list, m), append(s.ends, end)
	s.next = slices.Min(s.ends)
}

// reach is called when the first done operations of st have finished.
func (s *marks) reach(done uint64, st *stream) {
	if s.next == 0 || done < s.next {
		return
	}
	at := st.e.now()
	if st.e.virtual.Load() != nil {
		at = st.latest.get()
	}
	s.last = at
	list, ends := s.list, s.ends
	s.list, s.ends, s.next = nil, nil, 0
	for i, m := range list {
		if ends[i] <= done {
			m.arrive(at)
		} else {
			s.add(m, ends[i], done, st)
		}
	}
}

// mark implements executor.
func (f *flow) mark(m *Mark, end uint64) {
	f.lock.lock()
	defer f.unlock()
	f.marked.add(m, end, f.head, f.st)
}

// mark implements executor. It does not ask the device, so the mark may be reached only at the next
// look.
func (q *queue) mark(m *Mark, end uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.marked.add(m, end, q.st.done.Load(), q.st)
}
