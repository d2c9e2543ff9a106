package data_test

import (
	"context"
	"encoding"
	"errors"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/fault"
	"github.com/asyncgen/asyncgen/device/sim"
	asyncrt "github.com/asyncgen/asyncgen/runtime"
	"github.com/asyncgen/asyncgen/runtime/data"
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// counted is a data set whose inputs and targets tell their numbers. What read does comes before.
type counted struct {
	n    int
	read func(i int) error
}

func (c counted) Len() int { return c.n }

func (c counted) Shapes() (x, y []int) { return []int{2, 1}, nil }

func (c counted) At(i int, x []float32, y []int64) error {
	if c.read != nil {
		if err := c.read(i); err != nil {
			return err
		}
	}
	if x[0] != 0 || x[1] != 0 || len(x) != 2 || len(y) != 1 {
		return errors.New("the memory is not clean")
	}
	x[0], x[1], y[0] = float32(i), -float32(i), int64(i)
	return nil
}

// load is a loader of a counted data set.
func load(c counted, batch int, o data.Options) *data.Loader {
	return data.NewLoader[float32, int64](c, batch, o)
}

// epoch returns the samples of the batches that are left of the epoch, and checks the batches.
func epoch(t *testing.T, l *data.Loader) (all [][]int64) {
	t.Helper()
	for b, err := range l.All() {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, samples(t, b))
	}
	return all
}

func samples(t *testing.T, b data.Batch) []int64 {
	t.Helper()
	y := b.Y.Int64s()
	if want := []int{len(y), 2, 1}; !slices.Equal(b.X.Shape(), want) || !slices.Equal(b.Y.Shape(), want[:1]) {
		t.Fatalf("shapes %v and %v, want %v", b.X.Shape(), b.Y.Shape(), want)
	}
	for i, x := range slices.Collect(slices.Chunk(b.X.Float32s(), 2)) {
		if x[0] != float32(y[i]) || x[1] != -float32(y[i]) {
			t.Fatalf("input %v with target %d", x, y[i])
		}
	}
	return y
}

// Each epoch has each sample once, in the same batches for any number of workers and of batches made in advance. Epochs
// and seeds differ.
func TestOrder(t *testing.T) {
	for _, n := range []int{0, 1, 5, 6, 97} {
		for _, drop := range []bool{false, true} {
			var want [][][]int64
			for _, o := range []data.Options{{Workers: 1}, {Workers: 2, Prefetch: 1}, {Workers: 5, Prefetch: 40}, {}} {
				o.Shuffle, o.Seed, o.DropLast = true, 7, drop
				l := load(counted{n: n}, 5, o)
				var got [][][]int64
				for range 3 {
					got = append(got, epoch(t, l))
				}
				if want == nil {
					want = got
				}
				if !reflect.DeepEqual(got, want) {
					t.Errorf("%d samples, %+v:\n%v, want\n%v", n, o, got, want)
				}
				if l.Position() != (data.Position{Epoch: 3, Seed: 7}) {
					t.Errorf("after three epochs the position is %v", l.Position())
				}
			}
			for e, batches := range want {
				all := slices.Concat(batches...)
				slices.Sort(all)
				left := n
				if drop {
					left = n / 5 * 5
				}
				if len(all) != left || len(slices.Compact(all)) != left {
					t.Errorf("epoch %d of %d samples has %v", e, n, all)
				}
				for i, b := range batches {
					if len(b) != 5 && (drop || i < len(batches)-1) {
						t.Errorf("batch %d of epoch %d has %d samples", i, e, len(b))
					}
				}
			}
			if n > 90 {
				if reflect.DeepEqual(want[0], want[1]) || reflect.DeepEqual(want[1], want[2]) {
					t.Error("two epochs have one order")
				}
				other := load(counted{n: n}, 5, data.Options{Shuffle: true, Seed: 8, DropLast: drop})
				if reflect.DeepEqual(epoch(t, other), want[0]) {
					t.Error("two seeds have one order")
				}
			}
		}
	}
	got := epoch(t, load(counted{n: 5}, 2, data.Options{}))
	if want := [][]int64{{0, 1}, {2, 3}, {4}}; !reflect.DeepEqual(got, want) {
		t.Errorf("unshuffled: %v, want %v", got, want)
	}
}

