package engine

// A Saved is what something that is no storage held before a Guess changed it.
type Saved interface {
	Restore()     // makes it hold that again
	Forget()      // says that nobody will
	Bytes() int64 // of memory that is kept for it
}

// Changing returns the Guess of the calling goroutine that may have to take back what the goroutine
// is about to change, or nil if it has been called with the same key before, or if there is no such
// Guess. The caller then has to Save what the key stands for. It costs one load as long as nobody
// speculates.
func (e *Engine) Changing(key any) *Guess {
	g := e.guess().open()
	if g == nil || g.saved[key] != nil {
		return nil
	}
	return g
}

// open returns g, or the first of those that it is a part of that is not kept.
func (g *Guess) open() *Guess {
	for g != nil && g.state.Load() == kept {
		g = g.outer
	}
	return g
}

// Save remembers what key holds now, for Restore. It is for the goroutine that guesses.
func (g *Guess) Save(key any, s Saved) {
	if g.saved == nil {
		g.saved = make(map[any]Saved)
	}
	g.saved[key] = s
}

// Restore gives back what was held when g began, if it was discarded, and of guesses in the order in which they were
// made, the newest come first. It is for the goroutine that guesses.
func (g *Guess) Restore() {
	for _, s := range g.saved {
		s.Restore()
		s.Forget()
	}
	g.saved = nil
}

// SavedBytes is how much memory is kept for Restore.
func (g *Guess) SavedBytes() (n int64) {
	for _, s := range g.saved {
		n += s.Bytes()
	}
	return n
}

// handOver gives what was saved to the Guess that g, which is kept, is a part of. What that has saved itself is older.
func (g *Guess) handOver() {
	outer := g.outer.open()
	for key, s := range g.saved {
		if outer == nil || outer.saved[key] != nil {
			s.Forget()
			continue
		}
		outer.Save(key, s)
	}
	g.saved = nil
}
