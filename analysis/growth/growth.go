package growth

import (
	"cmp"
	_ "embed"
	"go/ast"
	"go/token"
	"go/types"
	"iter"
	"slices"

	"github.com/asyncgen/asyncgen/analysis/blocking"
	"github.com/asyncgen/asyncgen/analysis/internal/syntax"
	"github.com/asyncgen/asyncgen/analysis/lint"
	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/ast/edge"
	"golang.org/x/tools/go/ast/inspector"
	"golang.org/x/tools/go/cfg"
)

//go:embed doc.go
var doc string

// Analyzer is rule AT022.
var Analyzer = rule.Analyzer()

var rule = &lint.Rule{ID: "AT022", Package: "growth", Doc: doc, Infos: true, Check: check}

func check(p *lint.Pass) {
	for _, g := range growing(p.Package) {
		severity := lint.Warning
		if g.Collected {
			severity = lint.Info
		}
		p.Report(severity, analysis.Diagnostic{
			Pos:     g.Call.Pos(),
			End:     g.Call.End(),
			Message: types.ExprString(g.List) + " keeps a tensor of every iteration of a loop without an end; cut it from time to time",
			Related: g.Loop.Related(),
		})
	}
	for _, call := range lastOnly(p.Package) {
		p.Report(lint.Warning, analysis.Diagnostic{
			Pos:     call.Pos(),
			End:     call.End(),
			Message: types.ExprString(call.Args[0]) + " keeps all, and only the last is used; keep that one in a variable",
		})
	}
	for _, call := range unread(p.Package) {
		p.Report(lint.Warning, analysis.Diagnostic{
			Pos:     call.Pos(),
			End:     call.End(),
			Message: types.ExprString(call.Args[0]) + " keeps tensors, and nothing ever looks at them; count them, or drop the list",
		})
	}
	for _, r := range reduced(p.Package) {
		remedy := "keep that"
		if r.joined {
			remedy = "bring each to a number, or go on with the one so far"
		}
		p.Report(lint.Warning, analysis.Diagnostic{
			Pos:     r.part.Pos(),
			End:     r.part.End(),
			Message: types.ExprString(r.list) + " keeps " + types.ExprString(r.part) + " of every iteration, and only a number of it is used; " + remedy,
		})
	}
	for _, x := range filled(p.Package) {
		p.Report(lint.Warning, analysis.Diagnostic{
			Pos:     x.Pos(),
			End:     x.End(),
			Message: types.ExprString(x.X) + " keeps tensors, and nothing ever looks at them; count them, or drop the map",
		})
	}
}

// A growth is an append, in a loop without an end, of a tensor that the loop computes.
type growth struct {
	Call *ast.CallExpr
	List ast.Expr
	Loop *blocking.Loop
	// Collected reports whether the list may be what the loop is for: it is used after the loop, or it
	// is a field and the loop ends with its input.
	Collected bool
}

// growing lists, in the order of the source, the appends of tensors to lists that never get shorter.
// They are in loops that only something outside the program ends.
func growing(pkg *blocking.Package) []growth {
	var list []growth
	for v, defs := range pkg.Defs {
		for _, d := range defs {
			if g, ok := growthBy(pkg, v, d); ok {
				list = append(list, g)
			}
		}
	}
	slices.SortFunc(list, func(g, h growth) int { return cmp.Compare(g.Call.Pos(), h.Call.Pos()) })
	return list
}

// growthBy returns the growth that d, a definition of v, is.
func growthBy(pkg *blocking.Package, v *types.Var, d blocking.Def) (growth, bool) {
	call := pkg.SelfAppend(v, d)
	if call == nil || d.In == nil || !slices.ContainsFunc(call.Args[1:], func(e ast.Expr) bool { return blocking.IsTensor(pkg.Info.TypeOf(e)) }) {
		return growth{}, false
	}
	fl := d.In.Flow()
	at := fl.BlockAt(d.Pos)
	for _, l := range slices.Backward(fl.Loops) { // inner ones first
		if l.Blocks[at] && isEndless(d.In, l) && growsTensors(pkg, call, d.In, l) && !isCut(pkg, v, l) {
			return growth{call, call.Args[0], l, isCollected(pkg, v, d.In, l)}, true
		}
	}
	if v.IsField() && d.In.Lit == nil && pkg.GuardOf(d.In, d.Pos, nil) == blocking.Always {
		if l := growsByCalls(pkg, v, call, d.In); l != nil {
			return growth{call, call.Args[0], l, isCollected(pkg, v, d.In, l)}, true
		}
	}
	return growth{}, false
}