// A loader that gets the position of another, in whatever way, goes on with the batches that the other one would have
// had.
func TestResume(t *testing.T) {
	for _, drop := range []bool{false, true} {
		o := data.Options{Shuffle: true, Seed: 3, Workers: 2, DropLast: drop}
		var want [][]int64
		var at []int // in want, by position
		var marks [][]byte
		var places []data.Position
		var states []tensor.State
		l := load(counted{n: 11}, 3, o)
		mark := func() {
			m, err := l.MarshalBinary()
			if err != nil {
				t.Fatal(err)
			}
			marks, places, at = append(marks, m), append(places, l.Position()), append(at, len(want))
			states = append(states, tensor.Snapshot(l.Cells()...))
		}
		for range 2 {
			mark()
			for b, err := range l.All() {
				if err != nil {
					t.Fatal(err)
				}
				want = append(want, samples(t, b))
				mark()
			}
		}
		for i := range marks {
			check := func(way string, other *data.Loader) {
				t.Helper()
				if other.Position() != places[i] {
					t.Errorf("%s: position %v, want %v", way, other.Position(), places[i])
				}
				var got [][]int64
				for other.Position().Epoch < 2 {
					got = append(got, epoch(t, other)...)
				}
				if !slices.EqualFunc(got, want[at[i]:], slices.Equal) {
					t.Errorf("%s from %v: %v, want %v", way, places[i], got, want[at[i]:])
				}
			}
			another := load(counted{n: 11}, 3, data.Options{Shuffle: true, Seed: 99, Workers: 1, DropLast: drop})
			if err := another.UnmarshalBinary(marks[i]); err != nil {
				t.Fatal(err)
			}
			check("UnmarshalBinary", another)
			another.Seek(places[i])
			check("Seek", another)
			states[i].Restore()
			check("Restore", l)
			// A loop that ends after each batch goes on there, too.
			l.Seek(places[i])
			var got [][]int64
			for l.Position().Epoch < 2 {
				for b, err := range l.All() {
					if err != nil {
						t.Fatal(err)
					}
					got = append(got, samples(t, b))
					break
				}
			}
			if !slices.EqualFunc(got, want[at[i]:], slices.Equal) {
				t.Errorf("batch by batch from %v: %v, want %v", places[i], got, want[at[i]:])
			}
		}
	}
}

// A body that moves the position has its loop go on there, and a module's snapshot takes the loader with it.
func TestSeekInLoop(t *testing.T) {
	l := load(counted{n: 6}, 2, data.Options{})
	var got []int64
	for b, err := range l.All() {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, samples(t, b)...)
		if len(got) == 4 {
			l.Seek(data.Position{Epoch: 4})
		}
	}
	if want := []int64{0, 1, 2, 3, 0, 1, 2, 3, 4, 5}; !slices.Equal(got, want) || l.Position().Epoch != 5 {
		t.Errorf("%v, then %v; want %v", got, l.Position(), want)
	}

	net := nn.Dense(1)
	net.Forward(tensor.Ones(1, 2))
	kept := nn.Snapshot(net, optim.SGD(net.Params(), 1), l)
	epoch(t, l)
	kept.Restore()
	if l.Position() != (data.Position{Epoch: 5}) {
		t.Errorf("restored to %v", l.Position())
	}
}

// What is no position of a loader is refused, and moves nothing.
func TestWrongPositions(t *testing.T) {
	l := load(counted{n: 6}, 2, data.Options{Seed: 1 << 63})
	l.Seek(data.Position{Epoch: 1 << 40, Batch: 2, Seed: 1<<64 - 1})
	here := l.Position()
	good, err := encoding.BinaryAppender.AppendBinary(l, []byte("x"))
	if err != nil || good[0] != 'x' {
		t.Fatal(good, err)
	}
	good = good[1:]
	for i := range good {
		if err := l.UnmarshalBinary(good[:i]); err == nil {
			t.Errorf("%d bytes of %d are taken", i, len(good))
		}
	}
	for _, other := range []*data.Loader{load(counted{n: 7}, 2, data.Options{}), load(counted{n: 6}, 3, data.Options{}),
		load(counted{n: 6}, 2, data.Options{Shuffle: true}), load(counted{n: 6}, 2, data.Options{DropLast: true})} {
		if err := other.UnmarshalBinary(good); err == nil || !strings.Contains(err.Error(), "6 samples in batches of 2") {
			t.Errorf("the position of another loader: %v", err)
		}
	}
	for _, b := range [][]byte{append(slices.Clone(good), 0), append([]byte{2}, good[1:]...),
		{1, 6, 2, 0, 0, 4, 0}, {1, 6, 2, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 0, 0}} {
		if err := l.UnmarshalBinary(b); err == nil {
			t.Errorf("% x is taken", b)
		}
	}
	if l.Position() != here {
		t.Errorf("moved to %v", l.Position())
	}
	for _, p := range []data.Position{{Batch: 4}, {Batch: -1}, {Epoch: -1}} {
		mistake(t, "Seek", func() { l.Seek(p) })
	}
}

