package engine

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/report"
	"github.com/asyncgen/asyncgen/internal/trace"
)

// Stats are counts since the engine was made. The three times do not overlap: their sum is how long
// the program was blocked.
type Stats struct {
	Enqueued uint64 // operations
	Executed uint64 // operations that have run, with or without success
	Skipped  uint64 // operations that did not run: an input was spoiled, or nobody wanted them any more
	InPlace  uint64 // operations among Executed that wrote their result over an input, see device.Map

	Plans    uint64 // made, see Capture
	Runs     uint64 // of Plans; one that is enqueued as a whole counts as one operation
	RunBytes int64  // in use now for what runs under way compute in between

	Waits     int64         // waits for values that were not ready
	WaitTime  time.Duration // idle time in waits
	Stalls    int64         // waits for room at a bound
	StallTime time.Duration // idle time in stalls
	Helped    int64         // operations executed by goroutines in waits and stalls
	HelpTime  time.Duration // how long these goroutines executed and scheduled operations

	InFlightBytes int64 // written by operations that have not finished, now
	PeakBytes     int64 // the largest InFlightBytes so far

	Memory []DeviceMemory // of each device that was used
}

// counts say how many operations of one stream have ended, and how.
type counts struct {
	ran, skipped uint64
	inPlace      uint64 // of those that ran
}

// run counts r, which has run.
func (c *counts) run(r *record) {
	c.ran++
	if r.donor != 0 {
		c.inPlace++
	}
}

// totals are the counts of Stats that goroutines add up while they wait. The times are in
// nanoseconds.
type totals struct {
	waits, waitTime, stalls, stallTime, helped, helpTime atomic.Int64
}

// Stats returns the counts as of now.
func (e *Engine) Stats() Stats {
	s := Stats{Executed: e.ranNow.Load(), Skipped: e.skippedNow.Load()}
	for _, st := range e.allStreams() {
		st.exec.settle()
		c := st.exec.counts()
		s.Executed += c.ran
		s.Skipped += c.skipped
		s.InPlace += c.inPlace
		computed := st.computed()
		s.Executed += computed
		s.Enqueued += st.enqueued() + computed
	}
	s.Enqueued += e.ranNow.Load() + e.skippedNow.Load() - e.gates.Load()
	s.Plans, s.Runs, s.RunBytes = e.plans.made.Load(), e.plans.runs.Load(), e.plans.arenas.Load()
	computed := e.plans.computed.Load()
	s.Enqueued += computed
	s.Executed += computed
	t := &e.totals
	s.Waits, s.WaitTime = t.waits.Load(), time.Duration(t.waitTime.Load())
	s.Stalls, s.StallTime = t.stalls.Load(), time.Duration(t.stallTime.Load())
	s.Helped, s.HelpTime = t.helped.Load(), time.Duration(t.helpTime.Load())
	s.Memory = e.memory()
	s.InFlightBytes, s.PeakBytes = e.inFlight.Load(), e.peak.Load()
	return s
}

// A span is when something began and ended, by the clock of now or that of a model.
type span struct{ begin, end time.Duration }

// since is the span from begin, by the clock of now, until now.
func since(begin time.Duration) span { return span{begin, now()} }

func (s span) took() time.Duration { return s.end - s.begin }

// countWait counts a wait, with help h. id is the operation that it waited for, if it was one.
func (e *Engine) countWait(name string, pc uintptr, s span, h help, id trace.ID) {
	e.noteWait(trace.Wait, name, pc, s, h, id)
	took := s.took()
	e.totals.waits.Add(1)
	e.totals.waitTime.Add(int64(h.idle))
	e.totals.helped.Add(h.ops)
	e.totals.helpTime.Add(int64(h.busy(took)))
	if e.report.on() {
		e.report.add(name, pc, report.Counts{Waits: 1, WaitNS: int64(h.idle), Helps: h.ops, HelpNS: int64(h.busy(took)), IdleNS: int64(e.idle(took)), PeakBytes: e.peakBytes()})
	}
}

// peakBytes returns the peaks of the devices' memory, added up.
func (e *Engine) peakBytes() (n int64) {
	for _, st := range e.allStreams() {
		if st.backend == nil {
			continue
		}
		if a := device.MemoryOf(st.backend); a != nil {
			n += a.Peak()
		}
	}
	return n
}

// idle returns how long no device had anything to compute during a wait, as far as devices can tell.
// The wait took the given time and ends now. A device that is idle now has been so since its last
// command, for the program has enqueued nothing during the wait.
func (e *Engine) idle(took time.Duration) time.Duration {
	known := false
	for _, st := range e.allStreams() {
		if st.backend == nil {
			continue
		}
		if idle, ok := device.IdleOf(st.backend); ok {
			took, known = min(took, idle), true
		}
	}
	if !known {
		return 0
	}
	return took
}

