// Package asyncgen is the map of the project: an asynchronous tensor library,
// a linter that finds where programs wait for it in loops, and a generator
// that rewrites such loops so that they don't, with identical results.
//
// The packages, lowest first. What may import what is the policy in
// layers_test.go.
//
//	device                   element types, shapes, commands, the Backend interface, the registry
//	device/report            the format in which a run reports its waits
//	device/pool              the workers that one big operation is split over
//	device/kernel            scalar expressions: primitives, evaluation, derivatives
//	device/cpu               the CPU backend, in plain Go
//	device/sim               a pretend accelerator with a latency model
//	device/fault             makes chosen calls of any backend go wrong, for tests
//	device/devicetest        what every backend must pass
//	runtime/internal/engine  the queue: dependencies, workers, bounds, errors; the one place that waits
//	runtime/op               every tensor operation, defined once
//	runtime/op/opgen         writes what derives from these definitions
//	runtime/internal/tape    reverse-mode differentiation over them
//	runtime/tensor           Tensor: creation, operations, views, reads, gradients
//	runtime/nn               layers and losses
//	runtime/optim            optimisers
//	runtime                  package asyncrt: control of the engine, and Later, which generated code calls
//	runtime/asynctest        what generated equality tests call
//	analysis/tensorapi       what the tools know about tensor libraries, as data
//	analysis/blocking        which functions wait, and for what
//	analysis/loopread        AT001: a read in a loop
//	analysis/loopprint       AT004: a print in a loop
//	analysis/loopexit        AT005: a loop that ends depending on a value
//	analysis/guardedread     AT008: a read in each iteration of a value used in few
//	analysis/loopcall        AT010: a call in a loop of a function that waits
//	analysis/timing          AT020: the time of work that is not finished
//	analysis                 the suite of rules, alone and as a tool of go vet and go fix
//	gen/internal/load        packages and types of the code to rewrite
//	gen/internal/plan        a loop as effects and reads
//	gen/internal/emit        printing what was planned
//	gen/rewrite              the rewrites, in order
//	gen                      Generate computes results, Result.Commit writes them
//	gen/internal/fuzz        random programs, as written, as rewritten and as an interpreter has them
//	gen/overlay              rewritten sources for the go command
//	gen/compare              a program as written against the same program rewritten
//	cmd/asyncgen             the command: flags and printing
//
// Programs to try it on are in testdata/programs, a user's own module in
// testdata/quickstart. This package itself holds only the tests about the
// repository.
package asyncgen
