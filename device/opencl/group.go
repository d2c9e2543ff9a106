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
	maxGroups   = 64 // in flight
)

// A group is commands that are handed to the driver in one crossing. When they are done, the group
// is cleared and used again.
type group struct {
	b     *Backend
	first uint64 // tickets first to last; last < first: no command is complete yet
	last  uint64
	batch cl.Batch
	owner int // owner of the calls that are being added, see owners
	// owners has, for each call, the command that fails if the call fails, by its number in the
	// group. ownerless: no command. jointly and below: a joint of reads.
	owners   []int
	arena    ffi.Arena
	lowering clc.Lowering
	place    clc.Place // of the command that is being added
	parts    []*block  // the blocks of its Args.Parts

	isUsed   [maxQueues]bool // by queue: something was enqueued behind the last mark
	isMarked [maxQueues]bool // by queue: the group has a mark in it
	marks    []queueMark
	landings []landing
	reads    reads
	taken    [compute]int // heads of the stagings when the group was sealed
	large    []pinned     // pinned memory for copies too large for the stagings
	// faults is, by queue, where the fault slots are copied to; nil: no command in that queue can
	// fail by itself.
	faults    [maxQueues][]byte
	canFail   []suspect
	faultsErr error // why the contents of the slots are not known
	failed    []failure
	retried   int  // the last call that was made a second time; -1: none
	isWaited  bool // attend uses the events of marks, and frees the group itself
	isRetired bool // all commands are done
}

const ownerless = -1

// A landing is data copied from the device to pinned memory, on its way to host memory.
type landing struct {
	owner    int
	to, from []byte
}

// A suspect is a command that may report a failure in its fault slot.
type suspect struct {
	owner int
	queue queueIndex
}

type failure struct {
	ticket uint64
	err    error
}

// newGroup returns an empty group for the tickets after the last one.
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

// clear empties g for its next use.
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

// size returns how many commands g has.
func (g *group) size() int { return int(g.last - g.first + 1) }

// add appends a call that belongs to g.owner.
func (g *group) add(f cl.Fn, args ...uintptr) {
	g.batch.Add(f, args...)
	g.owners = append(g.owners, g.owner)
}

func (g *group) addOwnerless(f cl.Fn, args ...uintptr) {
	g.batch.Add(f, args...)
	g.owners = append(g.owners, ownerless)
}

// fail notes that a command of g has failed. Only the first error of a command is kept.
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

// compute adds a command to a compute queue. If it returns an error, none of the command's launches
// was added.
func (g *group) compute(c *device.Command) error {
	b := g.b
	var blocks [device.MaxOperands]*block
	n := min(len(c.Kernel.In)+1, device.MaxOperands) // the others are parts
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
		g.mark(q) // commands that need this result need not wait for later commands of q
	}
	b.latest = q
	return nil
}

// findParts looks up the blocks of c.Args.Parts.
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

// launch adds the calls that set the arguments of l and enqueue it in queue q.
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

// provide makes the scratch buffers of queue q at least as large as sizes, in bytes.
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
			// Launches in the batch may still use s. The batch releases s behind them; the driver keeps
			// it until they are done.
			g.addOwnerless(cl.ReleaseMemObject, uintptr(s.mem))
		}
		*s = scratch{larger, bytes}
	}
	return nil
}

// provideFaults makes sure that the fault slots of g in queue q are zero when the group begins, and
// that they are copied to the host when it ends.
func (g *group) provideFaults(q queueIndex) error {
	const bytes = maxCommands * clc.FaultWords * 8
	if g.faults[q] != nil {
		return nil
	}
	if g.faults[q] = g.b.stagings[down].take(bytes); g.faults[q] == nil {
		return errNoRoom
	}
	_, zero := g.arena.Words(1)
	// The queue runs in order: it reads the slots of the previous group before this fills them.
	g.addOwnerless(cl.EnqueueFillBuffer, g.enter(q), uintptr(g.b.queues[q].faults.mem), zero, 8, 0, bytes, 0, 0, 0)
	return nil
}

// errNoRoom says that all host memory for copies is in use. Room comes back when groups are done.
var errNoRoom = errors.New("no room for copies")

// host returns n bytes of pinned host memory for a copy in queue q, up or down. They are g's until
// it is done.
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

// errLanding says that an Upload reads host memory that an earlier Download has yet to fill.
var errLanding = errors.New("it is still being copied from the device")

// isLandingIn reports whether a Download in flight, or in g, writes to a part of p.
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

// deviceSide returns the block of operand i of a copy, and where the operand begins in the block's
// memory object and how long it is, in bytes.
func (b *Backend) deviceSide(c *device.Command, i int) (m *block, at, bytes int64, err error) {
	if m, err = b.blockOf(c, i); err != nil {
		return nil, 0, 0, err
	}
	if at, bytes, err = contiguous(c, i, c.Kernel.Out); err != nil {
		return nil, 0, 0, err
	}
	return m, at + c.Buf[i].Offset(), bytes, nil
}

// seal adds the last calls of a group: pending reads, reads of the fault slots, marks and flushes.
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

// run makes the calls. A failed call fails the command that it belongs to. An error says that the
// device is lost.
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

// mishap handles a call that has failed. It returns the call to go on with, or an error if the
// device is lost.
func (g *group) mishap(call int, err error) (next int, lost error) {
	if errors.Is(err, device.ErrOutOfMemory) && g.retried != call {
		g.retried = call
		if g.b.memory.Trim() > 0 {
			return call, nil
		}
	}
	switch owner, f := g.owners[call], g.batch.Fn(call); {
	case f == cl.EnqueueBarrierWithWaitList:
		// The queue can't wait for the other one, so we do: later commands rely on the wait.
		return call + 1, g.b.finish()
	case owner <= jointly:
		return g.behind(call), g.readInstead(&g.reads.joint[jointly-owner])
	case owner != ownerless:
		g.fail(owner, fmt.Errorf("opencl: %w", err))
		return g.behind(call), nil
	case f == cl.EnqueueFillBuffer || f == cl.EnqueueReadBuffer:
		g.faultsErr = fmt.Errorf("opencl: whether it has failed is not known: %w", err)
	case f == cl.EnqueueMarkerWithWaitList:
		// The event does not exist. Calls that would wait for it are skipped, as we wait here.
		g.skipWaits(call+1, g.batch.Arg(call, 3))
		return call + 1, g.b.finish()
	case f == cl.Flush:
		return call + 1, g.b.finish()
	}
	return call + 1, nil
}

// behind returns the next call that has another owner.
func (g *group) behind(call int) (next int) {
	for next = call + 1; next < len(g.owners) && g.owners[next] == g.owners[call]; next++ {
	}
	return next
}

// finish waits until all queues are empty. An error says that the device is lost. It reads only
// fields of b that never change, since attend calls it without b.mu.
func (b *Backend) finish() error {
	for i := range b.queues {
		// A queue may wait for commands in a queue that is not flushed yet, so flush all first.
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

// skipWaits replaces barriers that wait for the event at address by flushes. The event could not be
// created. from is the first call to look at.
func (g *group) skipWaits(from int, address uintptr) {
	for i := from; i < g.batch.Len(); i++ {
		if g.batch.Fn(i) == cl.EnqueueBarrierWithWaitList && g.batch.Arg(i, 2) == address {
			g.batch.Set(i, cl.Flush, g.batch.Arg(i, 0))
		}
	}
}
