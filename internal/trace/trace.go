// Package trace is the format of traces: what an engine did, and when. The runtime writes one when ASYNCGEN_TRACE
// names a file; asyncgen trace reads it, and so do Perfetto (ui.perfetto.dev) and Chrome.
//
// A trace is an array in the JSON format of Chrome's trace viewer, with times in microseconds since the trace began.
// Viewers accept an array without its end, so a program may stop at any time.
//
//	{"ph":"X","cat":"op","name":"matmul","ts":12.5,"dur":3,"pid":1,"tid":7,"args":{"id":"1.45","enqueued":9.25,"by":1,
//	    "reads":["1.43","1.44"],"result":"float32[64 10]","bytes":2560,"at":"/src/train.go:31","func":"main.train"}}
//	{"ph":"X","cat":"wait","name":"Item","ts":10,"dur":5.5,"pid":1,"tid":1,"args":{"for":"1.45","idle":2.5,"at":...}}
//	{"ph":"X","cat":"stall", ...}    a call that waited for room, as too much was in flight
//	{"ph":"C","name":"bytes in flight","ts":15.5,"pid":1,"args":{"bytes":2560}}
//	{"ph":"M","name":"thread_name","pid":1,"tid":7,"args":{"name":"worker of cpu"}}
//
// An operation is in the row (tid) of what executed it: a worker, a goroutine that helped while it waited, or a device
// with a queue of its own. Its id is the number of its stream and its place there. The row of the goroutine that
// enqueued it is named in by.
package trace

import (
	"encoding/json"
	"io"
	"os"
	"runtime"
	"strconv"
	"sync"
	"time"
)

// A Kind says what an Event is.
type Kind uint8

const (
	Op     Kind = iota + 1 // an operation
	Wait                   // a call that waited for a value
	Stall                  // a call that waited for room
	Memory                 // how much was in flight
)

// String is the category of events of this kind.
func (k Kind) String() string { return [...]string{"", "op", "wait", "stall", "memory"}[k] }

// MaxReads is how many of the operations whose results an operation reads an Event can name.
const MaxReads = 4

// maxDims is how many dimensions of a result an Event can tell.
const maxDims = 6

// An ID names an operation: its stream, from 1, and its place there. The zero ID names none.
type ID struct {
	Stream uint16
	Seq    uint64
}

// An Event is something that happened between two times. Times are since any fixed moment.
type Event struct {
	Kind       Kind
	Skipped    bool // an Op did not run
	Rank       uint8
	Row        uint64 // where it happened, see Writer.Row
	Begin, End time.Duration
	Name       string        // of the kernel, or of the call that waits
	PC         uintptr       // of the program's call
	ID         ID            // of an Op; of what a Wait waits for
	Enqueued   time.Duration // of an Op
	By         uint64        // the row of the goroutine that enqueued an Op; 0: unknown
	Idle       time.Duration // the part of a Wait or Stall in which the goroutine executed nothing
	Bytes      int64         // that an Op writes, or that are in flight
	Reads      [MaxReads]ID
	Gate       ID     // another name of an Op, for those who read what it copies to another device
	Type       string // of the elements of the result
	Dims       [maxDims]int32
}

// SetShape notes the dimensions of an operation's result. Of more than six, the first six are kept.
func (e *Event) SetShape(shape []int) {
	e.Rank = uint8(min(len(shape), 255))
	for i, n := range shape[:min(len(shape), maxDims)] {
		e.Dims[i] = int32(min(n, 1<<31-1))
	}
}

// A Place is a line of the program.
type Place struct {
	File, Func string
	Line       int
}

// A Writer writes a trace. Its methods may be called from several goroutines at once.
type Writer struct {
	began time.Duration           // the time that is 0 in the trace
	place func(pc uintptr) *Place // nil: none
	mu    sync.Mutex              // guards what follows, to the blank line
	have  []Event                 // not written yet
	most  int                     // events that wait to be written, at most
	lost  int                     // events that came too fast to be written
	names []rowName               // of rows, not written yet
	named map[uint64]bool         // rows that have a name
	last  time.Duration           // when the bytes in flight were noted last

	bell chan struct{} // many events have come
	end  chan struct{} // closed when the trace ends

	out     sync.Mutex // held while events are written; taken before mu. It guards the rest
	w       io.Writer
	spare   []Event
	text    []byte
	places  map[uintptr]string
	written time.Time // when Pass wrote last
	err     error
	ended   bool
}

type rowName struct {
	row  uint64
	name string
}

