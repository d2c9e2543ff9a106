package engine

import (
	"bytes"
	"cmp"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asyncgen/asyncgen/device"
)

// Random programs: each draws its steps from a seeded generator, performs them in the engine and in a
// model (model_test.go), and compares everything it can observe (program_test.go): values, errors,
// their causes, and what is left when it has ended.

var (
	programs = flag.Int("programs", 600, "number of random programs")
	seed     = flag.Uint64("seed", 0, "seed of the random programs; 0: from the clock")
	hang     = flag.Duration("hang", time.Minute, "how long a random program may take")
)

// someOptions draws the options of an engine.
func someOptions(rng *rand.Rand) Options {
	o := Options{Mode: Async, Workers: 1 + rng.IntN(4), Ring: 2 << rng.IntN(8), MaxBytes: -1, Tiny: TinyNone}
	if rng.IntN(2) == 0 {
		o.Tiny = TinyAll
	}
	if rng.IntN(100) == 0 {
		o.Ring = 4096
	}
	if rng.IntN(3) == 0 {
		o.MaxBytes = int64(1 + rng.IntN(200))
	}
	switch rng.IntN(8) {
	case 0:
		o.Mode = Naive
	case 1, 2:
		o.Mode, o.Seed = Shuffle, rng.Uint64()
	}
	return o
}

