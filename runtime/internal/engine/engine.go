// Package engine is the asynchronous execution engine: it takes operations in program order,
// returns at once, and runs each operation when its inputs are there. It knows buffers, devices and
// errors; it knows no tensors and no gradients.
//
// The operations of one device form a stream, a ring of records (stream.go). A device that runs on
// the program's own threads has a flow: the engine orders operations by the buffers they read and
// write (flow.go), and workers run independent ones in parallel (worker.go). A device with a queue
// of its own gets its operations in program order (queue.go). Idle goroutines sleep (park.go).
// Streams meet at copies (link.go). An operation on a few numbers whose inputs are there runs
// inside the call that enqueues it, because that is cheaper than to enqueue it (tiny.go).
//
// A goroutine that waits helps to execute, but only the operations that it waits for (wait.go). A
// producer helps when too much is in flight (bounds.go). Waits are counted by source line
// (stats.go, site.go) and may be forbidden (sync.go). Marks record when operations had finished
// (mark.go).
//
// An operation that fails spoils its outputs; dependents are skipped and carry the same first cause
// (errors.go). On a lost device everything is skipped (lost.go). Operations that a loop enqueues
// past a test can be taken back (guess.go). An operation may belong to a scope, which can be waited
// for, and can end, apart from everything else (scope.go).
//
// Memory is allocated when an operation runs, and given back when the collector finds that nothing
// refers to it (memory.go). An input that is about to be released may give its memory to the output
// (donate.go).
//
// Devices may have the clock of a model (virtual.go). For tests there are modes without
// parallelism: one executes at the call (naive.go), one in a random order (shuffle.go).
//
// The results, and the errors at each point of observation, depend on the program alone: not on the
// number of workers, the bounds or the mode.
package engine

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/internal/bubble"
)

// A Mode says when operations run.
type Mode uint8

const (
	// Async runs operations when their inputs are there. Enqueue returns at once; it may itself run
	// an operation that takes less time than enqueueing (tiny.go).
	Async Mode = iota + 1
	// Naive runs each operation before Enqueue returns, for debugging: same results, same errors.
	Naive
	// Shuffle runs operations one at a time, in a random order: Options.Seed chooses it among all
	// orders that give the same results and errors. It finds code that relies on more than the
	// engine promises. A program of one goroutine is executed in the same order each time. Like
	// Naive, Shuffle may run operations before Enqueue returns; it runs nothing while nobody
	// enqueues, waits or asks.
	Shuffle
)

// Options configure an Engine. The zero Options are the defaults.
type Options struct {
	// 0: as ASYNCGEN_ENGINE says ("async", "naive" or "shuffle:SEED", which sets Seed), or else Async
	Mode Mode
	// Seed chooses the order of mode Shuffle. Other modes do not look at it.
	Seed uint64
	// Workers is how many goroutines execute the operations of each synchronous device. 0: as many
	// as its Caps say, or else GOMAXPROCS.
	Workers int
	// operations enqueued and not yet retired, for each device, rounded up to a power of two; 0: 4096
	Ring int
	// Report names the file to write a report of waits to, see device/report; "": none.
	Report string
	// Trace names the file to write a trace to, see Trace; "": none. %p is the number of the process.
	Trace string
	// see SetLimit; 0: as ASYNCGEN_LIMIT says, or else a fraction of the memory; negative: unbounded
	MaxBytes int64
	// Tiny says which operations are run by Enqueue in mode Async.
	Tiny TinyPolicy
	// goroutines block on channels of the engine and never in the kernel, as testing/synctest needs
	// it, see parker
	Channels bool
}

