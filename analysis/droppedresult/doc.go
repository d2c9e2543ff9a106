// Package droppedresult is a rule of asyncgen vet.
//
// # AT032: result or failure is thrown away
//
// A tensor never changes. AddScalar, Reshape and all other operations return a
// new tensor and leave their operands as they are, so a call whose result is
// dropped does nothing but work. Usually it was meant to change its operand.
//
// The rule reports operations and views that are statements of their own. It reports what returns the state of a
// model and does no more: nn.Snapshot keeps nothing that is not assigned, and nn.Frozen freezes only the model that
// it returns. A Timer that nobody keeps measures nothing.
//
// And it reports failures that are thrown away. asyncrt.WaitAll and Try return them once, and nobody is told again;
// as a deferred call, they tell nobody either.
// Where a function of the library returns a value and an error, and the error goes to the blank identifier, a failure
// looks like a result; so does the time of a Timer that is still running.
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
// Silent: single results that are assigned to the blank identifier; work in functions that read a clock, use a
// stopwatch or a profiler, wait for all work, take a testing.B, or are passed to one that takes their time, where it
// may be enqueued for its own sake, as to warm up a device; WaitAll and Try in functions that are timed, and in those
// that return tensors, with which the failures come out; function literals passed to
// asyncrt.Try, which want to see how a call panics; methods of interfaces and functions of users, which may do more
// than return a tensor; random numbers, which advance their generator. In test files the rule applies with -tests
// only.
//
// Missed: operations after go and defer; results that are assigned and never used
// for anything that has an effect; libraries whose tensors may change.
//
// Fix: none. Only the author knows which variable was meant.
package droppedresult
