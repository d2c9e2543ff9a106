package asyncrt

import "github.com/asyncgen/asyncgen/runtime/internal/engine"

// A SyncPolicy says what happens to calls that have to wait; see [SyncMode].
type SyncPolicy = engine.SyncPolicy

const (
	// Allow lets them wait. It is the initial policy.
	Allow = engine.Allow
	// Log lets them wait and prints the line that called, the first time for each line, on standard error:
	//
	//	asyncgen: /home/me/train.go:57: Item waits
	//
	// It does not use a logger, since a logger that prints a tensor may be what waits.
	Log = engine.Log
	// Error makes them fail with a *SyncError instead of waiting.
	Error = engine.Error
)

// A SyncError is the error of a call that has to wait where waiting is forbidden. It names the call and the line.
// The tensor is not affected.
type SyncError = engine.SyncError

// SyncMode sets what happens to calls that have to wait, on all goroutines of the process and from
// now on. It returns the policy before:
//
//	defer asyncrt.SyncMode(asyncrt.SyncMode(asyncrt.Error))
//
// Two goroutines that do this at the same time disturb each other; [ForbidSync] is for one goroutine.
//
// With Error, reads such as Item panic with a [*SyncError]; Wait, WaitAll and the forms with a context
// return it; String and Format print it. A call has to wait if its value has not been computed yet. So
// a read that waits in one run may find its value ready in another, and SyncMode does not concern it
// then. Waits of a [Later] (for a full window, in Flush and Close) are always allowed, and so are
// those inside an [AllowSync]. Stalls at a bound are no waits: see [SetLimit].
//
//asyncgen:api control
func SyncMode(p SyncPolicy) (old SyncPolicy) { return engine.Default().SetSyncPolicy(p) }

// AllowSync calls f and allows its waits, whatever [SyncMode] says. That holds for f and everything that it calls on
// this goroutine, until f returns or its panic is recovered. Goroutines that f starts are not included, and other
// goroutines are not affected.
//
// It costs no more than the call, unless something has to wait while waits are logged or forbidden.
//
//asyncgen:api call 0 once
//go:noinline
func AllowSync(f func()) { engine.AllowSync(f) }

// ForbidSync calls f and forbids its waits, whatever [SyncMode] says: calls that have to wait fail with a
// [*SyncError], as with Error. That holds for f and everything that it calls on this goroutine, until f returns or its
// panic is recovered. Goroutines that f starts are not included, and other goroutines are not affected, so a handler
// of requests can forbid its own waits. If AllowSync and ForbidSync are nested, the inner one counts.
//
//asyncgen:api call 0 once
//go:noinline
func ForbidSync(f func()) { engine.ForbidSync(f) }
