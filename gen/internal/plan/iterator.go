package plan

import (
	"go/ast"
	"go/types"

	"golang.org/x/tools/go/types/typeutil"
)

// iterator returns what the function that a range statement over x calls does
// between the iterations, or nil if that is not known. It is known if x is a call
// of a function of the program all of whose returns are function literals, and of
// x itself if it is the name of a function.
func (w *walker) iterator(x ast.Expr) *Effects {
	if fn := w.f.named(x); fn != nil {
		return w.f.Analysis.iterates(fn, func(decl *ast.FuncDecl) []*ast.FuncLit {
			return []*ast.FuncLit{{Type: decl.Type, Body: decl.Body}}
		})
	}
	call, ok := ast.Unparen(x).(*ast.CallExpr)
	if !ok {
		return nil
	}
	fn := typeutil.StaticCallee(w.f.Info, call)
	if fn == nil {
		return nil
	}
	return w.f.Analysis.iterates(fn, returnedLiterals)
}

// ReturnsIterator reports whether lit stands in a return, and gets a function as its only parameter.
func (f *Function) ReturnsIterator(lit *ast.FuncLit) bool {
	_, ok := f.parents[lit].(*ast.ReturnStmt)
	params := f.Info.TypeOf(lit).(*types.Signature).Params()
	return ok && params.Len() == 1 && isFunc(params.At(0).Type())
}

// returnedLiterals returns the function literals that decl returns, or nil if
// it returns anything else.
func returnedLiterals(decl *ast.FuncDecl) (lits []*ast.FuncLit) {
	known := true
	ast.Inspect(decl.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.ReturnStmt:
			if len(n.Results) != 1 {
				known = false
				return false
			}
			lit, ok := ast.Unparen(n.Results[0]).(*ast.FuncLit)
			known = known && ok
			lits = append(lits, lit)
		}
		return true
	})
	if !known {
		return nil
	}
	return lits
}

// iterates returns what the iterators do that bodies finds in fn, apart from
// calling the function that they are given, or nil if it finds none.
func (a *Analysis) iterates(fn *types.Func, bodies func(*ast.FuncDecl) []*ast.FuncLit) *Effects {
	body, ok := a.Program.Body(fn.Origin())
	if !ok || body.Stub || body.Decl.Body == nil {
		return nil
	}
	f := a.Function(body.Pkg, body.Decl)
	total := &Effects{}
	lits := bodies(body.Decl)
	for _, lit := range lits {
		params := lit.Type.Params.List
		if len(params) != 1 || len(params[0].Names) != 1 {
			return nil
		}
		yield := f.variable(params[0].Names[0])
		if yield == nil || !f.onlyCalled(yield) || f.hasDefer {
			return nil
		}
		f.yield = yield
		total.add(f.walk(lit.Body, nil))
	}
	if len(lits) == 0 {
		return nil
	}
	return f.Outside(total)
}

// onlyCalled reports whether v is called where it is used, in this goroutine and in no other function.
func (f *Function) onlyCalled(v *types.Var) bool {
	only := true
	ast.Inspect(f.Decl, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		if !ok || f.Info.Uses[id] != v {
			return true
		}
		call, ok := f.parents[id].(*ast.CallExpr)
		if !ok || call.Fun != id || f.startsElsewhere(call) {
			only = false
			return true
		}
		if lit := f.literalAround(id); lit != nil && (v.Pos() < lit.Pos() || v.Pos() >= lit.End()) {
			only = false
		}
		return true
	})
	return only
}
