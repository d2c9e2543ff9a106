// Package loopexit is a rule of asyncgen vet.
//
// # AT005: value-dependent control flow in a loop
//
// A loop that looks at a value to decide whether to go on, or what to enqueue
// next, has to wait for the value before it can enqueue anything: the device
// is idle while the host decides.
//
// The rule reports reads in a loop whose value reaches a condition that ends the iteration or the
// loop, or that chooses what is enqueued. The value may get there by a variable that later
// iterations compute with. Many correct algorithms end when a value is small enough; most may as
// well end a few iterations late. A loop may also ask only whether to give up, because of NaN or to
// return an error: then it waits each time for what hardly ever happens.
//
// WRONG
//
//	for residual.Item() > eps { // waits in each iteration
//		x, residual = improve(x)
//	}
//
// RIGHT
//
//	for i := 0; ; i++ {
//		x, residual = improve(x)
//		if i%10 == 9 && residual.Item() <= eps {
//			break // at most nine iterations late
//		}
//	}
//
// A search for a number, such as a line search, needs each value before it can try again. In a loop
// of steps it is a part of a step, and reads for its condition alone are of severity info, shown with
// -severity=info. A function that only searches can as well try many numbers at once, and read the
// values together. So are loops that ask one network after the other until the answer of one is good
// enough: they wait so that the others need not run.
//
// Silent: what AT001 is silent about; conditions that only change what the host keeps, such as a
// maximum.
//
// Missed: values that are passed to a function which decides by them.
//
// Fix: none. A loop that decides later computes more.
package loopexit
