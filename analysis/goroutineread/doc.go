// Package goroutineread is a rule of asyncgen vet.
//
// # AT013: read on a goroutine for each iteration
//
// A goroutine that waits for a tensor keeps the loop going, but there is
// one for each iteration, with nothing that bounds how many; and what they do
// with the values comes in any order. A loop that keeps the tensors and reads
// them later needs none of them.
//
// The rule reports go statements in a loop, and calls of the Go methods of
// sync.WaitGroup and errgroup.Group, whose function reads what the loop or the
// function enqueues. Sometimes that is what is wanted, so findings are of
// severity info: they are shown with -severity=info. It is a warning where the iteration
// receives what the goroutine sends, or waits for its end, as if it read itself. So it is where
// the goroutines only enqueue, read and keep the value, and the function waits for all of them
// after the loop, at which it can as well read.
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
// read in or after a loop of their own, as workers do; reads under a condition
// that holds rarely.
//
// Missed: function values; tensors from channels.
//
// Fix: none. What the goroutines do beside reading is not a linter's to order.
package goroutineread
