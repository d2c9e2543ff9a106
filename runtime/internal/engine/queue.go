package engine

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asyncgen/asyncgen/device"
)

// A queue feeds a device that has a queue of its own. Operations are submitted in program order, in
// batches, by a goroutine or by a waiter, and retired in the same order when the device reports them
// done. A failure becomes known when the operation retires; by then dependents may have run, and
// their results are discarded when they retire:
//
//	done ...... submitted ...... tail
//
// Whoever holds mu owns the records before submitted; whoever holds submitting owns those from
// submitted on. So operations can retire while a Submit waits for room in the device. An operation
// that touches another stream holds up those behind it until the other stream is ready for it. A
// copy to this device from another queue also holds up retiring (link.go).
//
// An example. The device is busy with 3 to 5; 6 and 7 wait to be handed over:
//
//	place    3        4          5        6        7
//	         done                         submitted         tail = 8
//	what     command  a Release  command  command  command
//	ticket   11       11         12       none yet
//
// 4 is no command, so it has the ticket of the command before it, and retires right after that one.
type queue struct {
	st        *stream
	mostAhead int64 // see pace

	submitting turn // held while commands are submitted; taken before mu. It guards what follows
	batch      []device.Command
	// look has counted the operations before this place.
	looked uint64
	issued time.Duration // when the last command was issued, by the clock of a model

	mu        sync.Mutex // guards everything up to the next blank line
	submitted uint64     // a change needs submitting as well
	// ticket is that of the last command submitted. Operations that are no commands get it, too.
	ticket device.Ticket
	// known says that commands up to this one are known to be done: asking the device costs more.
	known   device.Ticket
	outbox  []linkNotice // what to tell other streams after unlocking
	rouse   bool         // wake stalled producers after unlocking
	ahead   int64        // bytes that operations submitted and not retired take, see record.taken
	marked  marks
	watched watched
	counted counts

	heldAt atomic.Pointer[link] // the link that holds up submitting; nil: none
	// held says that the next operation waits for memory, see relief. submitSome clears it before
	// it tries again.
	held   atomic.Bool
	feeder bell // wakes feed
	reaper bell // wakes reap
	// starting is held while feed or reap is started, and while closed is set. So no goroutine is
	// started once close waits for them.
	starting sync.Mutex
	closed   atomic.Bool
	workers  sync.WaitGroup
}

// submitBatch is how many commands a device gets at once, at most.
const submitBatch = 64

// newQueue makes the queue of st, with no goroutines: in mode Shuffle it never has any.
func newQueue(st *stream) *queue {
	st.spares = new(spares)
	q := &queue{st: st, batch: make([]device.Command, 0, submitBatch), mostAhead: aheadBytes}
	if most := st.backend.Caps().Ahead; most > 0 {
		q.mostAhead = most
	}
	q.submitting.init(st.e.onChannels())
	return q
}

// start arranges that the goroutines feed and reap are started when their bells are rung.
func (q *queue) start() {
	q.feeder.parker.rest(func() { q.st.e.outside(func() { q.startOne(q.feed) }) })
	q.reaper.parker.rest(func() { q.st.e.outside(func() { q.startOne(q.reap) }) })
}

// startOne starts a goroutine, unless q is closed.
func (q *queue) startOne(work func()) {
	q.starting.Lock()
	defer q.starting.Unlock()
	if !q.closed.Load() {
		q.workers.Add(1)
		go work()
	}
}

// unlock releases mu, and then tells other streams and wakes stalled producers.
func (q *queue) unlock() {
	box, rouse := q.outbox, q.rouse
	q.outbox, q.rouse = nil, false
	q.mu.Unlock()
	for _, n := range box {
		n.deliver()
	}
	if rouse {
		q.st.e.stalled.wake()
	}
}

// submitLocked hands operations to the device until there are no more, or the next one is held up.
// It reports whether it handed over any. It waits while the device's queue is full. q.submitting is
// held.
func (q *queue) submitLocked(p patience) bool {
	some := false
	for q.pace(); q.submitSome(submitBatch, p); q.pace() {
		some = true
	}
	return some
}

