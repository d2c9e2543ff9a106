// Package loopcall is a rule of asyncgen vet.
//
// # AT010: call in a loop of a function that waits
//
// A function that reads a tensor it was given, or one that it just computed,
// waits for the device; so does what calls it, in this package or another.
// In a loop that enqueues work, such a call is a blocking read that nobody
// sees at the place where it hurts.
//
// The rule reports calls in a loop of functions that wait, with the way from
// the call to the read, when the function waits for something that the loop,
// or the function itself, enqueues.
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
// When the value decides what the loop does next, or the loop waits for input
// anyway, the finding is of severity info.
//
// Silent: what AT001 is silent about, in the caller and in the callee;
// functions that read in a loop of their own, or before or after one that passes
// through data, as one epoch of training does, but not one over the parameters or layers of
// a model or the steps of a sequence, nor where the loop takes a step of training in each
// iteration itself, so that a model is evaluated after every step;
// functions of tensor libraries.
//
// A loop over hooks or callbacks, in a list or map of functions or of interfaces, calls
// all that the package puts there, so one that waits is enough. Where only some of the
// functions that a call may lead to wait, the finding is in these, see AT012.
//
// Missed: calls through function values that may be one of several, and
// through interfaces of other packages or with more than three implementations, but
// of such lists; reads more than three calls deep; reads of tensors in fields that no
// function of their package sets.
//
// Fix: none. The signature of a function is not a linter's to change.
package loopcall
