package sites

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"

	"github.com/asyncgen/asyncgen/analysis/blocking"
	"github.com/asyncgen/asyncgen/analysis/internal/syntax"
	"github.com/asyncgen/asyncgen/analysis/tensorapi"
)

// This file is about values that a loop reads and makes its next tensor from.

// isNumbers reports whether t is a list of numbers, one of such lists, or a struct with some: the state of a world.
func isNumbers(t types.Type) bool {
	if p, ok := t.Underlying().(*types.Pointer); ok {
		t = p.Elem()
	}
	if s, ok := t.Underlying().(*types.Struct); ok {
		for f := range s.Fields() {
			if elem := syntax.ElementType(f.Type()); elem != nil && syntax.IsNumeric(elem) {
				return true
			}
		}
		return false
	}
	elem := syntax.ElementType(t)
	return elem != nil && (syntax.IsNumeric(elem) || isNumbers(elem))
}

// isFedBack reports whether the value at p goes to somebody at once, by a function that l's function is given, by the
// yield of an iterator or on a channel, and l makes its next tensor of it: a text that a client reads word by word.
//
//	if !yield(token) {
//		return
//	}
//	tokens = append(tokens, token)
//
// If the value is an integer, the next tensor may also be computed from the tensor e itself.
func isFedBack(pkg *blocking.Package, p Place, e ast.Expr, l *blocking.Loop) bool {
	v := pkg.Local(valueOf(p))
	if v == nil || p.Use != Passed || pkg.HoldsTensors(v.Type()) {
		return false
	}
	at := p.Cur.Parent()
	if text, ok := becomesText(pkg, p); ok {
		at = text.Parent() // what it stands for
	} else if _, ok := at.Node().(*ast.IndexExpr); ok {
		at = at.Parent() // its name, in a list on the host
	}
	switch n := at.Node().(type) {
	case *ast.SendStmt:
	case *ast.CallExpr:
		if fn := pkg.Variable(n.Fun); fn == nil || pkg.Params[fn].Of == nil && !fn.IsField() || pkg.Calls[n] == nil || pkg.Calls[n].TakesTensor() {
			return false // what is given tensors computes
		}
	default:
		return false
	}
	isNumber := isWhole(v.Type()) || isWhole(typeOf(pkg, nodeOf(p.Cur))) // maybe converted to one here
	return becomesTensor(pkg, map[types.Object]bool{v: true}, l) || isNumber && feedsOn(pkg, e, l)
}

// isHeard reports whether the value at p, which is read from e, goes to a function that l's function is given, whose
// answer says whether to go on. l computes its next tensor from e, and doesn't train: whoever listens waits for it.
//
//	for more := true; more; {
//		y := model.Forward(x)
//		more = !enough(y.Item())
//		x = next(x, y)
//	}
func isHeard(pkg *blocking.Package, p Place, e ast.Expr, l *blocking.Loop) bool {
	call := syntax.AsCall(nodeOf(p.Cur.Parent()))
	if p.Use != Passed || call == nil || pkg.Calls[call] == nil || pkg.Calls[call].TakesTensor() {
		return false
	}
	listener := pkg.Variable(call.Fun)
	if listener == nil || pkg.Params[listener].Of == nil && !listener.IsField() || isYield(pkg, listener) {
		return false
	}
	return feedsOn(pkg, e, l) && slices.ContainsFunc(Uses(pkg, pkg.Calls[call], l), func(p Place) bool { return p.Use == Decides })
}

// isWhole reports whether t is an integer, or a list of integers.
func isWhole(t types.Type) bool {
	if elem := syntax.ElementType(t); elem != nil {
		t = elem
	}
	basic, ok := t.Underlying().(*types.Basic)
	return ok && basic.Info()&types.IsInteger != 0
}

// feedsOn is isFed for e, or for a variable that it is computed from.
func feedsOn(pkg *blocking.Package, e ast.Expr, l *blocking.Loop) (fed bool) {
	ast.Inspect(syntax.OrNil(e), func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		fed = fed || ok && blocking.IsTensor(typeOf(pkg, id)) && isFed(pkg, id, l)
		return !fed
	})
	return fed
}

