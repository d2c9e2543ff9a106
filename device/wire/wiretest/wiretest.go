// Package wiretest is a transport for tests. Its ranks are goroutines of one process. A test decides when messages
// arrive, whether a message overtakes one of another pair of ranks, and which rank goes silent or dies.
//
// A message arrives when both ends have asked for it, or when the test says so. By the clock of a model, messages
// take the time that the test says, or none.
package wiretest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"time"

	"github.com/asyncgen/asyncgen/device/wire"
)

// A Network carries the messages of some ranks. Its methods may be called from several goroutines.
type Network struct {
	mu     sync.Mutex // guards the rest
	size   int
	links  map[[2]int]*link // by sender and receiver
	ranks  []*Transport
	rng    *rand.Rand // chooses the link of the next message; nil: each arrives at once
	held   bool
	runs   bool // the goroutine that delivers
	sent   []int
	silent map[int]int // by rank: how many messages it sends before it does nothing any more
	dies   map[int]int // by rank: how many messages it sends before the others are told that it has died

	bandwidth float64 // see Model
	latency   time.Duration
}

// A link has the messages from one rank to another that have not arrived. At most one of sends and receives has any for
// long.
type link struct {
	sends, receives []operation
	free            time.Duration   // when the last message was sent, by the clock of a model
	arrivals        []time.Duration // of messages that the receiver has not asked for
}

type operation struct {
	data []byte
	done func(error)
}

// New returns a network of n ranks.
func New(n int) *Network {
	w := &Network{size: n, links: map[[2]int]*link{}, sent: make([]int, n), silent: map[int]int{}, dies: map[int]int{}}
	for i := range n {
		w.ranks = append(w.ranks, &Transport{w: w, rank: i})
	}
	return w
}

// Rank returns the transport of a rank.
func (w *Network) Rank(i int) *Transport { return w.ranks[i] }

// Shuffle has messages arrive on a goroutine of their own, in an order between different pairs of ranks that a seed
// chooses.
func (w *Network) Shuffle(seed uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rng = rand.New(rand.NewPCG(seed, 0))
}

// Hold keeps messages from arriving until Release.
func (w *Network) Hold() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.held = true
}

// Release ends Hold.
func (w *Network) Release() {
	w.mu.Lock()
	w.held = false
	w.mu.Unlock()
	w.deliver()
}

// Model has the messages from one rank to another follow one another at a bandwidth, in bytes a second, and arrive a
// latency after that, by the clock of a model. It is called before there are messages.
func (w *Network) Model(bandwidth float64, latency time.Duration) {
	w.bandwidth, w.latency = bandwidth, latency
}

// Silence has a rank send n more messages. Then nothing arrives from it and it takes nothing: it hangs.
func (w *Network) Silence(rank, n int) { w.stop(w.silent, rank, n) }

// Kill has a rank send n more messages. Then it dies: what others wait for from it, or want it to take, ends with an
// error.
func (w *Network) Kill(rank, n int) { w.stop(w.dies, rank, n) }

func (w *Network) stop(list map[int]int, rank, n int) {
	w.mu.Lock()
	list[rank] = w.sent[rank] + n
	w.mu.Unlock()
	w.deliver()
}

// Sent returns how many messages of a rank have arrived.
func (w *Network) Sent(rank int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.sent[rank]
}

// A Transport is one rank of a Network.
type Transport struct {
	w      *Network
	rank   int
	failed error // guarded by w.mu
	closed bool  // guarded by w.mu
}

var _ wire.Transport = (*Transport)(nil)

// Rank implements wire.Transport.
func (t *Transport) Rank() int { return t.rank }

// Size implements wire.Transport.
func (t *Transport) Size() int { return t.w.size }

// Send implements wire.Transport.
func (t *Transport) Send(to int, msg []byte, done func(error)) {
	t.add(t.rank, to, operation{msg, done}, true)
}

// Receive implements wire.Transport.
func (t *Transport) Receive(from int, buf []byte, done func(error)) {
	t.add(from, t.rank, operation{buf, done}, false)
}

// Sends and Arrives are what package wire asks a transport with times for.
func (t *Transport) Sends(to, bytes int, from time.Duration) {
	t.w.mu.Lock()
	defer t.w.mu.Unlock()
	l := t.w.link(t.rank, to)
	l.free = max(l.free, from)
	if t.w.bandwidth > 0 {
		l.free += time.Duration(float64(bytes) / t.w.bandwidth * float64(time.Second))
	}
	l.arrivals = append(l.arrivals, l.free+t.w.latency)
}

