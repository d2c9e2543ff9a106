package engine

import (
	"context"
	"math/rand/v2"

	"github.com/asyncgen/asyncgen/device"
)

// A shuffler is the scheduler of mode Shuffle. It makes one move at a time, chosen by a seeded
// generator among those that programs must cope with: it runs an operation that is ready on a
// synchronous device, hands some operations to a device with a queue, or waits for some of those.
// There are no workers and no timers. The program's own goroutine makes the moves: where it waits or
// asks (Wait, WaitAll, Ready), where it is at a bound, and now and then where it enqueues. So for a
// program of one goroutine the seed determines the schedule.
//
// Moves drawn independently would seldom keep an operation back for long. So a mood, which lasts for
// several moves, says which of the ready operations comes first, and which stream.
type shuffler struct {
	e *Engine

	turn      turn // guards the rest, and is held while a move is made
	rng       *rand.Rand
	place     place
	favourite int // index of the stream that comes first if it has a move; negative: none
	left      int // moves left in this mood
}

// A place says which of several ready operations comes first.
type place uint8

const (
	anyone place = iota
	oldest
	newest
	places
)

// One call of Enqueue in enqueueRarity makes moves, fewer than enqueueMoves. A mood lasts for at most
// moodMoves.
const (
	enqueueRarity = 16
	enqueueMoves  = 32
	moodMoves     = 64
)

// shuffled is the executor of a stream in mode Shuffle.
type shuffled interface {
	executor
	// moves returns how many moves there are now.
	moves() int
	// move makes move number k of them. The error is the context's, the device's, or errShort.
	move(ctx context.Context, k int, p patience, h *help) error
	// has reports whether g was reached.
	has(g goal) bool
}

// newShuffler returns the scheduler of e. The seed chooses the schedule.
func newShuffler(e *Engine, seed uint64) *shuffler {
	s := &shuffler{e: e, rng: rand.New(rand.NewPCG(seed, 0))}
	s.turn.init(e.onChannels())
	return s
}

// shuffle returns the executor of st.
func (s *shuffler) shuffle(st *stream, synchronous bool) executor {
	if synchronous {
		return &shuffledFlow{flow: newFlow(st, 0), s: s}
	}
	return &shuffledQueue{queue: newQueue(st), s: s}
}

// move makes a move on some stream. It reports whether there was one.
func (s *shuffler) move(ctx context.Context, p patience, h *help) (bool, error) {
	s.turn.lock()
	defer s.turn.unlock()
	streams := s.e.allStreams()
	if s.left == 0 {
		s.left = 1 + s.rng.IntN(moodMoves)
		s.place = place(s.rng.IntN(int(places)))
		s.favourite = s.rng.IntN(2*len(streams)+1) - len(streams) - 1
	}
	var chosen shuffled
	n, some := 0, 0
	for i, st := range streams {
		x := st.exec.(shuffled)
		moves := x.moves()
		if moves == 0 {
			continue
		}
		some++
		if s.rng.IntN(some) == 0 || i == s.favourite {
			chosen, n = x, moves
		}
		if i == s.favourite {
			break
		}
	}
	if chosen == nil {
		return false, nil
	}
	s.left--
	k := 0
	switch s.place {
	case anyone:
		k = s.rng.IntN(n)
	case newest:
		k = n - 1
	}
	return true, chosen.move(ctx, k, p, h)
}

// enqueued is called after each operation that was enqueued.
func (s *shuffler) enqueued() {
	s.turn.lock()
	n := 0
	if s.rng.IntN(enqueueRarity) == 0 {
		n = s.rng.IntN(enqueueMoves)
	}
	s.turn.unlock()
	var h help
	for ; n > 0; n-- {
		if moved, err := s.move(context.Background(), forAll, &h); !moved || err != nil {
			return
		}
	}
}

// await is the await of x, the executor of a stream.
func (s *shuffler) await(ctx context.Context, x shuffled, g goal) (h help, err error) {
	p := forOthers
	if ctx == untilShort {
		p = forAll
	}
	for i := 0; !x.has(g); i++ {
		if err := ctx.Err(); err != nil {
			return h, err
		}
		if ctx == untilShort && s.e.IsShort() {
			return h, errShort
		}
		moved, err := s.move(ctx, p, &h)
		if err == errShort && ctx != untilShort {
			p, err = s.e.relief.await(ctx, p)
		} else if p = forOthers; ctx == untilShort {
			p = forAll
		}
		if err != nil {
			return h, err
		}
		if moved {
			i = 0
			continue
		}
		h.look()
		s.e.doze(i) // another goroutine is about to enqueue what is missing
		h.rest()
	}
	return h, nil
}