// pace waits until the device has finished some operations, if those handed over take much memory:
// operations that run much later should not take memory yet. The device is left with enough to stay
// busy.
func (q *queue) pace() {
	q.mu.Lock()
	left := q.enough()
	q.mu.Unlock()
	if left > 0 {
		q.finishThrough(q.submitted - left)
	}
}

// Operations handed over and not done take at most mostAhead together, which is aheadBytes unless the device says less;
// but fewOps of them may be handed over however much they take. A batch ends when it takes half of mostAhead.
const (
	aheadBytes = 64 << 20
	fewOps     = 4
)

// enough returns 0 if the device may get more operations now. Otherwise it returns how many of the
// operations handed over may be unfinished when it gets more. q.mu is held.
func (q *queue) enough() (left uint64) {
	n := q.submitted - q.st.done.Load()
	switch {
	case n <= fewOps || !q.st.isMuch(q.ahead):
		return 0
	case q.ahead > q.mostAhead:
		for bytes := int64(0); left < n && left < submitBatch && (left < fewOps/2 || bytes < q.mostAhead/2); left++ {
			bytes += q.st.seq(q.submitted - 1 - left).taken()
		}
		return left
	case n >= 2*submitBatch:
		return submitBatch
	}
	return 0
}

// submitSome hands over one batch, of at most the given number of operations. It reports false if
// there are none, or the next one is held up. q.submitting is held.
func (q *queue) submitSome(most int, p patience) bool {
	q.held.Store(false)
	first, enqueued := q.submitted, q.st.enqueued()
	next, end := first, min(enqueued, first+uint64(most))
	// Donors are found by Releases, which come behind the operation, so look is some way ahead.
	q.look(min(enqueued, end+lookBeyond))
	q.batch = q.batch[:0]
	taken := int64(0)
	virtual := q.st.e.virtual.Load() != nil
	for ; next < end && taken < q.mostAhead/2; next++ {
		r := q.st.seq(next)
		if l := r.link; l != nil {
			// heldAt before isHeld: granted, which may come in between, then finds what it has to
			// ring for.
			q.heldAt.Store(l)
			if r.isHeld() {
				break
			}
			q.heldAt.Store(nil)
		}
		if r.isGate {
			r.skipped = true
			r.countUses(q.st, -1)
			continue
		}
		if r.isRelease() {
			r.operands[0].heir = 0 // another operation will soon use this record
			q.st.spares.put(r.operands[0], next)
			taken += r.taken()
			r.skipped = true
			continue
		}
		var c device.Command
		if virtual {
			q.issued = max(q.issued, r.arrives(q.st))
			r.stamp.Issued, c.Stamp = q.issued, &r.stamp
		}
		q.st.findDonor(r)
		if r.refused = r.cancelled(); r.refused != nil {
			r.withdrawn = true
		} else if lost := q.st.lost.Load(); lost != nil {
			r.refused = lost
		} else if r.refused = r.command(q.st, &c); r.refused != nil && errors.Is(r.refused, device.ErrOutOfMemory) {
			if next > first {
				break // it is tried again when those before it have been handed over
			}
			// Nothing is in the batch, so all that may give memory back is under way.
			q.finishSubmitted()
			held := false
			if held, r.refused = q.st.e.relief.retry(p, func() error { return r.command(q.st, &c) }); held {
				r.refused = nil
				q.held.Store(true)
				break
			}
		}
		r.skipped = r.refused != nil || r.link != nil && r.foreignSpoiled(q.st)
		if r.skipped && r.isOwed(q.st) {
			r.owe(&c)
			r.skipped = false
		}
		if !r.skipped {
			q.batch = append(q.batch, c)
		}
		taken += r.taken()
		r.countUses(q.st, -1)
	}
	if next == first {
		return false
	}
	last := q.handOver(first, next)
	clear(q.batch)
	if s := q.st.slips.Load(); s != nil && !virtual {
		q.watch(*s, first, next)
	}
	for seq := first; seq < next; seq++ {
		if r := q.st.seq(seq); r.link != nil && !r.isGate {
			r.link.handedOver()
		}
	}
	q.mu.Lock()
	q.submitted, q.ticket = next, last
	q.ahead += taken
	q.mu.Unlock()
	if q.st.e.stalled.n.Load() > 0 {
		q.reaper.ring()
	}
	return true
}

