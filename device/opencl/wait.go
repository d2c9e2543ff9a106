package opencl

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sort"
	"time"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/internal/cl"
	"github.com/asyncgen/asyncgen/device/kernel/clc"
)

// Done reports whether command t has finished, and all before it. It does not call the driver: a
// goroutine that does notices.
func (b *Backend) Done(t device.Ticket) bool { return uint64(t) <= b.done.Load() }

// patience is how long a waiter asks the driver itself, again and again: to be woken up takes about as long.
const patience = 50 * time.Microsecond

// A waiter has reached closed when the ticket is done.
type waiter struct {
	ticket  uint64
	reached chan struct{}
}

// Wait returns when Done(t), or the context's error when that ends first. If the device is lost
// before, it returns that.
func (b *Backend) Wait(ctx context.Context, t device.Ticket) error {
	if b.Done(t) {
		return b.lostBefore(t)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	for begin := time.Now(); time.Since(begin) < patience; runtime.Gosched() {
		if b.mu.TryLock() {
			b.pollLocked()
			b.mu.Unlock()
		}
		if b.Done(t) {
			return b.lostBefore(t)
		}
	}
	b.mu.Lock()
	if uint64(t) > b.submitted {
		b.mu.Unlock()
		return fmt.Errorf("opencl: ticket %d was never given out", t)
	}
	if b.Done(t) {
		b.mu.Unlock()
		return b.lostBefore(t)
	}
	w := waiter{uint64(t), make(chan struct{})}
	b.waiters = append(b.waiters, w)
	b.mu.Unlock()
	select {
	case <-w.reached:
		return b.lostBefore(t)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// lostBefore is why the device is lost, if command t had not finished by then.
func (b *Backend) lostBefore(t device.Ticket) error {
	if b.failures.Load() == 0 {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.lost != nil && uint64(t) >= b.lostFrom {
		return b.lost
	}
	return nil
}

// attend is the goroutine that waits for the device. It runs until there is nothing to wait for.
func (b *Backend) attend() {
	b.mu.Lock()
	defer b.mu.Unlock()
	var events []cl.Event
	for len(b.groups) > 0 && b.lost == nil {
		g := b.groups[0]
		events = events[:0]
		for _, m := range g.marks {
			if m.event[0] != 0 {
				events = append(events, cl.Event(m.event[0]))
			}
		}
		var err error
		if len(events) > 0 {
			g.isWaited = true // its events are ours to release
			b.mu.Unlock()
			if err = b.driver.Wait(events); err != nil {
				err = b.finish() // which needs nothing of the driver but to wait
			}
			b.mu.Lock()
			b.pollLocked()
			g.isWaited = false
			if g.isRetired {
				b.freeLocked(g)
			} else if err != nil {
				b.loseLocked(err)
			}
		} else {
			b.pollLocked()
		}
	}
	b.attended = false
}

// maxTroubles is how often in a row the driver may fail to say how far it is. Then it never will.
const maxTroubles = 100

// pollLocked asks the driver how far it is.
func (b *Backend) pollLocked() {
	for len(b.groups) > 0 && b.lost == nil {
		g := b.groups[0]
		failed := cl.Success
		for _, m := range slices.Backward(g.marks) { // the last ones of all queues come first
			if m.event[0] == 0 {
				continue
			}
			status, err := b.driver.Status(cl.Event(m.event[0]))
			if err != nil {
				if b.troubles++; b.troubles > maxTroubles || errors.Is(err, device.ErrLost) {
					b.loseLocked(err)
				}
				return
			}
			b.troubles = 0
			if status > 0 {
				return
			}
			failed = min(failed, status)
		}
		if errors.Is(failed.Cause(), device.ErrLost) {
			b.loseLocked(fmt.Errorf("%v: %w", failed, device.ErrLost))
			return
		}
		b.retireLocked(g, failed)
	}
}

// retireLocked is for the oldest group, when the driver is through with it. A status of it that is
// not 0 is how some of its commands have failed, of which more is not known.
func (b *Backend) retireLocked(g *group, status cl.Code) {
	if status != cl.Success {
		for i := range g.size() {
			g.fail(i, fmt.Errorf("opencl: it, or another one submitted with it, has failed: %w", &cl.Error{Fn: cl.WaitForEvents, Code: status}))
		}
	}
	g.judge()
	for _, l := range g.landings {
		if !g.hasFailed(l.owner) {
			copy(l.to, l.from)
		}
	}
	for _, m := range g.marks {
		of := &b.queues[m.queue]
		of.completed, of.worked = max(of.completed, m.position), max(of.worked, m.work)
	}
	for i := range b.queues {
		of := &b.queues[i]
		of.marks = slices.DeleteFunc(of.marks, func(m mark) bool { return m.position <= of.completed })
	}
	for q := range b.stagings {
		b.stagings[q].tail = g.taken[q]
	}
	g.isRetired = true
	b.groups = slices.Delete(b.groups, 0, 1)
	b.noteLocked(g.failed)
	b.rested, b.isIdleEver = time.Now(), true
	if !g.isWaited {
		b.freeLocked(g)
	}
	b.reachLocked(g.last)
}

// judge looks at the fault slots, which have come back.
func (g *group) judge() {
	for _, s := range g.canFail {
		if g.faultsErr != nil {
			g.fail(s.owner, g.faultsErr)
			continue
		}
		const bytes = clc.FaultWords * 8
		if err := clc.Failure(words(g.faults[s.queue][s.owner*bytes : (s.owner+1)*bytes])); err != nil {
			g.fail(s.owner, err)
		}
	}
}

// freeLocked gives up what g has of the driver, and keeps it for the next.
func (b *Backend) freeLocked(g *group) {
	for _, m := range g.marks {
		if m.event[0] != 0 {
			cl.Event(m.event[0]).Release(b.driver)
		}
	}
	for _, p := range g.large {
		b.pinned -= int64(len(p.bytes))
		p.release(b)
	}
	g.clear()
	b.spare = append(b.spare, g)
}

// reachLocked says that all tickets up to one are done.
func (b *Backend) reachLocked(ticket uint64) {
	b.done.Store(ticket)
	b.waiters = slices.DeleteFunc(b.waiters, func(w waiter) bool {
		if w.ticket > ticket {
			return false
		}
		close(w.reached)
		return true
	})
	b.retired.Broadcast()
}

// maxFailures bounds the failures that are remembered; the oldest are forgotten.
const maxFailures = 1 << 16

// noteLocked remembers failures, which are of later tickets than those before.
func (b *Backend) noteLocked(failed []failure) {
	if len(failed) == 0 {
		return
	}
	slices.SortFunc(failed, func(x, y failure) int { return int(int64(x.ticket - y.ticket)) })
	if len(b.failed) >= maxFailures {
		b.failed = append(b.failed[:0], b.failed[maxFailures/2:]...)
	}
	b.failed = append(b.failed, failed...)
	b.failures.Add(int64(len(failed)))
}

// loseLocked notes that the device is lost. What was not done has failed with it.
func (b *Backend) loseLocked(cause error) {
	if b.lost != nil {
		return
	}
	if !errors.Is(cause, device.ErrLost) {
		cause = fmt.Errorf("%w: %w", device.ErrLost, cause)
	}
	b.lost = fmt.Errorf("opencl: %s: %w", b.name, cause)
	b.lostFrom = b.done.Load() + 1
	b.failures.Add(1)
	b.wrecked, b.groups = b.groups, nil
	b.reachLocked(b.submitted)
}

// Failure is the error of command t. The 32,768 latest failures at least are remembered.
func (b *Backend) Failure(t device.Ticket) error {
	if b.failures.Load() == 0 {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.lost != nil && uint64(t) >= b.lostFrom {
		return b.lost
	}
	i := sort.Search(len(b.failed), func(i int) bool { return b.failed[i].ticket >= uint64(t) })
	if i < len(b.failed) && b.failed[i].ticket == uint64(t) {
		return b.failed[i].err
	}
	return nil
}
