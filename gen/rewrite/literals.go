package rewrite

import (
	"go/ast"
	"go/types"
	"slices"

	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"github.com/asyncgen/asyncgen/gen/internal/plan"
	"golang.org/x/tools/go/types/typeutil"
)

// inLiterals returns a remark on each wait in a function literal of f that may happen many times: the wait is in a loop
// of the literal, or another function may call the literal in a loop. Waits that others has a remark on are left out.
func inLiterals(f *plan.Function, others []plan.Remark) (remarks []plan.Remark) {
	l := literals{f, make(map[*ast.FuncLit]bool)}
	ast.Inspect(f.Decl.Body, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		why := l.calledOften(call, nil)
		if why == nil || !l.waits(call) || slices.ContainsFunc(others, func(r plan.Remark) bool { return r.Pos == f.Position(call.Pos()) }) {
			return true
		}
		code := plan.WaitsInside
		remarks = append(remarks, plan.Remark{
			Code: code, Verdict: plan.Refused, Class: code.Class(), Pos: f.Position(call.Pos()), Function: f.Decl.Name.Name,
			Message: (&plan.Read{Expr: call}).What() + " can't come later: " + code.Title(),
			Because: []plan.Related{{Pos: f.Position(why.Pos), Text: "it " + why.Text}}, Hint: why.Hint,
		})
		return true
	})
	return remarks
}

// literals looks for what calls the function literals of f.
type literals struct {
	f          *plan.Function
	inProgress map[*ast.FuncLit]bool
}

// waits reports whether call reads, or waits while its operands don't. A call of a literal does not: what the literal
// does waits.
func (l *literals) waits(call *ast.CallExpr) bool {
	if _, api, ok := l.f.Library(call); ok && api.Kind == tensorapi.Read {
		return true
	}
	switch fun := ast.Unparen(call.Fun).(type) {
	case *ast.FuncLit:
		return false
	case *ast.Ident:
		if v, ok := l.f.Info.Uses[fun].(*types.Var); ok && l.f.IsClosure(v) {
			return false
		}
	}
	if l.f.Effects(call).Waits == nil {
		return false
	}
	within := false
	ast.Inspect(call, func(n ast.Node) bool {
		c, ok := n.(*ast.CallExpr)
		within = within || ok && c != call && l.f.Effects(c).Waits != nil
		return !within
	})
	return !within
}

// calledOften returns why n may run many times. It is nil if nothing says so, or if a loop in the body of f runs n:
// such loops have remarks of their own. looped is why whatever runs n runs it many times, or nil.
func (l *literals) calledOften(n ast.Node, looped *plan.Cause) *plan.Cause {
	inLoop := false
	for n = l.f.Parent(n); n != nil; n = l.f.Parent(n) {
		switch n := n.(type) {
		case *ast.ForStmt, *ast.RangeStmt:
			inLoop = true
		case *ast.FuncLit:
			if inLoop && looped == nil {
				looped = &plan.Cause{Pos: n.Pos(), Text: "is in a loop of a function literal", Hint: inLoopOf(l.f, n)}
			}
			if l.inProgress[n] {
				return nil
			}
			l.inProgress[n] = true
			defer delete(l.inProgress, n)
			return l.literal(n, looped)
		}
	}
	if inLoop {
		return nil
	}
	return looped
}

// literal is calledOften for a node in lit.
func (l *literals) literal(lit *ast.FuncLit, looped *plan.Cause) *plan.Cause {
	e := ast.Expr(lit)
	for {
		p, ok := l.f.Parent(e).(*ast.ParenExpr)
		if !ok {
			break
		}
		e = p
	}
	var name *ast.Ident
	switch p := l.f.Parent(e).(type) {
	case *ast.CallExpr:
		return l.use(e, p, lit, looped)
	case *ast.AssignStmt:
		if i := slices.Index(p.Rhs, e); len(p.Lhs) == len(p.Rhs) {
			name, _ = p.Lhs[i].(*ast.Ident)
		}
	case *ast.ValueSpec:
		if i := slices.Index(p.Values, e); len(p.Names) == len(p.Values) {
			name = p.Names[i]
		}
	}
	if name == nil {
		return looped
	}
	var why *plan.Cause
	isUsed := false
	v, _ := l.f.Info.ObjectOf(name).(*types.Var)
	ast.Inspect(l.f.Decl.Body, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		if !ok || why != nil || l.f.Info.Uses[id] != v {
			return true
		}
		if p, ok := l.f.Parent(id).(*ast.AssignStmt); ok && slices.Contains(p.Lhs, ast.Expr(id)) {
			return true
		}
		isUsed = true
		switch p := l.f.Parent(id).(type) {
		case *ast.CallExpr:
			why = l.use(id, p, lit, looped)
			if why == nil && p.Fun == id && !l.f.IsClosure(v) && len(l.f.LoopsAround(p)) > 0 {
				why = &plan.Cause{Pos: p.Pos(), Text: "is in a function literal that a loop calls, and that no variable stands for alone",
					Hint: "give the literal to one variable, where that is declared, and only call it"}
			}
		default:
			why = looped
		}
		return true
	})
	if !isUsed { // here, but others may see the variable
		return looped
	}
	return why
}

// use is calledOften for a node in lit, at a call of e, which stands for lit, or with e as an argument.
func (l *literals) use(e ast.Expr, call *ast.CallExpr, lit *ast.FuncLit, looped *plan.Cause) *plan.Cause {
	if call.Fun == e {
		switch l.f.Parent(call).(type) {
		case *ast.GoStmt, *ast.DeferStmt:
			return looped
		}
		return l.calledOften(call, looped)
	}
	if _, _, isLibrary := l.f.Library(call); isLibrary || looped != nil || l.f.IsStandard(call) {
		return looped
	}
	return &plan.Cause{Pos: lit.Pos(), Text: "is in a function literal that the called function may run in a loop", Hint: handedTo(l.f, call)}
}

// inLoopOf says what to write instead of a loop in lit.
func inLoopOf(f *plan.Function, lit *ast.FuncLit) string {
	if f.ReturnsIterator(lit) {
		return "yield the tensor, and read it where the iterator is ranged over"
	}
	if p, ok := f.Parent(lit).(*ast.CallExpr); ok {
		if _, starts := f.Parent(p).(*ast.GoStmt); starts {
			return ""
		}
		if p.Fun != lit {
			return handedTo(f, p)
		}
	}
	return "write the loop in the body of a declared function"
}

// handedTo says what to write instead of a read in a function literal that call calls.
func handedTo(f *plan.Function, call *ast.CallExpr) string {
	if fn := typeutil.StaticCallee(f.Info, call); fn != nil && fn.Pkg() != nil {
		switch fn.Pkg().Path() {
		case "sort", "slices":
			return "read the values into a slice first, and let the literal look at those"
		case "sync", "golang.org/x/sync/errgroup": // it is a goroutine, or runs once
			return ""
		}
	}
	return "write the loop in place of the call, with what the literal does in it"
}
