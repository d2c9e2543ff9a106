// Package loopdata is a rule of asyncgen vet.
//
// # AT025: same tensor made in each iteration
//
// A constructor such as From, Full or Zeros copies host data to the device, or fills memory there.
// A tensor never changes, so a loop that makes it of the same data in each iteration can use one
// that was made before. The same goes for what is computed from tensors that the loop doesn't change.
//
// The rule reports, in a loop that enqueues work,
//
//   - constructors whose operands are the same in each iteration;
//   - operations whose operands are the same in each iteration, as x.T().MatMul(x);
//   - calls of functions of the package that only make a tensor of their operands, under the same
//     condition; methods and closures count, if the loop doesn't change the fields and variables that
//     they use;
//   - inverses, decompositions, sorts and the like of what nothing in the package changes in the loop, also if
//     it comes from functions of the package or from behind an interface, and if they are in a method that
//     the loop calls;
//   - Forward of the same input, by a network that is frozen, or that no step of training in the loop is for;
//   - conversions, by As, of a tensor that the loop does not change;
//   - tensors that a function makes of a list in a field or a variable of the package that is set once,
//     if a loop calls the function;
//   - nn.Frozen of a network that the loop does not train.
//
// A copy of host data, a conversion, a product of matrices, a decomposition and the like in each
// iteration is worth a line before the loop: a warning. For one number there is often an operation that
// takes it as it is, such as MulScalar. Tensors that are only filled, as by Zeros, and the other
// operations take one pass over memory, for which nothing waits. They are often clearest where they
// are, and so are the first value of a variable that the loop adds to or computes anew, and nn.Frozen of a
// network in an expression: about these, findings are of severity info, shown with -severity=info. So
// are those in loops whose iterations each wait for the world, as AT001 says.
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
// Silent: data that the loop may write to; constructors under a condition that holds rarely;
// constructors in a loop that has another loop in it, or begins each iteration when a clock says so;
// operations in functions that read a clock.
//
// Missed: operands that are results of functions, except for those of the package that only compute
// from numbers, and methods that return a field or its length; data in fields and package variables
// that others can name, or that the package sets anywhere but where they are made, as a constructor
// does.
//
// Fix: none. The tensor needs a name, and a good one is for the author to find.
package loopdata
