package blocking

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"

	"github.com/asyncgen/asyncgen/analysis/tensorapi"
)

// A Remake is a call in a loop that makes the same tensor in each iteration: of host data, by
// itself or as a function of the package, or by converting one that the loop doesn't change.
type Remake struct {
	Call *Call
	Loop *Loop
	// Small reports whether making it costs next to nothing: one number, or what a
	// variable begins with that the loop then computes.
	Small bool
}

// Remakes lists those of f, not of the literals in it.
func (f *Func) Remakes() []Remake {
	var list []Remake
	for _, c := range f.calls {
		if c.away || c.api.Kind != tensorapi.Host && !f.a.converts(c) && !f.a.makes(c.target) {
			continue
		}
		for l := range f.a.loopsAround(f, c.Expr.Pos()) {
			if l.blocks != nil && !l.small && f.a.any(l, (*Call).enqueues) && !f.a.isOuter(l, c) &&
				f.a.guardOf(f, c.Expr.Pos(), l) == always && f.a.isSameWork(c, l) {
				list = append(list, Remake{c, l, c.api.Kind == tensorapi.Host && f.a.isOneNumber(c) || f.a.isBeginning(c, l)})
			}
			break
		}
	}
	return list
}

// converts reports whether c converts the tensor that a variable holds to another type.
func (a *analyzer) converts(c *Call) bool {
	if c.lib != tensorapi.Ours() || c.Callee.Name() != "As" || c.api.Kind != tensorapi.Op || len(c.operand(tensorapi.Recv)) == 0 {
		return false
	}
	recv := c.operand(tensorapi.Recv)[0]
	return a.local(recv) != nil && isTensor(a.info.TypeOf(recv))
}

// isSameWork reports whether c does the same in each iteration of l.
func (a *analyzer) isSameWork(c *Call, l *Loop) bool {
	if c.api.Kind == tensorapi.Op {
		return a.isSame(c.operand(tensorapi.Recv)[0], l) && a.areSame(c.Expr.Args, l)
	}
	return a.isSame(c.Expr, l)
}

// makes reports whether f, a function of the package, returns nothing but a tensor that depends on its operands
// alone, none of which is a tensor, and on what never changes.
func (a *analyzer) makes(f *Func) bool {
	if f == nil || f.sig.Results().Len() != 1 || !isTensor(f.sig.Results().At(0).Type()) || len(f.parts()) != 1 {
		return false
	}
	for p := range f.sig.Params().Variables() {
		if !isData(p.Type()) {
			return false
		}
	}
	if recv := f.sig.Recv(); recv != nil && !isStructOfBasics(recv.Type()) {
		return false
	}
	hosts := false
	for _, c := range f.calls {
		switch {
		case c.away || c.dynamic || c.target == f:
			return false
		case c.api.Kind == tensorapi.Host:
			hosts = hosts || !a.isOneNumber(c)
		case c.api.Kind == tensorapi.Op || c.api.Kind == tensorapi.View || c.api.Kind == tensorapi.Meta || c.api.Kind == tensorapi.Pure:
		case c.Callee != nil && c.Callee.Pkg() != nil && c.Callee.Pkg().Path() == "math":
		default:
			return false
		}
	}
	if !hosts {
		return false
	}
	known := true
	for cur := range f.cur.Preorder((*ast.Ident)(nil), (*ast.GoStmt)(nil), (*ast.SendStmt)(nil), (*ast.UnaryExpr)(nil)) {
		switch n := cur.Node().(type) {
		case *ast.Ident:
			v, ok := a.info.Uses[n].(*types.Var)
			if ok && !v.IsField() && v.Parent() == a.pass.Pkg.Scope() {
				_, basic := v.Type().Underlying().(*types.Basic)
				known = known && basic && !slices.ContainsFunc(a.defs[v], func(d def) bool { return d.in != nil })
			}
		case *ast.UnaryExpr:
			known = known && n.Op != token.ARROW
		default:
			known = false
		}
	}
	return known
}

