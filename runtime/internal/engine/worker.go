package engine

import (
	"context"
	rtrace "runtime/trace"
	"sync/atomic"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/pool"
)

// cheapCost is how many nanoseconds of ready work workers leave to a goroutine that helps while it
// waits: two goroutines that pass a chain of small operations to and fro are slower than one.
const cheapCost = 2000

// A worker executes whatever is ready, and helps with loops of the pool. Its goroutine ends after a
// while without work, and is started again when it is woken.
type worker struct {
	f      *flow
	parker parker
	// busy is set while w executes operations or helps the pool.
	busy atomic.Bool
}

// start starts the goroutine of w, unless the flow is closed.
func (w *worker) start() { w.f.st.e.outside(w.startHere) }

// startHere is start, outside of any bubble. It looks at closed under the lock, and counts the
// goroutine before letting go: close sets closed under the same lock and then waits for all that
// are counted.
func (w *worker) startHere() {
	f := w.f
	f.lock.lock()
	closed := f.closed.Load()
	if !closed {
		f.wg.Add(1)
	}
	f.lock.unlock()
	if !closed {
		go w.work()
	}
}

// work is the goroutine of w: it helps the pool, executes while there is something ready, and
// parks. One critical section covers the end of one operation and the start of the next.
func (w *worker) work() {
	f := w.f
	defer f.wg.Done()
	w.parker.begin()
	c := scratch{isWorker: true}
	var held bool
	var p patience
	for !f.closed.Load() {
		if w.helpsPool() && pool.Wanted() {
			w.busy.Store(true)
			for pool.Help() {
			}
			w.busy.Store(false)
		}
		f.lock.lock()
		for x := f.takeWork(); x != 0; x = f.takeWork() {
			if !w.busy.Load() {
				w.busy.Store(true)
			}
			f.notify()
			if held = f.step(x, &c, p); held {
				break
			}
		}
		f.notify()
		f.settleLocked()
		f.unlock()
		// A worker may sleep for long, and must not keep buffers alive.
		c.cmd[0] = device.Command{}
		if p = forAll; held {
			held = false
			p, _ = f.st.e.relief.await(context.Background(), p)
			continue
		}
		if w.busy.Load() {
			w.busy.Store(false)
		}
		if !w.idle() {
			return
		}
	}
}

// helpsPool reports whether w helps with loops of the pool: not where goroutines of a bubble count on channels.
func (w *worker) helpsPool() bool { return !w.f.st.e.onChannels() }

// hasWork reports whether there is something for a worker to do. If a goroutine helps while it
// waits, cheap work is left to it, see cheapCost.
func (f *flow) hasWork() bool {
	f.lookAhead()
	if f.helpers > 0 && len(f.waiters) == 0 && f.readyCost < cheapCost {
		return false
	}
	return f.startable() != 0
}

// takeWork starts an operation for a worker, or returns 0. There may be none to take although there was work: how much
// memory is live, on which that depends, changes at any time.
func (f *flow) takeWork() ref {
	if !f.hasWork() {
		return 0
	}
	return f.take()
}

// idle waits until somebody wakes w. It returns false when the flow is closed, or nobody has woken w
// for long; then the goroutine must end, since another one may run w by now. A worker does not look
// for work by itself: it would take small work away from the core that has just enqueued it and is
// about to wait for it.
func (w *worker) idle() bool {
	f := w.f
	f.parked.Add(1)
	w.parker.announce()
	f.lock.lock()
	// Looking comes after announce: work that is enqueued after this look finds w announced, and
	// wakes it.
	has := f.closed.Load() || f.hasWork() || w.helpsPool() && pool.Wanted()
	f.unlock()
	if has && w.parker.withdraw() { // the work came before w was counted as parked
		f.parked.Add(-1)
		return !f.closed.Load()
	}
	return w.parker.wait(f.st.e.looks, nil)
}

// wakeWorker wakes a parked worker, if there is one.
func (f *flow) wakeWorker() bool { return f.send(anyWay...) }

