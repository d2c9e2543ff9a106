package asyncrt_test

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/cpu"
	"github.com/asyncgen/asyncgen/device/sim"
	"github.com/asyncgen/asyncgen/internal/turns"
	asyncrt "github.com/asyncgen/asyncgen/runtime"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// scarce runs f on new devices with the given number of bytes.
func scarce(t *testing.T, bytes int, f func(t *testing.T, on device.Device)) {
	for name, open := range map[string]func() device.Backend{
		"cpu": func() device.Backend { return cpu.New() },
		"sim": func() device.Backend { return sim.New(sim.Options{}) },
	} {
		t.Run(fmt.Sprintf("%s/%d MiB", name, bytes>>20), func(t *testing.T) {
			t.Setenv("ASYNCGEN_MEMORY", fmt.Sprint(bytes))
			f(t, device.Wrap(name, device.KindSimulated, open()))
		})
	}
}

// halves is a captured step of two tensors as large as its operand: one that it returns, and one in between.
func halves() *tensor.Captured {
	return asyncrt.Capture(func(in ...*tensor.Tensor) []*tensor.Tensor {
		y := in[0].Mul(in[1]).Flip(0).Add(in[0])
		return []*tensor.Tensor{y, y.Sum(), in[1].MulScalar(0.9)}
	})
}

// memoryLoops are loops over tensors of 1 MiB, as written and as the generator rewrites them. They return what they
// have read. They need at most five tensors at a time besides w.
var memoryLoops = []struct {
	name               string
	written, rewritten func(w *tensor.Tensor) string
}{
	{"best", func(w *tensor.Tensor) string {
		least := math.Inf(1)
		var best *tensor.Tensor
		for i := range memorySteps {
			y := w.MulScalar(1 / float64(i+1)).AddScalar(float64(i % 7))
			if s := y.Sum().Item(); s < least {
				least, best = s, y
			}
			afterStep()
		}
		return fmt.Sprint(least, best.Sum().Item())
	}, func(w *tensor.Tensor) string {
		least := math.Inf(1)
		var best *tensor.Tensor
		later := asyncrt.NewLater[struct{}](64)
		defer later.Close()
		for i := range memorySteps {
			y := w.MulScalar(1 / float64(i+1)).AddScalar(float64(i % 7))
			sumAt := later.Read(y.Sum())
			later.Do(func() {
				if s := sumAt.Item(); s < least {
					least, best = s, y
				}
			})
			afterStep()
		}
		later.Flush()
		return fmt.Sprint(least, best.Sum().Item())
	}},
	{"print", func(w *tensor.Tensor) (out string) {
		for i := range memorySteps {
			out += fmt.Sprintln(w.MulScalar(1 / float64(i+1)))
		}
		return out
	}, func(w *tensor.Tensor) (out string) {
		later := asyncrt.NewLater[struct{}](64)
		defer later.Close()
		for i := range memorySteps {
			at := later.Read(w.MulScalar(1 / float64(i+1)))
			later.Do(func() { out += fmt.Sprintln(at) })
		}
		later.Flush()
		return out
	}},
	{"slice", func(w *tensor.Tensor) string {
		sum := float32(0)
		for i := range memorySteps {
			sum += w.MulScalar(1 / float64(i+1)).Float32s()[i]
		}
		return fmt.Sprint(sum)
	}, func(w *tensor.Tensor) string {
		sum := float32(0)
		later := asyncrt.NewLater[struct{}](64)
		defer later.Close()
		for i := range memorySteps {
			at := later.Read(w.MulScalar(1 / float64(i+1)))
			later.Do(func() { sum += at.Float32s()[i] })
		}
		later.Flush()
		return fmt.Sprint(sum)
	}},
	{"exit", func(w *tensor.Tensor) string {
		p := tensor.NewBuffer(w)
		for i := range memorySteps {
			x := p.Value().MulScalar(0.9)
			p.Set(x)
			if x.Mean().Item() < 0.01 {
				return fmt.Sprint(i, p.Value().Sum().Item())
			}
		}
		return "none"
	}, func(w *tensor.Tensor) string {
		p := tensor.NewBuffer(w)
		later := asyncrt.NewLater[*tensor.Tensor](64)
		later.RunFar()
		defer later.Close()
		i := 0
		for ; i < memorySteps; i++ {
			x := p.Value().MulScalar(0.9)
			p.Set(x)
			at, step := later.Read(x.Mean()), i
			if _, ok := later.BreakIf(func() bool { i = step; return at.Item() < 0.01 }, x, p); ok {
				return fmt.Sprint(i, p.Value().Sum().Item())
			}
			i = step
		}
		if _, ok := later.Flush(); ok {
			return fmt.Sprint(i, p.Value().Sum().Item())
		}
		return "none"
	}},
	{"captured", func(w *tensor.Tensor) string {
		least := math.Inf(1)
		var best *tensor.Tensor
		step, scale := halves(), tensor.On(w.Device()).Scalar(1)
		for range memorySteps {
			y := step.Run(w, scale)
			scale = y[2]
			if s := y[1].Item(); s < least {
				least, best = s, y[0]
			}
			afterStep()
		}
		return fmt.Sprint(least, best.Sum().Item())
	}, func(w *tensor.Tensor) string {
		least := math.Inf(1)
		var best *tensor.Tensor
		later := asyncrt.NewLater[struct{}](64)
		defer later.Close()
		step, scale := halves(), tensor.On(w.Device()).Scalar(1)
		for range memorySteps {
			y := step.Run(w, scale)
			scale = y[2]
			sumAt := later.Read(y[1])
			later.Do(func() {
				if s := sumAt.Item(); s < least {
					least, best = s, y[0]
				}
			})
			afterStep()
		}
		later.Flush()
		return fmt.Sprint(least, best.Sum().Item())
	}},
	{"surge", func(w *tensor.Tensor) string { // one step in ten needs much more memory than the others
		sum := 0.0
		var best *tensor.Tensor
		for i := range memorySteps {
			y := w.MulScalar(float64(i))
			if i%10 == 9 {
				z := tensor.Concat(0, y, w).AddScalar(1)
				y = z.Slice(0, 0, y.Dim(0)).Add(y)
			}
			if s := y.Sum().Item(); s > sum {
				sum, best = s, y
			}
		}
		return fmt.Sprint(sum, best.Sum().Item())
	}, func(w *tensor.Tensor) string {
		sum := 0.0
		var best *tensor.Tensor
		later := asyncrt.NewLater[struct{}](64)
		defer later.Close()
		for i := range memorySteps {
			y := w.MulScalar(float64(i))
			if i%10 == 9 {
				z := tensor.Concat(0, y, w).AddScalar(1)
				y = z.Slice(0, 0, y.Dim(0)).Add(y)
			}
			at := later.Read(y.Sum())
			later.Do(func() {
				if s := at.Item(); s > sum {
					sum, best = s, y
				}
			})
		}
		later.Flush()
		return fmt.Sprint(sum, best.Sum().Item())
	}},
}

