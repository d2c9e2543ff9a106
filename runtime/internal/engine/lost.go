package engine

import (
	"errors"

	"github.com/asyncgen/asyncgen/device"
)

// A device that is lost stays lost. The first operation to meet that is the cause; those on the
// device that have not finished, and all that are enqueued on it later, fail at once with its *OpError, as if they
// depended on it. WaitAll returns that once, and again when operations were enqueued on the device since. Other
// devices go on, and what reads from a lost one fails like any dependent.

// lose notes that the operation at seq has met the loss of st's device, and returns what its outputs will carry. err
// is what it has met if it may be the first one.
func (st *stream) lose(r *record, seq uint64, err error) *OpError {
	st.setLost(r, err)
	e := st.lost.Load()
	r.guess.failed(st, r.scope, []root{{r.order, seq, e, true}}, 0)
	return e
}

// setLost notes that r has met the loss of st's device, if nobody has before.
func (st *stream) setLost(r *record, err error) {
	if st.lost.Load() == nil {
		st.lost.CompareAndSwap(nil, st.opError(r, err))
	}
}

// A lostPeer is the error of an operation that was to write to another device, which is lost; its own is there.
type lostPeer struct {
	st  *stream // of the other device
	err error
}

func (e *lostPeer) Error() string { return e.err.Error() }

// Unwrap returns the loss.
func (e *lostPeer) Unwrap() error { return e.err }

// lose notes, if err says so, that the device is lost: nothing that has not finished by now ever
// will. It reports whether err does.
func (q *queue) lose(err error) bool {
	if !errors.Is(err, device.ErrLost) {
		return false
	}
	q.mu.Lock()
	defer q.unlock()
	q.retire(q.submitted) // what had finished before
	for seq := q.st.done.Load(); seq < q.submitted; seq++ {
		if r := q.st.seq(seq); !r.skipped && !q.st.backend.Done(r.ticket) {
			q.st.setLost(r, err)
			q.retire(q.submitted)
			break
		}
	}
	return true
}