// look prepares findDonor: for the operations before end that it has not seen yet, it counts the uses
// of each storage, and notes the Releases. submitSome takes the counts back when it hands an
// operation over. q.submitting is held.
func (q *queue) look(end uint64) {
	for ; q.looked < end; q.looked++ {
		r := q.st.seq(q.looked)
		if r.isRelease() {
			r.operands[0].heir = q.st.ref(q.looked)
			continue
		}
		r.countUses(q.st, 1)
	}
}

// countUses adds n to s.readers of each storage s of st, once for each time that r uses s.
func (r *record) countUses(st *stream, n int) {
	for _, s := range r.operands {
		if s != nil && s.st == st {
			s.readers += uint32(n)
		}
	}
	for _, s := range r.more {
		s.readers += uint32(n)
	}
}

// finishSubmitted waits until everything submitted has retired: these operations may be all that
// still refers to some memory. q.submitting is held.
func (q *queue) finishSubmitted() {
	if q.submitted > 0 {
		q.finishThrough(q.submitted - 1)
	}
}

// finishThrough waits until the operation at seq, which was submitted, has retired. It submits
// nothing. It returns false if the device fails to wait; the waits for results will meet that error
// too, and return it.
func (q *queue) finishThrough(seq uint64) (ok bool) {
	for {
		q.mu.Lock()
		q.retire(q.submitted)
		done := q.st.done.Load() > seq
		var ticket device.Ticket
		if !done {
			ticket = q.st.seq(seq).ticket
		}
		gate := q.openGate()
		q.unlock()
		switch {
		case done:
			return true
		case gate != nil && q.isOver(ticket):
			if !gate.op.queue().finishThrough(gate.opSeq.Load() - 1) {
				return false
			}
			continue
		}
		if err := await(context.Background(), q.st.backend, ticket); err != nil && !q.lose(err) {
			return false
		}
	}
}

// queue is st's executor, which feeds a device with a queue.
func (st *stream) queue() *queue {
	if s, ok := st.exec.(*shuffledQueue); ok {
		return s.queue
	}
	return st.exec.(*queue)
}

// openGate returns the link of the next record to retire, if that is a gate whose operation has not
// retired, or else nil. Nothing behind such a gate can retire. q.mu is held.
func (q *queue) openGate() *link {
	if done := q.st.done.Load(); done < q.submitted {
		if r := q.st.seq(done); r.isOpen() {
			return r.link
		}
	}
	return nil
}

// isOver reports whether the command with ticket t is done, or the device is lost.
func (q *queue) isOver(t device.Ticket) bool { return q.st.lost.Load() != nil || q.st.backend.Done(t) }

// handOver submits the batch, which was made of the operations from first to end. It gives each
// operation its ticket, and returns the last one.
func (q *queue) handOver(first, end uint64) device.Ticket {
	if len(q.batch) > 0 {
		last, err := submit(q.st.backend, q.batch)
		if err != nil {
			return q.handOverSingly(first, end)
		}
		t := last - device.Ticket(len(q.batch))
		for seq := first; seq < end; seq++ {
			r := q.st.seq(seq)
			if !r.skipped {
				t++
			}
			r.ticket = t
		}
		return last
	}
	for seq := first; seq < end; seq++ {
		q.st.seq(seq).ticket = q.ticket
	}
	return q.ticket
}

