package engine

// Who uses a Storage can count its holders: handles, views, what gradients need. When the last of them has let
// go, the memory is given back at once and not when the collector finds out. Nobody is obliged to let go: what a
// holder never does is left to the collector. So the count may be too high, and must never be too low.

// worthReleasing is from how many bytes on memory is given back before the collector finds it: it
// costs as much as a small operation, and less than that is on the Go heap on the CPU.
const worthReleasing = 4096

// Hold counts another holder of s. A new Storage has one.
func (s *Storage) Hold() { s.more.Add(1) }

// LetGo says that a holder of s will not use it any more. After the last one it does what Release does. It
// reports whether that holds: what a speculating goroutine says about a storage that was there when
// its guess began counts when the guess is kept, and never if it is discarded.
func (s *Storage) LetGo() bool { return s.st.e.guess().letGo(s) }

// letGo is LetGo for a goroutine that guesses g.
func (g *Guess) letGo(s *Storage) bool {
	for ; g != nil; g = g.outer {
		if g.isNew(s) {
			break // and so it is for the outer ones
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

// isNew reports whether s was written after g began, and so would not be there without it.
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

// beginnings are how many operations each stream has got so far, in the order in which streams were made.
func (e *Engine) beginnings() []uint64 {
	all := e.allStreams()
	began := make([]uint64, len(all))
	for _, st := range all {
		began[st.id-1] = st.enqueued()
	}
	return began
}