// mistake checks that f panics with a Mistake about the function with the given name.
func mistake(t *testing.T, name string, f func()) {
	t.Helper()
	defer func() {
		t.Helper()
		if m, ok := recover().(*tensor.Mistake); !ok || m.Op != name || m.Package != "data" {
			t.Errorf("%s: panics with %v", name, m)
		}
	}()
	f()
}

// shaped is a data set of inputs of a shape.
type shaped struct{ shape []int }

func (s shaped) Len() int                             { return 3 }
func (s shaped) Shapes() (x, y []int)                 { return s.shape, nil }
func (s shaped) At(i int, x []uint8, y []uint8) error { return nil }

func TestMistakes(t *testing.T) {
	set := counted{n: 6}
	mistake(t, "NewLoader", func() { load(set, 0, data.Options{}) })
	mistake(t, "NewLoader", func() { load(set, 1, data.Options{Workers: -1}) })
	mistake(t, "NewLoader", func() { load(counted{n: -1}, 1, data.Options{}) })
	for _, shape := range [][]int{{-1}, {1 << 62}, {1 << 62, 0}, {0, 1 << 62}, {0, 1 << 40, 1 << 40}} {
		mistake(t, "NewLoader", func() { data.NewLoader[uint8, uint8](shaped{shape}, 2) })
	}
	mistake(t, "NewLoader", func() { load(set, 1, data.Options{Prefetch: -1}) })
	mistake(t, "NewLoader", func() { data.NewLoader[float32, int64](set, 1, data.Options{}, data.Options{}) })
	mistake(t, "All", func() {
		l := load(set, 1, data.Options{})
		for range l.All() {
			for range l.All() {
			}
		}
	})
	two := data.Array[float32]{Data: []float32{1, 2}, Shape: []int{2}}
	mistake(t, "Pair", func() { data.Pair(two, data.Array[int64]{Data: []int64{1}, Shape: []int{1}}) })
	mistake(t, "Pair", func() { data.Pair(data.Array[float32]{Data: []float32{1, 2}, Shape: []int{3}}, data.Array[int64]{}) })
	mistake(t, "Pair", func() { data.Pair(data.Array[float32]{Data: []float32{1}}, data.Array[int64]{}) })
	mistake(t, "ArrayOf", func() { data.ArrayOf[float32](tensor.Scalar(1)) })
	mistake(t, "Split", func() { data.Split(set, 1.5, 0) })
	mistake(t, "SplitBy", func() { data.SplitBy(set, math.NaN(), 0, func(i int) int { return i }) })
	mistake(t, "Folds", func() { data.Folds(set, 7, 0) })
	mistake(t, "Folds", func() { data.Folds(set, 1, 0) })
	mistake(t, "Windows", func() { data.Windows([]byte("abc"), 0, 1) })
	mistake(t, "Windows", func() { data.Windows([]byte("abc"), 1, -1) })
	mistake(t, "Decode", func() { data.NewAlphabet("abc").Decode([]int64{3}) })
}

// left returns how many goroutines work for a loader.
func left() int {
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	return strings.Count(string(stacks), "data.(*maker).work(")
}