// handOverSingly is handOver for a batch that the device refused as a whole. It submits one command
// at a time, to find out which ones the device refuses.
func (q *queue) handOverSingly(first, end uint64) device.Ticket {
	last := q.ticket
	cmds := q.batch
	for seq := first; seq < end; seq++ {
		r := q.st.seq(seq)
		if !r.skipped {
			t, err := submit(q.st.backend, cmds[:1])
			cmds = cmds[1:]
			if err == nil {
				last = t
			}
			r.refused = err
		}
		r.ticket = last
	}
	return last
}

// foreignSpoiled reports whether an input on another stream is spoiled. Such inputs are ready. (An
// input on the same stream is judged when r retires, after the operations before it.)
func (r *record) foreignSpoiled(st *stream) bool {
	for i, s := range r.operands {
		if s != nil && s.st != st && r.writes>>i&1 == 0 && s.err.Load() != nil {
			return true
		}
	}
	return false
}

// retire publishes the outcome of the operations before end that are done, in order. It reports
// whether there were any. q.mu is held.
func (q *queue) retire(end uint64) bool {
	first := q.st.done.Load()
	if first == end {
		return false
	}
	if q.known < q.ticket && q.st.backend.Done(q.ticket) {
		q.known = q.ticket
	}
	seq := first
	var freed int64
	virtual := q.st.e.virtual.Load() != nil
retiring:
	for ; seq < end; seq++ {
		r := q.st.seq(seq)
		if r.isOpen() {
			break
		}
		if r.ticket > q.known {
			lost := q.st.lost.Load()
			switch {
			case q.st.backend.Done(r.ticket):
				q.known = r.ticket
			case lost != nil: // a lost device may never report it done
				r.refused = lost
			default:
				break retiring
			}
		}
		if virtual {
			q.clock(r)
		}
		q.conclude(r, seq)
		if s := q.st.slips.Load(); s != nil && virtual {
			q.tell(*s, r, seq)
		}
		if virtual {
			q.marked.reach(seq+1, q.st)
		}
		freed += r.bytes
		q.ahead -= r.taken()
		r.clear()
	}
	if seq == first {
		return false
	}
	q.st.done.Store(seq)
	q.marked.reach(seq, q.st)
	if freed != 0 {
		q.st.e.inFlight.Add(-freed)
		q.st.retired.Add(freed)
	}
	q.rouse = true
	return true
}

// clock notes when r finished by the clock of a model.
func (q *queue) clock(r *record) {
	if r.stamp.Finished() == 0 && !r.isRelease() { // it never ran
		r.stamp.Finish(r.arrivesOnHost())
	}
	q.st.latest.note(r.stamp.Finished())
}

// conclude finds out how the operation at seq has ended, and publishes that.
func (q *queue) conclude(r *record, seq uint64) {
	r.fail = r.spoiled()
	switch {
	case r.isGate:
		r.fail = r.link.fail
	case r.isRelease():
		q.st.spares.giveBack(int64(r.n), seq)
		r.fail = errReleased
	case r.fail != nil:
		q.counted.skipped++
	case r.withdrawn:
		q.counted.skipped++
		r.fail = q.st.opError(r, r.refused)
	case r.refused != nil && errors.Is(r.refused, device.ErrLost):
		q.counted.skipped++
		r.fail = q.st.failed(r, seq, r.refused)
	case r.refused != nil:
		q.counted.run(r)
		r.fail = q.st.failed(r, seq, r.refused)
	default:
		q.counted.run(r)
		if err := q.st.backend.Failure(r.ticket); err != nil {
			r.fail = q.st.failed(r, seq, err)
		}
	}
	q.st.publish(r, seq)
	if r.link != nil && !r.isGate {
		r.link.at = r.stamp.Finished()
		r.link.fail = r.fail
		r.link.ended.Store(true)
		q.outbox = append(q.outbox, linkNotice{l: r.link})
	}
}