// countStall counts a stall, with help h.
func (e *Engine) countStall(name string, pc uintptr, s span, h help) {
	e.noteWait(trace.Stall, name, pc, s, h, trace.ID{})
	took := s.took()
	e.totals.stalls.Add(1)
	e.totals.stallTime.Add(int64(h.idle))
	e.totals.helped.Add(h.ops)
	e.totals.helpTime.Add(int64(h.busy(took)))
	if e.report.on() {
		e.report.add(name, pc, report.Counts{Stalls: 1, StallNS: int64(h.idle), Helps: h.ops, HelpNS: int64(h.busy(took)), PeakBytes: e.peakBytes()})
	}
}

// A reporter writes what is counted to a file, by source line. The zero reporter is off.
type reporter struct{ w atomic.Pointer[report.Writer] }

// open begins the report in the file at path; "": none. If the file can't be written, it says so on
// standard error, and there is no report: a program must not fail because nobody can watch it.
func (r *reporter) open(path string) {
	if path == "" {
		return
	}
	w, err := report.Create(path)
	if err != nil {
		fmt.Fprintf(os.Stderr, "asyncgen: no report of waits: %s\n", strings.ReplaceAll(err.Error(), "\n", " "))
		return
	}
	r.w.Store(w)
}

// on reports whether there is a report, so that counting costs a load otherwise.
func (r *reporter) on() bool { return r.w.Load() != nil }

// add adds c to the counts of the line at pc, for the call named op. The first error ends the
// report; of several goroutines that meet one, the first says so.
func (r *reporter) add(op string, pc uintptr, c report.Counts) {
	p := report.Place{Op: op}
	if at := siteOf(pc); at != nil {
		p.File, p.Line, p.Func = at.file, at.line, at.fn
	}
	w := r.w.Load()
	if w == nil {
		return
	}
	if err := w.Add(p, c); err != nil && r.w.CompareAndSwap(w, nil) {
		fmt.Fprintf(os.Stderr, "asyncgen: the report of waits ends here: %v\n", err)
		w.Close()
	}
}

// close ends the report. What is added later is dropped.
func (r *reporter) close() {
	if w := r.w.Swap(nil); w != nil {
		w.Close()
	}
}

// An Event describes one operation that was enqueued.
type Event struct {
	Op       string
	Device   device.Device
	Operands []*Storage // the output, then the inputs
	Writes   uint8      // bit i: Operands[i] is written
	Shapes   []device.Shape
	DTypes   []device.DType
	File     string
	Line     int
}

// watcher passes events to the functions given to Record.
type watcher struct {
	on    atomic.Bool
	mu    sync.Mutex // guards funcs, and is held while they are called
	funcs []*func(Event)
}

// Record calls f for every operation that is enqueued from now on, in program order, on the
// goroutine that enqueues it, until stop is called. f must not use the engine.
func (e *Engine) Record(f func(Event)) (stop func()) {
	w := &e.watcher
	w.mu.Lock()
	defer w.mu.Unlock()
	p := &f
	w.funcs = append(w.funcs, p)
	w.on.Store(true)
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		// DeleteFunc clears the slot, so f and what it holds can be collected
		w.funcs = slices.DeleteFunc(w.funcs, func(have *func(Event)) bool { return have == p })
		w.on.Store(len(w.funcs) > 0)
	}
}

// tell calls the functions with an Event about op. w.mu is held meanwhile, so after stop has
// returned f is not called any more.
func (w *watcher) tell(op *Op, writes uint8, pc uintptr) {
	k := op.Cmd.Kernel
	ev := Event{Op: k.Name, Device: op.Operands[0].Device(), Writes: writes}
	ev.DTypes = append([]device.DType{k.Out}, k.In...)
	for i, s := range op.Operands {
		if s == nil {
			break
		}
		ev.Operands = append(ev.Operands, s)
		if op.Shapes[i] != nil {
			ev.Shapes = append(ev.Shapes, *op.Shapes[i])
		}
	}
	ev.Operands = append(ev.Operands, op.Reads...)
	if at := siteOf(pc); at != nil {
		ev.File, ev.Line = at.file, at.line
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, f := range w.funcs {
		(*f)(ev)
	}
}

// defaultLimit returns a quarter of the memory that the process may have, at most 2 GiB.
func defaultLimit() int64 { return min(device.HostMemoryLimit()/4, 2<<30) }
