// Package earlyread is a rule of asyncgen vet.
//
// # AT024: read before the training step is enqueued
//
// The backward pass and the update are most of the work of a training step. A
// loop that reads the loss before it enqueues them leaves the device without
// work while the host waits; one that reads it afterwards waits no longer, and
// the device is busy meanwhile.
//
// The rule reports waits in a loop that a training step (Backward, Step,
// Minimize, or a function that calls one) follows in the same iteration,
// when the step does not need the value. It is the small improvement where the large one,
// which the rule about the wait itself names, is not possible; so findings are
// of severity info: they are shown with -severity=info.
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
// Silent: what AT001 is silent about; values that decide whether there is a
// step, or become an operand; those that few iterations use, for which AT008
// says more.
//
// Missed: steps in another function than the read.
//
// Fix: none. What is done with the value would move with it.
package earlyread
