package engine_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/cpu"
	"github.com/asyncgen/asyncgen/device/kernel"
	"github.com/asyncgen/asyncgen/device/sim"
	"github.com/asyncgen/asyncgen/runtime/internal/engine"
)

const us = time.Microsecond

// The costs of the devices in these tests: an element of a float32 sum takes a microsecond, and so do its bytes.
func virtualCosts() sim.Options {
	o := sim.VirtualDefaults()
	o.Flops, o.Memory, o.Bandwidth, o.Link = 1e6, 8e6, 1e6, 2e6
	return o
}

// virtualDevice returns a device in virtual time, which is closed when the test ends.
func virtualDevice(t testing.TB, o sim.Options) device.Device {
	b := sim.New(o)
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return device.Wrap("sim", device.KindSimulated, b)
}

// The time of a program with few operations is what a count by hand says.
func TestVirtualTime(t *testing.T) {
	for _, mode := range []engine.Mode{engine.Async, engine.Shuffle} {
		e := engine.New(engine.Options{Mode: mode, Ring: 64})
		d, host := virtualDevice(t, virtualCosts()), device.Wrap("cpu", device.KindCPU, cpu.New())
		begin := sim.Now()
		want := func(what string, at time.Duration) {
			t.Helper()
			if got := sim.Now() - begin; got != at {
				t.Errorf("mode %v: %s at %v, want %v", mode, what, got, at)
			}
		}
		x := e.FromHost(d, device.HostBuffer(4)) // issued at 1, takes 20 and 4 for 4 bytes: ends at 25
		want("an upload is enqueued", 1*us)
		y := chain(e, d, x, 1, 3) // 5 each: ends at 40
		want("four operations are enqueued", 4*us)
		if y.Ready() {
			t.Error("ready at once")
		}
		if err := y.Wait(t.Context(), "test"); err != nil {
			t.Error(err)
		}
		want("the chain is finished", 90*us)
		if !y.Ready() || !x.Ready() {
			t.Error("not ready after a wait")
		}
		z := e.Copy(y, 0, 1, device.Float32, host) // issued at 91, takes 24, seen 50 later
		want("a copy is enqueued", 91*us)
		if err := engine.WaitEach(t.Context(), "test", []*engine.Storage{x, z, y}); err != nil {
			t.Error(err)
		}
		want("the copy is finished", 165*us)
		chain(e, host, z, 1, 10)
		if err := e.WaitAll(t.Context()); err != nil {
			t.Error(err)
		}
		want("operations on the CPU", 165*us)
		before := e.Mark()
		// 420 for the upload from 166 on, 100 for each sum
		big := chain(e, d, e.FromHost(d, device.HostBuffer(400)), 100, 2)
		after := e.Mark()
		if _, ok := after.Reached(); ok {
			t.Error("a mark is reached at once")
		}
		if at, ok := before.Reached(); !ok || at != begin+165*us {
			t.Errorf("mark at %v", at-begin)
		}
		last := e.Copy(big, 0, 1, device.Float32, host)
		if err := after.Wait(t.Context(), "test"); err != nil {
			t.Error(err)
		}
		want("the mark", 836*us)
		if err := e.Synchronize(t.Context(), d); err != nil {
			t.Error(err)
		}
		want("everything", 860*us)
		if !last.Ready() {
			t.Error("the last copy is not ready")
		}
		if busy, _ := sim.BusyOf(d); busy != (sim.Busy{Compute: 215 * us, Upload: 444 * us, Download: 48 * us}) {
			t.Errorf("queues were busy: %+v", busy)
		}
		// the looks have taken 100 ns each
		if s := e.Stats(); s.Waits != 4 || s.WaitTime != (86+74+667+24)*us-200*time.Nanosecond {

			t.Errorf("%d waits of %v", s.Waits, s.WaitTime)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A full ring holds up the program by the clock, too. Mode Naive waits for each operation.
func TestVirtualTimeOfAFullRing(t *testing.T) {
	for _, test := range []struct {
		mode   engine.Mode
		want   time.Duration // until everything is enqueued
		stalls int64
	}{
		// the ninth waits until the first is seen to be finished, at 56, the tenth for the next, 5
		// later
		{engine.Async, (56 + 5*5 + 1) * us, 6},
		{engine.Naive, 14 * 56 * us, 0},
	} {
		e := engine.New(engine.Options{Mode: test.mode, Ring: 8})
		d := virtualDevice(t, sim.VirtualDefaults())
		x := e.NewStorage(d, 4)
		begin := sim.Now()
		for range 14 {
			e.Enqueue(&engine.Op{Cmd: device.Command{Kernel: fill, N: 1}, Operands: [device.MaxOperands]*engine.Storage{x}})
		}
		if got := sim.Now() - begin; got != test.want {
			t.Errorf("mode %v: enqueued after %v, want %v", test.mode, got, test.want)
		}
		if s := e.Stats(); s.Stalls != test.stalls {
			t.Errorf("mode %v: %d stalls", test.mode, s.Stalls)
		}
		e.Close()
	}
}

var fill = device.NewKernel("fill", device.Fill, nil, device.Float32)

var (
	programs = flag.Int("virtual", 15, "how many random programs in virtual time to run")
	firstOne = flag.Uint64("virtual-seed", 0, "which random program in virtual time is the first, if not a random one")
)

// Random programs of one goroutine: after each step the clock says what a plain simulation of the model
// says, whatever the engine and the machine do meanwhile.
func TestVirtualTimeOfRandomPrograms(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	first := *firstOne
	if first == 0 {
		first = rand.Uint64()
	}
	for seed := first; seed < first+uint64(*programs); seed++ {
		var times []time.Duration
		for _, processors := range []int{1, 2} {
			runtime.GOMAXPROCS(processors)
			stop := burn(2)
			got, want := runVirtually(t, seed, engine.Options{Mode: engine.Async, Ring: 16, MaxBytes: -1})
			stop()
			if at := slices.IndexFunc(got, differs(want)); at >= 0 {
				t.Fatalf("step %d: the clock is at %v, the model's at %v\nto see it again: go test ./runtime/internal/engine -run TestVirtualTimeOfRandom -virtual 1 -virtual-seed %d", at, got[at], want[at], seed)
			}
			if times == nil {
				times = got
			}
		}
		got, _ := runVirtually(t, seed, engine.Options{Mode: engine.Shuffle, Seed: seed, Ring: 16, MaxBytes: 64})
		if !slices.Equal(got, times) {
			t.Fatalf("mode shuffle makes a difference\nto see it again: go test ./runtime/internal/engine -run TestVirtualTimeOfRandom -virtual 1 -virtual-seed %d", seed)
		}
	}
}

// differs returns a function to be called with one time after the other. It reports whether the time
// differs from the next one of want.
func differs(want []time.Duration) func(time.Duration) bool {
	i := -1
	return func(t time.Duration) bool {
		i++
		return t != want[i]
	}
}

// burn keeps n goroutines busy until it is stopped.
func burn(n int) (stop func()) {
	var over atomic.Bool
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			for !over.Load() {
				runtime.Gosched()
			}
		})
	}
	return func() {
		over.Store(true)
		wg.Wait()
	}
}

