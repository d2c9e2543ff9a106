package emit

import (
	"slices"
	"strings"

	"github.com/asyncgen/asyncgen/gen/internal/load"
	"github.com/asyncgen/asyncgen/gen/internal/plan"
)

// undo are the statements in front of the loop of r that tell the Later what the loop changes ahead of values.
func (p *printer) undo(l *plan.Later, r *plan.Region) (lines []string) {
	if !slices.ContainsFunc(l.Regions, func(r *plan.Region) bool { return len(r.Undo) > 0 }) {
		return nil
	}
	if len(l.Regions) > 1 || r.Loop.Node != l.Anchor { // there may be places of another loop, or another iteration
		lines = append(lines, l.Name+".Undo()")
	}
	for i := 0; i < len(r.Undo); {
		guard, call := r.Undo[i].Guard, []string(nil)
		for ; i < len(r.Undo) && slices.Equal(r.Undo[i].Guard, guard); i++ {
			call = append(call, p.place(r.Undo[i]))
		}
		line := l.Name + ".Undo(" + strings.Join(call, ", ") + ")"
		if len(guard) > 0 {
			line = p.block("if "+strings.Join(guard, " != nil && ")+" != nil", []string{line})
		}
		lines = append(lines, line)
	}
	return lines
}

// place is the expression for a place.
func (p *printer) place(at plan.Place) string {
	if at.Elems {
		return p.qualified(load.RuntimePath, "Elems") + "(" + at.Path + ")"
	}
	return p.qualified(load.RuntimePath, "Var") + "(&" + at.Path + ")"
}
