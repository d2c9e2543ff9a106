// Package pool lets several goroutines share the work of one loop whose results do not depend on
// how it is cut.
//
// All loops of the process share the same helpers, at most GOMAXPROCS-1 at a time. No loop waits
// for a helper: the caller of [Run] does the work that nobody helps with. A helper is a goroutine
// that has nothing else to do and calls [Help]: one of a [Lender] (see [Lend]), one that waits for a
// result (see [Look]) or, where there is no Lender, one that is started for this and ends when it
// finds no more loops. A helper that is awake begins within a fraction of a microsecond. Waking or
// starting one takes some microseconds, and some of the caller's time. So short loops are shared only
// with helpers that are awake, and none is woken while another is about to come.
package pool

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/asyncgen/asyncgen/internal/bubble"
)

// finest sets the least length of a range: grain/finest elements, half a microsecond's work. A
// helper that is awake begins after 0.55 µs, and a loop of 1.6 µs took 1.2 (BenchmarkSharedLoop of
// the engine, on two busy cores of an AMD EPYC, Zen 4).
const finest = 32

// helpers is how many goroutines help now, in all loops.
var helpers atomic.Int64

// Worth reports whether [Run] would probably share a loop over n elements. It is for callers to
// whom preparing Run costs more than asking; others need not ask.
func Worth(n, grain int) bool {
	return n > grain || n >= 2*leastRange(grain) && anyAwake()
}

// leastRange returns the least length of a range, except the last.
func leastRange(grain int) int { return max(1, grain/finest) }

// Run calls f(lo, hi) for ranges that together cover 0 to n, each once, concurrently on the calling
// goroutine and on helpers. It returns when all calls have returned.
//
// grain is how many elements make waking a helper worth its cost: 15 to 25 microseconds' work. A
// loop over more elements wakes or starts helpers. A shorter one is shared only with helpers that
// are awake. A range has at least a 32nd of grain, except the last.
//
// If a call panics, no further ranges begin, and Run panics with the same value. If several calls
// panic, it is the value of the first range.
func Run(n, grain int, f func(lo, hi int)) {
	most := runtime.GOMAXPROCS(0)
	least := leastRange(grain)
	if n <= least || most == 1 {
		if n > 0 {
			f(0, n)
		}
		return
	}
	// Several ranges for each goroutine, since some goroutines are slower than others.
	chunk := max(least, (n+4*most-1)/(4*most))
	helped := min(most, (n+chunk-1)/chunk) - 1
	l := newLoop(n, chunk, helped+1, f)
	switch wake := n > grain; {
	case !wake && !anyAwake():
		l.work(0)
	case bubble.In():
		for ; wake && helped > 0 && reserve(most); helped-- {
			go l.help()
		}
		l.work(0)
	default:
		place := l.advertise()
		l.summon(helped, most, wake)
		l.work(0)
		if place != nil {
			place.Store(nil)
		}
	}
	l.join()
}

// lookers is how many goroutines look for loops now, besides those of Lenders.
var lookers atomic.Int32

// Look calls pause on a goroutine that calls [Help] right before and right after that, and otherwise waits for
// something. Meanwhile short loops expect it.
func Look(pause func()) {
	lookers.Add(1)
	pause()
	lookers.Add(-1)
}

// open has the loops that helpers may join.
var open [8]atomic.Pointer[loop]

// advertise lets Help find l until nil is stored in the place that it returns. If open is full it returns nil.
func (l *loop) advertise() *atomic.Pointer[loop] {
	for i := range open {
		if open[i].Load() == nil && open[i].CompareAndSwap(nil, l) {
			return &open[i]
		}
	}
	return nil
}

// find returns a loop that has ranges left, or nil.
func find() *loop {
	for i := range open {
		if l := open[i].Load(); l != nil && l.isLeft() {
			return l
		}
	}
	return nil
}

