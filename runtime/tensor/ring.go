package tensor

import (
	"cmp"
	"math"
	"slices"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/wire"
	"github.com/asyncgen/asyncgen/runtime/op"
)

// AllReduce returns the sum of ts, tensors of one shape and element type, on each of their devices: result i is on
// the device of ts[i]. Tensors on one device get handles of the same result. AllReduce enqueues the work and does
// not wait.
//
// The bits of the sum depend on the order of ts, and not on their devices. Elements of the first half, in row-major
// order, are added up from ts[0] to the last tensor. Elements of the second half are added up from ts[len(ts)/2] to
// the last tensor, and then from ts[0] on. Tensors of less than 32 KiB are not halved: all of their elements are
// added up from ts[0] on. So a sum of eight tensors is the same on one device, on two, four and eight.
//
// The devices are a ring, in the order in which ts first name them. Each sum travels around the ring until it has
// the terms of all devices, and then on, to bring the result to every device. It travels in pieces, so that all
// links are busy at once. The second half of the tensor begins half a ring away from the first.
//
// If tensors on one device are neighbours in ts, each link carries 2 halves of a tensor with 2 devices, and 3 with
// 4 devices: no all-reduce by ring takes less. With more devices, a link carries at most 4 halves. The usual ring
// all-reduce carries 4(n-1)/n halves with n devices, but adds in an order that depends on n. On 4 devices,
// AllReduce also takes longer by one hop of a piece: sums begin at two devices only, so the others have nothing to
// send at first.
//
// Each addition of float16 or bfloat16 is rounded: convert first if that is too coarse.
//
// If one of ts fails or a device is lost, all results fail with that cause. AllReduce panics with a [*Mistake] if
// there are no tensors, if they differ in shape or type, or if they are bools. If one of ts is tracked, so are the
// results.
//
//asyncgen:api op
//go:noinline
func AllReduce(ts ...*Tensor) []*Tensor {
	mustAdd("AllReduce", ts)
	return reduceAll(nil, ts)
}

// mustAdd panics unless ts can be added up.
func mustAdd(name string, ts []*Tensor) {
	if len(ts) == 0 {
		wrong(name, op.MistakeNothing)
	}
	for _, t := range ts {
		if t == nil {
			wrong(name, op.MistakeNil)
		}
		t.mustLive(name)
		if t.dtype != ts[0].dtype {
			wrong(name, op.MistakeDTypes, ts[0], t)
		}
		if !slices.Equal(t.shape, ts[0].shape) {
			wrong(name, op.MistakeShapes, ts[0], t)
		}
	}
	if !op.Add.Types.Has(ts[0].dtype) {
		wrong(name, op.Unsupported(op.Add.Types), ts...)
	}
}

// reduceAll enqueues the sum of ts, and of those of the other ranks of job. job may be nil.
func reduceAll(job *wire.Job, ts []*Tensor) []*Tensor {
	r := newReduction(job, ts, -1)
	for r.advance() {
	}
	return r.results()
}

// A reduction is an AllReduce under way. Each advance moves all of its sums by one device.
//
// With a job, it is one over all ranks. Each rank has the terms and places of all, and enqueues, step by step, what the
// steps of all mean for itself: adding and copying between its own places, and messages where a sum comes from another
// rank or goes to one. Terms and places of a rank follow those of the rank before, and are like them.
type reduction struct {
	job     *wire.Job // nil: there is one rank
	shape   device.Shape
	dtype   device.DType
	size    int             // of a term, in elements
	devices []device.Device // of this rank
	on      []int           // by term of this rank: the index of its device
	onHosts bool            // sums travel over the hosts of the ranks, see overHosts
	terms   []*Tensor       // flattened, handles of its own; nil: on another rank
	places  []int           // by term: the index in ring of where it is added, called a place
	ring    []device.Device // the zero Device: of another rank
	here    int             // the first place of this rank
	each    int             // how many places each rank has
	to      int             // the only rank that gets the results; -1: all do
	sums    []*partialSum
	// By device of this rank: the flat result there, which holds all sums, one after the other. It is nil until the
	// first sum is put there; with one or two sums, or over hosts, until all of them are put there at once.
	wholes []*Tensor
	isOver bool
}

// A partialSum is a piece of the result that travels around the ring.
type partialSum struct {
	from, to int       // the elements that it is the sum of
	first    int       // the place of its first term
	terms    []*Tensor // those of this rank that are not added yet, on its host, if sums travel over hosts
	order    []int     // the terms that are not added yet, in the order of adding
	acc      *Tensor   // the sum so far; nil before the first term, when it is whole, and while it is on another rank
	home     []*Tensor // by place of this rank: the whole sum, if it is there; nil until it is whole
	there    *Tensor   // the whole sum on the device whose result join makes
	at       int       // the last place that the sum has come to; -1 before the first term
	left     int       // how many places that want the whole sum it has not come to
	beat     int       // in which it last moved, see advanceOn
}

