package engine

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/asyncgen/asyncgen/device"
)

// A Mark is a place in a program. It knows when everything that was enqueued there on some devices had finished.
type Mark struct {
	e       *Engine
	streams []*stream
	ends    []uint64 // of each, how many operations were enqueued

	mu   sync.Mutex    // guards the rest
	left int           // streams that have not finished theirs
	at   time.Duration // when the last of the others had
}

// Mark marks this place of the program for the given devices, or for all there are. It does not wait.
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

// Reached returns the time, by Engine.Now, at which the last of the operations had finished, with
// or without success, as far as the engine has noticed; that of the mark itself if there were none
// left. It reports false if there still are. It does not wait.
//
// By the clock of a model it does wait, which takes no time there, and reports false if they have not finished by now.
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

// Wait waits until Reached, helping to execute. It returns the error of ctx if that ends first; those of
// operations are left to WaitAll. name says how the program waits.
func (m *Mark) Wait(ctx context.Context, name string) error {
	if clock := m.e.virtual.Load(); clock != nil {
		ops, err := m.e.finishReally(ctx, m.streams, m.ends)
		if err != nil {
			return err
		}
		return m.e.reach(clock, m.time(), name, callerPC(), ops)
	}
	return m.e.finish(ctx, m.streams, m.ends, name, callerPC())
}

// time is when the last of the streams so far had finished its operations.
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

// skip notes that one more stream had really finished its operations when the mark was made, and not before
// at, unless that is 0.
func (m *Mark) skip(at time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.left--
	if at != 0 { // which is later than all times of a bubble
		m.at = max(m.at, at)
	}
}

// marks are the marks that a stream has not reached. The lock of the executor guards them.
type marks struct {
	next uint64 // the least of places; 0: there are none
	list []*Mark
	ends []uint64      // of each, after how many operations it is reached
	last time.Duration // when one was reached last; 0: none was
}

// add adds a mark that is reached after end operations of st, of which done have finished: maybe only since m
// took the time, and then with an earlier mark, which must not be the later one.
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

// reach is called when done operations of st have finished.
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

func (f *flow) mark(m *Mark, end uint64) {
	f.lock.lock()
	defer f.unlock()
	f.marked.add(m, end, f.head, f.st)
}

func (q *queue) mark(m *Mark, end uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.marked.add(m, end, q.st.done.Load(), q.st)
}
