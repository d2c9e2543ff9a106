package gen

import "testing"

// WithoutExecution makes Generate compile what it writes, and not execute it, until the test ends.
func WithoutExecution(t *testing.T) {
	executes = false
	t.Cleanup(func() { executes = true })
}
