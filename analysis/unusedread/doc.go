// Package unusedread is a rule of asyncgen vet.
//
// # AT030: read of a value that nobody uses
//
// A read such as Item or Float32s waits for the device and copies what it has
// computed to the host. If nobody uses the value, the copy is for nothing, and
// the wait is either a leftover or hidden: who reads the line can't tell which.
//
// The rule reports reads whose value is dropped: as a statement, by the blank identifier, or in a
// variable that is only assigned to the blank identifier.
//
// WRONG
//
//	y := x.MatMul(w)
//	_ = y.Item() // make sure that it is finished
//
// RIGHT
//
//	y := x.MatMul(w)
//	if err := y.Wait(); err != nil {
//		return err
//	}
//
// Silent: reads in a function literal that is passed to asyncrt.Try, which
// turns the panic of a read into an error; reads that give the value to a
// function; reads that a clock measures, as the last thing before it is read.
// In test files the rule applies with -tests only.
//
// Missed: values that are stored and never loaded; Strings that are dropped.
//
// Fix: waits for the tensor without the copy.
//
// If the computation failed, the read panicked. The fix returns the error where the function
// returns one as its last result, and in a package main it panics as before. Elsewhere no fix is
// offered: a library has to say by itself what becomes of the error. A read that is a mistake in
// itself, such as Item of a tensor with many elements, panicked and no longer does.
//
// No fix is offered for reads with arguments of their own, or if a comment is in the way.
package unusedread
