// Package history is a rule of asyncgen vet.
//
// # AT023: history of every iteration that is kept
//
// A tensor that was computed from the value of a parameter remembers how, so
// that Backward can follow it. A sum of such tensors remembers all of them:
// with total = total.Add(loss) in a loop, no tensor of any iteration that the
// gradient would need can be freed before total is. A list of them does the same, and so
// does a state that each iteration computes from the one before.
//
// The rule reports, where the program only ever reads values from what is kept:
// a sum, or another operation, in a loop that keeps a tensor beyond the iteration, when
// the part that is added has a history; a tensor that each iteration computes from its
// value before, as the state of a decoder; tensors that are put into a list, or into a
// field of a struct that outlives the iteration; and sums and lists in fields, at the call of the
// function that adds to them if that is given tensors by others.
// In a loop that takes steps of training it reports averages of parameters in any list,
// who reads that or not: the steps change what a gradient would be of.
//
// It also reports, where Backward or Minimize follows it, what a network computes whose
// parameters the package sets to those of another network, or to averages of both, and gives
// to no optimiser: nothing uses the gradients of such a network, as that of the targets in
// reinforcement learning.
//
// If the loop calls Backward or Minimize on the part of a sum, that releases
// most of its history, and a small record is left of each iteration; that is reported
// as well, as it grows for as long as the loop runs, and Detach costs nothing. In a list it
// is not: the handles are as many.
//
// WRONG
//
//	for _, b := range test {
//		total = total.Add(model.Loss(b))
//	}
//	fmt.Println(total.Item())
//
// RIGHT
//
//	for _, b := range test {
//		total = total.Add(model.Loss(b).Detach())
//	}
//	fmt.Println(total.Item())
//
// Better still is nn.Frozen for all that only evaluates.
//
// A sum that is scaled by numbers before the part is added, as a moving average is,
// is one, too.
//
// Silent: networks of layers; what is passed on, returned, stored or differentiated, as in
// the accumulation of gradients, in networks that unroll a loop, in descents that are
// differentiated themselves; states that some iterations detach; results of
// comparisons, of arg max and other operations that no gradient passes.
//
// A layer that is known as an nn.Module only has parameters, unless the package makes
// it Frozen or passes such a one to the function, or it is called frozen. So has a loss that an
// exported method is given, if nothing in the package calls it. Sums over the parts of a
// model, which are few, are silent.
//
// Missed: interfaces of the user; a list or state that an exported function returns; what a
// function that is not known computes.
//
// Fix: none. Where to detach is for the author to say.
package history