// await implements executor. A Submit may wait for room in the device, and can't be interrupted. So a
// waiter whose context can end submits only when the device is idle; otherwise feed submits.
func (q *queue) await(ctx context.Context, g goal) (h help, err error) {
	canStop := ctx.Done() != nil
	own := forOthers
	if ctx == untilShort {
		own = forAll
	}
	p := own
	var gate elsewhere
	for tries := 0; ; {
		q.mu.Lock()
		q.retire(q.submitted)
		done := q.st.done.Load()
		reached, arrived, isBusy := done > g.seq, q.submitted > g.seq, done < q.submitted
		if g.link != nil {
			reached = g.link.handed.Load()
		}
		ahead := q.openGate()
		var ticket device.Ticket // of the operation, or of one before it
		if arrived && !reached {
			ticket = q.st.seq(g.seq).ticket
		} else if isBusy {
			ticket = q.st.seq(done).ticket
		}
		q.unlock()
		if reached {
			return h, nil
		}
		if err := ctx.Err(); err != nil {
			return h, err
		}
		if ctx == untilShort && q.st.e.IsShort() {
			return h, errShort
		}
		if !arrived && q.submitFor(canStop, isBusy, p) {
			p, tries = own, 0
			continue
		}
		isSubmitted := g.link == nil && (arrived || canStop && isBusy) // ticket is worth waiting for
		if isSubmitted && ahead != nil && q.isOver(ticket) {
			err = q.awaitThere(ctx, ahead.op, goal{seq: ahead.opSeq.Load() - 1}, &gate, &h)
		} else if isSubmitted {
			h.look()
			err = await(ctx, q.st.backend, ticket)
			h.rest()
			if err != nil && q.lose(err) {
				continue
			}
			if err != nil && ctx.Err() == nil {
				if err = q.notDone(g.seq, err); err == nil {
					continue
				}
				return h, err
			}
		} else if l := q.heldAt.Load(); l != nil {
			at, to := l.gate, goal{seq: l.gateSeq, link: l}
			if at == q.st { // the gate is here
				seq := l.opSeq.Load()
				if seq == 0 {
					q.st.e.doze(tries) // the producer is about to publish the place of the operation
					tries++
					continue
				}
				at, to = l.op, goal{seq: seq - 1, link: l}
			}
			err = q.awaitThere(ctx, at, to, &gate, &h)
		} else if q.held.Load() && ctx != untilShort {
			p, err = q.st.e.relief.await(ctx, p)
		} else {
			q.st.e.doze(tries) // the producer is about to publish the operation, or feed to submit it
			tries++
		}
		if err != nil {
			return h, err
		}
	}
}

// awaitThere waits for a goal on another stream, and adds the help there to h.
func (q *queue) awaitThere(ctx context.Context, at *stream, g goal, last *elsewhere, h *help) error {
	last.comesTo(at, g)
	there, err := at.exec.await(ctx, g)
	h.add(there)
	return err
}

// notDone returns the error of a wait for the operation at seq, after the device's wait has failed
// with err. It returns nil if the operation has retired meanwhile, because others have waited for
// it. Otherwise the operation's outcome stays open: the next wait may find it done.
func (q *queue) notDone(seq uint64, err error) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.st.done.Load() > seq {
		return nil // another operation may use its record by now
	}
	return q.st.opError(q.st.seq(seq), err)
}

// submitFor submits operations for a waiter, or has feed do so, see await. It reports whether it has
// submitted any itself.
func (q *queue) submitFor(canStop, isBusy bool, p patience) bool {
	switch {
	case !canStop:
		q.submitting.lock()
		defer q.submitting.unlock()
		return q.submitLocked(p)
	case !isBusy && q.submitting.tryLock():
		defer q.submitting.unlock()
		return q.submitSome(submitBatch, p)
	}
	q.feeder.ring()
	return false
}

// helpSome implements executor. It submits unless somebody else does, and retires what is done.
// Nobody but the device executes anything, so it counts no operations.
func (q *queue) helpSome(p patience) (ops int64, some bool) {
	if q.submitting.tryLock() {
		some = q.submitLocked(p)
		q.submitting.unlock()
	}
	q.mu.Lock()
	some = q.retire(q.submitted) || some
	q.unlock()
	return 0, some
}

