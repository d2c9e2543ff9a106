// Package hiddenloop is a rule of asyncgen vet.
//
// # AT012: blocking read in a hidden loop
//
// The body of a loop over an iterator runs many times, and so does a function literal that is
// passed to something that loops, although the loop itself is in another function. A read there
// waits for the device each time, as in any other loop. An iterator that reads the values it yields
// is no better: whoever ranges over it gets no further than one step ahead. A loop over the batches of a
// loader of package data is no hidden one: it is like a loop over a list.
//
// The rule reports reads in the body of a loop over an iterator, reads in function literals that
// the callee calls in a loop, and reads whose value is yielded. The loop, or the function that
// calls the literal, must enqueue what is read. That a function loops is known
//
//   - of this and other packages, by facts;
//   - of the standard library;
//   - of packages that can't reach a tensor, if the signature tells: a list and a function of its
//     elements.
//
// A function that compares, for package sort or slices, is called more often than there are
// elements. So its reads are reported whoever has enqueued the work. Read what is compared before,
// all at once, and sort by the values.
//
// Some functions are called again and again although no loop names them, and reads in them are
// reported as well:
//
//   - A loop calls a method of an interface, a hook or a function in a field. If some of the
//     functions that it may lead to wait and others don't, the loop is right for the others, and
//     the finding is at the read. So it is where the loop's function is given the function by its
//     callers, who may give it others.
//   - Another package calls them in its loop: as a method of an interface, or as a function that it was given. It may
//     have been given it by an option, by a method like Hook, or in an exported field or variable, or its loop calls
//     all functions of a type. That package has no finding, as its loop is right for functions that don't wait. A
//     function may also be a part of the one that is called, as by Chain, if that calls it in each step and with what
//     it is given there. Functions may return tensors, or numbers that the loop only adds up, as metrics do.
//   - The name of a method says that it is called after each step or batch, like OnStep. The same holds for a function
//     literal that is converted to a type with such a method, and for a function with a tensor as its parameter that is
//     given to a function with such a name, or registered for an event with such a name: On("step", f). An exported
//     function with such a name is taken to be called in each step, with all hooks that it calls.
//   - A method adds what it reads to a field, or keeps the largest value or a count there, like a meter, and
//     nobody in its package calls it.
//   - A function takes one step of training and prints the loss, or adds it to a field.
//   - The method is Forward of a module.
//   - A function sets the rate of an optimiser to a number that it reads from a tensor.
//   - The comment of a function says that it is called for each batch, in each step or the like.
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
// Silent: what AT001 is silent about; literals that are called once, on another goroutine, or by
// functions that the linter knows nothing about; functions that another package asks for a number that
// it looks at, calls for one of several events by other names, or shows what its loop goes on from,
// like the frames of a simulation; fields of a struct that is given to a function which calls them now
// and then. Methods of meters are silent, too, if one of these holds: they do something else when a
// value is the best; they return what they read; they read before they lock a mutex; their name speaks
// of epochs or reports; or their comment says that they wait. AT010 reports calls of such methods in loops.
//
// Missed: iterators of a type that doesn't look like a function; functions that another package keeps in its own
// before it calls them, unless these call them each time. What one package registers for another with a third one is
// a finding of AT010.
//
// Fix: none. Where a value goes decides what is right.
package hiddenloop
