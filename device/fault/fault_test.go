package fault

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/cpu"
	"github.com/asyncgen/asyncgen/device/devicetest"
	"github.com/asyncgen/asyncgen/device/sim"
)

// Without faults, or with delays only, the backend passes the conformance tests.
func TestConformance(t *testing.T) {
	for _, c := range []struct {
		name string
		b    device.Backend
		f    Faults
	}{
		{"cpu", cpu.New(), Faults{}},
		{"sim", sim.New(sim.Options{}), Faults{Call: Command, Kind: Delay, Rate: 0.1, Seed: 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := New(c.b)
			b.Arm(c.f)
			devicetest.TestBackend(t, b, devicetest.Options{Wraps: true})
		})
	}
}

// outcome runs an allocation, a submission of three commands, and a wait, and says which of the
// five fail.
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
		{Faults{Call: Alloc, N: 1, Kind: Lose}, "[Alloc]", "[Alloc]"},
		{Faults{Call: Submit, N: 1, Kind: Lose}, "[Submit]", "[Submit]"},
		{Faults{Call: Wait, N: 1, Kind: Lose}, "[Wait Wait]", "[Wait Wait]"},
		{Faults{Call: Command, N: 2, Kind: Lose}, "[Submit]", "[Wait Wait command 1 command 2]"},
		{Faults{Call: Command, Kernel: "fill", N: 2}, "[Submit]", "[command 1]"},
		{Faults{Call: Command, Kernel: "add", N: 2}, "[]", "[]"},
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

// A lost device stays lost, reports that everything is done, and releases its memory.
func TestLost(t *testing.T) {
	for name, open := range map[string]func() device.Backend{
		"cpu": func() device.Backend { return cpu.New() },
		"sim": func() device.Backend { return sim.New(sim.Options{}) },
	} {
		for _, call := range []Call{Alloc, Submit, Command, Wait} {
			b := New(open())
			buf, err := b.Alloc(8000)
			if err != nil {
				t.Fatal(err)
			}
			fill := device.Command{Kernel: device.NewKernel("fill", device.Fill, nil, device.Int64), N: 1000}
			fill.Buf[0] = buf
			cmds := []device.Command{fill, fill, fill}
			last, err := b.Submit(cmds)
			if err != nil {
				t.Fatal(err)
			}
			b.Arm(Faults{Call: call, Kind: Lose, N: 1})
			more := last
			switch call {
			case Alloc:
				_, err = b.Alloc(8)
			case Wait:
				err = b.Wait(context.Background(), last)
			default:
				if more, err = b.Submit(cmds); err == nil {
					err = b.Failure(more)
				}
			}
			var struck *Error
			if !errors.Is(err, device.ErrLost) || !errors.Is(err, ErrInjected) || !errors.As(err, &struck) || struck.Call != call || struck.N != 1 {
				t.Errorf("%s, %v: %v", name, call, err)
			}
			if call == Command && (struck.Kernel != "fill" || struck.Size != 1000) || call == Alloc && struck.Size != 8 {
				t.Errorf("%s, %v: %+v", name, call, struck)
			}
			for range 2 {
				_, allocErr := b.Alloc(8)
				_, submitErr := b.Submit(cmds)
				waitErr := b.Wait(context.Background(), last)
				if allocErr != err || submitErr != err || waitErr != err {
					t.Errorf("%s, %v: afterwards %v, %v and %v", name, call, allocErr, submitErr, waitErr)
				}
				if !b.Done(last) || !b.Done(more) {
					t.Errorf("%s, %v: a lost device is not done", name, call)
				}
				b.Arm(Faults{}) // does not bring the device back
			}
			if err := b.Failure(last); err != nil {
				t.Errorf("%s, %v: what was done before is lost: %v", name, call, err)
			}
			if b.Fired() != 0 {
				t.Errorf("%s, %v: a lost device has failed %d times more", name, call, b.Fired())
			}
			b.Free(buf)
			if live := b.Memory().Stats().Live; live != 0 {
				t.Errorf("%s, %v: %d bytes are lost", name, call, live)
			}
			if err := b.Close(); err != nil {
				t.Errorf("%s, %v: Close: %v", name, call, err)
			}
		}
	}
}

func TestParse(t *testing.T) {
	got, err := Parse("call=Command,kind=lose, kernel=MatMul,n=2,rate=0.5,seed=3,device=sim:0,log=x.txt")
	want := Settings{Faults{Call: Command, Kind: Lose, Kernel: "MatMul", N: 2, Rate: 0.5, Seed: 3}, "sim:0", "x.txt"}
	if err != nil || got != want {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	for settings, want := range map[string]string{
		"":                      "there are call",
		"call=":                 "not one of Alloc Submit Wait Command",
		"call=alloc":            "not one of Alloc Submit Wait Command",
		"call=Alloc,kind=break": "not one of fail panic delay lose",
		"call=Alloc,n=x":        `"n=x"`,
		"call=Alloc,calls=1":    "there are call",
		"n=1":                   "no call",
	} {
		if _, err := Parse(settings); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", settings, err, want)
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
