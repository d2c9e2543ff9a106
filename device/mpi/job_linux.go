package mpi

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"github.com/asyncgen/asyncgen/device/internal/ffi"
	"github.com/asyncgen/asyncgen/device/wire"
)

// A job is the carrier of a job of several ranks. Its goroutine makes all calls of the library, but the first and the
// last ones. It waits in C, so that it takes no turn from the goroutines that compute.
type job struct {
	transport *Transport
	lib       *library

	fd uintptr // an eventfd, through which the goroutine is woken

	drained  chan struct{} // closed when the Transport is closed and nothing is under way, or when everything fails
	aborting atomic.Int32  // the status to abort with, or 0
	last     chan int      // the same, or finalizes

	polls polls // others call wakes

	// The rest belongs to the goroutine.
	active []operation // what is under way
	posts  *ffi.List   // the calls that begin operations
	sleep  *ffi.List   // the call that waits until somebody wakes the goroutine
}

// stopSignals are the signals of Stopping.
var stopSignals = []os.Signal{syscall.SIGTERM, syscall.SIGUSR1}

const (
	finalizes     = -1
	lastWordsTime = 200 * time.Millisecond
)

// openJob opens the library and initialises it. That waits for all ranks, as long as wire.NewJob does: by itself, the
// library would wait forever for one that has ended before, or never begins.
func openJob() (*Transport, error) {
	timeout, err := wire.DefaultTimeout()
	if err != nil {
		return nil, err
	}
	t := new(Transport)
	j := &job{transport: t, drained: make(chan struct{}), last: make(chan int, 1), posts: new(ffi.List), sleep: new(ffi.List)}
	t.carrier = j
	started := make(chan error, 1)
	go j.main(started)
	select {
	case err := <-started:
		return t, err
	case <-time.After(timeout):
		return nil, fmt.Errorf("not all ranks of the job have come to Run within %v", timeout)
	}
}

// main initialises and finalizes the library, which have to be on the same thread.
func (j *job) main(started chan<- error) {
	runtime.LockOSThread()
	err := j.start()
	started <- err
	if err != nil {
		return
	}
	go j.run()
	<-j.drained
	if status := <-j.last; status != finalizes {
		j.die(status)
	}
	if err := j.lib.call(finalize); err != nil {
		fmt.Fprintln(os.Stderr, "mpi:", err)
		os.Exit(1)
	}
	ffi.Do(j.lib.address[cExit], 0)
}

func (j *job) run() {
	for j.step() {
	}
	close(j.drained)
}

func (j *job) start() (err error) {
	if j.lib, err = openLibrary(); err != nil {
		return err
	}
	if j.transport.rank, j.transport.size, err = j.lib.start(); err != nil {
		return err
	}
	var code syscall.Errno
	if j.fd, _, code = syscall.RawSyscall(syscall.SYS_EVENTFD2, 0, syscall.O_CLOEXEC, 0); code != 0 {
		return fmt.Errorf("eventfd: %w", code)
	}
	j.polls.init(j.lib, j.fd)
	j.sleep.Add(j.lib.address[cPpoll], j.polls.pollfd, 1, 0, 0)
	return nil
}

// step begins what callers have asked for, waits until something happens, and finishes what has ended. It returns false
// when there is nothing left to do.
func (j *job) step() bool {
	j.polls.sleeps() // whoever comes after take writes to fd
	begun, cause, closed := j.transport.take()
	switch {
	case j.aborting.Load() != 0:
		j.die(int(j.aborting.Load()))
	case cause != nil:
		for _, op := range append(j.active, begun...) {
			op.done(cause)
		}
		return false
	case len(begun) > 0:
		j.post(begun)
	case len(j.active) == 0 && closed:
		return false
	}
	var ended int
	var err error
	if len(j.active) > 0 {
		ended, err = j.polls.run(len(j.active))
	} else {
		j.sleep.Run(0)
	}
	if j.polls.isWoken() {
		var wakes [8]byte
		syscall.Read(int(j.fd), wakes[:])
	}
	if err != nil {
		j.transport.Fail(fmt.Errorf("mpi: %w", err))
	}
	if ended > 0 {
		j.finish(ended)
		runtime.Gosched() // those who wait for what has ended go on here, as C would keep the processor for a while
	}
	return true
}

// post begins operations, in their order.
func (j *job) post(begun []operation) {
	first := len(j.active)
	j.active = append(j.active, begun...)
	j.polls.grow(len(j.active))
	j.posts.Reset()
	for i, op := range begun {
		j.posts.Add(j.lib.address[op.fn()], addressOf(op.mem), uintptr(len(op.mem)), typeByte, uintptr(op.peer), uintptr(op.tag), commWorld, j.polls.request(first+i))
	}
	for i := 0; ; i++ {
		if i = j.posts.Run(i); i == len(begun) {
			return
		}
		j.transport.Fail(begun[i].failed(j.lib.error(begun[i].fn(), j.posts.At(i).Status())))
		j.polls.requests[first+i] = requestNull
	}
}

// finish calls done for operations that have ended, of the number that Testsome has told.
func (j *job) finish(ended int) {
	type result struct {
		op  operation
		err error
	}
	results := make([]result, ended)
	for i := range results {
		op := j.active[j.polls.index(i)]
		results[i] = result{op, j.polls.result(i, op)}
	}
	at := -1
	j.active = slices.DeleteFunc(j.active, func(operation) bool {
		at++
		return j.polls.requests[at] == requestNull
	})
	j.polls.compact(at + 1)
	for _, r := range results {
		r.op.done(r.err)
	}
}

// wake implements carrier.
func (j *job) wake() {
	if j.polls.wakes() {
		one := uint64(1)
		syscall.Write(int(j.fd), unsafe.Slice((*byte)(unsafe.Pointer(&one)), 8))
	}
}

func (j *job) wait() error {
	<-j.drained
	return nil
}

// end finalizes the library, which waits for the other ranks, and ends the process as C does.
func (j *job) end() {
	j.last <- finalizes
	select {}
}

// abort ends the job. A goroutine that doesn't come out of the library can't: then this process ends, and the
// launcher ends the others.
func (j *job) abort(status int) {
	j.aborting.Store(int32(status))
	j.wake()
	select {
	case j.last <- status:
	default:
	}
	time.Sleep(failGrace)
	os.Exit(status)
}

// die is abort on a goroutine that may call the library.
func (j *job) die(status int) {
	awaitReader()
	ffi.Do(j.lib.address[abort], commWorld, uintptr(status))
	os.Exit(status)
}

// awaitReader waits until the launcher has read our last words from the pipe that is our standard error, a second at
// most, and has had time to pass them on. When a launcher is told to abort, it drops what it hasn't read: without this,
// 4 words of 90 were lost.
func awaitReader() {
	const fionread = 0x541B
	for range 50 {
		var unread int32
		syscall.Syscall(syscall.SYS_IOCTL, uintptr(syscall.Stderr), fionread, uintptr(unsafe.Pointer(&unread)))
		if unread == 0 {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	time.Sleep(lastWordsTime)
}
