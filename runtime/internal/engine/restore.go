package engine

// A Saved is the value that something other than a storage had before a Guess changed it.
type Saved interface {
	Restore()     // brings the value back
	Forget()      // says that Restore will not be called any more
	Bytes() int64 // of memory that is kept for Restore
}

// Changing says that the calling goroutine is about to change what key stands for. If it returns a
// Guess, the caller has to Save the value there first. It returns nil if nothing has to be saved: the
// goroutine does not guess, or its Guess has saved that key before. It costs one load as long as
// nobody speculates.
func (e *Engine) Changing(key any) *Guess {
	g := e.guess().open()
	if g == nil || g.saved[key] != nil {
		return nil
	}
	return g
}

// open returns the innermost of g and the guesses around it that is not kept, or nil.
func (g *Guess) open() *Guess {
	for g != nil && g.state.Load() == kept {
		g = g.outer
	}
	return g
}

// Save remembers s, the present value of what key stands for, for Restore. Only the goroutine that
// guesses may call it.
func (g *Guess) Save(key any, s Saved) {
	if g.saved == nil {
		g.saved = make(map[any]Saved)
	}
	g.saved[key] = s
}

// Restore brings back all values that were saved in g, which was discarded. Of several guesses the
// newest must be restored first. Only the goroutine that guesses may call it.
func (g *Guess) Restore() {
	for _, s := range g.saved {
		s.Restore()
		s.Forget()
	}
	g.saved = nil
}

// Changes reports whether something was saved in g: the goroutine has changed it since g began.
func (g *Guess) Changes() bool { return len(g.saved) > 0 }

// SavedBytes returns how much memory is kept for Restore.
func (g *Guess) SavedBytes() (n int64) {
	for _, s := range g.saved {
		n += s.Bytes()
	}
	return n
}

// handOver moves the saved values of g, which was kept, to the open Guess around it. A value that the
// outer one has saved itself is older, so that one stays.
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
