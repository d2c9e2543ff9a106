package tensor

import (
	"fmt"
	"slices"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/runtime/internal/tape"
	"github.com/asyncgen/asyncgen/runtime/op"
)

// A Reducer adds up the gradients of copies of a model. Each copy is on a device of its own and computes some of the
// shards that a batch is cut into.
//
// While [Reducer.Shard] runs, [Param.Value] gives values that belong to a shard. When Backward goes through what was
// computed from them, [AllReduce] adds the gradients of all shards in the order of the shards, and the sum is added to
// the gradient of each copy's parameter. So all copies get the same bits. These depend on the shards, and not on the
// number of devices.
//
// A gradient begins to travel as soon as all shards of the loss have it, while Backward goes on with the layers
// before. Backward goes through all shards side by side. Small gradients travel together. [Grad] knows nothing of
// shards.
//
// One goroutine at a time may use a Reducer. nn.DataParallel is made of it.
type Reducer struct {
	copies [][]*Param // by device
	shards int
	bucket int        // in bytes
	seen   [][]uint64 // how often parameters had been set at the last InStep
	sweep  *sweep     // the Backward under way, or nil
}

// NewReducer returns a Reducer for the given number of shards. Each of the copies is a model's list of parameters, in
// the same order. shards must be a multiple of the number of copies.
//
// Gradients with at least bucket bytes travel alone. Smaller ones wait for each other until they have as many bytes
// together, or until Backward ends. Bits depend on that, as AllReduce halves what travels. A bucket of 0 is 1 MiB.
//
// NewReducer panics if the lists differ in length, or if copies would have different numbers of shards. Backward
// panics with a [*Mistake] if the gradients of a parameter differ in shape or type between the copies.
//
//asyncgen:api pure
func NewReducer(shards, bucket int, copies ...[]*Param) *Reducer {
	if bucket <= 0 {
		bucket = defaultBucket
	}
	if len(copies) == 0 || shards < 1 || shards%len(copies) != 0 {
		panic(&Mistake{Op: "NewReducer", Text: fmt.Sprintf("%d shards can't be shared by %d copies", shards, len(copies))})
	}
	for _, c := range copies {
		if len(c) != len(copies[0]) {
			panic(&Mistake{Op: "NewReducer", Text: fmt.Sprintf("copies with %d and %d parameters", len(copies[0]), len(c))})
		}
	}
	r := &Reducer{copies: copies, shards: shards, bucket: bucket, seen: make([][]uint64, len(copies))}
	for c := range copies {
		r.seen[c] = make([]uint64, len(copies[c]))
	}
	r.InStep()
	return r
}

// InStep reports whether each parameter has been set as often in one copy as in the others since the last InStep, so
// that no copy was forgotten. If not, param is the first parameter that differs.
//
//asyncgen:api value
func (r *Reducer) InStep() (param int, ok bool) {
	param, ok = 0, true
	for j := len(r.copies[0]) - 1; j >= 0; j-- {
		var first uint64
		for c := range r.copies {
			now := r.copies[c][j].sets
			times := now - r.seen[c][j]
			r.seen[c][j] = now
			if c == 0 {
				first = times
			}
			if times != first {
				param, ok = j, false
			}
		}
	}
	return param, ok
}

// Shard calls f, which computes shard i with copy i*copies/shards. The gradients of everything that f computes from
// the parameters of that copy count for the shard.
//
//asyncgen:api call 1 once
func (r *Reducer) Shard(i int, f func()) {
	if i < 0 || i >= r.shards {
		panic(&Mistake{Op: "Reducer.Shard", Text: fmt.Sprintf("%s: %d of %d", op.MistakeRange, i, r.shards)})
	}
	params := r.copies[i*len(r.copies)/r.shards]
	defer func() {
		for _, p := range params {
			p.enter(nil)
		}
	}()
	for j, p := range params {
		p.enter(shardLeaf{r, j, i})
	}
	f()
}

// enter lets gradients of p arrive at l from now on, or at p itself if l is nil. What was computed
// before is not affected.
func (p *Param) enter(l tape.Leaf) {
	p.shard = l
	if p.value != nil && !p.frozen {
		p.hold(p.value)
	}
}

// A shardLeaf is where the gradient of one parameter that a shard has arrives.
type shardLeaf struct {
	r     *Reducer
	param int
	shard int
}

