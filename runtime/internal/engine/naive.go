package engine

import (
	"context"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/internal/trace"
)

// runNow executes op at once, for mode Naive.
//
// e.naive is held until the outcome is stored: one operation runs at a time, and who comes next
// finds the outcome of the one before. Nothing is left behind in the stream but the count in
// instant.
func (st *stream) runNow(op *Op, writes uint8, pc uintptr) {
	e := st.e
	e.naive.lock()
	defer e.naive.unlock()
	if e.closed.Load() {
		panic(usedAfterClose)
	}
	seq := st.instant // not tail: the executor would run what it finds in the ring
	st.instant++
	r := new(record)
	r.fill(op, writes, pc)
	r.order, r.guess = e.order(st), e.guess()
	var ev trace.Event
	traced := st.slips.Load() != nil
	if traced {
		r.describe(&ev, st, seq)
		ev.Begin = e.now()
	}
	clock := e.virtual.Load()
	if clock != nil {
		st.stamp(clock, r)
		r.stamp.Issued = r.arrivesOnHost()
	}
	if r.fail = st.skips(r); r.fail == nil && st.lost.Load() != nil {
		r.fail, r.skipped = st.lose(r, seq, nil), true
		e.skippedNow.Add(1)
	} else if r.fail == nil {
		var err error
		e.outside(func() { err = st.complete(r) })
		if err != nil {
			r.fail = st.failed(r, seq, err)
		}
		e.ranNow.Add(1)
	} else {
		r.skipped = true
		e.skippedNow.Add(1)
		if r.isOwed(st) {
			e.outside(func() { st.owe(r) })
		}
	}
	for i, s := range r.operands {
		if s != nil && r.writes>>i&1 != 0 && s.err.Load() != r.fail {
			s.err.Store(r.fail)
		}
	}
	if clock != nil {
		clock.Reach(max(r.stamp.Finished(), r.stamp.Issued))
	}
	if traced {
		ev.Row, ev.End, ev.Skipped = uint64(self()), e.now(), r.skipped
		e.traced(&ev)
	}
}

// complete runs r from beginning to end. If the device has a queue, complete waits for it, also if the
// program would not.
func (st *stream) complete(r *record) error {
	var c [1]device.Command
	if err := r.command(st, &c[0]); err != nil {
		if r.isOwed(st) {
			st.owe(r)
		}
		return err
	}
	if st.e.virtual.Load() != nil {
		c[0].Stamp = &r.stamp
	}
	t, err := submit(st.backend, c[:])
	if err != nil || st.backend.Caps().Synchronous {
		return err
	}
	if err := await(context.Background(), st.backend, t); err != nil {
		return err
	}
	return st.backend.Failure(t)
}

// owe hands a message over that can't run, see message.go.
func (st *stream) owe(r *record) {
	var c [1]device.Command
	r.owe(&c[0])
	if t, err := submit(st.backend, c[:]); err == nil {
		await(context.Background(), st.backend, t) // the operation has failed already
	}
}