// isData reports whether t is a basic type, or a list of some.
func isData(t types.Type) bool {
	switch t := t.Underlying().(type) {
	case *types.Basic:
		return true
	case *types.Slice:
		return isData(t.Elem())
	case *types.Array:
		return isData(t.Elem())
	}
	return false
}

// isOneNumber reports whether the tensor that c makes has one element at most, as its
// operands show.
func (a *analyzer) isOneNumber(c *Call) bool {
	if c.Callee.Name() == "Scalar" {
		return true
	}
	sig := c.Callee.Origin().Signature()
	last := sig.Params().Len() - 1
	if !sig.Variadic() {
		return false
	}
	if sizes := c.operand(last); len(sizes) > 0 || !isList(sig.Params().At(0).Type()) {
		return !c.Expr.Ellipsis.IsValid() && !slices.ContainsFunc(sizes, func(e ast.Expr) bool {
			n, constant := intConst(a.info, e)
			return !constant || n > 1
		})
	}
	lit, ok := ast.Unparen(c.Expr.Args[0]).(*ast.CompositeLit)
	return ok && len(lit.Elts) <= 1
}

// isList reports whether t is a list of data, and not a list of sizes.
func isList(t types.Type) bool {
	s, ok := t.Underlying().(*types.Slice)
	if !ok {
		return false
	}
	basic, ok := s.Elem().Underlying().(*types.Basic)
	return !ok || basic.Kind() != types.Int
}

// isBeginning reports whether c is what a variable begins with in each iteration of l,
// and something else in it is assigned to the variable: a sum, the state of a network.
func (a *analyzer) isBeginning(c *Call, l *Loop) bool {
	for _, defs := range a.defs {
		if slices.ContainsFunc(defs, func(d def) bool { return d.kind == defValue && ast.Unparen(d.value) == c.Expr }) {
			return slices.ContainsFunc(defs, func(d def) bool {
				return a.in(l, d.in, d.pos) && (d.kind != defValue || ast.Unparen(d.value) != c.Expr)
			})
		}
	}
	return false
}

// isSame reports whether e has the same value in each iteration of l.
func (a *analyzer) isSame(e ast.Expr, l *Loop) bool {
	if a.info.Types[e].Value != nil || isNil(a.info, e) {
		return true
	}
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		v, ok := a.info.Uses[e].(*types.Var)
		return ok && !a.mayChange(v, l)
	case *ast.SelectorExpr:
		v, ok := a.info.Uses[e.Sel].(*types.Var)
		if !ok {
			return false
		}
		return !a.mayChange(v.Origin(), l) && (!v.IsField() || a.isSame(e.X, l))
	case *ast.BinaryExpr:
		return a.isSame(e.X, l) && a.isSame(e.Y, l)
	case *ast.UnaryExpr:
		return e.Op.String() == "-" && a.isSame(e.X, l)
	case *ast.IndexExpr:
		if _, generic := a.info.TypeOf(e.X).Underlying().(*types.Signature); generic {
			return true
		}
		return a.isSame(e.X, l) && a.isSame(e.Index, l)
	case *ast.CompositeLit:
		for _, elt := range e.Elts {
			if kv, ok := elt.(*ast.KeyValueExpr); ok {
				elt = kv.Value
			}
			if !a.isSame(elt, l) {
				return false
			}
		}
		return true
	case *ast.CallExpr:
		return a.isSameCall(e, l)
	}
	return false
}

// isSameCall is isSame for conversions, len, constructors and what is known
// about a tensor when it is enqueued.
func (a *analyzer) isSameCall(e *ast.CallExpr, l *Loop) bool {
	tv := a.info.Types[e.Fun]
	switch {
	case tv.IsType():
	case tv.IsBuiltin():
		id, ok := ast.Unparen(e.Fun).(*ast.Ident)
		switch {
		case ok && id.Name == "len" && a.isSameHeader(e.Args[0], l):
			return true
		case !ok || id.Name != "len" && id.Name != "min" && id.Name != "max":
			return false
		}
	default:
		c := a.calls[e]
		if c == nil {
			return false
		}
		if got := a.got(c); got != nil {
			return a.areSame(e.Args, l) && a.isSameHeader(c.operand(tensorapi.Recv)[0], l) && a.isSame(got, l)
		}
		switch c.api.Kind {
		case tensorapi.Host, tensorapi.Meta, tensorapi.Pure:
		default:
			if !a.makes(c.target) {
				return false
			}
		}
		if recv := c.Callee.Signature().Recv(); recv != nil && !a.isSame(c.operand(tensorapi.Recv)[0], l) {
			return false
		}
	}
	return a.areSame(e.Args, l)
}

