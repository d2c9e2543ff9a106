package asyncrt

// Iterate runs f, which is an iteration of a loop that runs past its end, see
// BreakIf, and may panic there: because a tensor grows until something does not
// fit any more, or an index until nothing is there.
//
//	for i := range xs {
//		if end, ok := later.Iterate(func() {
//			loss := step(xs[i], table.Row(i))
//			lossAt := later.Read(loss)
//			if _, ok := later.BreakIf(func() bool { return lossAt.Item() < tol }, end{loss}); ok {
//				return
//			}
//			…
//		}); ok {
//			return end.loss
//		}
//	}
//
// If f panics, what is queued runs first, as in Close. If that takes an exit, the program
// does not come to where f has panicked, and Iterate returns the state of that exit, and true. Otherwise
// it does, and the panic goes on. An exit that BreakIf or Flush reports in f, which then has to
// return, is reported by Iterate as well. What f changes before it panics must be given
// back by the way out, as what BreakIf lets the loop change.
//
//asyncgen:api call 0 once
//go:noinline
func (l *Later[S]) Iterate(f func()) (state S, exited bool) {
	l.iterating = true
	returned := false
	defer func() {
		l.iterating, l.told = false, nil
		if returned {
			return
		}
		if l.runAll(); l.exits.taken != nil {
			_ = recover() // of what the program never did
			state, exited = l.report()
		}
	}()
	f()
	returned = true
	if l.told != nil {
		return l.told.state, true
	}
	return state, false
}
