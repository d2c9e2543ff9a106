package asyncrt_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/wire"
	"github.com/asyncgen/asyncgen/device/wire/wiretest"
	asyncrt "github.com/asyncgen/asyncgen/runtime"
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

func ExampleLater_BreakIf() {
	// The square root of 2, by Newton's method, until the error is small.
	type result struct {
		x *tensor.Tensor
		n int
	}
	sqrt := func(tolerance float64) (*tensor.Tensor, int) {
		later := asyncrt.NewLater[result](8)
		defer later.Close()
		x := tensor.Scalar(1)
		for n := range 100 {
			x = x.Add(x.Reciprocal().MulScalar(2)).MulScalar(0.5)
			off := later.Read(x.Square().SubScalar(2).Abs())
			if end, ok := later.BreakIf(func() bool { return off.Item() < tolerance }, result{x, n + 1}); ok {
				return end.x, end.n
			}
		}
		if end, ok := later.Flush(); ok {
			return end.x, end.n
		}
		return x, 100
	}
	x, n := sqrt(1e-5)
	fmt.Printf("%.4f after %d steps\n", x, n)
	// Output: 1.4142 after 3 steps
}

// An exitProgram is a random program of a few loops that a value can end. It runs as written, so that each read
// waits, or with a Later. Both must do the same.
type exitProgram struct {
	seed uint64
	on   device.Device
	log  []string
	x    *tensor.Tensor
	w    *tensor.Param
	b    *tensor.Buffer
	g    *tensor.Generator
	opt  *optim.Optimizer
}

// A place is where a loop ended.
type place struct {
	x       *tensor.Tensor
	i, step int
}

func (p *exitProgram) say(args ...any) { p.log = append(p.log, fmt.Sprintln(args...)) }

// run runs the program with a Later of the given window, or as written if that is 0.
func (p *exitProgram) run(window int) {
	p.x, p.w, p.b, p.g = tensor.On(p.on).Zeros(2), tensor.NewParam(tensor.On(p.on).Ones(2)), tensor.NewBuffer(tensor.On(p.on).Ones(2)), tensor.NewGenerator(p.seed)
	p.opt = optim.SGD([]*nn.Param{p.w}, 0.01)
	tensor.Seed(p.seed)
	var later *asyncrt.Later[place]
	if window > 0 {
		later = asyncrt.NewLater[place](window)
		defer later.Close()
	}
	for k := range uint64(3) {
		end, ok := p.loop(later, 10*k)
		p.say("loop", k, ok, end.i, end.step, end.x)
		p.say(p.w.Value(), p.w.Grad(), p.b.Value(), p.g.Value(), p.opt.Rate(), tensor.DefaultGenerator().Value())
		if ok {
			p.x = end.x
		}
		failures := 0
		if err := asyncrt.WaitAll(); err != nil {
			failures = len(err.(interface{ Unwrap() []error }).Unwrap())
		}
		p.say(failures, "failures")
	}
}

