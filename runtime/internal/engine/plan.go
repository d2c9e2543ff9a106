package engine

import (
	"cmp"
	"slices"
	"sync"

	"github.com/asyncgen/asyncgen/device"
)

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

	// What a run as one operation needs.
	reads   []int // the numbers of the sources that operations read
	arena   int64 // bytes for all contents that are no outputs
	bytes   int64 // of all outputs
	donors  []donor
	benches sync.Pool // of *bench
}

// A planOp is one operation of a Plan.
type planOp struct {
	cmd    device.Command          // without buffers
	slots  [device.MaxOperands]int // -1: there is no such operand
	more   []int                   // see Op.Reads
	makes  []int                   // the numbers of the outputs that it is the first to write
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
	first, last int   // the operations that make it, and use it last; last is -1 if none does
	out         int   // the number of the output plus one; 0: it is none
	temp        int   // of contents that operations make and that are no output: its number
	at          int64 // of the same: where they are in the arena
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
		switch {
		case s.kind == ofSource && s.last >= 0:
			p.reads = append(p.reads, s.source)
		case s.kind == ofOp && s.out != 0:
			p.bytes += s.bytes
		case s.kind == ofOp:
			s.temp = p.made
			p.made++
			p.ops[s.last].dead = append(p.ops[s.last].dead, i)
		}
	}
	var space space
	for k := range p.ops {
		o := &p.ops[k]
		p.cost += o.cost
		inherited := -1
		for i, slot := range o.slots {
			if slot < 0 || o.writes>>i&1 == 0 {
				continue
			}
			switch s := &p.slots[slot]; {
			case s.first != k:
			case s.out != 0:
				o.makes = append(o.makes, s.out-1)
				p.inherit(k, slot)
			default:
				if inherited = p.inherit(k, slot); inherited >= 0 {
					s.at = p.slots[inherited].at
				} else {
					s.at = space.take(s.bytes)
				}
			}
		}
		for _, slot := range o.dead {
			if s := &p.slots[slot]; slot != inherited {
				space.give(s.at, s.bytes)
			}
		}
	}
	p.arena = space.size
}

// inherit looks for contents that operation k uses last, and may write its output, the slot out, over. It returns their
// slot, or -1. If they are those of a source, it notes a donor, and returns -1. See donate.go.
func (p *Plan) inherit(k, out int) int {
	o := &p.ops[k]
	if o.cmd.Kernel.Code != device.Map || o.writes != 1 {
		return -1
	}
	for i, slot := range o.slots {
		if i == 0 || slot < 0 || p.slots[slot].last != k || !o.staysInPlace(p, slot) {
			continue
		}
		switch from, to := &p.slots[slot], &p.slots[out]; {
		case from.kind == ofOp && from.out == 0 && to.out == 0:
			return slot
		case from.kind == ofSource && to.out != 0:
			p.donors = append(p.donors, donor{source: from.source, slot: slot, out: to.out - 1})
			return -1
		}
	}
	return -1
}

// staysInPlace is that of a record, for the slot of an input.
func (o *planOp) staysInPlace(p *Plan, slot int) bool {
	if p.slots[slot].bytes != p.slots[o.slots[0]].bytes || slices.Contains(o.more, slot) {
		return false
	}
	for i, have := range o.slots {
		switch {
		case have != slot:
		case i > len(o.cmd.Kernel.In):
			return false // it is no input
		case o.cmd.Kernel.In[i-1].Size() != o.cmd.Kernel.Out.Size() || o.cmd.Off[i] != o.cmd.Off[0] || o.cmd.Args != nil && o.cmd.Args.Strides[i] != nil:
			return false
		}
	}
	return true
}

// shift returns how much later operand i begins if its source begins that much later. An operand without elements, say
// an empty part of the source, begins at 0 whatever the source does.
func (o *planOp) shift(i, by int) int {
	if by != 0 && o.shapes[i] != nil && o.shapes[i].Size() == 0 {
		return 0
	}
	return by
}

// shiftOf is shift for a part.
func shiftOf(p device.Part, by int) int {
	if p.N == 0 {
		return 0
	}
	return by
}

// A donor is a source whose memory an output takes, if nobody else has it.
type donor struct{ source, slot, out int }

// A space gives out places in an arena, and takes them back. It puts contents into the least gap that has room.
type space struct {
	size int64
	gaps []gap // in order, and none next to another
}

type gap struct{ from, to int64 }

// alignment is that of contents in an arena, as in memory of the Go heap.
const alignment = 64

