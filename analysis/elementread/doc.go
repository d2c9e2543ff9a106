// Package elementread is a rule of asyncgen vet.
//
// # AT006: element after element of the same tensor
//
// Each read is a call into the runtime and, on a GPU, a round trip to the device. A loop that reads
// one element or one row in each iteration, or the same tensor over and over, pays for that many
// times. One read before the loop gives all of it.
//
// The rule reports reads in a loop of a tensor that the loop does not assign. The tensor is in a
// local variable, a field or a package variable. If the read has indices, they are computed from
// the counter of the loop, from a number to which each iteration adds, or from the elements of a
// list, a list of points or another such tensor. So are the parts that a loop takes from Unbind, Split
// or Chunk. Prints of such rows and elements are reported as well, and calls of functions that read
// them. The tensor may be an element of a list, the same one in all iterations of an inner loop. Of a
// large tensor, Take gives the elements that the loop needs, to be read at once.
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
// Functions that read the part which they are asked for count where they are called, also those of
// other packages: table.Vector(key).
//
// Silent: loops over at most four things; indices that a function looks up, which may be few;
// tensors made of host data, also in fields, in loops that enqueue nothing, since the program has their
// elements anyway; reads under a condition that holds rarely; prints in loops that wait for input, as
// somebody looks at each.
//
// Missed: tensors in elements of slices; fields and package variables, if the loop calls an unknown
// function, which may assign them. No such function assigns an unexported field that only those functions
// set which make the struct.
//
// Fix: moves reads of single numbers, as by Item, out of the loop, to variables
// before it; all of a loop at once. It is offered when the loop certainly runs and comes
// to the read, and when the function reads no clock. If the tensor's computation failed,
// the panic comes before what the first iteration does ahead of the read.
package elementread
