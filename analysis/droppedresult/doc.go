// Package droppedresult is a rule of asyncgen vet.
//
// # AT032: result or failure is thrown away
//
// A tensor never changes. AddScalar, Reshape and all other operations return a
// new tensor and leave their operands as they are, so a call whose result is
// dropped does nothing but work. Usually it was meant to change its operand.
//
// The rule reports operations and views that are statements of their own, calls of functions of the
// package that do nothing but return what they compute, and three calls like them. nn.Snapshot keeps
// nothing unless its result is assigned. nn.Frozen freezes only the model that it returns. A Timer
// that nobody keeps measures nothing. So are operations whose result goes to a parameter, or to the
// variable of a range clause, that nobody uses any more: for everybody else the operand stays the same.
//
// It also reports failures that are thrown away:
//
//   - asyncrt.WaitAll and Try return a failure once, and nobody is told again. As deferred calls
//     they tell nobody either. Nor does the error of WaitContext, which alone says whether it has waited.
//     A function of the package that returns nothing but such an error, or the error of work that only it has, as a
//     check of a model does, is like these, unless its name says that it warms up or the call is deferred.
//   - What writes to files, such as files.Save, Checkpoints.SaveAsync and Close of a scalars.Writer, and Close of a
//     wire.Job: the error is all that says that something is not there.
//   - Such an error goes to the blank identifier in a function that returns an error itself, or to a variable that
//     the next iteration sets again before anybody looks.
//   - A function of the library may return a value and an error. If the error goes to the blank
//     identifier, a failure looks like a result, and the time of a Timer that is still running
//     looks like a time.
//
// WRONG
//
//	x.AddScalar(1)
//	x.Reshape(2, 3)
//	v, _ := loss.ItemContext(ctx)
//
// RIGHT
//
//	x = x.AddScalar(1)
//	x = x.Reshape(2, 3)
//	v, err := loss.ItemContext(ctx)
//
// Silent:
//
//   - single results that are assigned to the blank identifier, apart from errors as above;
//   - errors of functions that are called because of another error, and deferred calls of Close if the function
//     also calls it and handles the error;
//   - work that may be enqueued for its own sake, as to warm up a device: in functions that read a
//     clock, use a stopwatch or a profiler, wait for all work, take a *testing.B, or are passed to
//     a function that takes their time; but not beside steps of training in a loop;
//   - WaitAll and Try in functions that are timed, unless no clock is read after them, and in functions
//     that return tensors: failures come out with these;
//   - function literals for asyncrt.Try, which want to see how a call panics;
//   - methods of interfaces and functions of other packages, which may do more than return a tensor;
//   - random numbers, which advance their generator.
//
// In test files the rule applies with -tests only.
//
// Missed: results that are assigned and never used
// for anything that has an effect; libraries whose tensors may change.
//
// Fix: none. Only the author knows which variable was meant.
package droppedresult