func (t *Transport) Arrives(from int) (at time.Duration) {
	t.w.mu.Lock()
	defer t.w.mu.Unlock()
	l := t.w.link(from, t.rank)
	if len(l.arrivals) == 0 { // the sender has no stamps
		return 0
	}
	at, l.arrivals = l.arrivals[0], l.arrivals[1:]
	return at
}

// link returns the link of two ranks. mu is held.
func (w *Network) link(from, to int) *link {
	l := w.links[[2]int{from, to}]
	if l == nil {
		l = &link{}
		w.links[[2]int{from, to}] = l
	}
	return l
}

func (t *Transport) add(from, to int, o operation, isSend bool) {
	w := t.w
	w.mu.Lock()
	l := w.link(from, to)
	if isSend {
		l.sends = append(l.sends, o)
	} else {
		l.receives = append(l.receives, o)
	}
	w.mu.Unlock()
	w.deliver()
}

// Fail implements wire.Transport. Other ranks learn of it at once.
func (t *Transport) Fail(err error) {
	t.w.mu.Lock()
	if t.failed == nil {
		t.failed = err
	}
	t.w.mu.Unlock()
	t.w.deliver()
}

// Close implements wire.Transport. It returns the error of Fail, if there was one.
func (t *Transport) Close() error {
	t.w.mu.Lock()
	defer t.w.mu.Unlock()
	if t.closed {
		return errors.New("wiretest: closed twice")
	}
	t.closed = true
	return t.failed
}

// deliver has all that can end come to its end, now or on the network's goroutine.
func (w *Network) deliver() {
	w.mu.Lock()
	shuffles := w.rng != nil
	starts := shuffles && !w.runs
	w.runs = shuffles
	w.mu.Unlock()
	if !shuffles {
		for w.deliverOne() {
		}
	} else if starts {
		go func() {
			for w.deliverOne() {
				for range 8 { // others may have something to send, too
					runtime.Gosched()
				}
			}
		}()
	}
}

// deliverOne ends one message, or one operation that fails. It reports whether there was one; if not, the goroutine
// that delivers must end.
func (w *Network) deliverOne() bool {
	w.mu.Lock()
	if ends := w.failing(); len(ends) > 0 {
		w.mu.Unlock()
		for _, end := range ends {
			end()
		}
		return true
	}
	var able [][2]int
	for from := range w.size {
		for to := range w.size {
			if l := w.links[[2]int{from, to}]; l != nil && len(l.sends) > 0 && len(l.receives) > 0 && !w.held && !w.hangs(from) && !w.hangs(to) {
				able = append(able, [2]int{from, to})
			}
		}
	}
	if len(able) == 0 {
		w.runs = false
		w.mu.Unlock()
		return false
	}
	at := able[0]
	if w.rng != nil {
		at = able[w.rng.IntN(len(able))]
	}
	l := w.links[at]
	s, r := l.sends[0], l.receives[0]
	l.sends, l.receives = l.sends[1:], l.receives[1:]
	w.sent[at[0]]++
	var err error
	if len(s.data) != len(r.data) {
		err = fmt.Errorf("wiretest: a message of %d bytes from rank %d, where rank %d wants %d", len(s.data), at[0], at[1], len(r.data))
	} else {
		copy(r.data, s.data) // with mu held: nothing is copied once Fail has returned
	}
	w.mu.Unlock()
	s.done(nil)
	r.done(err)
	return true
}

// hangs reports whether a rank does nothing any more. mu is held.
func (w *Network) hangs(rank int) bool {
	n, ok := w.silent[rank]
	return ok && w.sent[rank] >= n
}

// isDead reports whether a rank has died. mu is held.
func (w *Network) isDead(rank int) bool {
	n, ok := w.dies[rank]
	return ok && w.sent[rank] >= n
}

// failing takes away the operations of ranks that have failed, and with ranks that are gone. It returns functions that
// end them. mu is held.
func (w *Network) failing() (ends []func()) {
	for at, l := range w.links {
		for _, list := range []struct {
			of         *[]operation
			mine, peer int
		}{{&l.sends, at[0], at[1]}, {&l.receives, at[1], at[0]}} {
			err := w.ranks[list.mine].failed
			if err == nil && (w.ranks[list.peer].failed != nil || w.isDead(list.peer)) {
				err = fmt.Errorf("rank %d has died", list.peer)
			}
			if err == nil && w.isDead(list.mine) {
				err = errors.New("this rank is dead")
			}
			if err == nil {
				continue
			}
			for _, o := range *list.of {
				ends = append(ends, func() { o.done(err) })
			}
			*list.of = nil
		}
	}
	return ends
}
