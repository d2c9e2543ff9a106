package lockedread

import (
	"sync"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// Mutexes that others have locked.

func (s *stats) with(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

func (s *stats) around(f func(), done func()) {
	s.mu.Lock()
	f()
	s.mu.Unlock()
	done()
}

func (s *stats) lockAll() {
	s.mu.Lock()
	s.rw.Lock()
}

func (s *stats) unlockAll() {
	s.rw.Unlock()
	s.mu.Unlock()
}

func lockGlobal() { global.Lock() }

func lockOf(mu *sync.Mutex) { mu.Lock() }

func (s *stats) addLocked(loss *tensor.Tensor) { s.total += loss.Item() }

func (s *stats) callers(x *tensor.Tensor) {
	loss := x.Mean()
	s.with(func() { s.total += loss.Item() }) // want `wait under lock: loss.Item\(\) waits for the device while s.mu is locked`
	s.around(func() {
		s.total += x.Sum().Item() // want `AT011`
	}, func() { s.total += x.Sum().Item() })

	s.lockAll()
	s.total += x.Sum().Item() // want `while s.mu is locked`
	s.unlockAll()
	s.total += x.Sum().Item()

	s.mu.Lock()
	s.addLocked(x.Sum()) // want `s.addLocked waits for the device \(loss.Item\(\) at callers.go:\d+\) while s.mu`
	s.mu.Unlock()

	lockGlobal()
	s.total += x.Sum().Item() // want `while global is locked`
	global.Unlock()

	lockOf(&s.mu)
	lockOf(s.own())
	s.mu.Unlock()
	s.total += x.Sum().Item()
}

func (s *stats) own() *sync.Mutex { return &s.mu }

func (s *stats) inLine(x *tensor.Tensor) {
	defer s.unlockAll()
	s.lockAll()
	s.total += x.Sum().Item() // want `AT011`
}
