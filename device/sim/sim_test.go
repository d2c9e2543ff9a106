package sim

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/kernel"
)

// A testClock moves only by Wait, which jumps to the time at once.
type testClock struct {
	mu  sync.Mutex
	now time.Duration
}

func (c *testClock) Now() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *testClock) Wait(ctx context.Context, t time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = max(c.now, t)
	return nil
}

const us = time.Microsecond

func newTest(t *testing.T, change func(*Options)) (*Backend, *testClock) {
	clock := new(testClock)
	o := Defaults()
	o.Clock = clock
	if change != nil {
		change(&o)
	}
	b := New(o)
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b, clock
}

var (
	fill     = device.NewKernel("fill", device.Fill, nil, device.Float32)
	increase = device.NewKernel("increase", device.Map, kernel.Add(kernel.Arg(0, device.Float32), kernel.Const(1, device.Float32)), device.Float32, device.Float32)
	upload   = device.NewKernel("upload", device.Upload, nil, device.Float32, device.Float32)
	download = device.NewKernel("download", device.Download, nil, device.Float32, device.Float32)
	divide   = device.NewKernel("divide", device.Map, kernel.Div(kernel.Const(1, device.Int64), kernel.Arg(0, device.Int64)), device.Int64, device.Int64)
)

func command(k *device.Kernel, n int, bufs ...*device.Buffer) device.Command {
	c := device.Command{Kernel: k, N: n}
	copy(c.Buf[:], bufs)
	return c
}

// alloc returns zeroed memory.
func alloc(t *testing.T, b *Backend, bytes int64) *device.Buffer {
	t.Helper()
	buf, err := b.Alloc(bytes)
	if err != nil {
		t.Fatal(err)
	}
	if buf.Ptr != nil {
		t.Fatal("the host reaches the memory of the device")
	}
	host := buf.Handle.(*memory).host
	clear(device.Slice[bool](host, 0, int(host.Bytes)))
	return buf
}

func submit(t *testing.T, b *Backend, cmds ...device.Command) device.Ticket {
	t.Helper()
	ticket, err := b.Submit(cmds)
	if err != nil {
		t.Fatal(err)
	}
	return ticket
}

// visible returns the times at which all submitted commands are seen to be finished. They fit into
// the queue.
func visible(t *testing.T, b *Backend) (times []time.Duration) {
	t.Helper()
	if err := b.waitExecuted(context.Background(), b.submitted); err != nil {
		t.Fatal(err)
	}
	for i := uint64(1); i <= b.submitted; i++ {
		times = append(times, b.entry(i).visible)
	}
	return times
}

// The compute queue is idle from the end of its last command on, whatever copies there are, and
// whenever the program sees the end.
func TestIdle(t *testing.T) {
	const n = 16000 // 64,000 bytes: 4 us at 16 GB/s
	b, clock := newTest(t, nil)
	x, y, host := alloc(t, b, 4*n), alloc(t, b, 4*n), device.HostBuffer(4*n)
	idle := func(now, want time.Duration) {
		t.Helper()
		visible(t, b)
		clock.Wait(t.Context(), now)
		if got, ok := device.IdleOf(b); got != want || !ok {
			t.Errorf("at %v idle for %v (%v), want %v", now, got, ok, want)
		}
	}
	idle(100*us, 0) // no command yet
	submit(t, b, command(fill, n, x), command(increase, n, y, x))
	idle(100*us, 0)
	idle(109*us, 0)
	idle(112*us, 2*us)
	submit(t, b, command(download, n, host, x))
	idle(130*us, 20*us)
	submit(t, b, command(fill, n, y)) // while the copy still runs
	idle(130*us, 0)
	idle(140*us, 5*us)
	if _, ok := device.IdleOf(device.CPU().Backend()); ok {
		t.Error("the CPU knows how long it has been idle")
	}
}

