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
// Two things of our library are built to last, and lose what they know if they are made anew. The rule
// reports
//
//   - a loader that shuffles and is made in each epoch, with the same seed: its order depends on that and
//     on how many epochs it has had, so all epochs have the same one;
//   - an optimiser that is made for one step, in a loop or in a function that a loop calls: moments begin
//     anew in each step. SGD without options has none.
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
//   - loops around loops, as over models;
//   - loaders and optimisers for models that are made in the loop, too, and those that are used for
//     several epochs or steps.
//
// Missed: what to build, if a call computes it.
//
// Fix: none. The two ways to run a graph take their operands differently.
package rebuilt
