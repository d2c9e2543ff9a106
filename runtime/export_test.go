package asyncrt

// RunFar makes the loop that l is used for next run ahead as far as it may, although it might find
// out that this is of no use.
func (l *Later[S]) RunFar() {
	l.exits.pace.isAway, l.exits.pace.each = true, 1
}