// loop is one loop. Its random choices depend on the iteration alone.
func (p *exitProgram) loop(later *asyncrt.Later[place], stream uint64) (place, bool) {
	r := rand.New(rand.NewPCG(p.seed, stream))
	limit, n := r.Float64()*30, r.IntN(40)
	p.opt.SetRate(0.01)
	do := func(f func(read func() string), t *tensor.Tensor) {
		if later == nil {
			f(t.String)
			return
		}
		at := later.Read(t)
		later.Do(func() { f(at.String) })
	}
	for i := range n {
		r := rand.New(rand.NewPCG(p.seed+stream, uint64(i)))
		for step := range 1 + r.IntN(6) {
			switch r.IntN(9) {
			case 8:
				if saved := tensor.Snapshot(p.w, p.b, p.g); r.IntN(3) == 0 {
					p.w.Set(p.x)
					p.opt.ZeroGrad()
					saved.Restore()
				} else {
					tensor.Seed(p.seed)
					p.x = p.x.Add(tensor.On(p.on).Rand(2))
				}
			case 0:
				p.x = p.x.Add(p.g.Rand(2).To(p.on))
			case 1:
				p.b.Set(p.x.Mul(p.w.Value()))
			case 2:
				p.opt.Minimize(p.w.Value().Sub(p.x).Square().Sum())
				p.opt.SetRate(p.opt.Rate() * 0.9)
			case 3:
				p.w.Value().Square().Sum().Backward()
			case 4:
				do(func(read func() string) { p.say(i, step, read()) }, p.b.Value())
			case 5:
				if r.IntN(4) == 0 { // fails, and nothing reads it
					tensor.FromOn(p.on, []int64{1}).Div(tensor.FromOn(p.on, []int64{0}))
				}
			case 6:
				bad := r.IntN(60)
				do(func(read func() string) {
					if p.say("entry", read()); bad == 0 {
						panic("planned")
					}
				}, p.x)
			case 7:
				sum := p.x.Sum()
				bad, queues := r.IntN(150), r.IntN(4) == 0
				test := func(v float64) bool {
					p.say("test", i, step, v)
					if queues && v <= limit { // what the test of an exit queues runs at the next Do
						do(func(read func() string) { p.say("in a test", read()) }, sum)
					}
					if bad == 0 {
						panic("planned")
					}
					return v > limit
				}
				if later == nil {
					if test(sum.Item()) {
						return place{p.x, i, step}, true
					}
					continue
				}
				at := later.Read(sum)
				if end, ok := later.BreakIf(func() bool { return test(at.Item()) }, place{p.x, i, step}); ok {
					return end, true
				}
			}
		}
	}
	if later == nil {
		return place{}, false
	}
	return later.Flush()
}

// Loops that values end do the same with a Later as they do as written: they have the same log, the same place of
// exit, the same values in tensors and cells, and the same failures.
func TestExits(t *testing.T) {
	devices(t, func(t *testing.T, on device.Device) {
		t.Logf("seed %d (go test -run '%s' -seed N)", *seed, t.Name())
		exits, panics := 0, 0
		for k := range uint64(30) {
			run := func(window int) (log string) {
				p := &exitProgram{seed: *seed + k, on: on}
				func() {
					defer func() {
						if v := recover(); v != nil {
							if v != "planned" {
								panic(v)
							}
							panics++
							p.say(v)
							asyncrt.WaitAll() // operations enqueued before differ
						}
					}()
					p.run(window)
				}()
				exits += strings.Count(strings.Join(p.log, ""), "true")
				return strings.Join(p.log, "")
			}
			want := run(0)
			for _, window := range []int{1, 3, 64} {
				if got := run(window); got != want {
					t.Fatalf("seed %d, window %d:\n%s\nas written:\n%s", *seed+k, window, got, want)
				}
			}
		}
		if exits < 10 || panics < 4 {
			t.Errorf("%d exits and %d panics test nothing", exits, panics)
		}
	})
}

// A gatedLoop is a loop in which each test needs a token of the gate.
type gatedLoop struct {
	on     device.Device
	g      *gate
	later  *asyncrt.Later[int]
	x      *tensor.Tensor
	began  int
	passed int
	end    int // the number of the test that is true
}

func newGatedLoop(window int) *gatedLoop {
	l := &gatedLoop{later: asyncrt.NewLater[int](window), end: -1}
	l.later.RunFar()
	l.on, l.g = gated()
	l.x = tensor.On(l.on).Ones(1)
	return l
}

func (l *gatedLoop) step(cells ...tensor.Cell) (int, bool) {
	l.x = l.x.Tanh()
	at := l.later.Read(l.x)
	i := l.began
	l.began++
	return l.later.BreakIf(func() bool {
		at.Item()
		if i != l.end {
			l.passed++
		}
		return i == l.end
	}, i, cells...)
}

// warm makes n tests pass, one after the other.
func (l *gatedLoop) warm(t *testing.T, n int) {
	t.Helper()
	l.g.let(n)
	for range n {
		if _, ok := l.step(); ok || l.began-l.passed > l.passed/2+1 {
			t.Errorf("after %d tests, of which %d have passed: exit %v", l.began, l.passed, ok)
		}
		if err := l.x.Wait(); err != nil {
			t.Error(err)
		}
	}
}

