package tensor

import (
	"math"
	"slices"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/runtime/op"
)

// AllReduce returns the sum of ts, tensors of one shape and element type on any devices, on each of
// their devices: result i is on that of ts[i]. Tensors on one device get handles of one result. It
// enqueues the work and does not wait.
//
// The bits of the sum depend on ts in their order, and not on where they are: elements of the first
// half, in row-major order, are added from ts[0] on, one after the other; those of the second half
// from ts[len(ts)/2] on, around the end. Tensors of less than 32 KiB are not halved: all of their
// elements are added from ts[0] on. So a sum of eight tensors is the same on one device, on two,
// four and eight.
//
// The devices are a ring, in the order in which ts name them first. Each sum travels around it, to
// collect what each device has to add, and then on, to tell the result; it does so in pieces, so
// that the links are busy at once, and the second half of the tensor begins half a ring away from
// the first. Where neighbours in ts are on one device, a link carries 2 halves if there are 2
// devices, and 3 if there are 4: no all-reduce by ring takes less. With more it carries 4 at most,
// where one of n devices that adds in an order of its own, which depends on n, takes 4(n-1)/n. That
// it begins at two devices alone costs a piece's way more on 4 devices, as the others have nothing
// to send at first.
//
// If one of the tensors has failed, or a device is lost, so have all results, with that cause.
// AllReduce panics with a [*Mistake] if there are no tensors, if they differ in shape or type, and
// on bools. If they are tracked, so are the results.
//
//asyncgen:api op
//go:noinline
func AllReduce(ts ...*Tensor) []*Tensor {
	if len(ts) == 0 {
		wrong("AllReduce", op.MistakeNothing)
	}
	for _, t := range ts {
		if t == nil {
			wrong("AllReduce", op.MistakeNil)
		}
		t.mustLive("AllReduce")
		if t.dtype != ts[0].dtype {
			wrong("AllReduce", op.MistakeDTypes, ts[0], t)
		}
		if !slices.Equal(t.shape, ts[0].shape) {
			wrong("AllReduce", op.MistakeShapes, ts[0], t)
		}
	}
	if !op.Add.Types.Has(ts[0].dtype) {
		wrong("AllReduce", op.MistakeType+" (it takes "+op.Add.Types.String()+")", ts...)
	}
	r := newReduction(ts)
	for r.advance() {
	}
	return r.results()
}

// A reduction is an AllReduce under way. Each advance lets all its sums go on by one device.
type reduction struct {
	shape  device.Shape
	terms  []*Tensor // flat, of our own
	places []int     // by term: the place of its device in ring
	ring   []device.Device
	sums   []*partialSum
	// by place in the ring: all sums, one after the other; nil: none is there, or all are to be put
	// there at once
	wholes []*Tensor
	isOver bool
}

// A partialSum is a piece of the result that travels around the ring.
type partialSum struct {
	from, to int   // elements
	order    []int // of the terms; those that are not added yet
	acc      *Tensor
	home     []*Tensor // by place: the whole sum, where it has got to; nil: it is not whole yet
	at       int       // the place that it has got to last
	left     int       // how many it has not got to
	beat     int       // of the device where it has been last, see advanceOn
}

// Constants of how a reduction is cut. The first is part of what results are, as it decides what the second half is.
const (
	halvedBytes = 32 << 10 // tensors with fewer bytes are not halved: one sum instead of two is half the commands
	startBytes  = 1 << 20  // a copy takes as long for its own sake, 20 µs, as for so many at 50 GB/s
)

// newReduction prepares the reduction of ts, of which there is at least one. It enqueues nothing but copies of views
// that have gaps.
func newReduction(ts []*Tensor) *reduction {
	r := &reduction{shape: ts[0].Shape(), terms: make([]*Tensor, len(ts)), places: make([]int, len(ts))}
	for i, t := range ts {
		r.terms[i] = planned(op.Reshape, op.Attr{Shape: device.Shape{t.size}}, operands{t}, true)
		dev := t.storage.Device()
		place := slices.IndexFunc(r.ring, func(d device.Device) bool { return d.Unscoped() == dev.Unscoped() })
		if place < 0 {
			place = len(r.ring)
			r.ring = append(r.ring, dev)
		}
		r.ring[place] = r.ring[place].Within(dev)
		r.places[i] = place
	}
	size, bytes := ts[0].size, ts[0].size*ts[0].dtype.Size()
	order := make([]int, len(ts))
	for i := range order {
		order[i] = i
	}
	if bytes < halvedBytes {
		r.cut(0, size, order)
		return r
	}
	middle := len(order) / 2
	r.cut(0, size-size/2, order)
	r.cut(size-size/2, size, append(slices.Clone(order[middle:]), order[:middle]...))
	return r
}

// pieces returns the best number of sums for a half with the given number of bytes. It assumes that no other reduction
// is under way. With all links busy, each of them carries 4-4/n pieces for each of n devices, and starts later by the
// time of n/2 pieces. With few pieces, the last one is 2(n-1) steps behind the first. A step takes as long as the
// bytes of a piece, plus the start of a copy.
func (r *reduction) pieces(bytes int) (best int) {
	d := float64(len(r.ring))
	least := math.Inf(1)
	for n := 1; n == 1 || d > 1 && n <= bytes/(2*startBytes); n++ {
		steps := max((4-4/d)*float64(n)+d/2, float64(n)+2*d-3)
		if takes := steps * (float64(bytes)/float64(n) + startBytes); takes < least {
			best, least = n, takes
		}
	}
	return best
}

