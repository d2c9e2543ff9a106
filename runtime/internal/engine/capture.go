package engine

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/asyncgen/asyncgen/device"
)

// A Capture records what one goroutine enqueues, while that runs as usual. The result is a Plan,
// which computes the same from other storages. Each storage that an operation uses must be known:
// a source, which each run of the Plan binds, a constant, which the Plan keeps, or made by a recorded
// operation. Anything else is refused, and so is a wait for a value. All of this costs one load as
// long as nobody captures.
type Capture struct {
	// User is for the caller of Engine.Capture.
	User any
	// Refuse panics. text says what can't be captured.
	Refuse func(text string)

	e     *Engine
	owner uintptr // the goroutine, see self
	slots map[*Storage]int
	owned map[any]bool
	plan  *Plan
}

// captures are the captures under way.
type captures struct {
	n  atomic.Int32 // how many there are
	mu sync.RWMutex // guards of
	of map[uintptr]*Capture
}

// What a Capture refuses.
const (
	refusedWait   = "it waits for a value"
	refusedDevice = "it uses several devices"
	refusedTensor = "it uses a tensor that is neither an input, nor the value of a cell, nor made in the step: pass it as an input, or hold it in a Buffer"
	refusedGuess  = "it runs ahead of a test"
)

// Capture begins to record what the calling goroutine enqueues. refuse is called for what can't be
// recorded, and must panic. The caller ends the Capture by End.
func (e *Engine) Capture(refuse func(text string)) *Capture {
	c := &Capture{Refuse: refuse, e: e, owner: self(), slots: map[*Storage]int{}, owned: map[any]bool{}, plan: &Plan{e: e}}
	e.captures.set(c.owner, c)
	return c
}

// End ends the recording. Calling it again does nothing.
func (c *Capture) End() { c.e.captures.set(c.owner, nil) }

// Capturing returns the Capture of the calling goroutine, or nil.
func (e *Engine) Capturing() *Capture {
	if e.captures.n.Load() == 0 {
		return nil
	}
	cs := &e.captures
	cs.mu.RLock()
	defer cs.mu.RUnlock()
	return cs.of[self()]
}

// set notes the Capture of a goroutine; nil: it has none.
func (cs *captures) set(owner uintptr, c *Capture) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	of := maps.Clone(cs.of)
	if of == nil {
		of = map[uintptr]*Capture{}
	}
	if c == nil {
		delete(of, owner)
	} else {
		of[owner] = c
	}
	cs.of = of
	cs.n.Store(int32(len(of)))
}

// Captures reports whether the calling goroutine may begin a Capture, or run a Plan: it neither captures nor runs ahead of
// a test. In mode Naive there are no Plans.
func (e *Engine) Captures() bool {
	return e.mode != Naive && e.Capturing() == nil && e.guess() == nil
}

// Source returns the slot of s, which each run of the Plan binds: the first source has the slot 0.
// If a recorded operation has made s, or s is a constant, isSource is false.
func (c *Capture) Source(s *Storage) (slot int, isSource bool) {
	slot, ok := c.slots[s]
	if !ok {
		slot = c.add(s, slotOf{kind: ofSource})
	}
	return slot, c.plan.slots[slot].kind == ofSource
}

// Constant makes s a constant: the Plan keeps it, and nobody writes it.
func (c *Capture) Constant(s *Storage) {
	s.Hold()
	c.add(s, slotOf{kind: ofConstant, storage: s})
}

// Slot returns the slot of s; false if s is not known.
func (c *Capture) Slot(s *Storage) (slot int, ok bool) {
	slot, ok = c.slots[s]
	return slot, ok
}

// IsMade reports whether the recorded operations make the contents of slot.
func (c *Capture) IsMade(slot int) bool { return c.plan.slots[slot].kind == ofOp }

// Do calls f, now and at this place of each run, on the goroutine that begins the run, before
// anything is enqueued.
func (c *Capture) Do(f func()) {
	c.plan.host = append(c.plan.host, hostStep{do: f})
	f()
}

// Live says that the immediates of the operation that was enqueued last differ from run to run. f
// returns them. It is called as the function of a Do is, but not now.
func (c *Capture) Live(f func() [2]uint64) {
	c.plan.host = append(c.plan.host, hostStep{op: len(c.plan.ops) - 1, live: f})
}

// Own says that the caller of Do sees to a cell itself.
func (c *Capture) Own(cell any) { c.owned[cell] = true }

