package blocking

import (
	"cmp"
	"go/ast"
	"go/token"
	"go/types"
	"slices"

	"golang.org/x/tools/go/ast/inspector"
	"golang.org/x/tools/go/cfg"
)

// A Growth is an append, in a loop without an end, of what the loop computes.
type Growth struct {
	Call *ast.CallExpr
	List ast.Expr
	Loop *Loop
	// Collected reports whether the list may be what the loop is for: something after it
	// uses the list or, of one that is not local, the loop ends with its input.
	Collected bool
}

// Growing lists the appends of tensors to lists that never get shorter, in loops
// that only something outside the program ends, in the order of the source.
func (r *Result) Growing() []Growth {
	if len(r.Funcs) == 0 {
		return nil
	}
	a := r.Funcs[0].a
	var list []Growth
	for v, defs := range a.defs {
		for _, d := range defs {
			if g, ok := a.growth(v, d); ok {
				list = append(list, g)
			}
		}
	}
	slices.SortFunc(list, func(g, h Growth) int { return cmp.Compare(g.Call.Pos(), h.Call.Pos()) })
	return list
}

// growth returns what the definition of v is, if it is such an append.
func (a *analyzer) growth(v *types.Var, d def) (Growth, bool) {
	call := a.selfAppend(v, d)
	if call == nil || d.in == nil || !slices.ContainsFunc(call.Args[1:], func(e ast.Expr) bool { return isTensor(a.info.TypeOf(e)) }) {
		return Growth{}, false
	}
	fl := d.in.flow()
	at := fl.blockAt(d.pos)
	for _, l := range slices.Backward(fl.loops) { // inner ones first
		if l.blocks[at] && d.in.isEndless(l) && a.growsTensors(call, d.in, l) && !a.isCut(v, l) {
			return Growth{call, call.Args[0], l, a.isCollected(v, d.in, l)}, true
		}
	}
	return Growth{}, false
}

// isCollected reports whether v may be what l, in f, is for.
func (a *analyzer) isCollected(v *types.Var, f *Func, l *Loop) bool {
	if v.IsField() || v.Parent() == a.pass.Pkg.Scope() {
		_, overChan := l.Stmt.(*ast.RangeStmt)
		return overChan
	}
	for use := range a.usesOf(v, f) {
		if g := a.funcAt(use); !a.in(l, g, use.Node().Pos()) && !isTarget(use) && !a.isAppended(use, v) {
			return true
		}
	}
	return slices.ContainsFunc(f.rets, func(r *ast.ReturnStmt) bool { return len(r.Results) == 0 }) && a.isResult(v, f)
}

// isAppended reports whether the use of v is the list of an append to v itself.
func (a *analyzer) isAppended(use inspector.Cursor, v *types.Var) bool {
	call, ok := use.Parent().Node().(*ast.CallExpr)
	if !ok {
		return false
	}
	assign, ok := use.Parent().Parent().Node().(*ast.AssignStmt)
	return ok && len(assign.Lhs) == 1 && a.variable(assign.Lhs[0]) == v && a.selfAppend(v, def{value: call}) != nil
}

func (a *analyzer) isResult(v *types.Var, f *Func) bool {
	for i := range f.sig.Results().Len() {
		if f.sig.Results().At(i) == v {
			return true
		}
	}
	return false
}

// selfAppend returns the call of "v = append(v, …)", if the definition is one.
func (a *analyzer) selfAppend(v *types.Var, d def) *ast.CallExpr {
	if d.kind != defValue {
		return nil
	}
	call := asCall(d.value)
	if call == nil || len(call.Args) < 2 || a.variable(call.Args[0]) != v {
		return nil
	}
	id, ok := ast.Unparen(call.Fun).(*ast.Ident)
	if !ok || a.info.Uses[id] != types.Universe.Lookup("append") {
		return nil
	}
	if _, indexed := ast.Unparen(call.Args[0]).(*ast.IndexExpr); indexed {
		return nil // one of many lists
	}
	return call
}

