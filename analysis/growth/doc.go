// Package growth is a rule of asyncgen vet.
//
// # AT022: list of tensors that only grows
//
// What is in flight is bounded by the runtime, but what a program keeps is not.
// A tensor in a list keeps its memory on the device, and if it has a history,
// all that its gradient would need.
//
// The rule reports appends of tensors that a loop computes
// to a list that is never cut or made anew, when the loop has no end of its
// own: for without a condition, or while a context is alive, or over a channel,
// left only by a return from a select statement or after an error. A list that is used
// after such a loop may be what the loop is for, as may a field that a loop over a
// channel fills: then the finding is of severity info, shown with -severity=info. The
// others fill the memory and serve nobody who waits for the end: warnings.
//
// It also reports appends of tensors, or of what holds some, to lists that nobody ever looks at: local ones in loops,
// and fields and variables of the package that are not exported, if the package asks for their length at most and
// never cuts them, however long the loop is.
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
// Silent: loops over lists and ranges of numbers, and those that a counter, a
// value or the end of the input ends, as what they collect is as many as their
// iterations.
//
// Missed: maps, channels and lists of lists; lists that another function cuts
// or appends to, if somebody reads them.
//
// Fix: none. How much to keep is for the author to say.
package growth
