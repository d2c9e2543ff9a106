package opencl

import (
	"fmt"
	"os"
	"strconv"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/internal/cl"
)

// A queueIndex names one of a device's queues. Commands in a queue run in order. Commands in
// different queues are ordered only by the waits that are enqueued.
type queueIndex int

const (
	up      queueIndex = iota // Upload
	down                      // Download
	compute                   // everything else, in this queue and those after it
)

const (
	// The number of compute queues. More were no faster for four kernels on two units
	// (BenchmarkQueues), and fewer are too few for four units.
	defaultQueues = 4
	mostQueues    = 8
	maxQueues     = int(compute) + mostQueues
)

// computeQueues returns how many compute queues the environment asks for.
func computeQueues() (int, error) {
	text := os.Getenv("ASYNCGEN_OPENCL_QUEUES")
	if text == "" {
		return defaultQueues, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > mostQueues {
		return 0, fmt.Errorf("ASYNCGEN_OPENCL_QUEUES=%s: 1 to %d are possible", text, mostQueues)
	}
	return n, nil
}

// A queue counts the commands put into it, and their work (see workOf). The position of a command
// is its number in the queue, from 1.
type queue struct {
	handle    cl.Queue
	enqueued  uint64            // the last position, including commands still in the batch of a group
	completed uint64            // all commands up to this position are known to have ended
	work      uint64            // of all commands up to enqueued
	worked    uint64            // of those known to have ended
	marked    uint64            // of those in front of the last mark
	waits     [maxQueues]uint64 // by other queue: the position there up to which this queue already waits
	marks     []mark            // those not known to be reached, in order
	scratch   []scratch         // of a compute queue
	faults    slab              // of a compute queue: fault slots, one for each command of a group
}

func (q *queue) release(b *Backend) {
	for _, s := range q.scratch {
		s.release(b)
	}
	q.faults.release(b)
	if q.handle != 0 {
		q.handle.Release(b.driver)
	}
}

// A point is the end of a command in a queue: its position, and the work of the queue up to it.
type point struct{ position, work uint64 }

// A mark is an event behind a point. The driver writes the event to a word when the batch runs;
// waits in the same batch read it from there.
type mark struct {
	point
	event   []uint64 // the word; 0: the event could not be created, and the queues were drained instead
	address uintptr
}

type queueMark struct {
	queue queueIndex
	mark
}

// after makes queue q wait for position p of another queue.
func (g *group) after(q, other queueIndex, p uint64) {
	queues := g.b.queues
	if p <= queues[q].waits[other] {
		return
	}
	m := g.markFor(other, p)
	queues[q].waits[other] = m.position
	g.add(cl.EnqueueBarrierWithWaitList, uintptr(queues[q].handle), 1, m.address, 0)
	g.isUsed[q] = true
}

// markFor returns the first mark of queue q at or behind position p, and adds one if there is none.
// Position p is not known to have ended.
func (g *group) markFor(q queueIndex, p uint64) mark {
	for _, m := range g.b.queues[q].marks {
		if m.position >= p {
			return m
		}
	}
	return g.mark(q)
}

// mark puts a mark behind the last command of queue q.
func (g *group) mark(q queueIndex) mark {
	of := &g.b.queues[q]
	event, address := g.arena.Words(1)
	m := mark{point{of.enqueued, of.work}, event, address}
	of.marks, of.marked = append(of.marks, m), of.work
	g.marks = append(g.marks, queueMark{q, m})
	g.isMarked[q], g.isUsed[q] = true, false
	g.addOwnerless(cl.EnqueueMarkerWithWaitList, uintptr(of.handle), 0, 0, address)
	return m
}

// needs are the points that a command must wait for: at most one in each queue, the last.
type needs struct {
	queues uint32 // a bit for each queue that has a point
	last   [maxQueues]point
}

func (n *needs) has(q queueIndex) bool { return n.queues>>q&1 != 0 }

func (n *needs) add(q queueIndex, p point) {
	if !n.has(q) || n.last[q].position < p.position {
		n.queues |= 1 << q
		n.last[q] = p
	}
}

// needsOf returns what a command that uses the blocks must wait for: their last writers and, if
// isChanged is set, the readers of blocks[0], which the command overwrites.
func (b *Backend) needsOf(isChanged bool, blocks ...*block) (n needs) {
	for i, m := range blocks {
		b.need(&n, m.writer, m.written)
		if i > 0 || !isChanged {
			continue
		}
		for q := range b.queues {
			if q := queueIndex(q); m.readers>>q&1 != 0 {
				b.need(&n, q, m.read[q])
			}
		}
	}
	return n
}

// need adds a point to n, unless it is known to have ended.
func (b *Backend) need(n *needs, q queueIndex, p point) {
	if p.position > b.queues[q].completed {
		n.add(q, p)
	}
}

// order prepares a command that takes the next positions of queue q, as many as given. The command
// waits for the points of before in other queues. order notes that the command uses the blocks, and
// that it overwrites blocks[0] if isChanged is set.
func (g *group) order(q queueIndex, positions int, work uint64, before *needs, isChanged bool, blocks ...*block) {
	for other := range g.b.queues {
		if other := queueIndex(other); other != q && before.has(other) {
			g.after(q, other, before.last[other].position)
		}
	}
	of := &g.b.queues[q]
	if work >= g.b.crossing && g.isUsed[q] {
		g.mark(q) // commands that need earlier results need not wait for this large one
	}
	of.work += work
	at := point{of.enqueued + uint64(positions), of.work}
	for i, m := range blocks {
		if i > 0 || !isChanged {
			m.readers |= 1 << q
			m.read[q] = at
		}
	}
	if isChanged {
		m := blocks[0]
		m.readers, m.writer, m.written = 0, q, at
	}
}

// enter counts one more command in queue q, and returns the queue's handle.
func (g *group) enter(q queueIndex) uintptr {
	of := &g.b.queues[q]
	of.enqueued++
	g.isUsed[q] = true
	return uintptr(of.handle)
}

// Work is counted in elements of an elementwise command. The time of an element differs from device
// to device, but work only decides in which queue a command waits.
const (
	launchWork = 1 << 16 // what a launch costs in addition to its elements
	// crossing is the cost of an event between queues: making it, and the time until the waiting
	// queue notices it.
	crossing = 1 << 20
	fmaWork  = 32 // so many multiplications cost as much as one element
)

// workOf estimates the work of a command that is made of the given number of launches.
func workOf(c *device.Command, launches int) uint64 {
	n := max(c.N, 0)
	if args := c.Args; args != nil {
		switch c.Kernel.Code {
		case device.MatMul:
			n += n / fmaWork * args.Ints[2]
		case device.Conv:
			n += n / fmaWork * args.Ints[0] * args.Window[0].Size * args.Window[1].Size
		default:
			n = max(n, args.Shape.Size())
		}
	}
	return uint64(n + launches*launchWork)
}

// choose returns the compute queue in which a command with the given needs can begin first. By
// default that is the queue of the need that is reached last, or b.latest if there are no needs.
// Another queue is chosen only if the command begins there earlier by more than an event costs. So
// chains of dependent commands, and small commands, share a queue and need no events.
func (b *Backend) choose(before *needs) queueIndex {
	if len(b.queues) == int(compute)+1 {
		return compute
	}
	home, last := b.latest, uint64(0)
	for i := int(compute); i < len(b.queues); i++ {
		q := queueIndex(i)
		if before.has(q) && b.until(before.last[q].work, q) > last {
			home, last = q, b.until(before.last[q].work, q)
		}
	}
	best, soonest := home, b.begin(home, before)
	for i := int(compute); i < len(b.queues); i++ {
		if at := b.begin(queueIndex(i), before) + b.crossing; at < soonest {
			best, soonest = queueIndex(i), at
		}
	}
	return best
}

// until estimates the work that queue q still has to do until its total is work.
func (b *Backend) until(work uint64, q queueIndex) uint64 {
	return work - min(work, b.queues[q].worked)
}

// begin estimates the work until a command with the given needs can begin in queue q.
func (b *Backend) begin(q queueIndex, before *needs) uint64 {
	at := b.until(b.queues[q].work, q)
	for i := range b.queues {
		if other := queueIndex(i); other != q && before.has(other) {
			at = max(at, b.until(before.last[other].work, other)+b.crossing)
		}
	}
	return at
}