// Constants of how a reduction is cut. The bits of results depend on halvedBytes, which decides whether there is a
// second half, and not on the others.
const (
	halvedBytes    = 32 << 10  // tensors with fewer bytes are not halved: one sum instead of two is half the commands
	startBytes     = 1 << 20   // what a link carries in the time that a copy takes to start: 20 µs, at 50 GB/s
	hostStartBytes = 320 << 10 // the same for a copy from or to the host, at 16 GB/s
)

// newReduction prepares the reduction of ts, at least one tensor, and of those of other ranks of job, which may be nil.
// The results are for one rank, or with -1 for all. It enqueues only contiguous copies of views that have gaps.
func newReduction(job *wire.Job, ts []*Tensor, to int) *reduction {
	r := &reduction{job: job, to: to, shape: ts[0].Shape(), dtype: ts[0].dtype, size: ts[0].size}
	for _, t := range ts {
		r.terms = append(r.terms, planned(op.Reshape, op.Attr{Shape: device.Shape{t.size}}, operands{t}, true))
		dev := t.storage.Device()
		i := r.indexOf(dev)
		if i < 0 {
			i = len(r.devices)
			r.devices = append(r.devices, dev)
		}
		r.devices[i] = r.devices[i].Within(dev)
		r.on = append(r.on, i)
	}
	mine := r.terms
	r.places, r.ring, r.each = r.on, r.devices, len(r.devices)
	if job != nil {
		r.overHosts()
		r.spread()
	}
	r.cutAll()
	if r.onHosts {
		for _, s := range r.inOrder(0) {
			for _, t := range mine {
				part := planned(op.Slice, op.Attr{From: s.from, To: s.to}, operands{t}, true)
				s.terms = append(s.terms, part.move(r.ring[r.here]))
				part.letGo()
			}
		}
	}
	return r
}

// indexOf returns the index of a device of this rank, or -1.
func (r *reduction) indexOf(dev device.Device) int {
	return slices.IndexFunc(r.devices, func(d device.Device) bool { return d.Unscoped() == dev.Unscoped() })
}

// overHosts has the hosts of all ranks add, if there is one term on each device. Messages are in a host's memory, and a
// sum would have to get to each device and back for one addition. And a device with a queue does nothing else once it
// has come to a copy of something that has not arrived. So it gets the results alone, see join. With several terms on
// a device, it would have to copy more than sums that come by.
func (r *reduction) overHosts() {
	if len(r.devices) < len(r.on) || r.job.Size() == 1 {
		return
	}
	r.onHosts = true
	r.places, r.ring, r.each = make([]int, len(r.on)), []device.Device{hostOf(r.devices[0])}, 1
}

// cutAll makes the sums: of one or of two halves, in pieces.
func (r *reduction) cutAll() {
	order := make([]int, len(r.terms))
	for i := range order {
		order[i] = i
	}
	if r.size*r.dtype.Size() < halvedBytes {
		r.cut(0, r.size, order)
		return
	}
	middle := len(order) / 2
	r.cut(0, r.size-r.size/2, order)
	r.cut(r.size-r.size/2, r.size, append(slices.Clone(order[middle:]), order[:middle]...))
}

// inOrder returns the sums of a reduction that travels over hosts, in the order in which they come to this rank.
// Those with as many steps to go are in the order of their elements. From 0 on, a sum comes to get a term, and from 1
// on to be a result.
func (r *reduction) inOrder(from int) []*partialSum {
	return slices.SortedStableFunc(slices.Values(r.sums), func(a, b *partialSum) int {
		return cmp.Compare(r.stepsFrom(a.first-from, r.here), r.stepsFrom(b.first-from, r.here))
	})
}

// stepsFrom is how many steps it takes from one place to another. The first one may be -1, the last place.
func (r *reduction) stepsFrom(from, to int) int { return (to - from + len(r.ring)) % len(r.ring) }

// spread puts the terms and places of this rank among those of all.
func (r *reduction) spread() {
	n, mine, places, ring := r.job.Size(), r.terms, r.places, r.ring
	r.terms, r.places, r.ring = make([]*Tensor, n*len(mine)), nil, make([]device.Device, n*len(ring))
	copy(r.terms[r.job.Rank()*len(mine):], mine)
	r.here = r.job.Rank() * r.each
	copy(r.ring[r.here:], ring)
	for rank := range n {
		for _, place := range places {
			r.places = append(r.places, rank*r.each+place)
		}
	}
}

