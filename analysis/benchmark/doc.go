// Package benchmark is a rule of asyncgen vet.
//
// # AT021: benchmark of work that is not finished
//
// Calls of tensor operations return when the work is enqueued. A benchmark that
// calls them and never waits measures how fast the program can ask, until the
// queue is full, and not how fast the device answers.
//
// The rule reports
//
//   - loops over b.N in any form, and over pb.Next in a function for b.RunParallel, if control can
//     get from the loop to b.StopTimer or to the end of the function without a wait;
//   - loops over b.Loop without a wait in them: when b.Loop returns false it has stopped the clock,
//     and a wait after the loop comes too late;
//   - calls of b.StopTimer in a loop, if they come before a wait for what the loop has enqueued
//     since b.StartTimer.
//
// WRONG
//
//	for b.Loop() {
//		y = x.MatMul(w)
//	}
//
// RIGHT
//
//	for range b.N {
//		y = x.MatMul(w)
//	}
//	if err := asyncrt.WaitAll(); err != nil { // how many in a second
//		b.Fatal(err)
//	}
//
//	for b.Loop() {
//		if err := x.MatMul(w).Wait(); err != nil { // how long one takes
//			b.Fatal(err)
//		}
//	}
//
// Silent:
//
//   - benchmarks whose names or texts speak of enqueueing, dispatching, launching, submitting,
//     issuing, or of being asynchronous;
//   - loops that wait for anything in each iteration;
//   - calls of unknown functions, which may wait.
//
// A function of the package that has the loop, and is given what to do in each iteration, is looked
// through: run(b, func() { x.MatMul(w) }).
//
// Missed: other loops in another function than the one with the *testing.B.
//
// Fix: inserts asyncrt.WaitIdle, which waits for all work. After a loop over b.N it stands behind
// the loop; in a loop over b.Loop at the end of the body, so that each iteration is measured with
// its wait. None is offered where each iteration stops the clock.
package benchmark