// growsByCalls returns a loop without an end that calls the method f in each iteration, or nil. f appends its argument
// to the list v.
//
//	for {
//		p.remember(step()) // p.seen = append(p.seen, x)
//	}
func growsByCalls(pkg *blocking.Package, v *types.Var, call *ast.CallExpr, f *blocking.Func) *blocking.Loop {
	for _, g := range pkg.Funcs {
		for _, c := range g.Calls {
			if c.Target != f || c.Away {
				continue
			}
			fl := g.Flow()
			at := fl.BlockAt(c.Expr.Pos())
			for _, l := range slices.Backward(fl.Loops) {
				if !l.Blocks[at] || !isEndless(g, l) || pkg.GuardOf(g, c.Expr.Pos(), l) != blocking.Always || isCut(pkg, v, l) {
					continue
				}
				for _, e := range call.Args[1:] {
					p, ok := pkg.Params[pkg.Local(e)]
					if ok && p.Of == f && slices.ContainsFunc(c.Operand(p.Operand), func(e ast.Expr) bool { return blocking.IsTensor(pkg.Info.TypeOf(e)) && pkg.Fresh(e, g, l) }) {
						return l
					}
				}
			}
		}
	}
	return nil
}

// unread lists the appends of tensors to lists that the package never cuts and never reads, apart from
// their length. The lists are local ones in loops, and unexported fields and variables of the package.
// Their tensors keep memory for nothing.
func unread(pkg *blocking.Package) []*ast.CallExpr {
	var list []*ast.CallExpr
	for v, defs := range pkg.Defs {
		elem := syntax.ElementType(v.Type())
		if v.Exported() || elem == nil || !pkg.HoldsTensors(elem) || pkg.Params[v].Of != nil || isNamedResult(pkg, v, defs) {
			continue
		}
		var calls []*ast.CallExpr
		for _, d := range defs {
			call := pkg.SelfAppend(v, d)
			if call == nil || d.In == nil || !isKept(pkg, v, d) {
				continue
			}
			if growthOf, ok := growthBy(pkg, v, d); ok && !growthOf.Collected {
				continue // which says so
			}
			calls = append(calls, call)
		}
		if len(calls) > 0 && isOnlyAppended(pkg, v, defs) {
			list = append(list, calls...)
		}
	}
	slices.SortFunc(list, func(x, y *ast.CallExpr) int { return cmp.Compare(x.Pos(), y.Pos()) })
	return list
}

// filled lists the assignments to elements of maps that hold tensors, in unexported fields and variables of the
// package, if the package does nothing else with the map but to make it and ask for its length.
func filled(pkg *blocking.Package) (list []*ast.IndexExpr) {
	for v := range pkg.Defs {
		if elem := syntax.ElementType(v.Type()); v.Exported() || !isShared(pkg, v) || !syntax.IsMap(v.Type()) || elem == nil || !pkg.HoldsTensors(elem) {
			continue
		}
		var set []*ast.IndexExpr
		other := false
		for use := range pkg.UsesInPackage(v) {
			if use.ParentEdgeKind() == edge.SelectorExpr_Sel {
				use = use.Parent()
			}
			x, isElement := use.Parent().Node().(*ast.IndexExpr)
			switch {
			case isElement && syntax.IsTarget(use.Parent()):
				set = append(set, x)
			case use.ParentEdgeKind() != edge.KeyValueExpr_Key && !isCounted(pkg, use):
				other = true
			}
		}
		if !other {
			list = append(list, set...)
		}
	}
	slices.SortFunc(list, func(x, y *ast.IndexExpr) int { return cmp.Compare(x.Pos(), y.Pos()) })
	return list
}

