package engine

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
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
	refusedCopy   = "it waits for a value, or copies one to another device"
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

// RefuseTensor refuses a tensor that the step has from elsewhere.
func (c *Capture) RefuseTensor() { c.Refuse(refusedTensor) }

// Captures reports whether the calling goroutine may begin a Capture, or run a Plan: it neither captures nor runs ahead
// of a test. In mode Naive there are no Plans.
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
	p.e.plans.made.Add(1)
	return p
}

// mustNotCapture refuses if the calling goroutine captures.
func (e *Engine) mustNotCapture(text string) {
	if c := e.Capturing(); c != nil {
		c.Refuse(text)
	}
}
