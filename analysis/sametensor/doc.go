// Package sametensor is a rule of asyncgen vet.
//
// # AT033: comparison of tensors by identity
//
// The operators == and != compare the pointers of two tensors, not their
// elements: a result is never equal to anything but itself. The same holds for
// reflect.DeepEqual, which looks at how a tensor is kept and not at its value.
//
// The rule reports comparisons of two tensors that can't be the same one: both were just computed
// or made, or one was and the other is older, passed in or of an earlier iteration. A function that
// does nothing but make a tensor counts like a constructor. Generic functions that compare their
// operands are reported as well, and so are slices.Index and slices.Contains if they look for a
// tensor that was just made.
//
// It also reports calls of reflect.DeepEqual with tensors, or with lists, maps or structs of them.
//
// Other comparisons of two tensors may ask on purpose whether they are one and the same, as a cache
// does that looks for a handle. Nothing in the code tells the two apart, so these findings are of
// severity info.
//
// WRONG
//
//	if got := f(x); got.AddScalar(1) == want {
//
//	if reflect.DeepEqual(got, want) {
//
// RIGHT
//
//	same := got.AddScalar(1).Eq(want).All() // on the device
//	if slices.Equal(got.Float32s(), want.Float32s()) {
//
// Silent: comparisons with nil; comparisons with what a cell holds, which is another tensor after
// each change; tests that fail if two tensors are the same one. The rule applies in test files,
// too: a test that compares handles tests something else than it says.
//
// Missed: comparisons of structs and of interfaces, by slices.Equal, and by generic functions
// of packages that know no tensors.
//
// Fix: none. Whether all elements are to be equal, and how nearly, is for the
// author to say.
package sametensor
