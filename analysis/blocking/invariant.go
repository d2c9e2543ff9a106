package blocking

import (
	"go/ast"
	"go/types"
	"slices"

	"github.com/asyncgen/asyncgen/analysis/tensorapi"
)

// A Remake is a call in a loop that makes the same tensor of host data in each
// iteration.
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
		if c.api.Kind != tensorapi.Host || c.away {
			continue
		}
		for l := range f.a.loopsAround(f, c.Expr.Pos()) {
			if l.blocks != nil && !l.small && f.a.any(l, (*Call).enqueues) && !f.a.isOuter(l, c) &&
				f.a.guardOf(f, c.Expr.Pos(), l) == always && f.a.isSame(c.Expr, l) {
				list = append(list, Remake{c, l, f.a.isOneNumber(c) || f.a.isBeginning(c, l)})
			}
			break
		}
	}
	return list
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
		if id, ok := ast.Unparen(e.Fun).(*ast.Ident); !ok || id.Name != "len" && id.Name != "min" && id.Name != "max" {
			return false
		}
	default:
		c := a.calls[e]
		if c == nil {
			return false
		}
		switch c.api.Kind {
		case tensorapi.Host, tensorapi.Meta, tensorapi.Pure:
		default:
			return false
		}
		if recv := c.Callee.Signature().Recv(); recv != nil && !a.isSame(c.operand(tensorapi.Recv)[0], l) {
			return false
		}
	}
	for _, arg := range e.Args {
		if !a.isSame(arg, l) {
			return false
		}
	}
	return true
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
