package wire

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sort"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/asyncgen/asyncgen/device"
)

// A queue is the Backend of the messages with one other rank in one direction. The transport works on copies: a command
// that sends is done when its message has been copied, and one that receives when its message has arrived and has been
// copied.
//
//	messages   those that have not ended, the oldest first; the first `begun` of them were given to the transport
//
// A goroutine, which exists while there are messages, begins them in order and ends them in order.
type queue struct {
	job *Job
	end

	done   atomic.Uint64 // how many commands are done
	isLost atomic.Bool   // written with mu held

	mu        sync.Mutex // guards what follows, and changes of done and isLost
	messages  []*message
	begun     int
	bytes     int64 // of the messages that have begun
	submitted uint64
	failed    []failure // in the order of tickets
	waiters   []waiter
	running   bool // the goroutine runs
	closed    bool

	wake chan struct{} // something has changed that the goroutine waits for
}

// A message is the command with a ticket, and what the transport works on: the elements, then a trailer.
type message struct {
	ticket uint64
	cmd    device.Command
	size   int            // of the elements, in bytes
	buf    *device.Buffer // nil: it has not begun, or was given back
	ended  bool           // the transport does not use buf any more
	err    error          // of the transport
}

// A waiter waits for a ticket, or for there being no messages.
type waiter struct {
	ticket  uint64 // allEnded: until there are no messages
	reached chan struct{}
}

const allEnded = ^uint64(0)

type failure struct {
	ticket uint64
	err    error
}

// A trailer ends each message: what it is, as Imm[0] of the command says, and whether there are elements at all.
const (
	trailer  = 16
	isThere  = 1
	isFailed = 2 // what was to be sent could not be computed
)

// Messages with at most so many bytes, and at most so many messages, are with the transport at once, but always two: a
// link needs no more to be busy all the time. All of it is memory in use, and the first touch of that costs more than a
// message: with 64 MiB, that took a rank as long as a step. A device lends nothing larger than lentBytes.
const (
	windowBytes    = 8 << 20
	windowMessages = 64
	lentBytes      = 64 << 20
)

const maxFailures = 1 << 16 // the oldest are dropped

func newQueue(j *Job, e end) *queue { return &queue{job: j, end: e, wake: make(chan struct{}, 1)} }

// Caps implements device.Backend.
func (q *queue) Caps() device.Caps {
	return device.Caps{HostMemory: true, BatchInvariant: true, Description: "messages " + q.direction(), Ahead: 2 * windowBytes}
}

func (q *queue) direction() string {
	if q.isSend {
		return fmt.Sprintf("to rank %d", q.peer)
	}
	return fmt.Sprintf("from rank %d", q.peer)
}

// Alloc implements device.Backend. Nobody needs much: messages are in memory of the host.
func (q *queue) Alloc(bytes int64) (*device.Buffer, error) {
	if q.isLost.Load() {
		return nil, q.job.Err()
	}
	if bytes < 0 || bytes > lentBytes {
		return nil, fmt.Errorf("wire: %d bytes: %w", bytes, device.ErrOutOfMemory)
	}
	return device.HostBuffer(bytes), nil
}

// Free implements device.Backend.
func (q *queue) Free(*device.Buffer) {}

// Submit implements device.Backend. It waits for nothing.
func (q *queue) Submit(cmds []device.Command) (device.Ticket, error) {
	want := device.Receive
	if q.isSend {
		want = device.Send
	}
	for i := range cmds {
		if k := cmds[i].Kernel; k.Code != want {
			return 0, fmt.Errorf("wire: kernel %s: %w", k.Name, device.ErrUnsupported)
		}
		if b := cmds[i].Buf[q.operand()]; b != nil && b.Ptr == nil {
			return 0, fmt.Errorf("wire: kernel %s: its operand is not host memory", cmds[i].Kernel.Name)
		}
	}
	ticket, err := q.add(cmds)
	if errors.Is(err, device.ErrClosed) && len(cmds) > 0 { // the other rank waits for them
		q.job.fail(fmt.Errorf("rank %d has a message %s after Job.Close, before which asyncrt.WaitAll is to be called: %w", q.job.rank, q.direction(), device.ErrLost))
	}
	return ticket, err
}

// add adds messages to the queue.
func (q *queue) add(cmds []device.Command) (device.Ticket, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.isLost.Load():
		return 0, q.job.err // it was set before, and stays
	case q.closed:
		return 0, fmt.Errorf("wire: %w", device.ErrClosed)
	}
	for i := range cmds {
		q.submitted++
		q.messages = append(q.messages, &message{ticket: q.submitted, cmd: cmds[i], size: cmds[i].N * cmds[i].Kernel.Out.Size()})
	}
	if len(q.messages) > 0 && !q.running {
		q.running = true
		go q.run()
	}
	q.ring()
	return device.Ticket(q.submitted), nil
}

