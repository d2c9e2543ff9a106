// Package loopexit is a rule of asyncgen vet.
//
// # AT005: value-dependent control flow in a loop
//
// A loop that looks at a value to decide whether to go on, or what to enqueue
// next, has to wait for the value before it can enqueue anything: the device
// is idle while the host decides.
//
// The rule reports reads in a loop whose value reaches a condition that ends
// the iteration or the loop, or that chooses what is enqueued, also by a variable
// that later iterations compute with. Many correct algorithms end when a value is
// small enough; most may as well do so a few iterations late. A loop that only asks
// whether to give up, for NaN and infinities or to return an error, waits each time
// for what hardly ever happens.
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
// A search for a number, such as a line search, needs each value before it can try again: findings about what
// only its condition asks for are of severity info, shown with -severity=info.
//
// Silent: what AT001 is silent about; conditions that change only what the
// host keeps, such as a maximum.
//
// Missed: values that decide in a function that they are passed to.
//
// Fix: none. Deciding later computes more.
package loopexit
