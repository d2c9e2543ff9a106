package asyncrt_test

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/sim"
	asyncrt "github.com/asyncgen/asyncgen/runtime"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// In virtual time a program takes exactly the time that the model says, to the nanosecond, whatever else the
// machine does and however many processors it has. The program runs in a process of its own, because a process has
// one clock.
func TestVirtualTime(t *testing.T) {
	if os.Getenv("ASYNCGEN_TEST_VIRTUAL") != "" {
		t.Log(trainVirtually())
		return
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var first string
	for _, processors := range []string{"1", "2", "2"} {
		cmd := exec.Command(self, "-test.run=^TestVirtualTime$", "-test.v")
		cmd.Env = append(os.Environ(), "ASYNCGEN_TEST_VIRTUAL=1", "ASYNCGEN_SIM=n=2,clock=virtual", "GOMAXPROCS="+processors)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		at := strings.Index(string(out), "took ")
		if at < 0 {
			t.Fatalf("no times:\n%s", out)
		}
		times, _, _ := strings.Cut(string(out[at:]), "\n")
		if first == "" {
			first = times
		} else if times != first {
			t.Errorf("GOMAXPROCS=%s: %s\nbefore: %s", processors, times, first)
		}
	}
	if strings.HasPrefix(first, "took 0s") || strings.Contains(first, "waits 0") {
		t.Errorf("nothing has taken any time: %s", first)
	}
}

// trainVirtually fits weights on one simulated device and sums losses on another. Some are read at once, some
// later. It returns the times and results as text.
func trainVirtually() string {
	stop := make(chan bool)
	defer close(stop)
	go func() { // something else that needs processors and makes garbage
		for {
			select {
			case <-stop:
				return
			default:
				runtime.GC()
			}
		}
	}()
	devices := []device.Device{opened("sim:0"), opened("sim:1")}
	tensor.Seed(1)
	w := tensor.On(devices[0]).Randn(64, 64)
	sum := tensor.On(devices[1]).Zeros()
	later := asyncrt.NewLater[struct{}](8)
	defer later.Close()
	timer := asyncrt.StartTimer()
	total := 0.0
	for i := range 40 {
		x := tensor.On(devices[0]).Randn(32, 64)
		y := x.MatMul(w).Tanh()
		loss := y.Square().Mean()
		w = w.Sub(x.Transpose().MatMul(y).MulScalar(1e-3))
		sum = sum.Add(loss.To(devices[1]))
		if i%2 == 0 {
			total += loss.Item()
			continue
		}
		at := later.Read(loss)
		later.Do(func() { total += at.Item() })
	}
	later.Flush()
	total += sum.Item()
	timer.Stop()
	took := timer.Wait()
	busy, _ := sim.BusyOf(devices[0])
	other, _ := sim.BusyOf(devices[1])
	s := asyncrt.Stats()
	return fmt.Sprintf("took %v, now %v, busy %v and %v, waits %d of %v, total %v", took, sim.Now(), busy, other, s.Waits, s.WaitTime, total)
}

// opened returns a device that exists.
func opened(name string) device.Device {
	d, err := device.Open(name)
	if err != nil {
		panic(err)
	}
	return d
}
