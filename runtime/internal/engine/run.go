package engine

import (
	"cmp"
	"errors"
	"slices"
	"sync/atomic"
	"unsafe"

	"github.com/asyncgen/asyncgen/device"
)

// On a device that runs on the program's own threads, a run of a Plan is one operation: one record, whose outputs are
// all new. Whoever executes it runs the commands one after the other. What they make in between lies in an arena, which
// the device's allocator gives for the time of the run. So runs of all Plans share one pool, and count as results do.
//
// Each command fails or is skipped by itself, as if it were an operation. So an output is spoiled only if it depends on
// what has failed.
//
// A run whose sources are there, and that takes no longer than to enqueue its operations, is computed by the call that
// begins it, under the conditions of tiny.go.

// plans is the kernel of the records of runs. It never runs itself.
var plans = device.NewKernel("plan", device.Fill, nil, device.Bool)

// planStats are counts of Plans.
type planStats struct {
	made, runs atomic.Uint64
	computed   atomic.Uint64 // runs that calls have computed
	arenas     atomic.Int64  // bytes in use now
}

// A run is one run of a Plan as one operation.
type run struct {
	p       *Plan
	sources []Binding
	outs    []*Storage
	imms    [][2]uint64 // of all commands; nil: those of the Plan
	// The flow's lock guards these.
	waits []outWaits // of each output
	hint  int        // the output that was asked for last, see find
	given []donor    // that give their memory, see findDonors

	// Who executes the run has these. If memory is short, the run is put back among the ready operations, and goes on
	// later.
	b     *bench     // nil: the run has not begun
	lacks bool       // the next command can't run, because an output has no memory
	next  int        // the number of the next command
	fails []*OpError // why each output is spoiled; nil: none is
}

// outWaits are the operations that wait for an output, as record.chain, count and heir have them for an operand.
type outWaits struct {
	chain chained
	count uint32
	heir  ref
}

// find returns what waits for the output s.
func (x *run) find(s *Storage) *outWaits {
	for x.outs[x.hint] != s { // programs use outputs in order, so it seldom looks at more than one
		x.hint = (x.hint + 1) % len(x.outs)
	}
	return &x.waits[x.hint]
}

// enqueue enqueues the run.
func (x *run) enqueue() {
	p := x.p
	e, st, pc := p.e, p.st, p.ops[0].pc
	x.waits = make([]outWaits, len(x.outs))
	op := Op{Cmd: device.Command{Kernel: plans, N: len(p.ops)}, Cost: p.cost, run: x}
	op.Reads = make([]*Storage, len(p.reads))
	for i, source := range p.reads {
		op.Reads[i] = x.sources[source].S
	}
	for _, s := range x.outs {
		st.count(s.own.Bytes)
	}
	e.admit(p.bytes, &op, pc)
	st.push(&op, 0, pc, p.bytes, nil, nil)
	if e.mode == Shuffle {
		e.outside(e.shuffler.enqueued)
	}
}

// isComputed computes the run instead of enqueueing it, if it is cheap and nobody can tell. It reports whether it has.
func (x *run) isComputed() bool {
	p := x.p
	if st := p.st; st.costOfTiny < 0 || p.cost > min(int64(len(p.ops))*tinyCost, wakeCost) && p.e.tiny != TinyAll || st.isWatched() {
		return false
	}
	for _, source := range p.reads {
		if s := x.sources[source].S; s.fin.Load() < s.last.Load() || s.err.Load() != nil || s.buf == nil {
			return false
		}
	}
	b := p.bench()
	defer p.put(b)
	if x.prepare(b) != nil {
		return false
	}
	if _, err := x.loop(b, 0); err != nil {
		return false // it is enqueued, and fails again there
	}
	for _, s := range x.outs {
		if s.own.Ptr != nil {
			s.own.Handle = byCall{}
		}
		p.st.count(s.own.Bytes)
	}
	p.e.plans.computed.Add(1)
	return true
}

// A bench is what a run computes on. It is used again by later runs.
type bench struct {
	cmd   [1]device.Command
	bufs  []*device.Buffer // by slot
	temps []device.Buffer  // the buffers of the slots in the arena
	base  unsafe.Pointer   // where the arena was that temps are parts of
	arena *device.Buffer   // nil: there is none now
	fails []*OpError       // by slot; nil: nothing has failed
}

