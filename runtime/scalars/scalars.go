// Package scalars records numbers over the steps of a training run, such as losses, in files for people, programs and
// TensorBoard. The loop never waits for the device: a number is written when it is known.
//
//	w, err := scalars.Open(scalars.Options{CSV: "run/scalars.csv", TensorBoard: "run"})
//	if err != nil {
//		return err
//	}
//	for step, b := range batches {
//		loss := nn.MSELoss(net.Forward(b.X), b.Y)
//		opt.Minimize(loss)
//		w.Add(step, "loss", loss)
//	}
//	return w.Close() // waits for the last numbers
//
// It draws nothing: see packages curves and progress.
package scalars

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/asyncgen/asyncgen/runtime/internal/known"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// Options say where a [Writer] writes. The zero Options are those of a Writer that only collects, for
// [Writer.Series]. Folders that do not exist are made. Floats of 32 bits or less have as many digits as tell
// float32s apart.
type Options struct {
	// CSV is a file with a line for each number, below a header: step,name,value,time. Values are NaN, +Inf and -Inf
	// where they are not finite. Times are as in RFC 3339, in UTC.
	CSV string
	// JSONLines is a file with an object for each number in a line of its own: {"step":1,"name":"loss","value":0.5,
	// "time":"2006-01-02T15:04:05.000Z"}. Numbers that JSON can't express are the strings "NaN", "Infinity" and
	// "-Infinity", as in the JSON of protocol buffers.
	JSONLines string
	// TensorBoard is a folder, the run. Each Writer has an event file of its own in it. TensorBoard keeps 32 bits of a
	// value.
	TensorBoard string
	// Resume is the step at which a run goes on that was interrupted, or 0. TensorBoard forgets what older event files
	// in the folder say of this step and later ones. Readers of the other files see that steps go back: [Read] takes
	// care of that.
	Resume int
}

// What a Writer may lose, and what it may keep.
const (
	// flushAfter is how long a number that is known may stay in the memory of the process.
	flushAfter = time.Second
	// mostPending is how many numbers may be unknown. The engine has at most as many operations of a device in flight,
	// so a loop gets here only if it records the results of slow ones several times.
	mostPending = 4096
)

// A Writer records numbers. Several goroutines may use it. It waits for none of them: Add looks which have become
// known, and so does a timer, each second, while there are any that are not in the files.
type Writer struct {
	mu      sync.Mutex // guards all below
	sinks   []sink
	pending []entry // in the order of Add
	series  []*Series
	byName  map[string]*Series
	timer   *time.Timer // nil unless something has to be written
	err     error       // the first
	closed  bool
}

// An entry is a number that Add was given.
type entry struct {
	step   int
	name   string
	time   time.Time
	number known.Number
}

// A Series is the numbers with one name, in the order in which they were added.
type Series struct {
	Name   string
	Steps  []int
	Values []float64
}

// Open opens the files, and makes those that do not exist. It only ever appends to them, so that a run that was
// interrupted goes on in the same files; half a line at the end, which a crash has left, is removed first. Open
// returns an error if a file can't be opened, or has other contents than a Writer's.
//
//asyncgen:api control
func Open(o Options) (*Writer, error) {
	w := &Writer{byName: make(map[string]*Series)}
	for _, s := range []struct {
		path string
		open func(string) (sink, error)
	}{
		{o.CSV, openCSV},
		{o.JSONLines, openJSONLines},
		{o.TensorBoard, func(dir string) (sink, error) { return openEvents(dir, o.Resume) }},
	} {
		if s.path == "" {
			continue
		}
		opened, err := s.open(s.path)
		if err != nil {
			for _, s := range w.sinks {
				err = errors.Join(err, s.close())
			}
			return nil, fmt.Errorf("scalars: %w", err)
		}
		w.sinks = append(w.sinks, opened)
	}
	return w, nil
}