// Owns reports whether Own was called for a cell.
func (c *Capture) Owns(cell any) bool { return c.owned[cell] }

// Guard says that the Plan computes the right thing only while f returns true. f changes nothing.
func (c *Capture) Guard(f func() bool) { c.plan.guards = append(c.plan.guards, f) }

// add gives s a slot.
func (c *Capture) add(s *Storage, as slotOf) int {
	as.bytes, as.first, as.last = s.own.Bytes, len(c.plan.ops), -1
	slot := len(c.plan.slots)
	if as.kind == ofSource {
		as.source = c.plan.sources
		c.plan.sources++
	}
	c.slots[s] = slot
	c.plan.slots = append(c.plan.slots, as)
	return slot
}

// note records op, which is about to be enqueued on st.
func (c *Capture) note(st *stream, op *Op, writes uint8, pc uintptr) {
	p := c.plan
	if p.st == nil {
		p.st = st
	}
	if p.st != st || op.Operands[0].in.Scope() != nil {
		c.Refuse(refusedDevice)
	}
	o := planOp{cmd: op.Cmd, cost: op.Cost, writes: writes, pc: pc}
	o.cmd.Args = op.Cmd.Args.Clone()
	for i := range o.slots {
		o.slots[i] = -1
		if s := op.Shapes[i]; s != nil { // a copy: op's would keep a result and its memory
			shape := slices.Clone(*s)
			o.shapes[i] = &shape
		}
	}
	for i, s := range op.Operands {
		if s != nil && writes>>i&1 == 0 {
			o.slots[i] = c.read(s)
		}
	}
	for _, s := range op.Reads {
		o.more = append(o.more, c.read(s))
	}
	for i, s := range op.Operands {
		if s == nil || writes>>i&1 == 0 {
			continue
		}
		slot, ok := c.slots[s]
		if !ok && s.last.Load() == 0 && (s.buf == nil || s.isNew()) {
			slot, ok = c.add(s, slotOf{kind: ofOp}), true
		}
		if !ok || p.slots[slot].kind != ofOp {
			c.Refuse(refusedTensor)
		}
		p.slots[slot].last = len(p.ops)
		o.slots[i] = slot
	}
	p.ops = append(p.ops, o)
}

// read returns the slot of an operand that the next operation reads.
func (c *Capture) read(s *Storage) int {
	slot, ok := c.slots[s]
	if !ok {
		c.Refuse(refusedTensor)
	}
	c.plan.slots[slot].last = len(c.plan.ops)
	return slot
}

// Plan returns the plan of what was recorded. outs are the slots, made by recorded operations, whose
// contents each run returns. Plan ends the Capture.
func (c *Capture) Plan(outs []int) *Plan {
	c.End()
	p := c.plan
	p.outs = outs
	for i, slot := range outs {
		p.slots[slot].out = i + 1
	}
	p.finish()
	return p
}

// mustNotCapture refuses if the calling goroutine captures.
func (e *Engine) mustNotCapture(text string) {
	if c := e.Capturing(); c != nil {
		c.Refuse(text)
	}
}

// A Plan is recorded operations of one device. Each run computes them from other sources, on memory
// of its own. A Plan never changes, and several goroutines may run it.
type Plan struct {
	e       *Engine
	st      *stream // nil: there are no operations
	slots   []slotOf
	ops     []planOp
	host    []hostStep
	guards  []func() bool
	outs    []int // slots
	sources int
	made    int   // slots whose contents operations make, and that are no outputs
	cost    int64 // of all operations
}

// A planOp is one operation of a Plan.
type planOp struct {
	cmd    device.Command          // without buffers
	slots  [device.MaxOperands]int // -1: there is no such operand
	more   []int                   // see Op.Reads
	dead   []int                   // slots that no later operation uses, and that are no outputs
	shapes [device.MaxOperands]*device.Shape
	cost   int64
	pc     uintptr
	writes uint8
}

// The kinds of a slot.
const (
	ofSource uint8 = iota
	ofConstant
	ofOp
)

// A slotOf is what a Plan knows of one storage.
type slotOf struct {
	kind        uint8
	source      int      // of a source: its number
	storage     *Storage // of a constant
	bytes       int64
	first, last int // the operations that make it, and use it last; last is -1 if none does
	out         int // the number of the output plus one; 0: it is none
	temp        int // of contents that operations make and that are no output: its number
}

