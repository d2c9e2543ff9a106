// Package regrown is a rule of asyncgen vet.
//
// # AT035: tensor that is copied to grow in each iteration
//
// A tensor never changes. Concat makes a new one and copies all of its operands into it. If a loop
// adds a piece in each iteration, all earlier pieces are copied each time: for a thousand pieces of
// a megabyte that is 500 gigabytes. The host has nothing to wait for, so no other rule notices.
//
// The rule reports calls of Concat in a loop whose result takes the place of one of the operands, a
// variable or a field. The first iteration may do something else, under a condition like i == 0. The
// rule also reports methods that add their operand to a field in this way, if nothing in the package
// ever begins the field anew.
//
// If each iteration computes with all that there is so far, as a decoder that looks at all earlier
// tokens does, a list of pieces is no remedy. But each iteration takes longer than the one before, so
// the loop should have a bound, such as a count or a size: one without is reported.
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
// An element or a row that SetIndex changes costs a copy of the whole tensor, too. It is reported if the
// copy takes the tensor's place, in each iteration, at another place in the tensor each time. Parts
// larger than an element are reported if the loop does nothing else with the tensor, but to take the same
// part of it and add to that.
//
// Silent: loops with a bound that compute with the whole tensor; loops that keep the tensor of each
// iteration, or begin anew now and then; loops of at most four iterations; windows that drop as much as
// is added; calls under conditions that rarely hold; methods that also use the field.
//
// Missed: tensors in elements of lists and in fields of fields; pieces that a function adds which does more
// than that.
//
// Fix: none. Where the list comes from is for the author to say.
package regrown
