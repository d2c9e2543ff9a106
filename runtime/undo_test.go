package asyncrt_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/asyncgen/asyncgen/device"
	asyncrt "github.com/asyncgen/asyncgen/runtime"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// A sharedLoop changes variables that others can see before it knows whether it gets there.
type sharedLoop struct {
	// the iterations in which it ends: by its length, by a value, because host code panics, because an operation
	// fails. If mistake is a multiple of 3, it panics after the loop.
	limit, end, host, spoiled, mistake int
	n                                  int
	pair                               [2]int
	w                                  *tensor.Tensor
	ws                                 []*tensor.Tensor
}

func newSharedLoop(r *rand.Rand) *sharedLoop {
	at := func() int { return r.IntN(60) - 5 }
	return &sharedLoop{limit: r.IntN(40), end: at(), host: at(), spoiled: at(), mistake: at(),
		w: tensor.Zeros(1), ws: []*tensor.Tensor{tensor.Zeros(1), tensor.Ones(1)}}
}

// run runs the loop as written, or with a Later of the given window, and returns what others see of it.
func (l *sharedLoop) run(window int) (log string) {
	func() {
		defer func() {
			if v := recover(); v != nil {
				log += fmt.Sprintf("panic: %t ", errors.As(asError2(v), new(*asyncrt.OpError)))
			}
			log += fmt.Sprint("n=", l.n, " pair=", l.pair) // as a deferred function sees them
		}()
		later := asyncrt.NewLater[struct{}](max(window, 1))
		defer later.Close()
		later.Undo(asyncrt.Var(&l.n), asyncrt.Var(&l.pair), asyncrt.Var(&l.w))
		later.Undo(asyncrt.Elems(l.ws), asyncrt.Var(&l.n)) // l.n is there already
		for i := range l.limit {
			l.n++
			x := l.w.AddScalar(1)
			if i == l.spoiled {
				x = x.Take(0, tensor.From([]int64{7}))
			}
			look := func(v float64) bool {
				log += fmt.Sprint(v, " ")
				if i == l.host {
					panic("the host")
				}
				return i == l.end
			}
			if window == 0 {
				if look(x.Item()) {
					break
				}
			} else {
				at := later.Read(x)
				if _, ok := later.BreakIf(func() bool { return look(at.Item()) }, struct{}{}); ok {
					break
				}
			}
			l.pair[i%2] = i
			l.ws[i%2] = x.Add(l.ws[1-i%2])
			if window == 0 {
				log += fmt.Sprint(l.ws[0].Item(), " ")
			} else {
				at := later.Read(l.ws[0])
				later.Do(func() { log += fmt.Sprint(at.Item(), " ") })
			}
			l.w = x
		}
		if later.Flush(); l.limit > 3 && l.mistake%3 == 0 {
			panic("behind the loop")
		}
	}()
	for _, t := range append(l.ws, l.w) {
		log += " " + t.String()
	}
	_ = asyncrt.WaitAll() // failures that the program has seen are reported once more
	return log
}

// asError2 returns v as an error, or nil if it is none.
func asError2(v any) error {
	err, _ := v.(error)
	return err
}

// TestUndo: others see the same of a loop that runs ahead as of one that waits, however it ends.
func TestUndo(t *testing.T) {
	for seed := range uint64(300) {
		want := newSharedLoop(rand.New(rand.NewPCG(seed, 1))).run(0)
		for _, window := range []int{1, 2, 64} {
			if got := newSharedLoop(rand.New(rand.NewPCG(seed, 1))).run(window); got != want {
				t.Fatalf("seed %d, window %d: got\n%s\nwant\n%s", seed, window, got, want)
			}
		}
	}
}

// TestUndoForgets: places of one loop are not places of the next one.
func TestUndoForgets(t *testing.T) {
	n := 0
	later := asyncrt.NewLater[struct{}](4)
	defer later.Close()
	later.Undo(asyncrt.Var(&n))
	later.Undo()
	func() {
		defer func() { _ = recover() }()
		later.Do(func() {
			n = 1
			panic("now")
		})
	}()
	if n != 1 {
		t.Errorf("n is %d", n)
	}
}

// TestUndoInside: places are restored for entries that an entry queues as for that entry, even if they run after it
// has returned.
func TestUndoInside(t *testing.T) {
	devices(t, func(t *testing.T, on device.Device) {
		n := 1
		later := asyncrt.NewLater[struct{}](64)
		later.Undo(asyncrt.Var(&n))
		func() {
			defer func() { _ = recover() }()
			x := later.Read(tensor.On(on).Ones(400, 400).MatMul(tensor.On(on).Ones(400, 400)).Sum())
			later.Do(func() {
				_ = x.Item()
				// the value has to come from the device, if that has memory of its own
				y := later.Read(tensor.On(on).Ones(2).Sum())
				later.Do(func() { panic(y.Item()) })
			})
			n = 2
			later.Flush()
		}()
		if n != 1 {
			t.Errorf("n is %d", n)
		}
	})
	later := asyncrt.NewLater[struct{}](64)
	defer func() {
		if v := recover(); v != "asyncrt: Undo in a function of the backlog" {
			t.Errorf("panic: %v", v)
		}
	}()
	later.Do(func() { later.Undo() })
}

// TestUndoKeepsLittle: the memory that places keep for waiting entries is bounded.
func TestUndoKeepsLittle(t *testing.T) {
	old := asyncrt.Limit()
	asyncrt.SetLimit(1 << 20)
	defer asyncrt.SetLimit(old)
	w := tensor.Ones(1 << 16) // 256 KiB
	most := 0
	ran := 0
	later := asyncrt.NewLater[struct{}](64)
	defer later.Close()
	later.Undo(asyncrt.Var(&w))
	for i := range 40 {
		w = w.AddScalar(1)
		at := later.Read(w.Sum())
		later.Do(func() { ran++; _ = at.Item() })
		most = max(most, i+1-ran)
	}
	later.Flush()
	if most > 4 {
		t.Errorf("%d entries waited, with 256 KiB each, although 1 MiB may be in flight", most)
	}
}
