package rewrite

import (
	"github.com/asyncgen/asyncgen/gen/internal/plan"
)

// Lifted is R18: the read is in a function that the loop calls, and makes what
// the function returns. A variant of the function does what comes before the
// read, and returns a function that does the rest.
//
//	total += mean(x)    meanAt := meanLater(later, x)
//	                    later.Do(func() { total += meanAt() })
//
//	func meanLater(later asyncrt.Reader, x *tensor.Tensor) func() float64 {
//		meanAt := later.Read(x.Mean())
//		return func() float64 { return meanAt.Item() }
//	}
var Lifted = &Rewrite{
	ID:   "R18",
	Code: plan.LiftedRead,
	Does: "reads when the values have arrived: its first half is called in its place",
}

// nameLift names what a variant declares, and those of the functions that it calls.
func nameLift(l *plan.Lift) {
	if l.Param != "" {
		return
	}
	n := newNamer(l.Function)
	l.Param = n.unused("later")
	for g := range l.Groups {
		before := make(map[any]string)
		for i := range g.Takes {
			t := &g.Takes[i]
			r := t.Read
			if name, ok := before[r.Plain]; ok && r.Plain != nil {
				g.Names[r] = name
				continue
			}
			t.Name = n.unused(base(r.Operand) + "At")
			g.Names[r] = t.Name
			before[r.Plain] = t.Name
			t.Force = r.Plain == nil && i > 0
			if r.Lift != nil {
				nameLift(r.Lift)
			}
		}
		g.Takes = onlyNamed(g.Takes)
	}
}

// onlyNamed returns the takes that declare something.
func onlyNamed(takes []plan.Take) (out []plan.Take) {
	for _, t := range takes {
		if t.Name != "" {
			out = append(out, t)
		}
	}
	return out
}

// restBefore returns that the rest of a function, which is called in u before r, has
// effects: the tensor of r can't be computed before it. Otherwise it may run
// twice, once to raise what it would raise.
func restBefore(u *plan.Unit, r *plan.Read) *plan.Cause {
	for _, o := range u.Reads {
		if o.Lift == nil || o.Expr.Pos() >= r.Expr.Pos() {
			continue
		}
		for _, c := range o.Lift.Late.Writes {
			return &plan.Cause{Pos: o.Expr.Pos(), Text: "first calls " + o.What() + ", which " + c.Text}
		}
	}
	return nil
}