const (
	many    = 1 << 15               // events after which they are written
	tooMany = 1 << 20               // events that wait to be written, at most
	sample  = 20 * time.Microsecond // between two notes of the bytes in flight, at least
	rest    = time.Millisecond      // between two writes of Pass, at least
)

// NewWriter begins a trace. place returns the line of the program at a PC; nil: there is none.
func NewWriter(w io.Writer, place func(pc uintptr) *Place) *Writer {
	t := &Writer{w: w, began: -1, last: -sample, most: tooMany, place: place, places: map[uintptr]string{}, named: map[uint64]bool{}, bell: make(chan struct{}, 1), end: make(chan struct{})}
	name, err := json.Marshal(os.Args[0])
	if err != nil {
		panic(err) // strings have no errors
	}
	t.text = append(t.text, head+`"args":{"name":`...)
	t.text = append(append(t.text, name...), `}},`+"\n"...)
	t.text = append(t.text, `{"ph":"M","name":"asyncgen","pid":1,"args":{"version":1,"go":"`+runtime.Version()+`"}}`...)
	go t.run()
	return t
}

// run writes when many events have come, until the trace ends.
func (t *Writer) run() {
	for {
		select {
		case <-t.bell:
			t.Flush()
		case <-t.end:
			return
		}
	}
}

// Name names a row. The first name counts.
func (t *Writer) Name(row uint64, name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.named[row] {
		t.named[row] = true
		t.names = append(t.names, rowName{row, name})
	}
}

// Add adds an event. inFlight is how many bytes are in flight at its end.
func (t *Writer) Add(e *Event, inFlight int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.have) >= t.most {
		t.lost++
		return
	}
	t.have = append(t.have, *e)
	if e.End >= t.last+sample || e.End < t.last {
		t.last = e.End
		t.have = append(t.have, Event{Kind: Memory, Begin: e.End, End: e.End, Bytes: inFlight})
	}
	if len(t.have) == many {
		select {
		case t.bell <- struct{}{}:
		default: // it is rung
		}
	}
}

// Pass is called when a wait of the program has ended, which may be its last one: it writes, but seldom, as each write
// takes some microseconds beyond what its events take.
func (t *Writer) Pass() {
	t.out.Lock()
	defer t.out.Unlock()
	if time.Since(t.written) >= rest {
		t.flush()
		t.written = time.Now()
	}
}

// Flush writes what was added. It returns the first error of the underlying writer.
func (t *Writer) Flush() error {
	t.out.Lock()
	defer t.out.Unlock()
	return t.flush()
}

// Close ends the trace. What is added later is lost.
func (t *Writer) Close() error {
	t.out.Lock()
	defer t.out.Unlock()
	if t.ended {
		return t.err
	}
	t.flush()
	t.mu.Lock()
	lost := t.lost
	t.mu.Unlock()
	if lost > 0 {
		t.text = append(t.text, `,`+"\n"+`{"ph":"M","name":"lost","pid":1,"args":{"events":`...)
		t.text = append(strconv.AppendInt(t.text, int64(lost), 10), `}}`...)
	}
	t.text = append(t.text, "\n]\n"...)
	t.write()
	t.ended = true
	close(t.end)
	return t.err
}

// flush is Flush with out held.
func (t *Writer) flush() error {
	t.mu.Lock()
	events, names := t.have, t.names
	t.have, t.names = t.spare[:0], nil
	t.mu.Unlock()
	for _, n := range names {
		t.text = append(t.text, ",\n"+`{"ph":"M","name":"thread_name","pid":1,"tid":`...)
		t.text = strconv.AppendUint(t.text, n.row, 10)
		t.text = appendString(append(t.text, `,"args":{"name":`...), n.name)
		t.text = append(t.text, `}}`...)
	}
	t.begin(events)
	for i := range events {
		t.encode(&events[i])
		if len(t.text) > 1<<16 {
			t.write()
		}
	}
	t.write()
	clear(events)
	t.spare = events
	return t.err
}

// begin sets the time that is 0 in the trace: that of the first event, or when its operation was enqueued.
func (t *Writer) begin(events []Event) {
	if t.began >= 0 || len(events) == 0 {
		return
	}
	t.began = events[0].Begin
	for i := range events {
		if t.began = min(t.began, events[i].Begin); events[i].Enqueued > 0 {
			t.began = min(t.began, events[i].Enqueued)
		}
	}
}

