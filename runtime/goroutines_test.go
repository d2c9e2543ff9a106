package asyncrt_test

import (
	"maps"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/cpu"
	"github.com/asyncgen/asyncgen/device/fault"
	"github.com/asyncgen/asyncgen/device/sim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// A program that has used tensors, and closed nothing, soon has no goroutines of the library but those that the
// documentation names.
func TestGoroutinesEnd(t *testing.T) {
	ignored := regexp.MustCompile(`goleak\.IgnoreAnyFunction\("([^"]+)"\)`)
	var named []string
	for _, file := range []string{"asyncrt.go", "../docs/guide/testing.md"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		names := map[string]bool{}
		for _, m := range ignored.FindAllStringSubmatch(string(text), -1) {
			names[m[1]] = true
		}
		all := slices.Sorted(maps.Keys(names))
		if named == nil {
			named = all
		}
		if !slices.Equal(all, named) {
			t.Errorf("%s names %q, and asyncrt.go %q", file, all, named)
		}
	}
	devices := []device.Device{
		device.CPU(),
		device.Wrap("cpu", device.KindCPU, cpu.New()),
		device.Wrap("sim", device.KindSimulated, sim.New(sim.Defaults())),
		device.Wrap("sim with faults", device.KindSimulated, fault.New(sim.New(sim.Options{}))),
	}
	work := func() {
		for _, on := range devices {
			x := tensor.On(on).Ones(100, 100)
			for range 5 {
				x = x.MatMul(x).Tanh()
			}
			if got := x.To(device.CPU()).Sum().Item(); got != got {
				t.Error("not a number")
			}
			tensor.On(on).Ones(1000).AddScalar(1) // nobody waits for this
		}
	}
	inBubble := func() { synctest.Test(t, func(*testing.T) { work() }) }
	for _, program := range [][]func(){{work, inBubble}, {inBubble, work}} { // none are left when the second begins
		for _, f := range program {
			f()
		}
		awaitGoroutines(t, named)
	}
}

// awaitGoroutines waits until the only goroutines of the library are the named ones.
func awaitGoroutines(t *testing.T, named []string) {
	for end := time.Now().Add(time.Minute); ; <-time.After(10 * time.Millisecond) {
		left := slices.Sorted(maps.Keys(goroutinesOfOurs()))
		if slices.Equal(left, named) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("goroutines that go on: %q; asyncrt.go names %q", left, named)
		}
	}
}

// goroutinesOfOurs returns the functions that goroutines of this module, apart from tests, were started with.
func goroutinesOfOurs() map[string]bool {
	stacks := make([]byte, 1<<20)
	for n := 0; ; stacks = make([]byte, 2*len(stacks)) {
		if n = runtime.Stack(stacks, true); n < len(stacks) {
			stacks = stacks[:n]
			break
		}
	}
	found := map[string]bool{}
	frame := regexp.MustCompile(`(?m)^(github\.com/asyncgen/asyncgen/.*)\(.*\)$`)
	for _, stack := range strings.Split(string(stacks), "\n\n") {
		frames := frame.FindAllStringSubmatch(stack, -1)
		if strings.Contains(stack, "_test.") || len(frames) == 0 {
			continue
		}
		found[frames[len(frames)-1][1]] = true
	}
	return found
}
