// Package fault wraps a backend and makes chosen calls of it go wrong, so that
// tests see what a program does when the world fails: an allocation, a
// submission, a wait, or a command. Which call it is depends on a number or on a
// seed, so a failure that was found can be had again.
//
// Tests wrap a backend with [New] and say with [Backend.Arm] what goes wrong. A whole program
// is tried without a change to it: in a build with a file more,
//
//	package main
//
//	import _ "github.com/asyncgen/asyncgen/device/fault"
//
// ASYNCGEN_FAULT says what goes wrong, see [Parse], on each device that the program
// opens. In other builds the variable means nothing.
//
// It wraps any device.Backend. It does not decide which failures a real device can
// have; whoever uses it does.
package fault

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
	"time"

	"github.com/asyncgen/asyncgen/device"
)

// ErrInjected is what all errors of this package wrap, unless Faults.Err says otherwise.
var ErrInjected = errors.New("injected fault")

// A Call is something that can go wrong.
type Call uint8

const (
	Alloc   Call = iota + 1 // device.Backend.Alloc
	Submit                  // device.Backend.Submit: no command is taken
	Wait                    // device.Backend.Wait
	Command                 // one command of a Submit
)

var calls = [...]string{Alloc: "Alloc", Submit: "Submit", Wait: "Wait", Command: "Command"}

// String is the name of the call.
func (c Call) String() string { return calls[c] }

// A Kind is how it goes wrong.
type Kind uint8

const (
	Fail Kind = iota // it returns an error
	// it panics with an error. A command of a device with a queue fails instead: it runs on no
	// goroutine of ours
	Panic
	Delay // it succeeds, after other goroutines had their turn
	Lose  // it returns an error that wraps device.ErrLost, and from then on the device is lost
)

var kinds = [...]string{Fail: "fail", Panic: "panic", Delay: "delay", Lose: "lose"}

// String is the name of the kind.
func (k Kind) String() string { return kinds[k] }

// Faults say which calls go wrong, and how. The zero Faults are none.
type Faults struct {
	Call   Call
	Kind   Kind
	Kernel string  // of a Command: only those with a kernel of this name count; "": all
	N      int64   // the N-th such call since Arm, from 1; 0: none
	Rate   float64 // and every one with this probability
	Seed   uint64  // of the draws
	Err    error   // what the error wraps; nil: ErrInjected
}

// An Error is what a call fails, or panics, with.
type Error struct {
	Call   Call
	N      int64  // it was the N-th that counts
	Kernel string // of a Command, or of the first one of a Submit
	Size   int64  // of the same, in elements; of an Alloc, in bytes
	Err    error  // the cause
}

// Error names the call and the cause.
func (e *Error) Error() string { return fmt.Sprintf("fault: %v %d: %v", e.Call, e.N, e.Err) }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// delay is how often a delayed call lets others go first.
const delay = 100

// Backend implements [device.Backend]. All its methods may be called from several
// goroutines; which of their calls is the N-th is then up to them.
type Backend struct {
	device.Backend

	mu     sync.Mutex // guards the rest
	faults Faults
	rng    *rand.Rand
	count  int64
	fired  int64
	failed map[device.Ticket]error // commands of a device with a queue
	late   map[device.Ticket]int   // how often Done still says no
	lost   error                   // why the device is; nil: it is there
	from   device.Ticket           // of the first command that was lost
	last   device.Ticket           // submitted
	struck func(*Error)            // nil: nobody wants to know; not guarded
}

// New returns a backend that does as b does until it is armed.
func New(b device.Backend) *Backend {
	return &Backend{Backend: b, failed: map[device.Ticket]error{}, late: map[device.Ticket]int{}}
}

// Arm replaces the faults that are in place, and begins to count anew. A device that was lost stays so.
func (b *Backend) Arm(f Faults) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.faults, b.rng, b.count, b.fired = f, rand.New(rand.NewPCG(f.Seed, 0)), 0, 0
}

// Fired is how many calls have gone wrong since Arm.
func (b *Backend) Fired() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.fired
}

// Memory is that of the wrapped backend.
func (b *Backend) Memory() *device.Allocator { return device.MemoryOf(b.Backend) }

// Idle is that of the backend that b stands in front of.
func (b *Backend) Idle() (time.Duration, bool) { return device.IdleOf(b.Backend) }

// Virtual is that of the backend that b stands in front of.
func (b *Backend) Virtual() (*device.VirtualClock, time.Duration) { return device.VirtualOf(b.Backend) }

// Reaches is that of the backends that b and other, if it is one of this package, stand in front of.
func (b *Backend) Reaches(other device.Backend) bool {
	if o, ok := other.(*Backend); ok {
		other = o.Backend
	}
	return device.Reaches(b.Backend, other)
}

// draw counts a call. If it is to go wrong, it returns the error to fail with.
func (b *Backend) draw(c Call, kernel string, size int64) (Kind, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.lost != nil {
		return Lose, b.lost
	}
	f := &b.faults
	if f.Call != c || c == Command && f.Kernel != "" && f.Kernel != kernel {
		return 0, nil
	}
	b.count++
	if b.count != f.N && (f.Rate == 0 || b.rng.Float64() >= f.Rate) {
		return 0, nil
	}
	b.fired++
	cause := f.Err
	if cause == nil {
		cause = ErrInjected
	}
	if f.Kind == Lose {
		cause = fmt.Errorf("%w: %w", device.ErrLost, cause)
	}
	err := &Error{c, b.count, kernel, size, cause}
	if b.struck != nil {
		b.struck(err)
	}
	return f.Kind, err
}

