// Package asyncgen is the map of the project: an asynchronous tensor library,
// a linter that finds where programs wait for it in loops, and a generator
// that rewrites such loops so that they don't, with identical results.
//
// The packages, lowest first. What may import what is the policy in
// layers_test.go.
//
//	internal/sametemp        folders for tests, with the same names in each run
//	internal/turns           cases of long tests take turns
//	internal/bubble          how a library is used in bubbles of testing/synctest and outside of them
//	internal/opgraph         graphs of operations as text and drawings
//	internal/trace           the format of traces: what ran when, and what waited
//	device                   element types, shapes, commands, the Backend interface, the registry
//	device/report            the format in which a run reports its waits
//	device/pool              the workers that one big operation is split over
//	device/kernel            scalar expressions: primitives, evaluation, derivatives
//	device/kernel/clc        all that commands compute as kernels in OpenCL C
//	device/cpu/internal/vec  its loops, in assembly and in Go, and the choice between them
//	device/cpu               the CPU backend
//	device/sim               a pretend accelerator with a latency model
//	device/internal/dl       opens the libraries of drivers at run time
//	device/internal/ffi      calls their functions without cgo, many in one crossing
//	device/internal/cl       the functions, objects and codes of OpenCL
//	device/opencl            the backend of GPUs that have a driver for OpenCL
//	device/opencl/clfault    makes chosen calls of its driver go wrong, for tests
//	device/doctor            a command that says which devices there are, and why no others; asyncgen doctor runs it
//	device/fault             makes chosen calls of any backend go wrong, for tests
//	device/wire              messages between the processes of one job, as devices
//	device/wire/wiretest     ranks of a job in one process, for tests
//	device/mpi               carries these messages between machines, by a library of MPI
//	device/devicetest        what every backend must pass
//	runtime/internal/engine  the queue: dependencies, workers, bounds, errors; the one place that waits
//	runtime/op               every tensor operation, defined once
//	runtime/op/opgen         writes what derives from these definitions
//	runtime/internal/tape    reverse-mode differentiation over them
//	runtime/tensor           Tensor: creation, operations, views, reads, gradients
//	runtime/data             data sets from memory and files, and loaders that make batches of them ahead of a loop
//	runtime/nn               layers and losses, on one device or on several
//	runtime/optim            optimisers, schedules of rates, clipping, averages of weights
//	runtime/internal/known   numbers that a device may still be computing, for the next two
//	runtime/progress         a progress bar that never waits for a device
//	runtime/scalars          numbers over steps in files, for TensorBoard too, written when they are known
//	runtime/curves           curves of such numbers as pictures
//	runtime/internal/ports   models of PyTorch's examples, compared with the originals
//	runtime                  package asyncrt: control of the engine, and Later, which generated code calls
//	runtime/files            models and tensors in files: safetensors, npy, npz, checkpoints
//	runtime/asynctest        what generated equality tests call
//	analysis/internal/jsonfile  reads files of settings, and says what is wrong with them
//	analysis/internal/syntax  small questions about expressions and types
//	analysis/tensorapi       what the tools know about tensor libraries, as data
//	internal/trace/page      traces as one page for browsers, with what the tools say about lines
//	analysis/blocking        the calls, loops, guards and values of a package: which functions wait, and for what
//	analysis/lint            what a rule is: its page, severity, settings, findings and fixes
//	analysis/sites           the calls that wait in loops, and what is wrong with each
//	analysis/loopread        AT001: a read in a loop
//	analysis/lastread        AT002: a read of a value that the next iteration overwrites
//	analysis/roundtrip       AT003: a value read to be given back to the device
//	analysis/loopprint       AT004: a print in a loop
//	analysis/loopexit        AT005: a loop that ends depending on a value
//	analysis/elementread     AT006: reads of one part of a tensor after the other
//	analysis/adjacentread    AT007: reads that could be one
//	analysis/guardedread     AT008: a read in each iteration of a value used in few
//	analysis/extrawait       AT009: a wait that gives nothing
//	analysis/loopcall        AT010: a call in a loop of a function that waits
//	analysis/lockedread      AT011: a wait while a mutex is held
//	analysis/hiddenloop      AT012: a read in a loop that another function runs
//	analysis/goroutineread   AT013: a read on a goroutine for each iteration
//	analysis/deferredread    AT014: a read that is deferred in a loop
//	analysis/timing          AT020: the time of work that is not finished
//	analysis/benchmark       AT021: a benchmark of work that is not finished
//	analysis/growth          AT022: a list of tensors that only grows
//	analysis/history         AT023: the history of every iteration, which is kept
//	analysis/earlyread       AT024: a read before other work
//	analysis/loopdata        AT025: the same tensor made in each iteration
//	analysis/valueshape      AT026: a size that depends on a value
//	analysis/unusedread      AT030: a read of a value that nobody uses
//	analysis/directives      AT031: a directive that ignores nothing
//	analysis/droppedresult   AT032: a result that is thrown away
//	analysis/sametensor      AT033: tensors compared by identity
//	analysis/rebuilt         AT034: a graph or plan built in each iteration
//	analysis/regrown         AT035: a tensor that is copied to grow in each iteration
//	analysis/addedgrad       AT036: gradients of all steps add up
//	analysis/rowwise         AT037: one row after the other of what takes a batch
//	analysis                 the suite of rules, alone and as a tool of go vet and go fix
//	gen/internal/facts       what functions of the standard library do
//	gen/internal/syntax      small questions about statements, expressions and types
//	gen/internal/load        packages and types of the code to rewrite
//	gen/internal/plan        a loop as effects and reads
//	gen/internal/emit        printing what was planned
//	gen/rewrite/plain        loops in a form that can be planned part by part
//	gen/rewrite/numbers      functions restated in numbers that stay on the device
//	gen/rewrite/rows         rows of tensors that are read and computed together
//	gen/rewrite/past         proofs that loops may run past their end until it is known
//	gen/rewrite/fuse         operations that are computed in one pass
//	gen/rewrite/naming       names for what a plan declares
//	gen/rewrite              the rewrites, in order
//	gen/internal/verify      original and generated functions, executed on terms and compared
//	gen                      Generate computes results, Result.Commit writes them
//	gen/internal/gentest     what tests of the generator share, and its golden files
//	gen/internal/fuzz        random programs, as written, as rewritten and as an interpreter has them
//	gen/overlay              rewritten sources for the go command
//	gen/compare              a program as written against the same program rewritten
//	internal/docpages        writes the pages of docs that are generated
//	cmd/asyncgen             the command: flags and printing
//	cmd/e2e                  the tests from end to end
//
// Programs to try it on are in testdata/programs, a user's own module in
// testdata/quickstart, what to tell editors, hooks, workflows and launchers of jobs in
// testdata/recipes. The folder analysis/golangci is a module of its own, which
// makes the linter a plugin of golangci-lint, and so is testdata/peers, which measures the library
// beside others. This package itself holds only the
// tests about the repository.
package asyncgen

//go:generate go run ./internal/docpages docs
