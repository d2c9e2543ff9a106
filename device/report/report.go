// Package report is the format of synchronisation reports: how often, how long and on
// which source lines a run waited for its devices. The runtime writes
// one when ASYNCGEN_REPORT names a file; the linter and the comparison of programs read it.
// The package counts nothing itself.
//
// A report is JSON Lines: a header, the totals, and a record for each source line and kind of read.
//
//	{"asyncgen":"report","version":1}
//	{"total":true,"waits":                  12,"wait_ns": ...}
//	{"file":"/src/train.go","line":41,"func":"main.train","op":"Item","waits":                  12,"wait_ns": ...}
//
// The numbers have a fixed width, so that a record is rewritten in place whenever
// it changes: the file is exact at any time, also if the program ends without notice.
// Paths are as the compiler recorded them.
package report

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"sync"
)

// Version is the version of the format that this package writes.
const Version = 1

// Counts are what happened on a line, or in a whole run. The times do not overlap: their sum is
// how long the program was blocked, except for IdleNS, which is a part of them.
type Counts struct {
	Waits   int64 `json:"waits"`    // for values that were not ready
	WaitNS  int64 `json:"wait_ns"`  // in which there was nothing to do but wait
	Stalls  int64 `json:"stalls"`   // because too much was in flight
	StallNS int64 `json:"stall_ns"` // in which there was nothing to do but wait
	Helps   int64 `json:"helps"`    // operations that the blocked goroutine executed itself
	HelpNS  int64 `json:"help_ns"`  // spent on that
	IdleNS  int64 `json:"idle_ns"`  // of the waits, in which the accelerators had nothing to compute
}

// Add adds d to c.
func (c *Counts) Add(d Counts) {
	c.Waits += d.Waits
	c.WaitNS += d.WaitNS
	c.Stalls += d.Stalls
	c.StallNS += d.StallNS
	c.Helps += d.Helps
	c.HelpNS += d.HelpNS
	c.IdleNS += d.IdleNS
}

// BlockedNS is how long the program was blocked.
func (c Counts) BlockedNS() int64 { return c.WaitNS + c.StallNS + c.HelpNS }

// appendFields appends the members of a JSON object that stand for c, each of a fixed width.
func (c Counts) appendFields(b []byte) []byte {
	for _, f := range []struct {
		name string
		n    int64
	}{
		{"waits", c.Waits}, {"wait_ns", c.WaitNS},
		{"stalls", c.Stalls}, {"stall_ns", c.StallNS},
		{"helps", c.Helps}, {"help_ns", c.HelpNS},
		{"idle_ns", c.IdleNS},
	} {
		b = fmt.Appendf(b, `,%q:%20d`, f.name, f.n)
	}
	return b
}

// A Place is where and how a program waited.
type Place struct {
	File string `json:"file"`
	Line int    `json:"line"`
	Func string `json:"func"`
	Op   string `json:"op"` // the read, such as "Item"; of a stall, the operation that was to be enqueued
}

// A Record is what happened at a Place.
type Record struct {
	Place
	Counts
}

// A Report is the contents of a file.
type Report struct {
	Total   Counts
	Records []Record // in the order of their first appearance
}

// Summary returns the records, those first whose lines were blocked for longest.
func (r *Report) Summary() []Record {
	type line struct {
		file string
		line int
	}
	blocked := map[line]int64{}
	for _, rec := range r.Records {
		blocked[line{rec.File, rec.Line}] += rec.BlockedNS()
	}
	list := slices.Clone(r.Records)
	slices.SortStableFunc(list, func(a, b Record) int {
		return cmp.Or(
			cmp.Compare(blocked[line{b.File, b.Line}], blocked[line{a.File, a.Line}]),
			cmp.Compare(a.File, b.File),
			cmp.Compare(a.Line, b.Line),
			cmp.Compare(b.BlockedNS(), a.BlockedNS()),
			cmp.Compare(a.Op, b.Op),
		)
	})
	return list
}