// settle implements executor. At a gate whose operation has not retired, it settles the other
// stream first: only then can it know what has finished here.
func (q *queue) settle() {
	for {
		q.mu.Lock()
		q.retire(q.submitted)
		gate := q.openGate()
		q.unlock()
		if gate == nil {
			return
		}
		gate.op.exec.settle() // ends: the operation of each such gate is earlier than the last one
		if !gate.ended.Load() {
			return
		}
	}
}

// poll implements executor. It is settle for a caller that must not wait: if somebody else has mu,
// that one retires.
func (q *queue) poll() {
	for q.mu.TryLock() {
		q.retire(q.submitted)
		gate := q.openGate()
		q.unlock()
		if gate == nil {
			return
		}
		gate.op.exec.poll()
		if !gate.ended.Load() {
			return
		}
	}
}

func (q *queue) counts() counts {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.counted
}

// nudge has feed submit what has gathered.
func (q *queue) nudge() { q.feeder.ring() }

// flush does the same: feed submits everything, however little it is.
func (q *queue) flush() { q.feeder.ring() }

// hurry has reap retire, as long as a producer is stalled.
func (q *queue) hurry() { q.reaper.ring() }

// granted implements executor: if l holds up submitting, feed goes on.
func (q *queue) granted(l *link) {
	if q.heldAt.Load() == l {
		q.feeder.ring()
	}
}

// feed is the goroutine that submits.
func (q *queue) feed() {
	defer q.workers.Done()
	q.feeder.begin()
	for p := forAll; !q.closed.Load(); {
		q.submitting.lock()
		q.submitLocked(p)
		q.submitting.unlock()
		if p = forAll; q.held.Load() {
			p, _ = q.st.e.relief.await(context.Background(), p)
			continue
		}
		if !q.feeder.wait() {
			return
		}
	}
}

// reap is the goroutine that, while a producer is stalled, retires operations as soon as they are
// done. At other times waiters retire them, or the timer does: waiting for a device may keep a
// processor busy.
func (q *queue) reap() {
	defer q.workers.Done()
	q.reaper.begin()
	for !q.closed.Load() {
		q.mu.Lock()
		q.retire(q.submitted)
		var oldest device.Ticket
		if done := q.st.done.Load(); done < q.submitted && q.openGate() == nil { // at a gate, endGate rings
			oldest = q.st.seq(done).ticket
		}
		q.unlock()
		if oldest != 0 && q.st.e.stalled.n.Load() > 0 {
			if err := await(context.Background(), q.st.backend, oldest); err == nil || q.lose(err) {
				continue
			}
		}
		if !q.reaper.wait() {
			return
		}
	}
}

// close stops feed and reap and waits for both. No operation is left, so neither waits for the
// device.
func (q *queue) close() {
	q.starting.Lock()
	q.closed.Store(true)
	q.starting.Unlock()
	q.feeder.ring()
	q.reaper.ring()
	q.workers.Wait()
}

// A bell wakes one goroutine. If it is rung while nobody waits, the next wait returns at once.
type bell struct {
	rung   atomic.Bool
	parker parker
}

// ring wakes the goroutine. Of several rings before it looks, only the first costs more than a
// load.
func (b *bell) ring() {
	if !b.rung.Load() && b.rung.CompareAndSwap(false, true) {
		b.parker.wake()
	}
}

// begin is called first by a goroutine that was started because the bell was rung.
func (b *bell) begin() {
	b.parker.begin()
	b.rung.Store(false)
}

// wait returns true when the bell is rung. It returns false if the goroutine has slept for so long
// that it must end: the next ring starts another one.
func (b *bell) wait() bool {
	b.parker.announce()
	if !b.rung.Load() || !b.parker.withdraw() {
		if !b.parker.wait(0, nil) {
			return false
		}
	}
	b.rung.Store(false)
	return true
}