// isFed reports whether l computes its next tensor from e, a variable, and doesn't train.
func isFed(pkg *blocking.Package, e ast.Expr, l *blocking.Loop) bool {
	token := pkg.Local(syntax.OrNil(e))
	if token == nil || pkg.Any(l, (*blocking.Call).Mutates) {
		return false
	}
	for v, defs := range pkg.Defs {
		if blocking.IsTensor(v.Type()) && !l.Declares(v) && (v == token || slices.ContainsFunc(defs, func(d blocking.Def) bool {
			return d.Value != nil && pkg.Contains(l, d.In, d.Pos) && pkg.Mentions(d.Value, token)
		})) {
			return true
		}
	}
	return false
}

// feeds reports whether the value at p is kept, and l makes its next tensor of what it is kept in.
//
//	next := scores(tensor.From(tokens)).ArgMax(0).ItemInt()
//	tokens = append(tokens, next)
func feeds(pkg *blocking.Package, p Place, l *blocking.Loop) bool {
	if p.Use != Kept {
		return false
	}
	vars := make(map[types.Object]bool)
	addAssigned(pkg, p, vars, isNumbers)
	return len(vars) > 0 && becomesTensor(pkg, vars, l)
}

// addAssigned adds to vars the variables that the statement around p assigns, of the types that are asked for.
func addAssigned(pkg *blocking.Package, p Place, vars map[types.Object]bool, of func(types.Type) bool) {
	for cur := range p.Cur.Enclosing((*ast.AssignStmt)(nil), (*ast.FuncLit)(nil)) {
		if n, ok := cur.Node().(*ast.AssignStmt); ok {
			for _, lhs := range n.Lhs {
				if v := pkg.Variable(lhs); v != nil && syntax.IsIdent(lhs) && of(v.Type()) {
					vars[v] = true
				}
			}
		}
		return
	}
}

// valueOf returns the expression at p, without conversions and calls that only compute, and the only element of a list.
func valueOf(p Place) ast.Expr {
	pkg := p.in.Package
	e, _ := p.Cur.Node().(ast.Expr)
	for {
		if lit, ok := e.(*ast.CompositeLit); ok && len(lit.Elts) == 1 {
			e = lit.Elts[0]
		}
		call := syntax.AsCall(syntax.OrNil(e))
		if call == nil || len(call.Args) != 1 {
			return syntax.OrNil(e)
		}
		if c := pkg.Calls[call]; !pkg.Info.Types[call.Fun].IsType() && (c == nil || c.API.Kind != tensorapi.Pure) {
			return e
		}
		e = call.Args[0]
	}
}

// becomesTensor reports whether l makes a tensor of what is in one of the variables, directly or by way of others.
func becomesTensor(pkg *blocking.Package, vars map[types.Object]bool, l *blocking.Loop) bool {
	for grown := true; grown; {
		grown = false
		for v, defs := range pkg.Defs {
			if !vars[v] && isNumbers(v.Type()) && slices.ContainsFunc(defs, func(d blocking.Def) bool {
				return d.Value != nil && pkg.Contains(l, d.In, d.Pos) && pkg.MentionsAny(d.Value, vars)
			}) {
				vars[v], grown = true, true
			}
		}
		for cur := range l.Func.Cur.Preorder((*ast.CallExpr)(nil)) {
			n := cur.Node().(*ast.CallExpr)
			if f := pkg.FuncAt(cur); !syntax.IsBuiltin(pkg.Info, n, "copy") || f == nil || !pkg.Contains(l, f, n.Pos()) || !pkg.MentionsAny(n.Args[1], vars) {
				continue
			}
			if v := copiedTo(pkg, n.Args[0]); v != nil && !vars[v] {
				vars[v], grown = true, true
			}
		}
	}
	return pkg.Any(l, func(c *blocking.Call) bool {
		return makesTensors(c) && slices.ContainsFunc(c.Expr.Args, func(e ast.Expr) bool { return pkg.MentionsAny(e, vars) })
	})
}

