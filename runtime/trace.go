package asyncrt

import (
	"io"

	"github.com/asyncgen/asyncgen/runtime/internal/engine"
)

// StartTrace writes what runs when to w, until stop is called: each operation with the worker or device that executed
// it, each wait with what it waited for, both with the lines of the program, and the bytes in flight. asyncgen trace
// shows it, and so do ui.perfetto.dev and Chrome. It is the same as what ASYNCGEN_TRACE=FILE writes, but for a part of
// a program:
//
//	stop, err := asyncrt.StartTrace(f)
//
// StartTrace fails if there is a trace already. stop does not wait for what the program has enqueued, and what has not
// run by then is missing; but it waits for what an accelerator is computing. It returns the first error of w. While a
// trace is written, operations on a few numbers are enqueued like all others. With the model of an accelerator in
// virtual time, times are those of the model.
//
//asyncgen:api control
func StartTrace(w io.Writer) (stop func() error, err error) { return engine.Default().Trace(w) }
