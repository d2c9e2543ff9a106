package fault

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/cpu"
	"github.com/asyncgen/asyncgen/device/devicetest"
	"github.com/asyncgen/asyncgen/device/sim"
)

// Without faults, or with delays, a backend is one.
func TestConformance(t *testing.T) {
	for name, open := range map[string]func() device.Backend{
		"cpu": func() device.Backend { return cpu.New() },
		"sim": func() device.Backend { return sim.New(sim.Options{}) },
	} {
		for _, f := range []Faults{{}, {Call: Command, Kind: Delay, Rate: 0.1, Seed: 1}} {
			t.Run(fmt.Sprintf("%s/%v/%v", name, f.Call, f.Kind), func(t *testing.T) {
				b := New(open())
				b.Arm(f)
				devicetest.TestBackend(t, b, devicetest.Options{})
			})
		}
	}
}

// outcome runs one allocation, one submission of three commands, and a wait, and says which of the five went wrong.
func outcome(b *Backend) (failed []string) {
	try := func(name string, f func() error) bool {
		var err error
		func() {
			defer func() {
				if v := recover(); v != nil {
					err = v.(error)
					name += " panicked"
				}
			}()
			err = f()
		}()
		if errors.Is(err, ErrInjected) {
			failed = append(failed, name)
		} else if err != nil {
			failed = append(failed, err.Error())
		}
		return err == nil
	}
	var buf *device.Buffer
	if !try("Alloc", func() (err error) { buf, err = b.Alloc(8000); return err }) {
		return failed
	}
	defer b.Free(buf)
	fill := device.Command{Kernel: device.NewKernel("fill", device.Fill, nil, device.Int64), N: 1000}
	fill.Buf[0] = buf
	var last device.Ticket
	if !try("Submit", func() (err error) { last, err = b.Submit([]device.Command{fill, fill, fill}); return err }) {
		return failed
	}
	for range 2 {
		if try("Wait", func() error { return b.Wait(context.Background(), last) }) {
			break
		}
	}
	for i := range device.Ticket(3) {
		try(fmt.Sprint("command ", i), func() error { return b.Failure(last - 2 + i) })
	}
	return failed
}

func TestFaults(t *testing.T) {
	for _, test := range []struct {
		faults   Faults
		cpu, sim string
	}{
		{Faults{}, "[]", "[]"},
		{Faults{Call: Alloc, N: 1}, "[Alloc]", "[Alloc]"},
		{Faults{Call: Alloc, N: 2}, "[]", "[]"},
		{Faults{Call: Alloc, N: 1, Kind: Panic}, "[Alloc panicked]", "[Alloc panicked]"},
		{Faults{Call: Submit, N: 1}, "[Submit]", "[Submit]"},
		{Faults{Call: Submit, N: 1, Kind: Delay}, "[]", "[]"},
		{Faults{Call: Wait, N: 1}, "[Wait]", "[Wait]"},
		{Faults{Call: Command, N: 2}, "[Submit]", "[command 1]"},
		{Faults{Call: Command, N: 3, Kind: Panic}, "[Submit panicked]", "[command 2]"},
		{Faults{Call: Command, Rate: 1}, "[Submit]", "[command 0 command 1 command 2]"},
		{Faults{Call: Command, Rate: 1, Kind: Delay}, "[]", "[]"},
		{Faults{Call: Alloc, N: 1, Err: device.ErrOutOfMemory}, "[fault: Alloc 1: out of device memory]", "[fault: Alloc 1: out of device memory]"},
	} {
		b := New(cpu.New())
		b.Arm(test.faults)
		if got := fmt.Sprint(outcome(b)); got != test.cpu {
			t.Errorf("%+v on the CPU: %s, want %s", test.faults, got, test.cpu)
		}
		b = New(sim.New(sim.Options{}))
		b.Arm(test.faults)
		if got := fmt.Sprint(outcome(b)); got != test.sim {
			t.Errorf("%+v on sim: %s, want %s", test.faults, got, test.sim)
		}
		if live := b.Memory().Stats().Live; live != 0 {
			t.Errorf("%+v: %d bytes are lost", test.faults, live)
		}
	}
}

// The same seed gives the same faults.
func TestSeed(t *testing.T) {
	run := func(seed uint64) (s string) {
		b := New(cpu.New())
		b.Arm(Faults{Call: Alloc, Rate: 0.5, Seed: seed})
		for range 100 {
			_, err := b.Alloc(8)
			s += map[bool]string{true: "x", false: "."}[err != nil]
		}
		return s
	}
	if a, b := run(1), run(1); a != b {
		t.Errorf("the same seed: %s and %s", a, b)
	}
	if a, b := run(1), run(2); a == b {
		t.Errorf("two seeds: %s", a)
	}
}
