// Package elementread is a rule of asyncgen vet.
//
// # AT006: element after element of the same tensor
//
// Each read is a call into the runtime and, on a GPU, a round trip to the device.
// A loop that reads one element or one row in each iteration, or the same
// tensor over and over, pays for that many times to get what one read before the
// loop gives.
//
// The rule reports reads in a loop of a tensor that the loop does not assign, in a
// local variable, a field or a package variable, when the indices, if there are any,
// are computed from what counts the iterations, from a number to which each adds, or from the
// elements of a list; and prints of rows and elements that do. Of a large tensor, Take gives
// the elements that the loop needs, to be read at once.
//
// WRONG
//
//	for i := range probabilities.Dim(0) {
//		fmt.Println(probabilities.At(i)) // a read for each element
//	}
//
// RIGHT
//
//	for _, p := range probabilities.Float32s() {
//		fmt.Println(p)
//	}
//
// Silent: loops over at most four things; indices that a function looks up, which
// may be few; tensors made of host data, whose elements the program has anyway, also in fields;
// reads under a condition that holds rarely.
//
// Missed: tensors in elements of slices; fields and package variables where the loop
// calls a function that is not known, which may assign them.
//
// Fix: moves reads of single numbers, as by Item, out of the loop, to variables
// before it; all of a loop at once. It is offered when the loop certainly runs and comes
// to the read, and when the function reads no clock. If the tensor's computation failed,
// the panic comes before what the first iteration does ahead of the read.
package elementread
