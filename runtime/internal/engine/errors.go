package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/asyncgen/asyncgen/device"
)

// An OpError says which operation failed, which line of the program enqueued it, and why. Everything
// computed from its result carries the same *OpError.
type OpError struct {
	Op     string         // the name of the kernel: "add"
	Shapes []device.Shape // of the operands, output first, as far as the caller gave them
	DTypes []device.DType // of the operands, output first
	Device device.Device  // where it ran
	File   string         // of the first caller outside the library; "" if there is none
	Line   int
	Err    error
}

// Error formats all fields, in the form that [report.Where] matches:
//
//	asyncgen: Add float32[2 3] from float32[2 3] float32[3] on cpu, enqueued at /home/me/train.go:57: out of device memory
func (e *OpError) Error() string { return "asyncgen: " + e.text("%v") }

// Unwrap returns the cause.
func (e *OpError) Unwrap() error { return e.Err }

// Format prints e. With %+v it prints the cause with %+v.
func (e *OpError) Format(f fmt.State, verb rune) {
	switch {
	case verb == 'v' && f.Flag('+'):
		io.WriteString(f, "asyncgen: "+e.text("%+v"))
	case verb == 'q':
		fmt.Fprintf(f, "%q", e.Error())
	default:
		io.WriteString(f, e.Error())
	}
}

// text returns the text of e without its prefix, and the cause in the given format.
func (e *OpError) text(cause string) string {
	var b strings.Builder
	b.WriteString(e.Op)
	for i, dt := range e.DTypes {
		if i == 1 {
			b.WriteString(" from")
		}
		fmt.Fprintf(&b, " %v", dt)
		if i < len(e.Shapes) && e.Shapes[i] != nil {
			fmt.Fprintf(&b, "%v", e.Shapes[i])
		}
	}
	fmt.Fprintf(&b, " on %v", e.Device)
	if e.File != "" {
		fmt.Fprintf(&b, ", enqueued at %s:%d", e.File, e.Line)
	}
	fmt.Fprintf(&b, ": "+cause, e.Err)
	return b.String()
}

// A zeroDivision is the Err of an operation that has divided an integer by zero. err is the device's
// own error.
type zeroDivision struct{ err error }

func (e *zeroDivision) Error() string { return "an integer is divided by zero" }

// Unwrap returns the device's error, which wraps Go's runtime error on every device.
func (e *zeroDivision) Unwrap() error { return e.err }

// A noClass is the Err of an operation that has found a number of a class out of range. err is the device's own error.
type noClass struct{ err *device.IndexError }

func (e *noClass) Error() string {
	return fmt.Sprintf("label or class %d is out of range: there are %d classes, 0 to %d", e.err.Index, e.err.Length, e.err.Length-1)
}

// Unwrap returns the device's error.
func (e *noClass) Unwrap() error { return e.err }

// plain returns err in the words of the program: a zeroDivision if err wraps the runtime error of an integer division
// by zero, a noClass if the indices that a command with these arguments reads are classes.
func plain(err error, args *device.Args) error {
	if e, ok := errors.AsType[*device.IndexError](err); ok && e.Length > 0 && args != nil && args.LeastIndex() == 0 {
		return &noClass{e}
	}
	if e, ok := errors.AsType[runtime.Error](err); ok && strings.HasSuffix(e.Error(), "integer divide by zero") {
		return &zeroDivision{err}
	}
	return err
}

// A PanicError is the Err of an OpError whose kernel panicked.
type PanicError struct{ Value any }

// Error describes the value.
func (e *PanicError) Error() string { return fmt.Sprintf("kernel panicked: %v", e.Value) }

// Unwrap returns the value if it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// submit is b.Submit, with panics as errors.
func submit(b device.Backend, cmds []device.Command) (t device.Ticket, err error) {
	defer caught(&err)
	return b.Submit(cmds)
}

// alloc is b.Alloc, with panics as errors.
func alloc(b device.Backend, bytes int64) (buf *device.Buffer, err error) {
	defer caught(&err)
	return b.Alloc(bytes)
}

// await is b.Wait, with panics as errors.
func await(ctx context.Context, b device.Backend, t device.Ticket) (err error) {
	defer caught(&err)
	return b.Wait(ctx, t)
}

// caught turns a panic into an error. It is deferred. A runtime.Goexit is no panic and passes.
func caught(err *error) {
	if v := recover(); v != nil {
		*err = &PanicError{v}
	}
}

// failed notes that the operation at seq has failed with err, and returns the error that its outputs
// will carry.
func (st *stream) failed(r *record, seq uint64, err error) *OpError {
	var peer *lostPeer
	switch {
	case errors.As(err, &peer):
		return peer.st.lose(r, seq, peer.err)
	case errors.Is(err, device.ErrLost):
		return st.lose(r, seq, err)
	}
	e := st.opError(r, err)
	r.guess.failed(st, r.scope, []root{{r.order, seq, e, false}}, 0)
	return e
}

// opError returns an OpError that says err about r, which has failed or must not begin.
func (st *stream) opError(r *record, err error) *OpError {
	e := &OpError{Op: r.kernel.Name, Device: st.dev, Err: plain(err, r.args)}
	e.DTypes = append([]device.DType{r.kernel.Out}, r.kernel.In...)
	for _, s := range r.shapes {
		if s == nil {
			break
		}
		e.Shapes = append(e.Shapes, slices.Clone(*s))
	}
	if at := siteOf(r.pc); at != nil {
		e.File, e.Line = at.file, at.line
	}
	return e
}

// maxRoots is how many failures WaitAll returns at most. Further ones are only counted.
const maxRoots = 1024

// A root is an operation that failed by itself, not because of a spoiled input.
type root struct {
	order, seq uint64
	err        *OpError
	loss       bool // err is the loss of the device, which all operations after it share
}