// cut makes the sums of the elements from a number to below another, whose terms are added in the given order.
func (r *reduction) cut(from, to int, order []int) {
	n := r.pieces((to - from) * r.terms[0].dtype.Size())
	for i := range n {
		r.sums = append(r.sums, &partialSum{from: from + i*(to-from)/n, to: from + (i+1)*(to-from)/n, order: order, left: len(r.ring)})
	}
}

// advance enqueues what comes next for each sum. It reports whether there was something.
func (r *reduction) advance() bool {
	if r.isOver {
		return false
	}
	for _, s := range r.sums {
		if s.left > 0 {
			r.step(s)
		}
	}
	r.settle()
	return true
}

// settle assembles the results if all sums have arrived everywhere.
func (r *reduction) settle() {
	for _, s := range r.sums {
		if s.left > 0 {
			return
		}
	}
	r.assemble()
}

// advanceOn lets the sums go on that come to dev next. The work of a device is divided into beats, which are numbered
// and begin at about the same time on all devices; beat is the number of the last one on dev. A sum that was on
// another device in the same beat has not arrived yet and stays. So each sum goes on by one device in each beat, and a
// device has the work of a beat to do while sums travel to it.
func (r *reduction) advanceOn(dev device.Device, beat int) {
	if r.isOver {
		return
	}
	for _, s := range r.sums {
		if s.left > 0 && s.beat < beat && r.ring[r.next(s)].Unscoped() == dev.Unscoped() {
			s.beat = beat
			r.step(s)
		}
	}
	r.settle()
}

// next returns the place that s comes to next, among those that are left.
func (r *reduction) next(s *partialSum) int {
	if s.home != nil {
		return (s.at + 1) % len(r.ring)
	}
	return r.places[s.order[0]]
}

// step moves s to the device of its next term, and adds all terms that the device has for it. If s is whole, it moves
// the sum on to the next device instead. A device computes in the order of enqueueing, so it waits when it comes to an
// operation that needs a copy; what was enqueued between two steps is what it does meanwhile.
func (r *reduction) step(s *partialSum) {
	if s.home != nil {
		next := (s.at + 1) % len(r.ring)
		s.home[next] = r.moved(s.home[s.at], next)
		s.at = next
		s.left--
		r.place(s)
		return
	}
	place := r.places[s.order[0]]
	if s.acc != nil {
		before := s.acc
		s.acc = r.moved(before, place)
		before.letGo()
	}
	for len(s.order) > 0 && r.places[s.order[0]] == place {
		s.add(planned(op.Slice, op.Attr{From: s.from, To: s.to}, operands{r.terms[s.order[0]]}, true))
		s.order = s.order[1:]
	}
	if len(s.order) == 0 {
		s.home = make([]*Tensor, len(r.ring))
		s.home[place], s.acc, s.at = s.acc, nil, place
		s.left--
		r.place(s)
	}
}

// place puts s, which is whole, into the result of the device that it has got to, if it is one of
// many: those that are there need not wait for the last.
func (r *reduction) place(s *partialSum) {
	if len(r.sums) <= 2 {
		return // one command for both is less work
	}
	if r.wholes == nil {
		r.wholes = make([]*Tensor, len(r.ring))
	}
	x, isFirst := s.home[s.at], r.wholes[s.at] == nil
	if isFirst {
		r.wholes[s.at] = newResult(x.storage.Device(), x.dtype, device.Shape{r.terms[0].size}, x.node != nil)
	}
	put(op.Concat, r.wholes[s.at], x, 0, s.from, !isFirst)
}

// add adds x, which is for s alone.
func (s *partialSum) add(x *Tensor) {
	if s.acc == nil {
		s.acc = x
		return
	}
	sum := mapped(op.Add, [2]float64{}, operands{s.acc, x}, true)
	letGo(s.acc, x)
	s.acc = sum
}

// moved returns x on the device at a place.
func (r *reduction) moved(x *Tensor, place int) *Tensor {
	from := x.storage.Device()
	return planned(op.To, op.Attr{Device: r.ring[place].Within(from), Origin: from}, operands{x}, true)
}

// assemble puts the sums together on each device, and lets go of all else.
func (r *reduction) assemble() {
	r.isOver = true
	placed := r.wholes
	r.wholes = make([]*Tensor, len(r.ring))
	for place := range r.ring {
		parts := make([]*Tensor, len(r.sums))
		for i, s := range r.sums {
			parts[i] = s.home[place]
		}
		flat := parts[0]
		switch {
		case placed != nil:
			flat = placed[place]
			recordParts(flat, 0, parts)
			letGo(parts...)
		case len(parts) > 1:
			flat = concat("AllReduce", 0, parts)
			letGo(parts...)
		}
		r.wholes[place] = planned(op.Reshape, op.Attr{Shape: r.shape}, operands{flat}, true)
		flat.letGo()
	}
	letGo(r.terms...)
	r.terms, r.sums = nil, nil
}

// results returns what has become of each term, and lets go of the rest. The reduction has come to its end.
func (r *reduction) results() []*Tensor {
	results := make([]*Tensor, len(r.places))
	for i, place := range r.places {
		results[i] = r.wholes[place].another()
	}
	letGo(r.wholes...)
	r.wholes = nil
	return results
}
