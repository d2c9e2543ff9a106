package opencl

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/internal/cl"
	"github.com/asyncgen/asyncgen/device/internal/ffi"
	"github.com/asyncgen/asyncgen/device/kernel/clc"
)

const (
	maxCommands = 64 // of a group
	maxGroups   = 64 // that are not done
)

// A group is commands that are handed to the driver in one crossing. It is used again when they are done.
type group struct {
	b     *Backend
	first uint64 // tickets; the last one is below first if all there is of the next command is a part of it
	last  uint64
	batch cl.Batch
	owner int // of the calls that are being added
	// of each call, the command that fails with it, by its number in the group; ownerless: none; see
	// also jointly
	owners   []int
	arena    ffi.Arena
	lowering clc.Lowering
	place    clc.Place // of the command that is being added
	parts    []*block  // Args.Parts of that

	isUsed   [maxQueues]bool // something was enqueued behind the last mark
	isMarked [maxQueues]bool
	marks    []queueMark
	landings []landing
	reads    reads
	taken    [compute]int // heads of the stagings
	large    []pinned     // host memory of its own
	// where the fault slots of each queue are copied to; nil: no command there can fail by itself
	faults    [maxQueues][]byte
	canFail   []suspect
	faultsErr error // why the slots are not known
	failed    []failure
	retried   int  // the last call that was made again
	isWaited  bool // by attend, which releases the marks
	isRetired bool // it is done
}

const ownerless = -1

// A landing is data that has been copied from the device to host memory, and goes on from there.
type landing struct {
	owner    int
	to, from []byte
}

// A suspect is a command that can fail by itself.
type suspect struct {
	owner int
	queue queueIndex
}

type failure struct {
	ticket uint64
	err    error
}

// newGroup returns an empty group for the tickets behind the last one.
func (b *Backend) newGroup() *group {
	var g *group
	if n := len(b.spare); n > 0 {
		g, b.spare = b.spare[n-1], b.spare[:n-1]
	} else {
		g = &group{b: b, lowering: clc.Lowering{Limits: b.limits}, batch: cl.Batch{Driver: b.driver}}
	}
	g.first, g.last, g.retried = b.submitted+1, b.submitted, -1
	return g
}

// clear makes g ready to be used again.
func (g *group) clear() {
	g.batch.Reset()
	g.arena.Reset()
	g.lowering.Reset()
	clear(g.landings)
	clear(g.failed)
	g.reads.clear()
	g.owners, g.marks, g.landings, g.large, g.canFail, g.failed = g.owners[:0], g.marks[:0], g.landings[:0], g.large[:0], g.canFail[:0], g.failed[:0]
	g.isUsed, g.isMarked, g.faults, g.faultsErr, g.isWaited, g.isRetired = [maxQueues]bool{}, [maxQueues]bool{}, [maxQueues][]byte{}, nil, false, false
}

// size is how many commands there are.
func (g *group) size() int { return int(g.last - g.first + 1) }

// add appends a call for the command that is being added, or for what g.owner is.
func (g *group) add(f cl.Fn, args ...uintptr) {
	g.batch.Add(f, args...)
	g.owners = append(g.owners, g.owner)
}

func (g *group) addOwnerless(f cl.Fn, args ...uintptr) {
	g.batch.Add(f, args...)
	g.owners = append(g.owners, ownerless)
}

// fail has a command of g fail, unless it has.
func (g *group) fail(owner int, err error) {
	if !g.hasFailed(owner) {
		g.failed = append(g.failed, failure{g.first + uint64(owner), err})
	}
}

func (g *group) hasFailed(owner int) bool {
	for _, f := range g.failed {
		if f.ticket == g.first+uint64(owner) {
			return true
		}
	}
	return false
}