// roundedUp returns how much room contents take. Those without elements take some, since they too have an address.
func roundedUp(bytes int64) int64 { return (max(bytes, 1) + alignment - 1) &^ (alignment - 1) }

func (s *space) take(bytes int64) (at int64) {
	bytes = roundedUp(bytes)
	best := -1
	for i, g := range s.gaps {
		if g.to-g.from >= bytes && (best < 0 || g.to-g.from < s.gaps[best].to-s.gaps[best].from) {
			best = i
		}
	}
	if best >= 0 {
		at = s.gaps[best].from
		if s.gaps[best].from += bytes; s.gaps[best].from == s.gaps[best].to {
			s.gaps = slices.Delete(s.gaps, best, best+1)
		}
		return at
	}
	at = s.size
	if n := len(s.gaps); n > 0 && s.gaps[n-1].to == s.size { // the last gap grows
		at = s.gaps[n-1].from
		s.gaps = s.gaps[:n-1]
	}
	s.size = at + bytes
	return at
}

func (s *space) give(at, bytes int64) {
	g := gap{at, at + roundedUp(bytes)}
	i, _ := slices.BinarySearchFunc(s.gaps, g, func(a, b gap) int { return cmp.Compare(a.from, b.from) })
	s.gaps = slices.Insert(s.gaps, i, g)
	if i+1 < len(s.gaps) && s.gaps[i+1].from == g.to {
		s.gaps[i].to = s.gaps[i+1].to
		s.gaps = slices.Delete(s.gaps, i+1, i+2)
	}
	if i > 0 && s.gaps[i-1].to == g.from {
		s.gaps[i-1].to = s.gaps[i].to
		s.gaps = slices.Delete(s.gaps, i, i+1)
	}
}

// Device returns the device of p, which has operations.
func (p *Plan) Device() device.Device { return p.st.dev }

// Bytes returns how many bytes output i has.
func (p *Plan) Bytes(i int) int64 { return p.slots[p.outs[i]].bytes }

// Reads reports whether an operation reads a source, by its slot.
func (p *Plan) Reads(slot int) bool { return p.slots[slot].last >= 0 }

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

// Run enqueues the operations of p. Source i is sources[i], on the device of p. Output i is put into outs[i], new
// storages of that device with as many bytes as Bytes(i) says. live is what Ask has returned. Like Enqueue, Run waits
// only at a bound. Operations fail, and spoil what depends on them, as they do if they are enqueued one by one.
func (p *Plan) Run(sources []Binding, outs []*Storage, live Live) {
	imms := p.commands(live)
	e, st := p.e, p.st
	if st == nil {
		return
	}
	e.plans.runs.Add(1)
	// Who looks at each operation gets to see each. Long ones may run beside each other.
	isLong := p.cost > int64(len(p.ops))*longOnAverage
	if isLong || !st.isSynchronous || !st.onHost || e.watcher.on.Load() || e.virtual.Load() != nil || st.slips.Load() != nil {
		p.issue(sources, outs, imms)
		return
	}
	x := &run{p: p, sources: sources, outs: outs, imms: imms}
	if !x.isComputed() {
		x.enqueue()
	}
}

// longOnAverage is the Cost, in nanoseconds, from which on operations gain more from running beside each other than
// from being one record, which one worker executes. Steps of small convolutions and of a transformer, of 10 to 20 us
// for each operation, took 1.1 to 1.6 times as long as one record (two workers, Zen 4).
const longOnAverage = 2000

// Live are the immediates that differ from run to run.
type Live [][2]uint64

// Ask does what the host does before a run, see Capture.Do and Capture.Live. It may panic.
func (p *Plan) Ask() (imms Live) {
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
			op.Cmd.Imm = imms[k]
		}
		for i, slot := range o.slots {
			if slot >= 0 {
				s, shift := of(slot)
				op.Operands[i] = s
				op.Cmd.Off[i] += o.shift(i, shift)
			}
		}
		if o.more != nil {
			args := *o.cmd.Args // the engine sets buffers there
			args.Parts = slices.Clone(args.Parts)
			op.Cmd.Args = &args
			for i, slot := range o.more {
				s, shift := of(slot)
				op.Reads = append(op.Reads, s)
				args.Parts[i].Off += shiftOf(args.Parts[i], shift)
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

// commands returns the immediates of all operations in a run; nil: those that were recorded.
func (p *Plan) commands(live Live) [][2]uint64 {
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
