// Package loopcall is a rule of asyncgen vet.
//
// # AT010: call in a loop of a function that waits
//
// A function that reads a tensor waits for the device, whether it was given the tensor or has just
// computed it. So does each function that calls it, in this package or another. In a loop that
// enqueues work, such a call is a blocking read that nobody sees at the place where it hurts.
//
// The rule reports calls in a loop of functions that wait, if the function waits for something that
// the loop or the function itself enqueues. The finding shows the way from the call to the read.
//
// WRONG
//
//	func step(b Batch) float64 {
//		loss := model.Loss(b)
//		opt.Minimize(loss)
//		return loss.Item()
//	}
//
//	for _, b := range batches {
//		total += step(b) // waits for each batch
//	}
//
// RIGHT
//
//	func step(b Batch) *tensor.Tensor {
//		loss := model.Loss(b)
//		opt.Minimize(loss)
//		return loss
//	}
//
//	for _, b := range batches {
//		losses = append(losses, step(b))
//	}
//
// Functions that read operands of type any if these are tensors count where they are given some. So do
// generic functions that read what a function among their operands returns: the finding is where they are
// given one that returns tensors. It may be outside of all loops, if they call it in a loop of their own.
// A function, or a value with a method, that the loop of another package calls in each iteration is reported
// where it is registered there, if it is from a third package: trainer.Hook(plots.Live).
// When the value decides what the loop does next, or the loop waits for input
// anyway, the finding is of severity info. So it is in a loop that reads a file and writes one in each
// iteration.
//
// Silent:
//
//   - what AT001 is silent about, in the caller and in the callee;
//   - functions that read what the iteration before has left in a variable or a field, when this one has
//     enqueued its work; functions that store an argument, and read the argument of the call before;
//   - functions that answer requests, in a loop over a channel of them; calls that are all alike, in
//     a function that reads a clock to learn how long one takes, and any that a loop with a clock of its
//     own calls without a look at more of the result than its length;
//   - functions that are given to a loop which calls them at the end of each pass over data;
//   - functions that only join what there is, by Stack or Concat, to read it at once, if the loop
//     enqueues nothing else; functions that take fifty steps or more for each call;
//   - functions that read in a loop of their own, or before or after a loop that passes through
//     data, as one epoch of training does; this does not go for loops over the parameters or layers
//     of a model or the steps of a sequence, nor if the calling loop takes a step of training in
//     each iteration itself, and evaluates the model after each;
//   - functions of tensor libraries.
//
// A loop over hooks or callbacks, in a list or map of functions or of interfaces, calls all that
// the package puts there, so it is enough that one of them waits. Other calls may lead to one of
// several functions. If only some of these wait, the findings are in these, see AT012. If no type of
// the package has the method of an interface, but one type of the packages that it imports, perhaps
// with others that embed it, the call leads there.
//
// Missed: calls through function values that may be one of several; calls through interfaces of
// other packages that these don't implement, or with more than three implementations, except for
// elements of lists as above; reads more than three calls deep; reads of tensors in fields that no
// function of their package sets.
//
// Fix: none. Other callers rely on the signature of a function.
package loopcall
