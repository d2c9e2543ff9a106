package asyncrt

import (
	"fmt"
	"slices"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/runtime/internal/engine"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// Later runs the host side of a loop a few iterations behind its device side:
// in program order, on the same goroutine, never at the same time. It is a
// backlog of entries, each a function and the values that it needs.
//
//	later := asyncrt.NewLater[struct{}](64)
//	defer later.Close()
//	for _, b := range batches {
//		loss := model.Loss(b.X, b.Y)
//		opt.Minimize(loss)
//		lossAt := later.Read(loss)
//		later.Do(func() { fmt.Println(lossAt.Item()) })
//	}
//	later.Flush()
//
// An entry can run when the entries before it have run and the values that were read for it have
// arrived. It runs at the next Do or Poll after that, or in Flush and Close, which wait. A loop that
// calls Do in some iterations only should call Poll in all; otherwise arrived values are kept until
// the next Do. When more entries than the window are queued, Do waits once, until the entry in the
// middle can run.
//
// Entries may keep tensors, and so memory, that the loop would have dropped. The Later assumes the worst: waiting
// entries keep every result that anyone has enqueued since the last entry that has run was queued, unless
// [Later.KeepsReads] says otherwise. Do and BreakIf
// wait for all but the newest entry, in halves, if these results take more than 32 MiB plus an eighth of the memory
// in use on the device, or more than [SetLimit] allows to be in flight. They wait for all entries if the results take
// more than a quarter of the memory that is left on the device (ASYNCGEN_MEMORY says how much the device has): the
// program then goes on as if it had not been rewritten. If an operation still finds no memory, it waits until
// backlogs have been run. Their goroutines do that when they next call Do, BreakIf, Flush or Poll, or at once while
// they wait in one of these.
//
// A function of the backlog may use the Later that runs it. While it runs, the backlog is empty, and
// what it queues comes before the entries after it. If it panics, the entries after it never run. An
// error of a value is raised where a function uses the value, and not where it arrives; if no
// function uses it, it is not raised.
//
// A loop that ends because of a value runs on past the test, see BreakIf. S is the state that such an
// exit hands over; a loop without exits uses struct{}.
//
// One goroutine at a time may use a Later.
type Later[S any] struct {
	window  int
	ahead   int // how many tests a loop may run ahead of, see Ahead; 0 means as many as the window
	backlog []entry[S]
	head    int    // the first entry of backlog that has not run
	reads   []Read // since the last entry: what the next one needs
	spare   []Read // empty; reads may use its memory
	inside  bool   // a function of the backlog is running
	exits   exits[S]
	made    engine.Written  // when the last entry was queued, or the loop began
	few     bool            // see KeepsReads
	kept    int64           // if few: the bytes of what was read for entries that have not run
	known   *engine.Backlog // this backlog, as the engine knows it; nil if nothing was queued since Close
	isShort bool            // the backlog is being run because memory is short

	// For Undo.
	places  []changeable
	holding []held // what places held when the running function was queued

	iterating bool     // a function of Iterate is running
	told      *test[S] // the exit that was reported to that function

	// For Alike and Floats.
	forms    []form // of the tensors in the last call of Alike
	compared bool   // Alike has been called in this loop
	unlike   bool   // the last call reported false
	asked    bool   // the last call reported false, and no Flush has followed
}

// An entry is host work, or the test of an exit, and the values that it needs.
type entry[S any] struct {
	reads []Read
	do    func()
	test  *test[S]       // nil if the entry is do
	made  engine.Written // when the entry before was queued; this one may keep results made since
	held  []held         // see Undo
	kept  int64          // see Later.kept
}

// NewLater returns a Later that lets at most window entries wait. It panics if
// window is not positive.
//
//asyncgen:api pure
func NewLater[S any](window int) *Later[S] {
	if window <= 0 {
		panic(fmt.Sprintf("asyncrt: NewLater: window %d is not positive", window))
	}
	return &Later[S]{window: window, made: engine.Default().Written(nil)}
}

// Ahead lets a loop run ahead of at most n tests, see BreakIf, and returns l. It panics if n is not positive.
//
//asyncgen:api control
func (l *Later[S]) Ahead(n int) *Later[S] {
	if n <= 0 {
		panic(fmt.Sprintf("asyncrt: Ahead: %d is not positive", n))
	}
	l.ahead = n
	return l
}

// KeepsReads says that functions of the backlog keep no tensor that a loop makes but those that Read takes for them,
// and returns l. Then only these count as memory that entries keep. The generator writes it where functions use
// no other tensor. States of BreakIf are counted as they are without it.
//
//asyncgen:api control
func (l *Later[S]) KeepsReads() *Later[S] {
	l.few = true
	return l
}

// Read takes the value of t for functions that are queued from now on. If t is on a device whose memory the host
// can't reach, Read enqueues a copy at once. It never waits. t may be nil: as in a program that uses t itself,
// the panic comes only when the Read is used.
//
//asyncgen:api meta none
//go:noinline
func (l *Later[S]) Read(t *tensor.Tensor) Read {
	if t == nil {
		return Read{}
	}
	r := Read{t: t.Detach()}
	// in Shuffle mode the loop runs ahead even if that does not pay, so that this is tested
	if t.Device().Kind() != device.KindCPU || engine.Default().Mode() == engine.Shuffle {
		l.exits.pace.isAway = true
	}
	if !t.Device().Caps().HostMemory {
		r.t = r.t.To(device.CPU())
	}
	if l.reads == nil {
		l.reads, l.spare = l.spare, nil
	}
	l.reads = append(l.reads, r)
	return r
}

// ReadF64 is Read of a number. Item of the Read returns what x.Item does.
//
//asyncgen:api meta none
//go:noinline
func (l *Later[S]) ReadF64(x F64) Read {
	if v, ok := x.Known(); ok {
		return Read{number: v, isKnown: true}
	}
	return l.Read(x.As(tensor.Float64))
}

// ReadI64 is Read of a number. ItemInt of the Read returns what x.ItemInt does.
//
//asyncgen:api meta none
//go:noinline
func (l *Later[S]) ReadI64(x I64) Read { return l.Read(x.Tensor()) }

// Do queues f. If nothing is queued and the values of f have arrived, f runs at once; otherwise it runs in its
// turn. Do waits only if the window is full, or if memory is short as described at Later.
//
//asyncgen:api call 0 later
//go:noinline
func (l *Later[S]) Do(f func()) {
	l.queue(entry[S]{do: f})
	l.runReady()
	if l.pending() > l.window {
		l.runMiddle()
	}
	l.makeRoom()
}

// Poll runs the entries at the front whose values have arrived, as Do does, and does not wait
// unless memory is short. It costs a comparison if nothing is queued (0.5 ns on an AMD EPYC), and a
// look at the values of the first entry if they have not arrived (10 ns).
//
//	for i := 0; ; i++ {
//		later.Poll()
//		opt.Minimize(loss)
//		if i%100 == 0 {
//			lossAt := later.Read(loss)
//			later.Do(func() { fmt.Println(lossAt.Item()) })
//		}
//	}
//
// Like Do, it raises the panic of a function that it runs.
//
//asyncgen:api poll none
func (l *Later[S]) Poll() { // inlined, unlike the other methods: see BenchmarkLaterPoll
	if l.pending() > 0 {
		l.runReady()
	}
}

// Flush waits for all that is queued and runs it. The results are those of
// BreakIf: the state at the exit that was taken, and whether one was.
//
//asyncgen:api waitall
//go:noinline
func (l *Later[S]) Flush() (state S, exited bool) {
	l.runAll()
	return l.end()
}

// Close is Flush on the way out of a function, by return or by panic: it runs what the original program would have
// done before it got there. The Later can be used again.
//
//asyncgen:api waitall
//go:noinline
func (l *Later[S]) Close() {
	defer func() {
		if l.pending() > 0 { // a function has panicked, and had queued these
			l.Close()
		}
	}()
	l.runAll()
	l.end()
	if l.known != nil && l.pending() == 0 && !l.inside {
		l.known.End()
		l.known = nil
	}
}

// queue appends e, with the reads since the last entry. If an exit was taken, it drops e.
func (l *Later[S]) queue(e entry[S]) {
	e.reads, l.reads = l.reads, nil
	e.made, l.made = l.made, engine.Default().Written(l.made)
	if l.exits.taken == nil {
		if l.few {
			if l.pending() == 0 && !l.inside {
				l.kept = 0
			}
			for _, r := range e.reads {
				e.kept += r.t.StorageBytes()
			}
			l.kept += e.kept
		}
		if e.held = l.holds(); e.test != nil {
			e.test.held = e.held
		}
		l.backlog = append(l.backlog, e)
		if l.known == nil {
			l.known = engine.Default().NewBacklog()
		}
		l.known.Add(1)
	}
}

// makeRoom runs entries while they may keep more memory than there is room for. If memory could be short, it runs
// all of them. Otherwise it waits for half of them at a time and leaves the last one, so that the device has
// something to do.
func (l *Later[S]) makeRoom() {
	for l.pending() > 0 {
		room := l.room()
		switch {
		case room == engine.None:
			l.runUntil(0)
		case room == engine.Little && l.pending() > 1:
			l.runMiddle()
		default:
			return
		}
	}
}

// room says whether entries may keep more.
func (l *Later[S]) room() engine.Room {
	if l.few {
		return engine.Default().RoomFor(l.kept)
	}
	return engine.Default().RoomSince(l.backlog[l.head].made)
}

// pending returns how many entries have not run.
func (l *Later[S]) pending() int { return len(l.backlog) - l.head }

// runReady runs entries from the front until one is not ready.
func (l *Later[S]) runReady() {
	for l.pending() > 0 && l.backlog[l.head].isReady() {
		l.runNext()
	}
	l.relieve()
}

// relieve runs all entries, one by one, if an operation waits for the memory that backlogs keep. It waits for their
// values like a program that has no backlog: if there is no memory for these values, their operations fail.
func (l *Later[S]) relieve() {
	if l.isShort || !engine.Default().IsShort() {
		return
	}
	l.isShort = true
	defer func() {
		l.isShort = false
		engine.Default().Relieve()
	}()
	for l.pending() > 0 {
		l.runUntil(l.pending() - 1)
	}
}

// runAll runs all entries. It waits for the first half of what is left, again and again, and not for each entry:
// this takes few waits, and output appears in between.
func (l *Later[S]) runAll() {
	for l.runReady(); l.pending() > 0; {
		l.runMiddle()
	}
}

// runMiddle waits once, for the first half of the entries. It runs them, and those after them that are ready.
func (l *Later[S]) runMiddle() {
	l.runUntil(l.pending() / 2)
	l.runReady()
}

// runUntil waits once, for all entries but the last keep ones, and runs them.
func (l *Later[S]) runUntil(keep int) {
	for l.pending() > keep { // once, unless functions queue entries of their own
		first := l.backlog[l.head : len(l.backlog)-keep]
		l.await(pendingValues(first, nil))
		for n := len(first); n > 0 && l.pending() > keep && l.backlog[l.head].isReady(); n-- {
			l.runNext()
		}
		l.relieve()
	}
}

// pendingValues returns the values of entries, and of further reads, that have not arrived.
func pendingValues[S any](entries []entry[S], reads []Read) (values []*tensor.Tensor) {
	add := func(reads []Read) {
		for _, r := range reads {
			if !r.t.Ready() {
				values = append(values, r.t)
			}
		}
	}
	for _, e := range entries {
		add(e.reads)
	}
	add(reads)
	return values
}

// await waits once, until all values have arrived, or until memory is short.
func (l *Later[S]) await(values []*tensor.Tensor) {
	if len(values) == 0 {
		return
	}
	wait := func() {
		_ = tensor.Wait(values...) // errors are raised where values are used
	}
	engine.AllowSync(func() {
		if l.known == nil || l.isShort {
			wait()
		} else {
			l.known.Yield(wait)
		}
	})
}

// runNext runs the entry at the front, which is ready. The backlog is empty meanwhile, so what the entry queues
// comes first.
func (l *Later[S]) runNext() {
	e := l.backlog[l.head]
	l.backlog[l.head] = entry[S]{}
	rest, head, reads, inside, holding := l.backlog, l.head+1, l.reads, l.inside, l.holding
	l.backlog, l.head, l.reads, l.inside, l.holding = nil, 0, nil, true, e.held
	returned := false
	defer func() {
		l.inside, l.holding = inside, holding
		l.known.Add(-1)
		if !returned {
			l.known.Add(head - len(rest))
		}
		if !returned && !inside {
			l.abandon(e, rest[head:])
		}
	}()
	isExit := l.run(e, inside)
	returned = true
	l.kept -= e.kept
	l.recycle(e.reads)
	if isExit {
		l.take(e.test, rest[head:])
		l.known.Add(head - len(rest))
		return
	}
	if l.pending() > 0 {
		rest, head = slices.Concat(l.backlog[l.head:], rest[head:]), 0
	}
	switch {
	case head == len(rest):
		rest, head = rest[:0], 0
	case head > l.window: // keep the slice short
		rest, head = slices.Delete(rest, 0, head), 0
	}
	l.backlog, l.head, l.reads = rest, head, reads
}

// recycle keeps the memory of reads for later ones. Nothing uses reads any more.
func (l *Later[S]) recycle(reads []Read) {
	clear(reads)
	l.spare = reads[:0]
}

// run calls the function of e and reports whether e is a test whose exit is taken. inside says that another
// function of the backlog is running. What the function enqueues belongs to no guess: all tests before it were
// false.
func (l *Later[S]) run(e entry[S], inside bool) (isExit bool) {
	if ahead := l.exits.ahead; ahead != nil && !inside {
		ahead.End()
		defer func() {
			if l.exits.ahead != nil {
				ahead.Resume()
			}
		}()
	}
	if e.test == nil {
		e.do()
		return false
	}
	if e.test.cond() {
		return true
	}
	l.pass(e.test)
	return false
}

// isReady reports whether all values of the entry have arrived.
func (e entry[S]) isReady() bool { return areReady(e.reads) }

func areReady(reads []Read) bool {
	for _, r := range reads {
		if !r.t.Ready() {
			return false
		}
	}
	return true
}
