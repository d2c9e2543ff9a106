package rewrite

import (
	"go/types"

	"github.com/asyncgen/asyncgen/gen/internal/plan"
)

// timing refuses a loop in which readings of the clock reach anything but the
// text of a print: what they measure would be another thing.
func (a *target) timing() *refuse {
	clock := make(map[types.Object]bool) // variables with readings in them
	tainted := func(s *plan.Stmt) *plan.Cause {
		return plan.FirstOf(s.Head.Clock, s.Head.Reads.First(func(l plan.Loc) bool { return l.Kind == plan.Var && clock[l.Obj] }))
	}
	for range a.loop.All { // each pass may taint one more
		grown := false
		for s := range a.loop.All {
			c := tainted(s)
			if c == nil {
				continue
			}
			if !a.onlyShown(s) {
				hint := "take times outside the loop, or only print them"
				if s.IsCompound() {
					hint = "this can't be helped while the time decides: let a count do that, as with if i%100 == 99"
				}
				return &refuse{Reason: plan.Reason{Code: plan.Timing, Cause: *c, Hint: hint}}
			}
			for l := range s.Head.Writes {
				if l.Kind == plan.Var && !clock[l.Obj] {
					clock[l.Obj], grown = true, true
				}
			}
		}
		if !grown {
			break
		}
	}
	return nil
}

// onlyShown reports whether what s computes is printed, or kept in variables
// of the loop.
func (a *target) onlyShown(s *plan.Stmt) bool {
	if s.IsCompound() {
		return false
	}
	for l := range s.Head.Writes {
		switch {
		case l.Kind == plan.World:
		case l.Kind == plan.Var && s.Declares[l.Obj]:
		default:
			return false
		}
	}
	return !a.jumpsOut(s)
}
