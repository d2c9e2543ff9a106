package tensor

import (
	"fmt"
	"slices"
	"sync"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/runtime/internal/engine"
	"github.com/asyncgen/asyncgen/runtime/internal/tape"
	"github.com/asyncgen/asyncgen/runtime/op"
)

// A Captured is a function that is captured when it runs: see [Capture].
type Captured struct {
	f      func(in ...*Tensor) []*Tensor
	caller uintptr // who called Capture

	mu      sync.Mutex // guards the rest
	plans   []*plan    // in the order in which they were made; replaced, never changed
	remarks []string   // see Remarks
	isFull  bool       // there was no room for another plan
}

// maxPlans is how many plans a Captured has at most. Each is for other shapes.
const maxPlans = 8

// Capture returns f in a form that computes the same faster, where f is called again and again with operands of the
// same shapes: a step of training, or a model in use. The first Run calls f and records what it enqueues. Later ones
// enqueue that again, as a plan: without the calls of f, its checks, its handles, and the graph of its gradients.
//
//	step := tensor.Capture(func(in ...*tensor.Tensor) []*tensor.Tensor {
//		loss := nn.CrossEntropy(net.Forward(in[0]), in[1])
//		opt.Minimize(loss)
//		return []*tensor.Tensor{loss}
//	})
//	for _, b := range batches {
//		losses = append(losses, step.Run(b.X, b.Y)[0])
//	}
//
// The results have the bits of f, and are new tensors in each Run: no earlier result is ever overwritten. f may use its
// operands, cells ([Param], [Buffer]) and generators, what it makes itself, and optimisers of package optim. In each
// Run the operands are new, cells give what they hold at the time and are set, gradients are added, numbers are drawn
// from where the generator is, and an optimiser goes on with its present rate and number of steps.
//
// f does nothing but compute. Everything else in f happens when it is captured, and not in later Runs: assignments to
// variables, prints, branches. Numbers of Go that f computes with are those of the capture, but for constants of
// [Fused.WithFunc]. A step panics with a [*Mistake] that names the line in f and that of Capture if f waits for a
// value, makes a tensor of elements that Go has (From: pass it to Run instead), uses another tensor or another device
// than those of its operands and cells, copies a cell (Clone, Frozen, Snapshot), or changes what isn't a cell of this
// library. In f, Ready and Soon report false.
//
// f is captured again if an operand or a cell has another shape, layout or element type, if a cell has a value or a
// gradient now and had none, or the other way round, or if an optimiser computes in another way. So a step of training
// is captured twice, and a short batch once more. A Captured has at most 8 plans; what would need another one calls f,
// like any function. f is also just called in mode naive (ASYNCGEN_ENGINE), where a loop runs past its end, in a VMap,
// in another capture, and if an operand is in a scope ([device.WithContext]).
//
// Gradients end at Run: its operands and results are not tracked. So Backward belongs in f.
//
//asyncgen:api pure
//go:noinline
func Capture(f func(in ...*Tensor) []*Tensor) *Captured {
	if f == nil {
		wrong("Capture", "nil function")
	}
	return &Captured{f: f, caller: engine.Caller()}
}

// Run returns the results of the function for the operands in. Like other operations it does not wait. It panics with a
// [*Mistake] if the function can't be captured, or makes a mistake itself; then cells may have changed.
//
// Several goroutines may call Run if the function changes nothing.
//
//asyncgen:api call recv once
//go:noinline
func (c *Captured) Run(in ...*Tensor) []*Tensor {
	isRow := false
	for _, x := range in {
		if x == nil {
			wrong("Run", op.MistakeNil)
		}
		isRow = x.isRow("Run") || isRow
	}
	if isRow || !eng().Captures() || slices.ContainsFunc(in, func(x *Tensor) bool { return x.storage.Device().Scope() != nil }) {
		return c.call(in)
	}
	in = untracked(in)
	c.mu.Lock()
	plans := c.plans
	c.mu.Unlock()
	for i := len(plans) - 1; i >= 0; i-- { // the newest has seen the cells last
		p := plans[i]
		if bound, differs := p.bind(in); differs == nil {
			return p.run(bound)
		}
	}
	if len(plans) >= maxPlans {
		c.overflows()
		return c.call(in)
	}
	return c.capture(in)
}

// Plans returns how often the function was captured so far. More than two or three say that shapes change, see
// [Captured.Remarks]: pad batches to few lengths.
//
//asyncgen:api meta
func (c *Captured) Plans() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.plans)
}

