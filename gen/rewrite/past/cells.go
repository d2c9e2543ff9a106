package past

import (
	"go/ast"
	"go/types"
	"slices"

	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"github.com/asyncgen/asyncgen/gen/internal/plan"
	"github.com/asyncgen/asyncgen/gen/internal/syntax"
)

// cells finds what the loop changes past an exit besides variables. Cells of the library say themselves that they are
// about to change, and get back what they held (tensor.Changing). What else is a tensor.Cell may be of a type that does
// not, so that BreakIf has to be told of it.
type cells struct {
	*known
	found []plan.CellsOf // that may not say that they change
}

// find finds the cells that the loop changes past an exit and that may not say so. It returns why
// they can't be listed, or nil.
func (p *cells) find() (why *plan.Reason) {
	for _, u := range p.Ahead {
		for _, n := range p.nodes(u) {
			if r := p.in(p.f, n, nil, 0); r != nil && why == nil {
				why = r
			}
		}
	}
	return why
}

// callsMutator reports whether n, in f, contains a call of a function of the library that changes
// state and has one of the names, directly or through functions of the program that are not in
// seen.
func callsMutator(f *plan.Function, n ast.Node, names []string, seen map[*types.Func]bool) (found bool) {
	ast.Inspect(n, func(m ast.Node) bool {
		call, ok := m.(*ast.CallExpr)
		if !ok || f.Info.Types[call.Fun].IsType() {
			return !found
		}
		fn, api, kind := f.Callee(call)
		switch kind {
		case plan.CallsLibrary:
			found = found || api.Kind == tensorapi.Mutate && slices.Contains(names, fn.Name())
		case plan.CallsFunction:
			if body, ok := f.Analysis.Program.Body(fn); ok && !seen[fn] {
				seen[fn] = true
				found = found || callsMutator(f.Analysis.Function(body.Pkg, body.Decl), body.Decl.Body, names, seen)
			}
		}
		return !found
	})
	return found
}

// in finds the cells that n, in f, changes and that may not say so. as says what the
// parameters of f stand for, in the function that is rewritten; nil if f is that.
func (p *cells) in(f *plan.Function, n ast.Node, as map[types.Object]string, depth int) (why *plan.Reason) {
	cannot := func(at ast.Node, what string) {
		if why == nil {
			why = &plan.Reason{Code: plan.PastCells, Cause: plan.Cause{Pos: at.Pos(), Text: what}, Hint: "keep it in a variable of the function, or use parameters and buffers of the library"}
		}
	}
	ast.Inspect(n, func(m ast.Node) bool {
		if why != nil {
			return false
		}
		call, ok := m.(*ast.CallExpr)
		if !ok || f.Info.Types[call.Fun].IsType() {
			return true
		}
		fn, api, kind := f.Callee(call)
		name := types.ExprString(call.Fun)
		switch kind {
		case plan.CallsLibrary:
			if api.Kind != tensorapi.Mutate || !isOfAnyCell(fn) {
				return true
			}
			of, ok := p.pathOf(f, ast.Unparen(call.Fun).(*ast.SelectorExpr).X, as)
			if !ok {
				cannot(call, "calls "+name+", which changes a cell that can't be named before the loop, and that may not say so itself")
				return false
			}
			p.add(plan.CellsOf{Form: plan.IsCell, Of: of})
		case plan.CallsFunction:
			e := f.Effects(call)
			if _, changes := e.Writes[plan.Loc{Kind: plan.Cells}]; !changes {
				return true
			}
			body, ok := f.Analysis.Program.Body(fn)
			if !ok || depth > 8 {
				if !p.lists(f, call, as) {
					cannot(call, "calls "+name+", which changes cells that it does not name")
				}
				return why == nil
			}
			inner := f.Analysis.Function(body.Pkg, body.Decl)
			if r := p.in(inner, body.Decl.Body, p.standFor(f, call, body.Decl, inner, as), depth+1); r != nil {
				if !p.lists(f, call, as) {
					cannot(call, "calls "+name+", which changes cells that can't be named before the loop, and that may not say so themselves")
				}
			}
		}
		return true
	})
	return why
}

// isOfAnyCell reports whether fn is a method of an interface: of cells whose type may be the program's own.
func isOfAnyCell(fn *types.Func) bool {
	recv := fn.Signature().Recv()
	return recv != nil && types.IsInterface(recv.Type())
}

// hasCells reports whether t has a method Cells() []tensor.Cell.
func hasCells(t types.Type) bool {
	obj, _, _ := types.LookupFieldOrMethod(t, true, nil, "Cells")
	fn, ok := obj.(*types.Func)
	if !ok || fn.Signature().Params().Len() != 0 || fn.Signature().Results().Len() != 1 {
		return false
	}
	s, ok := fn.Signature().Results().At(0).Type().(*types.Slice)
	if !ok {
		return false
	}
	n, ok := types.Unalias(s.Elem()).(*types.Named)
	return ok && n.Obj().Name() == "Cell"
}