// strike does what the next call of c has to suffer, at once.
func (b *Backend) strike(c Call, kernel string, size int64) error {
	kind, err := b.draw(c, kernel, size)
	switch {
	case err == nil:
		return nil
	case kind == Panic:
		panic(err)
	case kind == Delay:
		for range delay {
			runtime.Gosched()
		}
		return nil
	case kind == Lose:
		b.lose(err)
	}
	return err
}

// lose makes the device a lost one. What was submitted before finishes, as nobody must touch the buffers of what
// does not.
func (b *Backend) lose(err error) {
	b.mu.Lock()
	last := b.last
	if b.lost == nil {
		b.lost, b.from = err, last+1
	}
	b.mu.Unlock()
	if !b.Backend.Caps().Synchronous {
		b.Backend.Wait(context.Background(), last) // a valid ticket, no context: no error
	}
}

// Alloc is the wrapped backend's, or fails.
func (b *Backend) Alloc(bytes int64) (*device.Buffer, error) {
	if err := b.strike(Alloc, "", bytes); err != nil {
		return nil, err
	}
	return b.Backend.Alloc(bytes)
}

// Wait is the wrapped backend's, or fails.
func (b *Backend) Wait(ctx context.Context, t device.Ticket) error {
	if err := b.strike(Wait, "", 0); err != nil {
		return err
	}
	if err := b.Backend.Wait(ctx, t); err != nil {
		return err
	}
	b.arrive(t)
	return nil
}

// arrive ends the delay of the commands up to t.
func (b *Backend) arrive(t device.Ticket) {
	b.mu.Lock()
	defer b.mu.Unlock()
	maps.DeleteFunc(b.late, func(late device.Ticket, _ int) bool { return late <= t })
}

// Submit is the wrapped backend's, or fails as a whole, or one of its commands does.
func (b *Backend) Submit(cmds []device.Command) (device.Ticket, error) {
	var kernel string
	var size int64
	if len(cmds) > 0 {
		kernel, size = cmds[0].Kernel.Name, int64(cmds[0].N)
	}
	if err := b.strike(Submit, kernel, size); err != nil {
		return 0, err
	}
	if b.Backend.Caps().Synchronous {
		return b.run(cmds)
	}
	// The tickets of commands that go wrong are known only afterwards, but nobody asks for them before.
	hit := make([]error, len(cmds))
	var kinds []Kind
	var lost error
	for i := range cmds {
		kind, err := b.draw(Command, cmds[i].Kernel.Name, int64(cmds[i].N))
		if err != nil && kind == Lose {
			cmds, lost = cmds[:i], err
			break
		}
		kinds, hit[i] = append(kinds, kind), err
	}
	last, err := b.submit(cmds)
	if err != nil {
		return last, err
	}
	b.mu.Lock()
	for i := range cmds {
		t := last - device.Ticket(len(cmds)-1-i)
		switch {
		case hit[i] == nil:
		case kinds[i] == Delay:
			b.late[t] = delay
		default:
			b.failed[t] = hit[i]
		}
	}
	b.last = last
	b.mu.Unlock()
	if lost != nil {
		b.lose(lost)
	}
	return last + device.Ticket(len(hit)-len(cmds)), nil // the rest is not executed, but has tickets
}

// submit is the wrapped backend's Submit, also of no commands.
func (b *Backend) submit(cmds []device.Command) (device.Ticket, error) {
	if len(cmds) > 0 {
		return b.Backend.Submit(cmds)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.last, nil
}

// run runs commands up to the first that goes wrong.
func (b *Backend) run(cmds []device.Command) (last device.Ticket, err error) {
	for i := range cmds {
		if err := b.strike(Command, cmds[i].Kernel.Name, int64(cmds[i].N)); err != nil {
			return last, err
		}
		if last, err = b.Backend.Submit(cmds[i : i+1]); err != nil {
			return last, err
		}
		b.mu.Lock()
		b.last = max(b.last, last)
		b.mu.Unlock()
	}
	return last, nil
}

// Done is the wrapped backend's, or false for a while after that.
func (b *Backend) Done(t device.Ticket) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.lost != nil && t >= b.from {
		return true
	}
	if !b.Backend.Done(t) {
		return false
	}
	done := true
	for late := range b.late {
		if late <= t {
			if b.late[late]--; b.late[late] <= 0 {
				delete(b.late, late)
			}
			done = false
		}
	}
	return done
}

// Failure is the injected one of the command, or the wrapped backend's.
func (b *Backend) Failure(t device.Ticket) error {
	b.mu.Lock()
	err := b.failed[t]
	if b.lost != nil && t >= b.from {
		err = b.lost
	}
	b.mu.Unlock()
	if err != nil {
		return err
	}
	return b.Backend.Failure(t)
}

// Close is the wrapped backend's. Nothing is late after it.
func (b *Backend) Close() error {
	err := b.Backend.Close()
	b.arrive(math.MaxUint64)
	return err
}
