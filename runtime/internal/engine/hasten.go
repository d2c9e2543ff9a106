package engine

import "github.com/asyncgen/asyncgen/device"

// A wait is cheap if the waiter can do the work itself, at once. Then it gains nothing by going on
// without the result, and it saves the cost of handing the work to another processor.

const (
	moment       = 50_000 // nanoseconds of work: less is done before another processor could help
	opCost       = 500    // nanoseconds that each operation costs beyond Op.Cost
	momentLength = 64     // operations in flight: with more, closure itself would take a moment
)

// Hasten executes the operations that s needs if the caller can do so itself, and if, by their
// Op.Cost, that takes less than a moment (50 µs). It reports whether s is Ready. It may wait some
// microseconds for operations that others have begun, and for nothing else.
//
// It does nothing if s is not on a device of kind CPU, or if a needed operation is linked to another
// device.
func (s *Storage) Hasten() bool {
	if s.st.e.Capturing() != nil {
		return false // see Ready
	}
	if s.Ready() {
		return true
	}
	if s.st.dev.Kind() != device.KindCPU {
		return false
	}
	e := s.st.e
	start := now()
	ops, ready := s.st.exec.hasten(s.last.Load() - 1)
	if ops > 0 {
		e.totals.helped.Add(ops)
		e.totals.helpTime.Add(int64(now() - start))
	}
	return ready
}

// hasten implements executor.
func (f *flow) hasten(seq uint64) (ops int64, done bool) {
	f.lock.lock()
	defer f.unlock()
	// No wait is counted, and no policy is asked: this takes no longer than other calls.
	w := f.newWaiter(goal{seq: seq})
	f.helpers++
	f.scheduleThrough(seq)
	// First shorten what is in flight, since closure looks at all of it.
	ops = f.catchUp(w)
	if f.st.enqueued()-f.head <= momentLength {
		f.closure(w)
		if f.takesMoment(w.need) {
			more, is := f.helpOnce(w)
			ops, done = ops+more, is
		}
	}
	f.helpers--
	f.freeWaiter(w)
	f.settleLocked()
	f.notify() // another waiter may wait for what this one did last
	return ops, done
}

// catchUp executes the oldest operations, needed or not, for at most a moment while more than
// momentLength are in flight. The workers have had time to execute them, and did not.
func (f *flow) catchUp(w *waiter) (ops int64) {
	for cost := int64(0); f.st.enqueued()-f.head > momentLength; ops++ {
		x := f.startable()
		if x == 0 {
			break
		}
		if cost += int64(f.st.at(x).cost) + opCost; cost > moment {
			break
		}
		f.start(x)
		f.notify()
		if f.step(x, &w.scratch, forAll) {
			break
		}
	}
	return ops
}

// takesMoment reports whether these operations, which are scheduled, take at most a moment and have
// no links.
func (f *flow) takesMoment(need []uint64) bool {
	cost := int64(0)
	for _, seq := range need {
		r := f.st.seq(seq)
		cost += int64(r.cost) + opCost
		if cost > moment || r.link != nil {
			return false
		}
	}
	return true
}

// helpOnce executes what w needs until its goal is reached, or until others have been executing all
// that is left for a while.
func (f *flow) helpOnce(w *waiter) (ops int64, done bool) {
	for looks := 0; !f.reached(w); {
		if x := f.next(w); x != 0 {
			f.notify()
			if f.step(x, &w.scratch, forAll) {
				return ops, false
			}
			ops++
			looks = 0
			continue
		}
		if looks >= f.st.e.looks {
			return ops, false
		}
		looks++
		f.unlock()
		pause(pauses)
		f.lock.lock()
	}
	return ops, true
}

// hasten implements executor. It does nothing: nobody but its device can execute a queue's operations.
func (q *queue) hasten(uint64) (int64, bool) { return 0, false }

// hasten hastens or does nothing, as the seed decides.
func (f *shuffledFlow) hasten(seq uint64) (int64, bool) {
	f.s.turn.lock()
	defer f.s.turn.unlock()
	if f.s.rng.IntN(2) == 0 {
		return 0, false
	}
	return f.flow.hasten(seq)
}