// A loop runs ahead of half as many tests as have passed. When one is true, operations after it that have not begun
// are cancelled, their failures are forgotten, and cells are restored.
func TestExitCancels(t *testing.T) {
	l := newGatedLoop(64)
	defer l.later.Close()
	l.warm(t, 8)
	l.end = 8
	w := tensor.NewParam(tensor.On(l.on).Zeros(1))
	for range 4 { // there is no token, so none of these may wait
		if _, ok := l.step(w); ok {
			t.Fatal("an exit that nobody can know of")
		}
		w.Set(l.x.AddScalar(1))
		tensor.FromOn(l.on, []int64{1}).Div(l.x.As(tensor.Int64)) // 1/0
		l.later.Read(l.x)
	}
	if l.began-l.passed != 4 || l.passed != 8 {
		t.Fatalf("%d tests have passed of %d", l.passed, l.began)
	}
	before := asyncrt.Stats()
	l.g.let(2) // Flush waits for the first two
	if i, ok := l.later.Flush(); !ok || i != 8 {
		t.Errorf("Flush: %d, %v", i, ok)
	}
	if got := w.Value().Item(); got != 0 {
		t.Errorf("the cell holds %v, want 0", got)
	}
	l.g.let(1) // for the third, which may have begun; there is none for the fourth
	if err := asyncrt.WaitAll(); err != nil {
		t.Errorf("WaitAll: %+v", err)
	}
	if after := asyncrt.Stats(); after.Skipped-before.Skipped < 2*3 {
		t.Errorf("%d operations were cancelled", after.Skipped-before.Skipped)
	}
	if err := l.x.Wait(); err == nil || !strings.Contains(err.Error(), "past the end of the loop") {
		t.Errorf("a tensor from behind the exit: %v", err)
	}
	if state, ok := l.later.Flush(); ok || state != 0 {
		t.Error("an exit is reported twice")
	}
}

// In a process that has a job of several ones, no loop runs ahead of a test.
func TestNoRunningAheadInJobs(t *testing.T) {
	l := newGatedLoop(64)
	defer l.later.Close()
	l.warm(t, 8)
	job, err := wire.NewJob(wiretest.New(1).Rank(0), wire.Options{Program: "p"})
	if err != nil {
		t.Fatal(err)
	}
	l.g.let(1)
	if l.step(); l.passed != 9 {
		t.Errorf("%d of 9 tests have been made", l.passed)
	}
	if err := job.Close(); err != nil {
		t.Error(err)
	}
	if l.step(); l.passed != 9 { // without a token: it runs ahead again
		t.Errorf("%d tests have been made", l.passed)
	}
	l.g.let(1)
}

// An exit that is taken while entries are queued is reported by the next BreakIf. What the loop enqueues until then
// is discarded.
func TestExitWhileQueueing(t *testing.T) {
	l := newGatedLoop(64)
	defer l.later.Close()
	l.warm(t, 8)
	l.end = 8
	l.step()
	l.g.let(1)
	if err := l.x.Wait(); err != nil {
		t.Fatal(err)
	}
	l.later.Do(func() { t.Error("work after the exit") })
	l.later.Do(func() { t.Error("more work after the exit") })
	y := l.x.Neg()
	if i, ok := l.step(); !ok || i != 8 {
		t.Errorf("BreakIf: %d, %v", i, ok)
	}
	if err := y.Wait(); err == nil {
		t.Error("an operation after the exit was executed")
	}
	ran := false
	l.later.Do(func() { ran = true })
	if _, ok := l.later.Flush(); ok || !ran || l.x.Neg().Device() != l.on {
		t.Error("the Later can't be used again")
	}
	if err := asyncrt.WaitAll(); err != nil {
		t.Error(err)
	}
}

