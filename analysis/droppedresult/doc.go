// Package droppedresult is a rule of asyncgen vet.
//
// # AT032: result of an operation is thrown away
//
// A tensor never changes. AddScalar, Reshape and all other operations return a
// new tensor and leave their operands as they are, so a call whose result is
// dropped does nothing but work. Usually it was meant to change its operand.
//
// The rule reports operations and views that are statements of their own, and what returns
// the state of a model and does no more: nn.Snapshot keeps nothing that is not assigned, and
// nn.Frozen freezes only the model that it returns.
//
// WRONG
//
//	x.AddScalar(1)
//	x.Reshape(2, 3)
//
// RIGHT
//
//	x = x.AddScalar(1)
//	x = x.Reshape(2, 3)
//
// Silent: results that are assigned to the blank identifier; functions that read a clock, use a
// stopwatch or a profiler, wait for all work, take a testing.B, or are passed to one that takes
// their time, where work may be enqueued for its own sake, as to warm up a device; function
// literals passed to asyncrt.Try, which want to see how a call panics; methods of interfaces and
// functions of users, which may do more than return a tensor; random numbers, which advance their
// generator. In test files the rule applies with -tests only.
//
// Missed: calls after go and defer; results that are assigned and never used
// for anything that has an effect; libraries whose tensors may change.
//
// Fix: none. Only the author knows which variable was meant.
package droppedresult
