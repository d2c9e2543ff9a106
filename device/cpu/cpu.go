// Package cpu is the backend that computes with the program's own threads: the
// driver "cpu". Its loops are in assembly for AVX-512, AVX2 and NEON, and in portable Go:
// the best that the machine has, or what ASYNCGEN_ISA says (avx512, avx2 or go; neon or go on arm64).
//
// It is synchronous: [Backend.Submit] runs the commands on the calling
// goroutine, and several goroutines may submit at once as long as their
// commands do not depend on each other. Scheduling is the business of the
// engine, and so is recovering from a command that panics (an integer division
// by zero does; so does an operand that reaches outside of its buffer, before
// anything there is touched).
//
// Every result is exactly what package kernel defines, bit for bit, and depends
// neither on how many elements are computed together nor on where they lie.
// Products of matrices round once a step in assembly and twice in Go, see
// kernel.MulAdd; all that a process computes do the same.
package cpu

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/cpu/internal/vec"
)

func init() {
	device.Register(device.Driver{
		Name:  "cpu",
		Kind:  device.KindCPU,
		Count: func() (int, error) { return 1, nil },
		Open: func(int) (device.Backend, error) {
			if err := vec.Mistake(); err != nil {
				return nil, err
			}
			return New(), nil
		},
		Notes: func() []string { return []string{sizes.String()} },
	})
}

// Backend implements [device.Backend].
type Backend struct {
	memory  *device.Allocator
	tickets atomic.Uint64 // how many commands were submitted
	closed  atomic.Bool
}

// New returns a backend of its own. Programs use the one that device.CPU() opens. It takes as much memory as
// ASYNCGEN_MEMORY says, or nearly all of the memory if that isn't set.
func New() *Backend { return &Backend{memory: device.NewAllocator(device.HostMemory, 0)} }

// smallest is the least size in bytes for which memory outside of the Go heap pays. A block there
// costs 40 ns, and 250 more until the collector has found that nobody refers to it; smallest bytes
// of the Go heap cost as much.
const smallest = 2048

// Alloc returns memory with undefined contents.
func (b *Backend) Alloc(bytes int64) (*device.Buffer, error) {
	if 0 <= bytes && bytes <= smallest {
		return device.HostBuffer(bytes), nil
	}
	buf, err := b.memory.Alloc(bytes)
	if err != nil {
		return nil, fmt.Errorf("cpu: %w", err)
	}
	return buf, nil
}

// Free gives b back. It works after Close, too.
func (b *Backend) Free(buf *device.Buffer) {
	b.memory.Free(buf)
	if b.closed.Load() && b.memory.Live() == 0 {
		b.memory.Trim()
	}
}

// Memory is where Alloc takes what is not small from.
func (b *Backend) Memory() *device.Allocator { return b.memory }

// Submit runs the commands, in order, up to the first that fails.
func (b *Backend) Submit(cmds []device.Command) (device.Ticket, error) {
	if b.closed.Load() && !device.OnlyReads(cmds) {
		return 0, fmt.Errorf("cpu: %w", device.ErrClosed)
	}
	last := b.tickets.Add(uint64(len(cmds)))
	for i := range cmds {
		if err := Run(&cmds[i]); err != nil {
			return device.Ticket(last), err
		}
	}
	return device.Ticket(last), nil
}

// RunTiny runs a command of a few elements, see [device.TinyOf].
func (b *Backend) RunTiny(c *device.Command) error {
	if b.closed.Load() && c.Kernel.Code != device.Copy {
		return fmt.Errorf("cpu: %w", device.ErrClosed)
	}
	return Run(c)
}

// Done reports whether Submit gave t out, as it does so when the command has run.
func (b *Backend) Done(t device.Ticket) bool { return uint64(t) <= b.tickets.Load() }

// Wait returns nil: there is nothing to wait for.
func (b *Backend) Wait(context.Context, device.Ticket) error { return nil }

// Failure returns nil: Submit has returned the error.
func (b *Backend) Failure(device.Ticket) error { return nil }