var _ tape.Eager = shardLeaf{}

// Expect implements tape.Eager.
func (l shardLeaf) Expect() {
	if l.r.sweep == nil {
		l.r.sweep = newSweep(l.r)
	}
	l.r.sweep.expect(l.param)
}

// Share implements tape.Eager.
func (l shardLeaf) Share() { l.r.sweep.beatOf(l.param, l.shard) }

// Accumulate implements tape.Leaf.
func (l shardLeaf) Accumulate(g op.Value) {
	t, _ := g.(*Tensor)
	l.r.sweep.arrive(l.param, l.shard, t)
}

// Finish implements tape.Eager.
func (l shardLeaf) Finish() {
	if s := l.r.sweep; s != nil {
		l.r.sweep = nil
		s.finish()
	}
}

// A sweep is one Backward through shards.
type sweep struct {
	r       *Reducer
	grads   [][]*Tensor // by parameter and shard; nil: there is none
	pending []int       // by parameter: nodes that Backward has not come to
	open    []int       // the parameters of small gradients that wait for company
	bytes   int         // of a shard's gradients of these
	moving  []*transport
	paces   map[device.Device]*pace
}

// A pace is how far a device has come with a sweep: how much of gradients it has been told to
// compute since the last beat, and how many beats there were.
type pace struct{ bytes, beats int }

// A transport is the reduction of some gradients, which travel as one.
type transport struct {
	*reduction
	params []int
	shapes []device.Shape
}

// defaultBucket is large enough that the bytes of a copy take as long as its start: 20 µs, at 50 GB/s.
const defaultBucket = 1 << 20

func newSweep(r *Reducer) *sweep {
	s := &sweep{r: r, grads: make([][]*Tensor, len(r.copies[0])), pending: make([]int, len(r.copies[0])), paces: map[device.Device]*pace{}}
	for j := range s.grads {
		s.grads[j] = make([]*Tensor, r.shards)
	}
	return s
}

func (s *sweep) expect(param int) { s.pending[param]++ }

// beatOf notes that a shard's gradient of a parameter has been enqueued. With each bucket of these,
// its device has a beat: the sums under way that come to it next are added there, after what has
// been enqueued. So they get around the ring in fewer layers than there are devices, if each of
// these has several shards.
func (s *sweep) beatOf(param, shard int) {
	v := s.r.copies[shard*len(s.r.copies)/s.r.shards][param].value
	dev := v.storage.Device()
	p := s.paces[dev.Unscoped()]
	if p == nil {
		p = &pace{}
		s.paces[dev.Unscoped()] = p
	}
	if p.bytes += v.size * v.dtype.Size(); p.bytes < s.r.bucket {
		return
	}
	p.bytes = 0
	p.beats++
	for _, t := range s.moving {
		t.advanceOn(dev, p.beats)
	}
	s.deliverArrived()
}

// arrive takes up a gradient; nil is none.
func (s *sweep) arrive(param, shard int, g *Tensor) {
	if g != nil {
		at := &s.grads[param][shard]
		if before := *at; before == nil {
			*at = g.another()
		} else {
			*at = mapped(op.Add, [2]float64{}, operands{before, g}, false)
			before.letGo()
		}
	}
	s.pending[param]--
	if s.pending[param] == 0 {
		s.complete(param)
	}
}

// complete sends the gradients of a parameter on their way, or lets them wait for others.
func (s *sweep) complete(param int) {
	g := s.first(param)
	if g == nil {
		return // no shard has one
	}
	s.mustBeAlike(param)
	bytes := g.size * g.dtype.Size()
	if bytes >= s.r.bucket {
		s.send([]int{param})
		return
	}
	if len(s.open) > 0 && !s.alike(s.open[0], param) {
		s.sendOpen()
	}
	s.open = append(s.open, param)
	if s.bytes += bytes; s.bytes >= s.r.bucket {
		s.sendOpen()
	}
}

// first returns the gradient of the first shard that has one, or nil.
func (s *sweep) first(param int) *Tensor {
	for _, g := range s.grads[param] {
		if g != nil {
			return g
		}
	}
	return nil
}