// runProgram runs the program with the given seed, in a bubble or not.
func runProgram(w *world, seed uint64, bubble bool) (err error) {
	rng := rand.New(rand.NewPCG(seed, 1))
	o := someOptions(rng)
	o.Channels = rng.IntN(8) == 0 || bubble
	e := New(o)
	e.relayBytes = 16 << rng.IntN(6)
	if rng.IntN(3) == 0 {
		e.looks = 0 // goroutines without work park at once
	}
	producers := 1
	if rng.IntN(4) == 0 {
		producers += rng.IntN(4)
	}
	fail := rng.IntN(2) == 0
	small := rng.IntN(3) == 0
	steps := 1 << rng.IntN(9)
	readsAll := rng.IntN(4) > 0 // else Close is called while there is work left
	all := make([]*program, producers)
	errs := make([]error, producers)
	failures := &taken{seen: map[int]error{}}
	for k := range all {
		p := &program{w: w, e: e, o: o, rng: rand.New(rand.NewPCG(seed, uint64(2+k))), id: k * 1_000_000,
			alone: producers == 1, fail: fail, small: small, limit: max(o.MaxBytes, 0), taken: failures}
		p.enter()
		p.own = 2 + p.rng.IntN(8)
		p.vars, p.model = make([]*Storage, p.own), make([]*modelVar, p.own)
		all[k] = p
	}
	// Variables that all programs read are made before the programs start, and in no scope that ends.
	common := &program{w: w, e: e, rng: rng, id: producers * 1_000_000, fail: fail}
	if producers > 1 {
		common.enter()
		for k := range common.scopes {
			if k != deadScope {
				common.scopes[k] = common.scopes[noScope]
			}
		}
		common.own = 1 + rng.IntN(4)
		common.vars, common.model = make([]*Storage, common.own), make([]*modelVar, common.own)
		for i := range common.vars {
			common.newVar(i)
		}
		for range rng.IntN(10) {
			if i := rng.IntN(common.own); common.model[i].cause != released && !common.model[i].shared {
				common.operate(i)
			}
		}
	}
	var events []Event
	if producers == 1 && rng.IntN(8) == 0 {
		all[0].watched = true
		defer e.Record(func(ev Event) { events = append(events, ev) })()
	}
	var traced *bytes.Buffer
	if rng.IntN(6) == 0 {
		traced = new(bytes.Buffer)
		if _, err := e.Trace(traced); err != nil {
			return err
		}
	}
	before := e.Stats()
	var wg sync.WaitGroup
	for k, p := range all {
		p.vars, p.model = append(p.vars, common.vars...), append(p.model, common.model...)
		wg.Go(func() {
			for i := range p.own {
				p.newVar(i)
			}
			for left := steps; left > 0 && errs[k] == nil; {
				n := 1
				if p.rng.IntN(40) == 0 {
					n = min(left, 1+p.rng.IntN(20))
				}
				some := func() {
					for range n {
						if errs[k] = p.step(); errs[k] != nil {
							return
						}
					}
				}
				if n > 1 {
					e.Bulk(some)
				} else {
					some()
				}
				left -= n
			}
			if errs[k] != nil {
				return
			}
			for i := range p.vars {
				if !readsAll {
					break
				}
				if errs[k] = p.read(i); errs[k] != nil {
					return
				}
			}
		})
	}
	wg.Wait()
	for k, err := range errs {
		if err != nil {
			return all[k].failed(err)
		}
	}
	closing := e.Close()
	var want []*origin
	limit, largest := int64(0), int64(0)
	for _, p := range append(all, common) {
		largest = max(largest, p.largest)
		want = append(want, p.roots...)
		limit = max(limit, p.limit)
		if err := p.afterClose(); err != nil {
			return p.failed(fmt.Errorf("after Close: %w", err))
		}
		if err := p.stayedAway(); err != nil {
			return p.failed(err)
		}
		p.leave()
	}
	list := joined(closing)
	if producers > 1 {
		if err := failures.add(closing); err != nil {
			return fmt.Errorf("%+v: %w", o, err)
		}
		list = failures.inOrder()
	}
	if err := w.sameFailures(list, want); err != nil {
		return all[0].failed(fmt.Errorf("Close: %w", err))
	}
	if all[0].watched {
		if err := all[0].sameEvents(events); err != nil {
			return all[0].failed(err)
		}
	}
	s := e.Stats()
	if s.InFlightBytes != 0 || s.Executed+s.Skipped != s.Enqueued {
		return fmt.Errorf("%+v: left over: %+v", o, s)
	}
	if traced != nil {
		if err := sameTrace(traced.Bytes(), e, before, s); err != nil {
			return fmt.Errorf("%+v: trace: %w", o, err)
		}
	}
	inPlace := s.InPlace
	for _, st := range e.allStreams() {
		w.byCalls += st.computed()
		if c := st.exec.counts(); st.spares != nil {
			w.queueInPlace += c.inPlace
			inPlace -= c.inPlace
		}
	}
	w.flowInPlace += inPlace
	if limit > 0 && o.Mode != Naive && s.PeakBytes > max(limit, largest) {
		return fmt.Errorf("%+v: peak %d over the bound %d", o, s.PeakBytes, limit)
	}
	if o.Mode == Naive && s.Waits+s.Stalls+s.Helped != 0 {
		return fmt.Errorf("%+v: waits without need: %+v", o, s)
	}
	if begun.Load() {
		return fmt.Errorf("%+v: in this program, or in one beside it, something has begun that must not", o)
	}
	if err := leftIn(e); err != nil {
		return fmt.Errorf("%+v: left over: %w", o, err)
	}
	if err := e.Close(); err != nil {
		return fmt.Errorf("%+v: second Close: %w", o, err)
	}
	return nil
}

// inOrder lists the failures that were returned, ordered by number.
func (t *taken) inOrder() (list []error) {
	for _, err := range t.seen {
		list = append(list, err)
	}
	number := func(err error) int { return err.(*OpError).Shapes[0][0] }
	slices.SortFunc(list, func(a, b error) int { return cmp.Compare(number(a), number(b)) })
	return list
}

// afterClose compares all variables with the model.
func (p *program) afterClose() error {
	for i, s := range p.vars {
		if !s.Ready() {
			return fmt.Errorf("variable %d is not ready", i)
		}
		if err := p.seen(i, s.Err()); err != nil {
			return fmt.Errorf("variable %d: %w", i, err)
		}
		if onHost(p.model[i].dev) && s.Err() == nil {
			if err := p.sameValue(i, s); err != nil {
				return err
			}
		}
	}
	return nil
}

// stayedAway returns an error if a discarded operation of p has run.
func (p *program) stayedAway() error {
	for _, s := range p.discarded {
		if err := s.Err(); !s.Ready() || !errors.Is(err, ErrDiscarded) {
			return fmt.Errorf("what a discarded operation was to write, ready %v, has the error %v", s.Ready(), err)
		}
	}
	return nil
}

