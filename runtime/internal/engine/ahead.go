package engine

import "github.com/asyncgen/asyncgen/device"

// Among the ready operations the first in program order starts first. An operation that needs
// nothing, such as one that draws random numbers, could run as soon as it is enqueued, and its result
// would take memory long before the program uses it. So operations after the first unfinished one
// may take only as much memory as minAhead or a part of what is live. Likewise a device with a queue
// gets only as many operations as keep it busy, if they take more than that (queue.pace).
//
// What a waiter needs has no such bound, since the program is blocked. But once it has taken much of the free memory,
// the waiter executes what comes before, too: there may be results that only operations it has passed over still use.

const (
	minAhead  = 1 << 20 // bytes: a tenth of a millisecond of work that does little with them
	aheadPart = 16      // of what is live
)

// startable returns the first of the ready operations, or 0 if there is none or it may not start yet.
//
// Operations behind head wait if together they have taken too much. The one at head may always
// start, so this never blocks anything for good; and if memory is scarce, any may, as it may be
// what gives some back.
func (f *flow) startable() ref {
	if f.first == 0 || f.early <= minAhead || f.seqOf(f.first) == f.head || f.scarce.Load() || !f.st.isMuch(f.early) {
		return f.first
	}
	return 0
}

// isMuch reports whether so many bytes are more than operations may take ahead of their turn. A
// device that does not say how much is live has minAhead alone as its bound.
func (st *stream) isMuch(bytes int64) bool {
	if bytes <= minAhead || st.backend == nil {
		return false
	}
	m := device.MemoryOf(st.backend)
	return m == nil || bytes > m.Live()/aheadPart
}

// isCrowded reports whether what operations have taken ahead of their turn is much of what is still free.
func (f *flow) isCrowded() bool {
	if f.early <= minAhead || f.st.backend == nil {
		return false
	}
	m := device.MemoryOf(f.st.backend)
	return m != nil && f.early > (m.Limit()-m.Live())/freePart
}

// taken returns how many more bytes are in use once r has run; for a Release it is negative.
func (r *record) taken() int64 {
	if r.isRelease() {
		return -int64(r.n)
	}
	return r.bytes
}

// insert puts the operation at x, which is ready, into the list of ready ones, which is in program order.
func (f *flow) insert(x ref) {
	r, seq := f.st.at(x), f.seqOf(x)
	r.prev = f.last // a new operation is usually the last; one that others have released is among the first
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
