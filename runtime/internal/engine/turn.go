package engine

import "sync"

// A turn is a mutex that may be held while its owner waits for a device. With Options.Channels, lock
// blocks on a channel: testing/synctest takes a goroutine that waits for a sync.Mutex for busy.
type turn struct {
	mu sync.Mutex
	c  chan struct{} // full while the turn is held; nil: mu is used
}

func (t *turn) init(channels bool) {
	if channels {
		t.c = make(chan struct{}, 1)
	}
}

func (t *turn) lock() {
	if t.c != nil {
		t.c <- struct{}{}
		return
	}
	t.mu.Lock()
}

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

func (t *turn) unlock() {
	if t.c != nil {
		<-t.c
		return
	}
	t.mu.Unlock()
}
