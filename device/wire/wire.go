// Package wire carries messages between the processes of one job, which are called its ranks. A [Job] has two devices
// for each other rank: one that sends to it, and one that receives from it. Their commands, [device.Send] and
// [device.Receive], are messages between host memory here and host memory there. So messages are enqueued like all
// work, wait for what they send, and fail like all work.
//
// The package knows no network itself: a [Transport] does. Package wiretest has one for tests, whose ranks are in one
// process.
//
// All ranks run the same program and enqueue the same messages in the same order. Then messages never wait in a
// circle: the first one that has not ended waits for nothing but computation.
//
// # Failures
//
// A message that can't be computed where it is sent, because an operation there has failed, fails where it is
// received. The job goes on.
//
// A job is lost as a whole, and stays lost: if a rank neither sends nor takes what it should for
// [Options.Timeout], if the transport fails, if ranks do not run the same program, or by [Job.Fail]. Then all its
// devices are lost, with an error that wraps [device.ErrLost] and names the rank. It is the same error for all
// messages.
package wire

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asyncgen/asyncgen/device"
)

// Options are settings of a job. The zero Options are the defaults.
type Options struct {
	// Timeout is how long this rank waits for a message of another one, or for another one to take a message. Time
	// counts from when the message before it has ended, or from when this one has begun, if that is later. As ranks
	// may be at different places of the program, it has to be longer than any rank computes between two messages.
	// 0: DefaultTimeout. Negative: for ever.
	Timeout time.Duration
	// Program identifies the program, which has to be the same on all ranks. "": its file, its arguments and the
	// version of Go do.
	Program string
}

const defaultTimeout = time.Minute

// A Job is this process as one of several. Its methods may be called from several goroutines.
type Job struct {
	transport Transport
	model     model // nil: messages take no time by the clock of a model
	rank      int
	size      int
	timeout   time.Duration
	memory    *device.Allocator // of what the transport works on
	agreed    atomic.Uint64     // see Agree

	mu      sync.Mutex // guards the rest
	queues  map[end]*queue
	devices map[end]device.Device
	err     error // why the job is lost; nil: it is not
	closed  bool
}

// An end is one direction of the messages between this rank and a peer.
type end struct {
	peer   int
	isSend bool
}

// NewJob returns the job of a transport, which belongs to the job from now on. It waits for all ranks to come, and
// returns an error, on every rank that can be told, if they do not run the same program, or if one has not come
// within the timeout.
func NewJob(t Transport, o Options) (*Job, error) {
	timeout, err := o.timeout()
	if err != nil {
		return nil, err
	}
	j := &Job{transport: t, rank: t.Rank(), size: t.Size(), timeout: timeout, memory: device.NewPool(device.HostMemory, 0),
		queues: map[end]*queue{}, devices: map[end]device.Device{}}
	j.model, _ = t.(model)
	p, err := programOf(o.Program)
	if err == nil {
		err = j.agree(p)
	}
	if err != nil {
		err = fmt.Errorf("wire: %w", err)
		t.Fail(err)
		t.Close() // it has no other error
		return nil, err
	}
	jobs.Add(1)
	return j, nil
}

var jobs atomic.Int64 // that were made and not closed

// InUse reports whether this process has a job. Then loops don't run ahead of their tests: a message can't be taken
// back.
func InUse() bool { return jobs.Load() > 0 }

func (o Options) timeout() (time.Duration, error) {
	if o.Timeout != 0 {
		return o.Timeout, nil
	}
	return DefaultTimeout()
}

// DefaultTimeout returns what ASYNCGEN_RANK_TIMEOUT says, such as 30s or 10m, or a minute if that is not set. It
// returns an error if that is no time above 0.
func DefaultTimeout() (time.Duration, error) {
	v := os.Getenv("ASYNCGEN_RANK_TIMEOUT")
	if v == "" {
		return defaultTimeout, nil
	}
	d, err := time.ParseDuration(v)
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("wire: ASYNCGEN_RANK_TIMEOUT=%s: want a time such as 30s or 10m", v)
	}
	return d, nil
}

// Rank is the number of this process, from 0. What only one process should do, such as printing, rank 0 does.
func (j *Job) Rank() int { return j.rank }

// Output returns w on rank 0, and on other ranks a writer that drops everything: what all ranks print there appears
// once. If j is nil, as in a program that may have no job, it returns w.
func (j *Job) Output(w io.Writer) io.Writer {
	if j == nil || j.rank == 0 {
		return w
	}
	return io.Discard
}

// Size is the number of ranks.
func (j *Job) Size() int { return j.size }

// Agree notes something that has to be the same on all ranks, such as the number of shards. All ranks call it with the
// same text, at the same place among their messages. Later messages carry a hash of it. If a rank has called it with
// another text, the job is lost at the next message. Agree does not wait.
func (j *Job) Agree(s string) {
	h := fnv.New64a()
	binary.Write(h, binary.LittleEndian, j.agreed.Load()) // no error: a hash takes all
	h.Write([]byte(s))
	j.agreed.Store(h.Sum64())
}

// Agreed is a number that depends on all that was agreed on.
func (j *Job) Agreed() uint64 { return j.agreed.Load() }

// To returns the device that sends to a rank, another one.
func (j *Job) To(rank int) device.Device { return j.device(end{rank, true}) }

// From returns the device that receives from a rank, another one.
func (j *Job) From(rank int) device.Device { return j.device(end{rank, false}) }

func (j *Job) device(e end) device.Device {
	j.mu.Lock()
	defer j.mu.Unlock()
	d, ok := j.devices[e]
	if !ok {
		if e.peer < 0 || e.peer >= j.size || e.peer == j.rank {
			panic(fmt.Sprintf("wire: rank %d of %d has no messages with rank %d", j.rank, j.size, e.peer))
		}
		q := newQueue(j, e)
		if j.err != nil {
			q.lose()
		}
		q.closed = j.closed
		d = device.Wrap(fmt.Sprintf("rank:%d", e.peer), device.KindCPU, q)
		j.queues[e], j.devices[e] = q, d
	}
	return d
}

// Err returns why the job is lost, or nil.
func (j *Job) Err() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.err
}

// Fail says that this rank gives up because of err. The job is lost here, and elsewhere as soon as others notice.
func (j *Job) Fail(err error) {
	j.fail(fmt.Errorf("rank %d has given up: %w: %w", j.rank, device.ErrLost, err))
}

// fail makes all devices lost ones, because of err, which wraps device.ErrLost. Only the first call does something.
func (j *Job) fail(err error) {
	j.mu.Lock()
	if j.err != nil {
		j.mu.Unlock()
		return
	}
	j.err = err
	for _, q := range j.queues {
		q.lose()
	}
	j.mu.Unlock()
	j.transport.Fail(err)
}

// Close waits until all messages that were submitted have ended, on all ranks, and ends the job. It returns why
// the job is lost, if it is. Messages that are submitted later fail with device.ErrClosed, and lose the job, as other
// ranks wait for them.
//
// Engines may have messages that they have not submitted: call asyncrt.WaitAll before.
func (j *Job) Close() error {
	j.mu.Lock()
	again := j.closed
	j.closed = true
	var queues []*queue
	for _, q := range j.queues {
		queues = append(queues, q)
	}
	j.mu.Unlock()
	if again {
		return nil
	}
	defer jobs.Add(-1)
	for _, q := range queues {
		q.Close()
	}
	err := j.transport.Close()
	j.memory.Trim()
	if lost := j.Err(); lost != nil {
		return lost
	}
	return err
}
