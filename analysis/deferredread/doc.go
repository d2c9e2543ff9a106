// Package deferredread is a rule of asyncgen vet.
//
// # AT014: deferred call with a read in a loop
//
// The arguments of a deferred call are evaluated by the defer statement: a
// read among them waits in each iteration, although the call comes much later.
// A read in the deferred function itself waits when the function returns, but
// then there is one for each iteration, in reverse order, and until then every
// iteration keeps its tensors.
//
// The rule reports both, in loops that enqueue what is read, and deferred waits like reads. Outside
// of loops it reports operands that wait for what the function has enqueued, if the function
// enqueues more after that.
//
// WRONG
//
//	for _, b := range batches {
//		loss := step(b)
//		defer log.Println("loss", loss.Item()) // waits here, prints later
//	}
//
// RIGHT
//
//	var losses []*tensor.Tensor
//	defer func() {
//		for _, v := range tensor.Stack(0, losses...).Float32s() {
//			log.Println("loss", v)
//		}
//	}()
//	for _, b := range batches {
//		losses = append(losses, step(b))
//	}
//
// Silent:
//
//   - what AT001 is silent about, apart from functions marked //asyncgen:kernel, as the generator
//     leaves deferred calls as they are;
//   - deferred calls in a function literal that the loop calls at once: AT001 and AT004 report
//     these;
//   - calls that are deferred under a condition that holds rarely.
//
// Missed: deferred calls of function values.
//
// Fix: none. The order of the deferred calls would change.
package deferredread