// operand is the operand of commands that is a message.
func (q *queue) operand() int {
	if q.isSend {
		return 1
	}
	return 0
}

func (q *queue) ring() {
	select {
	case q.wake <- struct{}{}:
	default: // it is rung
	}
}

// run is the goroutine of the queue. It ends when there are no messages, or the job is lost.
func (q *queue) run() {
	var oldest *message // that time counts for
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		q.mu.Lock()
		err := q.finish()
		var next *message
		if err == nil {
			next, err = q.next()
		}
		if err != nil {
			q.mu.Unlock()
			q.job.fail(err)
			q.mu.Lock()
		}
		if q.running = !q.isLost.Load() && len(q.messages) > 0; !q.running {
			q.mu.Unlock()
			return
		}
		first := q.messages[0]
		q.mu.Unlock()
		if first != oldest {
			oldest = first
			timer.Reset(q.job.timeout)
		}
		if next != nil {
			q.begin(next)
			continue
		}
		expired := timer.C
		if q.job.timeout < 0 {
			expired = nil
		}
		select {
		case <-q.wake:
		case <-expired:
			q.job.fail(q.overdue())
		}
	}
}

func (q *queue) overdue() error {
	if q.isSend {
		return fmt.Errorf("rank %d has taken no message of rank %d for %v: %w", q.peer, q.job.rank, q.job.timeout, device.ErrLost)
	}
	return fmt.Errorf("rank %d has sent nothing to rank %d for %v: %w", q.peer, q.job.rank, q.job.timeout, device.ErrLost)
}

// next returns the next message to begin, with memory, or nil if there is none, or enough have begun. mu is held.
func (q *queue) next() (*message, error) {
	if q.isLost.Load() || q.begun == len(q.messages) {
		return nil, nil
	}
	m := q.messages[q.begun]
	if bytes := int64(m.size + trailer); q.begun > 1 && (q.begun == windowMessages || q.bytes+bytes > windowBytes) {
		return nil, nil
	}
	buf, err := q.job.memory.Alloc(int64(m.size + trailer))
	if err != nil {
		return nil, fmt.Errorf("memory for a message: %w: %w", device.ErrLost, err)
	}
	m.buf = buf
	q.begun++
	q.bytes += buf.Bytes
	if !q.isSend {
		return m, nil
	}
	data, state := m.data(), uint64(isFailed)
	if in := m.cmd.Buf[1]; in != nil {
		state = isThere
		copy(data, elements(in, m.cmd.Off[1]*m.cmd.Kernel.Out.Size(), m.size))
	} else {
		clear(data[:m.size])
	}
	binary.LittleEndian.PutUint64(data[m.size:], m.cmd.Imm[0])
	binary.LittleEndian.PutUint64(data[m.size+8:], state)
	if stamp := m.cmd.Stamp; q.job.model != nil && stamp != nil {
		q.job.model.Sends(q.peer, m.size, stamp.Issued)
		stamp.Finish(stamp.Issued)
	}
	q.complete(m, nil)
	return m, nil
}

// begin gives m to the transport.
func (q *queue) begin(m *message) {
	done := func(err error) { q.ended(m, err) }
	if q.isSend {
		q.job.transport.Send(q.peer, m.data(), done)
	} else {
		q.job.transport.Receive(q.peer, m.data(), done)
	}
}

// ended is called when the transport does not use m any more.
func (q *queue) ended(m *message, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	m.ended, m.err = true, err
	if q.isLost.Load() {
		q.giveBack(m)
		return
	}
	q.ring()
}

// finish takes away the messages that have ended, in order. It returns why the job is lost, if it is. mu is held.
func (q *queue) finish() error {
	if q.isLost.Load() {
		return nil
	}
	for q.begun > 0 && q.messages[0].ended {
		m := q.messages[0]
		if m.err != nil {
			if errors.Is(m.err, device.ErrLost) {
				return m.err
			}
			return fmt.Errorf("messages with rank %d: %w: %w", q.peer, device.ErrLost, m.err)
		}
		if !q.isSend {
			if err := q.take(m); err != nil {
				return err
			}
		}
		q.bytes -= m.buf.Bytes
		q.giveBack(m)
		q.messages[0] = nil
		q.messages = q.messages[1:]
		q.begun--
	}
	if len(q.messages) == 0 {
		q.messages = nil
	}
	q.tell()
	return nil
}

