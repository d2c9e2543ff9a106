// Package valueshape is a rule of asyncgen vet.
//
// # AT026: size that depends on a value
//
// Shapes are known when an operation is enqueued. If the size of a tensor or of
// a slice depends on a value that the device computes, the program must wait
// for the value before it can enqueue anything of that size, and no iteration
// can begin before the last one is finished.
//
// The rule reports values read in a loop that become a size: an operand of make, of a constructor,
// or of a view that takes sizes and bounds. If the value is put to another use as well, another
// rule speaks of the wait, and the finding here is of severity info.
//
// WRONG
//
//	for _, x := range xs {
//		n := int(x.Sum().Item())
//		ys = append(ys, x.Slice(0, 0, n).Mean())
//	}
//
// RIGHT
//
//	for _, x := range xs {
//		n := x.Sum() // stays on the device
//		ys = append(ys, x.Mul(mask(n)).Sum().Div(n))
//	}
//
// Choose a size that is large enough for all iterations, and a mask over the elements that count:
// then the loop runs ahead.
//
// Silent: what AT001 is silent about; how many values were read; the beginning of a part that
// always has the same number of elements, as in Slice(0, n, n+8); other operands that are places
// and no sizes, as the names of the parameters tell: axes, bounds of random numbers, the index of a
// row, for which there is RowAt.
//
// Missed: what AT001 misses; sizes that are computed by other functions.
//
// Fix: none. Which size is large enough is for the author to say.
package valueshape