// failed returns err with the program's last steps.
func (p *program) failed(err error) error {
	return fmt.Errorf("%+v, the producer from %d on, after %d operations: %w\n%s", p.o, p.id, p.ops, err,
		strings.Join(p.log[max(0, len(p.log)-12):], "\n"))
}

// leftIn returns a description of what a closed engine still holds and should not.
func leftIn(e *Engine) error {
	if n := e.stalled.n.Load(); n != 0 {
		return fmt.Errorf("%d stalled producers", n)
	}
	if n := e.guesses.n.Load(); n != 0 || len(e.guesses.of) != 0 {
		return fmt.Errorf("%d guesses", n)
	}
	for _, st := range e.allStreams() {
		for i := range min(st.capacity(), int(st.enqueued())) {
			r := st.seq(uint64(i))
			if r.operands != [device.MaxOperands]*Storage{} || r.shapes != [device.MaxOperands]*device.Shape{} ||
				r.args != nil || r.more != nil || r.chains != nil || r.scope != nil || r.link != nil || r.guess != nil || r.refused != nil || r.fail != nil {
				return fmt.Errorf("in place %d of %d of device %v: %+v", i, st.capacity(), st.dev, r)
			}
		}
		if end := st.enqueued(); st.done.Load() != end {
			return fmt.Errorf("device %v: %d operations, %d done", st.dev, end, st.done.Load())
		}
		if n := st.inFlight(); n != 0 {
			return fmt.Errorf("device %v: %d bytes in flight", st.dev, n)
		}
		if len(st.roots.of) != 0 {
			return fmt.Errorf("device %v: failures of %d scopes", st.dev, len(st.roots.of))
		}
		switch x := st.exec.(type) {
		case *flow:
			if err := leftInFlow(x); err != nil {
				return err
			}
		case *shuffledFlow:
			if err := leftInFlow(x.flow); err != nil {
				return err
			}
		case *queue:
			if err := leftInQueue(x); err != nil {
				return err
			}
		case *shuffledQueue:
			if err := leftInQueue(x.queue); err != nil {
				return err
			}
		}
	}
	return nil
}

func leftInFlow(f *flow) error {
	f.lock.lock() // a timer that has just fired may still look
	defer f.lock.unlock()
	if f.head != f.scheduled || f.head != f.st.enqueued() || f.first != 0 || f.last != 0 || f.nready != 0 || f.readyCost != 0 || f.freed != 0 ||
		len(f.waiters) != 0 || f.helpers != 0 || len(f.outbox) != 0 || len(f.marked.list) != 0 {
		return fmt.Errorf("in the flow of %v: %d of %d scheduled, first %d, last %d, %d ready that cost %d, %d bytes, %d waiters, %d helpers, %d notices, %d marks",
			f.st.dev, f.head, f.scheduled, f.first, f.last, f.nready, f.readyCost, f.freed, len(f.waiters), f.helpers, len(f.outbox), len(f.marked.list))
	}
	for _, w := range f.free {
		if len(w.need) != 0 || w.scratch != (scratch{}) || w.parker.state.Load() != awake || len(w.parker.c) != 0 {
			return fmt.Errorf("in the flow of %v: a waiter with %d operations, command %+v, in state %d with %d tokens", f.st.dev,
				len(w.need), w.scratch, w.parker.state.Load(), len(w.parker.c))
		}
	}
	return nil
}

func leftInQueue(q *queue) error {
	q.submitting.lock()
	defer q.submitting.unlock()
	q.mu.Lock() // a timer that has just fired may still look
	defer q.mu.Unlock()
	if q.submitted != q.st.enqueued() || len(q.outbox) != 0 || len(q.marked.list) != 0 || q.heldAt.Load() != nil {
		return fmt.Errorf("in the queue of %v: %d submitted, %d notices, %d marks, held at %v", q.st.dev, q.submitted, len(q.outbox), len(q.marked.list), q.heldAt.Load())
	}
	for _, c := range q.batch[:cap(q.batch)] {
		if c != (device.Command{}) {
			return fmt.Errorf("in the queue of %v: command %+v", q.st.dev, c)
		}
	}
	return nil
}

// A fleet runs random programs on all processors, in rounds. After a round nothing of it may be left.
type fleet struct {
	worlds     []*world
	goroutines int // how many there are while no program runs
}