// copiedTo returns the variable of the list to which copy copies, or nil: x for x[i*n:].
func copiedTo(pkg *blocking.Package, e ast.Expr) *types.Var {
	if s, ok := ast.Unparen(e).(*ast.SliceExpr); ok {
		e = s.X
	}
	return pkg.Variable(e)
}

// makesTensors reports whether c makes a tensor of host data, by itself or in a function that computes with it.
func makesTensors(c *blocking.Call) bool {
	return c.API.Kind == tensorapi.Host || c.API.Kind == tensorapi.Unknown && c.Enqueues()
}

// isRanked reports whether the value at p becomes a part of a struct, l keeps a list of such structs in order from one
// iteration to the next, and a struct of the list says what l computes next: a queue of the hardest samples, a beam of
// candidates. The host has to know the value before it can go on.
//
//	s := heap.Pop(&queue).(sample)
//	loss := step(x.Row(s.at))
//	heap.Push(&queue, sample{s.at, loss.Item()})
func isRanked(pkg *blocking.Package, p Place, l *blocking.Loop) bool {
	of := structAround(pkg, p)
	if of == nil || l.Stmt == nil {
		return false
	}
	sorts := func(d *blocking.Call) bool {
		return syntax.IsSorter(d.Callee) && slices.ContainsFunc(d.Expr.Args, func(e ast.Expr) bool {
			if u, ok := ast.Unparen(e).(*ast.UnaryExpr); ok && u.Op == token.AND {
				e = u.X
			}
			return isListOf(typeOf(d.In.Package, e), of)
		})
	}
	if !pkg.Any(l, func(d *blocking.Call) bool { return sorts(d) || d.Target != nil && !d.Away && d.Target.Contains(sorts) }) {
		return false
	}
	mentions := func(n ast.Node, is func(*types.Var) bool) (found bool) {
		ast.Inspect(n, func(n ast.Node) bool {
			id, ok := n.(*ast.Ident)
			if v, isVar := pkg.Info.Uses[id].(*types.Var); ok && isVar {
				found = found || is(v)
			}
			return !found
		})
		return found
	}
	isKept := func(v *types.Var) bool { return isListOf(v.Type(), of) && !l.Declares(v) }
	isOf := func(v *types.Var) bool { return types.Identical(v.Type(), of) || isListOf(v.Type(), of) }
	return mentions(l.Stmt, isKept) && pkg.Any(l, func(d *blocking.Call) bool {
		computes := d.API.Kind == tensorapi.Op || d.API.Kind == tensorapi.View || makesTensors(d) || d.API.Kind == tensorapi.Unknown && d.Summary().Makes
		return computes && slices.ContainsFunc(d.Expr.Args, func(e ast.Expr) bool { return mentions(e, isOf) })
	})
}

// structAround returns the type of the struct literal that the value at p is a part of, or nil.
func structAround(pkg *blocking.Package, p Place) types.Type {
	for cur := range p.Cur.Enclosing((*ast.CompositeLit)(nil), (*ast.FuncLit)(nil), (*ast.BlockStmt)(nil)) {
		if _, ok := cur.Node().(*ast.CompositeLit); !ok {
			return nil
		}
		if t := typeOf(pkg, nodeOf(cur)); isStruct(t) {
			return t
		}
	}
	return nil
}

// isStruct reports whether t is a struct type.
func isStruct(t types.Type) bool { _, ok := t.Underlying().(*types.Struct); return ok }

// isListOf reports whether t is a list of structs of the type of, or of pointers to them.
func isListOf(t, of types.Type) bool {
	elem := syntax.ElementType(t)
	if elem == nil {
		return false
	}
	if p, ok := elem.Underlying().(*types.Pointer); ok {
		elem = p.Elem()
	}
	return types.Identical(elem, of)
}
