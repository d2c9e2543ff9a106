package asyncrt

// RunFar makes the next loop of l run ahead as far as it may, even if it finds that this does not pay.
func (l *Later[S]) RunFar() {
	l.exits.pace.isAway, l.exits.pace.each = true, 1
}