// A simulated is the common state of runVirtually and its model. Devices 0 and 1 are simulated, 2 is the
// CPU.
type simulated struct {
	e       *engine.Engine
	devices []device.Device
	costs   []sim.Options
	values  []*virtualValue

	begin time.Duration // of the program
	now   time.Duration // by the model
	ring  int
	free  [2][4]time.Duration // when each queue is free: compute, up, down, link
	last  [2]time.Duration    // when the last command was seen to be finished
	issue [2]time.Duration
	ends  [3][]time.Duration // of all records of a stream
}

// A virtualValue is a storage and what the model knows about it.
type virtualValue struct {
	s        *engine.Storage
	dev, n   int
	written  time.Duration // when its writer ends, on the device
	finished time.Duration // when its writer is seen to have ended
}

// runVirtually runs the random program with a seed. It returns the time after each step, by the clock and by the model.
func runVirtually(t *testing.T, seed uint64, o engine.Options) (got, want []time.Duration) {
	rng := rand.New(rand.NewPCG(seed, 0))
	p := &simulated{e: engine.New(o), ring: o.Ring}
	for range 2 {
		c := virtualCosts()
		c.Latency, c.Host, c.Launch = time.Duration(rng.IntN(60))*us, time.Duration(rng.IntN(3))*us, time.Duration(1+rng.IntN(9))*us
		p.costs = append(p.costs, c)
		p.devices = append(p.devices, virtualDevice(t, c))
	}
	p.devices = append(p.devices, device.Wrap("cpu", device.KindCPU, cpu.New()))
	for i := range p.devices {
		n := 1 + rng.IntN(40)
		if i == 2 {
			n += 4 // else it depends on who has made it whether its memory can be given back
		}
		p.fresh(i, n)
	}
	p.begin = sim.Now()
	p.now = 0
	for range 120 {
		p.step(t, rng)
		got, want = append(got, sim.Now()-p.begin), append(want, p.now)
	}
	if err := p.e.Close(); err != nil {
		t.Error(err)
	}
	return got, want
}

