package rewrite

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/asyncgen/asyncgen/gen/internal/load"
	"github.com/asyncgen/asyncgen/gen/internal/plan"
	"github.com/asyncgen/asyncgen/gen/rewrite/fuse"
	"github.com/asyncgen/asyncgen/gen/rewrite/numbers"
	"github.com/asyncgen/asyncgen/gen/rewrite/plain"
	"github.com/asyncgen/asyncgen/gen/rewrite/rows"
)

// A Rewrite is one kind of change to a loop.
type Rewrite = plan.Rewrite

// A Step is a rewrite and the places where the planner, in planner.go, calls it. Nothing else makes the rewrite, so
// that a function is planned without it where its step is left out.
type Step struct {
	*Rewrite

	// begin is called before the loops of a function are planned, end after that.
	begin, end func(p *planner)

	// row is a part of the stage that takes reads of rows in a loop over rows together.
	row *rows.Part

	// defers reports whether it is the rewrite that puts off s, a statement that looks at values.
	defers func(s *plan.Stmt) bool

	// ahead lets the part of u that does not come later run ahead although others can see what it does, and reports
	// whether it may.
	ahead func(a *attempt, u *plan.Unit) bool

	// again tries a loop that has been refused, in the attempt a, in another form. The attempt is nil if there is none.
	again func(p *planner, a *attempt, loop, outermost *plan.Stmt) (*attempt, *plan.Region, []plan.Remark)

	// form writes a function that would wait in another form, and says what it has written otherwise. The function is
	// nil if nothing is. The form is taken if less waits then, or if as much does and there was no plan.
	form func(f *plan.Function) (*plan.Function, []plan.Remark)

	// finish writes a function in another form once it is planned, and says what it has written otherwise. The function
	// is nil if nothing is. The form is taken if no more waits then.
	finish func(f *plan.Function) (*plan.Function, []plan.Remark)

	// number is a part of the stage that restates a function that would wait in numbers that stay on the device.
	number *numbers.Part
}

// Pipeline is every rewrite. Where the planner calls several of them in one place, they come in this order.
var Pipeline []*Step

func init() { // the steps lead back to their rewrites
	Pipeline = []*Step{
		{Rewrite: Bound, begin: (*planner).bound},
		{Rewrite: Lifted, begin: (*planner).lift},
		{Rewrite: plain.Rewrite, form: plain.Form},
		{Rewrite: rows.WholeSlice.Rewrite, row: rows.WholeSlice},
		{Rewrite: rows.Batched.Rewrite, row: rows.Batched},
		{Rewrite: Exit, defers: only(Exit), again: (*planner).splitCondition},
		{Rewrite: Guarded, defers: only(Guarded)},
		{Rewrite: Print, defers: only(Print)},
		{Rewrite: Accumulate, defers: only(Accumulate)},
		{Rewrite: Store, defers: only(Store)},
		{Rewrite: Scalar, defers: only(Scalar)},
		{Rewrite: Undone, ahead: (*attempt).undo},
		{Rewrite: rows.Kept, end: (*planner).keep},
		{Rewrite: numbers.Choice.Rewrite, number: numbers.Choice},
		{Rewrite: numbers.RoundTrip.Rewrite, number: numbers.RoundTrip},
		{Rewrite: fuse.Rewrite, finish: fuse.Form},
	}
}

// of returns the rewrite that puts off s, a statement that looks at values: each has one.
func of(s *plan.Stmt) *Rewrite {
	switch {
	case mayLeave(s):
		return Exit
	case isGuarded(s):
		return Guarded
	case isPrint(s):
		return Print
	case isSum(s):
		return Accumulate
	case isStore(s):
		return Store
	}
	return Scalar
}

// only reports of a statement whether r puts it off.
func only(r *Rewrite) func(s *plan.Stmt) bool {
	return func(s *plan.Stmt) bool { return of(s) == r }
}

// A directive is what //asyncgen:kernel asks for of a function, and the steps that are not switched off.
type directive struct {
	*load.Kernel
	steps []*Step
}

// withoutOff is the directive k, which may be nil.
func withoutOff(k *load.Kernel) *directive {
	if k == nil {
		k = &load.Kernel{}
	}
	return &directive{k, slices.DeleteFunc(slices.Clone(Pipeline), func(s *Step) bool { return slices.Contains(k.Off, s.Name) })}
}

// rows are the parts that take rows together and are not switched off.
func (d *directive) rows() []*rows.Part {
	return parts(d, func(s *Step) *rows.Part { return s.row })
}

// numbers are the parts that leave numbers on the device and are not switched off.
func (d *directive) numbers() []*numbers.Part {
	return parts(d, func(s *Step) *numbers.Part { return s.number })
}

// parts are those of the steps of d that have one.
func parts[P any](d *directive, of func(*Step) *P) (parts []*P) {
	for _, step := range d.steps {
		if part := of(step); part != nil {
			parts = append(parts, part)
		}
	}
	return parts
}

// defers reports whether a step puts off s.
func (d *directive) defers(s *plan.Stmt) bool {
	return slices.ContainsFunc(d.steps, func(step *Step) bool { return step.defers != nil && step.defers(s) })
}

// switchedOff is why s is not put off if no step does.
func (d *directive) switchedOff(s *plan.Stmt) *plan.Reason {
	return &plan.Reason{Code: plan.SwitchedOff, Cause: plan.Cause{Pos: d.Pos, Text: "says off=" + of(s).Name}}
}

// Names are the names of all rewrites.
func Names() (names []string) {
	for _, s := range Pipeline {
		names = append(names, s.Name)
	}
	return names
}

// MayOff returns what is wrong with name as that of a rewrite that is switched off, or nil.
func MayOff(name string) error {
	var now []string // the names of what was called that
	for _, s := range Pipeline {
		switch name {
		case s.Name:
			return nil
		case s.Was:
			now = append(now, s.Name)
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
