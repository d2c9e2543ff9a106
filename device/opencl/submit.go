package opencl

import (
	"context"
	"errors"
	"fmt"

	"github.com/asyncgen/asyncgen/device"
)

// Submit queues the commands. It waits while too many are in the queue, or too much host memory is
// in use for copies, and for the compiler if a kernel is new, when those before it are on their
// way. Nobody else waits for the compiler but who submits or closes.
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
		// When a download is there, it should not wait for what was submitted behind it, unless there
		// is little before the next one.
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
		b.submitted = end // they fail like those before them
		b.done.Store(end)
	}
	return device.Ticket(end), nil
}

func isDownload(c *device.Command) bool { return c.Kernel.Code == device.Download }

// enqueueLocked adds c to g, or to a new group if there is none, and returns that. If it has to
// wait for room or for the compiler, g is launched first.
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
			b.launchLocked(g) // what it waits for may be done, and its events given up, while b.mu is not held
			if g = nil; b.lost == nil {
				failed = b.missed(c, b.compileLocked(s))
			}
			if b.lost != nil {
				return nil
			}
			continue
		}
		if err == errNoRoom || err == errLanding {
			// What holds it up is in groups that are on their way, or in this one.
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

// missed is the error of c, which a kernel was compiled for. A Download can do without.
func (b *Backend) missed(c *device.Command, err error) error {
	if err == nil {
		return nil
	}
	if isDownload(c) {
		b.packFails = !errors.Is(err, device.ErrOutOfMemory) // or else again and again
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

// waitForOldestLocked returns when the oldest group is done, or the device lost. b.mu is not held meanwhile.
func (b *Backend) waitForOldestLocked() {
	oldest := b.groups[0]
	for b.lost == nil && len(b.groups) > 0 && b.groups[0] == oldest {
		b.retired.Wait()
	}
}

// takeLocked waits until nobody else is in Submit or Close.
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

// Close waits for what was submitted. Later calls of Submit fail, but for reads. What the device
// has of the driver is given up when the last block was freed, or now if the device is lost.
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

// releaseUnused gives up what a closed device has of the driver, unless it has been, or something can still be read.
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
	b.allocs.Wait() // none begins: the device is lost, or no block is there
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
