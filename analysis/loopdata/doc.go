// Package loopdata is a rule of asyncgen vet.
//
// # AT025: same tensor made in each iteration
//
// A constructor such as From, Full or Zeros copies host data to the device, or
// fills memory there. A tensor never changes, so one that is made of the same
// data in each iteration of a loop can be made once.
//
// The rule reports constructors in a loop that enqueues work whose operands are the same in each
// iteration, functions of the package that do nothing but make a tensor of what they are given, and
// conversions, by As, of a tensor that the loop does not change. One number costs next to nothing,
// and what a variable begins with, to be added to or computed anew in the loop, is often clearest
// where it is: about these, findings are of severity info, shown with -severity=info. The others
// are copies or fills of memory in each iteration that one line before the loop saves, whatever
// else the loop does: warnings.
//
// WRONG
//
//	for _, x := range xs {
//		ys = append(ys, x.Mul(tensor.From(weights)))
//	}
//
// RIGHT
//
//	w := tensor.From(weights)
//	for _, x := range xs {
//		ys = append(ys, x.Mul(w))
//	}
//
// Silent: data that the loop may write to; constructors under a condition that
// holds rarely, and in loops around loops.
//
// Missed: operands that are results of functions, but for methods that return a field or its
// length; data that is kept in fields and package variables which others can name, or which the package sets
// anywhere but where they are made.
//
// Fix: none. A good name for the tensor is for the author to find.
package loopdata