// An Engine executes operations on any number of devices. Its methods may be
// called from several goroutines at once; program order is then the order in
// which the calls to Enqueue took effect.
type Engine struct {
	mode    Mode
	workers int
	ring    int
	looks   int      // see looksOf
	threads *threads // see parker
	// virtual is the clock of the first device that has one; nil: times are real. Once set, it
	// stays.
	virtual atomic.Pointer[device.VirtualClock]

	tiny TinyPolicy

	relayBytes int64 // size of each part of a copy through host memory; tests make it smaller

	// streams and all are lists that are never changed: with mu held, a longer copy takes the place
	// of the old one. So readers need no lock.
	//
	// streams is in the order of device.Device.Index, and has nil for devices that were not used.
	// all is in the order in which the streams were made, host among them.
	streams atomic.Pointer[[]*stream]
	// host is the stream of the staging memory of copies. It runs nothing.
	host   atomic.Pointer[stream]
	all    atomic.Pointer[[]*stream] // every stream that exists, host among them
	mu     sync.Mutex                // guards the making of streams, made, and changes of closed
	made   uint16                    // streams made so far
	closed atomic.Bool
	// crossing is held while the two ends of a link are enqueued, see link.go. A producer may stall
	// for room with crossing held: what it waits for needs no new links.
	crossing turn
	naive    turn      // in mode Naive: held while an operation runs
	shuffler *shuffler // in mode Shuffle

	limit atomic.Int64 // bound on inFlight; 0: none
	// inFlight is how many bytes are written by operations that have not finished. It is added to
	// before an operation is enqueued, and executors subtract in batches: so it may be too high,
	// until they settle, but never too low.
	inFlight atomic.Int64
	peak     atomic.Int64  // largest inFlight so far
	epoch    atomic.Uint64 // see order
	stalled  stalled
	relief   relief
	bulks    atomic.Int32 // calls of Bulk that have not returned

	totals     totals
	ranNow     atomic.Uint64 // operations executed in mode Naive
	skippedNow atomic.Uint64 // operations skipped in mode Naive
	// gates counts the records that are no operations: gates and Releases. Stats subtracts them.
	gates    atomic.Uint64
	report   reporter
	syncs    syncs
	watcher  watcher
	tracer   tracer
	guesses  guesses
	captures captures
	plans    planStats
	leaving  leaving
}

// New returns an engine without work. Unknown values in the environment panic. A
// report that can't be written is a message on stderr.
func New(o Options) *Engine {
	e := &Engine{mode: o.Mode, tiny: o.Tiny, workers: o.Workers, ring: 1, looks: looksOf(runtime.GOMAXPROCS(0)), relayBytes: relayBytes}
	if e.mode == 0 {
		e.mode, o.Seed = modeFromEnv()
	}
	if !o.Channels {
		e.threads = &allThreads
	}
	e.crossing.init(o.Channels)
	e.naive.init(o.Channels)
	if e.mode == Shuffle {
		e.shuffler = newShuffler(e, o.Seed)
	}
	if o.Ring <= 0 {
		o.Ring = 4096
	}
	for e.ring < o.Ring {
		e.ring *= 2
	}
	e.ring = max(e.ring, 2)
	if e.mode == Naive {
		e.ring = 2 // it stays empty
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = limitFromEnv()
	}
	e.limit.Store(max(o.MaxBytes, 0))
	e.stalled.cond.L = &e.stalled.mu
	e.streams.Store(new([]*stream))
	e.all.Store(new([]*stream))
	e.report.open(o.Report)
	e.openTrace(o.Trace)
	return e
}

// A settingError is what New panics with if the environment is wrong.
type settingError string

func (e settingError) Error() string { return "engine: " + string(e) }

// modeFromEnv returns what ASYNCGEN_ENGINE says: the mode and, for Shuffle, the seed. It panics
// with a settingError if that is no mode.
func modeFromEnv() (m Mode, seed uint64) {
	switch v := os.Getenv("ASYNCGEN_ENGINE"); v {
	case "", "async":
		return Async, 0
	case "naive":
		return Naive, 0
	default:
		digits, ok := strings.CutPrefix(v, "shuffle:")
		seed, err := strconv.ParseUint(digits, 10, 64)
		if !ok || err != nil {
			panic(settingError(fmt.Sprintf("ASYNCGEN_ENGINE=%q: want async, naive or shuffle:SEED, where SEED is a number", v)))
		}
		return Shuffle, seed
	}
}