// bench returns a bench that is free.
func (p *Plan) bench() *bench {
	if b, ok := p.benches.Get().(*bench); ok {
		return b
	}
	b := &bench{bufs: make([]*device.Buffer, len(p.slots)), temps: make([]device.Buffer, p.made)}
	for i := range p.slots {
		if s := &p.slots[i]; s.kind == ofOp && s.out == 0 {
			b.temps[s.temp].Bytes = s.bytes
			b.bufs[i] = &b.temps[s.temp]
		}
	}
	return b
}

// put takes back a bench. It gives back the arena, unless that is so small that it is on the Go heap.
func (p *Plan) put(b *bench) {
	if b.arena != nil && b.arena.NeedsFree() {
		p.e.plans.arenas.Add(-p.arena)
		p.st.backend.Free(b.arena)
		b.arena = nil
	}
	for i := range p.slots {
		if s := &p.slots[i]; s.kind != ofOp || s.out != 0 {
			b.bufs[i] = nil
		}
	}
	b.cmd[0] = device.Command{}
	b.fails = nil
	p.benches.Put(b)
}

// prepare gives the run its arena, and finds the memory of sources. It returns an error if there is no arena. It may be
// called again.
func (x *run) prepare(b *bench) error {
	p := x.p
	if b.arena == nil && p.arena > 0 {
		buf, err := p.st.alloc(p.arena)
		if err != nil {
			return err
		}
		if b.arena = buf; buf.NeedsFree() {
			buf.Tag(p.ops[0].pc)
			p.e.plans.arenas.Add(p.arena)
		}
	}
	isElsewhere := b.arena != nil && b.base != b.arena.Ptr
	if isElsewhere {
		b.base = b.arena.Ptr
	}
	for i := range p.slots {
		switch s := &p.slots[i]; {
		case s.kind == ofSource && s.last >= 0: // else its writer may not have finished
			b.bufs[i] = x.sources[s.source].S.buf
		case s.kind == ofConstant:
			b.bufs[i] = s.storage.buf
		case isElsewhere && s.kind == ofOp && s.out == 0:
			b.temps[s.temp].Ptr = unsafe.Add(b.base, s.at)
		}
	}
	return nil
}

// allocate gives memory to output i, which the next command writes first: that of a donor, or else its own.
func (x *run) allocate(b *bench, i int) error {
	p := x.p
	s, slot := x.outs[i], p.outs[i]
	pc := p.ops[p.slots[slot].first].pc
	if s.buf == nil {
		for _, d := range x.given {
			if d.out == i {
				s.takeOver(x.sources[d.source].S, pc)
			}
		}
	}
	if s.buf == nil {
		if err := s.allocate(pc, false); err != nil {
			return err
		}
	}
	b.bufs[slot] = s.buf
	return nil
}

// loop runs the commands from number k on, up to the first that fails, and returns its number and error. A panic is an
// error.
func (x *run) loop(b *bench, from int) (k int, err error) {
	defer caught(&err)
	p := x.p
	do := p.st.runTiny
	if do == nil {
		do = func(c *device.Command) error { _, err := p.st.backend.Submit(b.cmd[:]); return err }
	}
	c := &b.cmd[0]
	for k = from; k < len(p.ops); k++ {
		if b.fails != nil && b.skips(p, k) {
			continue
		}
		for _, i := range p.ops[k].makes {
			if err = x.allocate(b, i); err != nil {
				x.lacks = true
				return k, err
			}
		}
		x.command(b, k, c)
		if err = do(c); err != nil {
			return k, err
		}
	}
	return k, nil
}

// command fills c from operation k.
func (x *run) command(b *bench, k int, c *device.Command) {
	p := x.p
	o := &p.ops[k]
	*c = o.cmd
	if x.imms != nil {
		c.Imm = x.imms[k]
	}
	for i, slot := range o.slots {
		if slot >= 0 {
			c.Buf[i] = b.bufs[slot]
			if s := &p.slots[slot]; s.kind == ofSource {
				c.Off[i] += o.shift(i, x.sources[s.source].Shift)
			}
		}
	}
	if o.more == nil {
		return
	}
	args := *o.cmd.Args
	args.Parts = slices.Clone(args.Parts)
	c.Args = &args
	for i, slot := range o.more {
		args.Parts[i].Buf = b.bufs[slot]
		if s := &p.slots[slot]; s.kind == ofSource {
			args.Parts[i].Off += shiftOf(args.Parts[i], x.sources[s.source].Shift)
		}
	}
}