// pathOf returns e, a variable with fields, as the function that is rewritten
// would write it: if that means the same thing in every iteration.
func (p *cells) pathOf(f *plan.Function, e ast.Expr, as map[types.Object]string) (string, bool) {
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		v, ok := f.Info.ObjectOf(e).(*types.Var)
		if !ok {
			return "", false
		}
		if as != nil {
			path, ok := as[v]
			return path, ok
		}
		loop := p.Stmt.Node
		return e.Name, p.fixed(e) && (v.Pos() < loop.Pos() || loop.End() <= v.Pos())
	case *ast.SelectorExpr:
		sel := f.Info.Selections[e]
		if sel == nil || sel.Kind() != types.FieldVal || !sel.Obj().Exported() && sel.Obj().Pkg() != p.f.Pkg.Types {
			return "", false
		}
		of, ok := p.pathOf(f, e.X, as)
		if !ok || as == nil && !p.fixed(e) || p.changesField(sel) {
			return "", false
		}
		return of + "." + e.Sel.Name, true
	}
	return "", false
}

// changesField reports whether the loop may change the field that sel selects, of what a pointer leads to.
func (p *cells) changesField(sel *types.Selection) bool {
	e := &plan.Effects{Reads: map[plan.Loc]plan.Cause{plan.FieldLoc(sel): {}}}
	return e.Needs(p.changed)
}

// standFor returns what the parameters of the function of decl, called by
// call, stand for.
func (p *cells) standFor(f *plan.Function, call *ast.CallExpr, decl *ast.FuncDecl, inner *plan.Function, as map[types.Object]string) map[types.Object]string {
	m := make(map[types.Object]string)
	bind := func(name *ast.Ident, arg ast.Expr) {
		v, ok := inner.Info.ObjectOf(name).(*types.Var)
		if !ok || inner.Assigns(v) {
			return
		}
		if path, ok := p.pathOf(f, arg, as); ok {
			m[v] = path
		}
	}
	syntax.Arguments(f.Info, call, decl, bind)
	return m
}

// lists reports whether what a method is called of lists its cells, and adds them.
func (p *cells) lists(f *plan.Function, call *ast.CallExpr, as map[types.Object]string) bool {
	sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr)
	if !ok || f.Info.Selections[sel] == nil || !hasCells(f.Info.TypeOf(sel.X)) {
		return false
	}
	of, ok := p.pathOf(f, sel.X, as)
	if ok {
		p.add(plan.CellsOf{Form: plan.HasCells, Of: of})
	}
	return ok
}

// add adds c to the cells.
func (p *cells) add(c plan.CellsOf) {
	if !slices.Contains(p.found, c) {
		p.found = append(p.found, c)
	}
}

// memory returns that the loop changes memory of a variable that is looked at
// after an exit, or nil. What is appended needs no undoing: the slice is as long
// as it was.
func (p *cells) memory() *plan.Reason {
	for _, u := range p.Ahead {
		c := p.effects(u).Writes.First(func(l plan.Loc) bool {
			return l.Kind == plan.Own && !p.onlyAppends(u.Stmt, l.Obj) && p.mayBeSeen(l.Obj.(*types.Var))
		})
		if c != nil {
			return &plan.Reason{Code: plan.PastMemory, Cause: *c, Hint: "append to a slice, or use tensors"}
		}
	}
	return nil
}

// mayBeSeen reports whether v may be looked at when the loop has ended by a value.
func (p *cells) mayBeSeen(v *types.Var) bool {
	if p.f.LiveAfter(v, p.Stmt.Node) {
		return true
	}
	for _, s := range p.Exits {
		for _, jump := range plan.JumpsFrom(s.Node) {
			if p.f.Mentions(jump, map[types.Object]bool{v: true}) {
				return true
			}
		}
	}
	return false
}

// onlyAppends reports whether s gives v nothing but its own elements from an index on, with more behind them, and the
// loop never drops the last ones, whose places others would take: v = append(v, …), or v = v[1:].
func (p *cells) onlyAppends(s *plan.Stmt, v types.Object) bool {
	n, ok := s.Inner().(*ast.AssignStmt)
	if !ok || len(n.Lhs) != len(n.Rhs) {
		return false
	}
	of := map[types.Object]bool{v.(*types.Var): true}
	for i, lhs := range n.Lhs {
		id, ok := lhs.(*ast.Ident)
		if isV := ok && p.f.Info.ObjectOf(id) == v; isV && !p.isLonger(n.Rhs[i], v) || !isV && (p.f.Mentions(lhs, of) || p.f.Mentions(n.Rhs[i], of)) {
			return false
		}
	}
	drops := false
	ast.Inspect(p.Stmt.Node, func(m ast.Node) bool {
		e, ok := m.(*ast.SliceExpr)
		drops = drops || ok && e.High != nil && p.f.Mentions(e.X, of)
		return !drops
	})
	return !drops
}

// isLonger reports whether e is v from an index on, perhaps with more behind it.
func (p *cells) isLonger(e ast.Expr, v types.Object) bool {
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		return p.f.Info.ObjectOf(e) == v
	case *ast.SliceExpr:
		return e.High == nil && p.isLonger(e.X, v)
	case *ast.CallExpr:
		return types.ExprString(e.Fun) == "append" && p.isLonger(e.Args[0], v)
	}
	return false
}
