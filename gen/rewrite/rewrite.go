// Package rewrite decides what of a function runs later. A [Rewrite] is a
// pattern with a name; what they all have in common, putting statements off
// until the values that they look at have arrived, is in deferral.go.
//
// The package changes no text: its result is a plan, or the reasons why there
// is none.
package rewrite

import (
	"github.com/asyncgen/asyncgen/gen/internal/plan"
)

// A Rewrite is one kind of change to a loop.
type Rewrite struct {
	ID   string    // "R1", as in off=R1
	Code plan.Code // of the remark when it was made
	Does string    // completes "loss.Item() …" in that remark

	// Matches reports whether the rewrite is the one that puts off s, a
	// statement that looks at values. It is nil for those that concern the
	// loop as a whole.
	Matches func(s *plan.Stmt) bool
}

// Pipeline is every rewrite, in the order in which they are tried: the first
// that matches a statement names what happens to it.
var Pipeline = []*Rewrite{
	Exit,
	RoundTrip,
	Choice,
	Guarded,
	Print,
	Accumulate,
	Store,
	Scalar,
	WholeSlice,
	Batched,
	Lifted,
	Hoist,
	Undone,
	Bound,
}

// of returns the rewrite that puts off s.
func of(s *plan.Stmt) *Rewrite {
	for _, r := range Pipeline {
		if r.Matches != nil && r.Matches(s) {
			return r
		}
	}
	return Scalar
}
