package engine

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/asyncgen/asyncgen/device"
)

// Contents in use never overlap, begin at multiples of the alignment, and when all are given back one gap is left.
func TestSpace(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	for range 200 {
		var s space
		var used []gap // to is the end without rounding
		for range 60 {
			if n := len(used); n > 0 && r.IntN(2) == 0 {
				i := r.IntN(n)
				s.give(used[i].from, used[i].to-used[i].from)
				used[i] = used[n-1]
				used = used[:n-1]
				continue
			}
			bytes := r.Int64N(300)
			at := s.take(bytes)
			for _, g := range used {
				if at < max(g.to, g.from+1) && g.from < max(at+bytes, at+1) {
					t.Fatalf("seed %d: %d bytes at %d, where %v is in use", seed, bytes, at, g)
				}
			}
			if at%alignment != 0 || at+bytes > s.size {
				t.Fatalf("seed %d: %d bytes at %d of %d", seed, bytes, at, s.size)
			}
			used = append(used, gap{at, at + bytes})
		}
		for _, g := range used {
			s.give(g.from, g.to-g.from)
		}
		if want := (gap{0, s.size}); s.size > 0 && (len(s.gaps) != 1 || s.gaps[0] != want) {
			t.Fatalf("seed %d: the gaps are %v, want %v", seed, s.gaps, want)
		}
	}
}

// Runs of a plan are ordered like operations: operations before and behind them use their sources and outputs, on the
// same and on another device. The intermediate results of a chain share two places, or one if it goes in place.
func TestRuns(t *testing.T) {
	for _, o := range []Options{{Mode: Async}, {Mode: Async, Workers: 3, Ring: 4, Tiny: TinyNone}, {Mode: Async, Tiny: TinyAll}, {Mode: Shuffle, Seed: 3}} {
		t.Run(fmt.Sprintf("%+v", o), func(t *testing.T) {
			e := New(o)
			on, far := device.Wrap("cpu", device.KindSimulated, &fakeCPU{}), device.Wrap("gpu", device.KindSimulated, newFakeGPU())
			const n, length = 5, 4
			add := func(s *Storage) *Storage {
				out := e.NewStorage(s.Device(), n*8)
				e.Enqueue(&Op{Cmd: opOf(out), Operands: [device.MaxOperands]*Storage{out, s}, Cost: 10})
				return out
			}
			from := func(v float64) *Storage {
				b := device.HostBuffer(n * 8)
				for i := range device.Slice[float64](b, 0, n) {
					device.Slice[float64](b, 0, n)[i] = v
				}
				return e.FromHost(on, b)
			}
			c := e.Capture(func(text string) { panic(text) })
			first := from(0)
			if slot, isSource := c.Source(first); slot != 0 || !isSource {
				t.Fatalf("the source has slot %d", slot)
			}
			last, middle := first, 0
			for i := range length {
				last = add(last)
				if i == 1 {
					middle, _ = c.Slot(last)
				}
			}
			end, _ := c.Slot(last)
			p := c.Plan([]int{end, middle})
			if p.arena > 2*roundedUp(n*8) {
				t.Errorf("an arena of %d bytes for a chain", p.arena)
			}
			x := add(from(0))
			v := 1.0
			for range 12 {
				outs := []*Storage{e.NewStorage(on, p.Bytes(0)), e.NewStorage(on, p.Bytes(1))}
				p.Run([]Binding{{S: x}}, outs, p.Ask())
				there := e.Copy(outs[0], 0, n, device.Float64, far)
				back := e.Copy(there, 0, n, device.Float64, on)
				e.Release(there)
				for s, want := range map[*Storage]float64{outs[0]: v + length, outs[1]: v + 2, back: v + length, add(outs[1]): v + 3} {
					if err := s.Wait(bg, "Wait"); err != nil {
						t.Fatal(err)
					}
					if got := valsOf(s.Buffer()); got[0] != want || got[n-1] != want {
						t.Errorf("%v, want %v", got, want)
					}
				}
				x = add(back)
				v += length + 1
			}
			if s := e.Stats(); s.Plans != 1 || s.Runs != 12 || s.RunBytes != 0 {
				t.Errorf("%+v", s)
			}
			if err := e.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}
