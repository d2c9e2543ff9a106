package engine

import (
	"runtime"
	"sync/atomic"
	"time"
)

// A parker lets one goroutine, its owner, wait until another one wakes it. The owner sleeps in one of
// two ways, and the goroutine that wakes it need not know in which:
//
// On a channel, as goroutines usually do: the owner's thread and processor are free for others. But
// a wake is slow. The scheduler reserves a goroutine that becomes runnable for the processor that
// woke it, for 3 µs by its source, but for 60 to 70 µs with Linux's timer slack. So wake pushes the
// owner on into the queue from which others may take at once (see kick). On an idle virtual machine
// the owner then runs after 20 to 30 µs, instead of 100. If another processor is awake and looks
// before the push, it is still 70 µs.
//
// In the kernel, where there is a way (see futexes): the kernel wakes a thread in 3 to 10 µs, or 25
// if the processor was halted, on the same machine. But as in any system call the thread keeps its
// processor, even if others wait for one, until the runtime's monitor takes it away after 20 µs to
// 20 ms. So only workers sleep like that, and only as many as threads allows, and only for
// shortSleep; then they go on to the channel. With Options.Channels nobody does: testing/synctest
// knows who is blocked on a channel, but not who is blocked in the kernel.
//
// The owner announces that it is about to wait, then checks once more whether it has to, and then
// waits; so no wake is missed:
//
//	awake --announce--> looking --has a processor--> spinning --sleep--> inKernel or onChannel
//	  ^                    |                            |                   |
//	  +--wait, withdraw--woken <---------wake-----------+-------------------+
//
// From inKernel it also goes on to onChannel.
//
// An owner that can be started (see rest) sleeps on a channel for restAfter at most. Then it ends,
// and wake starts another one:
//
//	onChannel --end--> dormant --wake--> woken --begin--> awake
type parker struct {
	// state is one of the states below. The owner changes it up to onChannel and back to awake;
	// others change it to woken alone, by a claim. Where both may act at once, each uses a
	// compare-and-swap, so they agree on who was first.
	state   atomic.Uint32
	threads *threads // nil: never asleep in the kernel
	// c gets a token to wake the owner, one for each claim of onChannel. It is made when the owner
	// first sleeps there.
	c chan struct{}
	// start starts an owner; nil: the owner never ends by itself. Who has claimed the state dormant
	// calls it.
	start func()
	// timer is for restAfter. It is made when an owner that can be started first sleeps on a
	// channel.
	timer *time.Timer
}

const (
	// Nobody may wake the owner from awake and woken; from all others a claim may.
	awake uint32 = iota
	looking
	spinning
	inKernel
	onChannel
	woken
	dormant // nobody is the owner
)

// shortSleep is how long a worker sleeps in the kernel at most. A step of training with products of
// 10 to 20 ms took 77 ms without a bound, and 63 to 65 ms with a bound of 0.5 to 2.5 ms
// (BenchmarkPerceptronStep of package optim, on two cores).
const shortSleep = 2500 * time.Microsecond

// restAfter is how long a goroutine without work stays. It is short enough that a program that is
// done with tensors passes checks for leaked goroutines (goleak gives up after half a second). A
// program that goes on loses nothing: to start a goroutine takes as long as to wake one.
const restAfter = 50 * time.Millisecond

// init readies p. t nil: the owner never sleeps in the kernel.
func (p *parker) init(t *threads) {
	p.threads = t
}

// rest makes p the parker of an owner that start starts when somebody wakes it, and that ends when it
// has slept for restAfter.
func (p *parker) rest(start func()) {
	p.start = start
	p.state.Store(dormant)
}

// begin is called first by an owner that was started.
func (p *parker) begin() { p.state.Store(awake) }

// tired returns a channel that fires after restAfter; nil if the owner can't be started.
func (p *parker) tired() <-chan time.Time {
	switch {
	case p.start == nil:
		return nil
	case p.timer == nil:
		p.timer = time.NewTimer(restAfter)
	default:
		p.timer.Reset(restAfter)
	}
	return p.timer.C
}