func TestModel(t *testing.T) {
	const n = 16000 // 64,000 bytes: 4 us at 16 GB/s
	for _, test := range []struct {
		name string
		cmds func(x, y, host *device.Buffer) []device.Command
		want []time.Duration
	}{
		{"launches follow each other", func(x, y, host *device.Buffer) []device.Command {
			return []device.Command{command(fill, n, x), command(increase, n, y, x), command(fill, n, x)}
		}, []time.Duration{55 * us, 60 * us, 65 * us}},
		{"a download waits for what it reads and holds up nothing else", func(x, y, host *device.Buffer) []device.Command {
			return []device.Command{command(fill, n, x), command(download, n, host, x), command(fill, n, y), command(fill, n, y)}
		}, []time.Duration{55 * us, 79 * us, 79 * us, 79 * us}}, // compute ends at 5, 10, 15, the copy at 29
		{"whoever overwrites what is downloaded waits", func(x, y, host *device.Buffer) []device.Command {
			return []device.Command{command(fill, n, x), command(download, n, host, x), command(fill, n, x), command(fill, n, y)}
		}, []time.Duration{55 * us, 79 * us, 84 * us, 89 * us}},
		{"whoever reads what is uploaded waits", func(x, y, host *device.Buffer) []device.Command {
			return []device.Command{command(upload, n, x, host), command(increase, n, y, x)}
		}, []time.Duration{74 * us, 79 * us}},
		{"copies in one direction follow each other", func(x, y, host *device.Buffer) []device.Command {
			return []device.Command{command(upload, n, x, host), command(upload, n, y, host), command(download, n, host, x), command(download, n, host, x)}
		}, []time.Duration{74 * us, 98 * us, 98 * us, 122 * us}},
	} {
		t.Run(test.name, func(t *testing.T) {
			b, clock := newTest(t, nil)
			x, y, host := alloc(t, b, 4*n), alloc(t, b, 4*n), device.HostBuffer(4*n)
			last := submit(t, b, test.cmds(x, y, host)...)
			if got := visible(t, b); fmt.Sprint(got) != fmt.Sprint(test.want) {
				t.Errorf("finished at %v, want %v", got, test.want)
			}
			if b.Done(last) {
				t.Error("finished at once")
			}
			if err := b.Wait(context.Background(), last); err != nil || clock.Now() != test.want[last-1] {
				t.Errorf("waited until %v, error %v", clock.Now(), err)
			}
			if !b.Done(last) {
				t.Error("not done after Wait")
			}
			// An idle device starts a command when it is submitted.
			last = submit(t, b, command(fill, n, y))
			b.Wait(context.Background(), last)
			if want := test.want[last-2] + 55*us; clock.Now() != want {
				t.Errorf("a command of its own is finished at %v, want %v", clock.Now(), want)
			}
		})
	}
}

func TestDoneFollowsTheClock(t *testing.T) {
	b, clock := newTest(t, nil)
	x := alloc(t, b, 4)
	submit(t, b, command(fill, 1, x), command(fill, 1, x), command(fill, 1, x))
	visible(t, b)
	for _, step := range []struct {
		at   time.Duration
		done device.Ticket
	}{{54 * us, 0}, {55 * us, 1}, {59 * us, 1}, {65 * us, 3}} {
		clock.Wait(context.Background(), step.at)
		for ticket := device.Ticket(1); ticket <= 3; ticket++ {
			if got, want := b.Done(ticket), ticket <= step.done; got != want {
				t.Errorf("at %v: Done(%d) = %v", step.at, ticket, got)
			}
		}
	}
}

func TestFullQueueHoldsSubmitUp(t *testing.T) {
	b, clock := newTest(t, func(o *Options) { o.Queue = 2 })
	x := alloc(t, b, 4)
	cmds := make([]device.Command, 5)
	for i := range cmds {
		cmds[i] = command(fill, 1, x)
	}
	last := submit(t, b, cmds...)
	if last != 5 {
		t.Errorf("ticket %d, want 5", last)
	}
	// The third had to wait until the first was seen to be finished, and so on.
	if now := clock.Now(); now < 110*us {
		t.Errorf("five commands went into a queue of two in %v", now)
	}
	if !b.Done(3) || b.Done(5) {
		t.Errorf("Done(3) = %v, Done(5) = %v", b.Done(3), b.Done(5))
	}
}

