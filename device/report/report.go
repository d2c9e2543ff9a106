// Package report is the format of synchronisation reports: how often, how long and on which source
// lines a run waited for its devices. The runtime writes a report when ASYNCGEN_REPORT names a file;
// the linter and the comparison of programs read it. The package counts nothing itself.
//
// A report is JSON Lines. Each process has a header, its totals, and a record for each source line and kind of read.
//
//	{"asyncgen":"report","version":2,"run":"9f1c","program":"example.com/train","pid":4711,"turn":1}
//	{"run":"9f1c","total":true,"waits":                  12,"wait_ns": ...}
//	{"run":"9f1c","file":"/src/train.go","line":41,"func":"main.train","op":"Item","waits":                  12,"wait_ns": ...}
//
// The numbers have a fixed width, so a record is rewritten in place whenever it changes. The file is
// exact at any time, even if the program ends without notice. Paths are as the compiler recorded them.
//
// Several processes may write to one file, at the same time or one after the other, like those that
// go test starts. Each adds lines at the end, and changes only its own lines. A reader adds up the
// numbers of all processes.
//
// Processes of one program that run at the same time are one turn. If a program ran several times,
// only its last turn counts. The next process of the program removes the lines of earlier turns,
// unless other processes write to the file then.
package report

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"sync"
)

// Version is the version of the format that this package writes.
const Version = 2

// Counts are what happened on a line, or in a whole run. IdleNS is a part of the other times. These do
// not overlap, and their sum is how long the program was blocked.
type Counts struct {
	Waits   int64 `json:"waits"`    // waits for values that were not ready
	WaitNS  int64 `json:"wait_ns"`  // their time, without that of Helps
	Stalls  int64 `json:"stalls"`   // waits because too much was in flight
	StallNS int64 `json:"stall_ns"` // their time, without that of Helps
	Helps   int64 `json:"helps"`    // operations that the blocked goroutine executed itself
	HelpNS  int64 `json:"help_ns"`  // their time
	IdleNS  int64 `json:"idle_ns"`  // the part of the waits in which the accelerators had nothing to compute

	// PeakBytes is the most memory that results took at once, as of the end of the last wait, stall
	// or help: the sum of the devices' peaks. On the CPU, it leaves out results below some KiB.
	PeakBytes int64 `json:"peak_bytes"`
}

// Add adds d to c. PeakBytes becomes the greater of the two.
func (c *Counts) Add(d Counts) {
	c.Waits += d.Waits
	c.WaitNS += d.WaitNS
	c.Stalls += d.Stalls
	c.StallNS += d.StallNS
	c.Helps += d.Helps
	c.HelpNS += d.HelpNS
	c.IdleNS += d.IdleNS
	c.PeakBytes = max(c.PeakBytes, d.PeakBytes)
}

// BlockedNS is how long the program was blocked.
func (c Counts) BlockedNS() int64 { return c.WaitNS + c.StallNS + c.HelpNS }