// helpSome is the helpSome of every executor.
func (s *shuffler) helpSome(p patience) (ops int64, some bool) {
	var h help
	moved, err := s.move(context.Background(), p, &h)
	return h.ops, moved && err == nil
}

// A shuffledFlow is a flow without workers.
type shuffledFlow struct {
	*flow
	s       *shuffler
	scratch scratch // guarded by s.turn
}

// moves counts the ready operations: each is a move. It schedules all first, so that the choice is
// among all of them.
func (f *shuffledFlow) moves() int {
	f.lock.lock()
	defer f.unlock()
	f.schedule(f.st.enqueued(), f.st.capacity()+1)
	return f.nready
}

// move executes the ready operation number k, in program order.
func (f *shuffledFlow) move(_ context.Context, k int, p patience, h *help) error {
	f.lock.lock()
	defer f.unlock()
	x := f.first
	for ; k > 0; k-- {
		x = f.st.at(x).next
	}
	f.start(x)
	held := f.step(x, &f.scratch, p)
	f.scratch.cmd[0] = device.Command{}
	f.settleLocked()
	if held {
		return errShort
	}
	h.ops++
	return nil
}

// has reports whether g is reached. It waits until the operation there was published.
func (f *shuffledFlow) has(g goal) bool {
	f.lock.lock()
	defer f.unlock()
	f.scheduleThrough(g.seq)
	return f.reached(&waiter{goal: g})
}

func (f *shuffledFlow) await(ctx context.Context, g goal) (help, error) { return f.s.await(ctx, f, g) }
func (f *shuffledFlow) helpSome(p patience) (int64, bool)               { return f.s.helpSome(p) }
func (f *shuffledFlow) poll()                                           { f.s.helpSome(forAll) }

// A shuffledQueue is a queue without goroutines. What its device has finished is noticed only when the
// shuffler makes a move.
type shuffledQueue struct {
	*queue
	s *shuffler
}

// moves counts the moves of a queue: to hand over the next operation, the next two, and so on, and to
// wait for the first operation that was handed over, the first two, and so on.
func (q *shuffledQueue) moves() int {
	submit, finish := q.choices()
	return submit + finish
}

// choices returns how many of the moves hand over, and how many wait. None hand over while the next
// operation is held up, and none wait while a gate is first whose operation has not retired.
func (q *shuffledQueue) choices() (submit, finish int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if end := q.st.enqueued(); q.submitted < end {
		if !q.st.seq(q.submitted).isHeld() {
			submit = int(min(end-q.submitted, submitBatch))
		}
	}
	if q.openGate() == nil {
		finish = q.finishable()
	}
	return submit, finish
}

// finishable returns how many operations a move may wait for. Messages of other processes may come only after a move of
// this one, so it waits for none that has not come. q.mu is held.
func (q *shuffledQueue) finishable() (n int) {
	done := q.st.done.Load()
	all := int(q.submitted - done)
	if all == 0 || !q.st.seq(done).kernel.Code.IsMessage() {
		return all
	}
	for n < all && q.st.backend.Done(q.st.seq(done+uint64(n)).ticket) {
		n++
	}
	return n
}

// move makes move number k: those that hand over come first.
func (q *shuffledQueue) move(ctx context.Context, k int, p patience, h *help) error {
	if submit, _ := q.choices(); k < submit {
		q.submitting.lock()
		q.submitSome(k+1, p)
		q.submitting.unlock()
		if q.held.Load() {
			return errShort
		}
		return nil
	} else {
		k -= submit
	}
	q.mu.Lock()
	done := q.st.done.Load()
	end := done + 1
	for end < min(done+uint64(k)+1, q.submitted) && !q.st.seq(end).isOpen() {
		end++
	}
	ticket := q.st.seq(end - 1).ticket
	last := end // one past the operation that has the ticket
	for last > done && q.st.seq(last-1).skipped {
		last--
	}
	q.mu.Unlock()
	if last > done { // else the ticket is that of an operation before done
		h.look()
		err := await(ctx, q.st.backend, ticket)
		h.rest()
		if err != nil && !q.lose(err) {
			if ctx.Err() == nil {
				err = q.notDone(last-1, err)
			}
			if err != nil {
				return err
			}
		}
	}
	q.mu.Lock()
	q.retire(end)
	q.unlock()
	return nil
}

// has reports whether g is reached: operations of a queue finish in order.
func (q *shuffledQueue) has(g goal) bool { return q.st.done.Load() > g.seq }

func (q *shuffledQueue) await(ctx context.Context, g goal) (help, error) { return q.s.await(ctx, q, g) }
func (q *shuffledQueue) helpSome(p patience) (int64, bool)               { return q.s.helpSome(p) }
func (q *shuffledQueue) poll()                                           { q.s.helpSome(forAll) }
func (q *shuffledQueue) settle()                                         {}
