// Package lockedread is a rule of asyncgen vet.
//
// # AT011: wait for the device while a mutex is held
//
// A read such as Item waits until the device has computed the tensor. If the reader holds a mutex,
// everybody who wants the mutex waits for the device, too. That includes goroutines that only want
// to enqueue more work, and would have kept the device busy.
//
// The rule reports reads, prints, waits and calls of functions that wait, at places where the
// function holds a mutex for certain: on all ways to the place it has locked a sync.Mutex or
// RWMutex and not unlocked it yet. What is waited for must be the result of an operation, or come
// from the caller. A mutex may also be locked by a method that does nothing else, or by a function
// while it calls a function literal that it is given.
//
// WRONG
//
//	s.mu.Lock()
//	defer s.mu.Unlock()
//	s.total += loss.Item() // everybody waits for loss
//
// RIGHT
//
//	v := loss.Item()
//	s.mu.Lock()
//	defer s.mu.Unlock()
//	s.total += v
//
// A tensor that the mutex guards is copied in no time, and read after Unlock:
//
//	s.mu.Lock()
//	sum := s.sum
//	s.mu.Unlock()
//	return sum.Item()
//
// Silent: tensors made of host data; what has been waited for before; waits
// under a condition that holds rarely, as on errors; mutexes that a function
// called in between may unlock. In test files the rule applies with -tests
// only.
//
// A mutex that is locked for reading counts as well, if the package also locks it for writing. The writer
// waits for the device then, and while it does, sync.RWMutex lets in nobody else who reads.
//
// Only an info: a wait while a mutex is locked for reading that the package never locks for writing, if it
// isn't in a loop; a wait for an operation on constants, which checks the device.
//
// Missed: mutexes that the caller has locked, except at the caller's own calls, where they are
// reported; mutexes that are locked by TryLock; semaphores and channels used as mutexes; functions
// that wait for something without reading it.
//
// Fix: none. What has to happen under one lock is for the author to say.
package lockedread
