// Package extrawait is a rule of asyncgen vet.
//
// # AT009: wait that gives nothing
//
// A wait in each iteration makes host and device take turns, and the program
// has nothing for it: no value, only the knowledge that the work is done. One
// wait after the loop gives the same, errors included. A wait right before a
// read of the same tensor does nothing that the read doesn't.
//
// The rule reports waits in a loop for what the same iteration enqueues, also by functions that the loop calls and
// by what they defer. It reports waits whose next statement begins with a read of the same tensor, and calls of
// asyncrt.WaitIdle after which the program does nothing but to compute a tensor and read it. It reports
// waits of a Timer in each step of training: timers can be kept, and asked after the loop. And it reports calls of
// Later.Flush in each iteration of the loop that fills the backlog, which nothing can run behind then.
//
// WRONG
//
//	for range 10000 {
//		y = x.AddScalar(1)
//		y.Wait() // t1 + t2 + t3, ten thousand times
//	}
//
// RIGHT
//
//	for range 10000 {
//		y = x.AddScalar(1)
//	}
//	y.Wait() // t1 is hidden, t3 paid once
//
// Silent: loops that train and read a value after the wait, which is reported instead; with libraries other than
// ours, training loops, where a wait for each step is a way to bound the queue; functions that read a clock, and
// the loops of benchmarks; loops that start a goroutine, send something on a channel (with ours: something other
// than tensors) or ask how far the device has got; waits for what an earlier iteration enqueued, after this one has
// enqueued its own work; and what AT001 is silent about, apart from functions marked //asyncgen:kernel, as the
// generator leaves these waits as they are.
//
// Missed: what AT010 misses of functions that the loop calls.
//
// Fix: removes a wait for a tensor that a read of it follows. The wait's error must have been
// dropped; the read reports it by a panic, as it did before. A wait in a loop
// is not moved: it may be what bounds the program's memory.
package extrawait
