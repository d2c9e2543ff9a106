package sites

import (
	"go/ast"
	"slices"

	"github.com/asyncgen/asyncgen/analysis/blocking"
	"github.com/asyncgen/asyncgen/analysis/internal/syntax"
)

// takesLatency reports whether c, in a function that reads a clock, does the same in each iteration of l, which
// enqueues nothing else, and nobody looks at the result, or at more than its length. How long that takes, with the wait
// for it, is the question. Where l reads the clock itself, each iteration may do something else.
//
//	start := time.Now()
//	for range n {
//		model.Predict(x)
//	}
//	fmt.Println(time.Since(start) / n)
func takesLatency(pkg *blocking.Package, c *blocking.Call, l *blocking.Loop) bool {
	return l.Stmt != nil && c.In.Outermost().Contains(blocking.IsClock) &&
		(pkg.Any(l, blocking.IsClock) || !slices.ContainsFunc(c.AllOperands(), func(e ast.Expr) bool { return pkg.Varies(e, l) })) &&
		!pkg.Any(l, func(d *blocking.Call) bool { return d != c && d.Enqueues() }) &&
		!slices.ContainsFunc(Uses(pkg, c, l), func(p Place) bool { return !p.Alarm && !isLength(pkg, p) })
}

// isLength reports whether the value at p is asked for its length.
func isLength(pkg *blocking.Package, p Place) bool {
	call := syntax.AsCall(nodeOf(p.Cur.Parent()))
	return call != nil && syntax.IsBuiltin(pkg.Info, call, "len")
}