// take copies what has arrived to where it belongs. mu is held.
func (q *queue) take(m *message) error {
	data := m.data()
	if stamp := m.cmd.Stamp; q.job.model != nil && stamp != nil {
		stamp.Finish(max(stamp.Issued, q.job.model.Arrives(q.peer)))
	}
	what, state := binary.LittleEndian.Uint64(data[m.size:]), binary.LittleEndian.Uint64(data[m.size+8:])
	switch {
	case what != m.cmd.Imm[0] || state != isThere && state != isFailed:
		return fmt.Errorf("rank %d sends something else than rank %d asks for, so they do not do the same (batches, models or calls differ): %w", q.peer, q.job.rank, device.ErrLost)
	case state == isFailed:
		q.complete(m, fmt.Errorf("rank %d could not send it: an operation has failed there, or before", q.peer))
		return nil
	}
	if out := m.cmd.Buf[0]; out != nil {
		copy(elements(out, m.cmd.Off[0]*m.cmd.Kernel.Out.Size(), m.size), data)
	}
	q.complete(m, nil)
	return nil
}

// complete notes that the command of m is done. mu is held.
func (q *queue) complete(m *message, err error) {
	if err != nil {
		if len(q.failed) == maxFailures {
			q.failed = append(q.failed[:0], q.failed[maxFailures/2:]...)
		}
		q.failed = append(q.failed, failure{m.ticket, err})
	}
	m.cmd = device.Command{} // keeps no buffer alive
	q.done.Store(m.ticket)
	q.tell()
}

// tell wakes those whose ticket is done. mu is held.
func (q *queue) tell() {
	lost := q.isLost.Load()
	q.waiters = slices.DeleteFunc(q.waiters, func(w waiter) bool {
		if !lost && w.ticket > q.done.Load() && !(w.ticket == allEnded && len(q.messages) == 0) {
			return false
		}
		close(w.reached)
		return true
	})
}

// giveBack frees the memory of m. mu is held.
func (q *queue) giveBack(m *message) {
	if m.buf != nil {
		q.job.memory.Free(m.buf)
		m.buf = nil
	}
}

// lose makes the device a lost one: the job is. The memory of messages that the transport still has is given back when
// it says so.
func (q *queue) lose() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.isLost.Store(true)
	for _, m := range q.messages {
		m.cmd = device.Command{}
		if m.ended {
			q.giveBack(m)
		}
	}
	q.tell()
	q.ring()
}

// Done implements device.Backend.
func (q *queue) Done(t device.Ticket) bool { return uint64(t) <= q.done.Load() || q.isLost.Load() }

// Wait implements device.Backend.
func (q *queue) Wait(ctx context.Context, t device.Ticket) error {
	q.mu.Lock()
	if uint64(t) > q.submitted && !q.isLost.Load() {
		q.mu.Unlock()
		return fmt.Errorf("wire: ticket %d was never given out", t)
	}
	return q.waitLocked(ctx, uint64(t))
}

// waitLocked waits for a ticket, or with allEnded until there are no messages, or the job is lost. mu is held, and
// released.
func (q *queue) waitLocked(ctx context.Context, t uint64) error {
	for {
		switch {
		case t <= q.done.Load(), t == allEnded && len(q.messages) == 0:
			q.mu.Unlock()
			return nil
		case q.isLost.Load():
			q.mu.Unlock()
			return q.job.Err()
		}
		w := waiter{t, make(chan struct{})}
		q.waiters = append(q.waiters, w)
		q.mu.Unlock()
		select {
		case <-w.reached:
		case <-ctx.Done():
			return ctx.Err()
		}
		q.mu.Lock()
	}
}

// Failure implements device.Backend.
func (q *queue) Failure(t device.Ticket) error {
	lost := q.isLost.Load() // first: from then on, no more commands are done
	if uint64(t) > q.done.Load() {
		if lost {
			return q.job.Err()
		}
		return nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	i := sort.Search(len(q.failed), func(i int) bool { return q.failed[i].ticket >= uint64(t) })
	if i < len(q.failed) && q.failed[i].ticket == uint64(t) {
		return q.failed[i].err
	}
	return nil
}

// Close implements device.Backend. It waits until all messages have ended.
func (q *queue) Close() error {
	q.mu.Lock()
	q.closed = true
	return q.waitLocked(context.Background(), allEnded)
}

// data is the memory of m, the trailer included.
func (m *message) data() []byte { return elements(m.buf, 0, m.size+trailer) }

// elements is n bytes of host memory, from one on.
func elements(b *device.Buffer, from, n int) []byte {
	if n == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Add(b.Ptr, from)), n)
}
