package engine

import (
	"context"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/cpu"
	"github.com/asyncgen/asyncgen/device/sim"
)

// Behind an operation that does not finish, a worker runs operations that need nothing, but only while
// they take little memory. Operations that release more than they take still run.
func TestRunningAheadTakesLittle(t *testing.T) {
	e := newEngine(t, Options{Mode: Async, Workers: 2, MaxBytes: -1})
	dev := newCPU(2)
	block, started, open := blocking()
	defer open()
	var ran atomic.Int64
	fill := fakeKernel("fill", 0, func(*device.Command) error { ran.Add(1); return nil })
	source := func(bytes int64) *Storage {
		s := e.NewStorage(dev, bytes)
		e.Enqueue(&Op{Cmd: device.Command{Kernel: fill, N: int(bytes / 8)}, Operands: [device.MaxOperands]*Storage{s}, Cost: 100})
		return s
	}
	x := fromFloats(e, dev, 1)
	y := e.NewStorage(dev, 8)
	unary(e, block, y, x)
	e.stream(dev).exec.flush()
	<-started
	const each = 256 << 10
	for range 100 { // nothing is left of them
		e.Release(source(each))
	}
	f := e.stream(dev).exec.(*flow)
	for some := true; some || ran.Load() < 100; {
		_, some = f.helpSome(forAll)
	}
	for range 100 {
		source(each)
	}
	for some := true; some; { // what a worker may have begun ends before it finds more
		_, some = f.helpSome(forAll)
	}
	var early int64
	for begun := int64(0); begun != ran.Load(); { // until no worker runs one
		begun = ran.Load()
		f.lock.lock()
		early = f.early
		f.unlock()
	}
	if n := ran.Load() - 100; n < minAhead/each || n > minAhead/each+3 || early > minAhead+3*each {
		t.Errorf("%d operations of %d bytes have run ahead, %d bytes in all", n, each, early)
	}
	open()
	if err := e.WaitAll(bg); err != nil || ran.Load() != 200 {
		t.Errorf("%v after %d operations", err, ran.Load())
	}
}

// limited is a Backend with the memory of another one.
type limited struct {
	device.Backend
	of device.Backend
}

func (l limited) Alloc(bytes int64) (*device.Buffer, error) { return l.of.Alloc(bytes) }
func (l limited) Free(b *device.Buffer)                     { l.of.Free(b) }
func (l limited) Memory() *device.Allocator                 { return device.MemoryOf(l.of) }

// A waiter passes over operations that it does not need. The results that only these still use must not fill the
// memory: in program order, three of them are enough.
func TestWaiterPassesOverLittle(t *testing.T) {
	t.Setenv("ASYNCGEN_MEMORY", "16777216") // 32 results
	e := newEngine(t, Options{Mode: Async, Workers: 1, MaxBytes: -1})
	dev := device.Wrap("cpu", device.KindSimulated, limited{newCPU(1).Backend(), cpu.New()})
	block, started, open := blocking()
	defer open()
	unary(e, block, e.NewStorage(dev, 8), fromFloats(e, dev, 1))
	e.stream(dev).exec.flush()
	<-started // no worker is left
	const n = 512 << 10 / 8
	enqueue := func(k *device.Kernel, out *Storage, in ...*Storage) *Storage {
		elems := int(out.own.Bytes / 8)
		op := &Op{Cmd: device.Command{Kernel: k, N: elems}, Operands: [device.MaxOperands]*Storage{out}, Cost: int64(elems)}
		copy(op.Operands[1:], in)
		e.Enqueue(op)
		return out
	}
	x := fromFloats(e, dev, make([]float64, n)...)
	sum := fromFloats(e, dev, 0)
	for range 100 {
		next := enqueue(addOne, e.NewStorage(dev, n*8), x)
		half := enqueue(addOne, e.NewStorage(dev, n*8/2), next) // of another size, so that it takes no memory over
		enqueue(addUp, sum, sum, half)
		e.Release(x, half)
		x = next
	}
	for _, s := range []*Storage{x, sum} {
		if err := s.Wait(bg, "Wait"); err != nil {
			t.Fatal(err)
		}
	}
	if got, sum := device.Slice[float64](x.Buffer(), 0, n)[n-1], device.Slice[float64](sum.Buffer(), 0, 1)[0]; got != 100 || sum != 5150 {
		t.Errorf("got %v and a sum of %v", got, sum)
	}
}

// remembering is a Backend that says how much of its memory is live.
type remembering struct {
	device.Backend
	memory *device.Allocator
}

func (r remembering) Memory() *device.Allocator { return r.memory }

// How much may be taken ahead depends on what is live, which changes at any time: also between a worker's look for work
// and its taking some. One run in several hundred came between them.
func TestRunningAheadWhileMemoryChanges(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(8)) // threads take turns in the middle of what they do
	for range 5 {
		runAheadWhileMemoryChanges(t)
	}
}

