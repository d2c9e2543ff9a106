// Package regrown is a rule of asyncgen vet.
//
// # AT035: tensor that is copied to grow in each iteration
//
// A tensor never changes. Concat makes a new one and copies all of its operands into it. If a loop
// adds a piece in each iteration, all earlier pieces are copied each time: for a thousand pieces of
// a megabyte that is 500 gigabytes. The host has nothing to wait for, so no other rule notices.
//
// The rule reports calls of Concat in a loop whose result takes the place of one of the operands, a
// variable or a field, if the loop does nothing else with what it has so far. The first iteration may
// do something else, under a condition like i == 0. The rule also reports
// methods that add their operand to a field in this way, if nothing in the package ever begins the
// field anew.
//
// WRONG
//
//	all := tensor.Zeros(0, 8)
//	for _, b := range batches {
//		all = tensor.Concat(0, all, b)
//	}
//
// RIGHT
//
//	var parts []*tensor.Tensor
//	for _, b := range batches {
//		parts = append(parts, b)
//	}
//	all := tensor.Concat(0, parts...)
//
// Silent: loops that use what they have so far for anything but its shape and whether there is
// anything, like a decoder that looks at all earlier tokens; loops of at most four iterations;
// calls under conditions that rarely hold.
//
// Missed: tensors in elements of lists and in fields of fields; pieces that a function adds.
//
// Fix: none. Where the list comes from is for the author to say.
package regrown