// isHere reports whether a place is one of this rank.
func (r *reduction) isHere(place int) bool { return place >= r.here && place < r.here+r.each }

// pieces returns the best number of pieces for a half with the given number of bytes. It assumes that no other
// reduction is under way.
//
// With d devices and n pieces, a reduction takes the greater of two numbers of steps. If links are busy all the
// time, each carries (4-4/d)*n pieces, and begins d/2 steps late. If there are few pieces, the last one begins n-1
// steps after the first and takes 2(d-1) steps. A step takes as long as the bytes of a piece, plus the start of a
// copy.
func (r *reduction) pieces(bytes int) (best int) {
	d, start := float64(len(r.ring)), startBytes
	if r.onHosts {
		start = hostStartBytes
	}
	least := math.Inf(1)
	for n := 1; n == 1 || d > 1 && n <= bytes/(2*start); n++ {
		steps := max((4-4/d)*float64(n)+d/2, float64(n)+2*d-3)
		if takes := steps * (float64(bytes)/float64(n) + float64(start)); takes < least {
			best, least = n, takes
		}
	}
	return best
}

// cut makes sums of the elements in [from, to), in pieces. order is the order in which their terms are added.
func (r *reduction) cut(from, to int, order []int) {
	n := r.pieces((to - from) * r.dtype.Size())
	for i := range n {
		r.sums = append(r.sums, &partialSum{from: from + i*(to-from)/n, to: from + (i+1)*(to-from)/n, first: r.places[order[0]], order: order, at: -1, left: r.wanted()})
	}
}

// advance enqueues the next step of each sum. It reports whether the reduction was still under way.
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

// steps returns how many times advance moves sums before the reduction is over.
func (r *reduction) steps() (most int) {
	for _, s := range r.sums {
		n := s.left
		for i, term := range s.order {
			if i == 0 || r.places[term] != r.places[s.order[i-1]] {
				n++
			}
			if i == len(s.order)-1 && r.wants(r.places[term]) {
				n-- // where it becomes whole, it has come to one of those that are left
			}
		}
		most = max(most, n)
	}
	return most
}

// advanceOn moves those sums whose next stop is dev. The work of each device is divided into numbered beats, which
// begin at about the same time on all devices; beat is the latest one of dev. A sum that moved in the same beat
// stays, because its copy has not arrived yet. So each sum moves by one device in a beat, and while it travels a
// device has the work of a beat to do. All ranks have the same beats: what dev does, the device at the same place of
// each other rank is taken to do as well. Over hosts, the beats of the last device count: the others have had theirs.
func (r *reduction) advanceOn(dev device.Device, beat int) {
	if r.isOver {
		return
	}
	i := r.indexOf(dev)
	if i < 0 || r.onHosts && i < len(r.devices)-1 {
		return
	}
	for _, s := range r.sums {
		if s.left > 0 && s.beat < beat && (r.onHosts || r.next(s)%r.each == i) {
			s.beat = beat
			r.step(s)
		}
	}
	r.settle()
}

// wants reports whether the results are for a place, and wanted how many such places there are. They are neighbours.
func (r *reduction) wants(place int) bool { return r.to < 0 || place/r.each == r.to }

func (r *reduction) wanted() int {
	if r.to < 0 {
		return len(r.ring)
	}
	return r.each
}

// isWanted reports whether this rank gets the results.
func (r *reduction) isWanted() bool { return r.wants(r.here) }

// next returns the next stop of s, a place. Some are left.
func (r *reduction) next(s *partialSum) int {
	switch {
	case s.home == nil:
		return r.places[s.order[0]]
	case r.to < 0:
		return (s.at + 1) % len(r.ring)
	}
	return r.to*r.each + (s.at+1)%r.each
}

// step moves s to the device of its next term, and adds all consecutive terms that this device has. If s is whole,
// step copies it to the next device instead. A device computes in the order in which operations are enqueued, and
// waits when it comes to one that needs a copy. The operations enqueued between two steps keep it busy meanwhile.
func (r *reduction) step(s *partialSum) {
	if s.home != nil {
		next := r.next(s)
		s.home[next] = r.moved(s.home[s.at], s, next)
		if !r.wants(s.at) {
			s.home[s.at].letGo()
			s.home[s.at] = nil
		}
		s.at = next
		s.left--
		r.place(s)
		return
	}
	place := r.places[s.order[0]]
	if s.at >= 0 {
		before := s.acc
		s.acc = r.moved(before, s, place)
		if before != nil {
			before.letGo()
		}
	}
	s.at = place
	for len(s.order) > 0 && r.places[s.order[0]] == place {
		if r.isHere(place) {
			s.add(r.termOf(s))
		}
		s.order = s.order[1:]
	}
	if len(s.order) == 0 {
		s.home = make([]*Tensor, len(r.ring))
		s.home[place], s.acc = s.acc, nil
		if r.wants(place) {
			s.left--
			r.place(s)
		}
	}
}

