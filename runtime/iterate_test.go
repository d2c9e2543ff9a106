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

// A fragileLoop can be ended by a value, and can panic in several ways.
type fragileLoop struct {
	limit      int
	end        int // where a value ends it
	short      int // how many rows there are; each iteration needs one
	mistake    int // where shapes do not fit
	spoiled    int // where an operation fails, because its index is out of range
	host       int // where host code that has read a value panics
	flush      int // where the loop flushes, as before a prompt to a user
	continuing int // where it goes on to the next iteration at once
}

func newFragileLoop(r *rand.Rand) fragileLoop {
	at := func() int { return r.IntN(60) - 5 }
	return fragileLoop{limit: r.IntN(40), end: at(), short: r.IntN(60), mistake: at(), spoiled: at(), host: at(), flush: at(), continuing: at()}
}

// step enqueues the operations of iteration i.
func (l fragileLoop) step(x, rows *tensor.Tensor, i int) *tensor.Tensor {
	x = x.Add(rows.Row(i))
	if i == l.mistake {
		x = x.Add(tensor.On(x.Device()).Zeros(3))
	}
	if i == l.spoiled {
		x = x.Take(0, tensor.FromOn(x.Device(), []int64{7}))
	}
	return x
}

// run runs the loop as written, or with a Later of the given window, and returns a log of what it does.
func (l fragileLoop) run(on device.Device, window int) (log string) {
	x, rows := tensor.On(on).Zeros(1), tensor.On(on).Ones(l.short, 1)
	say := func(i int, v float64) {
		if i == l.host {
			panic(fmt.Sprint("the host, at ", v))
		}
		log += fmt.Sprint(i, "=", v, " ")
	}
	defer func() {
		if v := recover(); v != nil {
			text := fmt.Sprint(v)
			if err, ok := v.(error); ok && asError(err) {
				text = "index 7"
			}
			log += "panic: " + text
		}
		_ = asyncrt.WaitAll() // failures that the program has seen are reported once more
	}()
	if window == 0 {
		for i := range l.limit {
			x = l.step(x, rows, i)
			if x.Item() == float64(l.end) {
				return log + fmt.Sprint("end ", i, x)
			}
			if i == l.continuing {
				continue
			}
			say(i, x.Item())
		}
		return log + fmt.Sprint("limit ", x)
	}
	type state struct {
		x *tensor.Tensor
		i int
	}
	later := asyncrt.NewLater[state](window)
	defer later.Close()
	for i := range l.limit {
		if end, ok := later.Iterate(func() {
			if i == l.flush {
				if _, ok := later.Flush(); ok {
					return
				}
			}
			x = l.step(x, rows, i)
			at := later.Read(x)
			if _, ok := later.BreakIf(func() bool { return at.Item() == float64(l.end) }, state{x, i}); ok {
				return
			}
			if i == l.continuing {
				return
			}
			later.Do(func() { say(i, at.Item()) })
		}); ok {
			return log + fmt.Sprint("end ", end.i, end.x)
		}
	}
	if end, ok := later.Flush(); ok {
		return log + fmt.Sprint("end ", end.i, end.x)
	}
	return log + fmt.Sprint("limit ", x)
}

func asError(err error) bool {
	var at *device.IndexError
	return errors.As(err, &at)
}

// A loop whose iterations may panic past its end does the same as without running ahead: it has the same output,
// and then the same end or panic.
func TestIterate(t *testing.T) {
	devices(t, func(t *testing.T, on device.Device) {
		t.Logf("seed %d (go test -run '%s' -seed N)", *seed, t.Name())
		r := rand.New(rand.NewPCG(*seed, 3))
		kinds := make(map[string]int)
		for i := range 300 {
			l := newFragileLoop(r)
			want := l.run(on, 0)
			for _, window := range []int{1, 3, 64} {
				if got := l.run(on, window); got != want {
					t.Fatalf("loop %d, %+v, window %d:\n%s\nwant\n%s", i, l, window, got, want)
				}
			}
			switch {
			case l.end >= 0 && len(want) > 0 && want[len(want)-1] == ']':
				kinds["ends"]++
			default:
				kinds["panics"]++
			}
		}
		if kinds["ends"] < 30 || kinds["panics"] < 30 {
			t.Errorf("of 300 loops, %v", kinds)
		}
	})
}

// Iterate does not touch a panic that the original program comes to: recover gets it where it was raised.
func TestIteratePanics(t *testing.T) {
	later := asyncrt.NewLater[int](8)
	defer later.Close()
	for name, f := range map[string]func(){
		"nothing queued": func() { panic("here") },
		"an entry queued": func() {
			later.Do(func() {})
			panic("here")
		},
		"a test that is false": func() {
			later.BreakIf(func() bool { return false }, 1)
			panic("here")
		},
	} {
		func() {
			defer func() {
				if v := recover(); v != "here" {
					t.Errorf("%s: panics with %v", name, v)
				}
			}()
			later.Iterate(f)
			t.Errorf("%s: returns", name)
		}()
	}
	if end, ok := later.Iterate(func() { later.BreakIf(func() bool { return true }, 7) }); !ok || end != 7 {
		t.Errorf("an exit in Iterate is reported as %d, %v", end, ok)
	}
	if end, ok := later.Iterate(func() {}); ok {
		t.Errorf("the next one reports %d", end)
	}
}