func (a *analyzer) growsTensors(call *ast.CallExpr, f *Func, l *Loop) bool {
	for _, e := range call.Args[1:] {
		if isTensor(a.info.TypeOf(e)) && a.fresh(e, f, l) {
			return true
		}
	}
	return false
}

// isCut reports whether v is assigned anything else than itself with more
// elements, in the loop or, if it is not local, anywhere; or if the loop makes
// it anew.
func (a *analyzer) isCut(v *types.Var, l *Loop) bool {
	local := !v.IsField() && v.Parent() != a.pass.Pkg.Scope()
	if local && a.declaredInLoop(v, l) {
		return true
	}
	for _, d := range a.defs[v] {
		if a.selfAppend(v, d) == nil && (!local || a.in(l, d.in, d.pos)) {
			return true
		}
	}
	return false
}

// isEndless reports whether l ends only when a channel is closed, a context
// ends, something is received, or when something fails.
func (f *Func) isEndless(l *Loop) bool {
	fl := f.flow()
	switch s := l.Stmt.(type) {
	case *ast.ForStmt:
		if s.Cond != nil && !f.a.asksContext(s.Cond) {
			return false
		}
	case *ast.RangeStmt:
		if _, ok := f.a.info.TypeOf(s.X).Underlying().(*types.Chan); !ok {
			return false
		}
	default:
		return false
	}
	for at := range l.blocks {
		for _, s := range fl.blocks[at].Succs {
			if !l.blocks[s.Index] && !f.endsFromOutside(l, fl.blocks[at], s) {
				return false
			}
		}
	}
	return true
}

// endsFromOutside reports whether the edge, which leaves l, is that of the loop's
// own condition, of a case of a select statement, or of a failure.
func (f *Func) endsFromOutside(l *Loop, from, to *cfg.Block) bool {
	_, overChan := l.Stmt.(*ast.RangeStmt)
	if overChan && from.Index == l.head || to.Kind == cfg.KindSelectCaseBody || to.Kind == cfg.KindSelectAfterCase {
		return true
	}
	if len(from.Succs) != 2 || len(from.Nodes) == 0 {
		return false
	}
	e, ok := from.Nodes[len(from.Nodes)-1].(ast.Expr)
	holds := from.Succs[0] == to
	return ok && (f.a.asksContext(e) || f.a.isFailure(e, holds) || f.a.isClosed(e, holds))
}

// isClosed recognises !ok where x, ok := <-channel.
func (a *analyzer) isClosed(e ast.Expr, holds bool) bool {
	e = ast.Unparen(e)
	if u, ok := e.(*ast.UnaryExpr); ok && u.Op == token.NOT {
		e, holds = ast.Unparen(u.X), !holds
	}
	v := a.local(e)
	if v == nil || holds {
		return false
	}
	return !slices.ContainsFunc(a.defs[v], func(d def) bool {
		u, ok := ast.Unparen(orNil(d.value)).(*ast.UnaryExpr)
		return !ok || u.Op != token.ARROW || d.index != 1
	})
}

// isFailure recognises err != nil.
func (a *analyzer) isFailure(e ast.Expr, holds bool) bool {
	b, ok := ast.Unparen(e).(*ast.BinaryExpr)
	if !ok {
		return false
	}
	op := b.Op
	if !holds {
		op = negated[op]
	}
	return op.String() == "!=" && (isNil(a.info, b.Y) && isError(a.info.TypeOf(b.X)) || isNil(a.info, b.X) && isError(a.info.TypeOf(b.Y)))
}

// asksContext recognises ctx.Err() == nil and its like.
func (a *analyzer) asksContext(e ast.Expr) bool {
	b, ok := ast.Unparen(e).(*ast.BinaryExpr)
	if !ok {
		return false
	}
	for _, side := range []ast.Expr{b.X, b.Y} {
		if c := a.calls[asCall(side)]; c != nil && c.Callee != nil && c.Callee.FullName() == "(context.Context).Err" {
			return true
		}
	}
	return false
}
