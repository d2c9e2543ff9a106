package plan

import (
	"go/ast"
	"go/token"
	"go/types"

	"github.com/asyncgen/asyncgen/analysis/tensorapi"
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

// totalPackages are packages whose functions work for all arguments.
var totalPackages = map[string]bool{"math": true, "math/cmplx": true, "unicode": true, "cmp": true, "errors": true, "strconv": true}

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
	switch kind := stdlib(fn); kind {
	case stdUnknown:
	case stdPrints, stdStamps, stdFormats, stdClock, stdPolls:
		return fn, tensorapi.Func{}, CallsTotal
	default:
		if totalPackages[fn.Pkg().Path()] {
			return fn, tensorapi.Func{}, CallsTotal
		}
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

// Add merges what o does into e.
func (e *Effects) Add(o *Effects) { e.add(o) }

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
