package trace

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Trace is what a file says.
type Trace struct {
	Program string // the name that it was started by
	Go      string // the version of Go that built it
	Rows    []Row  // of Slices, and of who enqueued them, each once: goroutines first, then workers, then devices
	Slices  []Slice
	Memory  []Sample
	Lost    int  // events that came too fast to be written
	IsCut   bool // the file has no end: the program did not end the trace
}

// A Row is what executes operations, or waits.
type Row struct {
	ID   uint64
	Kind RowKind
	Name string
}

// A RowKind says what a Row is.
type RowKind uint8

const (
	Goroutine RowKind = iota // of the program
	Worker                   // a goroutine that executes operations
	Device                   // with a queue of its own
)

// A Slice is an Event with the names that a file has.
type Slice struct {
	Kind       Kind
	Skipped    bool
	Row        int // in Trace.Rows
	Begin, End time.Duration
	Name       string
	At         *Place        // nil: unknown. Those of one line, function and file are the same
	ID         ID            // of an Op; of what a Wait waits for
	Enqueued   time.Duration // of an Op; when it began if it is not known
	By         int           // of an Op: one more than the row of the goroutine that enqueued it; 0: unknown
	Idle       time.Duration
	Bytes      int64
	Reads      [MaxReads]ID
	Gate       ID
	Result     string // type and shape of what an Op writes
}

// A Sample is how many bytes were in flight at a time.
type Sample struct {
	At    time.Duration
	Bytes int64
}

// version is that of the format.
const version = 1

// maxLine is how long a line may be. Names are the longest part of it.
const maxLine = 1 << 20

// unknown is no time.
const unknown = math.MinInt64

// maxTime is the longest time in nanoseconds: 26 days. Sums and differences of a few are exact in floating point.
const maxTime = 1 << 51

// Read reads a trace that a Writer has written. What lacks is its end only, be it in the middle of a line, is no error.
func Read(r io.Reader) (*Trace, error) {
	p := reader{trace: &Trace{IsCut: true}, names: map[string]string{}, places: map[[2]string]*Place{}, rows: map[uint64]int{}}
	p.onField = p.field
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 1<<16), maxLine)
	var bad error // of the line before
	n := 0
	for lines.Scan() {
		n++
		line := bytes.TrimSpace(lines.Bytes())
		switch {
		case n == 1:
			if bytes.HasPrefix(line, []byte(`{"asyncgen":"report"`)) {
				return nil, errors.New("this is no trace but a report of waits: asyncgen vet -report=FILE reads it")
			}
			if !bytes.Equal(line, []byte("[")) {
				return nil, errors.New("this is no trace: its first line is not \"[\", as ASYNCGEN_TRACE and asyncrt.StartTrace write it")
			}
		case len(line) == 0:
		case bad != nil:
			return nil, bad
		case !p.trace.IsCut:
			return nil, fmt.Errorf("line %d: there is something after the end of the trace", n)
		case bytes.Equal(line, []byte("]")):
			p.trace.IsCut = false
		default:
			if err := p.line(bytes.TrimSuffix(line, []byte(","))); err != nil {
				bad = fmt.Errorf("line %d: %w", n, err)
			}
		}
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return nil, fmt.Errorf("line %d is longer than any of a trace", n+1)
	case err != nil:
		return nil, err
	case n == 0:
		return nil, errors.New("this is no trace: it is empty")
	case bad != nil && !p.trace.IsCut:
		return nil, bad
	case !p.isOurs:
		return nil, errors.New("this is no trace of asyncgen: it does not say which version of the format it has")
	}
	p.sortRows()
	return p.trace, nil
}

// A reader reads one line after the other.
type reader struct {
	trace   *Trace
	isOurs  bool
	names   map[string]string    // each text once
	places  map[[2]string]*Place // by what the file has for it, and the function
	rows    map[uint64]int       // in Trace.Rows
	text    cursor
	ev      fields
	onField func(key []byte) // field, made once
}

// fields are what the object of an event has.
type fields struct {
	ph, cat                    byte // their first letters
	name                       []byte
	tid, by                    uint64
	hasTime                    bool
	argName, goVersion, at, fn []byte
	version, lost              int64
	begin, dur, enqueued       time.Duration
	slice                      Slice
}