// A hostStep is something that the host does in each run: do, or live, whose result are the immediates of an operation.
type hostStep struct {
	do   func()
	op   int
	live func() [2]uint64
}

// finish derives what runs need.
func (p *Plan) finish() {
	for i := range p.slots {
		s := &p.slots[i]
		if s.kind != ofOp || s.out != 0 {
			continue
		}
		s.temp = p.made
		p.made++
		p.ops[s.last].dead = append(p.ops[s.last].dead, i)
	}
	for i := range p.ops {
		p.cost += p.ops[i].cost
	}
}

// Bytes returns how many bytes output i has.
func (p *Plan) Bytes(i int) int64 { return p.slots[p.outs[i]].bytes }

// Constant returns the storage of a slot that is a constant, or nil.
func (p *Plan) Constant(slot int) *Storage { return p.slots[slot].storage }

// Number returns the number of a source or an output, by its slot.
func (p *Plan) Number(slot int) (n int, isSource bool) {
	if s := &p.slots[slot]; s.kind == ofSource {
		return s.source, true
	}
	return p.slots[slot].out - 1, false
}

// Holds reports whether all guards do.
func (p *Plan) Holds() bool {
	for _, f := range p.guards {
		if !f() {
			return false
		}
	}
	return true
}

// A Binding is what a source stands for in one run.
type Binding struct {
	S     *Storage
	Shift int // how much later the elements begin than those that were recorded, in elements
}

// Run enqueues the operations of p. Source i is sources[i], on the device of p. Output i is put into
// outs[i], new storages of that device with as many bytes as Bytes(i) says. Like Enqueue, Run waits
// only at a bound. Operations fail, and spoil what depends on them, as they do if they are enqueued
// one by one.
func (p *Plan) Run(sources []Binding, outs []*Storage) {
	imms := p.ask()
	if p.st == nil {
		return
	}
	p.issue(sources, outs, imms)
}

// ask does the steps of the host. It returns the immediates of the operations that have live ones.
func (p *Plan) ask() (imms [][2]uint64) {
	for i := range p.host {
		if h := &p.host[i]; h.do != nil {
			h.do()
		} else {
			imms = append(imms, h.live())
		}
	}
	return imms
}

// issue enqueues the operations one by one.
func (p *Plan) issue(sources []Binding, outs []*Storage, imms [][2]uint64) {
	commands := p.commands(imms)
	made := make([]Storage, p.made)
	for i := range p.slots {
		if s := &p.slots[i]; s.kind == ofOp && s.out == 0 {
			made[s.temp].Init(p.e, p.st.dev, s.bytes)
		}
	}
	of := func(slot int) (s *Storage, shift int) {
		switch x := &p.slots[slot]; {
		case x.kind == ofSource:
			return sources[x.source].S, sources[x.source].Shift
		case x.kind == ofConstant:
			return x.storage, 0
		case x.out != 0:
			return outs[x.out-1], 0
		default:
			return &made[x.temp], 0
		}
	}
	var op Op
	for k := range p.ops {
		o := &p.ops[k]
		op = Op{Cmd: o.cmd, Writes: o.writes, Cost: o.cost, Shapes: o.shapes}
		if imms != nil {
			op.Cmd.Imm = commands[k]
		}
		for i, slot := range o.slots {
			if slot >= 0 {
				s, shift := of(slot)
				op.Operands[i] = s
				op.Cmd.Off[i] += shift
			}
		}
		if o.more != nil {
			args := *o.cmd.Args // the engine sets buffers there
			args.Parts = slices.Clone(args.Parts)
			op.Cmd.Args = &args
			for i, slot := range o.more {
				s, shift := of(slot)
				op.Reads = append(op.Reads, s)
				args.Parts[i].Off += shift
			}
		}
		if !p.st.computes(&op) {
			p.e.enqueueOn(p.st, &op, o.writes, o.pc)
		}
		for _, slot := range o.dead {
			made[p.slots[slot].temp].LetGo()
		}
	}
}

// commands returns the immediates of all operations in a run.
func (p *Plan) commands(live [][2]uint64) [][2]uint64 {
	if live == nil {
		return nil
	}
	all := make([][2]uint64, len(p.ops))
	for k := range p.ops {
		all[k] = p.ops[k].cmd.Imm
	}
	for i := range p.host {
		if h := &p.host[i]; h.live != nil {
			all[h.op], live = live[0], live[1:]
		}
	}
	return all
}
