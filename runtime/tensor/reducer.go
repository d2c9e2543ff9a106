package tensor

import (
	"fmt"
	"slices"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/wire"
	"github.com/asyncgen/asyncgen/runtime/internal/tape"
	"github.com/asyncgen/asyncgen/runtime/op"
)

// A Reducer adds up the gradients of copies of a model. Each copy is on a device of its own and computes some of the
// shards that a batch is cut into.
//
// While [Reducer.Shard] runs, [Param.Value] gives values that belong to a shard. Backward then adds up the
// gradients of all shards, in the order of the shards, with [AllReduce]. It adds the sum to the gradient of each
// copy's parameter. So all copies get the same bits. These depend on the shards, and not on the number of devices.
//
// A gradient begins to travel as soon as all shards of the loss have it, while Backward goes on with earlier
// layers. Backward goes through all shards side by side. Small gradients travel together. [Grad] ignores shards.
//
// One goroutine at a time may use a Reducer. nn.DataParallel is built on it.
type Reducer struct {
	job    *wire.Job  // nil: there is one rank
	copies [][]*Param // by device
	shards int        // of this rank
	bucket int        // in bytes, see NewReducer
	seen   [][]uint64 // by copy and parameter: how often it had been set at the last InStep
	sweep  *sweep     // the Backward under way, or nil

	// Of Own:
	owns      []*owned // by parameter; nil: all ranks own all
	ownsGrads bool
	load      []int // by rank: the bytes of its parameters
	groups    int   // how many lists of parameters have been sent
}

// NewReducer returns a Reducer for the given number of shards. Each of the copies is a model's list of parameters, in
// the same order. shards must be a multiple of the number of copies.
//
// Gradients with at least bucket bytes travel alone. Smaller ones wait until they have that many bytes together, or
// until Backward ends. The bits of the sums depend on bucket, because AllReduce halves what travels. A bucket of 0
// means 1 MiB.
//
// NewReducer panics if the lists differ in length, or if copies would have different numbers of shards. Backward
// panics with a [*Mistake] if the gradients of a parameter differ in shape or type between the copies.
//
//asyncgen:api pure
func NewReducer(shards, bucket int, copies ...[]*Param) *Reducer {
	return NewReducerOver(nil, shards, bucket, copies...)
}

// NewReducerOver returns a Reducer that adds up the gradients of all ranks of a job, see [AllReduceOver]. Each
// rank has as many copies and shards. The sums are those of one rank that has all shards, those of rank 0 first.
// Each parameter gets a gradient of each shard or of none: Backward panics with a [*Mistake] otherwise, because
// the other ranks would not know. job may be nil.
//
//asyncgen:api pure
func NewReducerOver(job *wire.Job, shards, bucket int, copies ...[]*Param) *Reducer {
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
	r := &Reducer{job: job, copies: copies, shards: shards, bucket: bucket, seen: make([][]uint64, len(copies))}
	for c := range copies {
		r.seen[c] = make([]uint64, len(copies[c]))
	}
	for j, first := range copies[0] {
		o := &owned{first: first}
		for _, c := range copies {
			c[j].owned = o
		}
	}
	r.InStep()
	return r
}

// InStep reports whether, since the last InStep, each parameter has been set equally often in all copies. If not,
// some copy was forgotten, and param is the first parameter that differs.
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

