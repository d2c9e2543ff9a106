package mpi

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

// A Transport carries messages between the ranks of a job. It is a wire.Transport. Run makes it. Its methods may be
// called from several goroutines.
//
// Callers hand operations over to one goroutine, which calls the library. While something is under way, that goroutine
// looks again and again whether some of it has ended: a few times at once, and then with growing pauses, of up to a
// millisecond when it has waited for long, as ranks may share their processors with workers that compute. With nothing
// under way it sleeps.
type Transport struct {
	rank, size int
	carrier    carrier

	mu     sync.Mutex // guards all below
	begun  []operation
	cause  error // why everything fails, from Fail on
	closed bool

	stop      stopping
	lastWords sync.Once // of giveUp
}

// A carrier moves the operations of a Transport: the library of MPI, or nothing for a job of one rank.
type carrier interface {
	// wake says that there are new operations, or that the Transport fails or is closed. It doesn't wait.
	wake()
	// wait returns when nothing is under way, after the Transport was closed or has failed.
	wait() error
	// end ends the process, with the others, and abort all processes of the job at once. Neither returns.
	end()
	abort(status int)
}

// An operation is a message that is being sent or received.
type operation struct {
	tag    tag
	isSend bool
	peer   int
	mem    []byte
	done   func(error)
}

// fn returns the function that begins op.
func (op operation) fn() fn {
	if op.isSend {
		return isend
	}
	return irecv
}

// failed returns err with what failed.
func (op operation) failed(err error) error {
	if op.isSend {
		return fmt.Errorf("mpi: %d bytes to rank %d: %w", len(op.mem), op.peer, err)
	}
	return fmt.Errorf("mpi: %d bytes from rank %d: %w", len(op.mem), op.peer, err)
}

// A tag tells messages of different purposes between two ranks apart. Each has an order of its own.
type tag uintptr

const (
	tagMessage tag = iota + 1
	tagStop
)

// failGrace is how long a program may go on after Fail: the error comes out at its next wait, and Run ends the job. A
// program that waits for something else is ended.
const failGrace = 5 * time.Second

var errClosed = errors.New("mpi: the transport is closed, as it is when the function of Run has returned")

// Rank returns the number of this process among those of the job, from 0.
func (t *Transport) Rank() int { return t.rank }

// Size returns how many ranks the job has.
func (t *Transport) Size() int { return t.size }

// Send begins to send msg to a rank, which may be this one. It doesn't wait. done is called once, when msg may be used
// again; it must not block. Msg is not on Go's heap, and belongs to the transport until then.
func (t *Transport) Send(to int, msg []byte, done func(error)) {
	t.begin(operation{tag: tagMessage, isSend: true, peer: to, mem: msg, done: done})
}

// Receive begins to receive len(buf) bytes from a rank, and is like Send in all else. A message of another length is an
// error.
func (t *Transport) Receive(from int, buf []byte, done func(error)) {
	t.begin(operation{tag: tagMessage, peer: from, mem: buf, done: done})
}

func (t *Transport) begin(op operation) {
	if op.peer < 0 || op.peer >= t.size {
		panic(fmt.Sprintf("mpi: there is no rank %d in a job of %d", op.peer, t.size))
	}
	t.mu.Lock()
	err := t.cause
	if err == nil && t.closed && op.tag == tagMessage {
		err = errClosed
	}
	if err == nil {
		t.begun = append(t.begun, op)
	}
	t.mu.Unlock()
	if err != nil {
		op.done(err)
		return
	}
	t.carrier.wake()
}

// Fail gives up because of err: all that is under way, and all that begins later, ends with it. The other ranks are
// ended when the program returns from Run's function, or after 5 seconds. A second call does nothing.
//
// A network card that writes to memory by itself may do so in memory of a Receive until the process ends.
func (t *Transport) Fail(err error) {
	if err == nil {
		err = errors.New("mpi: Fail without an error")
	}
	t.mu.Lock()
	isFirst := t.cause == nil
	if isFirst {
		t.cause = err
	}
	t.mu.Unlock()
	if isFirst {
		t.carrier.wake()
		time.AfterFunc(failGrace, func() { t.giveUp(err) })
	}
}

// Close waits until all that is under way has ended. What begins later fails. Run calls Close, so that programs need
// not. It returns the error of Fail, if there was one.
func (t *Transport) Close() error {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	t.carrier.wake()
	err := t.carrier.wait()
	if cause := t.failure(); cause != nil {
		return cause
	}
	return err
}

// failure returns why everything fails, or nil.
func (t *Transport) failure() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.cause
}

// take returns the operations that have begun since the last call.
func (t *Transport) take() (begun []operation, cause error, closed bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	begun, t.begun = t.begun, nil
	return begun, t.cause, t.closed
}
