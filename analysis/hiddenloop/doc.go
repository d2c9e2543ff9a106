// Package hiddenloop is a rule of asyncgen vet.
//
// # AT012: blocking read in a hidden loop
//
// The body of a loop over an iterator, and a function literal that is passed to
// something that loops, run many times, although the loop itself is in another
// function. A read there waits for the device each time, like one in a loop that
// everybody sees. So does an iterator that yields a value which it reads: whoever
// ranges over it gets no further than one step ahead.
//
// The rule reports reads in the body of a loop over an iterator, in function
// literals that the callee calls in a loop, and reads whose value is yielded,
// when the loop, or what calls the literal, enqueues what is read. That
// functions loop is known of this and other packages, by facts, of the standard
// library, and of packages that can't reach a tensor where their signatures
// tell: a list and a function of its elements. A function that compares, for
// package sort or slices, is called more often than there are elements, so its reads are
// reported whoever has enqueued the work: read what is compared before, all at once,
// and sort by the values.
//
// Some functions are called again and again although no loop names them, and reads
// there are reported as well. A loop calls a method of an interface, a hook or a
// function in a field: where some of the functions of the package that it may call
// wait and others don't, the loop is right for the others, so the finding is at the
// read. The same goes for methods of an interface that another package calls in its
// loop. A method that adds what it reads to a field, like a meter, is reported if
// nobody in its package calls it, and so is a function that takes one step of
// training and prints the loss, or adds it to a field. So is the method Forward of a module.
//
// WRONG
//
//	losses := func(yield func(float64) bool) {
//		for _, b := range batches {
//			if !yield(step(b).Item()) { // waits for each batch
//				return
//			}
//		}
//	}
//
// RIGHT
//
//	losses := func(yield func(*tensor.Tensor) bool) {
//		for _, b := range batches {
//			if !yield(step(b)) { // whoever needs a number may read it later
//				return
//			}
//		}
//	}
//
// Silent: what AT001 is silent about; literals that are called once, on another
// goroutine, or by functions of which that is not known; methods of meters that
// keep the best value, return what they read, or are called for epochs and reports by
// their names.
//
// Missed: iterators that can't be told from their type to be one function.
//
// Fix: none. Where a value goes decides what is right.
package hiddenloop