// Remarks says why the function was captured each time but the first: what differs from the plan before, such as
//
//	operand 0 is float32[7 784] and was float32[32 784]
//
// If there is no room for more plans, the last remark says so.
//
//asyncgen:api meta
func (c *Captured) Remarks() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.remarks)
}

// overflows notes that there is no room for another plan.
func (c *Captured) overflows() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.isFull {
		c.isFull = true
		c.remarks = append(c.remarks, fmt.Sprintf("there are %d plans: what needs another one is not captured", maxPlans))
	}
}

// call calls the function.
func (c *Captured) call(in []*Tensor) []*Tensor {
	out := c.f(untracked(in)...)
	for _, y := range out {
		if y == nil {
			wrong("Run", op.MistakeNil)
		}
	}
	return untracked(out)
}

// untracked returns ts with a handle that is neither tracked nor lazy in place of each that is.
func untracked(ts []*Tensor) []*Tensor {
	out := slices.Clone(ts)
	for i, t := range out {
		if t.node != nil {
			t = t.Detach()
		}
		out[i] = t.Eager()
	}
	return out
}

// capture calls the function and records what it does.
func (c *Captured) capture(in []*Tensor) []*Tensor {
	r := &recorder{seen: map[place]bool{}}
	r.Capture = eng().Capture(func(text string) {
		r.refused = &Mistake{Op: "Capture", Text: fmt.Sprintf("%s: %s%s%s", op.MistakeCapture, text,
			at(" at ", engine.Caller()), at(", in what is captured at ", c.caller))}
		panic(r.refused)
	})
	r.User = r
	defer r.End()
	c.mu.Lock()
	plans := c.plans
	c.mu.Unlock()
	remark := ""
	if n := len(plans); n > 0 {
		if _, differs := plans[n-1].bind(in); differs != nil { // else another goroutine has captured the same
			remark = differs()
		}
	}
	for i, x := range in {
		r.add(source{input: i}, x)
	}
	out := c.call(in)
	if r.refused != nil { // and fmt, say, has recovered
		panic(r.refused)
	}
	p := r.plan(out)
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.plans) < maxPlans { // else another goroutine was faster
		c.plans = append(slices.Clip(c.plans), p)
		if remark != "" {
			c.remarks = append(c.remarks, remark)
		}
	}
	return out
}

// at returns a text that says where caller is, after before, or nothing.
func at(before string, caller uintptr) string {
	file, line := engine.Line(caller)
	if line == 0 {
		return ""
	}
	return fmt.Sprintf("%s%s:%d", before, file, line)
}

// A recorder notes what a captured function does beside operations.
type recorder struct {
	*engine.Capture
	sources []source
	seen    map[place]bool
	refused *Mistake // what the first refusal has panicked with
}

// A place is where a cell holds a tensor.
type place struct {
	cell   Cell
	isGrad bool // of a Param: its gradient
}

// A source is what a captured function takes tensors from.
type source struct {
	place  // if cell is nil: operand input
	input  int
	layout *Tensor // what was there, without the storage; nil: nothing
	dev    device.Device
	slot   int     // of the storage, if layout is not nil
	sets   uint64  // of a Param's value: how often it had been set
	first  *Tensor // what was there, while the function is captured
}

// recording returns the recorder of the calling goroutine, or nil.
func recording() *recorder {
	if c := eng().Capturing(); c != nil {
		return c.User.(*recorder)
	}
	return nil
}

// refuseCapture panics if the calling goroutine captures a function that calls what.
func refuseCapture(what string) {
	if c := eng().Capturing(); c != nil {
		c.Refuse("it calls " + what)
	}
}

// see notes that a captured function looks at the value of c, a Param or a Buffer.
func see(c Cell) {
	if r := recording(); r != nil {
		r.see(place{cell: c})
	}
}

// seeGrad notes that a captured function looks at the gradient of p.
func seeGrad(p *Param) {
	if r := recording(); r != nil {
		r.see(place{p, true})
	}
}

func (r *recorder) see(at place) {
	if r.seen[at] {
		return
	}
	r.seen[at] = true
	s := source{place: at, first: at.holds()}
	if p, ok := at.cell.(*Param); ok {
		s.sets = p.sets
	}
	r.add(s, s.first)
}

// add notes a source that holds t, or nothing.
func (r *recorder) add(s source, t *Tensor) {
	if t != nil {
		slot, isSource := r.Source(t.storage)
		if !isSource {
			r.Refuse("it makes a cell")
		}
		s.slot = slot
		s.layout, s.dev = t.layout(), t.storage.Device()
	}
	r.sources = append(r.sources, s)
}

