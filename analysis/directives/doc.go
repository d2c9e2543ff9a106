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
// The rule reports directives that have nothing to ignore, that name no rule or
// one that does not exist, and that give no reason. It also reports comments
// that begin like a directive and are none: //asyncgen:kernal marks nothing, and
// nor does "// asyncgen:kernel" with its space.
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
// Silent: comments for golangci-lint, //nolint:asyncgen, of which it reports
// those that are not used; generated files.
//
// Missed: directives in packages that can't reach a tensor, and in files that
// the build tags in use leave out. A directive for a finding that is not asked
// for, of another severity or of a rule that is switched off, is not unused.
//
// Fix: none. Deleting the comment may delete what somebody wanted to remember.
package directives
