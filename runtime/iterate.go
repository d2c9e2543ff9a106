package asyncrt

// Iterate runs f, one iteration of a loop that runs past its end (see BreakIf). The iteration may panic there, for
// example because a tensor has grown too large, or an index is out of range.
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
// If f panics, the queued entries run first, as in Close. If they take an exit, the original program
// would not have come to the panic: Iterate returns the state of that exit, and true. Otherwise the
// panic goes on. If BreakIf or Flush reports an exit in f, f has to return, and Iterate reports the
// exit as well. What f changes before it panics must be something that an exit restores, see BreakIf.
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
			_ = recover() // the original program would not have come to this panic
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