// skips reports whether operation k must not run, because something that it reads is spoiled. Then what it writes is
// spoiled, too.
func (b *bench) skips(p *Plan, k int) bool {
	o := &p.ops[k]
	var fail *OpError
	for i, slot := range o.slots {
		if fail == nil && slot >= 0 && o.writes>>i&1 == 0 {
			fail = b.fails[slot]
		}
	}
	for _, slot := range o.more {
		if fail == nil {
			fail = b.fails[slot]
		}
	}
	if fail != nil {
		b.spoil(p, k, fail)
	}
	return fail != nil
}

// spoil notes that what operation k writes is spoiled.
func (b *bench) spoil(p *Plan, k int, fail *OpError) {
	if b.fails == nil {
		b.fails = make([]*OpError, len(p.slots))
	}
	o := &p.ops[k]
	for i, slot := range o.slots {
		if slot >= 0 && o.writes>>i&1 != 0 {
			b.fails[slot] = fail
		}
	}
}

// record returns a record that stands for operation k in errors.
func (x *run) record(r *record, k int) *record {
	o := &x.p.ops[k]
	return &record{kernel: o.cmd.Kernel, args: o.cmd.Args, shapes: o.shapes, pc: o.pc, order: r.order, scope: r.scope}
}

// runPlan executes the run of the record at at, like flow.run.
func (f *flow) runPlan(at ref, p patience) (held bool) {
	r := f.st.at(at)
	x := r.run
	failed := func(k int, err error) *OpError {
		return f.st.failed(x.record(r, k), f.seqOfRunning(at), err)
	}
	if x.b == nil {
		b := x.p.bench()
		if held, err := f.withMemory(p, func() error { return x.prepare(b) }); err != nil || held {
			x.p.put(b)
			if held {
				return true
			}
			fail := failed(0, err)
			x.fails = make([]*OpError, len(x.outs))
			for i := range x.fails {
				x.fails[i] = fail
			}
			return false
		}
		x.b = b
		x.spoilSources(b, r)
	}
	for x.next < len(x.p.ops) {
		var broken error
		held, err := f.withMemory(p, func() (err error) {
			x.lacks = false
			if x.next, err = x.loop(x.b, x.next); !x.lacks {
				broken, err = err, nil
			}
			return err
		})
		if held {
			return true
		}
		if err = cmp.Or(broken, err); err != nil {
			x.b.spoil(x.p, x.next, failed(x.next, err))
			x.next++
		}
	}
	if x.b.fails != nil {
		x.fails = make([]*OpError, len(x.outs))
		for i, slot := range x.p.outs {
			x.fails[i] = x.b.fails[slot]
		}
	}
	x.p.put(x.b)
	x.b = nil
	return false
}

// withMemory calls try, again if memory is short. It returns true if memory stays short and a backlog may give some
// back.
func (f *flow) withMemory(p patience, try func() error) (held bool, err error) {
	if err = try(); err != nil && errors.Is(err, device.ErrOutOfMemory) {
		// Memory may be held by operations that are ready. After those have run, relief decides
		// whether to wait for a backlog.
		f.finishReady()
		return f.st.e.relief.retry(p, try)
	}
	return false, err
}

// spoilSources notes which sources are spoiled.
func (x *run) spoilSources(b *bench, r *record) {
	p := x.p
	for i := range p.slots {
		s := &p.slots[i]
		if s.kind != ofSource || s.last < 0 {
			continue
		}
		fail := x.sources[s.source].S.err.Load()
		if fail == nil && b.bufs[i] == nil {
			fail = p.st.opError(x.record(r, s.last), x.sources[s.source].S.lack())
		}
		if fail == nil {
			continue
		}
		if b.fails == nil {
			b.fails = make([]*OpError, len(p.slots))
		}
		b.fails[i] = fail
	}
}

// findDonors sets x.given, for a run that is about to begin: the sources whose memory outputs take. See donate.go.
func (st *stream) findDonors(x *run) {
	x.given = nil
	for _, d := range x.p.donors {
		b := &x.sources[d.source]
		s, out := b.S, x.outs[d.out]
		// One reader is this run, which reads s by one slot only.
		if s.heir != 0 && st.at(s.heir).isRelease() && s.readers == 1 && b.Shift == 0 && s.own.Bytes == out.own.Bytes && out.buf == nil {
			x.given = append(x.given, d)
		}
	}
}
