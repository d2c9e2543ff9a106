package engine

import "sync"

// A turn is a mutex that may be held while its owner waits for a device. With Options.Channels, lock
// blocks on a channel: testing/synctest takes a goroutine that waits for a sync.Mutex for busy.
type turn struct {
	mu sync.Mutex
	c  chan struct{} // full while the turn is held; nil: mu is used
}

// init readies t. channels says that it belongs to an engine with Options.Channels.
func (t *turn) init(channels bool) {
	if channels {
		t.c = make(chan struct{}, 1)
	}
}

// lock waits until nobody has the turn, and takes it.
func (t *turn) lock() {
	if t.c != nil {
		t.c <- struct{}{}
		return
	}
	t.mu.Lock()
}

// tryLock takes the turn if nobody has it, and reports whether it has.
func (t *turn) tryLock() bool {
	if t.c == nil {
		return t.mu.TryLock()
	}
	select {
	case t.c <- struct{}{}:
		return true
	default:
		return false
	}
}

// unlock gives the turn up, to one of those that wait for it.
func (t *turn) unlock() {
	if t.c != nil {
		<-t.c
		return
	}
	t.mu.Unlock()
}
