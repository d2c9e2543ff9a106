// Package adjacentread is a rule of asyncgen vet.
//
// # AT007: reads that could be one
//
// Each read is a round trip to the device. Two numbers that are read one after
// the other could come back in one, and what has been read already need not
// be read again.
//
// The rule reports, in loops, a read of one number right after another, when the
// first does not matter for the second, and reads of what the same iteration has
// read before. The second of two reads rarely waits long, so findings are of
// severity info: they are shown with -severity=info.
//
// WRONG
//
//	total += loss.Item()
//	right += hits.Item()
//	fmt.Println(loss.Item())
//
// RIGHT
//
//	both := tensor.Stack(0, loss, hits).Float32s()
//	total += float64(both[0])
//	right += float64(both[1])
//	fmt.Println(both[0])
//
// Silent: what AT001 is silent about, but for reading again; reads with
// something between them that the first decides.
//
// Missed: reads in different branches; more than numbers.
//
// Fix: none. Tensors of different types or devices can't be stacked.
package adjacentread
