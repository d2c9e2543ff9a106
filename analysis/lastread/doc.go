// Package lastread is a rule of asyncgen vet.
//
// # AT002: read in each iteration of a value that the next overwrites
//
// When only the value of the last iteration is used after the loop, all the
// reads before it made the host wait for nothing.
//
// The rule reports reads in a loop whose value is assigned to a variable that
// the loop does not use and assigns nowhere else.
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
// Missed: values kept in fields or elements, or that closures refer to; those
// that pass through arithmetic on the way to the variable; loops that goto makes.
//
// Fix: keeps the tensor in the loop and reads it after the loop, if there was
// an iteration. It is offered when the loop is left only at its end or by its
// own break, or by a return that can't see the variable, and when the function reads
// no clock, as the waits may be what makes its timing right. Tensors never change,
// so the value is the same. If a computation other than the last one failed,
// nothing reads it any more, and no panic tells; WaitAll reports such failures
// in any case. All such reads of a loop are one fix.
package lastread