// mustBeAlike panics if shards have gradients of other shapes or types of a parameter, as the
// copies have parameters that are not copies of each other. That ends the sweep.
func (s *sweep) mustBeAlike(param int) {
	first := s.first(param)
	for _, g := range s.grads[param] {
		if g == nil {
			continue
		}
		switch {
		case g.dtype != first.dtype:
			s.r.sweep = nil
			wrong("Backward", op.MistakeDTypes, first, g)
		case !slices.Equal(g.shape, first.shape):
			s.r.sweep = nil
			wrong("Backward", op.MistakeShapes, first, g)
		}
	}
}

// alike reports whether the same shards have gradients of both parameters, of one type.
func (s *sweep) alike(a, b int) bool {
	for i, g := range s.grads[a] {
		h := s.grads[b][i]
		if (g == nil) != (h == nil) || g != nil && g.dtype != h.dtype {
			return false
		}
	}
	return true
}

// sendOpen sends those on their way that have waited for company.
func (s *sweep) sendOpen() {
	if len(s.open) > 0 {
		params := s.open
		s.open, s.bytes = nil, 0
		s.send(params)
	}
}

// send sends the gradients of some parameters on their way.
func (s *sweep) send(params []int) {
	t := &transport{params: params}
	for _, j := range params {
		t.shapes = append(t.shapes, s.first(j).shape)
	}
	var terms []*Tensor
	for i, g := range s.grads[params[0]] {
		if g != nil {
			terms = append(terms, s.together(params, i))
		}
	}
	t.reduction = newReduction(terms)
	letGo(terms...)
	t.reduction.advance()
	for _, sum := range t.sums {
		sum.beat = s.latestBeat()
	}
	s.moving = append(s.moving, t)
}

// together returns what a shard has of the gradients of some parameters, one after the other, and lets go of them.
func (s *sweep) together(params []int, shard int) *Tensor {
	parts := make([]*Tensor, len(params))
	for i, j := range params {
		g := s.grads[j][shard]
		s.grads[j][shard] = nil
		parts[i] = g
		if len(params) > 1 {
			parts[i] = planned(op.Reshape, op.Attr{Shape: device.Shape{g.size}}, operands{g}, false)
			g.letGo()
		}
	}
	if len(parts) == 1 {
		return parts[0]
	}
	defer letGo(parts...)
	return concat("Backward", 0, parts)
}

// advance lets all that is under way go on by one step. It reports whether something is left.
func (s *sweep) advance() bool {
	for _, t := range s.moving {
		t.reduction.advance()
	}
	return s.deliverArrived()
}

// latestBeat is that of the device that has come farthest.
func (s *sweep) latestBeat() (beat int) {
	for _, p := range s.paces {
		beat = max(beat, p.beats)
	}
	return beat
}

// deliverArrived delivers what has arrived. It reports whether something is left.
func (s *sweep) deliverArrived() bool {
	left := s.moving[:0]
	for _, t := range s.moving {
		if !t.isOver {
			left = append(left, t)
		} else {
			s.deliver(t)
		}
	}
	clear(s.moving[len(left):])
	s.moving = left
	return len(left) > 0
}

// finish waits for nothing, but enqueues all that is left.
func (s *sweep) finish() {
	s.sendOpen()
	for s.advance() {
	}
}

// deliver gives the copies what has arrived.
func (s *sweep) deliver(t *transport) {
	for _, params := range s.r.copies {
		if params[t.params[0]].value == nil {
			continue
		}
		whole := t.on(params[t.params[0]].value.storage.Device())
		from := 0
		for i, j := range t.params {
			g := whole
			if len(t.params) > 1 {
				size := t.shapes[i].Size()
				part := planned(op.Slice, op.Attr{From: from, To: from + size}, operands{whole}, false)
				g = planned(op.Reshape, op.Attr{Shape: t.shapes[i]}, operands{part}, false)
				part.letGo()
				from += size
			}
			params[j].addGrad(g)
			if g != whole {
				g.letGo()
			}
		}
		whole.letGo()
	}
	letGo(t.wholes...)
}

// on returns the whole on a device, which need not be one that had a part of it.
func (t *transport) on(dev device.Device) *Tensor {
	for place, d := range t.ring {
		if d.Unscoped() == dev.Unscoped() {
			return t.wholes[place].another()
		}
	}
	return t.wholes[0].move(dev)
}
