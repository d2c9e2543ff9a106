package asyncrt

import (
	"reflect"
	"slices"

	"github.com/asyncgen/asyncgen/device/wire"
	"github.com/asyncgen/asyncgen/runtime/internal/engine"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// exits is what a Later knows about the exits of its loop.
type exits[S any] struct {
	tests  int                 // how many are in the backlog
	passed int                 // how many were false, since the loop began
	bytes  int64               // kept for the tests in the backlog
	newest []*tensor.Tensor    // the tensors kept for the newest test
	ahead  *engine.Speculation // while there are tests in the backlog, or an exit is taken
	taken  *test[S]            // the exit that was taken and not reported yet
	guess  *test[S]            // the newest test, if it has a guess that is not complete
	pace   pace                // says how far it pays to run ahead

	untried int             // how many more tests hasten skips
	vainly  int             // how many it skipped after it last failed; 0 if it succeeded
	vain    []*engine.Guess // discarded guesses, oldest first
}

// A test is one call of BreakIf: it says whether the loop ends there.
type test[S any] struct {
	cond  func() bool
	state S
	cells tensor.State
	held  []held        // see Undo
	bytes int64         // of what is kept for it and not for the test before
	guess *engine.Guess // what was enqueued after it, up to the next test; nil if there was nothing to guess
}

// BreakIf ends the loop if cond is true, with the given state. It queues cond as Do queues functions,
// with the values that were Read before. Until cond has run, the loop goes on and guesses that it is
// false:
//
//	converged := later.Read(r.Dot(r))
//	if end, ok := later.BreakIf(func() bool { return converged.Item() < tol }, result{x, k}); ok {
//		return end.x, end.k
//	}
//
// If cond turns out to be true, the exit is taken. Entries queued after it never run, and operations
// that the goroutine has enqueued since are cancelled if they have not begun; their failures are not
// among those of WaitAll. The next BreakIf reports the exit, or Flush if there is none: it returns the
// state given with that cond, and true. The program then has to leave the loop, and can use the Later
// for another one. Parameters with their gradients, buffers, generators and learning rates hold again
// what they held at the BreakIf whose exit was taken, whatever has changed them on this goroutine. So
// do the given cells, which are for types of other packages that don't say when they change
// ([tensor.Changing]). Of several exits, the first in the program's order is taken, however early the
// values of others arrive.
//
// So a loop may run past its end. What it does there must have no effect but to change cells. It must
// not panic, unless [Later.Iterate] runs it, and no tensor made there can be used after the loop:
// computing with it, or reading it, may give an error.
//
// In a process with a [wire.Job] the loop runs ahead of no test, since a message can't be taken back. Else BreakIf
// bounds how many tests it runs ahead of, and waits at the bound:
//
//   - half as many as have been false before, so that at most a third of the work is in vain;
//   - as many as the window and [Later.Ahead] say;
//   - so many that cells and the tensors of states keep no more bytes than [SetLimit] allows to be
//     in flight;
//   - as many as the device needs to be busy all the time, by how long iterations have taken.
//
// A value that a CPU can compute in a moment is computed at once and tested, see
// [tensor.Tensor.Soon]. If values of a CPU take longer, the loop runs ahead of one test to find out
// whether that is of use; where it isn't, of none.
//
// From BreakIf to Flush or Close the loop has to stay on one goroutine. If that ends before, WaitAll
// returns a [*LeftError] with the line of BreakIf. Operations of other goroutines are not touched.
// BreakIf panics in a function of the backlog.
//
//asyncgen:api call 0 later
//go:noinline
func (l *Later[S]) BreakIf(cond func() bool, state S, cells ...tensor.Cell) (S, bool) {
	if l.inside {
		panic("asyncrt: BreakIf in a function of the backlog")
	}
	if l.exits.taken != nil {
		return l.report()
	}
	x := &l.exits
	if g := x.guess; g != nil { // the guess is complete: another test follows
		g.bytes += g.guess.SavedBytes()
		x.bytes += g.guess.SavedBytes()
		x.guess = nil
	}
	isAlone := x.tests == 0
	l.arrive()
	if x.taken != nil {
		return l.report()
	}
	if l.pending() == 0 && areReady(l.reads) {
		if isAlone {
			x.pace.atOnce(engine.Default().Now())
		}
		if len(l.places) == 0 {
			return l.testNow(cond, state)
		}
	}
	t := &test[S]{cond: cond, state: state}
	x.tests++
	l.queue(entry[S]{test: t})
	l.runReady()
	if x.tests == 0 {
		return l.report()
	}
	t.cells = tensor.Snapshot(cells...)
	l.keep(t)
	l.runTests()
	if l.pending() > l.window {
		l.runMiddle()
	}
	l.makeRoom()
	if x.tests > 0 { // at least t
		if x.ahead == nil {
			x.ahead = engine.Default().Speculate()
		}
		t.guess = x.ahead.Guess()
		x.guess = t
	}
	x.pace.begin(engine.Default().Now(), x.tests)
	return l.report()
}

// testNow is BreakIf if nothing is queued, the values are there, and there are no places for Undo. Then there is
// nothing to run ahead of.
func (l *Later[S]) testNow(cond func() bool, state S) (S, bool) {
	reads := l.reads
	l.reads, l.inside = nil, true
	returned := false
	defer func() {
		l.inside = false
		if !returned {
			l.abandon(entry[S]{}, nil)
		}
	}()
	isExit := cond()
	returned = true
	l.recycle(reads)
	l.reads = nil
	if !isExit {
		l.exits.passed++
		var none S
		return none, false
	}
	l.exits.taken = &test[S]{state: state}
	return l.report()
}

// arrive runs the entries whose values have arrived. If the loop must not run ahead, arrive first waits for the
// values of the backlog and of the next test, as the original program would.
func (l *Later[S]) arrive() {
	if l.most() > 0 {
		l.hasten()
	} else {
		l.await(pendingValues(l.backlog[l.head:], l.reads))
	}
	l.runReady()
}

// hasten computes what the backlog and the next test need, if this goroutine can do so in a moment: then there is
// nothing to gain from running ahead. After a failure it skips some tests before it tries again.
func (l *Later[S]) hasten() {
	x := &l.exits
	if x.untried > 0 {
		x.untried--
		return
	}
	for _, e := range l.backlog[l.head:] {
		if !areSoon(e.reads) {
			x.miss()
			return
		}
	}
	if !areSoon(l.reads) {
		x.miss()
		return
	}
	x.vainly = 0
}

// miss notes that hasten has failed.
func (x *exits[S]) miss() {
	x.vainly = min(2*x.vainly+1, 15)
	x.untried = x.vainly
}

func areSoon(reads []Read) bool {
	for _, r := range reads {
		if !r.t.Soon() {
			return false
		}
	}
	return true
}

// runTests waits until there are not too many tests in the backlog, and they don't keep too much memory. If there
// are many, one wait is for several of them. It does not wait for all tests if some may stay.
func (l *Later[S]) runTests() {
	x := &l.exits
	for x.tests > l.most() || x.isHeavy() {
		isAlone := x.tests == 1
		run := x.tests - l.most() + l.most()/4
		if x.isHeavy() {
			run = max(run, (x.tests+1)/2)
		}
		keep := l.pending()
		for i := l.head; run > 0; i++ {
			if l.backlog[i].test != nil {
				run--
			}
			keep--
		}
		l.runUntil(keep)
		if isAlone {
			x.pace.waited(engine.Default().Now())
		}
		l.runReady()
	}
}

// most returns how many tests the loop may run ahead of, apart from the memory that they keep.
func (l *Later[S]) most() int {
	if l.unlike || wire.InUse() {
		return 0
	}
	bound := l.window
	if l.ahead > 0 {
		bound = min(bound, l.ahead)
	}
	return min(bound, l.exits.passed/2, l.exits.pace.most())
}

// isHeavy reports whether tests keep more bytes than [SetLimit] allows.
func (x *exits[S]) isHeavy() bool {
	limit := engine.Default().Limit()
	return x.tests > 0 && limit > 0 && x.bytes > limit
}

// keep counts the bytes that are kept for t and not for the test before.
func (l *Later[S]) keep(t *test[S]) {
	tensors := t.cells.Tensors()
	eachTensor(reflect.ValueOf(&t.state).Elem(), func(x *tensor.Tensor) { tensors = append(tensors, x) })
	for _, h := range t.held {
		h.each(func(x *tensor.Tensor) { tensors = append(tensors, x) })
	}
	for i, x := range tensors {
		if x == nil {
			continue
		}
		if i >= len(l.exits.newest) || l.exits.newest[i] == nil || !l.exits.newest[i].SharesMemory(x) {
			t.bytes += int64(x.Size()) * int64(x.DType().Size())
		}
	}
	l.exits.bytes += t.bytes
	l.exits.newest = tensors
}

// pass notes that t was false.
func (l *Later[S]) pass(t *test[S]) {
	l.exits.passed++
	l.exits.tests--
	l.exits.bytes -= t.bytes
	if t == l.exits.guess {
		l.exits.guess = nil
	}
	if t.guess != nil {
		t.guess.Keep()
	}
	for _, x := range t.cells.Tensors() {
		if x != nil {
			tensor.Dead(x)
		}
	}
	if l.exits.tests == 0 {
		l.settle()
	}
}

// take takes the exit of t. It drops the entries in rest, which were queued after t. What the program enqueues
// before the exit is reported is discarded, too.
func (l *Later[S]) take(t *test[S], rest []entry[S]) {
	l.discard(t, rest)
	l.exits.tests, l.exits.bytes, l.exits.taken = 0, 0, t
}

// abandon is called when the function of e panics or ends the goroutine. The original program would have stopped
// there: all guesses are discarded, and cells and places hold again what they held when e was queued. rest are the
// entries after e.
func (l *Later[S]) abandon(e entry[S], rest []entry[S]) {
	l.discard(e.test, rest)
	l.settle()
	l.restore()
	l.exits = exits[S]{}
	if e.test != nil {
		e.test.cells.Restore()
	}
	restorePlaces(e.held)
}

// discard discards the guesses after t and after the tests in rest.
func (l *Later[S]) discard(t *test[S], rest []entry[S]) {
	l.kept = 0
	l.discardAfter(t)
	for _, e := range rest {
		l.discardAfter(e.test)
	}
}

// discardAfter discards the guess after t, if t is a test that has one.
func (l *Later[S]) discardAfter(t *test[S]) {
	if t != nil && t.guess != nil {
		t.guess.Discard()
		l.exits.vain = append(l.exits.vain, t.guess)
	}
}

// restore brings back what the program changed during discarded guesses, the newest guess first.
func (l *Later[S]) restore() {
	for _, g := range slices.Backward(l.exits.vain) {
		g.Restore()
	}
}

// settle ends the speculation: no test is undecided any more.
func (l *Later[S]) settle() {
	if l.exits.ahead != nil {
		l.exits.ahead.End()
		l.exits.ahead = nil
	}
	l.exits.newest = nil
}

// report returns the state of the exit that was taken, if one was. Cells and places hold again what they held at
// its BreakIf.
func (l *Later[S]) report() (state S, exited bool) {
	t := l.exits.taken
	if t == nil {
		return state, false
	}
	l.settle()
	l.restore()
	l.exits, l.reads = exits[S]{}, nil
	if l.iterating {
		l.told = t
	}
	l.compared, l.unlike, l.asked = false, false, false
	t.cells.Restore()
	restorePlaces(t.held)
	return t.state, true
}

// end is report at the end of a loop. It forgets what was learnt about the loop, because the next one may be
// another.
func (l *Later[S]) end() (state S, exited bool) {
	state, exited = l.report()
	if l.inside {
		return state, exited
	}
	l.exits = exits[S]{}
	if !l.asked || exited {
		l.compared, l.unlike = false, false
	}
	l.asked = false
	l.made = engine.Default().Written(l.made)
	return state, exited
}

// eachTensor calls f with the tensors in v: in its fields and elements, but not behind pointers.
func eachTensor(v reflect.Value, f func(*tensor.Tensor)) {
	switch v.Kind() {
	case reflect.Pointer:
		if v.Type() == reflect.TypeFor[*tensor.Tensor]() && !v.IsNil() {
			f((*tensor.Tensor)(v.UnsafePointer()))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			eachTensor(v.Field(i), f)
		}
	case reflect.Array, reflect.Slice:
		for i := range v.Len() {
			eachTensor(v.Index(i), f)
		}
	}
}