// anyWay lists the states of a parked worker in the order in which to try them. Workers that spin
// come first, because they wake fastest. Then come all states, spinning again, in the order in which
// a worker passes through them: in another order the search could miss a worker that moves on.
var anyWay = []uint32{spinning, looking, spinning, inKernel, onChannel, dormant}

// A loan is a flow whose workers help the pool when they are idle.
type loan flow

// Wake implements [pool.Lender].
func (l *loan) Wake(asleep bool) bool {
	if asleep {
		return (*flow)(l).wakeWorker()
	}
	return (*flow)(l).send(spinning)
}

// Awake implements [pool.Lender].
func (l *loan) Awake() bool {
	for _, w := range l.workers {
		if w.parker.state.Load() == spinning {
			return true
		}
	}
	return false
}

// Coming implements [pool.Lender].
func (l *loan) Coming() (n int) {
	for _, w := range l.workers {
		if s := w.parker.state.Load(); (s == awake || s == woken) && !w.busy.Load() {
			n++
		}
	}
	return n
}

// send wakes a worker that is parked in one of the given states; earlier states are preferred. It
// reports false if no worker is parked like that.
func (f *flow) send(ways ...uint32) bool {
	if f.parked.Load() == 0 {
		return false
	}
	f.lock.lock()
	// A claim marks the worker as woken, so two callers never claim the same one. It is woken after
	// the lock: that takes microseconds.
	w, state := f.claimWorker(ways)
	f.lock.unlock()
	if w == nil {
		return false
	}
	f.parked.Add(-1)
	w.parker.rouse(state)
	return true
}

// claimWorker claims a worker that is parked in one of the given states and returns it with its
// state; nil: there is none. Earlier states are preferred.
func (f *flow) claimWorker(ways []uint32) (*worker, uint32) {
	for _, way := range ways {
		for _, w := range f.workers {
			if w.parker.claim(way) {
				return w, way
			}
		}
	}
	return nil, awake
}

// nudge wakes a worker if the others are not enough. If all are parked, it wakes one without a look
// at the operations: scheduling is left to it.
func (f *flow) nudge() {
	parked := f.parked.Load()
	if parked == 0 {
		return
	}
	if int(parked) < len(f.workers) {
		// Somebody is at work. Another worker only helps with operations that are ready beside that.
		f.lock.lock()
		f.lookAhead()
		worth := f.readyCost >= wakeCost && f.startable() != 0
		f.unlock()
		if !worth {
			return
		}
	}
	f.wakeWorker()
}

// flush schedules all operations, so that gates open even if nobody executes anything, and wakes a
// worker if an operation is ready.
func (f *flow) flush() {
	f.lock.lock()
	f.schedule(f.st.enqueued(), f.st.capacity()+1)
	f.unlock()
	f.wakeIfReady()
}

// wakeIfReady wakes a worker if an operation is ready, as may be after an event on another stream.
func (f *flow) wakeIfReady() {
	if f.parked.Load() == 0 {
		return
	}
	f.lock.lock()
	ready := f.startable() != 0
	f.unlock()
	if ready {
		f.wakeWorker()
	}
}

// hurry does nothing: what finishes in a flow is published at once while a producer is stalled, see
// finish.
func (f *flow) hurry() {}

// close wakes all workers, which find closed set, and waits until their goroutines have ended.
func (f *flow) close() {
	if f.endLoan != nil {
		f.endLoan()
	}
	f.lock.lock()
	f.closed.Store(true) // no goroutine is started any more
	f.lock.unlock()
	for _, w := range f.workers {
		w.parker.wake()
	}
	f.wg.Wait()
}

// helpSome runs operations that are ready for about wakeCost, and at least one if there is one.
func (f *flow) helpSome(p patience) (ops int64, some bool) {
	f.lock.lock()
	w := f.newWaiter(goal{})
	for cost := int64(0); cost < wakeCost; ops++ {
		x := f.take()
		if x == 0 {
			break
		}
		cost += int64(f.st.at(x).cost)
		f.notify()
		if f.step(x, &w.scratch, p) {
			break
		}
	}
	f.notify()
	f.settleLocked()
	f.freeWaiter(w)
	f.unlock()
	return ops, ops > 0
}