// layout returns what t is apart from its storage.
func (t *Tensor) layout() *Tensor {
	return &Tensor{shape: slices.Clone(t.shape), strides: slices.Clone(t.strides), off: t.off, size: t.size, dtype: t.dtype}
}

// changing notes that a captured function is about to change c.
func (r *recorder) changing(c Cell) {
	switch c := c.(type) {
	case *Param:
		r.see(place{cell: c})
		r.see(place{c, true})
	case *Buffer:
		r.see(place{cell: c})
	case *Generator: // draws are asked for in each run, and others refuse
	default:
		if !r.Owns(c) {
			r.Refuse(fmt.Sprintf("it changes a %T", c))
		}
	}
}

// holds returns what is at the place now; nil: nothing.
func (at place) holds() *Tensor {
	switch c := at.cell.(type) {
	case *Param:
		if at.isGrad {
			return c.grad
		}
		return c.value
	case *Buffer:
		return c.value
	}
	return nil
}

// A plan is a captured function for operands and cells of certain shapes. It never changes.
type plan struct {
	*engine.Plan
	inputs  int
	here    device.Device // the default device
	sources []source
	results []product
	cells   []setting
	outs    []int64 // bytes of each new storage
}

// A product is a tensor that a run returns, or that a cell holds after it.
type product struct {
	layout   *Tensor         // without the storage
	constant *engine.Storage // if it is one
	number   int             // else that of the source or output
	isSource bool
}

// A setting is what a run does to a cell.
type setting struct {
	place
	to   *product // nil: the place is empty from then on
	sets uint64   // of a Param's value: how often it is set
	// isDropped says that nothing uses the tensor of a Buffer, or the gradient, that was there before.
	isDropped bool
}

// plan returns the plan of what was recorded. results are what the function has returned.
func (r *recorder) plan(results []*Tensor) *plan {
	var outs []int
	p := &plan{here: device.Device{}.Or()}
	number := map[int]bool{}
	note := func(t *Tensor) (slot int) {
		slot, ok := r.Slot(t.storage)
		if !ok {
			r.Refuse("it returns a tensor that is neither an operand, nor the value of a cell, nor made in the step")
		}
		if r.IsMade(slot) && !number[slot] {
			number[slot] = true
			outs = append(outs, slot)
		}
		return slot
	}
	var slots []int
	for _, t := range results {
		slots = append(slots, note(t))
	}
	type changed struct {
		setting
		now    *Tensor
		slot   int
		had    bool // the place had a tensor before, of the source with the slot before
		before int
	}
	var cells []changed
	for i := range r.sources {
		s := &r.sources[i]
		if s.cell == nil {
			p.inputs++
			continue
		}
		c := changed{setting: setting{place: s.place}, now: s.holds(), had: s.layout != nil, before: s.slot}
		if q, ok := s.cell.(*Param); ok && !s.isGrad {
			c.sets = q.sets - s.sets
		}
		if c.now != s.first {
			if c.now != nil {
				c.slot = note(c.now)
			}
			cells = append(cells, c)
		}
		s.first = nil
	}
	p.Plan, p.sources = r.Plan(outs), r.sources
	for i := range outs {
		p.outs = append(p.outs, p.Bytes(i))
	}
	of := func(t *Tensor, slot int) (x product) {
		x.layout = t.layout()
		if x.constant = p.Constant(slot); x.constant == nil {
			x.number, x.isSource = p.Number(slot)
		}
		return x
	}
	for i, t := range results {
		p.results = append(p.results, of(t, slots[i]))
	}
	passed := map[int]bool{} // sources
	for _, x := range p.results {
		passed[x.number] = passed[x.number] || x.isSource
	}
	for i, c := range cells {
		if c.now != nil {
			x := of(c.now, c.slot)
			cells[i].to = &x
			passed[x.number] = passed[x.number] || x.isSource
		}
	}
	for _, c := range cells {
		_, isBuffer := c.cell.(*Buffer)
		if n, _ := p.Number(c.before); c.had && (c.isGrad || isBuffer) {
			c.isDropped = !p.Reads(c.before) && !passed[n]
		}
		p.cells = append(p.cells, c.setting)
	}
	return p
}

