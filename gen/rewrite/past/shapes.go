package past

import (
	"go/ast"
	"go/types"
	"slices"

	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"github.com/asyncgen/asyncgen/gen/internal/plan"
)

// A shape says what is known of the shape of a tensor from one iteration to the next. They are in order, from what is
// known best.
type shape int

const (
	same     shape = iota // it is that of the iteration before
	steady                // it is, once the tensors that come round are results of the loop itself
	varying               // it may be another one each time, and does not go on growing
	looped                // it is that of the variable about which something is to be found out
	growing               // it is larger each time by as much, or part of something or made of something that is
	changing              // nothing is known
)

// shapes finds out what is known of the shapes of tensors.
type shapes struct {
	*counting
	shapeOf  map[types.Object]shape // of variables, and of fields that stand for one
	compared map[types.Object]bool  // tensors from before the loop that iterations compare
	given    []given                // what each iteration compares
	held     shape                  // of what cells hold, where the loop sets some; 0 if that has not been found out
}

// A given is a tensor that each iteration compares with that of the one before: one from outside, or one that comes
// round. by is the statement of the body in which it is used first.
type given struct {
	tensor ast.Expr
	root   *types.Var
	by     *plan.Stmt
}

// addGiven adds e, which begins with root and is used in the statement by.
func addGiven(list []given, e ast.Expr, root *types.Var, by *plan.Stmt) []given {
	text := types.ExprString(e)
	i := slices.IndexFunc(list, func(g given) bool { return types.ExprString(g.tensor) == text && g.root == root })
	if i < 0 {
		return append(list, given{e, root, by})
	}
	if g := &list[i]; by.Node.Pos() < g.by.Node.Pos() {
		g.by = by
	}
	return list
}

// operands returns what is known of the shapes of the tensors that a call is given.
func (p *shapes) operands(call *ast.CallExpr, in *plan.Stmt) shape {
	s := same
	if sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr); ok && p.isTensor(sel.X) {
		s = p.shape(sel.X, in)
	}
	for _, arg := range call.Args {
		if p.isTensor(arg) || p.isTensors(arg) && !p.fixed(arg) {
			s = max(s, p.shape(arg, in))
		}
	}
	for _, id := range p.f.CapturedBy(call) {
		if p.isTensor(id) || p.isTensors(id) && !p.fixed(id) {
			s = max(s, p.shape(id, in))
		}
	}
	return s
}

// comparedOperands is operands for a call that needs tensors of the same shapes: those that come round are compared
// with what they were, if need be.
func (p *shapes) comparedOperands(call *ast.CallExpr, in *plan.Stmt) shape {
	for {
		s := p.operands(call, in)
		if s <= steady || !slices.ContainsFunc(p.carriedIn(call), p.compare) {
			return s
		}
	}
}

// ofShape reports whether e, which stands in the statement in, asks for something about the shape of a
// tensor that has the same in every iteration: x.Dim(0). A tensor that comes round is compared, if need be.
func (p *shapes) ofShape(e ast.Expr, in *plan.Stmt) bool {
	call, ok := ast.Unparen(e).(*ast.CallExpr)
	if !ok {
		return false
	}
	sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr)
	if _, api, kind := p.f.Callee(call); !ok || kind != plan.CallsLibrary || api.Kind != tensorapi.Meta || !p.isTensor(sel.X) {
		return false
	}
	if slices.ContainsFunc(call.Args, func(arg ast.Expr) bool { return !p.fixed(arg) }) {
		return false
	}
	s := p.shape(sel.X, in)
	if id, ok := ast.Unparen(sel.X).(*ast.Ident); ok && s != same && p.compare(p.f.Info.ObjectOf(id)) {
		s = p.shape(sel.X, in)
	}
	return s == same
}