func TestResultsAreComputed(t *testing.T) {
	b, _ := newTest(t, nil)
	x, y := alloc(t, b, 12), alloc(t, b, 12)
	in, out := device.HostBuffer(12), device.HostBuffer(12)
	copy(device.Slice[float32](in, 0, 3), []float32{1, 2, 3})
	last := submit(t, b, command(upload, 3, x, in), command(increase, 3, y, x), command(increase, 3, x, y), command(download, 3, out, x))
	if err := b.Wait(context.Background(), last); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(device.Slice[float32](out, 0, 3)); got != "[3 4 5]" {
		t.Errorf("got %v", got)
	}
}

func TestFailuresStayWithTheirCommand(t *testing.T) {
	b, _ := newTest(t, nil)
	other, _ := newTest(t, nil)
	x, foreign, host := alloc(t, b, 8), alloc(t, other, 8), device.HostBuffer(8)
	last := submit(t, b,
		command(fill, 1, x),
		command(divide, 1, x, x), // by 0
		command(fill, 1, x),
		command(fill, 1, foreign),
		command(fill, 1, host),
		command(upload, 1, x, x),
		command(fill, 9, x),
	)
	if err := b.Wait(context.Background(), last); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"", "sim: kernel divide panicked: runtime error: integer divide by zero", "", "sim: kernel fill: operand 0 is not memory of this device",
		"sim: kernel fill: operand 0 is not memory of this device", "sim: kernel upload: operand 1 is not host memory", "sim: kernel fill panicked: "} {
		err := b.Failure(device.Ticket(i + 1))
		if (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("command %d: error %v, want %q", i+1, err, want)
		}
	}
	var cause runtime.Error
	if !errors.As(b.Failure(2), &cause) {
		t.Error("the cause of the panic is lost")
	}
}

func TestFailuresAreBounded(t *testing.T) {
	b, _ := newTest(t, nil)
	x := alloc(t, b, 8)
	cmds := make([]device.Command, maxFailures+10)
	for i := range cmds {
		cmds[i] = command(divide, 1, x, x)
	}
	last := submit(t, b, cmds...)
	b.Wait(context.Background(), last)
	if len(b.failed) > maxFailures || b.Failure(last) == nil || b.Failure(last-maxFailures/2+1) == nil || b.Failure(1) != nil {
		t.Errorf("%d failures are remembered, the first: %v, the last: %v", len(b.failed), b.Failure(1), b.Failure(last))
	}
}

func TestWaitEndsWithItsContext(t *testing.T) {
	b, clock := newTest(t, nil)
	x := alloc(t, b, 8)
	last := submit(t, b, command(fill, 1, x))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := b.Wait(ctx, last); !errors.Is(err, context.Canceled) {
		t.Errorf("Wait with a cancelled context: %v", err)
	}
	if clock.Now() != 0 {
		t.Error("it has waited")
	}
	if err := b.Wait(context.Background(), last); err != nil {
		t.Errorf("Wait after that: %v", err)
	}
	if err := b.Wait(ctx, last); err != nil {
		t.Errorf("Wait for what is done: %v", err)
	}
	if err := b.Wait(context.Background(), last+1); err == nil || !strings.Contains(err.Error(), "ticket 2") {
		t.Errorf("Wait for a ticket that nobody has: %v", err)
	}
}

func TestClose(t *testing.T) {
	b, _ := newTest(t, nil)
	x := alloc(t, b, 8)
	last := submit(t, b, command(fill, 1, x))
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if !b.Done(last) {
		t.Error("Close has not waited")
	}
	if _, err := b.Submit([]device.Command{command(fill, 1, x)}); !errors.Is(err, device.ErrClosed) {
		t.Errorf("Submit: %v", err)
	}
	b.Free(x)
	if _, err := b.Alloc(8); !errors.Is(err, device.ErrClosed) {
		t.Errorf("Alloc: %v", err)
	}
}