// bind returns what the sources are in a run with the operands in. If the plan isn't for them, differs says why.
func (p *plan) bind(in []*Tensor) (bound []engine.Binding, differs func() string) {
	if len(in) != p.inputs {
		return nil, func() string { return fmt.Sprintf("%d operands, and there were %d", len(in), p.inputs) }
	}
	if (device.Device{}).Or() != p.here {
		return nil, func() string { return "the default device is another one" }
	}
	bound = make([]engine.Binding, 0, len(p.sources))
	for i := range p.sources {
		s := &p.sources[i]
		t := s.holds()
		if s.cell == nil {
			t = in[s.input]
		}
		if (t == nil) != (s.layout == nil) || t != nil && !s.fits(t) {
			return nil, func() string { return s.remark(t) }
		}
		if t == nil {
			continue
		}
		b := engine.Binding{S: t.storage, Shift: t.off - s.layout.off}
		n, _ := p.Number(s.slot)
		if n == len(bound) {
			bound = append(bound, b)
		} else if bound[n] != b {
			return nil, func() string { return s.String() + " is no longer the same tensor as another operand or cell" }
		}
	}
	if !p.Holds() {
		return nil, func() string { return "an optimiser computes in another way" }
	}
	return bound, nil
}

// fits reports whether t lies in its storage as what was captured did, perhaps elsewhere in it, and on the same device.
func (s *source) fits(t *Tensor) bool {
	l := s.layout
	return t.dtype == l.dtype && t.storage.Device() == s.dev && slices.Equal(t.shape, l.shape) && slices.Equal(t.strides, l.strides)
}

// String is "operand 0", "a value of *tensor.Param" and the like.
func (s *source) String() string {
	switch {
	case s.cell == nil:
		return fmt.Sprintf("operand %d", s.input)
	case s.isGrad:
		return fmt.Sprintf("a gradient of %T", s.cell)
	}
	return fmt.Sprintf("a value of %T", s.cell)
}

// remark says how t differs from what was captured.
func (s *source) remark(t *Tensor) string {
	l := s.layout
	switch {
	case t == nil:
		return s.String() + " is no longer there"
	case l == nil:
		return s.String() + " is there now"
	case t.dtype == l.dtype && slices.Equal(t.shape, l.shape):
		return s.String() + " is a view of another kind, or on another device"
	}
	return fmt.Sprintf("%v is %v%v and was %v%v", s, t.dtype, t.shape, l.dtype, l.shape)
}

// run runs the plan.
func (p *plan) run(bound []engine.Binding) (results []*Tensor) {
	outs := make([]*engine.Storage, len(p.outs))
	for i, bytes := range p.outs {
		b := &body{}
		b.own.Init(eng(), p.Device(), bytes)
		outs[i] = &b.own
	}
	live := p.Ask()
	for i := range p.cells {
		if c := &p.cells[i]; c.isDropped {
			c.set(nil) // now, so that its memory can be used again
		}
	}
	if len(p.cells) == 0 {
		p.Run(bound, outs, live)
		return p.finish(bound, outs)
	}
	// Nobody is woken before what cells have held is let go: the run may write over it.
	eng().Bulk(func() {
		p.Run(bound, outs, live)
		results = p.finish(bound, outs)
	})
	return results
}

// finish sets the cells after a run, and returns the results.
func (p *plan) finish(bound []engine.Binding, outs []*engine.Storage) []*Tensor {
	used := make([]bool, len(outs))
	handle := func(x *product) *Tensor {
		t := *x.layout
		switch {
		case x.constant != nil:
			t.storage = x.constant
			t.storage.Hold()
		case x.isSource:
			t.storage = bound[x.number].S
			if t.size > 0 { // else it begins at 0
				t.off += bound[x.number].Shift
			}
			t.storage.Hold()
		default:
			if t.storage = outs[x.number]; used[x.number] {
				t.storage.Hold()
			}
			used[x.number] = true
		}
		return &t
	}
	results := make([]*Tensor, len(p.results))
	for i := range p.results {
		results[i] = handle(&p.results[i])
	}
	now := make([]*Tensor, len(p.cells))
	for i := range p.cells {
		if to := p.cells[i].to; to != nil {
			now[i] = handle(to)
		}
	}
	for i := range p.cells { // behind all handles: a cell may get what another one lets go
		p.cells[i].set(now[i])
	}
	return results
}

// set makes the cell hold t, which belongs to it from now on, or nothing.
func (c *setting) set(t *Tensor) {
	var old *Tensor
	switch x := c.cell.(type) {
	case *Param:
		if c.isGrad {
			old, x.grad = x.grad, t
			break
		}
		t.node = tape.NewLeaf(x.leaf())
		old, x.value = x.value, t
		x.sets += c.sets
	case *Buffer:
		old, x.value = x.value, t
	}
	old.letGo()
}
