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
	m := &Mark{e: e, at: now()}
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

// Reached returns the time, since the program started, at which the last of the operations had finished, with or without
// success, as far as the engine has noticed; that of the mark itself if there were none left. It reports false if there still are. It does not wait.
func (m *Mark) Reached() (at time.Duration, ok bool) {
	m.e.poll()
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.at, m.left == 0
}

// Wait waits until Reached, helping to execute. It returns the error of ctx if that ends first; those of
// operations are left to WaitAll. name says how the program waits.
func (m *Mark) Wait(ctx context.Context, name string) error {
	return m.e.finish(ctx, m.streams, m.ends, name, callerPC())
}

// arrive notes that one more stream has finished its operations now.
func (m *Mark) arrive() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.left--
	m.at = now()
}

// skip notes that one more stream had finished its operations when the mark was made.
func (m *Mark) skip() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.left--
}

// marks are the marks that a stream has not reached. The lock of the executor guards them.
type marks struct {
	next uint64 // the least of places; 0: there are none
	list []*Mark
	ends []uint64 // of each, after how many operations it is reached
}

// add adds a mark that is reached after end operations, of which done have finished.
func (s *marks) add(m *Mark, end, done uint64) {
	if end <= done {
		m.skip()
		return
	}
	s.list, s.ends = append(s.list, m), append(s.ends, end)
	s.next = slices.Min(s.ends)
}

// reach is called when done operations have finished.
func (s *marks) reach(done uint64) {
	if s.next == 0 || done < s.next {
		return
	}
	list, ends := s.list, s.ends
	s.list, s.ends, s.next = nil, nil, 0
	for i, m := range list {
		if ends[i] <= done {
			m.arrive()
		} else {
			s.add(m, ends[i], done)
		}
	}
}

func (f *flow) mark(m *Mark, end uint64) {
	f.lock.lock()
	defer f.unlock()
	f.marked.add(m, end, f.head)
}

func (q *queue) mark(m *Mark, end uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.marked.add(m, end, q.st.done.Load())
}