// scratch is the command of the operation being executed. It is part of a longer-lived object, or it
// would be allocated for each operation: a Backend keeps no command, but the compiler can't know.
type scratch struct {
	cmd      [1]device.Command
	isWorker bool   // it is part of a worker
	row      uint64 // in a trace; 0: not known yet
}

// run executes the operation at x, which has been started. The lock is not held. It returns true if
// it has not executed it, because memory is short and a backlog may give some back.
//
// run leaves the outcome in r.fail, and finish publishes it. Meanwhile others may add themselves to
// the lists of r, and change nothing else in it.
func (f *flow) run(x ref, c *scratch, p patience) (held bool) {
	r := f.st.at(x)
	if r.isRelease() {
		r.operands[0].drop()
		r.fail = errReleased
		return false
	}
	if r.run == nil { // in a run of a Plan, each operation may be skipped by itself
		r.fail = f.st.skips(r)
	}
	if r.fail != nil {
		r.skipped = true
		return false
	}
	if f.st.lost.Load() != nil {
		r.skipped = true
		r.fail = f.st.lose(r, f.seqOfRunning(x), nil)
		return false
	}
	if r.run != nil {
		return f.runPlan(x, p)
	}
	held, err := f.withMemory(p, func() error { return r.command(f.st, &c.cmd[0]) })
	if held {
		return true
	}
	if err == nil {
		_, err = submit(f.st.backend, c.cmd[:])
		c.cmd[0].Buf = [device.MaxOperands]*device.Buffer{} // keeps no buffer alive until the next operation
	}
	if err != nil {
		r.fail = f.st.failed(r, f.seqOfRunning(x), err)
	}
	return false
}

// finishReady executes what is ready: these operations may be all that still refers to some memory.
func (f *flow) finishReady() {
	if !f.scarce.CompareAndSwap(false, true) {
		return // somebody else does so, perhaps a caller further up on this stack
	}
	defer f.scarce.Store(false)
	for n, some := int64(0), true; some && n < int64(f.st.capacity()); {
		var ops int64
		ops, some = f.helpSome(forAll)
		n += ops
	}
}

// seqOfRunning is seqOf without the lock.
func (f *flow) seqOfRunning(x ref) uint64 {
	f.lock.lock()
	defer f.unlock()
	return f.seqOf(x)
}

// step runs and finishes the operation at x, which has been started. The lock is held before and
// after, but not in between. It returns true if run did: then the operation is ready again, as
// before start.
func (f *flow) step(x ref, c *scratch, p patience) (held bool) {
	if r := f.st.at(x); r.run != nil {
		f.schedule(f.scheduled+uint64(len(r.run.sources)), f.st.capacity()+1) // as many Releases may follow
		f.st.findDonors(r.run)
	} else {
		f.st.findDonor(r)
	}
	wake := f.readyCost >= wakeCost && f.parked.Load() > 0 && f.startable() != 0
	f.unlock()
	if wake {
		f.wakeWorker()
	}
	s := f.st.slips.Load()
	s.begin(f.st, x, c)
	f.executing.Add(1)
	region := rtrace.StartRegion(context.Background(), f.st.at(x).kernel.Name) // for go tool trace
	held = f.run(x, c, p)
	region.End()
	f.executing.Add(-1)
	f.lock.lock()
	s.end(f.st, x, c, held)
	if held {
		f.putBack(x)
	} else {
		f.finish(x)
	}
	return held
}

// putBack undoes start: the operation at x is ready again.
func (f *flow) putBack(x ref) {
	r := f.st.at(x)
	r.state = ready
	f.insert(x)
	f.nready++
	f.readyCost += int64(r.cost)
	f.moved = true
	f.rouse = f.st.e.stalled.n.Load() > 0
}
