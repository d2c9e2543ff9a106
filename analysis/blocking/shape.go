package blocking

import (
	"go/ast"
	"go/types"

	"github.com/asyncgen/asyncgen/analysis/tensorapi"
)

// Sizes lists the operands that the value which the site reads becomes in its
// loop, and that say how many elements something has: of make, and of calls of
// the library that take integers.
func (s *Site) Sizes() []ast.Expr {
	c := s.in.a.calls[s.Call]
	if c == nil || s.Kind != ReadSite {
		return nil
	}
	var list []ast.Expr
	for _, p := range s.in.a.uses(c, s.Loop) {
		arg, ok := p.cur.Node().(ast.Expr)
		call, isArg := p.cur.Parent().Node().(*ast.CallExpr)
		if !ok || !isArg || !isInteger(s.in.a.info.TypeOf(arg)) {
			continue
		}
		if s.in.a.takesSizes(call) {
			list = append(list, arg)
		}
	}
	return list
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
