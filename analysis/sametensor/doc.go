// Package sametensor is a rule of asyncgen vet.
//
// # AT033: comparison of tensors by identity
//
// The operators == and != compare the pointers of two tensors, not their
// elements: a result is never equal to anything but itself. The same holds for
// reflect.DeepEqual, which looks at how a tensor is kept and not at its value.
//
// The rule reports comparisons of two tensors that can't be the same one: one was just computed or
// made, and nobody else can have its handle. A function that does nothing but make tensors counts
// like a constructor, and a cell makes a new handle each time that it is asked for its value or
// gradient. The same goes for
//
//   - the cases of a switch statement;
//   - functions that compare operands of type any or of a type parameter;
//   - slices.Index, slices.Contains, maps and sync.Map, if they look for a tensor that was just made.
//
// It also reports
//
//   - comparisons of a variable or field with what it held before it was set to a result, also by a
//     function of the package, and of one element of a list with the next, or of the first with the last;
//   - comparisons of the same part of two variables, such as a[i] == b[i] and before.w != after.w, and
//     slices.Equal and maps.Equal of two variables: who asks that wants to know whether values have
//     stayed the same;
//   - functions that do nothing but compare two operands, or return what slices.Contains says, unless
//     their names speak of handles;
//   - calls of reflect.DeepEqual with tensors, or with lists, maps or structs of them.
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
// Silent: comparisons with nil; tests that fail if two tensors are the same one. The rule applies in
// test files, too: a test that compares handles tests something else than it says.
//
// Missed: comparisons of structs and of interfaces, and by generic functions of packages that know no
// tensors; elements of lists in fields that only ever hold new tensors.
//
// Fix: none. Whether all elements are to be equal, and how nearly, is for the
// author to say.
package sametensor
