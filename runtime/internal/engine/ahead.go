package engine

import "github.com/asyncgen/asyncgen/device"

// Operations run in program order as far as there is a choice: an operation that needs nothing, such as one that
// draws a batch of random numbers, could run as soon as it is enqueued, and its result would take memory until the
// program's turn comes. A worker without anything else to do may run ahead of the first operation that
// has not finished, but not with more memory than minAhead or a part of what is live; nor does a device with a queue
// get more of them than keeps it busy, if they take so much.

const (
	minAhead  = 1 << 20 // bytes: a tenth of a millisecond of work that does little with them
	aheadPart = 16      // of what is live
)

// startable returns the first of the ready operations that may start now, 0 if there is none.
func (f *flow) startable() ref {
	if f.first == 0 || f.early <= minAhead || f.seqOf(f.first) == f.head || f.scarce.Load() || !f.st.isMuch(f.early) {
		return f.first
	}
	return 0
}

// isMuch reports whether so many bytes are more than may be taken ahead of time.
func (st *stream) isMuch(bytes int64) bool {
	if bytes <= minAhead || st.backend == nil {
		return false
	}
	m := device.MemoryOf(st.backend)
	return m == nil || bytes > m.Live()/aheadPart
}

// taken is by how many bytes more is in use when r has run.
func (r *record) taken() int64 {
	if r.isRelease() {
		return -int64(r.n)
	}
	return r.bytes
}

// insert puts the operation at x, which is ready, among the ready ones, which are in program order.
func (f *flow) insert(x ref) {
	r, seq := f.st.at(x), f.seqOf(x)
	r.prev = f.last // new ones are usually the last, and what others have released among the first
	if f.last != 0 && f.seqOf(f.last) > seq {
		next := f.first
		for f.seqOf(next) < seq {
			next = f.st.at(next).next
		}
		r.prev = f.st.at(next).prev
	}
	if r.prev != 0 {
		r.next = f.st.at(r.prev).next
		f.st.at(r.prev).next = x
	} else {
		r.next = f.first
		f.first = x
	}
	if r.next != 0 {
		f.st.at(r.next).prev = x
	} else {
		f.last = x
	}
}
