// Package history is a rule of asyncgen vet.
//
// # AT023: sum that keeps the history of every iteration
//
// A tensor that was computed from the value of a parameter remembers how, so
// that Backward can follow it. A sum of such tensors remembers all of them:
// with total = total.Add(loss) in a loop, no tensor of any iteration that the
// gradient would need can be freed before total is.
//
// The rule reports a sum, or another operation, in a loop that keeps a tensor
// beyond the iteration, when the part that is added was computed in the loop
// from the value of a parameter, and the program only ever reads values from
// the sum. If the loop calls Backward or Minimize on the part, that releases
// most of its history, and a small record is left of each iteration; that is reported
// as well, as it grows for as long as the loop runs, and Detach costs nothing.
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
// Silent: what is computed from the sum itself, as in a network of layers; sums
// that are passed on, returned, stored or differentiated, as in the
// accumulation of gradients and in networks that unroll a loop; results of
// comparisons, of arg max and other operations that no gradient passes.
//
// A layer that is known as an nn.Module only has parameters, unless the package makes
// it Frozen or passes such a one to the function. Sums over the parts of a model, which
// are few, are silent.
//
// Missed: functions of other packages and layers that these pass, tensors in
// fields and containers.
//
// Fix: none. Where to detach is for the author to say.
package history