// If a goroutine ends in the middle of a loop, without Close, WaitAll returns an error with the line of BreakIf.
// Other goroutines are not affected.
func TestLoopsLeftWithoutClose(t *testing.T) {
	if err := asyncrt.WaitAll(); err != nil {
		t.Fatal(err)
	}
	var kept []*asyncrt.Later[int]
	line := make(chan int, 1)
	ways := []func(){func() {}, func() { panic("ouch") }, runtime.Goexit}
	for i, leave := range ways {
		go func() {
			defer func() { _ = recover() }()
			later := asyncrt.NewLater[int](8)
			kept = append(kept, later) // the functions of the backlog are not lost
			later.RunFar()
			on, g := gated()
			g.let(2) // the loop runs ahead of the third test, whose value can't be there yet
			x := tensor.On(on).Ones(1)
			for range 3 {
				x = x.Tanh()
				at := later.Read(x)
				_, _, here, _ := runtime.Caller(0)
				if _, ok := later.BreakIf(func() bool { return at.Item() < 0 }, i); ok {
					t.Error("the loop has ended")
				}
				select {
				case line <- here + 1:
				default:
				}
			}
			g.let(1)
			leave()
		}()
		var left *asyncrt.LeftError
		err := asyncrt.WaitAll()
		for ; err == nil; err = asyncrt.WaitAll() {
			runtime.Gosched()
		}
		if want := <-line; !errors.As(err, &left) || left.Line != want || filepath.Base(left.File) != "exit_test.go" {
			t.Errorf("way %d: WaitAll returns %v, not about line %d", i, err, want)
		}
		if err := asyncrt.WaitAll(); err != nil {
			t.Errorf("way %d: WaitAll again: %v", i, err)
		}
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() { tensor.From([]int64{1}).Div(tensor.From([]int64{0})) })
		}
		wg.Wait()
		if err, _ := asyncrt.WaitAll().(interface{ Unwrap() []error }); err == nil || len(err.Unwrap()) != 20 {
			t.Errorf("way %d: not all failures of other goroutines are there: %v", i, err)
		}
	}
	runtime.KeepAlive(kept)

	// Now nothing refers to the backlogs any more. Their errors are collected here, so that WaitAll in other tests
	// does not return them.
	for told := 0; told < len(ways); {
		runtime.GC()
		if err, ok := asyncrt.WaitAll().(interface{ Unwrap() []error }); ok {
			told += len(err.Unwrap())
		}
	}
}

// A generator that is set past the end to a tensor, which is then never computed, is restored.
func TestGeneratorSetPastTheEnd(t *testing.T) {
	dev, err := device.Open("sim:0")
	if err != nil {
		t.Fatal(err)
	}
	on := tensor.On(dev)
	g := tensor.NewGenerator(3)
	loop := func() (n int, ended bool) {
		later := asyncrt.NewLater[struct{}](1)
		defer later.Close()
		x := on.Full(3, 1)
		for i := range 9 {
			xAt := later.Read(x)
			if _, ok := later.BreakIf(func() bool { return xAt.Item() < -0.5 }, struct{}{}); ok {
				return n, true
			}
			x = x.SubScalar(0.5)
			sumAt := later.Read(x.Sum()) // Do finds the exit, as only one entry may wait
			later.Do(func() {
				sumAt.Item()
				n++
			})
			g.Set(tensor.FromOn(dev, []int64{5, int64(i)}))
		}
		_, ended = later.Flush()
		return n, ended
	}
	for range 20 {
		if n, ended := loop(); n != 8 || !ended {
			t.Errorf("%d iterations, ended by the value: %v", n, ended)
		}
		if got := g.Value().Int64s(); !slices.Equal(got, []int64{5, 7}) {
			t.Errorf("the state is %v", got)
		}
	}
}

// Operations that functions of the backlog enqueue are not discarded, however far the loop has run ahead of these
// functions.
func TestExitKeepsWorkOfBacklog(t *testing.T) {
	l := newGatedLoop(64)
	defer l.later.Close()
	l.warm(t, 8)
	l.end = 9
	one, made := tensor.On(l.on).Ones(1), (*tensor.Tensor)(nil)
	l.step()
	l.later.Read(l.x)
	l.later.Do(func() { made = one.Neg() })
	l.step()
	l.step()
	l.g.let(3)
	if i, ok := l.later.Flush(); !ok || i != 9 {
		t.Errorf("Flush: %d, %v", i, ok)
	}
	if got := made.Item(); got != -1 {
		t.Errorf("got %v", got)
	}
}

