package opencl

import (
	"cmp"
	"errors"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/internal/cl"
	"github.com/asyncgen/asyncgen/device/internal/dl"
	"github.com/asyncgen/asyncgen/device/internal/ffi"
	"github.com/asyncgen/asyncgen/device/kernel"
	"github.com/asyncgen/asyncgen/device/opencl/clfault"
	"github.com/asyncgen/asyncgen/internal/turns"
)

var (
	total = device.NewKernel("total", device.Reduce, kernel.ReduceSum, device.Int64, device.Int64)
	sorts = device.NewKernel("sorts", device.ArgSort, nil, device.Int64, device.Int64)
)

// spread makes a device use all its queues: events cost nothing.
func spread(b *Backend) *Backend {
	b.crossing = 0
	return b
}

// A gate is an event that the test sets.
type gate struct {
	event uintptr
	open  func()
}

// newGate makes commands enqueued from now on in queue q of b wait until the gate is opened. The
// end of the test opens it at the latest.
func newGate(t *testing.T, b *Backend, q queueIndex) *gate {
	t.Helper()
	library, err := dl.Open(b.driver.Name)
	if err != nil {
		t.Fatal(err)
	}
	create, err := library.Symbol("clCreateUserEvent")
	if err != nil {
		t.Fatal(err)
	}
	set, err := library.Symbol("clSetUserEventStatus")
	if err != nil {
		t.Fatal(err)
	}
	arena := new(ffi.Arena)
	words, at := arena.Words(2)
	g := &gate{event: ffi.Do(create, uintptr(b.context), at)}
	if g.event == 0 {
		t.Fatalf("no event: code %d", int32(words[0]))
	}
	words[1] = uint64(g.event)
	g.open = sync.OnceFunc(func() {
		ffi.Do(set, g.event, uintptr(cl.Success))
		cl.Event(g.event).Release(b.driver)
	})
	t.Cleanup(g.open)
	batch := &cl.Batch{Driver: b.driver}
	batch.Add(cl.EnqueueBarrierWithWaitList, uintptr(b.queues[q].handle), 1, at+8, 0)
	batch.Add(cl.Flush, uintptr(b.queues[q].handle))
	_, err = batch.Run(0)
	runtime.KeepAlive(arena)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// behind returns the event behind the last command that changes buf. The command is not done. On a
// spread device, each command has such an event.
func behind(t *testing.T, b *Backend, buf *device.Buffer) cl.Event {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	m := buf.Handle.(*block)
	for _, mark := range b.queues[m.writer].marks {
		if mark.position >= m.written.position {
			return cl.Event(mark.event[0])
		}
	}
	t.Fatal("there is no event")
	return 0
}

// peek reads n elements of buf without waiting for commands that are enqueued.
func peek(t *testing.T, b *Backend, buf *device.Buffer, n int) []int64 {
	t.Helper()
	q, err := b.driver.CreateQueue(b.context, b.device)
	if err != nil {
		t.Fatal(err)
	}
	defer q.Release(b.driver)
	arena := new(ffi.Arena)
	values, at := arena.Words(n)
	batch := &cl.Batch{Driver: b.driver}
	const blocking = 1
	batch.Add(cl.EnqueueReadBuffer, uintptr(q), uintptr(buf.Handle.(*block).slab.mem), blocking, uintptr(buf.Offset()), uintptr(8*n), at, 0, 0, 0)
	if _, err := batch.Run(0); err != nil {
		t.Fatal(err)
	}
	return slices.Clone(unsafe.Slice((*int64)(unsafe.Pointer(unsafe.SliceData(values))), n))
}

// A blocked queue holds up the commands that depend on its commands, and no others.
func TestBlockedQueue(t *testing.T) {
	b := spread(newTest(t))
	var bufs [5]*device.Buffer
	for i := range bufs {
		bufs[i] = alloc(t, b, 2)
		mustDo(t, b, command(fill, 2, bufs[i]))
	}
	x, y, z, v, w := bufs[0], bufs[1], bufs[2], bufs[3], bufs[4]
	mustDo(t, b, command(sum, 2, w, x, y), command(double, 2, v, z)) // compiles them
	filled := func(buf *device.Buffer, value uint64) device.Command {
		c := command(fill, 2, buf)
		c.Imm[0] = value
		return c
	}
	blocked := b.latest
	g := newGate(t, b, blocked)
	last, err := b.Submit([]device.Command{
		filled(x, 7), // goes into the blocked queue, as all are empty
		filled(y, 5),
		command(double, 2, z, y),
		command(double, 2, v, z),
		command(sum, 2, w, x, y),
		command(download, 2, hostOf(0, 0), x),
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := x.Handle.(*block).writer; got != blocked {
		t.Fatalf("the first command is in queue %d, want %d", got, blocked)
	}
	for i, buf := range []*device.Buffer{y, z, v} {
		if got := buf.Handle.(*block).writer; got == blocked {
			t.Errorf("command %d is in the queue of another one, which it does not depend on", i+1)
			continue
		}
		if err := b.driver.Wait([]cl.Event{behind(t, b, buf)}); err != nil {
			t.Fatal(err)
		}
		if got, want := peek(t, b, buf, 2), int64(5<<i); got[0] != want || got[1] != want {
			t.Errorf("command %d gives %d, want %d", i+1, got, want)
		}
	}
	// Now every command that can run has run.
	for name, buf := range map[string]*device.Buffer{"the command that is blocked": x, "one that depends on it": w} {
		if status, err := b.driver.Status(behind(t, b, buf)); err != nil || status <= 0 {
			t.Errorf("%s has status %v, error %v", name, status, err)
		}
		if got := peek(t, b, buf, 2); got[0] != 0 || got[1] != 0 {
			t.Errorf("%s has run and given %d", name, got)
		}
	}
	if b.Done(last - 5) {
		t.Error("the command that is blocked is done")
	}
	g.open()
	if err := b.Wait(t.Context(), last); err != nil {
		t.Fatal(err)
	}
	if got := peek(t, b, w, 2); got[0] != 12 || got[1] != 12 {
		t.Errorf("got %d, want 12", got)
	}
}

// Small commands that depend on each other share a queue, and few have an event behind them.
func TestSmallCommandsShareAQueue(t *testing.T) {
	c := clfault.New()
	b, err := open(hooked(t, c))
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	x, y := alloc(t, b, 8), alloc(t, b, 8)
	mustDo(t, b, command(fill, 8, x))
	cmds := make([]device.Command, 10*maxCommands)
	for i := range cmds {
		cmds[i] = command(double, 8, x, x)
		if i%2 == 1 {
			cmds[i] = command(sum, 8, y, x, x)
		}
	}
	before := c.Count(cl.EnqueueMarkerWithWaitList)
	mustDo(t, b, cmds...)
	if n := c.Count(cl.EnqueueBarrierWithWaitList); n != 0 {
		t.Errorf("%d waits of a queue for another one", n)
	}
	if n := c.Count(cl.EnqueueMarkerWithWaitList) - before; n > len(cmds)/maxCommands+len(cmds)*(launchWork+8)/crossing+1 {
		t.Errorf("%d events for %d commands", n, len(cmds))
	}
}

// Large commands that do not depend on each other go to different queues, each with kernel objects
// of its own. A command that depends on all of them comes after them.
func TestLargeCommandsSpread(t *testing.T) {
	t.Setenv("ASYNCGEN_OPENCL_QUEUES", "3")
	c := clfault.New()
	b, err := open(hooked(t, c))
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	const n = 2 * crossing
	x := alloc(t, b, n)
	one := command(fill, n, x)
	one.Imm[0] = 1
	mustDo(t, b, one)
	var parts [3]*device.Buffer
	var cmds []device.Command
	for i := range parts {
		parts[i] = alloc(t, b, n)
		cmds = append(cmds, command(double, n, parts[i], x))
	}
	cmds = append(cmds, command(sum, n, parts[0], parts[0], parts[1]), command(sum, n, parts[0], parts[0], parts[2]))
	before := c.Count(cl.CreateKernel)
	mustDo(t, b, cmds...)
	mustDo(t, b, cmds...)
	// 10 launches; which queues they use depends on when the compiler is ready
	if made := c.Count(cl.CreateKernel) - before; made < 3 || made > 2*3 {
		t.Errorf("%d kernels were made, want one of each source for each queue that it is in", made)
	}
	seen := map[queueIndex]bool{}
	for _, part := range parts {
		seen[part.Handle.(*block).writer] = true
	}
	if len(seen) < 2 {
		t.Errorf("they are in %d queues", len(seen))
	}
	out := device.HostBuffer(8 * n)
	mustDo(t, b, command(download, n, out, parts[0]))
	for i, got := range device.Slice[int64](out, 0, n) {
		if got != 6 {
			t.Fatalf("element %d is %d, want 6", i, got)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range b.queues[compute:] {
		if b.queues[int(compute)+i].enqueued == 0 {
			t.Errorf("queue %d is not used", i)
		}
	}
}

func TestQueuesSetting(t *testing.T) {
	f := first(t)
	for text, want := range map[string]int{"": defaultQueues, "1": 1, "8": 8} {
		t.Setenv("ASYNCGEN_OPENCL_QUEUES", text)
		b, err := open(f)
		if err != nil {
			t.Fatal(err)
		}
		if got := len(b.queues) - int(compute); got != want {
			t.Errorf("%q: %d queues, want %d", text, got, want)
		}
		b.Close()
	}
	for _, text := range []string{"0", "9", "-1", "many"} {
		t.Setenv("ASYNCGEN_OPENCL_QUEUES", text)
		if _, err := open(f); err == nil || !strings.Contains(err.Error(), "ASYNCGEN_OPENCL_QUEUES="+text) {
			t.Errorf("%q: error %v", text, err)
		}
	}
}

// A twin is a buffer in three places: on the device, on the CPU, and as the expected numbers.
type twin struct {
	dev, cpu *device.Buffer
	want     []int64
}

// hazards is a random program whose commands read what others write, and overwrite what others read
// and write.
type hazards struct {
	t     *testing.T
	b     *Backend
	cpu   device.Backend
	rnd   *rand.Rand
	twins []*twin
	trash *twin // output of commands that fail
	batch []device.Command
	fails []bool // for each command of the batch: it is to fail
	outs  []modelOut
}

func (h *hazards) twin(n int) *twin {
	tw := &twin{alloc(h.t, h.b, n), device.HostBuffer(int64(8 * n)), make([]int64, n)}
	mustDo(h.t, h.b, command(fill, n, tw.dev))
	return tw
}

// A span is elements of a twin.
type span struct {
	*twin
	at, n int
}

func (s span) values() []int64 { return s.want[s.at : s.at+s.n] }

// draw returns n elements somewhere. They overlap none of the given spans, except as exactly the
// same elements.
func (h *hazards) draw(n int, apart ...span) span {
	for {
		tw := h.twins[h.rnd.IntN(len(h.twins))]
		if len(tw.want) < n {
			continue
		}
		s := span{tw, h.rnd.IntN(len(tw.want) - n + 1), n}
		if !slices.ContainsFunc(apart, func(o span) bool {
			return o.twin == tw && (o.at != s.at || o.n != n) && s.at < o.at+o.n && o.at < s.at+n
		}) {
			return s
		}
	}
}

// apart is like draw, but the result is also not one of the given spans.
func (h *hazards) apart(n int, spans ...span) span {
	for {
		s := h.draw(n, spans...)
		if !slices.ContainsFunc(spans, func(o span) bool { return o.twin == s.twin && o.at == s.at }) {
			return s
		}
	}
}

// add adds a command to the batch, and runs it on the CPU.
func (h *hazards) add(k *device.Kernel, n int, args *device.Args, fails bool, spans ...span) {
	h.t.Helper()
	c := device.Command{Kernel: k, N: n, Args: args}
	on := c
	for i, s := range spans {
		c.Buf[i], c.Off[i] = s.dev, s.at
		on.Buf[i], on.Off[i] = s.cpu, s.at
	}
	h.batch, h.fails = append(h.batch, c), append(h.fails, fails)
	if _, err := h.cpu.Submit([]device.Command{on}); (err != nil) != fails {
		h.t.Fatalf("%s on the CPU: error %v", k.Name, err)
	}
}

// size draws how many elements a command is for: few, mostly.
func (h *hazards) size() int {
	switch h.rnd.IntN(12) {
	case 0:
		return 1 + h.rnd.IntN(5000)
	case 1, 2:
		return 1 + h.rnd.IntN(300)
	}
	return 1 + h.rnd.IntN(8)
}

// step adds a command, or a few.
func (h *hazards) step() {
	n := h.size()
	switch h.rnd.IntN(10) {
	case 0: // upload
		to := h.draw(n)
		values := make([]int64, n)
		for i := range values {
			values[i] = h.rnd.Int64()
		}
		from := &twin{dev: hostOf(values...), cpu: hostOf(values...)}
		h.add(upload, n, nil, false, to, span{from, 0, n})
		copy(to.values(), values)
	case 1: // download
		from := h.draw(n)
		to := &twin{dev: device.HostBuffer(int64(8 * n)), cpu: device.HostBuffer(int64(8 * n))}
		h.add(download, n, nil, false, span{to, 0, n}, from)
		h.outs = append(h.outs, modelOut{to.dev, slices.Clone(from.values())})
	case 2: // total
		from := h.draw(n)
		to := h.apart(1, from)
		h.add(total, 1, &device.Args{Shape: device.Shape{n}, Kept: 0, Ints: []int{0, 0}}, false, to, from)
		sum := int64(0)
		for _, v := range from.values() {
			sum += v
		}
		to.values()[0] = sum
	case 3: // sorts
		from := h.draw(n)
		to := h.apart(n, from)
		h.add(sorts, n, &device.Args{Shape: device.Shape{n}, Kept: 0, Ints: []int{n, 0}}, false, to, from)
		order := make([]int64, n)
		for i := range order {
			order[i] = int64(i)
		}
		values := slices.Clone(from.values())
		slices.SortStableFunc(order, func(i, j int64) int { return cmp.Compare(values[i], values[j]) })
		copy(to.values(), order)
	case 4: // gather by the sorted order, or out of range
		from := h.draw(n)
		index := h.apart(n, from)
		to := h.apart(n, from, index)
		h.add(sorts, n, &device.Args{Shape: device.Shape{n}, Kept: 0, Ints: []int{n, 0}}, false, index, to)
		order := make([]int64, n)
		for i := range order {
			order[i] = int64(i)
		}
		values := slices.Clone(to.values())
		slices.SortStableFunc(order, func(i, j int64) int { return cmp.Compare(values[i], values[j]) })
		copy(index.values(), order)
		fails := h.rnd.IntN(3) == 0
		length := n
		if fails {
			to, length = span{h.trash, 0, n}, n-1
		}
		h.add(gather, n, &device.Args{Shape: device.Shape{n}, Strides: [device.MaxOperands][]int{nil, {0}, {1}}, Ints: []int{length, 1}}, fails, to, from, index)
		if !fails {
			for i, at := range order {
				to.values()[i] = from.values()[at]
			}
		}
	case 5: // fill
		to := h.draw(n)
		h.add(fill, n, nil, false, to)
		clear(to.values())
	default: // sum, perhaps in place
		to := h.draw(n)
		x, y := h.draw(n, to), h.draw(n, to)
		h.add(sum, n, nil, false, to, x, y)
		xs, ys := slices.Clone(x.values()), slices.Clone(y.values())
		for i := range n {
			to.values()[i] = xs[i] + ys[i]
		}
	}
}

// look submits the batch and compares what came out of it.
func (h *hazards) look() {
	h.t.Helper()
	failed, err := do(h.b, h.batch...)
	if err != nil {
		h.t.Fatal(err)
	}
	for i, fails := range h.fails {
		if (failed[i] != nil) != fails {
			h.t.Fatalf("command %d of %d, %s: error %v", i, len(failed), h.batch[i].Kernel.Name, failed[i])
		}
	}
	for i, out := range h.outs {
		if got := device.Slice[int64](out.host, 0, len(out.want)); !slices.Equal(got, out.want) {
			h.t.Fatalf("download %d differs", i)
		}
	}
	h.batch, h.fails, h.outs = nil, nil, nil
	for i, tw := range h.twins {
		n := len(tw.want)
		if got := device.Slice[int64](tw.cpu, 0, n); !slices.Equal(got, tw.want) {
			h.t.Fatalf("the CPU's buffer %d differs", i)
		}
		host := device.HostBuffer(int64(8 * n))
		mustDo(h.t, h.b, command(download, n, host, tw.dev))
		if got := device.Slice[int64](host, 0, n); !slices.Equal(got, tw.want) {
			h.t.Fatalf("the device's buffer %d differs", i)
		}
	}
}

// Commands in several queues read and write what they would one after the other: the same as the
// CPU, and the expected numbers.
func TestHazards(t *testing.T) {
	seed := seedOf(t)
	for _, queues := range []string{"1", "2", "4", "8"} {
		t.Run(queues, func(t *testing.T) {
			t.Setenv("ASYNCGEN_OPENCL_QUEUES", queues)
			b := counted(t)
			h := &hazards{t: t, b: b, cpu: device.CPU().Backend(), rnd: rand.New(rand.NewPCG(seed, uint64(len(b.queues))))}
			if h.rnd.IntN(4) > 0 {
				spread(b)
			}
			for _, n := range []int{8, 40, 40, 9000, 20000, 20000} {
				h.twins = append(h.twins, h.twin(n))
			}
			h.trash = h.twin(9000)
			for range 12 {
				for range 1 + h.rnd.IntN(150) {
					h.step()
				}
				h.look()
			}
		})
	}
}

// Like TestEachCallRunsOutOfMemory and TestEachCallLosesTheDevice, with commands in all queues.
func TestEachCallOfManyQueuesRunsOutOfMemory(t *testing.T) {
	turns.Take(t)
	t.Setenv("ASYNCGEN_OPENCL_QUEUES", "3")
	testEachCallWith(t, cl.OutOfHostMemory, device.ErrOutOfMemory, spread)
}

func TestEachCallOfManyQueuesLosesTheDevice(t *testing.T) {
	turns.Take(t)
	t.Setenv("ASYNCGEN_OPENCL_QUEUES", "3")
	testEachCallWith(t, cl.DeviceNotAvailable, device.ErrLost, spread)
}

// Each queue gets a kernel object of its own. If it can't be created, the command that needs it
// fails and no other.
func TestKernelOfAnotherQueueFails(t *testing.T) {
	c := clfault.New()
	b, err := open(hooked(t, c))
	if err != nil {
		t.Fatal(err)
	}
	spread(b)
	defer b.Close()
	x, y, z := alloc(t, b, 2), alloc(t, b, 2), alloc(t, b, 2)
	mustDo(t, b, command(fill, 2, x))
	c.Fail(1, cl.OutOfHostMemory) // creating the kernel object of the second command
	failed, err := do(b, command(fill, 2, x), command(fill, 2, y), command(fill, 2, z))
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(c.Failed(), []string{cl.CreateKernel.String()}) || !errors.Is(failed[1], device.ErrOutOfMemory) || failed[0] != nil || failed[2] != nil {
		t.Errorf("%v has failed, errors %v", c.Failed(), failed)
	}
}

// BenchmarkQueues runs four kernels of one work group each, which a device with several units can
// run concurrently. least-ns is the fastest round.
func BenchmarkQueues(b *testing.B) {
	f := first(b)
	running := device.NewKernel("running", device.Scan, kernel.ReduceSum, device.Int64, device.Int64)
	const n = 1 << 16
	for _, queues := range []string{"1", "2", "4", "8"} {
		b.Run(queues, func(b *testing.B) {
			b.Setenv("ASYNCGEN_OPENCL_QUEUES", queues)
			d, err := open(f)
			if err != nil {
				b.Fatal(err)
			}
			defer d.Close()
			spread(d)
			var cmds []device.Command
			for range 4 {
				x := alloc(b, d, n)
				mustDo(b, d, command(fill, n, x))
				c := command(running, n, x, x)
				c.Args = &device.Args{Shape: device.Shape{n}, Ints: []int{0, 0}}
				cmds = append(cmds, c)
			}
			mustDo(b, d, cmds...)
			least := time.Hour
			for b.Loop() {
				begin := time.Now()
				mustDo(b, d, cmds...)
				least = min(least, time.Since(begin))
			}
			b.ReportMetric(float64(least.Nanoseconds()), "least-ns")
		})
	}
}