// fresh makes a value that exists before the program begins.
func (p *simulated) fresh(dev, n int) {
	data := device.HostBuffer(int64(4 * n))
	if dev < 2 {
		s := p.e.FromHost(p.devices[dev], data)
		p.e.WaitAll(context.Background())
		p.values = append(p.values, &virtualValue{s: s, dev: dev, n: n})
		p.ends[dev] = append(p.ends[dev], 0)
		return
	}
	p.values = append(p.values, &virtualValue{s: p.e.FromHost(p.devices[dev], data), dev: dev, n: n})
}

func (p *simulated) step(t *testing.T, rng *rand.Rand) {
	v := p.values[rng.IntN(len(p.values))]
	switch k := rng.IntN(20); {
	case k < 8:
		w := v
		for _, other := range p.values {
			if other.dev == v.dev && other.n == v.n && rng.IntN(2) == 0 {
				w = other
			}
		}
		p.sum(v, w)
	case k < 14:
		p.copy(v, rng.IntN(3))
	case k < 17:
		if err := v.s.Wait(t.Context(), "test"); err != nil {
			t.Error(err)
		}
		p.now = max(p.now, v.finished)
	case k < 18:
		if ready := v.s.Ready(); ready != (v.finished <= p.now) {
			t.Errorf("ready: %v at %v, finished at %v", ready, p.now, v.finished)
		} else if !ready {
			p.now += 100 * time.Nanosecond
		}
	case k < 19 && len(p.values) > 5:
		// Memory that is given back, and may be used again, is not in the model.
		i := rng.IntN(len(p.values))
		p.e.Release(p.values[i].s)
		if p.values[i].n > 4 || p.values[i].dev < 2 { // else there is nothing to give back
			p.ends[p.values[i].dev] = append(p.enter(p.values[i].dev), 0)
		}
		p.values = slices.Delete(p.values, i, i+1)
	case rng.IntN(4) == 0:
		if err := p.e.WaitAll(t.Context()); err != nil {
			t.Error(err)
		}
		for _, ends := range p.ends {
			for _, end := range ends {
				p.now = max(p.now, end)
			}
		}
	}
}

// enter models enqueueing on a stream: the program may have to wait for room in the ring. It returns the
// ends so far.
func (p *simulated) enter(stream int) []time.Duration {
	if ends := p.ends[stream]; len(ends) >= p.ring {
		p.now = max(p.now, ends[len(ends)-p.ring])
	}
	return p.ends[stream]
}

// run models a command of a simulated device. The command takes so long, and needs inputs that are ready on
// the device and on others at the given times.
func (p *simulated) run(dev, queue int, takes, here, elsewhere time.Duration) (written, finished time.Duration) {
	ends := p.enter(dev)
	p.now += p.costs[dev].Host
	p.issue[dev] = max(p.issue[dev], p.now, elsewhere)
	written = max(p.issue[dev], p.free[dev][queue], here) + takes
	p.free[dev][queue] = written
	p.last[dev] = max(p.last[dev], written+p.costs[dev].Latency)
	p.ends[dev] = append(ends, p.last[dev])
	return written, p.last[dev]
}

var add = device.NewKernel("add", device.Map, kernel.Add(kernel.Arg(0, device.Float32), kernel.Arg(1, device.Float32)), device.Float32, device.Float32, device.Float32)

