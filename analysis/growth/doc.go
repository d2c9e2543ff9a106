// Package growth is a rule of asyncgen vet.
//
// # AT022: list of tensors that only grows
//
// The runtime bounds what is in flight, but not what a program keeps. A tensor in a list keeps its
// memory on the device and, if it has a history, all that its gradient would need.
//
// The rule reports appends of tensors that a loop computes to a list that is never cut or made
// anew, if the loop has no end of its own. Such a loop is a for without a condition, goes on while
// a context is alive, or ranges over a channel, and is left only by a return from a select
// statement or after an error. It fills the memory, and nobody gets to use the list. If the list is
// used after the loop, or is a field that a loop over a channel fills, it may be what the loop is
// for: then the finding is of severity info, shown with -severity=info. A list in a field may also grow
// by a method that such a loop calls with the tensor.
//
// It also reports appends to lists that nobody ever looks at, however long the loop is. These are
// local lists in loops, and unexported fields and variables of the package, if the package never
// cuts them and asks for their length at most. The elements are tensors, or structs and lists with
// tensors. It reports elements of maps in such fields and variables as well, if nobody looks at the map.
//
// WRONG
//
//	for req := range requests {
//		loss := step(req)
//		losses = append(losses, loss)
//	}
//
// RIGHT
//
//	for req := range requests {
//		loss := step(req)
//		losses = append(losses, loss)
//		if len(losses) == 100 {
//			report(losses)
//			losses = losses[:0]
//		}
//	}
//
// In lists that a function only appends to, to ask for the last element, all others are kept for
// nothing. This is reported as well, also of the states of networks that nn.Snapshot returns.
//
// Nor does a program need all elements of what it keeps if it only computes a number of each tensor later, as by
// y.Max(), or one number of all that it stacks. Such lists and maps are reported, local ones and unexported fields and
// variables of the package: keep the numbers, which are tensors as well, or Maximum of the one so far and the next.
//
// Silent: loops over lists and ranges of numbers, and loops that a counter, a value or the end of
// the input ends. What these collect is bounded by the number of their iterations. Of lists that are only reduced:
// those whose gradients are asked for, of few tensors, or of tensors that may be numbers already.
//
// Missed: maps that somebody looks at, channels and lists of lists; lists that another function cuts
// (of fields, only if that function doesn't append to the field itself); lists that other functions
// append to, if somebody reads them.
//
// Fix: none. How much to keep is for the author to say.
package growth