// ReadFile reads the report in a file.
func ReadFile(path string) (*Report, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("report: %w", err)
	}
	defer f.Close()
	r, err := Read(f)
	if err != nil {
		return nil, fmt.Errorf("%w (in %s)", err, path)
	}
	return r, nil
}

// entry is any line of a report.
type entry struct {
	Asyncgen string `json:"asyncgen"`
	Version  int    `json:"version"`
	Total    bool   `json:"total"`
	Record
}

// Read reads a report. It ignores a last line that is not complete, as
// a program leaves it that was killed while it appended a record.
func Read(r io.Reader) (*Report, error) {
	rep := new(Report)
	in := bufio.NewReader(r)
	for n := 1; ; n++ {
		line, err := in.ReadBytes('\n')
		if err != nil && err != io.EOF {
			return nil, fmt.Errorf("report: %w", err)
		}
		if err == io.EOF { // what is left is empty or torn
			if n == 1 {
				return nil, fmt.Errorf("report: no header")
			}
			return rep, nil
		}
		var e entry
		if err := json.Unmarshal(line, &e); err != nil {
			if _, peek := in.Peek(1); peek == io.EOF && n > 1 {
				return rep, nil
			}
			return nil, fmt.Errorf("report: line %d: %w", n, err)
		}
		switch {
		case n == 1 && e.Asyncgen != "report":
			return nil, fmt.Errorf("report: not a synchronisation report")
		case n == 1 && e.Version != Version:
			return nil, fmt.Errorf("report: version %d, want %d", e.Version, Version)
		case n == 1:
		case e.Total:
			rep.Total = e.Counts
		default:
			rep.Records = append(rep.Records, e.Record)
		}
	}
}

// A Writer writes a report. Its methods may be called from several goroutines.
type Writer struct {
	mu      sync.Mutex // guards all
	f       *os.File
	end     int64 // where the next record goes
	total   line
	records map[Place]*line
	err     error // the first error; nothing is written after it
}

// A line is a line of the file whose numbers change.
type line struct {
	at     int64
	prefix []byte // up to the numbers
	counts Counts
}

// Create starts a report in a file, whose former contents are lost.
func Create(path string) (*Writer, error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, fmt.Errorf("report: %w", err)
	}
	w := &Writer{f: f, records: map[Place]*line{}}
	header := []byte(`{"asyncgen":"report","version":` + strconv.Itoa(Version) + "}\n")
	w.total = line{at: int64(len(header)), prefix: []byte(`{"total":true`)}
	total := w.total.bytes()
	w.end = w.total.at + int64(len(total))
	if _, err := f.WriteAt(append(header, total...), 0); err != nil {
		f.Close()
		return nil, fmt.Errorf("report: %w", err)
	}
	return w, nil
}

func (l *line) bytes() []byte {
	b := l.counts.appendFields(bytes.Clone(l.prefix))
	return append(b, "}\n"...)
}

// Add adds c to the record of p and to the totals. Both are in the file, as far as this process is concerned, when
// it returns. After an error, which is returned each time, the report stays as it is.
func (w *Writer) Add(p Place, c Counts) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return w.err
	}
	l := w.records[p]
	if l == nil {
		prefix, err := json.Marshal(p)
		if err != nil {
			return w.failLocked(err)
		}
		l = &line{at: w.end, prefix: prefix[:len(prefix)-1]}
		w.records[p] = l
		w.end += int64(len(l.bytes()))
	}
	l.counts.Add(c)
	w.total.counts.Add(c)
	for _, l := range []*line{l, &w.total} {
		if _, err := w.f.WriteAt(l.bytes(), l.at); err != nil {
			return w.failLocked(err)
		}
	}
	return nil
}

func (w *Writer) failLocked(err error) error {
	w.err = fmt.Errorf("report: %w", err)
	return w.err
}

// Close closes the file.
func (w *Writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.err = os.ErrClosed
	}
	return w.f.Close()
}