// appendFields appends the members of a JSON object for c, each of a fixed width.
func (c Counts) appendFields(b []byte) []byte {
	for _, f := range []struct {
		name string
		n    int64
	}{
		{"waits", c.Waits}, {"wait_ns", c.WaitNS},
		{"stalls", c.Stalls}, {"stall_ns", c.StallNS},
		{"helps", c.Helps}, {"help_ns", c.HelpNS},
		{"idle_ns", c.IdleNS}, {"peak_bytes", c.PeakBytes},
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
	Op   string `json:"op"` // the read, such as "Item"; for a stall, the operation to be enqueued
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

// Summary returns the records, those of the lines with the most blocked time first.
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

// A header is the first line that a process writes.
type header struct {
	Asyncgen string `json:"asyncgen"`
	Version  int    `json:"version"`
	Run      string `json:"run"`     // marks the lines of this process
	Program  string `json:"program"` // the import path of its main package
	PID      int    `json:"pid"`
	Turn     int    `json:"turn"`
}

// entry is any line of a report.
type entry struct {
	header
	Total bool `json:"total"`
	Record
}

// Read reads a report. It ignores lines that are not complete. A program that is killed while it
// appends a record leaves such a line at the end, and a failing disk may cut off others.
func Read(r io.Reader) (*Report, error) {
	data, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("report: %w", err)
	}
	entries, err := parse(data)
	if err != nil {
		return nil, err
	}
	turns := make(map[string]int) // the last of each program
	runs := make(map[string]header)
	for _, e := range entries {
		if e.Asyncgen != "" {
			runs[e.Run] = e.header
			turns[e.Program] = max(turns[e.Program], e.Turn)
		}
	}
	rep := new(Report)
	at := make(map[Place]int)
	for _, e := range entries {
		run, known := runs[e.Run]
		switch {
		case e.Asyncgen != "" || !known || run.Turn < turns[run.Program]:
		case e.Total:
			rep.Total.Add(e.Counts)
		default:
			i, seen := at[e.Place]
			if !seen {
				i = len(rep.Records)
				at[e.Place] = i
				rep.Records = append(rep.Records, Record{Place: e.Place})
			}
			rep.Records[i].Add(e.Counts)
		}
	}
	return rep, nil
}

// parse returns the complete lines of a report.
func parse(data []byte) ([]entry, error) {
	var entries []entry
	n := 0
	for line := range bytes.Lines(data) {
		n++
		line, whole := bytes.CutSuffix(line, []byte("\n"))
		if line = bytes.Trim(line, "\x00"); !whole || len(line) == 0 {
			continue
		}
		var e entry
		if err := json.Unmarshal(line, &e); err != nil {
			if len(entries) > 0 && line[0] == '{' && errors.As(err, new(*json.SyntaxError)) {
				continue
			}
			return nil, fmt.Errorf("report: line %d: %w", n, err)
		}
		switch {
		case e.Asyncgen != "report" && (e.Asyncgen != "" || len(entries) == 0):
			return nil, fmt.Errorf("report: not a synchronisation report")
		case e.Asyncgen != "" && e.Version != Version:
			return nil, fmt.Errorf("report: version %d, want %d", e.Version, Version)
		}
		entries = append(entries, e)
	}
	if len(entries) == 0 {
		return nil, errEmpty
	}
	return entries, nil
}

var errEmpty = errors.New("report: no header")

// A Writer writes the lines of one process. Its methods may be called from several goroutines.
type Writer struct {
	mu      sync.Mutex // guards all
	f       *os.File   // rewrites lines; while it is open, it has a lock that is shared with other writers
	end     *os.File   // the same file, opened to append lines
	run     string
	total   *line
	records map[Place]*line
	err     error // the first error; nothing is written after it
}

// A line is a line of the file whose numbers change.
type line struct {
	at     int64  // where it begins in the file
	prefix []byte // up to the numbers
	counts Counts
}

// Create begins the lines of this process in a report. Lines of other programs stay. Lines of earlier runs of this
// program are removed if no process writes to the file. It is an error if the file is something other than a report.
func Create(path string) (*Writer, error) {
	w, err := create(path, program())
	if err != nil {
		return nil, fmt.Errorf("report: %w", err)
	}
	return w, nil
}

// program is the import path of the main package of this process or, if it has none, the name of its file.
func program() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Path != "" && info.Path != "command-line-arguments" {
		return info.Path
	}
	return filepath.Base(os.Args[0])
}

func create(path, program string) (w *Writer, err error) {
	f, err := open(path, program)
	if err != nil {
		return nil, err
	}
	w = &Writer{f: f, run: fmt.Sprintf("%016x", rand.Uint64()), records: map[Place]*line{}}
	defer func() {
		if err != nil {
			w.Close()
		}
	}()
	if w.end, err = os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0); err != nil {
		return nil, err
	}
	turn, err := turnOf(f, program)
	if err != nil {
		return nil, err
	}
	first, err := json.Marshal(header{"report", Version, w.run, program, os.Getpid(), turn})
	if err != nil {
		return nil, err
	}
	first = append(first, '\n')
	w.total = &line{prefix: []byte(`{"run":"` + w.run + `","total":true`)}
	at, err := w.append(append(first, w.total.bytes()...))
	w.total.at = at + int64(len(first))
	return w, err
}

// open opens the file at path with a lock that is shared with other writers. If there are no others,
// open first removes the lines of earlier runs of program.
func open(path, program string) (*os.File, error) {
	for {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
		if err != nil {
			return nil, err
		}
		err = mayWrite(f)
		if err == nil && lockAlone(f) {
			err = forget(f, path, program)
			unlock(f)
		}
		if err == nil {
			err = lockShared(f)
		}
		if err != nil {
			f.Close()
			return nil, err
		}
		now, err := os.Stat(path)
		info, cause := f.Stat()
		if err == nil && cause == nil && os.SameFile(now, info) {
			return f, nil
		}
		f.Close() // another process has replaced the file in forget: open the new one
	}
}

