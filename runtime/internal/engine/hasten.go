package engine

import "github.com/asyncgen/asyncgen/device"

// A wait is cheap if the one who waits can do the work itself, at once: then there is nothing to gain from
// going on without the result, and what it costs to hand work to another processor is lost.

const (
	moment       = 50_000 // nanoseconds of work: less is done sooner than another processor can be of use
	opCost       = 500    // of it, for an operation beside what that says
	momentLength = 64     // operations in flight: to find out which of more are needed would take a moment itself
)

// Hasten executes what s needs if the caller can do that itself and if, going by what operations
// say of their cost, it takes a moment only. It reports whether s is Ready. If it is not, nothing
// has been waited for but, for some microseconds, what others had begun.
//
// It does nothing if s is not on a CPU, which other devices only look like, or if something needed
// is to come from another device.
func (s *Storage) Hasten() bool {
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

// hasten is the executor's.
func (f *flow) hasten(seq uint64) (ops int64, done bool) {
	f.lock.lock()
	defer f.unlock()
	w := f.newWaiter(goal{seq: seq})
	f.helpers++
	f.scheduleThrough(seq)
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
	f.notify() // what it did last may be what another one waits for
	return ops, done
}

// catchUp executes the oldest operations, needed or not, if many are in flight and these take a
// moment only: others have had the time to do so, and did not.
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

// takesMoment reports whether these operations, which are scheduled, can be done here and now.
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

// helpOnce executes what w needs, until its goal is reached or what is left has been in other hands for a while.
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

// hasten is the executor's: a queue's device works when it does.
func (q *queue) hasten(uint64) (int64, bool) { return 0, false }

// hasten does so or not, as the seed says.
func (f *shuffledFlow) hasten(seq uint64) (int64, bool) {
	f.s.turn.lock()
	defer f.s.turn.unlock()
	if f.s.rng.IntN(2) == 0 {
		return 0, false
	}
	return f.flow.hasten(seq)
}