// Add records a number under a name: a tensor with one element, or a float64, float32, int, int64 or int32. Of a
// tensor it keeps a handle, so that the program may declare its own [tensor.Dead], and writes the number when it is
// known. Numbers are written in the order of the calls; one that is not known yet holds up those behind it. Steps of
// a name usually grow, but need not.
//
// Add does not wait for the device unless 4096 numbers are unknown: then it waits until the oldest is known, as an
// operation does that finds the queue full. On a device whose memory the host can't reach it enqueues a copy of the
// number. Add returns no error: the operation that should have computed the number may fail, and so may a file. Close
// returns the first error, and what can be written is written.
//
// Add panics with a [tensor.Mistake] if the name is empty, no UTF-8 or has control characters, if the value is not
// such a number, and after Close.
//
//asyncgen:api output
//go:noinline
func (w *Writer) Add(step int, name string, value any) {
	if name == "" || !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl) {
		wrong("Add", "%q can't be a name", name)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		wrong("Add", "the Writer is closed")
	}
	n := known.Of("scalars", "Add", value)
	n.Fetch()
	w.pending = append(w.pending, entry{step, name, time.Now(), n})
	w.poll()
	if len(w.pending) > mostPending {
		w.pending[0].number.Wait()
		w.poll()
	}
	if w.timer == nil {
		w.timer = time.AfterFunc(flushAfter, w.tick)
	}
}

func wrong(fn, format string, args ...any) {
	panic(&tensor.Mistake{Package: "scalars", Op: fn, Text: fmt.Sprintf(format, args...)})
}

// tick writes what is known and hands it to the system. It comes again while there are numbers that are not known.
func (w *Writer) tick() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return
	}
	w.poll()
	for _, s := range w.sinks {
		w.note(s.flush())
	}
	w.timer = nil
	if len(w.pending) > 0 {
		w.timer = time.AfterFunc(flushAfter, w.tick)
	}
}

// poll takes the numbers that are known, up to the first that is not. The caller holds mu.
func (w *Writer) poll() {
	n := 0
	for n < len(w.pending) && w.pending[n].number.Known() {
		w.write(&w.pending[n])
		n++
	}
	clear(w.pending[:n])
	w.pending = w.pending[n:]
}

// write writes a number that is known. The caller holds mu.
func (w *Writer) write(e *entry) {
	v, err := e.number.Value()
	if err != nil {
		w.note(fmt.Errorf("%s of step %d: %w", e.name, e.step, err))
		return
	}
	s := w.byName[e.name]
	if s == nil {
		s = &Series{Name: e.name}
		w.byName[e.name] = s
		w.series = append(w.series, s)
	}
	s.Steps, s.Values = append(s.Steps, e.step), append(s.Values, v)
	for _, sink := range w.sinks {
		w.note(sink.write(e, v))
	}
}

// note keeps the first error.
func (w *Writer) note(err error) {
	if err != nil && w.err == nil {
		w.err = fmt.Errorf("scalars: %w", err)
	}
}

// Series returns the numbers with the given names that are known so far, one Series for each name; without names it
// returns all, in the order in which the names were first added. A name of which no number is known has an empty
// Series. The Writer keeps 16 bytes for each number since Open; what an earlier run has left in the files is for
// [Read]. Series does not wait. After Close it returns all.
//
//asyncgen:api poll
func (w *Writer) Series(names ...string) []Series {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.poll()
	var list []Series
	if len(names) == 0 {
		for _, s := range w.series {
			list = append(list, s.clone())
		}
	}
	for _, name := range names {
		if s := w.byName[name]; s != nil {
			list = append(list, s.clone())
		} else {
			list = append(list, Series{Name: name})
		}
	}
	return list
}

func (s *Series) clone() Series { return Series{s.Name, slices.Clone(s.Steps), slices.Clone(s.Values)} }

// Flush waits until all numbers are known that were added before, writes them, and hands them to the system. It
// returns the first error of all that the Writer has done so far, as Close does, and the Writer goes on. With a Flush
// before each checkpoint is saved, a run that goes on from one has all numbers of the steps before it, however the
// program ended. After Close, Flush only returns the error.
//
//asyncgen:api waitall
//go:noinline
func (w *Writer) Flush() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.closed {
		w.settle()
		for _, s := range w.sinks {
			w.note(s.flush())
		}
	}
	return w.err
}

// Close waits until all numbers are known, writes them, and closes the files. It returns the first error of all that
// the Writer did: an operation that failed, as an *asyncrt.OpError with its line, or a file. The files are closed
// anyway. A Writer may be closed again, which returns the same error.
//
//asyncgen:api waitall
//go:noinline
func (w *Writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return w.err
	}
	w.closed = true
	if w.timer != nil {
		w.timer.Stop()
	}
	w.settle()
	for _, s := range w.sinks {
		w.note(s.close())
	}
	return w.err
}

// settle waits for all numbers and writes them. The caller holds mu.
func (w *Writer) settle() {
	for i := range w.pending {
		w.pending[i].number.Wait()
		w.write(&w.pending[i])
	}
	w.pending = nil
}
