// Package asyncrt controls the asynchronous runtime, and has what generated
// code calls. Its import path ends in runtime; import it under its own name:
//
//	import asyncrt "github.com/asyncgen/asyncgen/runtime"
//
// Programs compute with package tensor. They need this package to wait for
// more than one tensor ([WaitAll], [Synchronize]), to bound how far the program
// may run ahead ([SetLimit]), to see what happened ([Stats], [Graph]) and how
// long devices took ([Timer]), and to find or forbid calls that wait ([SyncMode]).
// [Later] is how the host side of a loop runs a few iterations behind its
// device side; it is usually written by the generator.
//
// Tensors can be used in bubbles of testing/synctest, before, in and after, and for the first time
// in one. What executes operations is outside of all bubbles; a goroutine that waits for a value is
// not durably blocked, so a bubble's time does not pass meanwhile: there, to compute takes no time,
// and a deadline does not come before the value.
//
// No goroutine of the library goes on for ever, and nothing has to be closed: those of a device,
// device.Wrap's too, end when they have had nothing to do for 50 ms, and come back with work. The
// exception is one, for the whole process, which is asleep from the first use of tensors in a
// bubble on. Tests that look for goroutines that were left behind with go.uber.org/goleak, and have
// such bubbles, pass it
//
//	goleak.IgnoreAnyFunction("github.com/asyncgen/asyncgen/internal/bubble.dispatch")
package asyncrt

import (
	"context"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/runtime/internal/engine"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// An OpError is the failure of an operation, and of everything computed from its result. Its text,
// which a panic at a read shows as well, tells which operation it was, with the shapes of its
// operands, the line that enqueued it, and the cause:
//
//	asyncgen: Div int64[3] from int64[3] int64[] on cpu, enqueued at /home/me/train.go:57: an integer is divided by zero
//
// A program and what the generator makes of it fail alike, with errors of one type and cause; the
// lines are those of each, and so are the operands where one operation takes the place of several.
//
// When a device is lost, all that has not finished on it, and all that is asked of it later, fails
// with one OpError, which wraps [device.ErrLost]: that of the first operation to meet it. Other
// devices go on. WaitAll returns it once for all of them, and again if more was asked since.
type OpError = engine.OpError

// A LeftError says that a goroutine has left a loop without Flush or Close of its [Later]: it
// ended, by return, by panic or otherwise, with tests under way ([Later.BreakIf]), or nothing
// refers to a Later any more that has functions to run. Its line is that of the call that began it.
// What such a loop has enqueued is there, but its failures are not among those of WaitAll; other
// goroutines are not affected. WaitAll returns one as soon as the goroutine has ended or, where it
// has not, the garbage collector has found out.
type LeftError = engine.LeftError

// Statistics are counts since the program began, and the memory of each device as of now.
type Statistics = engine.Stats

// WaitAll waits until everything enqueued so far has finished, on all devices.
// It returns the errors of all operations that failed since the last WaitAll,
// in program order, joined; of more than 1,024, how many more there were. The text has the first 16, %+v all.
// A [*LeftError] for each loop that was left without Flush or Close comes after them.
//
//asyncgen:api waitall
//go:noinline
func WaitAll() error { return engine.Default().WaitAll(context.Background()) }

// Synchronize is WaitAll for one device. If dev is a scope, made by [device.WithContext], Synchronize waits for the
// operations of the scope, on all devices, and returns their errors. If the scope's context has ended, its cause is
// among them. Operations that didn't run because of that are no failures that WaitAll returns.
//
//asyncgen:api waitall
//go:noinline
func Synchronize(dev device.Device) error {
	return engine.Default().Synchronize(context.Background(), dev.Or())
}

// Try calls f and returns the *OpError that a read in it panicked with, or
// nil. Other panics go on.
//
//asyncgen:api call 0 once
func Try(f func()) (err error) {
	defer func() {
		switch v := recover().(type) {
		case nil:
		case *OpError:
			err = v
		default:
			panic(v)
		}
	}()
	f()
	return nil
}

// Dead says that the program will not use these tensors again: [tensor.Dead].
//
//asyncgen:api control
//go:noinline
func Dead(ts ...*tensor.Tensor) { tensor.Dead(ts...) }

// Bulk calls f, and wakes workers and devices once for all that f enqueues, when f has ended, rather than
// each time that enough has come together: a device with a queue is handed many operations at a time. It is a hint.
// Reads in f work as everywhere, and begin what they need; nothing is put off for
// more than about 0.4 ms.
//
//asyncgen:api call 0 once
func Bulk(f func()) { engine.Default().Bulk(f) }

// SetLimit bounds the bytes that operations write which have been enqueued and
// have not finished: an operation that would exceed the bound waits for others
// to finish first. 0 means no bound. The bound at the beginning is a fraction
// of the memory that the process may have, or what ASYNCGEN_LIMIT says. It also bounds what a [Later] keeps.
//
//asyncgen:api control
func SetLimit(bytes int64) { engine.Default().SetLimit(bytes) }

// Limit returns the bound that SetLimit sets.
//
//asyncgen:api poll
func Limit() int64 { return engine.Default().Limit() }

// Stats returns what the runtime has counted so far.
//
//asyncgen:api poll
func Stats() Statistics { return engine.Default().Stats() }
