// Package rowwise is a rule of asyncgen vet.
//
// # AT037: one row after the other of what takes a batch
//
// Networks, gradients and the operations of linear algebra work on batches: Forward of all samples
// is one call, and so is Solve of a system for each user. A loop over the samples enqueues each
// operation anew for a small piece of the work, and the device spends its time on starting.
//
// The rule reports, in a loop that takes one row of a tensor after the other, by Row, Slice, Index or
// Unbind, what has a form for all rows: Forward of a network, tensor.Grad, Solve, Inverse, Cholesky and their like.
//
// WRONG
//
//	for i := range x.Dim(0) {
//		ys = append(ys, net.Forward(x.Slice(0, i, i+1)))
//	}
//	y := tensor.Concat(0, ys...)
//
// RIGHT
//
//	y := net.Forward(x)
//
// The gradient of a sum over samples has the gradient of each sample in its rows.
//
// Silent: loops that take several rows at a time, as to save memory; loops in which an iteration
// needs the result of the one before; loops that train, or wait for values, which is a finding of
// its own.
//
// Missed: rows that are taken in a function which the loop calls; rows in a list.
//
// Fix: none. Shapes change when all rows are taken at once.
package rowwise
