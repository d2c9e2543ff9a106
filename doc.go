// Package asyncgen is the map of the project: an asynchronous tensor library,
// a linter that finds where programs wait for it in loops, and a generator
// that rewrites such loops so that they don't, with identical results.
//
// This package itself holds only the tests about the repository.
package asyncgen
