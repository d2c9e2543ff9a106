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

// Done reports whether command t and all before it have finished. It does not call the driver:
// attend and waiters update b.done.
func (b *Backend) Done(t device.Ticket) bool { return uint64(t) <= b.done.Load() }

// patience is how long Wait polls the driver before it sleeps. Being woken up takes about as long.
const patience = 50 * time.Microsecond

// A waiter waits for a ticket: reached is closed when the ticket is done.
type waiter struct {
	ticket  uint64
	reached chan struct{}
}

// Wait returns when Done(t), or the context's error if that ends first. If the device was lost
// before t was done, it returns that error.
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

// lostBefore returns why the device is lost if it was lost before command t was done, or else nil.
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

// attend is the goroutine that waits for the device. It ends when no group is in flight.
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
			g.isWaited = true // attend frees g, since Wait uses its events
			b.mu.Unlock()
			if err = b.driver.Wait(events); err != nil {
				err = b.finish() // needs no events
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

// maxTroubles is how many status queries in a row may fail before the device counts as lost.
const maxTroubles = 100

// pollLocked asks the driver which groups are done, and retires them.
func (b *Backend) pollLocked() {
	for len(b.groups) > 0 && b.lost == nil {
		g := b.groups[0]
		failed := cl.Success
		for _, m := range slices.Backward(g.marks) { // seal put the last mark of each queue at the end
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

// retireLocked retires the oldest group, which is done. status is the worst of its events'
// statuses; if it is not Success, all commands of the group fail, as it does not tell which ones
// have.
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

// judge fails the commands that have reported a failure in their fault slots.
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

// freeLocked releases the driver's objects of g, and keeps g for its next use.
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

// reachLocked notes that all tickets up to one are done, and wakes their waiters.
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

// maxFailures bounds how many failures are kept; the oldest are dropped.
const maxFailures = 1 << 16

// noteLocked keeps the failures of a group. Their tickets are later than those kept before.
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

// loseLocked notes that the device is lost. All commands that are not done fail with it.
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

// Failure returns the error of command t, or nil. At least the latest 32,768 failures are kept.
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