// However a loop ends, and wherever, there are no goroutines afterwards, and none reads.
func TestEnds(t *testing.T) {
	const batches = 6
	ends := map[string]func(l *data.Loader, at int){
		"break": func(l *data.Loader, at int) {
			for range l.All() {
				if at--; at < 0 {
					break
				}
			}
		},
		"panic": func(l *data.Loader, at int) {
			defer func() { _ = recover() }()
			for range l.All() {
				if at--; at < 0 {
					panic("enough")
				}
			}
		},
		"goexit": func(l *data.Loader, at int) {
			var wg sync.WaitGroup
			wg.Go(func() {
				for range l.All() {
					if at--; at < 0 {
						runtime.Goexit()
					}
				}
			})
			wg.Wait()
		},
		"pull": func(l *data.Loader, at int) {
			next, stop := iter.Pull2(l.All())
			for range at {
				next()
			}
			stop()
		},
		"context": func(l *data.Loader, at int) {
			ctx, cancel := context.WithCancelCause(t.Context())
			why := errors.New("no more")
			defer cancel(nil)
			n := 0
			for _, err := range l.AllContext(ctx) {
				if n > at && !errors.Is(err, why) {
					t.Errorf("batch %d after the context has ended: %v", n, err)
				}
				if n == at {
					cancel(why)
				}
				n++
			}
			if n != min(at+2, batches) && at < batches {
				t.Errorf("the context ends at batch %d, and the loop after %d", at, n)
			}
		},
	}
	for name, end := range ends {
		for _, workers := range []int{1, 3} {
			for at := range batches + 1 {
				var reading atomic.Int64
				set := counted{n: 2 * batches, read: func(i int) error {
					reading.Add(1)
					defer reading.Add(-1)
					runtime.Gosched()
					return nil
				}}
				end(load(set, 2, data.Options{Workers: workers, Prefetch: 3}), at)
				if n, now := left(), reading.Load(); n != 0 || now != 0 {
					t.Errorf("%s at %d with %d workers: %d goroutines are left, %d samples are being read", name, at, workers, n, now)
				}
			}
		}
	}
}

// In a bubble, the end of a loop is the end of its goroutines; synctest.Test would not return otherwise. A loop that
// waits for a sample is woken by the end of its context, but then has to wait for the sample. No more are read.
func TestContextWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		var read atomic.Int64
		set := counted{n: 8, read: func(i int) error {
			if read.Add(1); i == 2 {
				<-gate
			}
			return nil
		}}
		l := load(set, 2, data.Options{Workers: 1})
		ctx, cancel := context.WithCancel(t.Context())
		var errs []error
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for _, err := range l.AllContext(ctx) {
				errs = append(errs, err)
			}
		}()
		synctest.Wait() // until the loop waits for sample 2
		cancel()
		synctest.Wait() // until it waits for the worker
		select {
		case <-ended:
			t.Error("the loop ends while a sample is being read")
		default:
		}
		close(gate)
		<-ended
		if len(errs) != 2 || errs[0] != nil || !errors.Is(errs[1], context.Canceled) || read.Load() != 3 {
			t.Errorf("the loop has %v and has read %d samples, want 3", errs, read.Load())
		}
		if want := (data.Position{Batch: 1}); l.Position() != want {
			t.Errorf("then it is at %v, want %v", l.Position(), want)
		}
		if got := epoch(t, l); !reflect.DeepEqual(got, [][]int64{{2, 3}, {4, 5}, {6, 7}}) {
			t.Errorf("then there is %v", got)
		}
	})
}

// A loop that ran past its end, until the value was there that ends it, leaves the position where the end is.
func TestPast(t *testing.T) {
	slow := device.Wrap("sim", device.KindSimulated, sim.New(sim.Options{Latency: time.Millisecond}))
	for name, loop := range map[string]func(l *data.Loader, body func() bool){
		"batch by batch": func(l *data.Loader, body func() bool) {
			for range l.All() {
				if body() {
					break
				}
			}
		},
		"by Seek": func(l *data.Loader, body func() bool) {
			for ended := false; !ended; ended = body() {
				l.Seek(data.Position{Batch: l.Position().Batch + 1})
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			x := tensor.On(slow).Ones(1)
			l := load(counted{n: 80}, 2, data.Options{})
			device.Collect() // with much garbage, the loop would not run ahead
			later := asyncrt.NewLater[struct{}](64)
			defer later.Close()
			const end = 20
			steps := 0
			loop(l, func() bool {
				steps++
				isLast := steps == end
				at := later.Read(x.AddScalar(1))
				_, ok := later.BreakIf(func() bool { return at.Item() > 0 && isLast }, struct{}{})
				return ok
			})
			later.Flush()
			if want := (data.Position{Batch: end}); l.Position() != want {
				t.Errorf("the position is %v, want %v", l.Position(), want)
			}
			t.Logf("%d steps", steps)
		})
	}
}