// compare orders failures by their places in the program.
func (a root) compare(b root) int {
	return cmp.Or(cmp.Compare(a.order, b.order), cmp.Compare(a.seq, b.seq))
}

// roots are the failures of a stream since they were last taken. They are kept by scope, so that
// failures in a scope that nobody waits for do not crowd out others.
type roots struct {
	mu   sync.Mutex                  // guards the rest
	of   map[*device.Scope]*failures // key nil: operations in no scope
	most int                         // once there are more scopes than this, ended ones are forgotten
}

// failures are the first maxRoots of some failures in program order, and how many more there were.
type failures struct {
	list []root
	more int
}

// add adds the failures in list, which belong to s, and counts more of s that come after them and are
// not in the list.
func (r *roots) add(s *device.Scope, list []root, more int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.get(s).add(list, more)
	if len(r.of) > max(r.most, maxRoots) {
		r.forget()
		r.most = 2 * len(r.of)
	}
}

// get returns the failures that belong to s, made at the first one. r.mu is held.
func (r *roots) get(s *device.Scope) *failures {
	f := r.of[s]
	if f == nil {
		if r.of == nil {
			r.of = map[*device.Scope]*failures{}
		}
		f = &failures{}
		r.of[s] = f
	}
	return f
}

// forget drops the failures of scopes that have ended, and only counts them: hardly anybody will
// ask for them. r.mu is held.
func (r *roots) forget() {
	for s, f := range r.of {
		if s != nil && s.Err() != nil {
			delete(r.of, s)
			r.get(nil).more += len(f.list) + f.more
		}
	}
}

// add adds the failures in list, and counts more that are not in it. If more than maxRoots are known,
// those that come last in the program are dropped, and counted.
func (f *failures) add(list []root, more int) {
	for _, x := range list {
		if x.loss && !f.replace(x) {
			continue
		}
		// Behind those with the same place: the operations of one run of a Plan fail in program order.
		if at, _ := slices.BinarySearchFunc(f.list, x, func(have, x root) int { return cmp.Or(have.compare(x), -1) }); at < maxRoots {
			f.list = slices.Insert(f.list, at, x)
		} else {
			f.more++
		}
		if len(f.list) > maxRoots {
			f.list = f.list[:maxRoots]
			f.more++
		}
	}
	f.more += more
}

// replace reports whether x is to be added to the list. If a failure in the list has the same error,
// only the earlier of the two stays: replace removes that failure if x is earlier, and otherwise
// returns false.
func (f *failures) replace(x root) bool {
	i := slices.IndexFunc(f.list, func(have root) bool { return have.err == x.err })
	switch {
	case i < 0:
		return true
	case x.compare(f.list[i]) >= 0:
		return false
	}
	f.list = slices.Delete(f.list, i, i+1)
	return true
}

// take removes and returns all failures, or, if s is not nil, those that belong to s, and how many
// more there were. Afterwards it is as if they had never happened: each failure is returned once.
func (r *roots) take(s *device.Scope) (list []root, more int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for of, f := range r.of {
		if s == nil || of != nil && of.Within(s) {
			list = append(list, f.list...)
			more += f.more
			delete(r.of, of)
		}
	}
	return list, more
}

// joinRoots takes the failures of streams and joins them in program order. If s is not nil it takes
// those of s alone, and adds the cause of the scope's end. The other errors come last.
func joinRoots(streams []*stream, s *device.Scope, others ...error) error {
	var all []root
	more := 0
	for _, st := range streams {
		list, m := st.roots.take(s)
		all = append(all, list...)
		more += m
	}
	slices.SortStableFunc(all, root.compare)
	seen := map[*OpError]bool{}
	all = slices.DeleteFunc(all, func(x root) bool { // several scopes may have noted the same loss
		again := x.loss && seen[x.err]
		seen[x.err] = true
		return again
	})
	if len(all) > maxRoots {
		more += len(all) - maxRoots
		all = all[:maxRoots]
	}
	var errs []error
	for _, r := range all {
		errs = append(errs, r.err)
	}
	if more > 0 {
		errs = append(errs, fmt.Errorf("asyncgen: and %d more failed operations", more))
	}
	if s != nil {
		errs = append(errs, s.Err())
	}
	return join(append(errs, others...))
}

// join is errors.Join with a result that forwards %+v.
func join(errs []error) error {
	errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	if len(errs) == 0 {
		return nil
	}
	return &joinedError{errs}
}

// shownErrors is how many errors the text of a joinedError has at most: a log full of the same failure
// is of no use.
const shownErrors = 16

// A joinedError is several errors, in the order in which they are printed. There is at least one.
type joinedError struct{ errs []error }

// Error returns the texts of the first shownErrors errors, and how many more there are.
func (e *joinedError) Error() string { return e.text("%v", min(len(e.errs), shownErrors)) }

// Unwrap returns all of them.
func (e *joinedError) Unwrap() []error { return e.errs }

// Format prints e. With %+v it prints all errors, each with %+v.
func (e *joinedError) Format(f fmt.State, verb rune) {
	switch {
	case verb == 'v' && f.Flag('+'):
		io.WriteString(f, e.text("%+v", len(e.errs)))
	case verb == 'q':
		fmt.Fprintf(f, "%q", e.Error())
	default:
		io.WriteString(f, e.Error())
	}
}

// text returns the first of the errors, as many as most, each in the given format on a line of its
// own.
func (e *joinedError) text(format string, most int) string {
	var b strings.Builder
	for i, err := range e.errs[:most] {
		if i > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, format, err)
	}
	if more := len(e.errs) - most; more > 0 {
		fmt.Fprintf(&b, "\nasyncgen: and %d more, which %%+v shows", more)
	}
	return b.String()
}
