package engine

// A Storage counts its holders: handles, views, what gradients need. When the last holder has let go,
// the memory is given back at once, not only when the collector finds it. A holder that never lets
// go leaves the storage to the collector. So the count may be too high, but must never be too low.

// worthReleasing is the least number of bytes that is given back before the collector finds it. A
// Release costs as much as a small operation, and smaller results on the CPU are on the Go heap.
const worthReleasing = 4096

// Hold counts another holder of s. A new Storage has one.
func (s *Storage) Hold() { s.more.Add(1) }

// LetGo says that a holder of s will not use it any more. After the last one it does what Release
// does. It reports whether it took effect at once: if the goroutine speculates and s was there when
// its guess began, LetGo takes effect when the guess is kept, and never if the guess is discarded.
func (s *Storage) LetGo() bool { return s.st.e.guess().letGo(s) }

// letGo is LetGo for a goroutine that guesses g.
func (g *Guess) letGo(s *Storage) bool {
	for ; g != nil; g = g.outer {
		if g.isNew(s) {
			break // s is new to the outer guesses, too
		}
		if g.postpone(s) {
			return false
		}
	}
	if s.more.Add(-1) < 0 && s.own.Bytes >= worthReleasing {
		s.st.e.Release(s)
	}
	return true
}

// isNew reports whether s was written after g began, and so would not exist without g. A storage
// that the call itself has computed has no writer in the stream, see tiny.go; so nothing is
// computed that way while somebody speculates.
func (g *Guess) isNew(s *Storage) bool {
	i := int(s.st.id) - 1 // in the order in which streams were made
	return i >= len(g.began) || s.last.Load() > g.began[i]
}

// postpone keeps s until g is decided. It reports false if g is kept.
func (g *Guess) postpone(s *Storage) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch g.state.Load() {
	case kept:
		return false
	case undecided:
		g.letGoes = append(g.letGoes, s)
	}
	return true
}

// beginnings returns how many operations were enqueued on each stream so far, in the order in which
// the streams were made. Streams that are made later begin at 0: isNew takes their storages for
// new.
func (e *Engine) beginnings() []uint64 {
	all := e.allStreams()
	began := make([]uint64, len(all))
	for _, st := range all {
		began[st.id-1] = st.enqueued()
	}
	return began
}
