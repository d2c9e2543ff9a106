// Package rewrite decides what of a function runs later. A [Rewrite] is a
// pattern with a name; what they all have in common, putting statements off
// until the values that they look at have arrived, is in deferral.go.
//
// The package changes no text: its result is a plan, or the reasons why there
// is none.
package rewrite

import (
	"errors"
	"fmt"
	"strings"

	"github.com/asyncgen/asyncgen/gen/internal/load"
	"github.com/asyncgen/asyncgen/gen/internal/plan"
)

// A Rewrite is one kind of change to a loop.
type Rewrite struct {
	Name string    // as in off=defer-sum
	Was  string    // what it was called before it had a name
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
	Kept,
	Lifted,
	Hoist,
	Undone,
	Bound,
}

// Names are the names of all rewrites.
func Names() (names []string) {
	for _, r := range Pipeline {
		names = append(names, r.Name)
	}
	return names
}

// MayOff returns what is wrong with name as that of a rewrite that is switched off, or nil.
func MayOff(name string) error {
	var now []string // the names of what was called that
	for _, r := range Pipeline {
		switch name {
		case r.Name:
			return nil
		case r.Was:
			now = append(now, r.Name)
		}
	}
	if now != nil {
		return fmt.Errorf("rewrites have names now: this is off=%s", strings.Join(now, ","))
	}
	if near := load.DidYouMean(name, Names()); near != "" {
		return errors.New("there is no such rewrite" + near)
	}
	return fmt.Errorf("there is no such rewrite; there are %s", strings.Join(Names(), ", "))
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