func (p *simulated) sum(v, w *virtualValue) {
	out := &virtualValue{s: p.e.NewStorage(p.devices[v.dev], int64(4*v.n)), dev: v.dev, n: v.n}
	p.e.Enqueue(&engine.Op{Cmd: device.Command{Kernel: add, N: v.n}, Operands: [device.MaxOperands]*engine.Storage{out.s, v.s, w.s}})
	p.values = append(p.values, out)
	if v.dev == 2 {
		ends := p.enter(2)
		out.finished = max(p.now, v.finished, w.finished)
		p.ends[2] = append(ends, out.finished)
		return
	}
	takes := max(p.costs[v.dev].Launch, time.Duration(v.n)*us*12/8) // 12 bytes each, at 8 a microsecond
	out.written, out.finished = p.run(v.dev, 0, takes, max(v.written, w.written), 0)
}

func (p *simulated) copy(v *virtualValue, to int) {
	out := &virtualValue{s: p.e.Copy(v.s, 0, v.n, device.Float32, p.devices[to]), dev: to, n: v.n}
	p.values = append(p.values, out)
	bytes := time.Duration(4 * v.n)
	transfer := 20*us + bytes*us
	switch {
	case v.dev == to && to == 2:
		ends := p.enter(2)
		out.finished = max(p.now, v.finished)
		p.ends[2] = append(ends, out.finished)
	case v.dev == to: // within its memory, which it reads and writes
		out.written, out.finished = p.run(to, 0, max(p.costs[to].Launch, bytes*us/4), v.written, 0)
	case v.dev == 2:
		gate := p.enter(2)
		out.written, out.finished = p.run(to, 1, transfer, 0, v.finished)
		p.ends[2] = append(gate, out.finished)
	case to == 2:
		gate := p.enter(2)
		out.written, out.finished = p.run(v.dev, 2, transfer, v.written, 0)
		p.ends[2] = append(gate, out.finished)
	default: // and what uses it on the other device starts when it ends there
		gate := p.enter(to)
		out.written, out.finished = p.run(v.dev, 3, 20*us+bytes*us/2, v.written, 0)
		p.ends[to] = append(gate, out.finished)
	}
}

// A trace of a program with few operations has the times that a count by hand gives.
func TestTraceOfModel(t *testing.T) {
	e := engine.New(engine.Options{})
	d := virtualDevice(t, virtualCosts())
	x := e.FromHost(d, device.HostBuffer(4))
	if err := x.Wait(t.Context(), "test"); err != nil { // from here on, time is that of the model
		t.Fatal(err)
	}
	var text bytes.Buffer
	stop, err := e.Trace(&text)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Trace(&text); err == nil {
		t.Error("there are two traces")
	}
	begin := sim.Now()
	y := chain(e, d, x, 1, 2)
	z := e.Copy(y, 0, 1, device.Float32, device.CPU())
	if err := z.Wait(t.Context(), "Item"); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(stop(), stop()); err != nil {
		t.Error(err)
	}
	var events []struct {
		Cat, Name string
		Ts, Dur   float64
		Args      struct {
			ID, Gate, For string
			Reads         []string
			Enqueued      float64
			At            string
		}
	}
	if err := json.Unmarshal(text.Bytes(), &events); err != nil {
		t.Fatalf("%v in %s", err, &text)
	}
	var got []string
	_, file, _, _ := runtime.Caller(0)
	for _, ev := range events {
		if ev.Cat != "" {
			got = append(got, fmt.Sprint(ev.Cat, " ", ev.Name, " ", ev.Args.ID, ev.Args.For, " reads ", ev.Args.Reads, " gate ", ev.Args.Gate, " enqueued ", ev.Args.Enqueued, " from ", ev.Ts, " for ", ev.Dur))
			if name, _, _ := strings.Cut(ev.Args.At, ":"); filepath.Dir(name) != filepath.Dir(file) {
				t.Errorf("%s is at %q", ev.Name, ev.Args.At)
			}
		}
	}
	want := []string{ // see virtualCosts
		"op addone 1.1 reads [1.0] gate  enqueued 0 from 0 for 5",
		"op addone 1.2 reads [1.1] gate  enqueued 1 from 5 for 5",
		"op download 1.3 reads [1.2] gate 3.0 enqueued 2 from 10 for 24", // 20 and 4 bytes at 1 MB/s
		"wait Item 3.0 reads [] gate  enqueued 0 from 2 for 82",          // until 34, and 50 later it is seen
	}
	if !slices.Equal(got, want) {
		t.Errorf("from %v, got\n%s\nwant\n%s", begin, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
