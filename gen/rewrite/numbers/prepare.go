package numbers

import (
	"go/ast"
	"go/token"
	"go/types"

	"github.com/asyncgen/asyncgen/gen/internal/load"
	"github.com/asyncgen/asyncgen/gen/internal/plan"
	"github.com/asyncgen/asyncgen/gen/internal/syntax"
)

// Prepare returns f with variables for values that are kept in memory and handed to an operation as well: else they
// could not become numbers. It returns nil if there is nothing of the kind.
//
//	col[i] = w.Dot(v).Item()               dot := w.Dot(v).Item(); col[i] = dot
//	w = w.Sub(v.MulScalar(col[i]))         w = w.Sub(v.MulScalar(dot))
func Prepare(f *plan.Function) *plan.Function {
	p := &preparer{restatement: &restatement{locals: newLocals(f), names: plan.NewNames(f), numbers: make(map[*types.Var]bool)}}
	ast.Inspect(f.Decl.Body, func(n ast.Node) bool {
		if s, ok := n.(ast.Stmt); ok && len(f.LoopsAround(s)) > 0 {
			p.list(syntax.List(n))
		}
		_, isLit := n.(*ast.FuncLit)
		return !isLit
	})
	for _, s := range p.stored {
		p.name(s)
	}
	if len(p.edits) == 0 {
		return nil
	}
	g, err := f.Restate(p.edits)
	if err != nil {
		return nil
	}
	return g
}

// A preparer finds the edits of Prepare.
type preparer struct {
	*restatement
	edits  []load.Edit
	stored []stored
}

// stored is a statement that stores a value, which gets a name.
type stored struct {
	stmt *ast.AssignStmt
	name string
}

// list finds the statements in list that store a value, and an operation uses that value before it may change.
func (p *preparer) list(list []ast.Stmt) {
	for i, s := range list {
		a, ok := s.(*ast.AssignStmt)
		if !ok || a.Tok != token.ASSIGN || len(a.Lhs) != 1 || isName(a.Lhs[0]) || len(itemsIn(p.f, a.Rhs[0])) == 0 || p.f.HasComments(a) {
			continue
		}
		to, t := a.Lhs[0], p.f.Info.TypeOf(a.Rhs[0])
		if v, _ := element(p.f, to); !isFloat64(t) && !isIndex(t) || !types.Identical(t, p.f.Info.TypeOf(to)) || v != nil && p.keepsElements(v) == nil {
			continue
		}
		uses, isForDevice := p.uses(to, list[i+1:])
		if !isForDevice {
			continue
		}
		name := "value"
		if call, sel, ok := item(p.f, a.Rhs[0]); ok && call != nil {
			name = plan.BaseName(sel.X)
		}
		name = p.names.Unused(name)
		for _, e := range uses {
			p.edits = append(p.edits, load.Edit{Pos: e.Pos(), End: e.End(), Text: name})
		}
		p.stored = append(p.stored, stored{a, name})
	}
}

// uses returns where list asks again for what has just been stored in to, and whether an operation does.
func (p *preparer) uses(to ast.Expr, list []ast.Stmt) (uses []ast.Expr, isForDevice bool) {
	place := p.f.Effects(to)
	for _, s := range list {
		if e := p.f.StmtEffects(s); e.Barrier != nil || place.Needs(e) || jumps(s) || hasLiterals(s) || p.pointsTo(to, s) {
			break
		}
		ast.Inspect(s, func(n ast.Node) bool {
			e, ok := n.(ast.Expr)
			if !ok || !p.isSame(e, to) {
				return true
			}
			uses = append(uses, e)
			for n := ast.Node(e); n != s; n = p.f.Parent(n) {
				if call, ok := p.f.Parent(n).(*ast.CallExpr); ok {
					into, isSink := sinkOf(p.f, call)
					isForDevice = isForDevice || isSink && into.arg == n
				}
			}
			return false
		})
	}
	return uses, isForDevice
}

// pointsTo reports whether s makes a pointer to what e is: that has to lead to the memory.
func (p *preparer) pointsTo(e ast.Expr, s ast.Stmt) (found bool) {
	ast.Inspect(s, func(n ast.Node) bool {
		u, ok := n.(*ast.UnaryExpr)
		found = found || ok && u.Op == token.AND && p.isSame(u.X, e)
		return !found
	})
	return found
}

// isSame reports whether x and y are written in the same way, and mean the same variables.
func (p *preparer) isSame(x, y ast.Expr) bool {
	switch x := ast.Unparen(x).(type) {
	case *ast.Ident:
		y, ok := ast.Unparen(y).(*ast.Ident)
		return ok && p.f.Info.ObjectOf(x) == p.f.Info.ObjectOf(y)
	case *ast.BasicLit:
		y, ok := ast.Unparen(y).(*ast.BasicLit)
		return ok && x.Value == y.Value
	case *ast.SelectorExpr:
		y, ok := ast.Unparen(y).(*ast.SelectorExpr)
		return ok && x.Sel.Name == y.Sel.Name && p.isSame(x.X, y.X)
	case *ast.IndexExpr:
		y, ok := ast.Unparen(y).(*ast.IndexExpr)
		return ok && p.isFound(x) && p.isSame(x.X, y.X) && p.isSame(x.Index, y.Index)
	case *ast.BinaryExpr:
		y, ok := ast.Unparen(y).(*ast.BinaryExpr)
		return ok && x.Op == y.Op && p.isSame(x.X, y.X) && p.isSame(x.Y, y.Y)
	case *ast.StarExpr:
		y, ok := ast.Unparen(y).(*ast.StarExpr)
		return ok && p.isSame(x.X, y.X)
	}
	return false
}

// isFound reports whether what is stored in e is there: a map has no entry for NaN.
func (p *preparer) isFound(e *ast.IndexExpr) bool {
	m, isMap := p.f.Info.TypeOf(e.X).Underlying().(*types.Map)
	if !isMap {
		return true
	}
	b, ok := m.Key().Underlying().(*types.Basic)
	return ok && b.Info()&(types.IsInteger|types.IsString) != 0
}

func hasLiterals(s ast.Stmt) (found bool) {
	ast.Inspect(s, func(n ast.Node) bool {
		_, isLit := n.(*ast.FuncLit)
		found = found || isLit
		return !found
	})
	return found
}

// name gives what s stores a name.
func (p *preparer) name(s stored) {
	spliced := func(e ast.Expr) string {
		var inside, rest []load.Edit
		for _, x := range p.edits {
			if e.Pos() <= x.Pos && x.End <= e.End() {
				inside = append(inside, x)
			} else {
				rest = append(rest, x)
			}
		}
		p.edits = rest
		return p.f.Splice(e, inside)
	}
	to, value := spliced(s.stmt.Lhs[0]), spliced(s.stmt.Rhs[0])
	p.edits = append(p.edits, load.Edit{Pos: s.stmt.Pos(), End: s.stmt.End(), Text: s.name + " := " + value + "; " + to + " = " + s.name})
}
