package opencl

import (
	"context"
	"errors"
	"fmt"

	"github.com/asyncgen/asyncgen/device"
)

// Submit queues the commands. It waits while too many groups are in flight, while host memory for
// copies is used up, and for the compiler if a kernel is new. Before it waits, it launches the
// commands that came first. The compiler blocks only other calls of Submit and Close.
func (b *Backend) Submit(cmds []device.Command) (device.Ticket, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.takeLocked()
	defer b.leaveLocked()
	if err := b.goneLocked(b.live > 0 && device.OnlyReads(cmds)); err != nil {
		return 0, err
	}
	end := b.submitted + uint64(len(cmds))
	var g *group
	for i := range cmds {
		// A Download ends the group, so its data does not wait for later commands. But if another
		// Download comes soon, both share a group.
		if g != nil && (g.size() == maxCommands || isDownload(&cmds[i-1]) && !isDownload(&cmds[i]) && !g.goesOn(cmds[i:])) {
			b.launchLocked(g)
			g = nil
		}
		if b.lost == nil {
			g = b.enqueueLocked(g, &cmds[i])
		}
	}
	if g != nil && b.lost == nil {
		b.launchLocked(g)
	}
	if b.lost != nil {
		b.submitted = end // the commands fail like those in flight
		b.done.Store(end)
	}
	return device.Ticket(end), nil
}

func isDownload(c *device.Command) bool { return c.Kernel.Code == device.Download }

// enqueueLocked adds c to g and returns g. It makes a new group if g is nil, or if it has to launch
// g to wait for room or for the compiler. It returns nil if the device is lost.
func (b *Backend) enqueueLocked(g *group, c *device.Command) *group {
	for failed := error(nil); ; {
		if g == nil {
			for len(b.groups) >= maxGroups && b.lost == nil {
				b.waitForOldestLocked()
			}
			g = b.newGroup()
		}
		err := failed
		if err == nil {
			err = g.enqueue(c)
		}
		if s := (*newSource)(nil); errors.As(err, &s) {
			b.launchLocked(g) // while b.mu is released, commands that g waits for may end and their events be released
			if g = nil; b.lost == nil {
				failed = b.missed(c, b.compileLocked(s))
			}
			if b.lost != nil {
				return nil
			}
			continue
		}
		if err == errNoRoom || err == errLanding {
			// The memory is in use by groups in flight, or by this one.
			b.launchLocked(g)
			if g = nil; b.lost == nil && len(b.groups) > 0 {
				b.waitForOldestLocked()
			}
			if b.lost != nil {
				return nil
			}
			continue
		}
		if err != nil {
			g.fail(g.size(), err)
		}
		b.submitted++
		g.last = b.submitted
		return g
	}
}

// missed returns the error of c after its kernel was compiled: err, or nil for a Download, which
// can do without packing.
func (b *Backend) missed(c *device.Command, err error) error {
	if err == nil {
		return nil
	}
	if isDownload(c) {
		b.packFails = !errors.Is(err, device.ErrOutOfMemory) // if out of memory, try again next time
		return nil
	}
	return fmt.Errorf("opencl: kernel %s: %w", c.Kernel.Name, err)
}

func (g *group) enqueue(c *device.Command) error {
	g.owner = g.size()
	switch c.Kernel.Code {
	case device.Upload:
		return g.upload(c)
	case device.Download:
		return g.download(c)
	}
	return g.compute(c)
}

// launchLocked hands g to the driver.
func (b *Backend) launchLocked(g *group) {
	if g.batch.Len() == 0 && g.size() == 0 {
		g.clear()
		b.spare = append(b.spare, g)
		return
	}
	g.seal()
	b.groups = append(b.groups, g)
	if err := g.run(); err != nil {
		b.loseLocked(err)
		return
	}
	if !b.attended {
		b.attended = true
		b.attendants.Go(b.attend)
	}
}

// waitForOldestLocked waits until the oldest group is done or the device is lost. It releases b.mu
// meanwhile.
func (b *Backend) waitForOldestLocked() {
	oldest := b.groups[0]
	for b.lost == nil && len(b.groups) > 0 && b.groups[0] == oldest {
		b.retired.Wait()
	}
}

// takeLocked waits until no other goroutine is in Submit, Close or releaseUnused, and takes its
// place.
func (b *Backend) takeLocked() {
	for b.isTaken {
		b.left.Wait()
	}
	b.isTaken = true
}

func (b *Backend) leaveLocked() {
	b.isTaken = false
	b.left.Signal()
}

// Close waits for what was submitted. Later calls of Submit fail, unless they only read. The
// driver's objects are released when the last block has been freed, or at once if the device is
// lost.
func (b *Backend) Close() error {
	b.mu.Lock()
	b.takeLocked()
	b.closed = true
	last := b.submitted
	b.leaveLocked()
	b.mu.Unlock()
	if err := b.Wait(context.Background(), device.Ticket(last)); err != nil && b.isThere() {
		return fmt.Errorf("opencl: close: %w", err)
	}
	b.releaseUnused()
	return nil
}

// releaseUnused releases the driver's objects of a closed device, once. It does nothing while a
// block can still be read.
func (b *Backend) releaseUnused() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.takeLocked()
	defer b.leaveLocked()
	if b.lost == nil && b.live > 0 {
		return
	}
	b.mu.Unlock()
	b.attendants.Wait()
	b.allocs.Wait() // no call begins: the device is lost, or it is closed without blocks
	b.mu.Lock()
	if !b.released {
		b.release()
	}
}

func (b *Backend) isThere() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.lost == nil
}