// termOf returns the next term that is added to s, of this rank, where it is added.
func (r *reduction) termOf(s *partialSum) *Tensor {
	if !r.onHosts {
		return planned(op.Slice, op.Attr{From: s.from, To: s.to}, operands{r.terms[s.order[0]]}, true)
	}
	x := s.terms[0]
	s.terms = s.terms[1:]
	return x
}

// place puts s, which is whole, into the result of the device that it has come to. If there are many sums, those
// that have arrived need not wait for the last one.
func (r *reduction) place(s *partialSum) {
	if len(r.sums) <= 2 || !r.isHere(s.at) || r.onHosts {
		return // join needs only one command for all
	}
	if r.wholes == nil {
		r.wholes = make([]*Tensor, len(r.devices))
	}
	whole, x := &r.wholes[s.at-r.here], s.home[s.at]
	isFirst := *whole == nil
	if isFirst {
		*whole = newResult(x.storage.Device(), x.dtype, device.Shape{r.size}, x.node != nil)
	}
	put(op.Concat, *whole, x, 0, s.from, 1, !isFirst)
}

// add adds x to s, and lets go of it.
func (s *partialSum) add(x *Tensor) {
	if s.acc == nil {
		s.acc = x
		return
	}
	sum := mapped(op.Add, [2]float64{}, operands{s.acc, x}, true)
	letGo(s.acc, x)
	s.acc = sum
}

// moved returns x, which s has come to at s.at, on the device at the given place. On a rank that has neither of the
// places nothing happens. x is nil if it is on another rank, and so is the result.
func (r *reduction) moved(x *Tensor, s *partialSum, place int) *Tensor {
	from, to := s.at/r.each, place/r.each
	switch {
	case x != nil && r.isHere(place):
		from := x.storage.Device()
		return planned(op.To, op.Attr{Device: r.ring[place].Within(from), Origin: from}, operands{x}, true)
	case x != nil:
		x.send(r.job, to, messageOf(ofSum, s.from, s.to))
	case r.isHere(place):
		return receive(r.job, from, device.Shape{s.to - s.from}, r.dtype, r.ring[place], messageOf(ofSum, s.from, s.to))
	}
	return nil
}

// settle lets go of the terms as soon as all sums have come to all places, and makes the results, see join.
func (r *reduction) settle() {
	for _, s := range r.sums {
		if s.left > 0 {
			return
		}
	}
	r.isOver = true
	letGo(r.mine()...)
	r.terms = nil
	r.join()
}

// join makes the result of each device from the sums, which are over. From the host, it copies them to all devices of
// this rank, where all that is enqueued later waits for them.
func (r *reduction) join() {
	placed := r.wholes
	r.wholes = make([]*Tensor, len(r.devices))
	for i, dev := range r.devices {
		if !r.isWanted() {
			break
		}
		var parts []*Tensor
		for _, s := range r.inOrder(1) {
			if r.onHosts {
				s.there = s.home[r.here].move(dev)
			} else {
				s.there = s.home[r.here+i]
			}
		}
		for _, s := range r.sums {
			parts = append(parts, s.there)
		}
		flat := parts[0]
		switch {
		case placed != nil:
			flat = placed[i]
			recordParts(flat, 0, parts)
			letGo(parts...)
		case len(parts) > 1:
			flat = concat("AllReduce", 0, parts)
			letGo(parts...)
		}
		r.wholes[i] = planned(op.Reshape, op.Attr{Shape: r.shape}, operands{flat}, true)
		flat.letGo()
	}
	if r.onHosts && r.isWanted() {
		for _, s := range r.sums {
			s.home[r.here].letGo()
		}
	}
	r.sums = nil
}

// mine lists the terms of this rank.
func (r *reduction) mine() []*Tensor {
	if r.job == nil {
		return r.terms
	}
	n := len(r.terms) / r.job.Size()
	return r.terms[r.job.Rank()*n:][:n]
}

// results returns a handle of the result for each term of this rank, and lets go of its own. The reduction is over.
func (r *reduction) results() []*Tensor {
	results := make([]*Tensor, len(r.on))
	for i, dev := range r.on {
		results[i] = r.wholes[dev].another()
	}
	letGo(r.wholes...)
	r.wholes = nil
	return results
}
