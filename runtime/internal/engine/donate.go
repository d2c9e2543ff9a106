package engine

import "github.com/asyncgen/asyncgen/device"

// An operation that computes each element of its result from the elements at the same place of its
// inputs can write the result over one of the inputs (see device.Map): that input donates its
// memory. A chain of such operations takes the memory of one result, and finds it in the caches.
//
// Donation never guesses. A Release means that the input has no holder left: no handle, no cell, no
// gradient, nothing that an exit may go back to. So an input is a donor if two things hold when the
// operation is about to begin, or to be handed to a device with a queue: its Release was enqueued,
// and no other unfinished operation (for a queue: none not yet handed over) before the Release uses
// it. The operation may still fail or be discarded with its guess: nobody looks at the input any
// more. The Release then finds nothing to give back.

// lookBeyond is how many operations are scheduled beyond those that are about to run, to find their
// Releases: a Release seldom comes later.
const lookBeyond = 64

// findDonor sets r.donor, for r that is about to begin: the input that gives its memory to the
// output, or 0.
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

// isLastUser reports whether every scheduled read of s, which is an input of r, is one by r.
func (r *record) isLastUser(s *Storage) bool {
	// r itself may read s more than once, as x*x does.
	readers := s.readers
	for i, have := range r.operands {
		if have == s && r.writes>>i&1 == 0 {
			readers--
		}
	}
	return readers == 0
}

// staysInPlace reports whether r may write its output over s: each element of the output would lie
// exactly where r reads the elements of s that it is computed from.
func (r *record) staysInPlace(s *Storage) bool {
	if s.own.Bytes != r.operands[0].own.Bytes {
		return false
	}
	for i, have := range r.operands {
		switch {
		case have != s:
		case i == 0 || i > len(r.kernel.In):
			return false // the operand is no input
		case r.kernel.In[i-1].Size() != r.kernel.Out.Size() || r.off[i] != r.off[0] || r.args != nil && r.args.Strides[i] != nil:
			return false
		}
	}
	return true
}

// takeOver gives the memory of donor to s, which an operation enqueued at pc is going to write.
func (s *Storage) takeOver(donor *Storage, pc uintptr) {
	s.buf, s.block = donor.buf, donor.block
	donor.block = nil
	donor.leave()
	s.tookOver(pc)
}
