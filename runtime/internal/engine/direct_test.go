package engine_test

import (
	"context"
	"errors"
	"flag"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/cpu"
	"github.com/asyncgen/asyncgen/device/devicetest"
	"github.com/asyncgen/asyncgen/device/fault"
	"github.com/asyncgen/asyncgen/device/sim"
	"github.com/asyncgen/asyncgen/runtime/internal/engine"
)

// peers are devices that copy to each other directly, and the CPU.
type peers struct {
	e       *engine.Engine
	faults  []*fault.Backend
	devices []device.Device
	host    device.Device
}

func newPeers(t *testing.T, n int, o engine.Options, costs sim.Options) *peers {
	p := &peers{e: engine.New(o), host: device.Wrap("cpu", device.KindCPU, cpu.New())}
	for range n {
		b := fault.New(sim.New(costs))
		p.faults = append(p.faults, b)
		p.devices = append(p.devices, device.Wrap("sim", device.KindSimulated, b))
	}
	t.Cleanup(func() {
		p.e.Close() // its errors are known already
		for _, b := range p.faults {
			if err := b.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	return p
}

// from returns a storage of d with the numbers in v.
func (p *peers) from(d device.Device, v ...float32) *engine.Storage {
	data := device.HostBuffer(int64(4 * len(v)))
	copy(device.Slice[float32](data, 0, len(v)), v)
	return p.e.FromHost(d, data)
}

func (p *peers) copy(s *engine.Storage, to device.Device) *engine.Storage {
	return p.e.Copy(s, 0, int(s.Bytes()/4), device.Float32, to)
}

// read returns the contents of s.
func (p *peers) read(s *engine.Storage) ([]float32, error) {
	there := p.copy(s, p.host)
	if err := there.Wait(context.Background(), "test"); err != nil {
		return nil, err
	}
	return slices.Clone(device.Slice[float32](there.Buffer(), 0, int(s.Bytes()/4))), nil
}

func (p *peers) want(t *testing.T, s *engine.Storage, v ...float32) {
	t.Helper()
	if got, err := p.read(s); err != nil || !slices.Equal(got, v) {
		t.Errorf("got %v, error %v, want %v", got, err, v)
	}
}

// A copy from device to device is one command of the source, and none of the destination.
func TestDirectCopy(t *testing.T) {
	for _, mode := range []engine.Mode{engine.Async, engine.Naive, engine.Shuffle} {
		p := newPeers(t, 2, engine.Options{Mode: mode}, sim.Defaults())
		x := p.from(p.devices[0], 1, 2, 3)
		if err := p.e.WaitAll(t.Context()); err != nil {
			t.Error(err)
		}
		before := p.e.Stats()
		y := p.copy(x, p.devices[1])
		if err := p.e.WaitAll(t.Context()); err != nil {
			t.Error(err)
		}
		if n := p.e.Stats().Executed - before.Executed; n != 1 {
			t.Errorf("mode %v: a copy is %d operations", mode, n)
		}
		p.want(t, chain(p.e, p.devices[1], y, 3, 2), 3, 4, 5)
		p.want(t, p.e.Copy(x, 1, 2, device.Float32, p.devices[1]), 2, 3)
		p.want(t, x, 1, 2, 3)
	}
}

// A failure on either side spoils the copy, with its own cause, and nothing else.
func TestDirectCopyFails(t *testing.T) {
	for _, mode := range []engine.Mode{engine.Async, engine.Naive, engine.Shuffle} {
		p := newPeers(t, 2, engine.Options{Mode: mode}, sim.Options{})
		from, to := p.devices[0], p.devices[1]
		x, kept := p.from(from, 1, 2), p.from(to, 7)
		wait := func(s *engine.Storage) error { return s.Wait(context.Background(), "test") }
		if err := p.e.WaitAll(t.Context()); err != nil {
			t.Fatal(err)
		}
		check := func(what string, d device.Device, cause error, copies ...*engine.Storage) {
			t.Helper()
			for _, y := range copies {
				err := wait(chain(p.e, to, y, 2, 1))
				var op *engine.OpError
				if !errors.As(err, &op) || op.Device != d || !errors.Is(err, cause) {
					t.Errorf("mode %v: %s: error %+v", mode, what, err)
				}
			}
			p.want(t, x, 1, 2)
		}

		p.faults[1].Arm(fault.Faults{Call: fault.Alloc, Rate: 1, Err: device.ErrOutOfMemory})
		y := p.copy(x, to)
		if err := wait(y); !errors.Is(err, device.ErrOutOfMemory) {
			t.Errorf("mode %v: no memory over there: %v", mode, err)
		}
		p.faults[1].Arm(fault.Faults{})
		check("no memory over there", from, device.ErrOutOfMemory, y)

		p.faults[0].Arm(fault.Faults{Call: fault.Command, N: 1})
		y = p.copy(x, to)
		check("the copy fails", from, fault.ErrInjected, y, p.copy(y, to))

		ctx, cancel := context.WithCancel(t.Context())
		scoped := device.WithContext(ctx, to)
		cancel()
		check("the scope has ended", from, context.Canceled, p.copy(x, scoped))

		p.want(t, chain(p.e, to, kept, 1, 1), 8)
		p.e.WaitAll(t.Context()) // takes the failures

		// A device that is lost: what goes there is, too, and the other one is not.
		p.faults[1].Arm(fault.Faults{Call: fault.Alloc, N: 1, Kind: fault.Lose})
		y = p.copy(x, to)
		check("the other device is lost", to, device.ErrLost, y, p.copy(x, to))
		if err := p.e.Synchronize(t.Context(), from); err != nil {
			t.Errorf("mode %v: its own device: %v", mode, err)
		}
	}
}

// The device that is lost is the one that copies.
func TestDirectCopyFromALostDevice(t *testing.T) {
	for _, mode := range []engine.Mode{engine.Async, engine.Naive, engine.Shuffle} {
		p := newPeers(t, 2, engine.Options{Mode: mode}, sim.Options{})
		x, kept := p.from(p.devices[0], 1), p.from(p.devices[1], 7)
		if err := p.e.WaitAll(t.Context()); err != nil {
			t.Fatal(err)
		}
		p.faults[0].Arm(fault.Faults{Call: fault.Command, N: 2, Kind: fault.Lose})
		y, z := p.copy(x, p.devices[1]), p.copy(x, p.devices[1])
		p.want(t, y, 1)
		var op *engine.OpError
		if _, err := p.read(z); !errors.As(err, &op) || op.Device != p.devices[0] || !errors.Is(err, device.ErrLost) {
			t.Errorf("mode %v: error %+v", mode, err)
		}
		p.want(t, chain(p.e, p.devices[1], kept, 1, 1), 8)
	}
}

// The n-th allocation, submission, wait or command on one of three devices fails, or loses the device,
// for n = 1, 2, ... until there is no n-th one. Values that travel round the devices are right, or have
// failed with that cause; nothing hangs, and no memory stays behind.
func TestDirectCopiesRoundAndRoundFail(t *testing.T) {
	for _, call := range []fault.Call{fault.Alloc, fault.Submit, fault.Wait, fault.Command} {
		for _, kind := range []fault.Kind{fault.Fail, fault.Lose} {
			for n := int64(1); ; n++ {
				p := newPeers(t, 3, engine.Options{Ring: 8}, sim.Options{Queue: 2})
				p.faults[1].Arm(fault.Faults{Call: call, Kind: kind, N: n})
				values := []*engine.Storage{p.from(p.devices[0], 1, 2), p.from(p.devices[2], 5, 6)}
				for i := range 7 {
					for k, x := range values {
						to := p.devices[(2*k+i+1)%3]
						values[k] = chain(p.e, to, p.copy(x, to), 2, 1)
						p.e.Release(x)
					}
				}
				for k, x := range values {
					got, err := p.read(x)
					want := []float32{float32(8 + 4*k), float32(9 + 4*k)}
					if err == nil && !slices.Equal(got, want) || err != nil && !errors.Is(err, fault.ErrInjected) {
						t.Errorf("%v %d, %v: value %d is %v, error %v, want %v", call, n, kind, k, got, err, want)
					}
				}
				fired := p.faults[1].Fired() > 0
				p.e.Release(values...)
				p.e.Close()
				for i, b := range p.faults {
					if left := devicetest.Live(b, 0); left != 0 {
						t.Errorf("%v %d, %v: %d bytes are lost on device %d", call, n, kind, left, i)
					}
				}
				if t.Failed() {
					return
				}
				if !fired {
					break
				}
			}
		}
	}
}

var (
	directs     = flag.Int("direct", 60, "how many random programs with direct copies to run")
	directFirst = flag.Uint64("direct-seed", 0, "which of them is the first, if not a random one")
)

// Random programs on three devices that copy to each other, with memory that is given back at once and
// commands that fail. Exactly the values that depend on a failure are missing; the others are those that
// the program would compute itself.
func TestRandomDirectCopies(t *testing.T) {
	first := *directFirst
	if first == 0 {
		first = rand.Uint64()
	}
	for seed := first; seed < first+uint64(*directs) && !t.Failed(); seed++ {
		runDirectly(t, seed)
		if t.Failed() {
			t.Logf("to see it again: go test ./runtime/internal/engine -run TestRandomDirectCopies -direct 1 -direct-seed %d", seed)
		}
	}
}

// A directValue is a storage and its expected contents; nil: it depends on a failure.
type directValue struct {
	s   *engine.Storage
	dev int
	v   []float32
}

func runDirectly(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 1))
	costs := []sim.Options{{}, {Queue: 3}, sim.VirtualDefaults()}[rng.IntN(3)]
	mode := []engine.Mode{engine.Async, engine.Async, engine.Shuffle}[rng.IntN(3)]
	p := newPeers(t, 3, engine.Options{Mode: mode, Seed: seed, Ring: 8 << rng.IntN(6), MaxBytes: int64(rng.IntN(2) * 4000)}, costs)
	var values []*directValue
	for range 6 {
		v := &directValue{dev: rng.IntN(3), v: make([]float32, 1+1200*rng.IntN(2))}
		for i := range v.v {
			v.v[i] = float32(rng.IntN(100))
		}
		v.s = p.from(p.devices[v.dev], v.v...)
		values = append(values, v)
	}
	if err := p.e.WaitAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	var left [3]int // commands until one fails, for each device; 0 or less: none fails any more
	for i, b := range p.faults {
		left[i] = rng.IntN(60)
		b.Arm(fault.Faults{Call: fault.Command, N: int64(left[i])})
	}
	// run counts a command of a device. It reports whether the command succeeds.
	run := func(dev int) bool {
		left[dev]--
		return left[dev] != 0
	}
	for range 100 {
		v := values[rng.IntN(len(values))]
		switch rng.IntN(8) {
		case 0, 1, 2:
			to := rng.IntN(3)
			w := &directValue{s: p.copy(v.s, p.devices[to]), dev: to}
			if run(v.dev) && v.v != nil {
				w.v = slices.Clone(v.v)
			}
			values = append(values, w)
		case 3, 4, 5:
			w := &directValue{s: chain(p.e, p.devices[v.dev], v.s, int(v.s.Bytes()/4), 1), dev: v.dev}
			if run(v.dev) && v.v != nil {
				for _, x := range v.v {
					w.v = append(w.v, x+1)
				}
			}
			values = append(values, w)
		case 6:
			got, err := p.read(v.s)
			if want := run(v.dev) && v.v != nil; (err == nil) != want || want && !slices.Equal(got, v.v) {
				t.Errorf("program %d: got %.4v (error %v), want %.4v", seed, got, err, v.v)
				return
			}
		case 7:
			if len(values) > 4 {
				i := slices.Index(values, v)
				p.e.Release(v.s)
				values = slices.Delete(values, i, i+1)
			}
		}
	}
}