// lastOnly lists the appends in loops to local lists whose last element alone is ever used. What is appended is a
// tensor, or the state of a network.
//
//	kept = append(kept, nn.Snapshot(net))
//	...
//	kept[len(kept)-1].Restore()
func lastOnly(pkg *blocking.Package) []*ast.CallExpr {
	var list []*ast.CallExpr
	for v, defs := range pkg.Defs {
		elem := syntax.ElementType(v.Type())
		if isShared(pkg, v) || elem == nil || !pkg.HoldsTensors(elem) && !isState(elem) || pkg.Params[v].Of != nil || isNamedResult(pkg, v, defs) {
			continue
		}
		var calls []*ast.CallExpr
		other := false
		for _, d := range defs {
			switch call := pkg.SelfAppend(v, d); {
			case call != nil && d.In != nil && isKept(pkg, v, d):
				calls = append(calls, call)
			case d.Kind != blocking.DefValue || d.Value != nil && !isEmpty(pkg, d.Value):
				other = true
			}
		}
		if len(calls) > 0 && !other && isOnlyLast(pkg, v, defs) {
			list = append(list, calls...)
		}
	}
	slices.SortFunc(list, func(x, y *ast.CallExpr) int { return cmp.Compare(x.Pos(), y.Pos()) })
	return list
}

// isState recognises the type of what nn.Snapshot returns, which keeps the tensors of a network.
func isState(t types.Type) bool {
	named, ok := types.Unalias(t).(*types.Named)
	return ok && named.Obj().Name() == "State" && named.Obj().Pkg() != nil && blocking.Libraries().Owner(named.Obj().Pkg().Path()) != nil
}

// isOnlyLast reports whether the last element of the local list v is used and no other. v may grow and be asked for
// its length.
func isOnlyLast(pkg *blocking.Package, v *types.Var, defs []blocking.Def) bool {
	i := slices.IndexFunc(defs, func(d blocking.Def) bool { return d.In != nil })
	used := false
	for use := range pkg.UsesOf(v, defs[i].In) {
		if x, ok := use.Parent().Node().(*ast.IndexExpr); ok && types.ExprString(x.Index) == "len("+v.Name()+") - 1" && !syntax.IsTarget(use.Parent()) {
			used = true
			continue
		}
		if !syntax.IsTarget(use) && !isAppended(pkg, use, v) && !isCounted(pkg, use) {
			return false
		}
	}
	return used
}

// isNamedResult reports whether v, which has the given assignments, is a result of a function, which callers get.
func isNamedResult(pkg *blocking.Package, v *types.Var, defs []blocking.Def) bool {
	return slices.ContainsFunc(defs, func(d blocking.Def) bool {
		for f := range d.In.In() {
			if pkg.IsResult(v, f) {
				return true
			}
		}
		return false
	})
}

// isKept reports whether d, an append to v, happens again and again: in a loop outside of which v is
// declared, or in a function that doesn't declare v.
func isKept(pkg *blocking.Package, v *types.Var, d blocking.Def) bool {
	if isShared(pkg, v) {
		return true
	}
	for l := range pkg.LoopsAround(d.In, d.Pos) {
		if !l.Small && !l.Declares(v) {
			return true
		}
	}
	return false
}

// isShared reports whether v is a field or a variable of the package.
func isShared(pkg *blocking.Package, v *types.Var) bool {
	return v.IsField() || v.Parent() == pkg.Pass.Pkg.Scope()
}

// usesOf lists the uses of v: in the package, or in the function that v is local to.
func usesOf(pkg *blocking.Package, v *types.Var, defs []blocking.Def) iter.Seq[inspector.Cursor] {
	if isShared(pkg, v) {
		return pkg.UsesInPackage(v)
	}
	i := slices.IndexFunc(defs, func(d blocking.Def) bool { return d.In != nil })
	return pkg.UsesOf(v, defs[i].In)
}

