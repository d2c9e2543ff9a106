package sites

import (
	"go/ast"
	"go/types"

	"github.com/asyncgen/asyncgen/analysis/blocking"
	"github.com/asyncgen/asyncgen/analysis/internal/syntax"
	"github.com/asyncgen/asyncgen/analysis/tensorapi"
)

// Streams of tensors. Each tensor is dealt with before the next one comes.

// isLive reports whether l takes tensors from a channel that others fill, doesn't train, and the value at p is shown as
// a text at once, or decides whether to call a function that nobody knows: whoever sends waits for that, as a speaker
// or a plant.
//
//	for x := range windows {
//		if score(x).Item() > limit {
//			alarm()
//		}
//	}
func isLive(pkg *blocking.Package, p Place, l *blocking.Loop) bool {
	s, ok := l.Stmt.(*ast.RangeStmt)
	if !ok || !syntax.IsChan(typeOf(pkg, s.X)) || !takesInput(pkg, l) || pkg.Any(l, (*blocking.Call).Mutates) {
		return false
	}
	if p.Use == Printed {
		c := pkg.Calls[syntax.AsCall(nodeOf(p.Cur.Parent()))]
		return c != nil && showsAtOnce(c) && isString(typeOf(pkg, nodeOf(p.Cur)))
	}
	n := conditional(p)
	if n == nil || n.Else != nil || len(n.Body.List) != 1 {
		return false
	}
	stmt, ok := n.Body.List[0].(*ast.ExprStmt)
	if !ok {
		return false
	}
	c := pkg.Calls[syntax.AsCall(stmt.X)]
	return c != nil && c.Dynamic && c.API.Kind == tensorapi.Unknown && !c.TakesTensor()
}

// isOverFolds reports whether l goes over the parts of a cross-validation. There are few of them.
//
//	for _, f := range folds.Of(x, y, 5) {
func isOverFolds(pkg *blocking.Package, l *blocking.Loop) bool {
	s, ok := l.Stmt.(*ast.RangeStmt)
	if !ok {
		return false
	}
	for _, e := range []ast.Expr{s.Key, s.Value} {
		v := pkg.Variable(syntax.OrNil(e))
		if v == nil {
			continue
		}
		named, ok := types.Unalias(v.Type()).(*types.Named)
		if v.Name() == "fold" || ok && named.Obj().Name() == "Fold" {
			return true
		}
	}
	return false
}

// conditional returns the if statement that asks for the value at p, or nil.
func conditional(p Place) *ast.IfStmt {
	for cur := range p.Cur.Enclosing((*ast.IfStmt)(nil), (*ast.FuncLit)(nil)) {
		n, ok := cur.Node().(*ast.IfStmt)
		if !ok || p.Pos < n.Cond.Pos() || n.Cond.End() <= p.Pos || len(n.Body.List) == 0 {
			return nil
		}
		return n
	}
	return nil
}

// savesCollected reports whether c, in l, writes a file with what a loop inside l has collected: one for each sensor,
// class or part, which is what is asked for.
//
//	for _, s := range sensors {
//		scores := map[string]*tensor.Tensor{}
//		for name, w := range s.Windows {
//			scores[name] = score(w)
//		}
//		err := files.WriteNPZ(s.Name+".npz", scores)
func savesCollected(pkg *blocking.Package, c *blocking.Call, e ast.Expr, l *blocking.Loop) bool {
	v := pkg.Local(syntax.OrNil(e))
	if c.API.Kind != tensorapi.Save || v == nil || !l.Declares(v) || !isContainer(v.Type()) || pkg.Any(l, (*blocking.Call).Mutates) {
		return false
	}
	for _, d := range pkg.Defs[v] {
		if d.In == nil || !pkg.Contains(l, d.In, d.Pos) {
			continue
		}
		for m := range pkg.LoopsAround(d.In, d.Pos) {
			if m.Stmt == l.Stmt {
				break
			}
			if !m.Small && m.Stmt != nil && !pkg.Contains(m, c.In, c.Expr.Pos()) && pkg.Any(m, (*blocking.Call).Enqueues) {
				return true
			}
		}
	}
	return false
}

// isContainer reports whether t is a list or a map.
func isContainer(t types.Type) bool { return syntax.IsMap(t) || syntax.ElementType(t) != nil }