// TestSystemClock uses real time, but does not check how much of it passes.
func TestSystemClock(t *testing.T) {
	b := New(Options{Launch: us, Latency: 400 * us, Copy: us})
	defer b.Close()
	x := alloc(t, b, 4)
	out := device.HostBuffer(4)
	begin := b.clock.Now()
	last := submit(t, b, command(fill, 1, x), command(increase, 1, x, x), command(download, 1, out, x))
	if err := b.Wait(context.Background(), last); err != nil {
		t.Fatal(err)
	}
	if took := b.clock.Now() - begin; took < 400*us {
		t.Errorf("latency of 400us passed in %v", took)
	}
	if got := device.Slice[float32](out, 0, 1)[0]; got != 1 {
		t.Errorf("got %v", got)
	}
	ctx, cancel := context.WithCancel(context.Background())
	last = submit(t, b, command(fill, 1, x))
	cancel()
	if err := b.clock.Wait(ctx, b.clock.Now()+time.Hour); !errors.Is(err, context.Canceled) {
		t.Errorf("the clock's Wait with a cancelled context: %v", err)
	}
	if err := b.clock.Wait(ctx, b.clock.Now()+50*us); !errors.Is(err, context.Canceled) {
		t.Errorf("the clock's short Wait with a cancelled context: %v", err)
	}
	b.Wait(context.Background(), last)
}

func TestManySubmitters(t *testing.T) {
	b := New(Options{Queue: 8})
	var wg sync.WaitGroup
	for range 4 {
		x := alloc(t, b, 4)
		out := device.HostBuffer(4)
		wg.Go(func() {
			for range 100 {
				if _, err := b.Submit([]device.Command{command(increase, 1, x, x), command(increase, 1, x, x)}); err != nil {
					t.Error(err)
				}
			}
			last, _ := b.Submit([]device.Command{command(download, 1, out, x)})
			if err := b.Wait(context.Background(), last); err != nil {
				t.Error(err)
			}
			if got := device.Slice[float32](out, 0, 1)[0]; got != 200 {
				t.Errorf("got %v, want 200", got)
			}
		})
	}
	wg.Wait()
	if err := b.Close(); err != nil {
		t.Error(err)
	}
}

func TestParse(t *testing.T) {
	for _, test := range []struct {
		settings string
		n        int
		want     Options
	}{
		{"", 1, Defaults()},
		{"clock=real", 1, Defaults()},
		{"clock=virtual", 1, VirtualDefaults()},
		{"n=4,flops=1.5G,memory=3TB/s,host=2us,launch=5us,latency=50us,clock=virtual,copy=0s,bandwidth=1GB/s,link=300GB/s", 4, Options{Launch: 5 * us, Latency: 50 * us, Bandwidth: 1e9,
			Link: 300e9, Virtual: true, Flops: 1.5e9, Memory: 3e12, Host: 2 * us}},
		{"n=3", 3, Defaults()},
		{"n=2, launch=0s,latency=1ms,copy=7us,bandwidth=2.5MB/s", 2, Options{Latency: time.Millisecond, Copy: 7 * us, Bandwidth: 2.5e6, Link: 50e9}},
		{"bandwidth=100B/s", 1, Options{Launch: 5 * us, Latency: 50 * us, Copy: 20 * us, Bandwidth: 100, Link: 50e9}},
	} {
		n, o, err := Parse(test.settings)
		if n != test.n || o != test.want || err != nil {
			t.Errorf("Parse(%q) = %d, %+v, %v", test.settings, n, o, err)
		}
	}
	for settings, want := range map[string]string{
		"lunch=5us":      `ASYNCGEN_SIM: "lunch=5us": there are n, launch, latency, copy, bandwidth, link and clock, and with clock=virtual flops, memory and host`,
		"n=0":            `ASYNCGEN_SIM: "n=0": not a number from 1`,
		"n":              `ASYNCGEN_SIM: "n": not a number from 1`,
		"launch=5":       `ASYNCGEN_SIM: "launch=5": not a duration such as 50us`,
		"latency=-1us":   `ASYNCGEN_SIM: "latency=-1us": not a duration such as 50us`,
		"n=1,":           `ASYNCGEN_SIM: "": there are n, launch, latency, copy, bandwidth, link and clock, and with clock=virtual flops, memory and host`,
		"bandwidth=16GB": `ASYNCGEN_SIM: "bandwidth=16GB": not a bandwidth such as 16GB/s`,
		"clock=wall":     `ASYNCGEN_SIM: "clock=wall": not real or virtual`,
		"n=2,flops=1T":   `ASYNCGEN_SIM: "flops=1T": this has a meaning with clock=virtual alone`,
		"flops=1TB":      `ASYNCGEN_SIM: "flops=1TB": not a rate such as 10T`,
		"memory=1T":      `ASYNCGEN_SIM: "memory=1T": not a bandwidth such as 16GB/s`,
		"bandwidth=0B/s": `ASYNCGEN_SIM: "bandwidth=0B/s": not a bandwidth such as 16GB/s`,
	} {
		if _, _, err := Parse(settings); err == nil || err.Error() != want {
			t.Errorf("Parse(%q): error %v, want %s", settings, err, want)
		}
	}
}