// No more batches than announced are made before the loop asks for them.
func TestBackpressure(t *testing.T) {
	for _, ahead := range []int{1, 3} {
		synctest.Test(t, func(t *testing.T) {
			var read atomic.Int64
			set := counted{n: 40, read: func(i int) error { read.Add(1); return nil }}
			l := load(set, 2, data.Options{Workers: 4, Prefetch: ahead})
			taken := 0
			for range l.All() {
				taken++
				synctest.Wait()
				if want := min(int64(2*(taken+ahead)), 40); read.Load() != want {
					t.Errorf("%d batches ahead: %d samples are read after %d batches, want %d", ahead, read.Load(), taken, want)
				}
			}
		})
	}
}

// Errors come in place of their batches, in order, and name the first sample that fails; a loop may go on.
func TestErrors(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	bad := map[int]bool{}
	for range 12 {
		bad[r.IntN(60)] = true
	}
	cause := errors.New("bad")
	set := counted{n: 60, read: func(i int) error {
		for range i % 7 {
			runtime.Gosched()
		}
		if bad[i] {
			return fmt.Errorf("%w: %d", cause, i)
		}
		return nil
	}}
	for _, workers := range []int{1, 2, 5} {
		l := load(set, 4, data.Options{Shuffle: true, Seed: seed, Workers: workers})
		order := slices.Concat(epoch(t, load(counted{n: 60}, 4, data.Options{Shuffle: true, Seed: seed}))...)
		k := 0
		for b, err := range l.All() {
			want := ""
			for _, i := range order[4*k : 4*k+4] {
				if bad[int(i)] {
					want = fmt.Sprintf("data: sample %d: bad: %d", i, i)
					break
				}
			}
			switch {
			case want == "" && (err != nil || !slices.Equal(samples(t, b), order[4*k:4*k+4])):
				t.Errorf("batch %d: %v, %v, want %v", k, b, err, order[4*k:4*k+4])
			case want != "" && (err == nil || err.Error() != want || !errors.Is(err, cause) || b != data.Batch{}):
				t.Errorf("batch %d: %v, %v, want %s", k, b, err, want)
			}
			at := k
			if err == nil {
				at++
			}
			if l.Position().Batch != at {
				t.Errorf("batch %d with the error %v: the position is %v", k, err, l.Position())
			}
			k++
		}
		if k != l.Len() || l.Position().Epoch != 1 {
			t.Errorf("%d batches of %d; then %v", k, l.Len(), l.Position())
		}
	}
}

// A panic of the data set comes out of the loop, at its batch, with the stack of where it was. So does the end of the
// goroutine that calls it. No goroutine is left then: synctest.Test waits for all.
func TestPanics(t *testing.T) {
	cause := errors.New("broken")
	for _, workers := range []int{1, 3} {
		for what, fail := range map[string]func(){"broken": func() { panic(cause) }, "Goexit": runtime.Goexit} {
			set := counted{n: 12, read: func(i int) error {
				if i >= 5 {
					fail()
				}
				return nil
			}}
			synctest.Test(t, func(t *testing.T) {
				l := load(set, 2, data.Options{Workers: workers})
				n := 0
				defer func() {
					err, ok := recover().(error)
					if !ok || !strings.Contains(err.Error(), what) || !strings.Contains(err.Error(), "TestPanics") || n != 2 {
						t.Errorf("%d workers, %s: the loop panics after %d batches with %v", workers, what, n, err)
					}
					if what == "broken" && !errors.Is(err, cause) {
						t.Error("the value of the panic is lost")
					}
				}()
				for range l.All() {
					n++
				}
			})
		}
	}
}

// The tensors are on the device that options name, of the types of the data set.
func TestDevices(t *testing.T) {
	far := device.Wrap("sim", device.KindSimulated, sim.New(sim.Options{}))
	x := data.Array[uint8]{Data: []uint8{1, 2, 3}, Shape: []int{3}}
	l := data.NewLoader(data.Pair(x, data.Array[bool]{}), 2, data.Options{Device: far})
	for b, err := range l.All() {
		if err != nil {
			t.Fatal(err)
		}
		if b.X.Device() != far || b.X.DType() != tensor.Uint8 || b.Y.DType() != tensor.Bool || b.Y.Size() != 0 || b.Y.Dim(0) != b.X.Dim(0) {
			t.Errorf("%v %v on %v; %v %v", b.X.DType(), b.X.Shape(), b.X.Device(), b.Y.DType(), b.Y.Shape())
		}
	}
	if got := data.ArrayOf[float32](tensor.On(far).Ones(2, 3)); got.Len() != 2 || !slices.Equal(got.Row(1), []float32{1, 1, 1}) {
		t.Errorf("the array of a tensor is %v", got)
	}
}