// write hands over the text. After an error there is no more.
func (t *Writer) write() {
	if t.err == nil && !t.ended {
		_, t.err = t.w.Write(t.text)
	}
	t.text = t.text[:0]
}

// encode appends an event to the text.
func (t *Writer) encode(e *Event) {
	b := t.text
	if e.Kind == Memory {
		b = append(b, ",\n"+`{"ph":"C","name":"bytes in flight","ts":`...)
		b = t.micros(b, e.Begin-t.began)
		b = append(b, `,"pid":1,"args":{"bytes":`...)
		t.text = append(strconv.AppendInt(b, e.Bytes, 10), `}}`...)
		return
	}
	b = append(b, ",\n"+`{"ph":"X","cat":"`...)
	b = append(append(b, e.Kind.String()...), `","name":`...)
	b = append(appendString(b, e.Name), `,"ts":`...)
	b = t.micros(b, e.Begin-t.began)
	b = t.micros(append(b, `,"dur":`...), e.End-e.Begin)
	b = append(b, `,"pid":1,"tid":`...)
	b = strconv.AppendUint(b, e.Row, 10)
	b = append(b, `,"args":{`...)
	if e.Kind == Op {
		b = appendID(append(b, `"id":`...), e.ID)
		if e.Enqueued != 0 {
			b = t.micros(append(b, `,"enqueued":`...), e.Enqueued-t.began)
		}
		if e.By != 0 {
			b = strconv.AppendUint(append(b, `,"by":`...), e.By, 10)
		}
		if e.Gate != (ID{}) {
			b = appendID(append(b, `,"gate":`...), e.Gate)
		}
		sep := `,"reads":[`
		for _, id := range e.Reads {
			if id != (ID{}) {
				b = appendID(append(b, sep...), id)
				sep = ","
			}
		}
		if sep == "," {
			b = append(b, ']')
		}
		b = append(append(b, `,"result":"`...), e.Type...)
		b = append(appendShape(b, e), `","bytes":`...)
		b = strconv.AppendInt(b, e.Bytes, 10)
		if e.Skipped {
			b = append(b, `,"skipped":true`...)
		}
	} else {
		b = t.micros(append(b, `"idle":`...), e.Idle)
		if e.ID != (ID{}) {
			b = appendID(append(b, `,"for":`...), e.ID)
		}
	}
	t.text = append(append(b, t.at(e.PC)...), `}}`...)
}

// appendString appends a string of JSON.
func appendString(b []byte, s string) []byte {
	for _, c := range []byte(s) {
		if c < ' ' || c > '~' || c == '"' || c == '\\' {
			text, err := json.Marshal(s)
			if err != nil {
				panic("strings have no errors")
			}
			return append(b, text...)
		}
	}
	return append(append(append(b, '"'), s...), '"')
}

// micros appends a time in microseconds.
func (t *Writer) micros(b []byte, d time.Duration) []byte {
	if d < 0 {
		b, d = append(b, '-'), -d
	}
	b = strconv.AppendInt(b, int64(d/1000), 10)
	if ns := d % 1000; ns != 0 {
		b = append(b, '.', byte('0'+ns/100), byte('0'+ns/10%10), byte('0'+ns%10))
	}
	return b
}

// appendID appends an ID as a string.
func appendID(b []byte, id ID) []byte {
	b = strconv.AppendUint(append(b, '"'), uint64(id.Stream), 10)
	return append(strconv.AppendUint(append(b, '.'), id.Seq, 10), '"')
}

// appendShape appends the shape of a result, as Shape.String of package device writes it.
func appendShape(b []byte, e *Event) []byte {
	b = append(b, '[')
	for i := range min(int(e.Rank), maxDims) {
		if i > 0 {
			b = append(b, ' ')
		}
		b = strconv.AppendInt(b, int64(e.Dims[i]), 10)
	}
	if int(e.Rank) > maxDims {
		b = append(b, " ..."...)
	}
	return append(b, ']')
}

// at returns how the arguments of an event name the line at pc.
func (t *Writer) at(pc uintptr) string {
	if pc == 0 || t.place == nil {
		return ""
	}
	text, ok := t.places[pc]
	if ok {
		return text
	}
	if p := t.place(pc); p != nil {
		at, err := json.Marshal(p.File + ":" + strconv.Itoa(p.Line))
		fn, err2 := json.Marshal(p.Func)
		if err != nil || err2 != nil {
			panic("strings have no errors")
		}
		text = `,"at":` + string(at) + `,"func":` + string(fn)
	}
	t.places[pc] = text
	return text
}
