package engine

import (
	"errors"

	"github.com/asyncgen/asyncgen/device"
)

// A device that is lost stays lost. The first operation that finds it lost is the cause. All
// unfinished operations on the device, and all that are enqueued on it later, fail at once with the
// *OpError of the first one, as if they depended on it. WaitAll returns that error once, and once
// more whenever operations were enqueued on the device since. Other devices go on; an operation
// that reads from a lost device fails like any dependent.

// lose notes that the operation at seq has found st's device lost, and returns the error that its
// outputs will carry. err is the device's error; it may be nil if the loss is noted already.
func (st *stream) lose(r *record, seq uint64, err error) *OpError {
	st.setLost(r, err)
	e := st.lost.Load()
	r.guess.failed(st, r.scope, []root{{r.order, seq, e, true}}, 0)
	return e
}

// setLost notes that r has found st's device lost with err, unless the loss is noted already.
func (st *stream) setLost(r *record, err error) {
	if st.lost.Load() == nil {
		st.lost.CompareAndSwap(nil, st.opError(r, err))
	}
}

// A lostPeer is the error of an operation that was to write to another device and found that one
// lost. The operation's own device is not lost.
type lostPeer struct {
	st  *stream // of the other device
	err error
}

// Error is the text of the other device's error.
func (e *lostPeer) Error() string { return e.err.Error() }

// Unwrap returns the other device's error.
func (e *lostPeer) Unwrap() error { return e.err }

// lose notes that the device is lost, if err says so: operations that have not finished by now never
// will. It reports whether err says so.
func (q *queue) lose(err error) bool {
	if !errors.Is(err, device.ErrLost) {
		return false
	}
	q.mu.Lock()
	defer q.unlock()
	q.retire(q.submitted) // these had finished before the loss
	for seq := q.st.done.Load(); seq < q.submitted; seq++ {
		if r := q.st.seq(seq); !r.skipped && !q.st.backend.Done(r.ticket) {
			q.st.setLost(r, err)
			q.retire(q.submitted)
			break
		}
	}
	return true
}