// shape returns what is known of the shape of e, which stands in the statement in.
func (p *shapes) shape(e ast.Expr, in *plan.Stmt) shape {
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		v, ok := p.f.Info.ObjectOf(e).(*types.Var)
		if !ok {
			return changing
		}
		switch {
		case p.Contained && p.isElement(e):
			return varying
		case !p.Contained && p.compareGiven(e, v, in):
			return same
		}
		s := p.variable(v)
		if p.compared[v] && p.asItCame(v, in) {
			return same
		}
		return s
	case *ast.CallExpr:
		return p.result(e, in)
	case *ast.SelectorExpr, *ast.IndexExpr:
		if p.fixed(e) {
			return same
		}
		if ix, ok := e.(*ast.IndexExpr); ok {
			if v := p.owned(ix.X); v != nil {
				return p.variable(v)
			}
		}
		if p.Contained && p.isElement(e) {
			return varying
		}
		root := rootOf(p.f, e)
		if !p.Contained && root != nil && p.compareGiven(e, root, in) {
			return same
		}
		if _, isField := ast.Unparen(e).(*ast.SelectorExpr); isField && root != nil && p.ranges(root) {
			return p.variable(root)
		}
		if v := p.field(e, root); v != nil && p.isTensor(e) {
			return p.variable(v)
		}
	}
	return changing
}

// variable returns what is known of the shapes of the tensors that v is given.
func (p *shapes) variable(v types.Object) shape {
	if s, ok := p.shapeOf[v]; ok {
		return s
	}
	if p.Contained {
		return p.limited(v)
	}
	known := len(p.compared)
	p.shapeOf[v] = steady // in a circle
	if p.compared[v] {
		p.shapeOf[v] = same
	}
	s := same
	for _, u := range p.Units {
		if !p.writes(u, v) {
			continue
		}
		s = max(s, p.assigned(u.Stmt, v))
		if p.fields[v] != nil && !p.always(u.Stmt) {
			s = changing
		}
		if n, ok := u.Stmt.Inner().(*ast.AssignStmt); ok && !p.compared[v] && !p.always(u.Stmt) {
			for i := range n.Lhs {
				if p.swaps(v.(*types.Var), n, i) {
					s = changing // found in the next iteration
				}
			}
		}
		if p.carried(v) && !p.compared[v] {
			s = max(s, steady)
		}
		if !p.always(u.Stmt) {
			s = max(s, varying)
		}
	}
	if len(p.compared) > known {
		delete(p.shapeOf, v)
		return p.variable(v) // with what is known now
	}
	// The one that comes round has its last shape before anything runs past an exit.
	settles := p.warm() >= 2 && p.comesRound() == 1
	if (s == changing || s == steady && !settles && !p.hasTests()) && p.compare(v) {
		return p.variable(v)
	}
	if s == steady && !settles && p.carried(v) {
		s = varying
	}
	p.shapeOf[v] = s
	return s
}

// compare makes each iteration compare v, a tensor that comes round, with what it was at the
// beginning of the one before: if it is alike then, so is all that is computed of it. It
// reports whether that is new.
func (p *shapes) compare(v types.Object) bool {
	lv, ok := v.(*types.Var)
	first := p.begins()
	var parts []string // of v, if it is a struct
	if ok && !p.f.Analysis.API.IsTensor(v.Type()) {
		parts = tensorsIn(p.f, v.Type())
		ok = len(parts) > 0
	}
	if !ok || p.compared[v] || !p.carried(v) || p.f.Visible(p.root(v)) || first == nil {
		return false
	}
	if !p.f.Sees(first.Node.Pos(), p.root(v)) {
		return false
	}
	p.compared[v] = true
	what := given{ast.NewIdent(v.Name()), lv, first}
	if at := p.fields[v]; at != nil {
		what = given{at.expr, at.root, first}
	}
	for _, name := range parts {
		p.given = append(p.given, given{&ast.SelectorExpr{X: what.tensor, Sel: ast.NewIdent(name)}, what.root, first})
	}
	if len(parts) == 0 {
		p.given = append(p.given, what)
	}
	clear(p.shapeOf) // they were found without
	return true
}

// compareGiven reports whether e, which begins with root, is a tensor from outside,
// of the iteration: an element of something that the loop does not change. If
// so, it notes that the iteration has to compare it with that of the one before.
func (p *shapes) compareGiven(e ast.Expr, root *types.Var, in *plan.Stmt) bool {
	if !p.fromElement(e, root) {
		return false
	}
	names := tensorsIn(p.f, p.f.Info.TypeOf(e))
	for _, name := range names {
		p.given = addGiven(p.given, &ast.SelectorExpr{X: e, Sel: ast.NewIdent(name)}, root, p.top(in))
	}
	if len(names) == 0 {
		p.given = addGiven(p.given, e, root, p.top(in))
	}
	return true
}
