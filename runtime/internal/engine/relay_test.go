package engine

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"unsafe"

	"github.com/asyncgen/asyncgen/device"
)

// A picky device refuses copies that begin at a place.
type picky struct {
	*fakeGPU
	mu      sync.Mutex // guards the rest
	refused func(c *device.Command) bool
	host    map[unsafe.Pointer]bool // memory of the host that was copied to
}

func (p *picky) Submit(cmds []device.Command) (device.Ticket, error) {
	p.mu.Lock()
	for i := range cmds {
		c := &cmds[i]
		if p.refused != nil && p.refused(c) {
			p.mu.Unlock()
			return 0, errBoom
		}
		if c.Kernel.Code == device.Download {
			p.host[c.Buf[0].Ptr] = true
		}
	}
	p.mu.Unlock()
	return p.fakeGPU.Submit(cmds)
}

func (p *picky) refuse(what func(c *device.Command) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refused = what
}

// relays runs f with two devices that do not reach each other, and an engine that copies between them in
// parts of two numbers.
func relays(t *testing.T, f func(t *testing.T, e *Engine, from, to *picky, devs [2]device.Device)) {
	for _, mode := range []Mode{Async, Shuffle, Naive} {
		t.Run(fmt.Sprint(mode), func(t *testing.T) {
			var devs [2]device.Device
			var on [2]*picky
			for i := range on {
				on[i] = &picky{fakeGPU: newFakeGPU(), host: map[unsafe.Pointer]bool{}}
				devs[i] = device.Wrap(fmt.Sprint("gpu:", i), device.KindGPU, on[i])
				defer on[i].Close()
			}
			e := New(Options{Mode: mode, Seed: 1})
			defer e.Close()
			e.relayBytes = 16
			f(t, e, on[0], on[1], devs)
		})
	}
}

// numbers are 0, 1, 2, ...
func numbers(n int) []float64 {
	v := make([]float64, n)
	for i := range v {
		v[i] = float64(i)
	}
	return v
}

// A copy through host memory is complete, wherever it begins and whatever its length, and takes only as
// much host memory as a few parts.
func TestRelay(t *testing.T) {
	relays(t, func(t *testing.T, e *Engine, from, to *picky, devs [2]device.Device) {
		const n = 10 * relayParts
		x := fromFloats(e, devs[0], numbers(n)...)
		host := device.Wrap("cpu", device.KindCPU, &fakeCPU{})
		for i, part := range [][2]int{{0, n}, {1, n - 1}, {3, 4}, {n - 1, 1}, {5, 3}, {7, 0}} {
			off, length := part[0], part[1]
			y := e.Copy(x, off, length, device.Float64, devs[1])
			unary(e, addOne, x, x) // the copy is of what was there before
			z := e.Copy(y, 0, length, device.Float64, host)
			if err := z.Wait(bg, "Wait"); err != nil {
				t.Fatal(err)
			}
			want := numbers(n)[off : off+length]
			for k := range want {
				want[k] += float64(i)
			}
			if got := device.Slice[float64](z.Buffer(), 0, length); !slices.Equal(got, want) {
				t.Errorf("%d numbers from %d: %v, want %v", length, off, got, want)
			}
		}
		from.mu.Lock()
		defer from.mu.Unlock()
		if got := len(from.host); got > 3*relayParts {
			t.Errorf("%d pieces of host memory, want %d at most", got, 3*relayParts)
		}
	})
}

// If any part of a copy fails, on the way to the host or from there, the copy fails with that cause, and
// its source is still good.
func TestRelayFails(t *testing.T) {
	relays(t, func(t *testing.T, e *Engine, from, to *picky, devs [2]device.Device) {
		const n, off = 9, 1
		x := fromFloats(e, devs[0], numbers(n)...)
		host := device.Wrap("cpu", device.KindCPU, &fakeCPU{})
		for at := -2; at < n-off; at += 2 { // at -2 none fails
			for i, p := range []*picky{from, to} {
				place, code := off+at, device.Download
				if p == to {
					place, code = at, device.Upload
				}
				p.refuse(func(c *device.Command) bool { return c.Kernel.Code == code && c.Off[1-i] == place })
				y := e.Copy(x, off, n-off, device.Float64, devs[1])
				err := y.Wait(bg, "Wait")
				p.refuse(nil)
				if at < 0 && err != nil || at >= 0 && !errors.Is(err, errBoom) {
					t.Errorf("part %d, %v: error %v", at/2, code, err)
				}
				z := e.Copy(x, 0, n, device.Float64, host)
				if err := z.Wait(bg, "Wait"); err != nil || !slices.Equal(device.Slice[float64](z.Buffer(), 0, n), numbers(n)) {
					t.Errorf("part %d, %v: what was copied has error %v", at/2, code, err)
				}
			}
		}
	})
}
