package engine

import (
	"runtime"
	"sync/atomic"
	"time"
)

// A parker is where one goroutine, its owner, waits until another one wakes it. There are two ways to be
// asleep, and who wakes need not know which one it is:
//
// On a channel, as goroutines do: the owner's thread and processor are free for others. The
// scheduler gives what becomes runnable to the processor of who woke it, and keeps it from other
// processors while that may still take it itself: for 3 µs, it says, which with Linux's timer slack
// are 60 to 70. So who wakes pushes it on into the queue that others may take from at once (see
// kick). On a virtual machine where all was idle the owner then runs after 20 to 30 µs, and after
// 100 otherwise; where another processor is awake and comes before the push, it is 70 all the same.
//
// In the kernel, where there is a way (see futexes): what the kernel needs to wake a thread, there
// 3 to 10 µs, or 25 if the processor was halted. But the thread keeps its processor until the
// runtime's monitor takes it away, after 20 µs to 20 ms, as in any system call, even if others wait
// for one. So only workers sleep like that, no more of them than threads says, for shortSleep and
// then on the channel, and not where channels are asked for: testing/synctest knows who is blocked
// on a channel, and nothing of the kernel.
//
// The owner announces that it is about to wait, then looks once more whether it has to, and then waits; so nothing is
// missed:
//
//	awake --announce--> looking --has a processor--> spinning --sleep--> inKernel or onChannel
//	  ^                    |                            |                   |
//	  +--wait, withdraw--woken <---------wake-----------+-------------------+
//
// From inKernel it goes on to onChannel, too.
//
// An owner that can be started (see rest) is asleep on a channel for restAfter at most. Then it
// ends, and who wakes it starts another one:
//
//	onChannel --end--> dormant --wake--> woken --begin--> awake
type parker struct {
	state   atomic.Uint32
	threads *threads      // nil: never asleep in the kernel
	c       chan struct{} // has a token when the owner was woken from it; made when the owner first sleeps there
	start   func()        // starts an owner; nil: there is one until it is told to end
	timer   *time.Timer   // of an owner that can be started; made when one first sleeps on a channel
}

const (
	awake uint32 = iota
	looking
	spinning
	inKernel
	onChannel
	woken
	dormant // nobody is the owner
)

// shortSleep is how long a worker sleeps in the kernel. A step of training with products of 10 to
// 20 ms took 77 ms if there was no end to it, 63 to 65 with 0.5 to 2.5 ms (BenchmarkPerceptronStep
// of package optim, on two cores).
const shortSleep = 2500 * time.Microsecond

// restAfter is how long a goroutine without work exists. A program that is through with tensors has
// none of ours soon, before those who look for goroutines that are left behind give up (goleak does
// after half a second); one that goes on starts one in the time in which it would wake it.
const restAfter = 50 * time.Millisecond

func (p *parker) init(t *threads) {
	p.threads = t
}

// rest makes p that of an owner who is started when somebody wakes it, and ends when it has been asleep for long.
func (p *parker) rest(start func()) {
	p.start = start
	p.state.Store(dormant)
}

// begin is what an owner that was started does first.
func (p *parker) begin() { p.state.Store(awake) }

// tired returns what tells an owner that can be started that it has slept for long.
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

// announce is the first step of the owner on its way to sleep. From now on wake wakes it.
func (p *parker) announce() { p.state.Store(looking) }

// withdraw takes back what was announced. It reports false if somebody has woken the owner in between.
func (p *parker) withdraw() bool {
	ok := p.state.CompareAndSwap(looking, awake)
	p.state.Store(awake)
	return ok
}

// wait returns when the owner, who has announced it, is woken, or done is closed, or the owner has
// to end: then p may be another's. It reports whether it is woken. The owner looks so many times
// before it sleeps; first it lets those run who wait for its processor, maybe because it has woken
// them.
func (p *parker) wait(looks int, done <-chan struct{}) (wasWoken bool) {
	runtime.Gosched()
	from := looking
	if looks > 0 && p.state.CompareAndSwap(looking, spinning) {
		from = spinning
		for i := looks * pauses / 4; i > 0 && p.state.Load() == spinning; i-- {
			// shorter than elsewhere: this is one word, and loops of half a microsecond wait for help
			// (see pool.Run)
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

// wake wakes the owner. It reports false if that has announced nothing, or was woken already.
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

// claim is the first half of wake, for an owner in state s, which is not awake or woken. It reports
// false if it is not, or no longer.
func (p *parker) claim(s uint32) bool { return p.state.Load() == s && p.state.CompareAndSwap(s, woken) }

// rouse is the second half, for who has claimed an owner that was in state s.
func (p *parker) rouse(s uint32) {
	switch s {
	case inKernel:
		futexWake(&p.state)
	case onChannel:
		p.c <- struct{}{} // there is room: who is woken takes the token before it announces anything again
		kick()
	case dormant:
		p.start()
	}
}

// kick makes what the caller has just made runnable free for other processors. That is in the slot for what
// the caller's processor runs next, from which others steal with reluctance; another goroutine that
// becomes runnable takes its place.
func kick() { go nothing() }

func nothing() {}

// threads counts the goroutines of the process that are asleep in the kernel. As each may keep a processor
// from others for a while, they are at most half as many as there are processors.
type threads struct{ n atomic.Int32 }

var allThreads threads

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

func (t *threads) leave() { t.n.Add(-1) }
