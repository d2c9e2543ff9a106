// Package earlyread is a rule of asyncgen vet.
//
// # AT024: read before the training step is enqueued
//
// The backward pass and the update are most of the work of a training step. A
// loop that reads the loss before it enqueues them leaves the device without
// work while the host waits; one that reads it afterwards waits no longer, and
// the device is busy meanwhile.
//
// The rule reports a wait in a loop if a training step (Backward, Step, Minimize, or a function
// that calls one) follows in the same iteration and doesn't need the value. To read after the step
// is the small improvement, for loops that have to read each value. The large one, not to wait in
// the loop, is what the rule about the wait itself recommends. So findings here are of severity
// info: they are shown with -severity=info.
//
// WRONG
//
//	loss := model.Loss(b)
//	total += loss.Item() // the device is idle when this returns
//	opt.Minimize(loss)
//
// RIGHT
//
//	loss := model.Loss(b)
//	opt.Minimize(loss)
//	total += loss.Item() // the device goes on with the update
//
// Silent: what AT001 is silent about; values that decide whether there is a step, or become an
// operand of it; values that few iterations use, for which AT008 says more.
//
// Missed: steps in another function than the read.
//
// Fix: none. What is done with the value would move with it.
package earlyread