// A batch that doesn't come to the device has an error that names the line of the loop, though a worker has sent it.
func TestFailedCopies(t *testing.T) {
	broken := fault.New(sim.New(sim.Options{}))
	far := device.Wrap("sim", device.KindSimulated, broken)
	l := load(counted{n: 8}, 2, data.Options{Device: far})
	broken.Arm(fault.Faults{Call: fault.Command, Rate: 1})
	_, _, line, _ := runtime.Caller(0)
	for b, err := range l.All() { // the line after
		if err != nil {
			t.Fatal(err)
		}
		var failed *asyncrt.OpError
		if err := b.X.AddScalar(1).Wait(); !errors.As(err, &failed) || !errors.Is(err, fault.ErrInjected) {
			t.Fatalf("the batch has the error %v", err)
		}
		if !strings.HasSuffix(failed.File, "loader_test.go") || failed.Line != line+1 {
			t.Errorf("the error is of %s:%d, want line %d", failed.File, failed.Line, line+1)
		}
	}
	_ = asyncrt.Synchronize(far)
}

// numbers is a data set whose targets are their numbers.
type numbers struct{ n int }

func (s numbers) Len() int             { return s.n }
func (s numbers) Shapes() (x, y []int) { return []int{0}, nil }
func (s numbers) At(i int, x []uint8, y []int64) error {
	y[0] = int64(i)
	return nil
}

// A set may have any number of samples: a loader that doesn't shuffle takes no memory for each.
func TestHugeSet(t *testing.T) {
	const n = 1 << 40
	l := data.NewLoader[uint8, int64](numbers{n}, 2, data.Options{Workers: 1<<62 + 1})
	l.Seek(data.Position{Batch: n/2 - 3})
	var got []int64
	took := allocated(func() {
		for b, err := range l.All() {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, b.Y.Int64s()...)
		}
	})
	if want := []int64{n - 6, n - 5, n - 4, n - 3, n - 2, n - 1}; !slices.Equal(got, want) || took > 1<<20 {
		t.Errorf("%v with %d bytes, want %v", got, took, want)
	}
}

// The parts of all ranks are the batches of one, whatever happens to be shuffled; a position goes on for all.
func TestLoaderRanks(t *testing.T) {
	for _, o := range []data.Options{{}, {Shuffle: true, Seed: 3}, {Shuffle: true, DropLast: true, Workers: 3}} {
		n := 28
		if o.DropLast {
			n = 31
		}
		one := load(counted{n: n}, 8, o)
		var parts []*data.Loader
		for rank := range 4 {
			o.Rank, o.Ranks = rank, 4
			parts = append(parts, load(counted{n: n}, 8, o))
		}
		for e := range 3 {
			want := epoch(t, one)
			for i := range want {
				var got []int64
				for rank, l := range parts {
					for b, err := range l.All() {
						if err != nil {
							t.Fatal(err)
						}
						if want := len(want[i]) / 4; b.X.Dim(0) != want || b.Y.Dim(0) != want {
							t.Errorf("%+v: rank %d has %d samples of batch %d, want %d", o, rank, b.X.Dim(0), i, want)
						}
						got = append(got, b.Y.Int64s()...)
						break
					}
				}
				if !slices.Equal(got, want[i]) {
					t.Errorf("%+v: epoch %d, batch %d: %v, want %v", o, e, i, got, want[i])
				}
			}
			for _, l := range parts {
				for range l.All() {
					t.Error("a batch too many")
				}
				if l.Position() != one.Position() {
					t.Errorf("position %v, want %v", l.Position(), one.Position())
				}
			}
		}
	}
	for want, o := range map[string]data.Options{
		"data: NewLoader: there is no rank 4 of 4":                          {Rank: 4, Ranks: 4},
		"data: NewLoader: there is no rank 1 of 1":                          {Rank: 1},
		"data: NewLoader: there is no rank 0 of -2":                         {Ranks: -2},
		"data: NewLoader: 4 ranks can't share a batch of 6 samples equally": {Ranks: 4},
		"data: NewLoader: 3 ranks can't share a batch of 8 samples equally": {Ranks: 3, DropLast: true},
	} {
		func() {
			defer func() {
				if got := fmt.Sprint(recover()); !strings.HasPrefix(got, want) {
					t.Errorf("got %q, want %q", got, want)
				}
			}()
			load(counted{n: 30}, 8, o)
		}()
	}
}