// limitFromEnv returns what ASYNCGEN_LIMIT says, or defaultLimit if it is not set. It panics with a
// settingError if that is no number of bytes.
func limitFromEnv() int64 {
	v := os.Getenv("ASYNCGEN_LIMIT")
	if v == "" {
		return defaultLimit()
	}
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil || n < 0 {
		panic(settingError(fmt.Sprintf("ASYNCGEN_LIMIT=%q: want a number of bytes, 0 for no bound", v)))
	}
	return n
}

var theDefault atomic.Pointer[Engine] // nil: not made yet

// makeDefault sets theDefault. Wrong settings are a mistake of whoever has set them, not of the
// program: they end it with a message and no stack.
var makeDefault = sync.OnceFunc(func() {
	defer func() {
		switch v := recover().(type) {
		case nil:
		case settingError:
			device.Misconfigured(v)
		default:
			panic(v)
		}
	}()
	theDefault.Store(New(Options{Report: os.Getenv("ASYNCGEN_REPORT"), Trace: os.Getenv("ASYNCGEN_TRACE")}))
})

// Default returns the engine of the process, made at the first call. It writes a report if
// ASYNCGEN_REPORT names a file, and a trace if ASYNCGEN_TRACE does.
func Default() *Engine {
	if e := theDefault.Load(); e != nil { // a load takes a nanosecond; each operation asks twice
		return e
	}
	makeDefault()
	return theDefault.Load()
}

// Mode returns the mode of e.
func (e *Engine) Mode() Mode { return e.mode }

// An Op is a request to run a command. Enqueue copies it.
type Op struct {
	// Cmd is what to run. Buf is ignored: the engine knows the buffers from Operands.
	Cmd device.Command
	// Operands are the storages that Cmd works on, in the order of Cmd.Buf: the output, then the
	// inputs; the first nil ends the list. All live on the device of the first. A storage that is
	// both read and written is listed twice.
	//
	// The operation belongs to the scope that Operands[0] was made in, if any: once the scope has
	// ended, the operation does not begin.
	Operands [device.MaxOperands]*Storage
	// Writes has bit i set if Operands[i] is written, and written as a whole; 0 means only the
	// first. The other operands are read.
	Writes uint8
	// Reads are further storages that Cmd reads, on the same device: those of Cmd.Args.Parts. The
	// engine sets the Buf of each part when Cmd is about to run. None of them is written. The slice
	// belongs to the engine from now on.
	Reads []*Storage
	// Cost is a guess of the nanoseconds that Cmd takes. It decides who executes the operation and
	// when, and has no influence on the result.
	Cost int64
	// Shapes are for messages, and tell a Plan what has no elements, one for each operand or nil. They
	// are kept until the operation has finished.
	Shapes [device.MaxOperands]*device.Shape

	run *run // of a Plan, instead of Operands and Writes; nil: it is an operation
}

// The panics for mistakes of the caller.
const (
	mixedDevices   = "engine: operands of one operation on different devices"
	usedAfterClose = "engine: used after Close"
)

// Enqueue puts op behind everything enqueued so far and returns. It waits only when a bound is
// reached (see Options.Ring and SetLimit); then it helps to execute until there is room. The
// operation runs as if at this place of the program: it sees what earlier operations have written
// and nothing of later ones.
//
// Goroutines that share a storage must see to it that none of them enqueues a write of the storage
// while another enqueues a use of it.
func (e *Engine) Enqueue(op *Op) {
	st := op.Operands[0].st
	// First of all: an operation that the call computes pays neither for the caller's line nor for
	// the checks below. computes itself declines what they would refuse.
	if st.computes(op) {
		return
	}
	pc := callerPC()
	writes := op.Writes
	if writes == 0 {
		writes = 1
	}
	for _, s := range op.Operands {
		if s != nil && s.st != st {
			panic(mixedDevices)
		}
	}
	for _, s := range op.Reads {
		if s.st != st {
			panic(mixedDevices)
		}
	}
	if c := e.Capturing(); c != nil {
		c.note(st, op, writes, pc)
	}
	e.enqueueOn(st, op, writes, pc)
}

