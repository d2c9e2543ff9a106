package mpi

import (
	"fmt"
	"os"
	"sync"
)

// alone is the carrier of a job of one rank, which may send messages to itself.
type alone struct {
	transport *Transport

	mu      sync.Mutex // guards pending, and is held while they are matched
	pending []operation
}

func (a *alone) wake() {
	for _, f := range a.match() {
		f()
	}
}

// match copies messages to the receives that are there for them, and returns the calls of done that follow.
func (a *alone) match() (calls []func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	begun, cause, _ := a.transport.take()
	for _, op := range begun {
		i := a.partner(op)
		if i < 0 {
			a.pending = append(a.pending, op)
			continue
		}
		first := a.pending[i]
		a.pending = append(a.pending[:i], a.pending[i+1:]...)
		message, receive := first, op
		if op.isSend {
			message, receive = op, first
		}
		err := lengthError(receive, len(message.mem))
		copy(receive.mem, message.mem)
		calls = append(calls, func() { message.done(nil) }, func() { receive.done(err) })
	}
	if cause != nil {
		for _, op := range a.pending {
			calls = append(calls, func() { op.done(cause) })
		}
		a.pending = nil
	}
	return calls
}

// partner returns the index of the oldest operation that op goes with, or -1.
func (a *alone) partner(op operation) int {
	for i, p := range a.pending {
		if p.tag == op.tag && p.isSend != op.isSend {
			return i
		}
	}
	return -1
}

// wait says that a message is missing rather than to wait forever: nobody else will send it.
func (a *alone) wait() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if n := len(a.pending); n > 0 {
		return fmt.Errorf("mpi: %d messages to itself were not sent or not received", n)
	}
	return nil
}

func (a *alone) abort(status int) { os.Exit(status) }
func (a *alone) end()             { os.Exit(0) }

// lengthError returns an error if a receive has got a message of another length.
func lengthError(receive operation, got int) error {
	if got == len(receive.mem) {
		return nil
	}
	return fmt.Errorf("mpi: rank %d has sent %d bytes, %d were to be received", receive.peer, got, len(receive.mem))
}