// line reads the event on one line. Kinds of events that it does not know it passes over.
func (p *reader) line(line []byte) error {
	p.ev = fields{}
	p.ev.slice.Enqueued = unknown
	p.text = cursor{text: line}
	p.text.object(p.onField)
	ev, t := &p.ev, p.trace
	if p.text.isBad || len(p.text.text) > 0 {
		return errors.New("this is no event of a trace")
	}
	switch ev.ph {
	case 'M':
		switch string(ev.name) {
		case "process_name":
			t.Program = string(ev.argName)
		case "asyncgen":
			if ev.version != version {
				return fmt.Errorf("the format of the trace has version %d, and this program reads version %d", ev.version, version)
			}
			p.isOurs, t.Go = true, string(ev.goVersion)
		case "lost":
			t.Lost = int(ev.lost)
		case "thread_name":
			row := &t.Rows[p.row(ev.tid)]
			row.Name, row.Kind = string(ev.argName), Device
			if strings.HasPrefix(row.Name, "worker ") {
				row.Kind = Worker
			}
		}
	case 'C':
		t.Memory = append(t.Memory, Sample{ev.begin, ev.slice.Bytes})
	case 'X':
		s := ev.slice
		switch ev.cat {
		case 'o':
			s.Kind = Op
		case 'w':
			s.Kind = Wait
		case 's':
			s.Kind = Stall
		default:
			return nil
		}
		if ev.dur < 0 {
			return errors.New("this event ends before it begins")
		}
		s.Row, s.Name, s.Begin, s.End = p.row(ev.tid), p.intern(ev.name), ev.begin, ev.begin+ev.dur
		s.At = p.place(ev.at, ev.fn)
		if s.Kind == Op && ev.by != 0 {
			s.By = p.row(ev.by) + 1
		}
		if s.Enqueued == unknown {
			s.Enqueued = s.Begin
		}
		if len(t.Slices) == cap(t.Slices) {
			t.Slices = slices.Grow(t.Slices, 1024+len(t.Slices)) // append would copy more often
		}
		t.Slices = append(t.Slices, s)
	}
	return nil
}

// field reads the value of a field of an event, or of its arguments: their names have nothing in common.
func (p *reader) field(key []byte) {
	c, ev := &p.text, &p.ev
	switch string(key) {
	case "ph":
		ev.ph = first(c.string())
	case "cat":
		ev.cat = first(c.string())
	case "name":
		name := c.string()
		if c.depth == 1 {
			ev.name = name
		} else {
			ev.argName = name
		}
	case "ts":
		ev.begin = c.micros()
	case "dur":
		ev.dur = c.micros()
	case "tid":
		ev.tid = c.uint(64)
	case "args":
		c.object(p.onField)
	case "id", "for":
		ev.slice.ID = c.id()
	case "gate":
		ev.slice.Gate = c.id()
	case "enqueued":
		ev.slice.Enqueued = c.micros()
	case "by":
		ev.by = c.uint(64)
	case "idle":
		ev.slice.Idle = c.micros()
	case "reads":
		n := 0
		c.array(func() {
			id := c.id()
			if n < MaxReads {
				ev.slice.Reads[n] = id
			}
			n++
		})
	case "result":
		ev.slice.Result = p.intern(c.string())
	case "bytes":
		ev.slice.Bytes = c.int()
	case "skipped":
		ev.slice.Skipped = bytes.HasPrefix(c.text, []byte("true"))
		c.skip()
	case "at":
		ev.at = c.string()
	case "func":
		ev.fn = c.string()
	case "version":
		ev.version = c.int()
	case "go":
		ev.goVersion = c.string()
	case "events":
		ev.lost = c.int()
	default:
		c.skip()
	}
}

func first(s []byte) byte {
	if len(s) == 0 {
		return 0
	}
	return s[0]
}

// intern returns text as a string, the same one for the same text.
func (p *reader) intern(text []byte) string {
	s, ok := p.names[string(text)]
	if !ok {
		s = string(text)
		p.names[s] = s
	}
	return s
}

// place returns the line at "file:line" in a function.
func (p *reader) place(at, fn []byte) *Place {
	if len(at) == 0 {
		return nil
	}
	key := [2]string{p.intern(at), p.intern(fn)}
	place, ok := p.places[key]
	if !ok {
		place = &Place{File: key[0], Func: key[1]}
		if i := strings.LastIndexByte(key[0], ':'); i >= 0 {
			if line, err := strconv.Atoi(key[0][i+1:]); err == nil {
				place.File, place.Line = key[0][:i], line
			}
		}
		p.places[key] = place
	}
	return place
}

// row returns where in Trace.Rows a row is. Rows without a name are goroutines of the program.
func (p *reader) row(id uint64) int {
	i, ok := p.rows[id]
	if !ok {
		i = len(p.trace.Rows)
		p.rows[id] = i
		p.trace.Rows = append(p.trace.Rows, Row{ID: id, Name: "goroutine " + strconv.FormatUint(id, 10)})
	}
	return i
}

