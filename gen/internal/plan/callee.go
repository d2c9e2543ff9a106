package plan

import (
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"slices"

	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"github.com/asyncgen/asyncgen/gen/internal/facts"
	"golang.org/x/tools/go/types/typeutil"
)

// A Callee says what sort of function a call calls.
type Callee uint8

// The sorts of functions.
const (
	CallsUnknown  Callee = iota
	CallsBuiltin         // append, len
	CallsTotal           // of the standard library; it can't panic
	CallsStandard        // of the standard library
	CallsLibrary         // of the tensor library
	CallsFunction        // of the program, with a body
)

// Callee returns what call calls: nil if that is not known before the program runs.
func (f *Function) Callee(call *ast.CallExpr) (*types.Func, tensorapi.Func, Callee) {
	if f.builtin(call) != "" {
		return nil, tensorapi.Func{}, CallsBuiltin
	}
	fn, _ := typeutil.Callee(f.Info, call).(*types.Func)
	if fn == nil {
		return nil, tensorapi.Func{}, CallsUnknown
	}
	if api, ok := f.Analysis.API.Lookup(fn); ok {
		return fn, api, CallsLibrary
	}
	switch fact := facts.Of(fn); {
	case fact == nil, takesFunc(fact, fn):
	case fact.Has(facts.Total | facts.Clock):
		return fn, tensorapi.Func{}, CallsTotal
	default:
		return fn, tensorapi.Func{}, CallsStandard
	}
	if _, ok := f.Analysis.Program.Body(fn); ok {
		return fn.Origin(), tensorapi.Func{}, CallsFunction
	}
	return fn, tensorapi.Func{}, CallsUnknown
}

// Assigns reports whether f gives the parameter v another value.
func (f *Function) Assigns(v *types.Var) (found bool) {
	if f.facts[v] != nil && f.facts[v].address {
		return true
	}
	ast.Inspect(f.Decl.Body, func(n ast.Node) bool {
		var lhs []ast.Expr
		switch n := n.(type) {
		case *ast.AssignStmt:
			lhs = n.Lhs
		case *ast.IncDecStmt:
			lhs = []ast.Expr{n.X}
		case *ast.RangeStmt:
			if n.Tok == token.ASSIGN {
				lhs = []ast.Expr{n.Key, n.Value}
			}
		}
		for _, e := range lhs {
			if id, ok := e.(*ast.Ident); ok && f.variable(id) == v {
				found = true
			}
		}
		return !found
	})
	return found
}

// Sets is how many statements of f give v a value, its declaration included; a parameter has one from the beginning.
func (f *Function) Sets(v *types.Var) (n int) {
	if v.Pos() < f.Decl.Body.Pos() {
		n = 1
	}
	ast.Inspect(f.Decl.Body, func(m ast.Node) bool {
		id, ok := m.(*ast.Ident)
		if !ok || f.variable(id) != v {
			return true
		}
		switch p := f.parents[id].(type) {
		case *ast.AssignStmt:
			if slices.Contains(p.Lhs, ast.Expr(id)) {
				n++
			}
		case *ast.RangeStmt:
			if p.Key == id || p.Value == id {
				n++
			}
		case *ast.ValueSpec:
			if slices.Contains(p.Names, id) {
				n++
			}
		case *ast.IncDecStmt:
			n++
		case *ast.UnaryExpr:
			if p.Op == token.AND {
				n += 2
			}
		}
		return true
	})
	return n
}

// CountsUp reports whether v, a variable of f, begins with a constant that is not negative, and all that
// ever happens to it is v++.
func (f *Function) CountsUp(v *types.Var) bool {
	if facts := f.facts[v]; facts != nil && facts.address || v.Pos() < f.Decl.Body.Pos() || f.Decl.End() <= v.Pos() {
		return false
	}
	begins, ups := false, true
	natural := func(e ast.Expr) bool {
		value := f.Info.Types[e].Value
		return value != nil && value.Kind() == constant.Int && constant.Sign(value) >= 0
	}
	for id, obj := range f.Info.Defs {
		if obj != v {
			continue
		}
		switch p := f.parents[id].(type) {
		case *ast.AssignStmt:
			for i, lhs := range p.Lhs {
				begins = begins || lhs == id && len(p.Rhs) == len(p.Lhs) && natural(p.Rhs[i])
			}
		case *ast.ValueSpec:
			for i, name := range p.Names {
				begins = begins || name == id && (len(p.Values) == 0 || len(p.Values) == len(p.Names) && natural(p.Values[i]))
			}
		}
	}
	for id, obj := range f.Info.Uses {
		if obj != v {
			continue
		}
		switch p := f.parents[id].(type) {
		case *ast.IncDecStmt:
			ups = ups && p.Tok == token.INC
		case *ast.AssignStmt:
			ups = ups && !slices.Contains(p.Lhs, ast.Expr(id))
		case *ast.RangeStmt:
			ups = ups && p.X == id
		}
	}
	return begins && ups
}

// Add merges what o does into e.
func (e *Effects) Add(o *Effects) { e.add(o) }

// Sets reports whether e changes the variable v.
func (e *Effects) Sets(v *types.Var) bool {
	_, ok := e.Writes[Loc{Kind: Var, Obj: v}]
	return ok
}

// Needs reports whether e reads what by changes, cells apart.
func (e *Effects) Needs(by *Effects) bool {
	for r := range e.Reads {
		for w := range by.Writes {
			if r.Kind != Cells && overlap(w, r) {
				return true
			}
		}
	}
	return false
}

// WithoutVariables returns the effects of e on memory.
func (e *Effects) WithoutVariables() *Effects {
	return e.outside(func(l Loc) bool { return l.Kind == Var })
}
