package engine

import "github.com/asyncgen/asyncgen/device"

// Messages between processes are operations on devices of package device/wire, linked to storages of the host as
// uploads and downloads are. Both ends count messages, so each is handed to its device even if its operation can't
// run: its input is spoiled, its scope has ended, or there is no memory. Then the command has no buffer, see
// device.Send.

var (
	sends    = makeKernels("send", device.Send)
	receives = makeKernels("receive", device.Receive)
)

// messageAhead is the panic of a message that a program may not want: processes would not agree which ones there are.
const messageAhead = "asyncgen: a message between the processes of a job, in a loop that runs ahead of its test: the function must not be rewritten"

// Send sends n elements of s, from element off on, by a device of package device/wire. s is on a device of the
// program's own threads. what is Imm[0], see device.Send. Like Copy, it does not wait.
func (e *Engine) Send(to device.Device, s *Storage, off, n int, dt device.DType, what uint64) {
	e.mayExchange()
	sent := e.NewStorage(to.Within(s.Device()), 0)
	op := Op{
		Cmd:      device.Command{Kernel: sends.of(dt), N: n, Off: [device.MaxOperands]int{0, off}, Imm: [2]uint64{what}},
		Operands: [device.MaxOperands]*Storage{sent, s},
		Cost:     copyCost(int64(n) * int64(dt.Size())),
	}
	e.enqueueLinked(sent.st, &op, s, 0, 0, callerPC())
}

// Receive returns a new storage on a device of the program's own threads, and receives n elements into it.
func (e *Engine) Receive(from, on device.Device, n int, dt device.DType, what uint64) *Storage {
	e.mayExchange()
	size := int64(n) * int64(dt.Size())
	dst := e.NewStorage(on, size)
	op := Op{
		Cmd:      device.Command{Kernel: receives.of(dt), N: n, Imm: [2]uint64{what}},
		Operands: [device.MaxOperands]*Storage{dst},
		Cost:     copyCost(size),
	}
	e.enqueueLinked(e.stream(from), &op, dst, 1, size, callerPC())
	return dst
}

// mayExchange panics if there may be no message now.
func (e *Engine) mayExchange() {
	e.mustNotCapture(refusedCopy)
	if e.guess() != nil {
		panic(messageAhead)
	}
}

// isOwed reports whether r is a message that is handed to its device although it can't run.
func (r *record) isOwed(st *stream) bool {
	return r.kernel.Code.IsMessage() && st.lost.Load() == nil
}

// owe makes c the command of r, a message, without what it was to be.
func (r *record) owe(c *device.Command) {
	*c = device.Command{Kernel: r.kernel, N: r.n, Imm: r.imm, Stamp: c.Stamp}
}