// sortRows leaves out rows in which nothing is, and sorts the others.
func (p *reader) sortRows() {
	t := p.trace
	used := make([]bool, len(t.Rows))
	for i := range t.Slices {
		used[t.Slices[i].Row] = true
		if by := t.Slices[i].By; by > 0 {
			used[by-1] = true
		}
	}
	var rows []Row
	for i, row := range t.Rows {
		if used[i] {
			rows = append(rows, row)
		}
	}
	slices.SortStableFunc(rows, func(a, b Row) int {
		if a.Kind != b.Kind {
			return int(a.Kind) - int(b.Kind)
		}
		if a.ID < b.ID {
			return -1
		}
		return 1
	})
	to := make([]int, len(t.Rows))
	for i, row := range rows {
		to[p.rows[row.ID]] = i
	}
	for i := range t.Slices {
		s := &t.Slices[i]
		s.Row = to[s.Row]
		if s.By > 0 {
			s.By = to[s.By-1] + 1
		}
	}
	t.Rows = rows
}

// A cursor reads JSON, without an allocation for strings that need none. text is what is left. Once something is wrong,
// isBad is set and all that it reads is empty.
type cursor struct {
	text  []byte
	depth int // of objects and arrays
	isBad bool
}

// next skips space and returns the next character; 0 at the end.
func (c *cursor) next() byte {
	for len(c.text) > 0 && (c.text[0] == ' ' || c.text[0] == '\t') {
		c.text = c.text[1:]
	}
	return first(c.text)
}

func (c *cursor) fail() {
	c.isBad, c.text = true, nil
}

// eat reads one character, which must be b.
func (c *cursor) eat(b byte) {
	if c.next() != b {
		c.fail()
		return
	}
	c.text = c.text[1:]
}

// list reads what stands between open and end, element by element, with commas between them.
func (c *cursor) list(open, end byte, element func()) {
	c.eat(open)
	if c.depth++; c.depth > 8 {
		c.fail() // deeper than any trace
	}
	for i := 0; c.next() != end && !c.isBad; i++ {
		if i > 0 {
			c.eat(',')
		}
		element()
	}
	c.depth--
	c.eat(end)
}

// object reads an object. field reads the value that follows a key.
func (c *cursor) object(field func(key []byte)) {
	c.list('{', '}', func() {
		key := c.string()
		c.eat(':')
		field(key)
	})
}

func (c *cursor) array(element func()) { c.list('[', ']', element) }

// string reads a string. It may be part of the text.
func (c *cursor) string() []byte {
	c.eat('"')
	hasEscape := false
	for i := 0; i < len(c.text); i++ {
		switch c.text[i] {
		case '\\':
			hasEscape = true
			i++
		case '"':
			s := c.text[:i]
			c.text = c.text[i+1:]
			if hasEscape {
				return unescape(s)
			}
			return s
		}
	}
	c.fail()
	return nil
}

// unescape replaces the escape sequences of a string: those of JSON or, for characters that don't print, of Go.
func unescape(s []byte) []byte {
	quoted := slices.Concat([]byte{'"'}, s, []byte{'"'})
	var text string
	if json.Unmarshal(quoted, &text) == nil {
		return []byte(text)
	}
	if text, err := strconv.Unquote(string(quoted)); err == nil {
		return []byte(text)
	}
	return s
}

// word reads a number or a name such as true.
func (c *cursor) word() []byte {
	c.next()
	i := 0
	for i < len(c.text) && c.text[i] != ',' && c.text[i] != '}' && c.text[i] != ']' && c.text[i] != ' ' {
		i++
	}
	word := c.text[:i]
	c.text = c.text[i:]
	if i == 0 {
		c.fail()
	}
	return word
}

// skip passes over any value.
func (c *cursor) skip() {
	switch c.next() {
	case '{':
		c.object(func([]byte) { c.skip() })
	case '[':
		c.array(c.skip)
	case '"':
		c.string()
	default:
		c.word()
	}
}

func (c *cursor) int() int64 {
	n, err := strconv.ParseInt(string(c.word()), 10, 64)
	if err != nil {
		c.fail()
	}
	return n
}

func (c *cursor) uint(bits int) uint64 {
	n, err := strconv.ParseUint(string(c.word()), 10, bits)
	if err != nil {
		c.fail()
	}
	return n
}

// micros reads a time in microseconds.
func (c *cursor) micros() time.Duration {
	x, err := strconv.ParseFloat(string(c.word()), 64)
	if x *= 1000; err != nil || !(math.Abs(x) < maxTime) {
		c.fail()
		return 0
	}
	return time.Duration(math.Round(x))
}

// id reads the ID of an operation.
func (c *cursor) id() (id ID) {
	stream, seq, ok := bytes.Cut(c.string(), []byte{'.'})
	s, err := strconv.ParseUint(string(stream), 10, 16)
	n, err2 := strconv.ParseUint(string(seq), 10, 53)
	if !ok || err != nil || err2 != nil {
		c.fail()
	}
	return ID{uint16(s), n}
}