// announce is the owner's first step to sleep. From now on wake wakes it.
func (p *parker) announce() { p.state.Store(looking) }

// withdraw undoes announce. It reports false if somebody has woken the owner in between.
func (p *parker) withdraw() bool {
	ok := p.state.CompareAndSwap(looking, awake)
	p.state.Store(awake)
	return ok
}

// wait returns true when the owner is woken. It returns false when done is closed, or when the owner
// must end because it has slept for restAfter; then p may have another owner by now. The owner has
// called announce. Before it sleeps it looks the given number of times whether it was woken. First
// of all it yields, since goroutines that it has woken may wait for its processor.
func (p *parker) wait(looks int, done <-chan struct{}) (wasWoken bool) {
	runtime.Gosched()
	from := looking
	if looks > 0 && p.state.CompareAndSwap(looking, spinning) {
		from = spinning
		for i := looks * pauses / 4; i > 0 && p.state.Load() == spinning; i-- {
			// shorter pauses than elsewhere: a look costs one load, and loops that take half a
			// microsecond wait for help (see pool.Run)
			pause(4)
		}
	}
	if done == nil && p.threads.enter() {
		if p.state.CompareAndSwap(from, inKernel) {
			from = inKernel
			for until := time.Now().Add(shortSleep); p.state.Load() == inKernel; {
				left := time.Until(until)
				if left <= 0 {
					break
				}
				futexWait(&p.state, inKernel, left)
			}
		}
		p.threads.leave()
	}
	// From here on the state is still from, unless a wake came: then the swap below fails, and no
	// token is sent, since the claim was not of onChannel.
	if p.c == nil {
		p.c = make(chan struct{}, 1)
	}
	if p.state.CompareAndSwap(from, onChannel) {
		select {
		case <-p.c:
		case <-done:
			if p.state.CompareAndSwap(onChannel, awake) {
				return false
			}
			<-p.c // it was just woken
		case <-p.tired():
			if p.state.CompareAndSwap(onChannel, dormant) {
				return false
			}
			<-p.c
		}
		if p.timer != nil {
			p.timer.Stop()
		}
	}
	p.state.Store(awake)
	return true
}

// wake wakes the owner. It reports false if the owner has not announced a wait, or was woken already.
func (p *parker) wake() bool {
	for {
		s := p.state.Load()
		if s == awake || s == woken {
			return false
		}
		if p.claim(s) {
			p.rouse(s)
			return true
		}
	}
}

// claim is the first half of wake: it marks an owner in state s as woken. s is not awake or woken. It
// reports false if the owner is not in state s.
func (p *parker) claim(s uint32) bool { return p.state.Load() == s && p.state.CompareAndSwap(s, woken) }

// rouse is the second half of wake, for a caller that has claimed an owner in state s.
func (p *parker) rouse(s uint32) {
	switch s {
	case inKernel:
		futexWake(&p.state)
	case onChannel:
		p.c <- struct{}{} // never blocks: the owner takes each token before it announces another wait
		kick()
	case dormant:
		p.start()
	}
}

// kick lets other processors take the goroutine that the caller has just made runnable. The scheduler
// keeps that goroutine in the slot for what the caller's processor runs next, and others are slow to
// steal from the slot. Another goroutine that becomes runnable pushes it out.
func kick() { go nothing() }

// nothing is what kick makes runnable.
func nothing() {}

// threads counts the goroutines of the process that sleep in the kernel. Each may keep a processor
// from others for a while, so there are at most half as many as processors.
type threads struct{ n atomic.Int32 }

// allThreads is for all engines of the process, as they share its processors.
var allThreads threads

// enter reports whether one more goroutine may sleep in the kernel. If so, it calls leave when it
// is awake.
func (t *threads) enter() bool {
	if t == nil || !futexes {
		return false
	}
	if int(t.n.Add(1)) <= runtime.GOMAXPROCS(0)/2 {
		return true
	}
	t.n.Add(-1)
	return false
}

// leave undoes an enter.
func (t *threads) leave() { t.n.Add(-1) }
