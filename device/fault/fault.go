// Package fault wraps a backend and injects failures into chosen calls, so tests see what a program
// does when an allocation, a submission, a wait or a command fails. A number or a seed chooses the
// calls, so a failure can be reproduced.
//
// Tests wrap a backend with [New] and choose the faults with [Backend.Arm]. To test a whole program
// without changing its source, build it with one more file:
//
//	package main
//
//	import _ "github.com/asyncgen/asyncgen/device/fault"
//
// Then ASYNCGEN_FAULT, see [Parse], sets the faults of each device that the program opens. In other
// builds the variable has no effect.
//
// The package wraps any device.Backend. It does not know which failures a real device can have: its
// users do.
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

// ErrInjected is wrapped by all errors of this package, unless Faults.Err replaces it.
var ErrInjected = errors.New("injected fault")

// A Call is a call that can fail.
type Call uint8

const (
	Alloc   Call = iota + 1 // device.Backend.Alloc
	Submit                  // device.Backend.Submit: no command is taken
	Wait                    // device.Backend.Wait
	Command                 // one command of a Submit
)

var calls = [...]string{Alloc: "Alloc", Submit: "Submit", Wait: "Wait", Command: "Command"}

// String returns the name of the call.
func (c Call) String() string { return calls[c] }

// A Kind is the way in which a call fails.
type Kind uint8

const (
	Fail Kind = iota // it returns an error
	// It panics with an error. A command of a device with a queue fails with the error instead, since
	// it runs on no goroutine of ours.
	Panic
	Delay // it succeeds after yielding to other goroutines
	Lose  // it returns an error that wraps device.ErrLost, and from then on the device is lost
)

var kinds = [...]string{Fail: "fail", Panic: "panic", Delay: "delay", Lose: "lose"}

// String returns the name of the kind.
func (k Kind) String() string { return kinds[k] }

// Faults choose the calls that fail, and how. The zero Faults choose none.
type Faults struct {
	Call   Call
	Kind   Kind
	Kernel string  // of a Command: count only commands of the kernel with this name; "": all
	N      int64   // the N-th such call since Arm fails, from 1; 0: none
	Rate   float64 // and each such call fails with this probability
	Seed   uint64  // of the random numbers for Rate
	Err    error   // what the error wraps; nil: ErrInjected
}

// An Error is the error that a call returns, or panics with.
type Error struct {
	Call   Call
	N      int64  // the number of the call among those that count
	Kernel string // of a Command, or of the first one of a Submit
	Size   int64  // of that command, in elements; of an Alloc, in bytes
	Err    error  // the cause
}

func (e *Error) Error() string { return fmt.Sprintf("fault: %v %d: %v", e.Call, e.N, e.Err) }

func (e *Error) Unwrap() error { return e.Err }

// delay is how often a delayed call yields to other goroutines, and how often Done denies a delayed
// command.
const delay = 100

// Backend implements [device.Backend]. Several goroutines may call its methods; their order then
// decides which call is the N-th.
type Backend struct {
	device.Backend

	mu     sync.Mutex // guards the rest
	faults Faults
	rng    *rand.Rand
	count  int64
	fired  int64
	failed map[device.Ticket]error // commands of a device with a queue
	late   map[device.Ticket]int   // delayed commands: how many more times Done reports false
	lost   error                   // why the device is lost; nil: it is not
	from   device.Ticket           // the first command that was lost
	last   device.Ticket           // the last command submitted
	struck func(*Error)            // called for each injected fault; may be nil; not guarded
}

// New returns a backend that behaves like b until it is armed.
func New(b device.Backend) *Backend {
	return &Backend{Backend: b, failed: map[device.Ticket]error{}, late: map[device.Ticket]int{}}
}

// Arm replaces the faults, and begins to count anew. A lost device stays lost.
func (b *Backend) Arm(f Faults) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.faults, b.rng, b.count, b.fired = f, rand.New(rand.NewPCG(f.Seed, 0)), 0, 0
}

// Fired returns how many faults were injected since Arm.
func (b *Backend) Fired() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.fired
}

// Memory returns the allocator of the wrapped backend.
func (b *Backend) Memory() *device.Allocator { return device.MemoryOf(b.Backend) }

// Idle returns the wrapped backend's result.
func (b *Backend) Idle() (time.Duration, bool) { return device.IdleOf(b.Backend) }

// Virtual returns the wrapped backend's result.
func (b *Backend) Virtual() (*device.VirtualClock, time.Duration) { return device.VirtualOf(b.Backend) }

// Reaches returns the wrapped backend's result for other, which is unwrapped as well.
func (b *Backend) Reaches(other device.Backend) bool {
	if o, ok := other.(*Backend); ok {
		other = o.Backend
	}
	return device.Reaches(b.Backend, other)
}

// draw counts a call. If the call is chosen, draw returns the kind of its fault and the error;
// otherwise the error is nil.
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

// strike counts a call of c and injects its fault, if it has one: it returns an error, panics or
// delays.
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

// lose makes the device a lost one. It waits for the commands that were submitted before: if they
// went on, they would use buffers of a lost device, which must not happen.
func (b *Backend) lose(err error) {
	b.mu.Lock()
	last := b.last
	if b.lost == nil {
		b.lost, b.from = err, last+1
	}
	b.mu.Unlock()
	if !b.Backend.Caps().Synchronous {
		b.Backend.Wait(context.Background(), last) // no error: a valid ticket, and no deadline
	}
}

// Alloc calls the wrapped backend's Alloc, or fails.
func (b *Backend) Alloc(bytes int64) (*device.Buffer, error) {
	if err := b.strike(Alloc, "", bytes); err != nil {
		return nil, err
	}
	return b.Backend.Alloc(bytes)
}

// Wait calls the wrapped backend's Wait, or fails.
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

// Submit calls the wrapped backend's Submit, or fails as a whole, or makes some of the commands
// fail.
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
	// The tickets of failing commands are known only after Submit. Nobody asks about them before.
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
	return last + device.Ticket(len(hit)-len(cmds)), nil // lost commands are not submitted, but have tickets
}

// submit calls the wrapped backend's Submit. Without commands it returns the last ticket.
func (b *Backend) submit(cmds []device.Command) (device.Ticket, error) {
	if len(cmds) > 0 {
		return b.Backend.Submit(cmds)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.last, nil
}

// run runs commands one by one, up to the first that fails.
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

// Done returns the wrapped backend's result. For a delayed command it reports false a few more
// times.
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

// Failure returns the injected error of the command, or else the wrapped backend's.
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

// Close closes the wrapped backend, and ends all delays.
func (b *Backend) Close() error {
	err := b.Backend.Close()
	b.arrive(math.MaxUint64)
	return err
}
