// Package addedgrad is a rule of asyncgen vet.
//
// # AT036: gradients of all steps add up
//
// Backward adds to the gradients of parameters, so that a step can use those of several batches.
// What has been added stays until ZeroGrad drops it. If that is forgotten, each step goes along the
// sum of all gradients before. No error says so: the loss falls at first, and then swings.
//
// The rule reports Backward in a function that runs again and again and that also takes a step: by
// Step of an optimiser, or by Set of parameters that it computes from their gradients. Nothing calls
// ZeroGrad of this optimiser or of another one with the same parameters, or of a parameter: nothing in
// the loop around both, or in the package if callers have the loop. Minimize has its own ZeroGrad. The
// step may be in another function than Backward, if a loop calls both.
//
// WRONG
//
//	for _, b := range batches {
//		loss := nn.CrossEntropy(net.Forward(b.X), b.Y)
//		loss.Backward()
//		opt.Step()
//	}
//
// RIGHT
//
//	for _, b := range batches {
//		opt.Minimize(nn.CrossEntropy(net.Forward(b.X), b.Y))
//	}
//
// Silent: optimisers that callers in other packages give, or that unknown functions are given; those
// that each iteration makes anew.
//
// Missed: a ZeroGrad that is called, but not often enough.
//
// Fix: none. Whether a step is to have the gradients of several batches, the author knows.
package addedgrad