// Caps says what the backend promises.
func (b *Backend) Caps() device.Caps {
	workers := runtime.GOMAXPROCS(0)
	return device.Caps{
		Synchronous:    true,
		HostMemory:     true,
		BatchInvariant: true,
		Epilogues:      true,
		Description:    fmt.Sprintf("%s, kernels: %v, workers: %d", runtime.GOARCH, vec.Current(), workers),
		Workers:        workers,
	}
}

// Close makes later calls of Submit fail, except for reads, and gives back memory that isn't in use.
func (b *Backend) Close() error {
	b.closed.Store(true)
	b.memory.Trim()
	return nil
}

// A runner is a compiled Kernel: it runs the commands that ask for it. Runners
// are used by several goroutines at once.
type runner func(c *device.Command) error

// compiled holds the runner of each kernel, by its ID. A runner depends on
// the kernel alone, so all backends share them; a kernel that can't be compiled
// has a runner that says why.
var compiled struct {
	mu      sync.Mutex // held to change runners
	runners atomic.Pointer[[]runner]
}

// Run runs one command now, on the calling goroutine. Its buffers are host memory.
func Run(c *device.Command) error {
	if runners := compiled.runners.Load(); runners != nil && c.Kernel.ID < len(*runners) {
		if run := (*runners)[c.Kernel.ID]; run != nil {
			return run(c)
		}
	}
	return compile(c.Kernel)(c)
}

func compile(k *device.Kernel) runner {
	compiled.mu.Lock()
	defer compiled.mu.Unlock()
	var old []runner
	if p := compiled.runners.Load(); p != nil {
		old = *p
	}
	if k.ID < len(old) && old[k.ID] != nil {
		return old[k.ID]
	}
	// Readers hold no lock: the table that they see is never written to.
	table := make([]runner, max(len(old), k.ID+1))
	copy(table, old)
	table[k.ID] = newRunner(k)
	compiled.runners.Store(&table)
	return table[k.ID]
}

func newRunner(k *device.Kernel) runner {
	run := noRunner
	switch k.Code {
	case device.Map:
		run = newMap
	case device.Reduce:
		run = newReduce
	case device.ArgReduce:
		run = newArgReduce
	case device.Scan:
		run = newScan
	case device.ArgSort:
		run = newArgSort
	case device.Rows:
		run = newRowFunc
	case device.MatMul:
		run = newMatMul
	case device.Conv:
		run = newConv
	case device.Pool:
		run = newPool
	case device.ArgPool:
		run = newArgPool
	case device.Gather:
		run = newGather
	case device.ScatterAdd:
		run = newScatterAdd
	case device.Copy:
		run = newCopy
	case device.Concat:
		run = newConcat
	case device.Fill:
		run = newFill
	case device.Iota:
		run = newIota
	case device.Random:
		run = newRandom
	case device.Math:
		run = newMath
	case device.Host:
		run = newHost
	case device.Upload, device.Download:
		run = newTransfer
	}
	r, err := run(k)
	if err == nil {
		err = vec.Mistake()
	}
	if err != nil {
		err = fmt.Errorf("cpu: kernel %s: %w", k.Name, err)
		return func(*device.Command) error { return err }
	}
	return r
}

func noRunner(k *device.Kernel) (runner, error) {
	return nil, fmt.Errorf("%v: %w", k.Code, device.ErrUnsupported)
}

// unsupported is the error of a kernel whose body or types its code does not go with.
func unsupported(k *device.Kernel) error {
	body := "nothing"
	if k.Body != nil {
		body = fmt.Sprint(k.Body)
	}
	return fmt.Errorf("%s of %v to %v: %w", body, k.In, k.Out, device.ErrUnsupported)
}

// grain is how many simple operations, of some 0.06 to 0.1 ns each in loops of package vec, are
// worth waking a helper for: about 20 µs of them, see pool.Run. Tests make it small.
var grain = 1 << 18

// finest is how many times less than grain is worth asking whether a helper is awake; see pool.Run.
const finest = 32

// grainOf is how many elements that is when each needs the given number of operations.
func grainOf(operations int) int { return max(1, grain/max(1, operations)) }
