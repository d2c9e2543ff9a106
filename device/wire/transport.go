package wire

import "time"

// A Transport carries messages between the ranks of a job. Its methods may be called from several goroutines.
type Transport interface {
	// Rank is the number of this process among the ranks, from 0; Size is how many ranks there are. Neither changes.
	Rank() int
	Size() int

	// Send begins to send msg to a rank, and Receive begins to receive exactly len(buf) bytes from one. Neither waits:
	// done is called once, on any goroutine and perhaps before the call returns, when the message has been sent or has
	// arrived and the memory may be used again, with an error or nil. It doesn't block. A message may be empty.
	//
	// Messages from one rank to another arrive in the order in which they were sent, and the calls of Receive for a
	// rank get them in the order of the calls. Between different pairs of ranks there is no order. Many of both may be
	// under way at once, and a receive that waits for its message holds up no send. A message that isn't as long as
	// the Receive that gets it is an error of that Receive.
	//
	// The memory belongs to the transport until done is called. It isn't on Go's heap, so C may keep its address.
	Send(to int, msg []byte, done func(error))
	Receive(from int, buf []byte, done func(error))

	// Fail ends the work of this rank. Messages that are under way and messages that begin later end with an error that
	// wraps err. Other ranks learn of it as soon as the transport can tell them. Fail does not wait, and a second call
	// does nothing. It may come after Close.
	Fail(err error)

	// Close ends the transport when all that is under way has ended. The other ranks are expected to close theirs. Its
	// error after Fail is that of Fail, or nil.
	Close() error
}

// A model is a Transport that says how long messages take by the clock of a model, see [device.VirtualClock]. All ranks
// are in one process.
type model interface {
	// Sends says that the next message to a rank has so many bytes, and can be sent from a time on. Arrives is when the
	// oldest message of a rank that Arrives has not told of arrives. It is called when that has really arrived.
	Sends(to, bytes int, from time.Duration)
	Arrives(from int) time.Duration
}