func runAheadWhileMemoryChanges(t *testing.T) {
	e := newEngine(t, Options{Mode: Async, Workers: 2, MaxBytes: -1})
	memory := device.MemoryOf(cpu.New())
	dev := device.Wrap("cpu", device.KindSimulated, remembering{newCPU(2).Backend(), memory})
	block, started, open := blocking()
	defer open()
	const n = 3000
	var ran atomic.Int64
	fill := fakeKernel("fill", 0, func(*device.Command) error { ran.Add(1); return nil })
	y := e.NewStorage(dev, 8)
	unary(e, block, y, fromFloats(e, dev, 1))
	e.stream(dev).exec.flush()
	<-started
	var all []*Storage
	for range n { // 46 MiB: they may run ahead if 1 GiB is live, and not all of them if only they are
		s := e.NewStorage(dev, 16<<10)
		e.Enqueue(&Op{Cmd: device.Command{Kernel: fill, N: 2 << 10}, Operands: [device.MaxOperands]*Storage{s}, Cost: 100})
		all = append(all, s)
	}
	go func() {
		for ran.Load() < n {
			b, err := memory.Alloc(1 << 30)
			if err != nil {
				t.Error(err)
				open()
				return
			}
			memory.Free(b)
		}
	}()
	for ran.Load() < n {
		e.stream(dev).exec.flush()
		runtime.Gosched()
	}
	open()
	if err := e.WaitAll(bg); err != nil {
		t.Error(err)
	}
	runtime.KeepAlive(all)
}

// The list of ready operations is in program order, in whatever order they became ready.
func TestReadyInProgramOrder(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	e := newEngine(t, Options{Mode: Async, Workers: 1, Ring: 256})
	f := newFlow(e.stream(newCPU(1)), 0)
	for round := range 200 {
		f.head = uint64(rng.IntN(1000))
		f.first, f.last, f.nready, f.readyCost = 0, 0, 0, 0
		var want []uint64
		for _, i := range rng.Perm(40)[:1+rng.IntN(39)] {
			seq := f.head + uint64(i*6)
			*f.st.fresh(seq) = record{}
			f.insert(f.st.ref(seq))
			want = append(want, seq)
			if rng.IntN(3) == 0 {
				k := rng.IntN(len(want))
				f.start(f.st.ref(want[k]))
				want = slices.Delete(want, k, k+1)
			}
		}
		slices.Sort(want)
		var got, back []uint64
		for x := f.first; x != 0; x = f.st.at(x).next {
			got = append(got, f.seqOf(x))
		}
		for x := f.last; x != 0; x = f.st.at(x).prev {
			back = append(back, f.seqOf(x))
		}
		slices.Reverse(back)
		if !slices.Equal(got, want) || !slices.Equal(back, want) {
			t.Fatalf("seed %d, round %d: forwards %v, backwards %v, want %v", seed, round, got, back, want)
		}
	}
}

// A chain in which each result is released as soon as the next one is enqueued takes the memory of a few
// results, however far the program and the device's queue are ahead.
func TestReleasedMemoryPassesOn(t *testing.T) {
	const each, n = 1 << 20, 900
	for name, b := range map[string]device.Backend{"cpu": cpu.New(), "sim": sim.New(sim.Options{})} {
		e := New(Options{Mode: Async, Workers: 2, MaxBytes: -1})
		d := device.Wrap(name, device.KindSimulated, b)
		x := ones(e, d, each)
		for range n {
			y := e.Copy(x, 0, each/8, device.Int64, d)
			e.Release(x)
			x = y
		}
		host := e.Copy(x, 0, 1, device.Int64, device.CPU())
		if err := host.Wait(bg, "Wait"); err != nil || device.Slice[int64](host.Buffer(), 0, 1)[0] != 1 {
			t.Errorf("%s: %v", name, err)
		}
		if m := device.MemoryOf(b).Stats(); m.Peak > 4*each {
			t.Errorf("%s: %d results of %d bytes took %d at most", name, n, each, m.Peak)
		}
		e.Release(x)
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		if m := device.MemoryOf(b).Stats(); m.Live != 0 {
			t.Errorf("%s: %d bytes are live in the end", name, m.Live)
		}
	}
}

// A patient backend is a sim whose time passes only while somebody waits for it. It notes the most
// commands that it had at once.
type patient struct {
	*sim.Backend
	most device.Ticket
}

func (p *patient) Submit(cmds []device.Command) (device.Ticket, error) {
	t, err := p.Backend.Submit(cmds)
	for t > p.most && !p.Done(t-p.most) {
		p.most++
	}
	return t, err
}

// A stopped clock goes on when somebody waits.
type stopped struct{ now atomic.Int64 }

func (s *stopped) Now() time.Duration { return time.Duration(s.now.Load()) }

func (s *stopped) Wait(_ context.Context, until time.Duration) error {
	for now := s.now.Load(); now < int64(until) && !s.now.CompareAndSwap(now, int64(until)); now = s.now.Load() {
	}
	return nil
}

// A device with a queue gets only as many operations as keep it busy if their results take much memory,
// and otherwise all of them.
func TestQueuesOfMemoryAreShort(t *testing.T) {
	for _, c := range []struct {
		bytes       int64
		n           int
		least, most int
	}{
		{64, 1000, 500, 1000},
		{64 << 10, 1000, submitBatch, 3 * submitBatch},
		{8 << 20, 40, 2, 13}, // bytes count before operations
	} {
		n, bytes := c.n, c.bytes
		b := &patient{Backend: sim.New(sim.Options{Queue: 2 * n, Launch: time.Second, Clock: new(stopped)})}
		e := New(Options{Mode: Async, MaxBytes: -1})
		d := device.Wrap("sim", device.KindSimulated, b)
		for range n {
			ones(e, d, bytes)
		}
		if err := e.WaitAll(bg); err != nil {
			t.Error(err)
		}
		if q := e.stream(d).exec.(*queue); q.ahead != 0 {
			t.Errorf("%d bytes are taken by nothing", q.ahead)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		if most := int(b.most); most < c.least || most > c.most {
			t.Errorf("the device had %d operations of %d bytes at most", most, bytes)
		}
	}
}