// compute adds a command of a compute queue. If it returns an error, nothing was added.
func (g *group) compute(c *device.Command) error {
	b := g.b
	var blocks [device.MaxOperands]*block
	n := len(c.Kernel.In) + 1
	place := &g.place
	*place = clc.Place{Fault: int64(g.size()), Parts: place.Parts[:0]}
	defer g.forgetParts()
	for i := range n {
		var err error
		if blocks[i], err = b.blockOf(c, i); err != nil {
			return err
		}
		place.Base[i] = c.Buf[i].Offset()
	}
	if c.Args == nil {
		if _, _, err := contiguous(c, 0, c.Kernel.Out); err != nil {
			return err
		}
	} else if err := g.findParts(c); err != nil {
		return err
	}
	g.save(blocks[0])
	from := len(g.lowering.Launches)
	if err := g.lowering.Lower(c, place); err != nil {
		return err
	}
	launches := g.lowering.Launches[from:]
	if len(launches) == 0 {
		return nil
	}
	used := append(blocks[:n:n], g.parts...)
	before := b.needsOf(true, used...)
	q := b.choose(&before)
	for _, l := range launches {
		if _, err := b.kernel(l.Source, q); err != nil {
			return fmt.Errorf("opencl: kernel %s: %w", c.Kernel.Name, err)
		}
	}
	if err := g.provide(q, g.lowering.Scratch); err != nil {
		return fmt.Errorf("opencl: kernel %s: %w", c.Kernel.Name, err)
	}
	if g.lowering.CanFail {
		if err := g.provideFaults(q); err != nil {
			return err
		}
		g.canFail = append(g.canFail, suspect{g.size(), q})
	}
	g.order(q, len(launches), workOf(c, len(launches)), &before, true, used...)
	for i := range launches {
		g.launch(q, &launches[i], &blocks)
	}
	if of := &b.queues[q]; of.work-of.marked >= b.crossing {
		g.mark(q) // who needs this need not wait for what comes behind it
	}
	b.latest = q
	return nil
}

// findParts finds the blocks of c.Args.Parts.
func (g *group) findParts(c *device.Command) error {
	for i, p := range c.Args.Parts {
		m, err := g.b.blockIn(c, p.Buf, i)
		if err != nil {
			return err
		}
		g.parts, g.place.Parts = append(g.parts, m), append(g.place.Parts, p.Buf.Offset())
	}
	return nil
}

func (g *group) forgetParts() {
	clear(g.parts)
	g.parts = g.parts[:0]
}

// launch adds the calls of l to queue q.
func (g *group) launch(q queueIndex, l *clc.Launch, blocks *[device.MaxOperands]*block) {
	const wordBytes = unsafe.Sizeof(cl.Mem(0))
	b := g.b
	kernel, of := uintptr(b.kernels[l.Source.ID].of[q]), &b.queues[q]
	for i, a := range l.Args {
		var word uintptr
		switch a.Kind {
		case clc.Buf:
			word = blocks[a.Index].slab.address
		case clc.Scratch:
			word = of.scratch[a.Index].address
		case clc.Part:
			word = g.parts[a.Index].slab.address
		case clc.Fault:
			word = of.faults.address
		}
		g.add(cl.SetKernelArg, kernel, uintptr(i), wordBytes, word)
	}
	if len(l.Params) > 0 {
		g.add(cl.SetKernelArg, kernel, uintptr(len(l.Args)), uintptr(8*len(l.Params)), uintptr(unsafe.Pointer(unsafe.SliceData(l.Params))))
	}
	sizes, address := g.arena.Words(2)
	sizes[0], sizes[1] = uint64(l.Groups)*uint64(l.Local), uint64(l.Local)
	g.add(cl.EnqueueNDRangeKernel, g.enter(q), kernel, 1, 0, address, address+8, 0, 0, 0)
}

