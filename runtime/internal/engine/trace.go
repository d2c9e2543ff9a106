package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/pprof"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/internal/bubble"
	"github.com/asyncgen/asyncgen/internal/trace"
)

// While a trace is written, each stream has a slip for each record of its ring: what the trace will say about the
// operation, as far as the producer knows it. Who has executed the operation adds the times and hands it over. Without
// a trace there are no slips, and an operation pays for one load.

// A tracer writes what the engine does to a trace. The zero tracer is off.
type tracer struct {
	w    atomic.Pointer[trace.Writer]
	stop func() error // ends the trace begun last; guarded by Engine.mu
	// watchers are the goroutines that watch devices with queues.
	watchers sync.WaitGroup
}

// slips are what is known about the operations in a ring, by their place in it. They are guarded as the records are.
type slips []trace.Event

// errTraced is returned by Trace while there is a trace.
var errTraced = errors.New("engine: there is a trace already")

// rowOfDevice is added to the number of a stream; the result is the row of a device with a queue. Other rows are
// goroutines, by their number.
const rowOfDevice = 1 << 30

// Trace writes what the engine does from now on to w, in the format of package trace, until stop is called. It fails
// while there is another trace. stop returns the first error of w. Without stop, the end of the trace may be missing:
// what happened after the last wait of the program and, but by the clock of a model, in the millisecond before that
// wait ended.
//
// Times are those of the clock of a model, if a device has one.
func (e *Engine) Trace(w io.Writer) (stop func() error, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.tracer.w.Load() != nil {
		return nil, errTraced
	}
	var t *trace.Writer
	e.outside(func() { t = trace.NewWriter(w, placeOf) })
	e.tracer.w.Store(t)
	for _, st := range e.allStreams() {
		st.trace(t)
	}
	e.tracer.stop = sync.OnceValue(func() error {
		for _, st := range e.allStreams() {
			st.untrace()
		}
		e.outside(e.tracer.watchers.Wait)
		e.tracer.w.Store(nil)
		return t.Close()
	})
	return e.tracer.stop, nil
}

// open begins a trace in the file at path; "": none. If the file can't be written, it says so on standard error, and
// there is no trace: a program must not fail because nobody can watch it.
func (e *Engine) openTrace(path string) {
	if path == "" {
		return
	}
	f, err := trace.Create(path)
	if err == nil {
		_, err = e.Trace(f)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "asyncgen: no trace: %s\n", strings.ReplaceAll(err.Error(), "\n", " "))
	}
}

// close ends the trace, if there is one. Engine.mu is held.
func (t *tracer) close() {
	if t.stop != nil {
		if err := t.stop(); err != nil {
			fmt.Fprintf(os.Stderr, "asyncgen: the trace is not complete: %v\n", err)
		}
	}
}

// trace gives st slips. Engine.mu is held.
func (st *stream) trace(t *trace.Writer) {
	if st.backend == nil {
		return // the host's stream runs nothing
	}
	s := make(slips, st.capacity())
	st.slips.Store(&s)
	if !st.isSynchronous {
		t.Name(rowOfDevice+uint64(st.id), st.dev.Name())
	}
}

// untrace takes the slips of st. Then nothing more is watched.
func (st *stream) untrace() {
	st.slips.Store(nil)
	if q, ok := st.exec.(*queue); ok {
		q.watched.mu.Lock()
		defer q.watched.mu.Unlock()
	}
}

// placeOf returns the line of the program at pc; nil: there is none.
func placeOf(pc uintptr) *trace.Place {
	at := siteOf(pc)
	if at == nil {
		return nil
	}
	return &trace.Place{File: at.file, Func: at.fn, Line: at.line}
}

// note fills the slip of r, which push is about to publish at seq. It is called before Storage.last changes.
func (s *slips) note(st *stream, r *record, seq uint64) { r.describe(&(*s)[seq&st.mask], st, seq) }

// describe says in x what r is, which is about to be enqueued at seq. If it is no operation, x is no event.
func (r *record) describe(x *trace.Event, st *stream, seq uint64) {
	*x = trace.Event{}
	if r.isGate || r.isRelease() {
		return
	}
	x.Kind, x.Name, x.ID, x.PC, x.Enqueued = trace.Op, r.kernel.Name, trace.ID{Stream: st.id, Seq: seq}, r.pc, st.e.now()
	x.By = uint64(self())
	x.Bytes, x.Type = r.bytes, r.kernel.Out.String()
	if r.link != nil {
		x.Gate = trace.ID{Stream: r.link.gate.id, Seq: r.link.gateSeq}
	}
	if shape := r.shapes[0]; shape != nil {
		x.SetShape(*shape)
	} else {
		x.SetShape([]int{r.n})
	}
	n := 0
	for i, s := range r.operands {
		if id := s.lastWriter(); r.writes>>i&1 == 0 && id != (trace.ID{}) && n < len(x.Reads) {
			x.Reads[n] = id
			n++
		}
	}
}

// lastWriter names the last operation enqueued that writes s, or the gate that stands for it. Zero: there is none.
func (s *Storage) lastWriter() (id trace.ID) {
	if s != nil {
		if last := s.last.Load(); last > 0 {
			id = trace.ID{Stream: s.st.id, Seq: last - 1}
		}
	}
	return id
}