// The memory kept for exits is bounded, and the number of tests is bounded by the window and by Ahead.
func TestExitBounds(t *testing.T) {
	type state struct {
		i int
		x [2]*tensor.Tensor
	}
	w := tensor.NewParam(nil)
	// A test keeps a value of the cell and one of the state, of 4,000 bytes each.
	defer asyncrt.SetLimit(asyncrt.Limit())
	for _, c := range []struct{ limit, window, bound, want int }{
		{40_000, 64, 0, 5}, {0, 3, 0, 3}, {0, 64, 0, 16}, {1000, 64, 0, 0}, {0, 64, 2, 2}, {0, 3, 8, 3}, {40_000, 64, 8, 5},
	} {
		on, g := gated()
		later := asyncrt.NewLater[state](c.window)
		if c.bound > 0 && later.Ahead(c.bound) != later {
			t.Fatal("Ahead returns another")
		}
		later.RunFar()
		asyncrt.SetLimit(int64(c.limit))
		x := tensor.On(on).Ones(1)
		values := make([]*tensor.Tensor, 100)
		for i := range values {
			values[i] = tensor.From(make([]float32, 1000))
		}
		passed := 0
		step := func(i int) {
			x = x.Tanh()
			at := later.Read(x)
			w.Set(values[i])
			later.BreakIf(func() bool { at.Item(); passed++; return false }, state{i, [2]*tensor.Tensor{values[i+1]}})
			most := passed / 2
			if c.want < 16 { // the bound is another than that of passed tests
				most = c.want
			}
			if ahead := i + 1 - passed; ahead > most {
				t.Errorf("%+v: %d tests are ahead", c, ahead)
			}
		}
		n := 0
		g.let(32)
		for ; n < 32; n++ {
			step(n)
			x.Wait()
		}
		for range c.want {
			step(n)
			n++
		}
		if passed != 32 {
			t.Errorf("%+v: %d tests have passed", c, passed)
		}
		g.let(c.want + 30)
		for range 30 {
			step(n)
			n++
		}
		later.Close()
	}
}

// ownCell is a Cell of a package other than tensor. It says when it changes, or is given to BreakIf.
type ownCell struct {
	t    *tensor.Tensor
	says bool
}

func (c *ownCell) Value() *tensor.Tensor { return c.t }

func (c *ownCell) Set(t *tensor.Tensor) {
	if c.says {
		tensor.Changing(c)
	}
	c.t = t
}

// What a loop changes past its end is restored, even if BreakIf was not given it: gradients of parameters that the
// loop uses, changes that an inner loop keeps, and changes between the taking of an exit and its report.
func TestExitGivesBack(t *testing.T) {
	on, g := gated()
	p, q := tensor.NewParam(tensor.On(on).Ones(1)), tensor.NewParam(tensor.On(on).Ones(1))
	value := p.Value()
	named, saying := &ownCell{t: tensor.Scalar(1)}, &ownCell{t: tensor.Scalar(1), says: true}
	later, inner := asyncrt.NewLater[int](8), asyncrt.NewLater[struct{}](8)
	later.RunFar()
	defer later.Close()
	x := tensor.On(on).Ones(1)
	type kept struct{ p, q, grad, named, saying *tensor.Tensor }
	now := func() kept { return kept{p.Value(), q.Value(), p.Grad(), named.t, saying.t} }
	change := func() {
		value.MulScalar(3).Sum().Backward()
		q.Set(q.Value().AddScalar(1))
		named.Set(named.t.AddScalar(1))
		saying.Set(saying.t.AddScalar(1))
	}
	var want kept
	const end = 9
	for i := range 100 {
		x = x.Tanh()
		at := later.Read(x)
		switch {
		case i < end:
			g.let(1)
			x.Wait()
		case i == end:
			want = now()
		}
		if k, ok := later.BreakIf(func() bool { at.Item(); return i == end }, i, named); ok {
			if k != end || i < end+3 {
				t.Errorf("the loop ends after iteration %d, and is left in %d", k, i)
			}
			break
		}
		change()
		for range 4 {
			if _, ok := inner.BreakIf(func() bool { return false }, struct{}{}); ok {
				t.Fatal("the inner loop ends")
			}
			change()
		}
		inner.Flush()
		if i == end+2 {
			g.let(100)
		}
	}
	for _, c := range [][2]*tensor.Tensor{{p.Value(), want.p}, {q.Value(), want.q}, {p.Grad(), want.grad}, {named.t, want.named}, {saying.t, want.saying}} {
		if got := c[0].String(); got != c[1].String() {
			t.Errorf("got %v, want %v", got, c[1])
		}
	}
}