// provide makes the scratch buffers of queue q at least as large as asked for.
func (g *group) provide(q queueIndex, sizes []int64) error {
	b := g.b
	of := &b.queues[q]
	for i, bytes := range sizes {
		if i == len(of.scratch) {
			of.scratch = append(of.scratch, scratch{slab: new(slab)})
		}
		s := &of.scratch[i]
		if s.bytes >= bytes && s.mem != 0 {
			continue
		}
		bytes = max(bytes+bytes/4, 1<<16)
		larger := new(slab)
		if err := larger.createOrTrim(b, bytes); err != nil {
			return err
		}
		if s.mem != 0 {
			// Launches that are not enqueued yet are given it. The driver keeps it while they use it.
			g.addOwnerless(cl.ReleaseMemObject, uintptr(s.mem))
		}
		*s = scratch{larger, bytes}
	}
	return nil
}

// provideFaults sees to it that the fault slots of g in queue q are zero when it begins, and come back.
func (g *group) provideFaults(q queueIndex) error {
	const bytes = maxCommands * clc.FaultWords * 8
	if g.faults[q] != nil {
		return nil
	}
	if g.faults[q] = g.b.stagings[down].take(bytes); g.faults[q] == nil {
		return errNoRoom
	}
	_, zero := g.arena.Words(1)
	// The queue runs in order: the slots of the group before are on their way to the host.
	g.addOwnerless(cl.EnqueueFillBuffer, g.enter(q), uintptr(g.b.queues[q].faults.mem), zero, 8, 0, bytes, 0, 0, 0)
	return nil
}

// errNoRoom says that host memory for copies is in use. It comes back when groups are done.
var errNoRoom = errors.New("no room for copies")

// host returns n bytes of host memory that queue q can use, which is up or down, and which is g's until it is done.
func (g *group) host(q queueIndex, n int) ([]byte, error) {
	b := g.b
	if n <= stagingMost {
		if p := b.stagings[q].take(n); p != nil {
			return p, nil
		}
		return nil, errNoRoom
	}
	if b.pinned > 0 && b.pinned+int64(n) > pinnedMost {
		return nil, errNoRoom
	}
	p, err := b.pin(int64(n))
	if errors.Is(err, device.ErrOutOfMemory) && b.pinned > 0 {
		return nil, errNoRoom
	}
	if err != nil {
		return nil, err
	}
	b.pinned += int64(n)
	g.large = append(g.large, p)
	return p.bytes, nil
}

// upload adds an Upload.
func (g *group) upload(c *device.Command) error {
	m, at, bytes, err := g.b.deviceSide(c, 0)
	if err != nil {
		return err
	}
	from, err := hostBytes(c, 1, c.Kernel.Out)
	if err != nil || bytes == 0 {
		return err
	}
	if g.b.isLandingIn(g, from) {
		return errLanding
	}
	staged, err := g.host(up, len(from))
	if err != nil {
		return err
	}
	copy(staged, from)
	g.save(m)
	before := g.b.needsOf(true, m)
	g.order(up, 1, workOf(c, 1), &before, true, m)
	g.add(cl.EnqueueWriteBuffer, g.enter(up), uintptr(m.slab.mem), 0, uintptr(at), uintptr(bytes), addressOf(staged), 0, 0, 0)
	return nil
}

// errLanding says that an Upload is of what a Download before it has not brought yet.
var errLanding = errors.New("it is still being copied from the device")

// isLandingIn reports whether a download that is not done, in g or before, goes to a part of p.
func (b *Backend) isLandingIn(g *group, p []byte) bool {
	overlaps := func(g *group) bool {
		for _, l := range g.landings {
			if addressOf(l.to) < addressOf(p)+uintptr(len(p)) && addressOf(p) < addressOf(l.to)+uintptr(len(l.to)) {
				return true
			}
		}
		return false
	}
	for _, earlier := range b.groups {
		if overlaps(earlier) {
			return true
		}
	}
	return overlaps(g)
}

// deviceSide is operand i of a copy: its block, where it begins in the memory object, and how many bytes it has.
func (b *Backend) deviceSide(c *device.Command, i int) (m *block, at, bytes int64, err error) {
	if m, err = b.blockOf(c, i); err != nil {
		return nil, 0, 0, err
	}
	if at, bytes, err = contiguous(c, i, c.Kernel.Out); err != nil {
		return nil, 0, 0, err
	}
	return m, at + c.Buf[i].Offset(), bytes, nil
}

