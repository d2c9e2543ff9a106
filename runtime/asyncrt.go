// Package asyncrt controls the asynchronous runtime, and has what generated
// code calls. Its import path ends in runtime; import it under its own name:
//
//	import asyncrt "github.com/asyncgen/asyncgen/runtime"
//
// Programs compute with package tensor. They need this package
//
//   - to wait for more than one tensor: [WaitAll], [Synchronize];
//   - to bound how far the program may run ahead: [SetLimit];
//   - to see what happened, and how long devices took: [Stats], [Graph], [Timer];
//   - to find or forbid calls that wait: [SyncMode].
//
// [Later] runs the host side of a loop a few iterations behind its device side. Calls of it are usually written by
// the generator.
//
// Tensors can be used in bubbles of testing/synctest, as well as before and after them. Even their first use in a
// process may be in a bubble. Operations are executed outside of all bubbles. A goroutine that waits for a value is
// not durably blocked, so its bubble's time does not pass meanwhile: in a bubble, computing takes no time, and a
// deadline does not expire before the value arrives.
//
// No goroutine of the library runs for ever, and nothing has to be closed. The goroutines of a device, also those
// of device.Wrap, end when they have been idle for 50 ms, and start again when there is work. There is one
// exception: from the first use of tensors in a bubble on, one goroutine sleeps until the process ends. Tests that
// use such bubbles, and look for leaked goroutines with go.uber.org/goleak, pass it
//
//	goleak.IgnoreAnyFunction("github.com/asyncgen/asyncgen/internal/bubble.dispatch")
package asyncrt

import (
	"context"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/runtime/internal/engine"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// An OpError is the failure of an operation, and of everything computed from its result. Reads panic with it. Its
// text names the operation, the shapes of its operands, the line that enqueued it, and the cause:
//
//	asyncgen: Div int64[3] from int64[3] int64[] on cpu, enqueued at /home/me/train.go:57: an integer is divided by zero
//
// A program and its generated form fail alike, with errors of the same type and cause. The lines are those of each
// form. The operands differ where generated code does several operations as one.
//
// When a device is lost, unfinished operations on it fail with one OpError, and so does everything that is asked of
// it later. The OpError wraps [device.ErrLost]. It is that of the first operation that found the device lost.
// Other devices go on. WaitAll returns this OpError once for all of these failures, and again if more was asked of
// the device since.
type OpError = engine.OpError

// A LeftError says that a loop was left without Flush or Close of its [Later]. Either the goroutine has ended, in
// whatever way, with tests under way ([Later.BreakIf]), or nothing refers any more to a Later that has functions to
// run. The line is that of the BreakIf or Do that began it.
//
// Operations that such a loop has enqueued after a test still run, but WaitAll does not return their failures.
// Other goroutines are not affected. WaitAll returns the LeftError when the goroutine has ended or, if it goes on,
// when the garbage collector has found the Later.
type LeftError = engine.LeftError

// Statistics are counts since the program began, and the memory that each device uses now.
type Statistics = engine.Stats

// WaitAll waits until everything enqueued so far has finished, on all devices. It returns the errors of the
// operations that failed since the last WaitAll, joined in program order: at most 1,024, and how many more there
// were. The text lists the first 16 of them, and %+v all. After them comes a [*LeftError] for each loop that was
// left without Flush or Close.
//
//asyncgen:api waitall
//go:noinline
func WaitAll() error { return engine.Default().WaitAll(context.Background()) }

// Synchronize is WaitAll for one device. If dev is a scope, made by [device.WithContext], Synchronize waits for the
// operations of the scope, on all devices, and returns their errors. If the scope's context has ended, its cause is
// among them. WaitAll does not return the errors of operations that didn't run because of that.
//
//asyncgen:api waitall
//go:noinline
func Synchronize(dev device.Device) error {
	return engine.Default().Synchronize(context.Background(), dev.Or())
}

// Try calls f and returns the *OpError that a read in f panicked with, or nil. Other panics go on.
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

// Dead declares that the program will not use these tensors again: see [tensor.Dead].
//
//asyncgen:api control
//go:noinline
func Dead(ts ...*tensor.Tensor) { tensor.Dead(ts...) }

// Bulk calls f. It wakes workers and devices once, when f has ended, for everything that f enqueues, rather than
// each time that enough work has come together. So a device with a queue gets many operations at a time. Bulk is a
// hint: a read in f starts the operations that it needs, and no operation is put off for more than about 0.4 ms.
//
//asyncgen:api call 0 once
func Bulk(f func()) { engine.Default().Bulk(f) }

// Capture returns f in a form that computes the same faster when it is called again: see [tensor.Capture].
//
//asyncgen:api pure
//go:noinline
func Capture(f func(in ...*tensor.Tensor) []*tensor.Tensor) *tensor.Captured {
	return tensor.Capture(f)
}

// SetLimit bounds the bytes that operations in flight write: those that are enqueued and have not finished. An
// operation that would exceed the bound waits until others have finished. 0 means no bound. The initial bound is a
// fraction of the memory that the process may have, or what ASYNCGEN_LIMIT says. The bound also limits what a
// [Later] keeps.
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
