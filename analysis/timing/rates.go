package timing

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"

	"github.com/asyncgen/asyncgen/analysis/blocking"
	"golang.org/x/tools/go/ast/inspector"
)

// A rate is how much work there was until a deadline, divided by the time that there was for it, or the other way
// around. Nothing waits for the work, so it counts what was enqueued.
//
//	for time.Now().Before(end) {
//		net.Forward(x)
//		n++
//	}
//	return float64(n) / d.Seconds()
type rate struct {
	Cur inspector.Cursor // of the quotient
	Op  *ast.CallExpr    // enqueues work that may be unfinished then
}

// rates lists the rates in f, without those of its literals, in the order of the source.
func rates(f *blocking.Func) (list []rate) {
	var clocked []*blocking.Loop
	for _, l := range f.Flow().Loops {
		if endsByClock(f.Package, l) {
			clocked = append(clocked, l)
		}
	}
	if len(clocked) == 0 {
		return nil
	}
	for cur := range f.Cur.Preorder((*ast.BinaryExpr)(nil)) {
		n := cur.Node().(*ast.BinaryExpr)
		if n.Op != token.QUO || f.Package.FuncAt(cur) != f || f.IsElapsed(n) {
			continue
		}
		work := n.X
		if hasDuration(f.Package, n.X) {
			work = n.Y
		} else if !hasDuration(f.Package, n.Y) {
			continue
		}
		v := counted(f, work, clocked, n.Pos())
		if v == nil {
			continue
		}
		if op := f.Unfinished(v.Pos(), n.Pos(), nil); op != nil {
			list = append(list, rate{cur, op.Expr})
		}
	}
	return list
}

// endsByClock reports whether l goes on until some time: it reads a clock or a timer, or asks a context.
func endsByClock(pkg *blocking.Package, l *blocking.Loop) bool {
	s, ok := l.Stmt.(*ast.ForStmt)
	if !ok {
		return false
	}
	found := false
	ast.Inspect(s, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			c := pkg.Calls[n]
			found = found || c != nil && (blocking.IsClock(c) || c.Callee != nil && c.Callee.FullName() == "(context.Context).Err")
		case *ast.UnaryExpr:
			ch, ok := pkg.Info.TypeOf(n.X).Underlying().(*types.Chan)
			found = found || n.Op == token.ARROW && ok && isTimeType(ch.Elem(), "Time")
		}
		return !found
	})
	return found
}

// counted returns a variable of f in e with a number to which one of the loops adds in its iterations, if pos is in
// none of these; or nil.
func counted(f *blocking.Func, e ast.Expr, loops []*blocking.Loop, pos token.Pos) (v *types.Var) {
	ast.Inspect(e, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		if !ok || v != nil {
			return v == nil
		}
		u := f.Package.Local(id)
		if u != nil && slices.ContainsFunc(loops, func(l *blocking.Loop) bool {
			return !l.Declares(u) && !f.Package.Contains(l, f, pos) && slices.ContainsFunc(f.Package.Defs[u], func(d blocking.Def) bool {
				return (d.Kind == blocking.DefStep || d.Kind == blocking.DefOther) && f.Package.Contains(l, d.In, d.Pos)
			})
		}) {
			v = u
		}
		return true
	})
	return v
}

// hasDuration reports whether a part of e is a time.Duration.
func hasDuration(pkg *blocking.Package, e ast.Expr) bool {
	found := false
	ast.Inspect(e, func(n ast.Node) bool {
		e, ok := n.(ast.Expr)
		found = found || ok && pkg.Info.Types[e].IsValue() && isTimeType(pkg.Info.TypeOf(e), "Duration")
		return !found
	})
	return found
}

// isTimeType reports whether t is the type of package time with a name.
func isTimeType(t types.Type, name string) bool {
	named, ok := types.Unalias(t).(*types.Named)
	return ok && named.Obj().Pkg() != nil && named.Obj().Pkg().Path() == "time" && named.Obj().Name() == name
}
