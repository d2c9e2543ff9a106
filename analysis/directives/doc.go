// Package directives is a rule of asyncgen vet.
//
// # AT031: directive that ignores nothing
//
// A comment such as
//
//	//asyncgen:ignore AT001 the benchmark measures this
//
// keeps a finding from being reported. When the code changes and the finding is
// gone, the comment stays and hides the next one.
//
// The rule reports directives that have nothing to ignore, that name no rule or an unknown one, and
// that give no reason. It also reports comments that look like a directive and aren't one:
// //asyncgen:kernal marks nothing, and neither does "// asyncgen:kernel", because of its space.
//
// WRONG
//
//	//asyncgen:ignore AT001
//	fmt.Println(total)
//
// RIGHT
//
//	fmt.Println(total)
//
// Silent: comments for golangci-lint, //nolint:asyncgen, since golangci-lint reports unused ones
// itself; generated files.
//
// Missed: directives in packages that can't reach a tensor, and in files that the build tags in use
// leave out. A directive counts as used if its finding is not asked for: it has another severity,
// or the rule is switched off.
//
// Fix: none. Deleting the comment may delete what somebody wanted to remember.
package directives
