package engine

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
)

// A SyncPolicy says what a call does that has to wait: for a value that is not ready, or, in WaitAll
// and Synchronize, for operations that have not finished.
type SyncPolicy uint8

const (
	Allow SyncPolicy = iota // it waits
	Log                     // it waits; the first wait of each line of the program is told on standard error
	Error                   // it does not wait, and fails with a *SyncError
)

// A SyncError is the error of a call that would have to wait while waiting is forbidden. Nothing else
// has failed: the value is as good as before.
type SyncError struct {
	Call string // "Item"
	File string // of the first caller outside the library; "" if there is none
	Line int
}

// Error names the call and its line.
func (e *SyncError) Error() string { return "asyncgen: " + e.text() + ", which is forbidden here" }

// text returns the text without its prefix.
func (e *SyncError) text() string {
	if e.File == "" {
		return e.Call + " waits"
	}
	return fmt.Sprintf("%s:%d: %s waits", e.File, e.Line, e.Call)
}

// syncs holds an engine's policy for calls that wait.
type syncs struct {
	policy atomic.Uint32

	mu sync.Mutex // guards the rest
	// told are the lines that Log has told, each once. nil until a policy was set.
	told map[site]bool
	out  io.Writer // nil: standard error
}

// SetSyncPolicy sets the policy for calls that have to wait, on all goroutines of the process, and
// returns the old policy. It also forgets which lines Log has told.
func (e *Engine) SetSyncPolicy(p SyncPolicy) (old SyncPolicy) {
	s := &e.syncs
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told = map[site]bool{}
	return SyncPolicy(s.policy.Swap(uint32(p)))
}

// AllowSync calls f. In f and in everything that f calls, directly or not, on the same goroutine,
// waiting is allowed. Goroutines that f starts are not included. allow finds AllowSync on the stack,
// and looks only when waiting is not allowed otherwise, so AllowSync itself costs nothing.
//
//go:noinline
func AllowSync(f func()) { f() }

// ForbidSync calls f. In f and in everything that f calls, directly or not, on the same goroutine,
// waiting is forbidden, as by the policy Error, except in an AllowSync within. Goroutines that f
// starts are not included.
//
//go:noinline
func ForbidSync(f func()) {
	forbidding.Add(1)
	defer forbidding.Add(-1)
	f()
}

// forbidding is how many calls of ForbidSync are running, on all goroutines.
var forbidding atomic.Int32

// allow returns nil if the call with the given name and address may wait, or else a *SyncError. For
// policy Log it tells the wait.
func (e *Engine) allow(name string, pc uintptr) error {
	p := SyncPolicy(e.syncs.policy.Load())
	if p == Allow && forbidding.Load() == 0 {
		return nil
	}
	// A look at the stack takes microseconds, but comes only where a wait was about to be forbidden
	// or told.
	switch innermostSync() {
	case allowSyncName:
		return nil
	case forbidSyncName:
		p = Error
	}
	if p == Allow {
		return nil
	}
	err := &SyncError{Call: name}
	var line site
	if at := siteOf(pc); at != nil {
		line = site{file: at.file, line: at.line}
		err.File, err.Line = at.file, at.line
	}
	if p == Error {
		return err
	}
	e.syncs.tell(line, err)
	return nil
}

// tell prints err, once for each line. It uses no logger: the call that waits may be a logger that
// prints a tensor, and it holds its lock.
func (s *syncs) tell(line site, err *SyncError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.told[line] {
		return
	}
	s.told[line] = true
	out := s.out
	if out == nil {
		out = os.Stderr
	}
	fmt.Fprintf(out, "asyncgen: %s\n", err.text())
}

// innermostSync returns the name of the innermost call of AllowSync or ForbidSync on the stack of this
// goroutine, or "" if there is none.
func innermostSync() string {
	pcs := make([]uintptr, 64)
	n := runtime.Callers(0, pcs)
	for n == len(pcs) {
		pcs = make([]uintptr, 2*len(pcs))
		n = runtime.Callers(0, pcs)
	}
	frames := runtime.CallersFrames(pcs[:n])
	for {
		f, more := frames.Next()
		if f.Function == allowSyncName || f.Function == forbidSyncName {
			return f.Function
		}
		if !more {
			return ""
		}
	}
}

const (
	allowSyncName  = module + "runtime/internal/engine.AllowSync"
	forbidSyncName = module + "runtime/internal/engine.ForbidSync"
)
