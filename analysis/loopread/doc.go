// Package loopread is a rule of asyncgen vet.
//
// # AT001: blocking read in a loop
//
// A read such as Item or Float32s waits until the device has computed the
// tensor and sends the value to the host. In a loop that enqueues work, each
// iteration then waits for its own work: host and device take turns, and the
// queue, which is there to keep the device busy, never holds more than one
// iteration.
//
// The rule reports reads in a loop that enqueues what is read, when the value
// is kept, computed with or passed on. AT004 is for values that are only
// printed, AT005 for values that decide what the loop does next, AT008 for
// values that most iterations don't use.
//
// WRONG
//
//	for _, b := range batches {
//		loss := step(b)
//		total += loss.Item() // waits for each batch
//	}
//
// RIGHT
//
//	var losses []*tensor.Tensor
//	for _, b := range batches {
//		losses = append(losses, step(b))
//	}
//	for _, v := range tensor.Stack(0, losses...).Float32s() {
//		total += float64(v) // everything was enqueued, and came back in one read
//	}
//
// The generator makes the same of the loop as it stands, with bounded memory:
// mark the function //asyncgen:kernel.
//
// Some operations that take a number from the device wait for it in special cases, which the rule reports as well:
// RowI64 and SliceI64 of a tracked tensor, and MulF64 and its like with integers. A function that is given to
// Later.Do waits for what it computes itself, of which the backlog knows nothing.
//
// Silent: reads of tensors that the loop doesn't compute; reads under a condition that holds rarely
// (every third or hundredth iteration, chosen ones, once a second, the first or the last iteration, on
// errors, when verbose), unless the loop takes all its steps of training under the same condition, and
// of what is Ready; reads that depend on a value read before, which is the finding then; loops over at
// most four things; loops each iteration of which passes through data or trains in a loop of its own,
// as over epochs (a loop inside it over parameters, the steps of a sequence or parts of a batch is
// none of that), or goes on with one computation for a number of steps; functions that a rate limiter
// of the program calls now and then; loops that leave after the read; reads of what an earlier iteration
// enqueued, after the iteration has enqueued work of its own, or of what is several iterations old;
// loops that a ticker paces; loops that send each value to a client at once, with http.Flusher or on a net.Conn;
// functions marked //asyncgen:kernel, about which the generator speaks.
//
// Where the loop can't run far ahead anyway, findings are of severity info, shown with
// -severity=info: it waits for input or the network, answers a client on a channel that came with
// the question, does nothing but read what it receives and pass the value on, has no end and
// sends values to somebody who may give up, or gives the value to what makes the next tensor of
// it, or the numbers for that, as a simulated world does of an action. So are those in
// asyncrt.AllowSync, where somebody has said that the wait is meant. What a handler of HTTP
// writes is no such wait: a read for each row of a request is as slow as anywhere, and a warning.
//
// A function that is not known, behind a variable, a field or an interface, is taken
// to enqueue the tensors that it returns, unless its name says that it gets, loads or
// reads them.
//
// Tensors that come from a channel, a parameter or a field, count as pending, unless the function runs on a goroutine
// beside what sends them, as far as the package shows: that is a good way to read.
//
// Missed: tensors that come from other channels, or from functions or methods of interfaces
// of which the package has a few, on which nothing is agreed; loops that run in
// another function than the read, unless AT010 sees them.
//
// Fix: none. Where a value goes decides what is right.
package loopread
