package known_test

import (
	"errors"
	"testing"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/sim"
	asyncrt "github.com/asyncgen/asyncgen/runtime"
	"github.com/asyncgen/asyncgen/runtime/internal/known"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// far is a device whose memory the host can't reach.
type far struct{ *sim.Backend }

func (f far) Caps() device.Caps {
	caps := f.Backend.Caps()
	caps.HostMemory = false
	return caps
}

// A number on such a device gets known by a copy, which is enqueued once: when it is computed, or by Fetch. Nothing
// waits for it.
func TestFar(t *testing.T) {
	on := device.Wrap("far", device.KindSimulated, far{sim.New(sim.Options{})})
	for _, early := range []bool{false, true} {
		x := tensor.On(on).Full(0.5, 1).MulScalar(3)
		n := known.Of("known", "TestFar", x)
		tensor.Dead(x)
		waits, enqueued := 0, uint64(0)
		quietly := func(f func()) {
			before := asyncrt.Stats()
			f()
			after := asyncrt.Stats()
			waits += int(after.Waits - before.Waits)
			enqueued += uint64(after.Enqueued - before.Enqueued)
			asyncrt.WaitIdle()
		}
		if early {
			quietly(n.Fetch)
			quietly(n.Fetch)
		}
		asyncrt.WaitIdle()
		quietly(func() {
			if got := n.Known(); got != early {
				t.Errorf("fetched %v: known %v", early, got)
			}
		})
		quietly(func() {
			if !n.Known() {
				t.Errorf("fetched %v: the copy is not known", early)
			}
		})
		if waits != 0 || enqueued != 1 {
			t.Errorf("fetched %v: %d waits and %d operations, want one copy", early, waits, enqueued)
		}
		if v, err := n.Value(); v != 1.5 || err != nil || n.Bits() != 32 {
			t.Errorf("fetched %v: %v of %d bits, %v", early, v, n.Bits(), err)
		}
	}
	zero := tensor.On(on).FullInt(0, 1)
	n := known.Of("known", "TestFar", zero.Div(zero))
	n.Wait()
	if _, err := n.Value(); !n.Known() || n.Bits() != 64 {
		t.Errorf("after Wait, it is not known: %v", err)
	} else if _, ok := errors.AsType[*asyncrt.OpError](err); !ok {
		t.Errorf("the error is %v", err)
	}
}
