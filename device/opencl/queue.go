package opencl

import (
	"fmt"
	"os"
	"strconv"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/internal/cl"
)

// A queueIndex names one of a device's queues. Each runs what is in it in order; nothing but waits
// that are enqueued orders what is in different ones.
type queueIndex int

const (
	up      queueIndex = iota // Upload
	down                      // Download
	compute                   // all else, in this one and those behind it
)

const (
	// that compute. More were no faster for four kernels on two units (BenchmarkQueues), and fewer
	// are too few for four units
	defaultQueues = 4
	mostQueues    = 8
	maxQueues     = int(compute) + mostQueues
)

// computeQueues is how many queues for kernels the environment asks for.
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

// A queue counts what is in it: the position of a command is how many there are, up to it.
type queue struct {
	handle    cl.Queue
	enqueued  uint64            // positions, also of what is still in the batch of a group
	completed uint64            // up to here all have ended
	work      uint64            // of what is enqueued, see workOf
	worked    uint64            // of what has ended
	marked    uint64            // of what is in front of the last mark
	waits     [maxQueues]uint64 // for those up to here of other queues it waits already
	marks     []mark            // behind positions that are not known to have ended, in order
	scratch   []scratch         // of one that computes
	faults    slab              // the slots of a group's commands in it
}

// release gives up what q has. Nothing is running.
func (q *queue) release(b *Backend) {
	for _, s := range q.scratch {
		s.release(b)
	}
	q.faults.release(b)
	if q.handle != 0 {
		q.handle.Release(b.driver)
	}
}

// A point is a command in a queue: its position, and the work up to its end.
type point struct{ position, work uint64 }

// A mark is an event behind a point. The driver writes the event into a word when the batch runs,
// where waits in the same batch read it.
type mark struct {
	point
	event   []uint64 // the word; 0: it could not be made, and the queue was waited for instead
	address uintptr
}

type queueMark struct {
	queue queueIndex
	mark
}

// after has queue q of g wait for position p of another one.
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

// markFor returns the first mark of queue q behind position p, which has not ended.
func (g *group) markFor(q queueIndex, p uint64) mark {
	for _, m := range g.b.queues[q].marks {
		if m.position >= p {
			return m
		}
	}
	return g.mark(q)
}

// mark puts a mark behind what is in queue q.
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

// needs are the last points of some queues that a command may not overtake.
type needs struct {
	queues uint32 // bit by bit, those that there is a point of
	last   [maxQueues]point
}

func (n *needs) has(q queueIndex) bool { return n.queues>>q&1 != 0 }

// add adds a point.
func (n *needs) add(q queueIndex, p point) {
	if !n.has(q) || n.last[q].position < p.position {
		n.queues |= 1 << q
		n.last[q] = p
	}
}

// needsOf collects what a command has to wait for that uses the blocks, of which it changes the
// first if isChanged says so: who has changed them, and, if it changes one, who reads that.
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

// need adds a point, unless it is known to have ended.
func (b *Backend) need(n *needs, q queueIndex, p point) {
	if p.position > b.queues[q].completed {
		n.add(q, p)
	}
}

// order has the command that is about to take the next positions of queue q, so many, wait for
// those in other queues that it may not overtake, and notes that it uses the blocks, of which it
// changes the first if isChanged says so.
func (g *group) order(q queueIndex, positions int, work uint64, before *needs, isChanged bool, blocks ...*block) {
	for other := range g.b.queues {
		if other := queueIndex(other); other != q && before.has(other) {
			g.after(q, other, before.last[other].position)
		}
	}
	of := &g.b.queues[q]
	if work >= g.b.crossing && g.isUsed[q] {
		g.mark(q) // who needs what is in front of it need not wait for so much
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

// enter counts one command more in queue q, and returns the queue.
func (g *group) enter(q queueIndex) uintptr {
	of := &g.b.queues[q]
	of.enqueued++
	g.isUsed[q] = true
	return uintptr(of.handle)
}

// Work is counted in elements of an elementwise command. How long these take differs from device to
// device; all that is decided by it is in which queue a command waits.
const (
	launchWork = 1 << 16 // what a launch takes besides
	// what a queue could do until it has noticed that another one has come to an event, and what the
	// event takes
	crossing = 1 << 20
	fmaWork  = 32 // multiplications that take as long as an element
)

// workOf estimates the work of a command that is enqueued as so many.
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

// choose returns the queue, of those that compute, for a command that comes behind the given
// points: where it should begin first. It stays where the point is that is reached last, or else
// where the last command was put, unless it gains more elsewhere than an event takes. So commands
// of which each depends on the one before, and small ones, share a queue and need no events.
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

// until is the work of queue q, as far as is known, until it has done what is given.
func (b *Backend) until(work uint64, q queueIndex) uint64 {
	return work - min(work, b.queues[q].worked)
}

// begin is the work until a command can begin in queue q.
func (b *Backend) begin(q queueIndex, before *needs) uint64 {
	at := b.until(b.queues[q].work, q)
	for i := range b.queues {
		if other := queueIndex(i); other != q && before.has(other) {
			at = max(at, b.until(before.last[other].work, other)+b.crossing)
		}
	}
	return at
}
