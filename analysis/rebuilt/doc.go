// Package rebuilt is a rule of asyncgen vet.
//
// # AT034: graph or plan built in each iteration
//
// Some libraries run whole graphs. They build and compile a graph before they run it, and that
// takes longer than most graphs run. A graph that is built once and run many times costs that once.
//
// The rule reports calls in a loop that build or compile, as the profile of the library says, and
// calls of functions that always do, if each iteration builds the same thing. Of our library these
// are tensor.Fuse and tensor.FuseScalars, which keep what they define for ever. They are reported
// outside of loops, too, in a function that defines an operation which nobody has after the
// function has returned.
//
// WRONG
//
//	for _, x := range xs {
//		ys = append(ys, graph.MustExecOnce(backend, model, x))
//	}
//
// RIGHT
//
//	exec := graph.MustNewExec(backend, model)
//	for _, x := range xs {
//		ys = append(ys, exec.MustExec1(x))
//	}
//
// Silent:
//
//   - functions to build from that are made in the loop, ask for random numbers or the time, or
//     mention what the loop makes or changes, directly or through functions of the package;
//   - graphs to which the loop may add;
//   - calls under a condition, which may fill a cache;
//   - loops around loops, as over models.
//
// Missed: what to build, if a call computes it.
//
// Fix: none. The two ways to run a graph take their operands differently.
package rebuilt
