// Package extrawait is a rule of asyncgen vet.
//
// # AT009: wait that gives nothing
//
// A wait in each iteration makes host and device take turns, and the program gets nothing for it
// but the knowledge that the work is done. One wait after the loop gives the same, errors included.
// A wait right before a read of the same tensor does nothing that the read doesn't do.
//
// The rule reports
//
//   - waits in a loop for what the same iteration enqueues, also in functions that the loop calls
//     and in what these defer;
//   - waits whose next statement begins with a read of the same tensor;
//   - waits for what the statement itself computes, and which nobody has then: x.Sum().Wait();
//   - waits that drop the error of what the next statement returns, unless the name of the function
//     says that it waits. The error comes with the tensor, at the first read;
//   - loops over a slice that only wait for one tensor after the other;
//   - calls of asyncrt.WaitIdle, if the program then only computes a tensor and reads it;
//   - waits of a Timer in each step of training: timers can be kept, and asked after the loop;
//   - calls of Later.Flush in each iteration of the loop that fills the backlog, or of Flush of a writer of
//     values that is given tensors: nothing can then run behind the loop.
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
// Silent:
//
//   - loops that train, drop the error, and read the same tensor after the wait: that read is reported instead;
//   - loops that multiply their counter, as they try sizes;
//   - training loops with other libraries than ours, where a wait for each step is a way to bound
//     the queue;
//   - functions that read a clock, unless a loop that does not train reads none and something waits after it,
//     before the clock is read; and the loops of benchmarks;
//   - loops that start a goroutine, send something on a channel, or ask how far the device has got;
//     with ours, sending tensors doesn't count;
//   - waits for what the loop then reads because somebody waits for it: a token for a reader, from which
//     the next one is computed, an action for a simulated world, scores from which the host goes on;
//   - waits for what an earlier iteration enqueued, after this one has enqueued its own work;
//   - what AT001 is silent about, apart from functions marked //asyncgen:kernel, as the generator
//     leaves these waits as they are.
//
// In loops that take data from a channel, somebody may wait for each result, unless the error is dropped
// and the tensor is sent on. A function that warms up, by its name, and does not train waits on purpose.
// Findings in these are of severity info, shown with -severity=info.
//
// Missed: what AT010 misses of functions that the loop calls.
//
// Fix: removes a wait for a tensor if a read of the tensor follows. It is offered if the program
// drops the error of the wait; the read reports the same failure by a panic, as it did before. A
// wait in a loop is not moved: it may be what bounds the program's memory.
package extrawait
