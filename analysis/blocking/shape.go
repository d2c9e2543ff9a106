package blocking

import (
	"go/ast"
	"go/types"
	"slices"

	"github.com/asyncgen/asyncgen/analysis/tensorapi"
)

// Sizes lists the operands that the value which the site reads becomes in its
// loop, and that say how many elements something has: of make, and of calls of
// the library that take integers.
func (s *Site) Sizes() []ast.Expr {
	if s.Kind != ReadSite {
		return nil
	}
	var list []ast.Expr
	for _, p := range s.in.a.uses(s.at, s.Loop) {
		if arg := s.in.a.size(p); arg != nil {
			list = append(list, arg)
		}
	}
	return list
}

// onlySizes reports whether all that the library makes of the value is sizes.
func (s *Site) onlySizes() bool {
	return !slices.ContainsFunc(s.in.a.uses(s.at, s.Loop), func(p place) bool { return p.use == Computes && s.in.a.size(p) == nil })
}

// size returns the operand that the use of a value is, if it is a size, or nil.
func (a *analyzer) size(p place) ast.Expr {
	arg, ok := p.cur.Node().(ast.Expr)
	call, isArg := p.cur.Parent().Node().(*ast.CallExpr)
	if !ok || !isArg || !isInteger(a.info.TypeOf(arg)) || !a.takesSizes(call) {
		return nil
	}
	return arg
}

func (a *analyzer) takesSizes(call *ast.CallExpr) bool {
	if a.info.Types[call.Fun].IsBuiltin() {
		id, ok := ast.Unparen(call.Fun).(*ast.Ident)
		return ok && id.Name == "make"
	}
	c := a.calls[call]
	if c == nil {
		return false
	}
	switch c.api.Kind {
	case tensorapi.Host, tensorapi.Draw:
		return true
	case tensorapi.View:
		return c.Callee.Name() != "Row" // one row, whichever it is
	}
	return false
}

func isInteger(t types.Type) bool {
	if t == nil {
		return false
	}
	basic, ok := t.Underlying().(*types.Basic)
	return ok && basic.Info()&types.IsInteger != 0
}
