// Package earlyread is a rule of asyncgen vet.
//
// # AT024: read before other work is enqueued
//
// The backward pass and the update are most of the work of a training step. A
// loop that reads the loss before it enqueues them leaves the device without
// work while the host waits; one that reads it afterwards waits no longer, and
// the device is busy meanwhile.
//
// The rule reports a wait in a loop if a training step (Backward, Step, Minimize, or a function
// that calls one) follows in the same iteration and doesn't need the value. To read after the step
// is the small improvement, for loops that have to read each value. The large one, not to wait in
// the loop, is what the rule about the wait itself recommends. So these findings are of severity
// info: they are shown with -severity=info.
//
// Outside of loops it reports a read, or the Wait right before it, after which the function enqueues other work that
// doesn't need the value, and waits for that, too. The device has nothing to do from the first read until the host has
// enqueued the rest. Enqueue all of it, and read then. Such a finding is a warning if the work is a network,
// gradients, a function with a loop, or several operations, or if the function is called in each iteration
// of a loop that keeps the device busy; otherwise it is an info.
//
// WRONG
//
//	loss := model.Loss(b)
//	total += loss.Item() // the device is idle when this returns
//	opt.Minimize(loss)
//
//	up := price(spot + h) // reads
//	down := price(spot - h)
//
// RIGHT
//
//	loss := model.Loss(b)
//	opt.Minimize(loss)
//	total += loss.Item() // the device goes on with the update
//
//	up, down := price(spot+h), price(spot-h) // tensors
//	return up.Item() - down.Item()
//
// Silent: what AT001 is silent about; values that decide whether there is a step, or become an
// operand of it; values that few iterations use, for which AT008 says more. Outside of loops: values that
// are dropped, printed, stored in a field or given to a function before the function goes on, or that may
// decide whether it does; variables that are read before a loop that uses the value, as AT006 says; functions
// main and init, tests, and functions that read a clock or wait for all work; reads before or after a step of
// training; three or more reads in a statement, for which AT007 says more.
//
// Missed: steps in another function than the read; two reads in different branches.
//
// Fix: none. What is done with the value would move with it.
package earlyread
