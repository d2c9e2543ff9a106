// Package lastread is a rule of asyncgen vet.
//
// # AT002: read in each iteration of a value that the next overwrites
//
// When only the value of the last iteration is used after the loop, all the
// reads before it made the host wait for nothing.
//
// The rule reports reads in a loop whose value is assigned to a variable, if the loop does not use
// the variable and assigns it nowhere else.
//
// WRONG
//
//	var last float64
//	for _, b := range batches {
//		loss := step(b)
//		last = loss.Item() // waits for each batch
//	}
//	fmt.Println(last)
//
// RIGHT
//
//	var last float64
//	var lastTensor *tensor.Tensor
//	for _, b := range batches {
//		loss := step(b)
//		lastTensor = loss
//	}
//	if lastTensor != nil {
//		last = lastTensor.Item()
//	}
//	fmt.Println(last)
//
// Silent: what AT001 is silent about.
//
// Missed: values kept in fields or elements, or in variables of closures; values that pass through
// arithmetic on the way to the variable; loops made of goto.
//
// Fix: keeps the tensor in the loop and reads it after the loop, if there was an iteration. All
// such reads of a loop are one fix. It is offered if
//
//   - the loop is left only at its end, by its own break, or by a return that can't see the
//     variable;
//   - the function reads no clock, as the waits may be what makes its timing right.
//
// Tensors never change, so the value is the same. If a computation other than the last one failed,
// nothing reads its result any more, and there is no panic. WaitAll reports such failures in any
// case.
package lastread
