package engine

import (
	"context"
	"errors"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/pool"
)

// cheapCost is nanoseconds of ready work that a worker leaves to those who wait: two who pass a chain of
// small operations to and fro are slower than one.
const cheapCost = 2000

// A worker executes whatever is ready. It is a goroutine as long as there is work now and then.
type worker struct {
	f      *flow
	parker parker
	errand func() // what it was woken for, if not for operations; guarded by the flow's lock
}

// start starts the goroutine of w, unless the flow is closed.
func (w *worker) start() { w.f.st.e.outside(w.startHere) }

func (w *worker) startHere() {
	f := w.f
	f.lock.lock()
	closed := f.closed.Load()
	if !closed {
		f.wg.Add(1)
	}
	f.lock.unlock()
	if closed {
		w.heed()
		return
	}
	go w.work()
}

func (w *worker) work() {
	f := w.f
	defer f.wg.Done()
	w.parker.begin()
	if !w.heed() {
		return
	}
	var c scratch
	var held bool
	var p patience
	for {
		f.lock.lock()
		for f.hasWork() {
			x := f.take()
			f.notify()
			if held = f.step(x, &c, p); held {
				break
			}
		}
		f.notify()
		f.settleLocked()
		f.unlock()
		c[0] = device.Command{}
		if p = forAll; held {
			held = false
			p, _ = f.st.e.relief.await(context.Background(), p)
			continue
		}
		if !f.st.e.onChannels() && pool.Help() {
			continue
		}
		if !w.idle() {
			return
		}
	}
}

// hasWork reports whether there is something for a worker to do.
func (f *flow) hasWork() bool {
	f.lookAhead()
	if f.helpers > 0 && len(f.waiters) == 0 && f.readyCost < cheapCost {
		return false
	}
	return f.startable() != 0
}

// idle waits until somebody wakes this worker. It reports false when the flow is closed, or nobody
// has for long: then another goroutine may be w. A worker does not look for work by itself: it
// would snatch a few nanoseconds' worth away from the core that has just enqueued it and is about
// to wait for it.
func (w *worker) idle() bool {
	f := w.f
	f.parked.Add(1)
	w.parker.announce()
	f.lock.lock()
	has := f.closed.Load() || f.hasWork()
	f.unlock()
	if has && w.parker.withdraw() { // it came before we were counted
		f.parked.Add(-1)
		return !f.closed.Load()
	}
	return w.parker.wait(f.st.e.looks, nil) && w.heed()
}

// heed does what w was woken for. It reports false if the flow is closed.
func (w *worker) heed() bool {
	f := w.f
	f.lock.lock()
	errand := w.errand
	w.errand = nil
	f.lock.unlock()
	if errand != nil {
		errand()
	}
	return !f.closed.Load()
}

// wakeWorker wakes a parked worker, if there is one.
func (f *flow) wakeWorker() bool { return f.send(nil, anyWay...) }

// anyWay are all ways of being parked: those who are awake first, and then in the order in which a
// worker gets from one to the next, or else one could pass by who looks for it.
var anyWay = []uint32{spinning, looking, spinning, inKernel, onChannel, dormant}

// A loan is a flow whose workers help the pool when they are idle.
type loan flow

// Ask implements [pool.Lender].
func (l *loan) Ask(help func(), wake bool) bool {
	if wake {
		return (*flow)(l).send(help, anyWay...)
	}
	return (*flow)(l).send(help, spinning)
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

// send wakes a worker that is parked in one of these ways, the first if possible, to do an errand
// before it looks for operations, if that is not nil. It reports false if there is none.
func (f *flow) send(errand func(), ways ...uint32) bool {
	if f.parked.Load() == 0 {
		return false
	}
	f.lock.lock()
	w, state := f.claimWorker(ways)
	if w != nil {
		w.errand = errand
	}
	f.lock.unlock()
	if w == nil {
		return false
	}
	f.parked.Add(-1)
	w.parker.rouse(state)
	return true
}

// claimWorker claims a worker that is parked in one of these ways, the first if possible.
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

func (f *flow) nudge() {
	parked := f.parked.Load()
	if parked == 0 {
		return
	}
	if int(parked) < len(f.workers) {
		// Somebody is at work. Another one is of use only for what is independent of that.
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

// flush schedules what is new, so that gates open although nobody executes anything, and wakes a
// worker for what is ready.
func (f *flow) flush() {
	f.lock.lock()
	f.schedule(f.st.enqueued(), len(f.st.ring)+1)
	f.unlock()
	f.wakeIfReady()
}

// wakeIfReady wakes a worker for operations that something outside has released.
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

func (f *flow) hurry() {}

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

// helpSome runs operations of its choice for about wakeCost, one at least if there is one.
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

// scratch is what executing an operation needs that must not be on the stack: a Backend keeps no
// command, but the compiler can't know.
type scratch [1]device.Command

// run executes the operation at x, which has been started. The lock is not held. It reports true if
// it has not, for want of memory that a backlog may give back.
func (f *flow) run(x ref, c *scratch, p patience) (held bool) {
	r := f.st.at(x)
	if r.isRelease() {
		r.operands[0].drop()
		r.fail = errReleased
		return false
	}
	if r.fail = f.st.skips(r); r.fail != nil {
		r.skipped = true
		return false
	}
	if f.st.lost.Load() != nil {
		r.skipped = true
		r.fail = f.st.lose(r, f.seqOfRunning(x), nil)
		return false
	}
	err := r.command(f.st, &c[0])
	if err != nil && errors.Is(err, device.ErrOutOfMemory) {
		f.finishReady()
		if held, err = f.st.e.relief.retry(p, func() error { return r.command(f.st, &c[0]) }); held {
			return true
		}
	}
	if err == nil {
		_, err = submit(f.st.backend, c[:])
		c[0].Buf = [device.MaxOperands]*device.Buffer{} // else they would be in use until the next operation
	}
	if err != nil {
		r.fail = f.st.failed(r, f.seqOfRunning(x), err)
	}
	return false
}

// finishReady executes what is ready: that may be all that refers to some memory.
func (f *flow) finishReady() {
	if !f.scarce.CompareAndSwap(false, true) {
		return // somebody does so, perhaps further up on this stack
	}
	defer f.scarce.Store(false)
	for n, some := int64(0), true; some && n < int64(len(f.st.ring)); {
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
// after, not between. It reports true if the operation is as before step and start, as run does.
func (f *flow) step(x ref, c *scratch, p patience) (held bool) {
	f.st.findDonor(f.st.at(x))
	wake := f.readyCost >= wakeCost && f.parked.Load() > 0 && f.startable() != 0
	f.unlock()
	if wake {
		f.wakeWorker()
	}
	held = f.run(x, c, p)
	f.lock.lock()
	if held {
		f.putBack(x)
	} else {
		f.finish(x)
	}
	return held
}

// putBack takes back that the operation at x was started.
func (f *flow) putBack(x ref) {
	r := f.st.at(x)
	r.state = ready
	f.insert(x)
	f.nready++
	f.readyCost += int64(r.cost)
	f.moved = true
	f.rouse = f.st.e.stalled.n.Load() > 0
}
