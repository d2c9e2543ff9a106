// Package opencltest runs random programs of the engine on a device of OpenCL, whose driver fails now and then.
package opencltest

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime/pprof"
	"strings"
	"testing"
	"time"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/cpu"
	"github.com/asyncgen/asyncgen/device/devicetest"
	"github.com/asyncgen/asyncgen/device/opencl"
	"github.com/asyncgen/asyncgen/device/opencl/clfault"
	"github.com/asyncgen/asyncgen/runtime/internal/engine"
)

var (
	programs = flag.Int("programs", 25, "number of random programs")
	seed     = flag.Uint64("seed", 0, "seed of the random programs; 0: from the clock")
	hang     = flag.Duration("hang", 5*time.Minute, "how long a random program may take")
)

// A socket is where one backend after the other is: devices are registered for good.
type socket struct{ *opencl.Backend }

// A bench is where programs run.
type bench struct {
	socket *socket
	device device.Device
	host   device.Device
	calls  *clfault.Calls
	isOpen bool
	ran    int // programs on this backend

	struck, lost, unopened int
}

// An injected is a way in which a call fails.
var injected = []struct {
	name string
	fail func(c *clfault.Calls, n int)
	is   func(error) bool
}{
	{"out of memory", func(c *clfault.Calls, n int) { c.Fail(n, clfault.OutOfMemory) }, func(err error) bool { return errors.Is(err, device.ErrOutOfMemory) }},
	{"invalid", func(c *clfault.Calls, n int) { c.Fail(n, clfault.Invalid) }, func(err error) bool { return strings.Contains(err.Error(), "CL_INVALID_VALUE") }},
	{"lost", func(c *clfault.Calls, n int) { c.Fail(n, clfault.Lost) }, func(err error) bool { return errors.Is(err, device.ErrLost) }},
}

// open starts a backend; sometimes one of the calls for that fails, and perhaps it does not start.
func (b *bench) open(rnd *rand.Rand) error {
	b.calls = clfault.New()
	fault := injected[rnd.IntN(len(injected))]
	if rnd.IntN(8) == 0 {
		fault.fail(b.calls, 1+rnd.IntN(25))
	}
	backend, err := opencl.New(0, b.calls)
	if err != nil {
		if !fault.is(err) || len(b.calls.Failed()) == 0 {
			return fmt.Errorf("open: %w", err)
		}
		if n := b.calls.Left(); n > 0 {
			return fmt.Errorf("what does not open leaves %d objects", n)
		}
		b.unopened++
		return b.open(rnd)
	}
	b.calls.Fail(0, 0)
	b.socket.Backend, b.isOpen, b.ran = backend, true, 0
	return nil
}

// close ends it. Nothing may be left.
func (b *bench) close() error {
	b.isOpen = false
	// A call of a lost device may still be in its compiler.
	live := devicetest.Live(b.socket.Backend, 0)
	for begin := time.Now(); live > 0 && time.Since(begin) < 10*time.Second; {
		live = devicetest.Live(b.socket.Backend, 0)
	}
	if live > 0 {
		return fmt.Errorf("%d bytes of the device are in use", live)
	}
	if err := b.socket.Close(); err != nil {
		return fmt.Errorf("close: %w", err)
	}
	if n := b.calls.Left(); n > 0 {
		return fmt.Errorf("%d objects of the driver are left", n)
	}
	return nil
}

// run runs one program.
func (b *bench) run(seed uint64) error {
	rnd := rand.New(rand.NewPCG(seed, 3))
	if !b.isOpen {
		if err := b.open(rnd); err != nil {
			return err
		}
	}
	before := len(b.calls.Failed())
	fault := injected[rnd.IntN(len(injected))]
	if rnd.IntN(3) > 0 {
		fault.fail(b.calls, 1+rnd.IntN(1<<rnd.IntN(11)))
	}
	o := engine.Options{Mode: engine.Async, Ring: 2 << rnd.IntN(8), MaxBytes: -1}
	if rnd.IntN(3) == 0 {
		o.MaxBytes = 1 + rnd.Int64N(20_000)
	}
	switch rnd.IntN(8) {
	case 0:
		o.Mode = engine.Naive
	case 1, 2:
		o.Mode, o.Seed = engine.Shuffle, rnd.Uint64()
	}
	p := &program{rnd: rnd, e: engine.New(o), host: b.host, on: []device.Device{b.device}, calls: b.calls, hits: before, cause: fault.is, failed: map[int]error{}}
	err := p.run()
	b.calls.Fail(0, 0)
	struck := len(b.calls.Failed()) > before
	if struck {
		b.struck++
	}
	if err != nil {
		return fmt.Errorf("%+v, fault %q in %v, after %d operations: %w", o, fault.name, b.calls.Failed()[before:], p.ops, err)
	}
	b.ran++
	if struck && fault.name == "lost" {
		b.lost++
	}
	if struck && fault.name == "lost" || b.ran == 12 {
		return b.close()
	}
	return nil
}

func again(seed uint64) string {
	return fmt.Sprintf("to run it alone: go test ./runtime/internal/opencltest -programs 1 -seed %d", seed)
}

// TestRandomPrograms has a model compute what the engine has a device compute, while calls of its
// driver fail. What does not depend on such a call comes out as if nothing had happened, what does
// has its cause, and nothing is left of either.
func TestRandomPrograms(t *testing.T) {
	t.Setenv("ASYNCGEN_OPENCL_CPU", "1")
	if b, err := opencl.New(0, nil); err != nil {
		devicetest.NoOpenCL(t, err)
	} else if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	first := *seed
	if first == 0 {
		first = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d", first)
	s := &socket{}
	b := &bench{socket: s, device: device.Wrap("opencl", device.KindGPU, s), host: device.Wrap("cpu", device.KindCPU, cpu.New())}
	begin, told := time.Now(), time.Now()
	for i := range uint64(*programs) {
		hangs := time.AfterFunc(*hang, func() {
			pprof.Lookup("goroutine").WriteTo(os.Stderr, 1)
			panic(fmt.Sprintf("program %d hangs; %s", i, again(first+i)))
		})
		err := b.run(first + i)
		hangs.Stop()
		if err != nil {
			t.Fatalf("program %d: %v\n%s", i, err, again(first+i))
		}
		if time.Since(told) > 30*time.Second {
			told = time.Now()
			fmt.Fprintf(os.Stderr, "%d random programs in %v, no difference; the next seed is %d\n", i+1, time.Since(begin).Round(time.Second), first+i+1)
		}
	}
	if b.isOpen {
		if err := b.close(); err != nil {
			t.Fatalf("after the last program: %v", err)
		}
	}
	t.Logf("a call of the driver failed in %d programs of %d, the device was lost in %d, and did not open %d times", b.struck, *programs, b.lost, b.unopened)
	if *programs >= 200 && (b.struck < *programs/5 || b.lost < *programs/20) {
		t.Error("these are too few to say that it works")
	}
}