// enqueueOn enqueues op on st. The caller has checked op. The order of the steps matters: the bytes
// are counted as in flight before push publishes the operation, since an executor may finish it,
// and subtract them, at once.
func (e *Engine) enqueueOn(st *stream, op *Op, writes uint8, pc uintptr) {
	if e.watcher.on.Load() {
		e.watcher.tell(op, writes, pc)
	}
	if e.mode == Naive {
		st.runNow(op, writes, pc)
		return
	}
	if s := op.Operands[0].in.Scope(); s != nil {
		s.Err() // the goroutine that executes may be unable to ask, see device.WithContext
	}
	bytes := op.written(writes)
	st.count(bytes)
	e.admit(bytes, op, pc)
	st.push(op, writes, pc, bytes, nil, e.guess())
	if e.mode == Shuffle {
		e.outside(e.shuffler.enqueued)
	}
}

// outside calls f outside of any bubble of testing/synctest and returns when f has returned. The
// goroutines, waits and timers of the engine must belong to no bubble. An engine with
// Options.Channels lives in one bubble altogether, so it calls f directly.
func (e *Engine) outside(f func()) {
	if e.onChannels() {
		f()
		return
	}
	bubble.Outside(f)
}

// written returns how many bytes op writes.
func (op *Op) written(writes uint8) int64 {
	var bytes int64
	for i, s := range op.Operands {
		if s != nil && writes>>i&1 != 0 {
			bytes += s.own.Bytes
		}
	}
	return bytes
}

// WaitAll waits until all operations enqueued before have finished, helping to execute them. It
// returns the errors of the operations that failed since the last WaitAll, whether a Wait has
// returned them or not, joined in program order: at most 1,024, and how many more there were. An
// operation that was skipped because an input was spoiled is no failure of its own. After the
// failures comes a *LeftError for each speculation and each backlog that nobody can end any more.
// If ctx ends first, WaitAll returns its error and forgets nothing.
func (e *Engine) WaitAll(ctx context.Context) error {
	e.mustNotCapture(refusedWait)
	return e.drain(ctx, e.allStreams(), "WaitAll", callerPC(), e.takeLeft)
}

// Synchronize is WaitAll for the operations of one device. If d is in a scope, Synchronize waits
// for the operations of the scope, on all devices, instead; if the scope's context has ended, its
// cause is among the errors.
func (e *Engine) Synchronize(ctx context.Context, d device.Device) error {
	e.mustNotCapture(refusedWait)
	if s := d.Scope(); s != nil {
		return e.drainScope(ctx, s, "Synchronize", callerPC())
	}
	return e.drain(ctx, e.streamsOf([]device.Device{d}), "Synchronize", callerPC(), nil)
}

// SetLimit bounds the bytes that are written by operations in flight, which are enqueued and not yet
// finished: Enqueue waits rather than exceed the bound. An operation that writes more than the
// bound by itself is enqueued when nothing else is in flight. 0 means no bound.
func (e *Engine) SetLimit(bytes int64) {
	e.limit.Store(max(bytes, 0))
	e.stalled.wake()
}

// Limit returns the bound that SetLimit has set, or that the engine began with.
func (e *Engine) Limit() int64 { return e.limit.Load() }

