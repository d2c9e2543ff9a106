// Package benchmark is a rule of asyncgen vet.
//
// # AT021: benchmark of work that is not finished
//
// Calls of tensor operations return when the work is enqueued. A benchmark that
// calls them and never waits measures how fast the program can ask, until the
// queue is full, and not how fast the device answers.
//
// The rule reports loops over b.N, in whatever form, and over pb.Next in a function that b.RunParallel
// is given, after which there is a way to b.StopTimer or
// to the end of the function on which nothing waits, and loops with b.Loop in
// which nothing waits, and calls of b.StopTimer in a loop that come before a wait for what the loop has
// enqueued since b.StartTimer. When b.Loop returns false it has stopped the clock, so a
// wait after the loop comes too late.
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
// Silent: names and texts of the benchmark that speak of enqueueing,
// dispatching, launching, submitting, issuing or of being asynchronous; loops
// that wait for anything in each iteration; calls of functions that nothing is
// known about, which may wait.
//
// Missed: loops that another function than the one with the
// *testing.B runs.
//
// Fix: inserts asyncrt.WaitIdle, which waits for all work, after a loop over
// b.N, and with b.Loop at the end of the body, where it measures each iteration
// with its wait; none where each iteration stops the clock.
package benchmark
