package progress

import (
	"bytes"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/cpu"
	"github.com/asyncgen/asyncgen/device/devicetest"
	_ "github.com/asyncgen/asyncgen/device/opencl"
	asyncrt "github.com/asyncgen/asyncgen/runtime"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// A gate is a slow device: each Tanh waits for a token.
type gate struct {
	device.Backend
	tokens chan struct{}
}

func (g *gate) Submit(cmds []device.Command) (device.Ticket, error) {
	for _, c := range cmds {
		if c.Kernel.Name == "Tanh" {
			<-g.tokens
		}
	}
	return g.Backend.Submit(cmds)
}

func gated() (device.Device, *gate) {
	g := &gate{device.CPU().Backend(), make(chan struct{}, 1000)}
	return device.Wrap("gated", device.KindSimulated, g), g
}

// Without a terminal there is a line every ten seconds, and one at the end.
func TestLines(t *testing.T) {
	for name, c := range map[string]struct {
		total int
		o     Options
		steps int
		pause time.Duration
		want  string
	}{
		"whole": {400, Options{Label: "epoch 1"}, 400, 50 * time.Millisecond, `
epoch 1 200/400 50% 20.0 steps/s 10s left, loss 0.005
epoch 1 400/400 100% 20.0 steps/s, loss 0.0025
epoch 1 400/400 100% 20.0 steps/s in 20s, loss 0.0025
`},
		"short": {5, Options{}, 3, time.Second, `
3/5 60% 1.00 steps/s in 3s, loss 0.3333
`},
		"slow": {3, Options{}, 3, time.Minute, `
1/3 33% 60.0 s/step 2m0s left, loss 1
2/3 67% 60.0 s/step 1m0s left, loss 0.5
3/3 100% 60.0 s/step, loss 0.3333
3/3 100% 60.0 s/step in 3m0s, loss 0.3333
`},
		"unknown total": {0, Options{Label: "tab\tbell\a"}, 25, 500 * time.Millisecond, `
tab bell  20 steps 2.00 steps/s, loss 0.05
tab bell  25 steps 2.00 steps/s in 13s, loss 0.04
`},
		"goes on": {100, Options{Start: 90}, 11, time.Second, `
100/100 100% 1.00 steps/s, loss 0.1
101/100 101% 1.00 steps/s in 11s, loss 0.09091
`},
		"none": {7, Options{}, 0, 0, `
0/7 0% in 0s
`},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var out bytes.Buffer
				c.o.Out = &out
				b := New(c.total, c.o)
				for i := range c.steps {
					time.Sleep(c.pause)
					b.Step("loss", 1/float64(i+1))
				}
				b.Close()
				b.Close()
				if got := "\n" + out.String(); got != c.want {
					t.Errorf("the lines are%swant%s", got, c.want)
				}
			})
		})
	}
}

// The rate follows a change of speed.
func TestRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		b := New(1000, Options{Out: &out})
		for i := range 120 {
			if i < 100 {
				time.Sleep(100 * time.Millisecond)
			} else {
				time.Sleep(time.Second)
			}
			b.Step()
		}
		b.Close()
		want := `100/1000 10% 10.0 steps/s 1m30s left
110/1000 11% 7.30 steps/s 2m2s left
120/1000 12% 5.41 steps/s 2m43s left
120/1000 12% 4.00 steps/s in 30s
`
		if got := out.String(); got != want {
			t.Errorf("the lines are\n%swant\n%s", got, want)
		}
	})
}

// line is what the bar shows of its values now.
func line(b *Bar) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.out.(*bytes.Buffer).Reset()
	b.draw()
	text := b.out.(*bytes.Buffer).String()
	if _, values, ok := strings.Cut(text, ", "); ok {
		return strings.TrimSpace(values)
	}
	return ""
}