const programsARound = 400

func newFleet(processors int) *fleet {
	f := &fleet{}
	for range processors {
		f.worlds = append(f.worlds, newWorld())
	}
	f.goroutines = runtime.NumGoroutine()
	return f
}

func (f *fleet) close() {
	for _, w := range f.worlds {
		w.close()
	}
}

// round runs n programs, with seeds from first on. It returns the error with the least seed, and that seed.
func (f *fleet) round(first, n uint64) (seed uint64, err error) {
	var next atomic.Uint64
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, w := range f.worlds {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < n; i = next.Add(1) - 1 {
				hangs := time.AfterFunc(*hang, func() {
					pprof.Lookup("goroutine").WriteTo(os.Stderr, 1)
					panic(fmt.Sprintf("program %d hangs; %s", first+i, again(first+i)))
				})
				one := runProgram(w, first+i, false)
				hangs.Stop()
				if one != nil {
					mu.Lock()
					if err == nil || first+i < seed {
						seed, err = first+i, one
					}
					mu.Unlock()
					next.Store(n)
				}
			}
		})
	}
	wg.Wait()
	return seed, err
}

// left returns a description of what the programs have left behind.
func (f *fleet) left() error {
	inUse, goroutines := 0, 0
	for deadline := time.Now().Add(*hang); time.Now().Before(deadline); runtime.Gosched() {
		device.Collect()
		inUse, goroutines = 0, runtime.NumGoroutine()
		for _, w := range f.worlds {
			inUse += w.inUse()
		}
		if inUse == 0 && goroutines <= f.goroutines {
			return nil
		}
	}
	var stacks strings.Builder
	if goroutines > f.goroutines {
		pprof.Lookup("goroutine").WriteTo(&stacks, 1)
	}
	return fmt.Errorf("%d buffers are in use, and there are %d goroutines where %d were\n%s", inUse, goroutines, f.goroutines, &stacks)
}

// leaker returns the first of n programs that leaves something behind.
func (f *fleet) leaker(first, n uint64) (uint64, error) {
	for i := range n {
		alone := newFleet(1)
		if _, err := alone.round(first+i, 1); err != nil {
			return first + i, err
		}
		if err := alone.left(); err != nil {
			return first + i, err
		}
		alone.close()
	}
	return first, fmt.Errorf("none of the %d programs from here on does it alone", n)
}

func again(seed uint64) string {
	return fmt.Sprintf("to run it alone: go test ./runtime/internal/engine -run RandomPrograms -programs 1 -seed %d", seed)
}

func TestRandomPrograms(t *testing.T) {
	first := *seed
	if first == 0 {
		first = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d", first)
	begin, told := time.Now(), time.Now()
	f := newFleet(runtime.GOMAXPROCS(0))
	defer f.close()
	n := uint64(*programs)
	if testing.Short() {
		n = min(n, 200) // with the race detector one takes ten times as long
	}
	for i := uint64(0); i < n; i += programsARound {
		some := min(programsARound, n-i)
		if seed, err := f.round(first+i, some); err != nil {
			t.Fatalf("program %d: %v\n%s", seed-first, err, again(seed))
		}
		if err := f.left(); err != nil {
			seed, one := f.leaker(first+i, some)
			t.Fatalf("after program %d: %v\nprogram %d: %v\n%s", i+some-1, err, seed-first, one, again(seed))
		}
		if time.Since(told) > 30*time.Second {
			told = time.Now()
			fmt.Fprintf(os.Stderr, "%d random programs in %v, no difference; the next seed is %d\n", i+some, time.Since(begin).Round(time.Second), first+i+some)
		}
	}
	flows, queues, calls := uint64(0), uint64(0), uint64(0)
	for _, w := range f.worlds {
		flows += w.flowInPlace
		queues += w.queueInPlace
		calls += w.byCalls
	}
	t.Logf("operations that calls have computed: %d", calls)
	t.Logf("operations that took the memory of an input: %d on devices without a queue, %d on those with one", flows, queues)
	if n >= 1000 && (flows < n/8 || queues < n/8 || calls < n) {
		t.Error("these are too few to say that it works")
	}
}