// Mistakes in the use of BreakIf.
func TestExitMistakes(t *testing.T) {
	later := asyncrt.NewLater[int](4)
	defer later.Close()
	defer func() {
		if got := recover(); got != "asyncrt: BreakIf in a function of the backlog" {
			t.Errorf("got %v", got)
		}
	}()
	func() {
		defer func() {
			if got := recover(); got != "asyncrt: Ahead: 0 is not positive" {
				t.Errorf("got %v", got)
			}
		}()
		later.Ahead(0)
	}()
	later.Do(func() { later.BreakIf(func() bool { return true }, 1) })
}

// If a test panics, cells hold what they held at the test, and operations enqueued after it are cancelled.
func TestExitPanics(t *testing.T) {
	l := newGatedLoop(64)
	defer l.later.Close()
	l.warm(t, 8)
	w, unnamed := tensor.NewParam(tensor.On(l.on).Zeros(1)), tensor.NewParam(tensor.On(l.on).Zeros(1))
	l.later.Read(tensor.FromOn(l.on, []int64{1}).Div(tensor.FromOn(l.on, []int64{0})))
	bad := l.later.Read(tensor.FromOn(l.on, []int64{1}).Div(tensor.FromOn(l.on, []int64{0})))
	var op *asyncrt.OpError
	err := asyncrt.Try(func() {
		y := l.x.Tanh()
		at := l.later.Read(y)
		l.later.BreakIf(func() bool { at.Item(); return bad.ItemInt() == 0 }, 1, w)
		w.Set(y.AddScalar(1))
		unnamed.Set(y.AddScalar(1))
		tensor.FromOn(l.on, []int64{1}).Div(y.As(tensor.Int64)) // 1/0
		l.g.let(1)
		l.later.Flush()
	})
	if !errors.As(err, &op) || op.Op != "Div" {
		t.Errorf("the error is %v", err)
	}
	if got, other := w.Value().Item(), unnamed.Value().Item(); got != 0 || other != 0 {
		t.Errorf("the cells hold %v and %v", got, other)
	}
	if err := asyncrt.WaitAll(); err == nil || len(err.(interface{ Unwrap() []error }).Unwrap()) != 2 {
		t.Errorf("WaitAll: %v", err)
	}
	if got := l.x.Neg().Float32s(); !slices.Equal(got, l.x.MulScalar(-1).Float32s()) {
		t.Errorf("got %v", got)
	}
}

// A loop inside another one runs ahead within an iteration of the outer one. When the outer loop's exit is taken,
// everything of the inner loop is discarded.
func TestNestedExits(t *testing.T) {
	outer := newGatedLoop(64)
	defer outer.later.Close()
	outer.warm(t, 8)
	outer.end = 8
	outer.step()
	inner := func() (*tensor.Tensor, int) {
		later := asyncrt.NewLater[int](8)
		defer later.Close()
		x := tensor.Zeros(1)
		for i := range 20 {
			x = x.AddScalar(1)
			at := later.Read(x)
			if end, ok := later.BreakIf(func() bool { return at.Item() > 10 }, i); ok {
				return x, end
			}
		}
		tensor.From([]int64{1}).Div(tensor.From([]int64{0}))
		end, _ := later.Flush()
		return x, end
	}
	for range 2 {
		if _, end := inner(); end != 10 {
			t.Errorf("the inner loop ends at %d", end)
		}
	}
	y := outer.x.Neg()
	outer.g.let(1)
	if i, ok := outer.later.Flush(); !ok || i != 8 {
		t.Errorf("the outer loop ends at %d, %v", i, ok)
	}
	_ = y.Wait() // y may have been computed before the exit was taken
	if err := asyncrt.WaitAll(); err != nil {
		t.Error(err)
	}
}