const memorySteps = 40

// afterStep is called after each step of the first loop.
var afterStep = func() {}

// TestLaterMemory: a loop that runs ahead of its reads needs no more memory than the loop as written.
func TestLaterMemory(t *testing.T) {
	for _, l := range memoryLoops {
		t.Run(l.name, func(t *testing.T) {
			turns.Take(t)
			for _, limit := range []int{12 << 20, 40 << 20} {
				scarce(t, limit, func(t *testing.T, on device.Device) {
					w := tensor.On(on).Full(0.5, 1<<18)
					if got, want := l.rewritten(w), l.written(w); got != want {
						t.Errorf("got %s, want %s", got, want)
					}
				})
			}
		})
	}
}

// TestLaterKeeps: a device that lags behind does not make a loop keep more than Later says. Virtual time lets the
// device lag by the same number of steps in each run, so the loops run in a process of their own.
func TestLaterKeeps(t *testing.T) {
	if os.Getenv("ASYNCGEN_TEST_KEEPS") != "" {
		fmt.Println("keeps", mostKept())
		return
	}
	const mib = 1 << 20
	for _, c := range []struct {
		name      string
		memory    int
		limit     int // in flight
		rewritten bool
		least     int // in MiB
		most      int
	}{
		// Two results of 4 MiB a step, and w: without bounds, 40 steps would keep 324 MiB.
		{name: "written", memory: 4096 * mib, least: 8, most: 20},
		{name: "a noticeable part", memory: 4096 * mib, rewritten: true, least: 24, most: 60},
		{name: "a quarter of what is left", memory: 120 * mib, rewritten: true, least: 12, most: 44},
		{name: "what may be in flight", memory: 4096 * mib, limit: 12 * mib, rewritten: true, least: 8, most: 32},
	} {
		t.Run(c.name, func(t *testing.T) {
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(self, "-test.run=^TestLaterKeeps$")
			cmd.Env = append(os.Environ(), "ASYNCGEN_SIM=n=1,clock=virtual,launch=10ms", fmt.Sprint("ASYNCGEN_MEMORY=", c.memory),
				fmt.Sprint("ASYNCGEN_LIMIT=", c.limit), fmt.Sprint("ASYNCGEN_TEST_KEEPS=", c.rewritten))
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			_, text, _ := strings.Cut(string(out), "keeps ")
			text, _, _ = strings.Cut(text, "\n")
			if n, err := strconv.Atoi(text); err != nil || n < c.least || n > c.most {
				t.Errorf("keeps %s MiB, want %d to %d", text, c.least, c.most)
			}
		})
	}
}

// mostKept runs the first loop of memoryLoops and returns how many MiB were in use at most after a step.
func mostKept() int64 {
	on := opened("sim:0")
	w := tensor.On(on).Full(0.5, 1<<20)
	most := int64(0)
	afterStep = func() {
		device.Collect()
		most = max(most, device.MemoryOf(on.Backend()).Live()>>20)
	}
	if os.Getenv("ASYNCGEN_TEST_KEEPS") == "true" {
		memoryLoops[0].rewritten(w)
	} else {
		memoryLoops[0].written(w)
	}
	return most
}

