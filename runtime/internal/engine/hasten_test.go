package engine

import (
	"errors"
	"testing"

	"github.com/asyncgen/asyncgen/device"
)

// Hasten executes operations that take a moment, also ones that fail, and that counts as no wait.
func TestHasten(t *testing.T) {
	onAll(t, func(s *setup) {
		if x := s.from(1); s.e.mode == Naive && !x.Hasten() {
			s.Error("what has been computed is not ready")
		}
		if s.e.mode != Async || s.dev.Kind() != device.KindCPU {
			return
		}
		for range 100 {
			x, beside := s.from(1), s.from(0)
			for range 3 {
				x, beside = s.apply(addOne, x), s.apply(addOne, beside)
			}
			bad := s.apply(addOne, s.apply(failing, x))
			for _, y := range []*Storage{x, bad} {
				if !y.Hasten() && !y.Hasten() { // others may be slow with what they have begun
					s.Logf("in other hands for long")
				} else if !y.Ready() {
					s.Error("done, and not ready")
				}
			}
			s.want(x, 4)
			if err := bad.Wait(bg, "read"); !errors.Is(err, errBoom) {
				s.Errorf("got %v", err)
			}
		}
		if st := s.e.Stats(); st.Helped == 0 {
			s.Errorf("nothing was hastened: %+v", st)
		}
	})
}

// busy returns a setup whose only worker is busy until open is called.
func busy(t *testing.T) (s *setup, open func()) {
	d := newCPU(1)
	s = &setup{t, New(Options{MaxBytes: -1}), d, d}
	block, started, open := blocking()
	s.apply(block, s.from(1))
	s.e.stream(d).exec.flush()
	<-started
	return s, open
}

// Hasten leaves long operations, and operations that others have begun, to others.
func TestHastenRefuses(t *testing.T) {
	s, open := busy(t)
	defer s.e.Close()
	defer open()
	enqueue := func(cost int64, in *Storage) *Storage {
		out := s.new(1)
		s.e.Enqueue(&Op{Cmd: device.Command{Kernel: addOne, N: 1}, Operands: [device.MaxOperands]*Storage{out, in}, Cost: cost})
		return out
	}
	cheap := enqueue(1, s.from(1))
	costly := enqueue(moment, cheap)
	after := enqueue(1, costly)
	if after.Hasten() || cheap.Ready() {
		s.Error("something was done that takes long, or for it")
	}
	if !cheap.Hasten() || costly.Ready() {
		s.Error("what takes a moment was left to others, or what takes long was done with it")
	}
	many := s.from(1)
	for range int(moment/opCost) + 1 {
		many = enqueue(1, many)
	}
	if many.Hasten() {
		s.Error("many operations were done, which take long together")
	}
	if st := s.e.Stats(); st.Helped == 0 || st.Waits != 0 {
		s.Errorf("counts: %+v", st)
	}
	open()
	s.want(after, 4)
	s.want(many, float64(int(moment/opCost)+2))
}

// Work that nobody waits for does not pile up in front of hastened operations.
func TestHastenCatchesUp(t *testing.T) {
	runOn(t, newCPU(1), Options{MaxBytes: -1}, func(s *setup) {
		const steps = 4 * momentLength
		done, tries := 0, 0
		for ; done < steps && tries < 100; tries++ { // more than one: others may be slow with what they have begun
			x, aside := s.from(0), s.from(0)
			for done = 0; done < steps; done++ {
				aside = s.apply(addOne, aside)
				x = s.apply(addOne, x)
				if !x.Hasten() {
					break
				}
			}
			s.want(x, float64(min(done+1, steps)))
			s.want(aside, float64(min(done+1, steps)))
		}
		if done < steps {
			s.Errorf("%d times not all of %d steps were done at once", tries, steps)
		}
	})
}