// BenchmarkExit is a loop of a product and a norm that it divides by, which a value ends after some steps. It runs
// as written, where both reads wait, and running ahead, in turns. The ratio of their best times is what BreakIf and
// ItemF64 gain: with the latencies of an accelerator, and on the CPU, where they must not cost anything.
func BenchmarkExit(b *testing.B) {
	for _, name := range []string{"sim:0", "cpu"} {
		on, err := device.Open(name)
		if err != nil {
			b.Fatal(err)
		}
		a := tensor.On(on).Uniform(0, 1.0/64, 128, 128)
		written := func(steps int) int {
			x := tensor.On(on).Ones(128, 1)
			for i := range 1000 {
				y := a.MatMul(x)
				norm := y.Norm().Item()
				x = y.MulScalar(1 / norm)
				if norm < 0 || i+1 == steps {
					return i
				}
			}
			return 0
		}
		ahead := func(steps int) int {
			later := asyncrt.NewLater[int](64)
			defer later.Close()
			x := tensor.On(on).Ones(128, 1)
			for i := range 1000 {
				y := a.MatMul(x)
				norm := y.Norm().ItemF64()
				x = y.MulF64(asyncrt.Const(1).Div(norm))
				at := later.ReadF64(norm)
				if end, ok := later.BreakIf(func() bool { return at.Item() < 0 || i+1 == steps }, i); ok {
					return end
				}
			}
			return 0
		}
		for _, steps := range []int{6, 60, 600} {
			b.Run(fmt.Sprintf("%s, %d steps", name, steps), func(b *testing.B) {
				forms := [2]func(int) int{written, ahead}
				best := [2]time.Duration{math.MaxInt64, math.MaxInt64}
				for b.Loop() {
					for i, loop := range forms {
						start := time.Now()
						if loop(steps) != steps-1 {
							b.Fatal("the loop ends elsewhere")
						}
						best[i] = min(best[i], time.Since(start))
						asyncrt.WaitAll() // discarded operations that had begun
					}
				}
				b.ReportMetric(float64(best[0].Microseconds()), "written-µs")
				b.ReportMetric(float64(best[1].Microseconds()), "ahead-µs")
				b.ReportMetric(float64(best[0])/float64(best[1]), "speedup")
			})
		}
	}
}

// Alike compares tensors with those of the call before, by what operations check.
func TestAlike(t *testing.T) {
	sim, err := device.Open("sim:0")
	if err != nil {
		t.Fatal(err)
	}
	a, b := tensor.Zeros(2, 3), tensor.Ones(2, 3)
	later := asyncrt.NewLater[struct{}](4)
	defer later.Close()
	for i, c := range []struct {
		ts   []*tensor.Tensor
		want bool
	}{
		{[]*tensor.Tensor{a}, false}, // the first
		{[]*tensor.Tensor{b}, true},
		{[]*tensor.Tensor{a.AddScalar(1)}, true},
		{[]*tensor.Tensor{a.Slice(0, 0, 1)}, false},
		{[]*tensor.Tensor{b}, false},
		{[]*tensor.Tensor{b}, true},
		{[]*tensor.Tensor{b.As(tensor.Int64)}, false},
		{[]*tensor.Tensor{a.As(tensor.Int64)}, true},
		{[]*tensor.Tensor{a.As(tensor.Int64).To(sim)}, false},
		{[]*tensor.Tensor{a, b}, false},
		{[]*tensor.Tensor{b, a}, true},
		{[]*tensor.Tensor{b, a.T()}, false},
		{[]*tensor.Tensor{a, b.T()}, true},
		{[]*tensor.Tensor{a, b.Track()}, false},
		{[]*tensor.Tensor{a, b.Track().MulScalar(2)}, true},
		{[]*tensor.Tensor{a, nil}, false},
		{[]*tensor.Tensor{b, nil}, true},
		{[]*tensor.Tensor{nil, nil}, false},
		{[]*tensor.Tensor{tensor.Scalar(0), nil}, false},
		{nil, false},
		{nil, true},
		{[]*tensor.Tensor{a, b}, false},
	} {
		if got := later.Alike(c.ts...); got != c.want {
			t.Errorf("call %d: %v", i, got)
		}
	}
}