// seal adds what comes behind the commands: reads, the fault slots, marks and flushes.
func (g *group) seal() {
	g.finishReads()
	for i, slots := range g.faults {
		if slots != nil {
			q := queueIndex(i)
			g.addOwnerless(cl.EnqueueReadBuffer, g.enter(q), uintptr(g.b.queues[q].faults.mem), 0, 0, uintptr(len(slots)), addressOf(slots), 0, 0, 0)
		}
	}
	for q := range g.b.queues {
		if g.isUsed[q] {
			g.mark(queueIndex(q))
		}
	}
	for q := range g.b.queues {
		if g.isMarked[q] {
			g.addOwnerless(cl.Flush, uintptr(g.b.queues[q].handle))
		}
	}
	for i := range g.taken {
		g.taken[i] = g.b.stagings[i].head
	}
}

// run makes the calls. What fails is noted with the command that it belongs to. An error says that the device is lost.
func (g *group) run() error {
	for i := 0; i < g.batch.Len(); {
		stopped, err := g.batch.Run(i)
		if err == nil {
			return nil
		}
		if errors.Is(err, device.ErrLost) {
			return err
		}
		if i, err = g.mishap(stopped, err); err != nil {
			return err
		}
	}
	return nil
}

// mishap is for a call that has failed. It returns the call to go on with, or an error that says
// that the device is lost.
func (g *group) mishap(call int, err error) (next int, lost error) {
	if errors.Is(err, device.ErrOutOfMemory) && g.retried != call {
		g.retried = call
		if g.b.memory.Trim() > 0 {
			return call, nil
		}
	}
	switch owner, f := g.owners[call], g.batch.Fn(call); {
	case f == cl.EnqueueBarrierWithWaitList:
		// The queue can't be told to wait for others, so we do: others rely on it that it has waited.
		return call + 1, g.b.finish()
	case owner <= jointly:
		return g.behind(call), g.readInstead(&g.reads.joint[jointly-owner])
	case owner != ownerless:
		g.fail(owner, fmt.Errorf("opencl: %w", err))
		return g.behind(call), nil
	case f == cl.EnqueueFillBuffer || f == cl.EnqueueReadBuffer:
		g.faultsErr = fmt.Errorf("opencl: whether it has failed is not known: %w", err)
	case f == cl.EnqueueMarkerWithWaitList:
		// Instead of an event there is nothing to wait for.
		g.skipWaits(call+1, g.batch.Arg(call, 3))
		return call + 1, g.b.finish()
	case f == cl.Flush:
		return call + 1, g.b.finish()
	}
	return call + 1, nil
}

// behind is the first call behind the given one that belongs to something else.
func (g *group) behind(call int) (next int) {
	for next = call + 1; next < len(g.owners) && g.owners[next] == g.owners[call]; next++ {
	}
	return next
}

// finish waits until all queues are empty. An error says that the device is lost. Of b, it reads
// only what never changes: attend does not hold b.mu.
func (b *Backend) finish() error {
	for i := range b.queues {
		// One may wait for another.
		if err := b.driver.Flush(b.queues[i].handle); err != nil {
			return err
		}
	}
	for i := range b.queues {
		if err := b.driver.Finish(b.queues[i].handle); err != nil {
			return err
		}
	}
	return nil
}

// skipWaits replaces the calls from one on that wait for the event at address, which does not
// exist, by calls that do nothing.
func (g *group) skipWaits(from int, address uintptr) {
	for i := from; i < g.batch.Len(); i++ {
		if g.batch.Fn(i) == cl.EnqueueBarrierWithWaitList && g.batch.Arg(i, 2) == address {
			g.batch.Set(i, cl.Flush, g.batch.Arg(i, 0))
		}
	}
}