// isOnlyAppended reports whether all that becomes of the list v is that it grows, is made, and is asked for its length.
func isOnlyAppended(pkg *blocking.Package, v *types.Var, defs []blocking.Def) bool {
	for _, d := range defs {
		if pkg.SelfAppend(v, d) == nil && (d.Kind != blocking.DefValue || d.Value != nil && !isEmpty(pkg, d.Value) || isShared(pkg, v) && d.In != nil && !isMaking(pkg, d)) {
			return false
		}
	}
	for use := range usesOf(pkg, v, defs) {
		if use.ParentEdgeKind() == edge.SelectorExpr_Sel {
			use = use.Parent()
		}
		if !syntax.IsTarget(use) && !isAppended(pkg, use, v) && !isCounted(pkg, use) {
			return false
		}
	}
	return true
}

// isEmpty reports whether e is nil, an empty literal, or a list that make makes without elements.
func isEmpty(pkg *blocking.Package, e ast.Expr) bool {
	switch e := ast.Unparen(e).(type) {
	case *ast.CompositeLit:
		return len(e.Elts) == 0
	case *ast.CallExpr:
		return syntax.IsBuiltin(pkg.Info, e, "make") && len(e.Args) > 1 && pkg.Info.Types[e.Args[1]].Value != nil
	}
	return syntax.IsNil(pkg.Info, e)
}

// isMaking reports whether d gives a field its first value, in a composite literal.
func isMaking(pkg *blocking.Package, d blocking.Def) bool {
	cur, ok := pkg.Cursor(d.Pos)
	if !ok {
		return false
	}
	for c := range cur.Enclosing((*ast.KeyValueExpr)(nil), (*ast.AssignStmt)(nil)) {
		_, ok := c.Node().(*ast.KeyValueExpr)
		return ok
	}
	return false
}

// isCounted reports whether the use is the operand of len or cap, or is compared with nil.
func isCounted(pkg *blocking.Package, use inspector.Cursor) bool {
	switch n := use.Parent().Node().(type) {
	case *ast.CallExpr:
		return syntax.IsBuiltin(pkg.Info, n, "len") || syntax.IsBuiltin(pkg.Info, n, "cap")
	case *ast.BinaryExpr:
		return syntax.IsNil(pkg.Info, n.X) || syntax.IsNil(pkg.Info, n.Y)
	}
	return false
}

// isCollected reports whether the list v may be what l, in f, is for: something uses it after the loop, or the loop
// ends with its input.
func isCollected(pkg *blocking.Package, v *types.Var, f *blocking.Func, l *blocking.Loop) bool {
	if v.IsField() || v.Parent() == pkg.Pass.Pkg.Scope() {
		_, overChan := l.Stmt.(*ast.RangeStmt)
		return overChan
	}
	for use := range pkg.UsesOf(v, f) {
		if g := pkg.FuncAt(use); !pkg.Contains(l, g, use.Node().Pos()) && !syntax.IsTarget(use) && !isAppended(pkg, use, v) {
			return true
		}
	}
	return slices.ContainsFunc(f.Returns, func(r *ast.ReturnStmt) bool { return len(r.Results) == 0 }) && pkg.IsResult(v, f)
}

// isAppended reports whether the use of v is in v = append(v, x).
func isAppended(pkg *blocking.Package, use inspector.Cursor, v *types.Var) bool {
	call, ok := use.Parent().Node().(*ast.CallExpr)
	if !ok {
		return false
	}
	assign, ok := use.Parent().Parent().Node().(*ast.AssignStmt)
	return ok && len(assign.Lhs) == 1 && pkg.Variable(assign.Lhs[0]) == v && pkg.SelfAppend(v, blocking.Def{Value: call}) != nil
}

// growsTensors reports whether the append adds a tensor that l computes.
func growsTensors(pkg *blocking.Package, call *ast.CallExpr, f *blocking.Func, l *blocking.Loop) bool {
	for _, e := range call.Args[1:] {
		if blocking.IsTensor(pkg.Info.TypeOf(e)) && pkg.Fresh(e, f, l) {
			return true
		}
	}
	return false
}