// areSame reports whether each of es has the same value in each iteration of l.
func (a *analyzer) areSame(es []ast.Expr, l *Loop) bool {
	return !slices.ContainsFunc(es, func(e ast.Expr) bool { return !a.isSame(e, l) })
}

// got returns what c gets of its receiver, if that is all it does: c calls a method of the package that returns an
// expression without calls but len, which is what this returns. It returns nil for all others.
func (a *analyzer) got(c *Call) ast.Expr {
	f := c.target
	if f == nil || c.away || f.sig.Recv() == nil || f.sig.Params().Len() > 0 || f.block == nil || len(f.block.List) != 1 {
		return nil
	}
	ret, ok := f.block.List[0].(*ast.ReturnStmt)
	if !ok || len(ret.Results) != 1 {
		return nil
	}
	return ret.Results[0]
}

// isSameHeader reports whether a variable, or a field of one, holds the same list, struct or pointer in each iteration
// of l, whatever is in that.
func (a *analyzer) isSameHeader(e ast.Expr, l *Loop) bool {
	var v *types.Var
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		v, _ = a.info.Uses[e].(*types.Var)
	case *ast.SelectorExpr:
		v, _ = a.info.Uses[e.Sel].(*types.Var)
		if v != nil && v.IsField() && !a.isSameHeader(e.X, l) {
			return false
		}
	}
	if v == nil {
		return false
	}
	v = v.Origin()
	shared := v.IsField() || v.Parent() == a.pass.Pkg.Scope()
	for _, d := range a.defs[v] {
		if a.in(l, d.in, d.pos) || shared && a.calledFrom(l, d.in) {
			return false
		}
	}
	return !shared || !a.any(l, func(c *Call) bool { return c.dynamic })
}

// mayChange reports whether v, or what it refers to, may be changed in l.
// Tensors don't change; of other references, nothing but their length and
// elements may be asked in the loop.
func (a *analyzer) mayChange(v *types.Var, l *Loop) bool {
	shared := v.IsField() || v.Parent() == a.pass.Pkg.Scope()
	for _, d := range a.defs[v] {
		if a.in(l, d.in, d.pos) || shared && a.calledFrom(l, d.in) {
			return true
		}
	}
	if shared && a.any(l, func(c *Call) bool { return c.dynamic }) {
		return true // who knows what it sets
	}
	switch v.Type().Underlying().(type) {
	case *types.Basic:
		return false
	case *types.Slice, *types.Array:
		return shared || a.escapesIn(v, l)
	}
	return !isTensor(v.Type()) && !isStructOfBasics(v.Type())
}

func isStructOfBasics(t types.Type) bool {
	s, ok := t.Underlying().(*types.Struct)
	if !ok {
		return false
	}
	for f := range s.Fields() {
		if _, ok := f.Type().Underlying().(*types.Basic); !ok {
			return false
		}
	}
	return true
}

// escapesIn reports whether l does anything with the slice v but index it, range
// over it, ask for its length and make tensors of it.
func (a *analyzer) escapesIn(v *types.Var, l *Loop) bool {
	for use := range a.usesOf(v, l.fn) {
		if !a.in(l, a.funcAt(use), use.Node().Pos()) {
			continue
		}
		switch n := use.Parent().Node().(type) {
		case *ast.IndexExpr, *ast.RangeStmt:
			continue
		case *ast.CallExpr:
			if a.info.Types[n.Fun].IsBuiltin() {
				if id, ok := ast.Unparen(n.Fun).(*ast.Ident); ok && (id.Name == "len" || id.Name == "cap") {
					continue
				}
			}
			if c := a.calls[n]; c != nil && c.api.Kind == tensorapi.Host {
				continue
			}
		}
		return true
	}
	return false
}