// Wanted reports whether Help would probably find a loop. A goroutine that is about to sleep first lets others see that
// they have to wake it, and then asks once more. So it misses no loop.
func Wanted() bool { return find() != nil && helpers.Load() < int64(runtime.GOMAXPROCS(0)-1) }

// Help joins a loop that has ranges left, and returns when there are none. It reports whether there was such a loop.
// It must not be called in a bubble of testing/synctest.
func Help() bool {
	l := find()
	if l == nil || !reserve(runtime.GOMAXPROCS(0)) {
		return false
	}
	l.help()
	return true
}

// reserve counts one more helper, unless there are most-1.
func reserve(most int) bool {
	if helpers.Add(1) > int64(most-1) {
		helpers.Add(-1)
		return false
	}
	return true
}

// summon gets so many helpers for l, which is in open. It counts those that are about to look there anyway. If wake is
// set, it may wake or start more.
func (l *loop) summon(helped, most int, wake bool) {
	helped = min(helped, most-1-int(helpers.Load())) - int(lookers.Load())
	all := allLenders()
	for ; helped > 0 && wakeOne(all, false); helped-- {
	}
	if !wake {
		return
	}
	for _, lender := range all {
		helped -= lender.Coming()
	}
	for ; helped > 0 && wakeOne(all, true); helped-- {
	}
	for ; helped > 0 && len(all) == 0 && reserve(most); helped-- {
		go func() {
			for l.help(); Help(); {
			}
		}()
	}
}

// A Lender has goroutines that are idle now and then. Its methods do not wait.
type Lender interface {
	// Wake makes an idle goroutine call Help soon: one that is awake or, if asleep is set, one that sleeps. It
	// reports whether there is such a goroutine.
	Wake(asleep bool) bool
	// Awake reports whether Wake would probably find a goroutine that is awake.
	Awake() bool
	// Coming returns how many goroutines are awake without work, are not to be woken, and will call Help before they
	// sleep.
	Coming() int
}

var (
	lending sync.Mutex // held while lenders is replaced
	lenders atomic.Pointer[[]Lender]
)

// Lend offers the idle goroutines of l as helpers. Waking them is faster than starting new
// goroutines, and may be the only way to use the processors that they occupy while idle. Run calls
// l.Wake for each helper that it wants. The methods of l may be called until end has returned and
// the calls that had begun by then have returned.
func Lend(l Lender) (end func()) {
	change(func(all []Lender) []Lender { return append(all, l) })
	return func() {
		change(func(all []Lender) []Lender {
			return slices.DeleteFunc(all, func(have Lender) bool { return have == l })
		})
	}
}

func change(f func([]Lender) []Lender) {
	lending.Lock()
	defer lending.Unlock()
	all := f(slices.Clone(allLenders()))
	lenders.Store(&all)
}

func allLenders() []Lender {
	if all := lenders.Load(); all != nil {
		return *all
	}
	return nil
}

func anyAwake() bool {
	return lookers.Load() > 0 || slices.ContainsFunc(allLenders(), func(l Lender) bool { return l.Awake() || l.Coming() > 0 })
}

// wakeOne wakes a goroutine of a Lender, and reports whether there is one.
func wakeOne(all []Lender, asleep bool) bool {
	return slices.ContainsFunc(all, func(l Lender) bool { return l.Wake(asleep) })
}

// A loop is one call of Run. Its ranges are cut into equal shares, one for each goroutine that may work on it: the
// caller has the first, helpers the others in the order in which they come. So in loops over the same elements, one
// after the other, two goroutines have the same elements each time, which their processors' caches still hold. A
// goroutine takes the ranges of its share from the front. Then it takes from the back of the largest share.
//
// The low 30 bits of state count the helpers that have not left. Bit over says that helpers that
// come now are too late. Bit parked says that the caller sleeps until there are no helpers.
type loop struct {
	n, chunk int
	f        func(lo, hi int)
	shares   []share
	few      [4]share // shares, if there are no more
	joined   atomic.Int32
	state    atomic.Uint32
	finished chan struct{} // receives a token when the last helper has left; made before parked is set

	mu       sync.Mutex // guards what follows
	panicked bool
	panicAt  int // lo of the first range that panicked
	value    any
}

