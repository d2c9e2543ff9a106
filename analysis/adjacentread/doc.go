// Package adjacentread is a rule of asyncgen vet.
//
// # AT007: reads that could be one
//
// Each read is a round trip to the device. Numbers that are read one after
// the other could come back in one, and what has been read already need not
// be read again.
//
// The rule reports loops that read a number of each tensor of a list, map or iterator, or append
// all of its numbers to a list, and enqueue nothing: the first read waits for most of the work, but each is a
// copy of a few bytes. It reports calls of functions with such a loop where only the call shows
// what they do: they are given the method that reads, as in Map(losses, (*tensor.Tensor).Item),
// or call a method of a type parameter. And it reports loops that print each tensor of a list to have a key of a map.
//
// It also reports, in loops, a read of one number right after another, when the
// first does not matter for the second, and reads of what the same iteration has
// read before. The second of two reads rarely waits long, so these findings are of
// severity info: they are shown with -severity=info.
//
// WRONG
//
//	for _, loss := range losses {
//		sum += loss.Item() // a read for each
//	}
//
//	total += loss.Item()
//	right += hits.Item()
//	fmt.Println(loss.Item())
//
// RIGHT
//
//	for _, v := range tensor.Stack(0, losses...).Float32s() {
//		sum += float64(v)
//	}
//
//	both := tensor.Stack(0, loss, hits).Float32s()
//	total += float64(both[0])
//	right += float64(both[1])
//	fmt.Println(both[0])
//
// Silent: what AT001 is silent about, but for reading again; reads with
// something between them that the first decides; lists of at most four tensors, of tensors that
// are made of host data alone, or that a Wait before has waited for; reads of a list of which
// one can end the loop, or that are on a goroutine of their own; tensors from channels; what is left in a queue
// from whose front the program takes; lists of numbers such as tensor.F64, which can't be stacked.
//
// Missed: reads in different branches; other reads of more than a number, as tensors of different
// shapes can't be stacked; lists that a loop with other work reads.
//
// Fix: none. Tensors of different types or devices can't be stacked.
package adjacentread
