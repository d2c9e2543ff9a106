package goroutineread

import (
	"go/ast"
	"go/token"
	"regexp"

	"github.com/asyncgen/asyncgen/analysis/blocking"
	"github.com/asyncgen/asyncgen/analysis/internal/syntax"
	"github.com/asyncgen/asyncgen/analysis/sites"
)

// Loops that start workers. There are as many goroutines as somebody has chosen, however much there is to do.

// isOverWorkers reports whether l runs once for each worker: the data is divided by the number of iterations, be it to
// know how much of it an iteration takes; or the number is that of processors, or is called after workers.
//
//	size := (len(docs) + n - 1) / n
//	for lo := 0; lo < len(docs); lo += size {
//
//	for w := range n {
//		part := docs[w*len(docs)/n : (w+1)*len(docs)/n]
func isOverWorkers(pkg *blocking.Package, l *blocking.Loop) bool {
	var bound ast.Expr
	switch s := l.Stmt.(type) {
	case *ast.RangeStmt:
		bound = s.X
	case *ast.ForStmt:
		if post, ok := s.Post.(*ast.AssignStmt); ok && post.Tok == token.ADD_ASSIGN && isQuotient(pkg, post.Rhs[0]) {
			return true
		}
		if cond, ok := s.Cond.(*ast.BinaryExpr); ok && cond.Op == token.LSS {
			bound = cond.Y
		}
	}
	if bound == nil || !syntax.IsNumeric(pkg.Info.TypeOf(bound)) {
		return false
	}
	if n := pkg.Variable(bound); n != nil {
		if workersName.MatchString(n.Name()) {
			return true
		}
		for cur := range l.Func.Cur.Preorder((*ast.BinaryExpr)(nil)) {
			if e := cur.Node().(*ast.BinaryExpr); e.Op == token.QUO && pkg.Variable(e.Y) == n && sites.IsInteger(pkg.Info.TypeOf(e)) {
				return true
			}
		}
	}
	c := pkg.Calls[syntax.AsCall(pkg.OnlyValue(bound))]
	return c != nil && (syntax.IsFullName(c.Callee, "runtime.NumCPU") || syntax.IsFullName(c.Callee, "runtime.GOMAXPROCS"))
}

// workersName matches the names of numbers of workers.
var workersName = regexp.MustCompile(`(?i)^(n|num)?_?(workers|procs|cpus|threads|shards)$`)

// isQuotient reports whether e is computed by a division of integers, by itself or as the variable that it is.
func isQuotient(pkg *blocking.Package, e ast.Expr) bool {
	found := false
	ast.Inspect(pkg.OnlyValue(e), func(n ast.Node) bool {
		b, ok := n.(*ast.BinaryExpr)
		found = found || ok && b.Op == token.QUO && pkg.Info.Types[b].Value == nil && sites.IsInteger(pkg.Info.TypeOf(b))
		return !found
	})
	return found
}