// Close waits for all work and stops the workers. It also waits for work that waits left behind
// when their contexts ended. Close returns the errors that no WaitAll has returned. Storages keep
// their contents and errors, and can be read and released; enqueueing anything panics. Closing
// again does nothing.
func (e *Engine) Close() error {
	// Deputies come first: until they have ended, they may still enqueue.
	e.outside(e.leaving.await)
	var err error
	AllowSync(func() { err = e.WaitAll(context.Background()) })
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed.Load() {
		return err
	}
	e.closed.Store(true)
	e.outside(func() {
		for _, st := range e.allStreams() {
			st.close()
		}
	})
	e.report.close()
	e.tracer.close()
	return err
}

// onChannels reports whether goroutines that wait block on channels, see Options.Channels.
func (e *Engine) onChannels() bool { return e.threads == nil }

// stream returns the stream of d, made at the first use.
func (e *Engine) stream(d device.Device) *stream {
	i := d.Index()
	if all := *e.streams.Load(); i < len(all) && all[i] != nil {
		return all[i]
	}
	return e.makeStream(d)
}

// makeStream is stream for a device that seems to have none. It looks again with mu held: of
// several goroutines that use a new device at the same time, one makes the stream. It panics if the
// engine is closed.
func (e *Engine) makeStream(d device.Device) *stream {
	e.mu.Lock()
	defer e.mu.Unlock()
	old := *e.streams.Load()
	i := d.Index()
	if i < len(old) && old[i] != nil {
		return old[i]
	}
	if e.closed.Load() {
		panic(usedAfterClose)
	}
	all := make([]*stream, max(len(old), i+1))
	copy(all, old)
	e.outside(func() { all[i] = e.addLocked(newStream(e, d.Unscoped(), d.Backend())) })
	e.streams.Store(&all)
	return all[i]
}

// hostStream returns the stream of memory that belongs to no device.
func (e *Engine) hostStream() *stream {
	if st := e.host.Load(); st != nil {
		return st
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.host.Load() == nil {
		e.host.Store(e.addLocked(newStream(e, device.Device{}, nil)))
	}
	return e.host.Load()
}

// allStreams lists the streams that exist. The caller must not change the list.
func (e *Engine) allStreams() []*stream { return *e.all.Load() }

// streamsOf lists the streams of devices.
func (e *Engine) streamsOf(devices []device.Device) (streams []*stream) {
	for _, d := range devices {
		streams = append(streams, e.stream(d))
	}
	return streams
}

// poll retires what devices with queues have finished; in mode Shuffle it makes a move for each stream.
// It asks all devices, since an operation on one may depend on a copy from another.
func (e *Engine) poll() {
	isQueue := func(st *stream) bool { return !st.isSynchronous }
	if e.mode != Shuffle && !slices.ContainsFunc(e.allStreams(), isQueue) {
		return
	}
	e.outside(func() {
		for _, st := range e.allStreams() {
			st.exec.poll()
		}
	})
}

// addLocked appends st to the list of all streams. mu is held.
func (e *Engine) addLocked(st *stream) *stream {
	all := append(slices.Clone(e.allStreams()), st)
	e.all.Store(&all)
	return st
}

// order returns a stamp for an operation of st. The operations of all streams, sorted by stamp and
// then by place in the stream, are in program order. The stamp is a count of changes from one
// stream to another and, in the low 16 bits, the stream that was changed to; so it costs one load
// as long as a program stays on one device.
//
//	operation of stream   1   1   2   2   1
//	count of changes      1   1   2   2   3
//
// If the swap fails, another goroutine has changed the stream, and order looks again.
func (e *Engine) order(st *stream) uint64 {
	for {
		now := e.epoch.Load()
		if now&0xffff == uint64(st.id) {
			return now
		}
		next := (now>>16+1)<<16 | uint64(st.id)
		if e.epoch.CompareAndSwap(now, next) {
			return next
		}
	}
}

// workersOf returns how many workers the flow of a synchronous backend has.
func (e *Engine) workersOf(b device.Backend) int {
	if e.workers > 0 {
		return e.workers
	}
	if n := b.Caps().Workers; n > 0 {
		return n
	}
	return runtime.GOMAXPROCS(0)
}
