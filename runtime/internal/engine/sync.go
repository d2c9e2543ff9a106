package engine

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
)

// A SyncPolicy says what becomes of a call that has to wait: for a value that is not ready, or, in
// WaitAll and Synchronize, for operations that have not finished.
type SyncPolicy uint8

const (
	Allow SyncPolicy = iota // it waits
	Log                     // it waits, and the first time for its line of the program says so on standard error
	Error                   // it does not wait and fails with a *SyncError
)

// A SyncError is the failure of a call that would have had to wait while that was forbidden. Nothing else has
// failed: the value is as good as before.
type SyncError struct {
	Call string // "Item"
	File string // of the first caller outside the library; "" if there is none
	Line int
}

// Error names the call and its line.
func (e *SyncError) Error() string { return "asyncgen: " + e.text() }

func (e *SyncError) text() string {
	if e.File == "" {
		return e.Call + " waits"
	}
	return fmt.Sprintf("%s:%d: %s waits", e.File, e.Line, e.Call)
}

// syncs is what an engine does about calls that wait.
type syncs struct {
	policy atomic.Uint32

	mu   sync.Mutex // guards the rest
	told map[site]bool
	out  io.Writer // nil: standard error
}

// SetSyncPolicy sets what becomes of calls that have to wait from now on, on all goroutines of the
// process, and returns what did so far. Setting Log forgets which lines have been told.
func (e *Engine) SetSyncPolicy(p SyncPolicy) (old SyncPolicy) {
	s := &e.syncs
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told = map[site]bool{}
	return SyncPolicy(s.policy.Swap(uint32(p)))
}

// AllowSync calls f, in which waiting is allowed: to f and what it calls, directly or not, on the
// same goroutine. Goroutines that f starts are not included, others not affected. It is found on
// the stack when a call has to wait and may not; otherwise it costs nothing.
//
//go:noinline
func AllowSync(f func()) { f() }

// ForbidSync calls f, in which waiting is forbidden, as by the policy Error: to f and what it
// calls, directly or not, on the same goroutine, but for what is in an AllowSync within it.
// Goroutines that f starts are not included, others not affected.
//
//go:noinline
func ForbidSync(f func()) {
	forbidding.Add(1)
	defer forbidding.Add(-1)
	f()
}

// forbidding is how many calls of ForbidSync there are on all goroutines.
var forbidding atomic.Int32

// allow decides about a call that has to wait.
func (e *Engine) allow(name string, pc uintptr) error {
	p := SyncPolicy(e.syncs.policy.Load())
	if p == Allow && forbidding.Load() == 0 {
		return nil
	}
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

// tell prints what err says, once for each line. It does not go through a logger: one that is just printing a tensor
// may be what waits, and hold its lock.
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

// innermostSync returns the name of AllowSync or ForbidSync, whichever of the two this goroutine
// was called by last and is still in; "" if it is in neither.
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
