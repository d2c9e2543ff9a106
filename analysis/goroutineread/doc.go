// Package goroutineread is a rule of asyncgen vet.
//
// # AT013: read on a goroutine for each iteration
//
// A goroutine that waits for a tensor doesn't hold up the loop. But there is one for each
// iteration, their number has no bound, and what they do with the values comes in any order. A loop
// that keeps the tensors, to read them later, needs none of them.
//
// The rule reports go statements in a loop, and calls of the Go methods of sync.WaitGroup and
// errgroup.Group, if their function reads what the loop or the function itself enqueues. Sometimes
// that is what is wanted, so findings are of severity info: they are shown with -severity=info. Two
// cases are warnings:
//
//   - The iteration waits for the end of its goroutine, or receives what it sends. Then it could as
//     well read. So it could if a function that it calls starts the goroutine and returns the channel,
//     or if a goroutine beside the loop answers each tensor with its value.
//   - The goroutines only enqueue, read and keep the value, and the function waits for all of them
//     after the loop. It could as well read there. This doesn't go for goroutines that only print the
//     value.
//
// WRONG
//
//	for i, b := range batches {
//		loss := step(b)
//		wg.Go(func() { values[i] = loss.Item() }) // a goroutine for each batch
//	}
//
// RIGHT
//
//	for i, b := range batches {
//		losses[i] = step(b)
//	}
//	values := tensor.Stack(0, losses...).Float32s()
//
// Silent: loops over at most four things; groups with a limit; goroutines that
// read in or after a loop of their own, as workers do, or that are each given
// their part of the data, by a division; reads under a condition that holds rarely.
//
// Missed: function values; tensors from channels.
//
// Fix: none. In which order the goroutines do the rest of their work is for the author to say.
package goroutineread