func TestDriver(t *testing.T) {
	t.Setenv("ASYNCGEN_SIM", "n=2,latency=3us")
	d, err := device.Open("sim:1")
	if err != nil {
		t.Fatal(err)
	}
	if d.Kind() != device.KindSimulated || !d.Backend().Caps().Simulated {
		t.Errorf("%v is not simulated", d)
	}
	if got, want := d.Backend().Caps().Description, "simulated accelerator: 5µs a launch, 3µs latency, 20µs a copy, 16 GB/s, 50 GB/s between devices"; got != want {
		t.Errorf("described as %q, want %q", got, want)
	}
	if _, err := device.Open("sim:2"); err == nil || !strings.Contains(err.Error(), "there are 2") {
		t.Errorf("sim:2: %v", err)
	}
	t.Setenv("ASYNCGEN_SIM", "n=many")
	if _, err := device.Open("sim:0"); err == nil || !strings.Contains(err.Error(), "n=many") {
		t.Errorf("bad settings: %v", err)
	}
	if gpus := device.GPUs(); len(gpus) != 0 {
		t.Errorf("a simulated device is a GPU: %v", gpus)
	}
}

// BenchmarkSync measures a launch and the wait for it; 55 us of it are the model's.
func BenchmarkSync(b *testing.B) {
	d := New(Defaults())
	defer d.Close()
	x, err := d.Alloc(8)
	if err != nil {
		b.Fatal(err)
	}
	cmds := []device.Command{command(increase, 2, x, x)}
	for b.Loop() {
		last, _ := d.Submit(cmds)
		d.Wait(context.Background(), last)
	}
}

// BenchmarkAsync measures a launch that nobody waits for; 5 us of it are the model's.
func BenchmarkAsync(b *testing.B) {
	d := New(Defaults())
	defer d.Close()
	x, err := d.Alloc(8)
	if err != nil {
		b.Fatal(err)
	}
	cmds := []device.Command{command(increase, 2, x, x)}
	for b.Loop() {
		d.Submit(cmds)
	}
}