const (
	over   uint32 = 1 << 31
	parked uint32 = 1 << 30
)

func newLoop(n, chunk, shares int, f func(lo, hi int)) *loop {
	l := &loop{n: n, chunk: chunk, f: f}
	if l.shares = l.few[:]; shares > len(l.few) {
		l.shares = make([]share, shares)
	}
	l.shares = l.shares[:shares]
	ranges := (n + chunk - 1) / chunk
	for i := range l.shares {
		l.shares[i].set(ranges*i/shares, ranges*(i+1)/shares)
	}
	return l
}

// A share is ranges that nobody has begun, by their numbers: the first in the low half, the end in the high one.
type share struct{ atomic.Uint64 }

func (s *share) set(lo, hi int) { s.Store(uint64(hi)<<32 | uint64(lo)) }

func (s *share) len() int {
	v := s.Load()
	return max(0, int(v>>32)-int(uint32(v)))
}

// take takes the first range, or the last one. ok is false if there is none.
func (s *share) take(last bool) (i int, ok bool) {
	for {
		v := s.Load()
		lo, hi := uint32(v), uint32(v>>32)
		if lo >= hi {
			return 0, false
		}
		i, next := lo, v+1
		if last {
			i, next = hi-1, v-1<<32
		}
		if s.CompareAndSwap(v, next) {
			return int(i), true
		}
	}
}

// largest returns the share with the most ranges.
func (l *loop) largest() *share {
	largest := &l.shares[0]
	for i := range l.shares[1:] {
		if s := &l.shares[1+i]; s.len() > largest.len() {
			largest = s
		}
	}
	return largest
}

func (l *loop) isLeft() bool { return l.largest().len() > 0 }

func (l *loop) help() {
	defer helpers.Add(-1)
	defer l.leave()
	if l.state.Add(1)&over == 0 {
		l.work(int(l.joined.Add(1)))
	}
}

// leave counts a helper out, whether it came in time or not. The last one wakes a parked caller.
func (l *loop) leave() {
	if l.state.Add(^uint32(0)) == over|parked {
		select {
		case l.finished <- struct{}{}:
		default: // the token is there: after the count reached 0, a late helper came and left
		}
	}
}

// work runs ranges until none is left: those of a share, then others.
func (l *loop) work(own int) {
	for own < len(l.shares) {
		i, ok := l.shares[own].take(false)
		if !ok {
			break
		}
		l.run(i)
	}
	for l.isLeft() {
		if i, ok := l.largest().take(true); ok {
			l.run(i)
		}
	}
}

// run runs range i.
func (l *loop) run(i int) { l.call(i*l.chunk, min((i+1)*l.chunk, l.n)) }

func (l *loop) call(lo, hi int) {
	isPanicking := true
	defer func() {
		if !isPanicking {
			return
		}
		value := recover()
		for i := range l.shares {
			l.shares[i].Store(0)
		}
		l.mu.Lock()
		if !l.panicked || lo < l.panicAt {
			l.panicked, l.panicAt, l.value = true, lo, value
		}
		l.mu.Unlock()
	}()
	l.f(lo, hi)
	isPanicking = false
}

// join waits for the helpers that have begun: first awake, since helpers that have a processor are
// about to finish, then asleep.
func (l *loop) join() {
	l.state.Or(over)
	for i := 0; l.state.Load() != over && i < looks; i++ {
		pause(pauses)
	}
	if l.state.Load() != over {
		l.finished = make(chan struct{}, 1)
		if l.state.Or(parked) != over {
			<-l.finished
		}
	}
	if l.panicked {
		panic(l.value)
	}
}

// How often join checks before it sleeps, and how many PAUSE instructions it waits between checks:
// about 20 µs in total.
const (
	looks  = 250
	pauses = 4
)
