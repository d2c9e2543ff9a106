// Package past proves that what a loop does past an exit, until the exit is known, does no harm. An exit is where a
// value decides whether the loop goes on.
//
//	for _, x := range xs {               for _, x := range xs {
//		w = w.MulScalar(0.9)             	w = w.MulScalar(0.9)
//		loss := w.Mul(x).Sum()           	if !later.Alike(x) {
//		if loss.Item() < tol {           		if end, ok := later.Flush(); ok {
//			return w                     			return end.w
//		}                                		}
//	}                                    	}
//	                                     	loss := w.Mul(x).Sum()
//	                                     	lossAt := later.Read(loss)
//	                                     	isSmall := func() bool { return lossAt.Item() < tol }
//	                                     	if end, ok := later.BreakIf(isSmall, fitEnd{w}); ok {
//	                                     		return end.w
//	                                     	}
//	                                     }
//
// When it is known which iteration ends the loop, some after it have begun. It has to be proved of these that
//
//   - what they change is given back: variables by the state, here fitEnd, and cells by the library. Memory that others
//     can see changes ahead of values only where it is given back, see undo.go of package rewrite;
//   - they can't fail where the iterations before did not. An iteration makes the same calls on tensors of the same
//     shapes, and what could fail on the host depends on nothing that changes. Alike compares a tensor from outside,
//     or one that comes round and may change its shape, with that of the iteration before. If it has another shape,
//     the loop waits. Floats finds out whether a tensor has
//     floating-point numbers, which take any number as an operand. Operations that work on all shapes can't fail. The
//     first iteration never runs past an exit: the runtime runs ahead of a test only after two have been false, or
//     Alike says that the iteration is the first;
//   - they come to an end.
//
// Statements that run now are no concern: before each it is decided what all exits do. What may wait for the outside
// always runs now.
//
// [Prove] is the whole of it. It decides nothing and writes nothing. In package rewrite exit.go says what an exit is,
// contain.go what follows from a proof or a [Harm], and ways.go how the loop is left; BreakIf, of the runtime, gives
// back. To read on:
//
//   - known has facts about the loop: which statements run in every iteration, which variables never change, and which
//     hand a tensor from one iteration to the next. fields.go is about fields of variables, values.go about calls.
//   - counting finds out which variables count, and are in the range of what they index: counting.go.
//   - shapes finds out what is known of the shapes of tensors: shapes.go, and results.go for what calls return. It
//     notes the tensors to compare.
//   - floats finds out which tensors have floating-point numbers, and notes those that have to be asked: floats.go.
//     guard.go says where an iteration compares and asks.
//   - host finds out what may fail: host.go, and calls.go for calls. It is what Prove asks about each statement.
//   - cells finds what has to be given back, and changes of memory that can't be: cells.go.
//
// Each embeds what it is based on, and is p in its methods. If Iterate, of the runtime, runs each iteration, it drops a
// panic past the end, and less has to be proved: contained.go.
package past

import (
	"cmp"
	"go/types"

	"github.com/asyncgen/asyncgen/gen/internal/plan"
)

// A Loop is one of which it has been decided what runs when.
type Loop struct {
	Stmt      *plan.Stmt          // the loop
	Units     []*plan.Unit        // all that it consists of
	Late      map[*plan.Unit]bool // what of Units comes later
	Ahead     []*plan.Unit        // what of Units runs past the exits; of a late one, the operands of its reads
	Exits     []*plan.Stmt        // in which values decide whether the loop goes on
	GivesBack int                 // how many statements change memory that others can see, and that is given back
	Contained bool                // Iterate runs each iteration
}

// A Proof is what makes a loop run past its exits without harm.
type Proof struct {
	Changed []*types.Var   // variables that the loop changes ahead of values, in source order
	Cells   []plan.CellsOf // that the loop changes and that may not say so: BreakIf is told of them
	Guard   *plan.Guard    // what each iteration compares; nil if there is no need
}

// A Harm is why a loop must not run past its exits.
type Harm struct {
	*plan.Reason
	By *plan.Unit // does the harm, in some iterations only, and can run now instead; nil if that is no way out
}

// Prove returns the proof that l, a loop of f, may run past its exits, or the first harm that would do. It changes
// nothing of l.
func Prove(f *plan.Function, l *Loop) (*Proof, *Harm) {
	p := newHost(newKnown(f, l))
	for _, u := range l.Ahead {
		if h := p.harm(u); h != nil {
			return nil, h
		}
	}
	c := &cells{known: p.known}
	if r := cmp.Or(c.memory(), c.find(), p.unguarded()); r != nil {
		return nil, &Harm{Reason: r}
	}
	proof := &Proof{Changed: p.written, Cells: c.found}
	if !l.Contained || len(p.given) > 0 {
		proof.Guard = p.guard()
	}
	return proof, nil
}