// The newest value that is known is shown. Two handles are kept at most, and nothing waits.
func TestNewestKnown(t *testing.T) {
	on, g := gated()
	x := tensor.On(on).Full(0.5, 1)
	if err := x.Wait(); err != nil {
		t.Fatal(err)
	}
	b := New(100, Options{Out: new(bytes.Buffer)})
	before := asyncrt.Stats()
	var losses []*tensor.Tensor
	for range 10 {
		x = x.Tanh()
		losses = append(losses, x)
		b.Step("loss", x, "n", len(losses))
	}
	if got := line(b); got != "n 10" {
		t.Errorf("with no loss known, the bar shows %q", got)
	}
	if kept := len(b.values[0].kept); kept != 2 {
		t.Errorf("%d handles are kept", kept)
	}
	if after := asyncrt.Stats(); after.Waits != before.Waits || after.Enqueued-before.Enqueued != 10 {
		t.Errorf("%d waits and %d operations, want 0 and 10", after.Waits-before.Waits, after.Enqueued-before.Enqueued)
	}
	let := func(n int) {
		for range n {
			g.tokens <- struct{}{}
		}
	}
	let(1)
	if err := losses[0].Wait(); err != nil {
		t.Fatal(err)
	}
	want := func(x *tensor.Tensor) string { return fmt.Sprintf("loss %.4g, n 10", x.Item()) }
	if got := line(b); got != want(losses[0]) {
		t.Errorf("the bar shows %q, want %q", got, want(losses[0]))
	}
	let(9)
	last := want(losses[9])
	older := x.Tanh()
	newest := older.Tanh()
	tensor.Dead(losses...)
	if got := line(b); got != last {
		t.Errorf("the bar shows %q, want %q", got, last)
	}
	b.Step("loss", older)
	b.Step("loss", newest)
	let(2)
	if err := newest.Wait(); err != nil {
		t.Fatal(err)
	}
	if got := line(b); got != want(newest) {
		t.Errorf("of two that are known the bar shows %q, want %q", got, want(newest))
	}
	b.Close()
}

// Numbers that were overtaken leave the memory, and all do with Close, without the collector.
func TestLetsGo(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	g := &gate{cpu.New(), make(chan struct{}, 1000)}
	x := tensor.On(device.Wrap("gated", device.KindSimulated, g)).Ones(1 << 16)
	live := func() int64 {
		if err := asyncrt.WaitAll(); err != nil {
			t.Log(err) // other tests have made operations fail
		}
		low := device.MemoryOf(g.Backend).Stats().Live
		for range 100 { // a worker may still be giving back memory
			runtime.Gosched()
			low = min(low, device.MemoryOf(g.Backend).Stats().Live)
		}
		return low
	}
	one := live()
	for _, isClosed := range []bool{false, true} {
		b := New(0, Options{Out: new(bytes.Buffer)})
		for range 10 {
			y := x.Tanh()
			loss := y.Slice(0, 0, 1) // keeps all of y
			b.Step("loss", loss)
			tensor.Dead(y, loss)
		}
		most := 3 * one // with two numbers
		if isClosed {
			b.Close()
			most = one
		}
		for range 10 {
			g.tokens <- struct{}{}
		}
		if n := live(); n > most {
			t.Errorf("closed %v: %d bytes are in use, want %d", isClosed, n, most)
		}
		b.Close()
	}
}

// On each device values get known in the loop, and none waits. An operation that failed shows as such.
func TestDevices(t *testing.T) {
	for _, name := range devicetest.Names(t) {
		t.Run(name, func(t *testing.T) {
			on, err := device.Open(name)
			if err != nil {
				t.Fatal(err)
			}
			b := New(0, Options{Out: new(bytes.Buffer)})
			before := asyncrt.Stats().Waits
			x := tensor.On(on).Ones(1)
			for range 50 {
				x = x.AddScalar(1)
				b.Step("x", x)
			}
			if waits := asyncrt.Stats().Waits - before; waits > 0 {
				t.Errorf("%d waits", waits)
			}
			settled := func() string {
				for range 3 { // the first finds the number, the second its copy
					asyncrt.WaitIdle()
					line(b)
				}
				return line(b)
			}
			if got := settled(); got != "x 51" {
				t.Errorf("the bar shows %q", got)
			}
			zero := tensor.On(on).FullInt(0, 1)
			bad := zero.Div(zero)
			b.Step("x", bad)
			if got := settled(); got != "x failed" {
				t.Errorf("the bar shows %q", got)
			}
			b.Close()
		})
	}
}

func TestMistakes(t *testing.T) {
	b := New(1, Options{Out: new(bytes.Buffer)})
	closed := New(1, Options{Out: new(bytes.Buffer)})
	closed.Close()
	for name, call := range map[string]func(){
		"negative":        func() { New(-1, Options{}) },
		"negative start":  func() { New(1, Options{Start: -1}) },
		"no pairs":        func() { b.Step("loss") },
		"no name":         func() { b.Step(1, 2) },
		"no number":       func() { b.Step("good", 1, "loss", "1") },
		"several numbers": func() { b.Step("loss", tensor.Ones(2)) },
		"after Close":     func() { closed.Step() },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if m, ok := recover().(*tensor.Mistake); !ok {
					t.Errorf("the panic is %v", m)
				}
			}()
			call()
		})
	}
	if got := line(b); got != "" || b.done != 0 {
		t.Errorf("mistakes have left %q, %d steps", got, b.done)
	}
}