// In a bubble of testing/synctest the model's time passes exactly, and takes no real time:
// goroutines that wait for the device, for room in its queue, or for another one in Submit are
// durably blocked.
func TestInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(Options{Launch: 5 * us, Latency: 50 * us, Queue: 4})
		buf, err := b.Alloc(4)
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		const submitters, batches, batch = 3, 20, 7
		var wg sync.WaitGroup
		for range submitters {
			wg.Go(func() {
				for range batches {
					cmds := make([]device.Command, batch)
					for i := range cmds {
						cmds[i] = device.Command{Kernel: fill, N: 1, Buf: [device.MaxOperands]*device.Buffer{buf}}
					}
					last, err := b.Submit(cmds)
					if err == nil {
						err = b.Wait(t.Context(), last)
					}
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		// A command begins when there is room for it: for 4 commands whenever the oldest is seen to be
		// finished.
		took := time.Since(start)
		if least := submitters * batches * batch * 5 * us; took < least || took > 10*least {
			t.Errorf("%d commands took %v, at least %v expected", submitters*batches*batch, took, least)
		}
		start = time.Now()
		last, err := b.Submit([]device.Command{{Kernel: fill, N: 1, Buf: [device.MaxOperands]*device.Buffer{buf}}})
		if err != nil {
			t.Fatal(err)
		}
		if err := b.Wait(t.Context(), last); err != nil {
			t.Error(err)
		}
		if took := time.Since(start); took != 55*us {
			t.Errorf("a command took %v, want 55µs", took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 30*us)
		defer cancel()
		last, err = b.Submit([]device.Command{{Kernel: fill, N: 1, Buf: [device.MaxOperands]*device.Buffer{buf}}})
		if err != nil {
			t.Fatal(err)
		}
		if err := b.Wait(ctx, last); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a wait of 30µs for a command of 55: got %v", err)
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
}

// In virtual time a command begins at the time of its stamp, and takes what the model says, however
// long it really takes.
func TestVirtualTime(t *testing.T) {
	o := VirtualDefaults()
	o.Flops, o.Memory = 1e9, 8e9 // 1,000 operations or 8,000 bytes a microsecond
	b := New(o)
	defer b.Close()
	const n = 16000
	x, y, host := alloc(t, b, 4*n), alloc(t, b, 4*n), device.HostBuffer(4*n)
	begin := Now()
	var stamps [6]device.Stamp
	cmds := []device.Command{command(upload, n, x, host), command(increase, n, y, x), command(download, n, host, y), command(fill, 1, x), command(fill, 1, x), command(upload, n, x, host)}
	for i := range cmds {
		stamps[i].Issued = begin + time.Duration(i)*us
		cmds[i].Stamp = &stamps[i]
	}
	stamps[4].Issued += 100 * us
	last := submit(t, b, cmds...)
	if err := b.Wait(t.Context(), last); err != nil {
		t.Fatal(err)
	}
	if Now() != begin {
		t.Error("the device has moved the program's clock")
	}
	// The first copy ends at 24; 128,000 bytes take 16 more, as do 16,000 operations; the copy back
	// ends at 64. A command that overwrites what others read does not wait for them: it ends at 45,
	// the one issued at 104 at 109, and the copy at 48.
	for i, want := range []time.Duration{74, 90, 114, 114, 159, 159} {
		if got := stamps[i].Finished() - begin; got != want*us {
			t.Errorf("command %d is finished at %v, want %v", i, got, want*us)
		}
	}
	if got, want := b.Busy(), (Busy{Compute: 26 * us, Upload: 48 * us, Download: 24 * us}); got != want {
		t.Errorf("busy: %+v, want %+v", got, want)
	}
	if idle, ok := device.IdleOf(b); idle != 0 || !ok {
		t.Errorf("idle for %v, though the program is not where the device is", idle)
	}
}

// A command that reads or overwrites memory waits for earlier copies from other devices to it,
// really and by the model. Other commands don't wait.
func TestCopyFromAnotherDevice(t *testing.T) {
	const n = 16000 // 64,000 bytes: 2 us at 32 GB/s
	duplicate := device.NewKernel("copy", device.Copy, nil, device.Float32, device.Float32)
	concat := device.NewKernel("concat", device.Concat, nil, device.Float32)
	for _, test := range []struct {
		name string
		use  func(there, y *device.Buffer) device.Command // its output must be want
		want float32
	}{
		{"reads it", func(there, y *device.Buffer) device.Command { return command(increase, n, y, there) }, 2},
		{"reads it among parts", func(there, y *device.Buffer) device.Command {
			c := command(concat, n, y)
			c.Args = &device.Args{Shape: device.Shape{1}, Parts: []device.Part{{Buf: there, N: n}}}
			return c
		}, 1},
		{"overwrites it", func(there, y *device.Buffer) device.Command { return command(fill, n, there) }, 0},
	} {
		b, _ := newTest(t, func(o *Options) { o.Link = 32e9 })
		other, _ := newTest(t, nil)
		x, there, y, z := alloc(t, b, 4*n), alloc(t, other, 4*n), alloc(t, other, 4*n), alloc(t, other, 4*n)
		ones := command(fill, n, x)
		ones.Imm[0] = kernel.BitsOf(1, device.Float32)
		submit(t, b, ones, command(duplicate, n, there, x)) // it ends at 27
		c := test.use(there, y)
		submit(t, other, command(increase, n, z, z), c, command(increase, n, z, z))
		// On b the copy is seen to be finished later than the next command here ends.
		want := []time.Duration{55 * us, 82 * us, 87 * us}
		if got := visible(t, other); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: finished at %v, want %v", test.name, got, want)
		}
		for i := range 3 {
			if err := other.Failure(device.Ticket(i + 1)); err != nil {
				t.Errorf("%s: %v", test.name, err)
			}
		}
		if got := device.Slice[float32](c.Buf[0].Handle.(*memory).host, 0, n); got[0] != test.want || got[n-1] != test.want {
			t.Errorf("%s: got %v and %v, want %v", test.name, got[0], got[n-1], test.want)
		}
	}
}

// Devices copy to each other in a ring, with queues that have room for one or two commands.
func TestCopiesInARing(t *testing.T) {
	duplicate := device.NewKernel("copy", device.Copy, nil, device.Float32, device.Float32)
	ring := make([]*Backend, 3)
	for i := range ring {
		ring[i] = New(Options{Queue: 1 + i%2})
		defer ring[i].Close()
	}
	x := alloc(t, ring[0], 4)
	const rounds = 300
	for i := range rounds {
		from, to := ring[i%3], ring[(i+1)%3]
		there := alloc(t, to, 4)
		submit(t, from, command(increase, 1, x, x), command(duplicate, 1, there, x))
		x = there
	}
	out := device.HostBuffer(4)
	last := ring[rounds%3]
	if err := last.Wait(t.Context(), submit(t, last, command(download, 1, out, x))); err != nil {
		t.Fatal(err)
	}
	if got := device.Slice[float32](out, 0, 1)[0]; got != rounds {
		t.Errorf("got %v, want %v", got, rounds)
	}
}

// A copy to another device uses the link, and delays no other queue. Other commands on memory of
// another device fail.
func TestCopyToAnotherDevice(t *testing.T) {
	const n = 16000 // 64,000 bytes: 2 us at 32 GB/s
	b, _ := newTest(t, func(o *Options) { o.Link = 32e9 })
	other, _ := newTest(t, nil)
	x, there := alloc(t, b, 4*n), alloc(t, other, 4*n)
	duplicate := device.NewKernel("copy", device.Copy, nil, device.Float32, device.Float32)
	ones := command(fill, n, x)
	ones.Imm[0] = kernel.BitsOf(1, device.Float32)
	last := submit(t, b, ones, command(duplicate, n, there, x), command(duplicate, n, x, there), command(increase, n, there, x))
	if got, want := fmt.Sprint(visible(t, b)[:2]), fmt.Sprint([]time.Duration{55 * us, 77 * us}); got != want {
		t.Errorf("finished at %s, want %s", got, want) // the first ends at 5, and the copy takes 20 and 2
	}
	if err := b.Wait(t.Context(), last); err != nil {
		t.Fatal(err)
	}
	for i, want := range []bool{true, true, false, false} {
		if err := b.Failure(device.Ticket(i + 1)); (err == nil) != want {
			t.Errorf("command %d: error %v", i+1, err)
		}
	}
	if got := device.Slice[float32](there.Handle.(*memory).host, 0, n); got[0] != 1 || got[n-1] != 1 {
		t.Errorf("%v and %v have arrived", got[0], got[n-1])
	}
	if !device.Reaches(b, other) || device.Reaches(b, b) || device.Reaches(b, device.CPU().Backend()) || device.Reaches(device.CPU().Backend(), b) {
		t.Error("who reaches whom is wrong")
	}
}