// mayWrite returns an error if f is not a regular file, or is neither empty nor a report.
func mayWrite(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file", f.Name())
	}
	start := make([]byte, len(mark))
	n, err := f.ReadAt(start, 0)
	if err != nil && err != io.EOF {
		return err
	}
	if !bytes.HasPrefix([]byte(mark), bytes.Trim(start[:n], "\x00")) {
		return fmt.Errorf("%s has something else in it than a report, and stays as it is", f.Name())
	}
	return nil
}

// mark is how a report begins.
const mark = `{"asyncgen":"report",`

// forget removes the lines of all runs of program from f. No other process writes to f. It replaces the
// file at path, unless no lines are left.
func forget(f *os.File, path, program string) error {
	data, err := io.ReadAll(io.NewSectionReader(f, 0, math.MaxInt64))
	if err != nil {
		return err
	}
	stays := make(map[string]bool)
	var kept []byte
	for l := range bytes.Lines(data) {
		var e entry
		if json.Unmarshal(l, &e) != nil {
			continue
		}
		if e.Asyncgen != "" {
			stays[e.Run] = e.Program != program && e.Version == Version
		}
		if stays[e.Run] {
			kept = append(kept, l...)
		}
	}
	switch {
	case len(kept) == len(data):
		return nil
	case len(kept) == 0:
		return f.Truncate(0)
	}
	temp, err := os.CreateTemp(filepath.Dir(path), ".report-*")
	if err != nil {
		return nil // the lines stay, but readers ignore earlier turns
	}
	_, err = temp.Write(kept)
	if info, cause := f.Stat(); cause == nil {
		temp.Chmod(info.Mode().Perm())
	}
	if closed := temp.Close(); err == nil && closed == nil {
		err = os.Rename(temp.Name(), path) // fails on Windows, as f is open
	}
	if err != nil {
		os.Remove(temp.Name())
	}
	return nil
}

// turnOf is the turn of a process of program that begins now to write to f. It is the last turn if a
// process of that is alive, otherwise one more.
func turnOf(f *os.File, program string) (turn int, err error) {
	data, err := io.ReadAll(io.NewSectionReader(f, 0, math.MaxInt64))
	if err != nil {
		return 0, err
	}
	entries, err := parse(data)
	if err != nil && !errors.Is(err, errEmpty) {
		return 0, err
	}
	runs := false
	for _, e := range entries {
		switch {
		case e.Asyncgen == "" || e.Program != program || e.Turn < turn:
		case e.Turn > turn:
			turn, runs = e.Turn, isAlive(e.PID)
		default:
			runs = runs || isAlive(e.PID)
		}
	}
	if !runs {
		turn++
	}
	return turn, nil
}

// append adds text at the end of the file, and returns where the text begins.
func (w *Writer) append(text []byte) (at int64, err error) {
	if _, err := w.end.Write(text); err != nil {
		return 0, err
	}
	if end, err := w.end.Seek(0, io.SeekCurrent); err == nil {
		there := make([]byte, len(text))
		if _, err := w.f.ReadAt(there, end-int64(len(text))); err == nil && bytes.Equal(there, text) {
			return end - int64(len(text)), nil
		}
	}
	// Some systems do not say where they have appended the text.
	data, err := io.ReadAll(io.NewSectionReader(w.f, 0, math.MaxInt64))
	if err != nil {
		return 0, err
	}
	if at = int64(bytes.LastIndex(data, text)); at < 0 {
		return 0, errors.New("what was added is gone")
	}
	return at, nil
}

func (l *line) bytes() []byte {
	b := l.counts.appendFields(bytes.Clone(l.prefix))
	return append(b, "}\n"...)
}

// Add adds c to the record of p and to the totals. When it returns, both are handed to the system. After an error the
// report stays as it is, and every later call returns the same error.
func (w *Writer) Add(p Place, c Counts) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return w.err
	}
	l := w.records[p]
	isNew := l == nil
	if isNew {
		place, err := json.Marshal(p)
		if err != nil {
			return w.failLocked(err)
		}
		l = &line{prefix: append([]byte(`{"run":"`+w.run+`",`), place[1:len(place)-1]...)}
		w.records[p] = l
	}
	l.counts.Add(c)
	w.total.counts.Add(c)
	var err error
	if isNew {
		l.at, err = w.append(l.bytes())
	} else {
		_, err = w.f.WriteAt(l.bytes(), l.at)
	}
	if err == nil {
		_, err = w.f.WriteAt(w.total.bytes(), w.total.at)
	}
	if err != nil {
		return w.failLocked(err)
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
	err := w.f.Close()
	if w.end != nil {
		err = errors.Join(err, w.end.Close())
	}
	return err
}