// Alike does not allocate.
func TestAlikeAllocates(t *testing.T) {
	later := asyncrt.NewLater[struct{}](4)
	a, b := tensor.Zeros(2, 3), tensor.Zeros(4)
	later.Alike(a, b)
	if n := testing.AllocsPerRun(100, func() {
		if !later.Alike(a, b) {
			t.Error("not alike")
		}
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestFloats(t *testing.T) {
	x := tensor.Zeros(2)
	later := asyncrt.NewLater[struct{}](4)
	defer later.Close()
	for i, c := range []struct {
		ts   []*tensor.Tensor
		want bool
	}{
		{nil, true},
		{[]*tensor.Tensor{x, x.As(tensor.Float64)}, true},
		{[]*tensor.Tensor{x, x.As(tensor.Int64)}, false},
		{[]*tensor.Tensor{x.Eq(x), x}, false},
		{[]*tensor.Tensor{nil}, false},
	} {
		if got := later.Floats(c.ts...); got != c.want {
			t.Errorf("call %d: %v", i, got)
		}
	}
}

// On the CPU, a test whose value takes a moment is run at once: the loop need not run past its end.
func TestExitAtOnce(t *testing.T) {
	exact, loops := 0, 0
	for ; exact < 5 && loops < 2000; loops++ { // more than 5 loops, as other threads may be slow to finish operations
		later := asyncrt.NewLater[int](64)
		x, began := tensor.Ones(8), 0
		for i := range 40 {
			x = x.AddScalar(1)
			began++
			sum := 0.0
			at := later.Read(x.Sum())
			later.Do(func() { sum = at.Item() })
			if end, ok := later.BreakIf(func() bool { return sum > 160 }, i); ok {
				if end != 19 {
					t.Fatalf("the loop ends after iteration %d", end)
				}
				break
			}
		}
		if began == 20 {
			exact++
		}
		later.Close()
	}
	if exact < 5 {
		t.Errorf("%d of %d loops did not run past their end", exact, loops)
	}
}

// A test that runs at once allocates no more than the program without a Later.
func TestExitAtOnceAllocates(t *testing.T) {
	later := asyncrt.NewLater[place](64)
	defer later.Close()
	x := tensor.Ones(2)
	one := x.Sum()
	one.Item()
	goesOn, state := func() bool { return false }, place{x: x}
	read := testing.AllocsPerRun(100, func() { one.Detach() })
	if n := testing.AllocsPerRun(1000, func() {
		later.Read(one)
		later.BreakIf(goesOn, state)
	}); n > read {
		t.Errorf("%v allocations, of which %v are the Read", n, read)
	}
}

// A Read of a known number has all methods that a Read of a tensor has.
func TestReadOfKnown(t *testing.T) {
	later := asyncrt.NewLater[struct{}](4)
	defer later.Close()
	for _, v := range []float64{0, -2.5, math.Inf(1), math.NaN()} {
		known, computed := later.ReadF64(asyncrt.Const(v)), later.ReadF64(tensor.FromOn(device.CPU(), []float64{v}).F64())
		for _, f := range []func(r asyncrt.Read) any{
			func(r asyncrt.Read) any { return r.Item() }, func(r asyncrt.Read) any { return r.At() },
			func(r asyncrt.Read) any { return r.Float64s() }, func(r asyncrt.Read) any { return asyncrt.ItemOf[float64](r) },
			func(r asyncrt.Read) any { return r.Err() }, func(r asyncrt.Read) any { return r.String() },
			func(r asyncrt.Read) any { return fmt.Sprintf("%8.3f|%v", r, r) },
			func(r asyncrt.Read) any { return r.LogValue() },
			func(r asyncrt.Read) any { b, err := r.MarshalJSON(); return fmt.Sprint(string(b), err) },
		} {
			if got, want := fmt.Sprint(f(known)), fmt.Sprint(f(computed)); got != want {
				t.Errorf("%v: %s, want %s", v, got, want)
			}
		}
	}
}