// isCut reports whether v becomes shorter. It does if each iteration has its own v, or if anything is
// assigned to it but v with more elements: in the loop or, if v isn't local, anywhere. What a field is
// made with is no cut, and neither is one by a function that lets the field grow itself, unless l calls it.
func isCut(pkg *blocking.Package, v *types.Var, l *blocking.Loop) bool {
	local := !v.IsField() && v.Parent() != pkg.Pass.Pkg.Scope()
	if local && l.Declares(v) {
		return true
	}
	for _, d := range pkg.Defs[v] {
		switch {
		case pkg.SelfAppend(v, d) != nil:
		case pkg.Contains(l, d.In, d.Pos):
			return true
		case !local && (d.In == nil || pkg.CalledFrom(l, d.In) || d.In == l.Func || !isMaking(pkg, d) && !appendsTo(pkg, v, d.In)):
			return true
		}
	}
	return false
}

// appendsTo reports whether f appends to the list v.
func appendsTo(pkg *blocking.Package, v *types.Var, f *blocking.Func) bool {
	return slices.ContainsFunc(pkg.Defs[v], func(d blocking.Def) bool { return d.In == f && pkg.SelfAppend(v, d) != nil })
}

// isEndless reports whether l ends only when a channel is closed, a context ends, something is received
// or something fails.
func isEndless(f *blocking.Func, l *blocking.Loop) bool {
	fl := f.Flow()
	switch s := l.Stmt.(type) {
	case *ast.ForStmt:
		if s.Cond != nil && !asksContext(f.Package, s.Cond) {
			return false
		}
	case *ast.RangeStmt:
		if _, ok := f.Package.Info.TypeOf(s.X).Underlying().(*types.Chan); !ok {
			return false
		}
	default:
		return false
	}
	for at := range l.Blocks {
		for _, s := range fl.Blocks[at].Succs {
			if !l.Blocks[s.Index] && !endsFromOutside(f, l, fl.Blocks[at], s) {
				return false
			}
		}
	}
	return true
}

// endsFromOutside reports whether an edge that leaves l is taken because of the world outside: a
// channel was closed, a case of a select statement was chosen, or something failed.
func endsFromOutside(f *blocking.Func, l *blocking.Loop, from, to *cfg.Block) bool {
	_, overChan := l.Stmt.(*ast.RangeStmt)
	if overChan && from.Index == l.Head || to.Kind == cfg.KindSelectCaseBody || to.Kind == cfg.KindSelectAfterCase {
		return true
	}
	if len(from.Succs) != 2 || len(from.Nodes) == 0 {
		return false
	}
	e, ok := from.Nodes[len(from.Nodes)-1].(ast.Expr)
	holds := from.Succs[0] == to
	return ok && (asksContext(f.Package, e) || f.Package.IsFailure(e, holds) || isClosed(f.Package, e, holds))
}

// isClosed recognises !ok where x, ok := <-channel.
func isClosed(pkg *blocking.Package, e ast.Expr, holds bool) bool {
	e = ast.Unparen(e)
	if u, ok := e.(*ast.UnaryExpr); ok && u.Op == token.NOT {
		e, holds = ast.Unparen(u.X), !holds
	}
	v := pkg.Local(e)
	if v == nil || holds {
		return false
	}
	return !slices.ContainsFunc(pkg.Defs[v], func(d blocking.Def) bool {
		u, ok := ast.Unparen(syntax.OrNil(d.Value)).(*ast.UnaryExpr)
		return !ok || u.Op != token.ARROW || d.Index != 1
	})
}

// asksContext recognises ctx.Err() == nil and its like.
func asksContext(pkg *blocking.Package, e ast.Expr) bool {
	b, ok := ast.Unparen(e).(*ast.BinaryExpr)
	if !ok {
		return false
	}
	for _, side := range []ast.Expr{b.X, b.Y} {
		if c := pkg.Calls[syntax.AsCall(side)]; c != nil && c.Callee != nil && c.Callee.FullName() == "(context.Context).Err" {
			return true
		}
	}
	return false
}
