// Package rebuilt is a rule of asyncgen vet.
//
// # AT034: graph or plan built in each iteration
//
// Libraries that run a whole graph build and compile it before they run it,
// which takes longer than most graphs run. A graph that is built once and run
// many times costs that once.
//
// The rule reports calls in a loop that build or compile, by what the profile
// of the library says, or of functions that always do, when what to build is the
// same in each iteration. Of our library these are tensor.Fuse and tensor.FuseScalars, which
// keep what they define for ever: they are reported outside of loops, too, where a function
// defines an operation that nobody has after it.
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
// Silent: functions to build that are made in the loop, or that mention what the
// loop makes or changes, by themselves or through functions of the package, or
// ask for random numbers or the time; graphs to which the loop may add; calls
// under a condition, which may fill a cache; loops around loops, as over models.
//
// Missed: functions that call others to say what to build.
//
// Fix: none. The two ways to run take their operands differently.
package rebuilt