// Shard calls f, which computes shard i of this rank with copy i*n/shards, where n is the number of copies. The
// gradients of everything that f computes from the parameters of that copy count for the shard.
//
//asyncgen:api call 1 once
func (r *Reducer) Shard(i int, f func()) {
	refuseCapture("Shard of a Reducer")
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

// enter makes l the leaf of p: the gradients of everything computed from p's values from now on go to l, or to p
// itself if l is nil.
func (p *Param) enter(l tape.Leaf) {
	p.shard = l
	if p.value != nil && !p.frozen {
		p.hold(p.value)
	}
}

// A shardLeaf receives one shard's gradient of one parameter.
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
func (l shardLeaf) Finish(b tape.Builder) {
	if s := l.r.sweep; s != nil {
		l.r.sweep = nil
		s.finish(b.(*builder).each)
	}
}

// A sweep is one Backward that goes through shards.
type sweep struct {
	r       *Reducer
	grads   [][]*Tensor             // by parameter and shard; nil if there is none (yet)
	pending []int                   // by parameter: how many nodes still await their gradient
	open    []int                   // parameters with small gradients that wait to travel together
	bytes   int                     // of one shard's gradients of the open parameters
	moving  []*transport            // under way
	ready   [][]int                 // parameters whose gradients were delivered together, for BackwardEach
	paces   map[device.Device]*pace // by unscoped device
}

// A pace says how much of a sweep has been enqueued on a device: the bytes of gradients since the last beat, and
// the number of beats.
type pace struct{ bytes, beats int }

// A transport is one reduction, of the gradients of some parameters that travel together.
type transport struct {
	*reduction
	params []int
	shapes []device.Shape
}

// defaultBucket is so large that the bytes of a copy take as long as its start: 20 µs, at 50 GB/s.
const defaultBucket = 1 << 20

func newSweep(r *Reducer) *sweep {
	s := &sweep{r: r, grads: make([][]*Tensor, len(r.copies[0])), pending: make([]int, len(r.copies[0])), paces: map[device.Device]*pace{}}
	for j := range s.grads {
		s.grads[j] = make([]*Tensor, r.shards)
	}
	return s
}

// expect counts a node of a parameter in the graph; arrive is called for each.
func (s *sweep) expect(param int) { s.pending[param]++ }

// beatOf notes that the gradient of a parameter for a shard has been enqueued. Once a bucket of bytes
// has come together on the shard's device, the device has a beat: it adds its terms to the sums that
// travel to it next, behind the operations enqueued so far. A device with several shards has several
// beats for each layer, so sums get around the ring within fewer layers than there are devices.
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

// arrive adds g, the gradient of one node, to the gradient of a parameter for a shard. g may be nil.
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

// complete sends the gradients of a parameter on their way, or adds them to the open ones if they are small.
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

// mustBeAlike panics if the gradients of a parameter differ in shape or type between shards. This happens if the
// models are not copies of each other. It ends the sweep.
func (s *sweep) mustBeAlike(param int) {
	first := s.first(param)
	for _, g := range s.grads[param] {
		if g == nil && s.r.job != nil {
			s.r.sweep = nil
			wrong("Backward", missingShard)
		}
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

// missingShard is the Mistake of a Backward that reaches some of the shards of a rank.
const missingShard = "the loss does not depend on all shards, and the other ranks of the job can't know on which: use the whole result"

// alike reports whether the same shards have gradients of both parameters, with the same element types.
func (s *sweep) alike(a, b int) bool {
	for i, g := range s.grads[a] {
		h := s.grads[b][i]
		if (g == nil) != (h == nil) || g != nil && g.dtype != h.dtype {
			return false
		}
	}
	return true
}

// sendOpen sends the open gradients on their way, if there are any.
func (s *sweep) sendOpen() {
	if len(s.open) > 0 {
		params := s.open
		s.open, s.bytes = nil, 0
		s.send(params)
	}
}

// send begins the reduction of the gradients of some parameters.
func (s *sweep) send(params []int) {
	if s.r.job != nil {
		s.r.job.Agree(fmt.Sprint("gradients ", params))
	}
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
	t.reduction = newReduction(s.r.job, terms, s.r.choose(params))
	letGo(terms...)
	t.reduction.advance()
	for _, sum := range t.sums {
		sum.beat = s.latestBeat()
	}
	s.moving = append(s.moving, t)
}

// together returns a shard's gradients of the given parameters, concatenated if there are several. It lets go of
// the gradients.
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

// advance moves all reductions that are under way by one step. It reports whether some are left.
func (s *sweep) advance() bool {
	for _, t := range s.moving {
		t.reduction.advance()
	}
	return s.deliverArrived()
}

// latestBeat returns the number of beats of the device that has had the most.
func (s *sweep) latestBeat() (beat int) {
	for _, p := range s.paces {
		beat = max(beat, p.beats)
	}
	return beat
}

// deliverArrived delivers the reductions that are over. It reports whether some are left.
func (s *sweep) deliverArrived() bool {
	left := s.moving[:0]
	for _, t := range s.moving {
		if !t.isOver {
			left = append(left, t)
			continue
		}
		s.deliver(t)
		s.ready = append(s.ready, t.params)
	}
	clear(s.moving[len(left):])
	s.moving = left
	return len(left) > 0
}

// finish enqueues all that is left of the sweep. It does not wait. each is that of BackwardEach, or nil.
//
// A device with a queue computes in the order in which operations are enqueued. It would be idle in each step of the
// sums that are left, until a copy has come. So what each enqueues is spread over these steps.
func (s *sweep) finish(each func(params []*Param)) {
	s.sendOpen()
	s.deliverArrived()
	for steps := s.steps(); steps > 0; steps-- {
		if each != nil {
			s.call(each, (len(s.ready)+steps)/(steps+1))
		}
		s.advance()
	}
	if each != nil {
		s.call(each, len(s.ready))
	}
}

// steps returns how many steps the sums under way have left.
func (s *sweep) steps() (most int) {
	for _, t := range s.moving {
		most = max(most, t.steps())
	}
	return most
}

// call calls each for the first n groups of parameters whose gradients have been delivered, and not been handed out.
func (s *sweep) call(each func(params []*Param), n int) {
	for _, group := range s.ready[:n] {
		var params []*Param
		for _, c := range s.r.copies {
			for _, j := range group {
				params = append(params, c[j])
			}
		}
		each(params)
	}
	s.ready = s.ready[n:]
}

// deliver adds the sums of t, which is over, to the gradients of all copies, if they are for this rank.
func (s *sweep) deliver(t *transport) {
	for _, params := range s.r.copies {
		if params[t.params[0]].value == nil {
			continue
		}
		if !t.isWanted() {
			for _, j := range t.params {
				params[j].hasGradElsewhere = true
			}
			continue
		}
		whole := t.wholeOn(params[t.params[0]].value.storage.Device())
		from := 0
		for i, j := range t.params {
			size := t.shapes[i].Size()
			from += size
			if o := params[j].Owner(); o.Grads && o.IsElsewhere() {
				params[j].hasGradElsewhere = true
				continue
			}
			g := whole
			if len(t.params) > 1 {
				part := planned(op.Slice, op.Attr{From: from - size, To: from}, operands{whole}, false)
				g = planned(op.Reshape, op.Attr{Shape: t.shapes[i]}, operands{part}, false)
				part.letGo()
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

// wholeOn returns a handle of the whole sum on dev, or a copy if no term was there.
func (t *transport) wholeOn(dev device.Device) *Tensor {
	if i := t.indexOf(dev); i >= 0 {
		return t.wholes[i].another()
	}
	return t.wholes[0].move(dev)
}