// begin notes that the operation at x begins. If a worker executes it, the profiles of package pprof show its name as
// the label "op". The labels of other goroutines are the program's.
func (s *slips) begin(st *stream, x ref, c *scratch) {
	if s == nil {
		return
	}
	if c.isWorker {
		pprof.SetGoroutineLabels(pprof.WithLabels(context.Background(), pprof.Labels("op", st.at(x).kernel.Name)))
	}
	(*s)[x-1].Begin = st.e.now()
}

// end notes that the operation at x has ended, executed by the owner of c; or, if it is held, that it will begin again.
// The flow's lock is held.
func (s *slips) end(st *stream, x ref, c *scratch, held bool) {
	if s == nil {
		return
	}
	if c.isWorker {
		pprof.SetGoroutineLabels(context.Background())
	}
	if held {
		return
	}
	ev := (*s)[x-1]
	if c.row == 0 {
		c.row = uint64(self())
		if c.isWorker {
			st.e.tracer.name(c.row, "worker of "+st.dev.Name())
		}
	}
	ev.Row, ev.End, ev.Skipped = c.row, st.e.now(), st.at(x).skipped
	st.e.traced(&ev)
}

// traced adds an event to the trace, if there is one still. An event without a kind is none.
func (e *Engine) traced(ev *trace.Event) {
	if t := e.tracer.w.Load(); t != nil && ev.Kind != 0 {
		t.Add(ev, e.inFlight.Load())
	}
}

// name names a row.
func (t *tracer) name(row uint64, name string) {
	if w := t.w.Load(); w != nil {
		w.Name(row, name)
	}
}

// noteWait notes a wait or stall. id is what a wait waited for, if it was one operation.
func (e *Engine) noteWait(kind trace.Kind, name string, pc uintptr, s span, h help, id trace.ID) {
	t := e.tracer.w.Load()
	if t == nil {
		return
	}
	isVirtual := e.virtual.Load() != nil
	if !isVirtual && !e.onChannels() && bubble.In() { // where now has the bubble's clock
		end := e.now()
		s = span{end - s.took(), end}
	}
	t.Add(&trace.Event{Kind: kind, Name: name, Row: uint64(self()), Begin: s.begin, End: s.end, PC: pc, Idle: h.idle, ID: id}, e.inFlight.Load())
	switch {
	case kind != trace.Wait:
	case isVirtual:
		t.Flush() // it takes no time by that clock, by which much may happen until the next write of Pass
	default:
		t.Pass()
	}
}

// tell adds the operation at seq, which has retired, to the trace, with times by the clock of a model.
func (q *queue) tell(s slips, r *record, seq uint64) {
	ev := s[seq&q.st.mask]
	ev.Row, ev.Skipped = rowOfDevice+uint64(q.st.id), r.skipped
	ev.Begin, ev.End = r.stamp.Began, r.stamp.Ended
	if ev.End == 0 {
		ev.Begin, ev.End = r.stamp.Finished(), r.stamp.Finished()
	}
	if r.stamp.Queue != 0 {
		ev.Row += uint64(r.stamp.Queue) << 16
		q.st.e.tracer.name(ev.Row, fmt.Sprintf("%s, queue %d", q.st.dev.Name(), r.stamp.Queue))
	}
	q.st.e.traced(&ev)
}

// watched are commands whose end a goroutine waits for, to see when it comes: the queue itself looks only when
// somebody waits.
type watched struct {
	mu   sync.Mutex // guards the rest
	list []handed
	busy bool          // the goroutine runs
	last time.Duration // when the last one had ended; the goroutine owns it
}

// A handed is an operation that was handed to the device.
type handed struct {
	ev     trace.Event
	ticket device.Ticket
}

// watch adds the operations from first to end, which have just been handed over.
func (q *queue) watch(s slips, first, end uint64) {
	now := q.st.e.now()
	w := &q.watched
	w.mu.Lock()
	defer w.mu.Unlock()
	if q.st.slips.Load() == nil {
		return // the trace ends
	}
	for seq := first; seq < end; seq++ {
		h := handed{s[seq&q.st.mask], q.st.seq(seq).ticket}
		if h.ev.Kind == 0 {
			continue
		}
		h.ev.Row, h.ev.Begin, h.ev.Skipped = rowOfDevice+uint64(q.st.id), now, q.st.seq(seq).skipped
		w.list = append(w.list, h)
	}
	if len(w.list) > 0 && !w.busy {
		w.busy = true
		q.st.e.tracer.watchers.Add(1)
		q.st.e.outside(func() { go q.watchAll() })
	}
}

// watchAll waits for what is watched, until there is no more. An operation begins when the one before it has ended, or
// when it was handed over, if that was later.
func (q *queue) watchAll() {
	defer q.st.e.tracer.watchers.Done()
	w := &q.watched
	for {
		w.mu.Lock()
		list := w.list
		w.list = nil
		w.busy = len(list) > 0
		w.mu.Unlock()
		if len(list) == 0 {
			return
		}
		for i := range list {
			h := &list[i]
			if !h.ev.Skipped {
				// An error means that the device is lost: then this is when that was seen.
				_ = await(context.Background(), q.st.backend, h.ticket)
			}
			h.ev.End = q.st.e.now()
			h.ev.Begin = min(max(h.ev.Begin, w.last), h.ev.End)
			w.last = h.ev.End
			q.st.e.traced(&h.ev)
		}
	}
}
