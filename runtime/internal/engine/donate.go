package engine

import "github.com/asyncgen/asyncgen/device"

// An operation that makes each element of its result from those at the same place of its inputs can
// leave the result where one of these was (see device.Map): it donates its memory. A chain of such
// operations takes the memory of one result, and finds it in the caches.
//
// Nothing is guessed. An input that is to be released has no holder left: no handle, no cell, no
// gradient, nothing that an exit may go back to. So a donor is an input whose Release has been
// enqueued when the operation is about to begin, or to be handed to a device with a queue, if
// nothing else before the Release uses it that has not finished, or has not been handed over. The
// operation may fail, or be a mistake of a discarded guess: nobody looks at the input any more. The
// Release finds nothing to give back.

// lookBeyond is how many operations are looked at beyond those that are about to run: a Release seldom comes later.
const lookBeyond = 64

// findDonor notes in r, which is about to begin, which input gives its memory to the output; 0 is none.
func (st *stream) findDonor(r *record) {
	r.donor = 0
	out := r.operands[0]
	if r.kernel.Code != device.Map || out.buf != nil || out.own.Handle != nil || r.writes != 1 {
		return
	}
	for i, s := range r.operands {
		if i > 0 && s != nil && s.heir != 0 && st.at(s.heir).isRelease() && r.isLastUser(s) && r.staysInPlace(s) {
			r.donor = uint8(i)
			return
		}
	}
}

// isLastUser reports whether all the scheduled readers of s, which is an input, are r.
func (r *record) isLastUser(s *Storage) bool {
	readers := s.readers
	for i, have := range r.operands {
		if have == s && r.writes>>i&1 == 0 {
			readers--
		}
	}
	return readers == 0
}

// staysInPlace reports whether r reads s, element by element, where the output will have its
// elements if it is given the memory of s.
func (r *record) staysInPlace(s *Storage) bool {
	if s.own.Bytes != r.operands[0].own.Bytes {
		return false
	}
	for i, have := range r.operands {
		switch {
		case have != s:
		case i == 0 || i > len(r.kernel.In):
			return false // that is no input
		case r.kernel.In[i-1].Size() != r.kernel.Out.Size() || r.off[i] != r.off[0] || r.args != nil && r.args.Strides[i] != nil:
			return false
		}
	}
	return true
}

// takeOver gives s, which an operation enqueued at pc is going to write, the memory of donor.
func (s *Storage) takeOver(donor *Storage, pc uintptr) {
	s.buf, s.block = donor.buf, donor.block
	donor.block = nil
	donor.leave()
	s.tookOver(pc)
}