// TestKeepsReads: a loop whose entries keep nothing but what is read for them waits for the window alone, however large
// its steps are; what is read counts, and so does the tensor of which it is a view.
func TestKeepsReads(t *testing.T) {
	if what := os.Getenv("ASYNCGEN_TEST_READS"); what != "" {
		fmt.Println("waits", waitsOf(what))
		return
	}
	for what, c := range map[string]struct{ least, most int }{
		"sums": {2, 40}, "sums, which is said": {0, 0}, "all, which is said": {2, 40}, "rows, which is said": {2, 40},
	} {
		t.Run(what, func(t *testing.T) {
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(self, "-test.run=^TestKeepsReads$")
			cmd.Env = append(os.Environ(), "ASYNCGEN_SIM=n=1,clock=virtual,launch=10ms", "ASYNCGEN_TEST_READS="+what, "ASYNCGEN_LIMIT=0")
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			_, text, _ := strings.Cut(string(out), "waits ")
			text, _, _ = strings.Cut(text, "\n")
			if n, err := strconv.Atoi(text); err != nil || n < c.least || n > c.most {
				t.Errorf("%s waits, want %d to %d\n%s", text, c.least, c.most, out)
			}
		})
	}
}

// waitsOf runs 24 steps of 4 MiB on a device that lags behind, or that shares the memory of the host if rows are read,
// and returns how often the loop waited, apart from its end.
func waitsOf(what string) int64 {
	on := opened("sim:0")
	w := tensor.On(on).Full(0.5, 4, 1<<18)
	before := asyncrt.Stats().Waits
	later := asyncrt.NewLater[struct{}](64)
	if strings.HasSuffix(what, "said") {
		later.KeepsReads()
	}
	total := 0.0
	for range 24 {
		w = w.AddScalar(1)
		switch what[:3] {
		case "all":
			at := later.Read(w)
			later.Do(func() { total += float64(at.Float32s()[0]) })
		case "row":
			at := later.Read(w.To(device.CPU()).Row(0))
			later.Do(func() { total += float64(at.Float32s()[0]) })
		default:
			at := later.Read(w.Sum())
			later.Do(func() { total += at.Item() })
		}
	}
	waits := asyncrt.Stats().Waits - before
	later.Flush()
	return waits
}

// Memory returns the memory of the device behind g.
func (g *gate) Memory() *device.Allocator { return device.MemoryOf(g.Backend) }

// TestLaterGivesBack: an operation that finds no memory because of what a backlog keeps waits until the backlog has
// run.
func TestLaterGivesBack(t *testing.T) {
	const elems = 1 << 19 // in 2 MiB
	t.Setenv("ASYNCGEN_MEMORY", fmt.Sprint(64<<20))
	g := &gate{cpu.New(), make(chan struct{}, 1000)}
	on := device.Wrap("gated", device.KindSimulated, g)
	w := tensor.On(on).Full(0.5, elems)
	for range 3 {
		device.Collect() // otherwise the loop would not run ahead, and wait at the closed gate
		later := asyncrt.NewLater[struct{}](64)
		var best *tensor.Tensor
		var all []*tensor.Tensor
		sum, ran, waiting := 0.0, 0, 0
		for i := range 6 {
			y := w.Tanh()
			if i == 5 {
				waiting = i - ran
				for range 26 {
					all = append(all, y.MulScalar(2))
				}
				for _, x := range all {
					y = y.Add(x)
				}
				g.let(6)
			}
			at := later.Read(y.Sum())
			later.Do(func() {
				if s := at.Item(); s >= sum {
					sum, best = s, y
				}
				ran++
			})
		}
		later.Close()
		for _, x := range all {
			if err := x.Wait(); err != nil {
				t.Fatal(err)
			}
		}
		if waiting < 5 {
			t.Fatalf("%d entries waited: what is tested here?", waiting)
		}
		if got := best.Sum().Item(); got != sum {
			t.Errorf("got %v, want %v", got, sum)
		}
	}
}

// TestLaterFails: if there is no memory for the values of a backlog, their operations fail, and nothing waits for ever.
func TestLaterFails(t *testing.T) {
	t.Setenv("ASYNCGEN_MEMORY", fmt.Sprint(128<<20))
	g := &gate{cpu.New(), make(chan struct{}, 1000)}
	on := device.Wrap("gated", device.KindSimulated, g)
	w := tensor.On(on).Full(0.5, 1<<18) // 1 MiB
	if err := w.Wait(); err != nil {
		t.Fatal(err)
	}
	later := asyncrt.NewLater[struct{}](64)
	defer later.Close()
	var errs []error
	for range 3 {
		y := w.Tanh()
		at := later.Read(tensor.Concat(0, y, y, y, y).Sum())
		later.Do(func() { errs = append(errs, asyncrt.Try(func() { at.Item() })) })
	}
	// Somebody else takes all memory.
	memory := device.MemoryOf(g)
	for err := error(nil); err == nil; {
		_, err = memory.Alloc(1 << 20)
	}
	g.let(3)
	later.Flush()
	if len(errs) != 3 || !strings.Contains(fmt.Sprint(errs), "out of device memory") {
		t.Errorf("got %v", errs)
	}
}
