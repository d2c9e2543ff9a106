package opencl

import "github.com/asyncgen/asyncgen/device/internal/cl"

// A queueKind names one of a device's queues. Each runs what is in it in order; nothing but waits that are enqueued orders
// what is in different ones.
type queueKind int

const (
	compute queueKind = iota
	up                // Upload
	down              // Download
	numQueues
)

// A queue counts what is in it: the position of a command is how many there are, up to it.
type queue struct {
	handle    cl.Queue
	enqueued  uint64            // positions, also of what is still in the batch of a group
	completed uint64            // up to here all have ended
	waits     [numQueues]uint64 // for those up to here of other queues it waits already
	marks     []mark            // behind positions that are not known to have ended, in order
}

// A mark is an event behind a position. The driver writes the event into a word when the batch runs,
// where waits in the same batch read it.
type mark struct {
	position uint64
	event    []uint64 // the word; 0: it could not be made, and the queue was waited for instead
	address  uintptr
}

// after has queue q of g wait for position p of another one.
func (g *group) after(q, other queueKind, p uint64) {
	queues := &g.b.queues
	of := &queues[other]
	if p <= of.completed || p <= queues[q].waits[other] {
		return
	}
	m := g.markFor(other, p)
	queues[q].waits[other] = m.position
	g.add(cl.EnqueueBarrierWithWaitList, uintptr(queues[q].handle), 1, m.address, 0)
	g.isUsed[q] = true
}

// markFor returns the first mark of queue q behind position p, which has not ended.
func (g *group) markFor(q queueKind, p uint64) mark {
	for _, m := range g.b.queues[q].marks {
		if m.position >= p {
			return m
		}
	}
	return g.mark(q)
}

// mark puts a mark behind what is in queue q.
func (g *group) mark(q queueKind) mark {
	of := &g.b.queues[q]
	event, address := g.arena.Words(1)
	m := mark{of.enqueued, event, address}
	of.marks = append(of.marks, m)
	g.marks = append(g.marks, queueMark{q, m})
	g.isMarked[q], g.isUsed[q] = true, false
	g.addOwnerless(cl.EnqueueMarkerWithWaitList, uintptr(of.handle), 0, 0, address)
	return m
}

type queueMark struct {
	queue queueKind
	mark
}

// order has the command that is about to take the next n positions of queue q wait for those in other queues that it may not
// overtake, and notes that it uses the blocks, of which it changes the first if isChanged says so.
func (g *group) order(q queueKind, n int, isChanged bool, blocks ...*block) {
	position := g.b.queues[q].enqueued + uint64(n)
	for i, m := range blocks {
		changes := i == 0 && isChanged
		for other := range numQueues {
			// Nothing is changed by a download.
			if other != q && m.used[other] > 0 && (changes || other != down) {
				g.after(q, other, m.used[other])
			}
		}
		m.used[q] = position
	}
}

// enter counts one command more in queue q, and returns the queue.
func (g *group) enter(q queueKind) uintptr {
	of := &g.b.queues[q]
	of.enqueued++
	g.isUsed[q] = true
	return uintptr(of.handle)
}
