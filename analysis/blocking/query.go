package blocking

import (
	"go/ast"
	"go/types"
	"iter"
	"slices"
	"strings"

	"github.com/asyncgen/asyncgen/analysis/internal/syntax"
	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"golang.org/x/tools/go/ast/inspector"
)

// What rules ask about functions and calls that are in no loop.

// Preorder yields the nodes of the given types in the functions of the package, in the order of the source.
func (pkg *Package) Preorder(nodes ...ast.Node) iter.Seq[inspector.Cursor] {
	return func(yield func(inspector.Cursor) bool) {
		for _, f := range pkg.Funcs {
			if f.Parent != nil {
				continue // it is part of another
			}
			for c := range f.Cur.Preorder(nodes...) {
				if !yield(c) {
					return
				}
			}
		}
	}
}

// In yields f and the functions that it is written in, inner ones first.
func (f *Func) In() iter.Seq[*Func] {
	return func(yield func(*Func) bool) {
		for ; f != nil && yield(f); f = f.Parent {
		}
	}
}

// PassedTo returns the call that f, a literal, is an argument of, or nil.
func (f *Func) PassedTo() *Call {
	if f.ArgOf == nil || f.ArgNo < 0 {
		return nil
	}
	return f.Package.Calls[f.ArgOf]
}

// Value returns the cursor of the call with the parentheses around it. Its parent is what uses the value.
func (c *Call) Value() inspector.Cursor {
	cur := c.Cur
	for syntax.IsParen(cur.Parent().Node()) {
		cur = cur.Parent()
	}
	return cur
}

// ResultsOf returns the types of c's results. There are none if c's function is unknown.
func (pkg *Package) ResultsOf(c *Call) *types.Tuple {
	if sig, ok := pkg.Info.TypeOf(c.Expr.Fun).Underlying().(*types.Signature); ok {
		return sig.Results()
	}
	return types.NewTuple()
}

// Waits reports whether the call may wait for the device, for whatever reason.
func (c *Call) Waits() bool { return c.API.Waits() || c.Summary().Blocks }

// SpeaksOfEnqueueing reports whether words beside a clock say that the time of enqueueing is meant: "dispatch time",
// "submitted in".
func SpeaksOfEnqueueing(words string) bool {
	words = strings.ToLower(words)
	return slices.ContainsFunc([]string{"queue", "dispatch", "launch", "submit", "issue"}, func(w string) bool { return strings.Contains(words, w) })
}

// IsBenchmark reports whether f has a parameter of type *testing.B.
func (f *Func) IsBenchmark() bool { return f.Benchmark() != nil }

// Benchmark returns the parameter of f that is a *testing.B, or nil.
func (f *Func) Benchmark() *types.Var {
	for v := range f.Sig.Params().Variables() {
		if syntax.IsTesting(v.Type(), "B") {
			return v
		}
	}
	return nil
}

// IsTest reports whether f, or a function around it, has a parameter by which a test fails. It is part of a test, in
// whatever file it is.
func (f *Func) IsTest() bool {
	for g := range f.In() {
		for v := range g.Sig.Params().Variables() {
			if syntax.IsTesting(v.Type(), "TB", "T", "B", "F") {
				return true
			}
		}
	}
	return false
}

// MadeBy lists the calls of a library that may have made the tensor which e stands for. It returns nil if the tensor
// may come from anywhere else, such as a parameter or a field.
func (pkg *Package) MadeBy(e ast.Expr) []*ast.CallExpr {
	calls, ok := madeBy(pkg, e, make(map[*types.Var]bool))
	if !ok {
		return nil
	}
	return calls
}

// alwaysMakes reports whether each call of f returns a tensor that f has made.
func alwaysMakes(pkg *Package, f *Func, seen map[*types.Var]bool) bool {
	if f == nil || f.Cyclic || f.Sig.Results().Len() != 1 || len(f.Returns) == 0 {
		return false
	}
	return !slices.ContainsFunc(f.Returns, func(ret *ast.ReturnStmt) bool {
		if len(ret.Results) != 1 || syntax.IsNil(pkg.Info, ret.Results[0]) {
			return true
		}
		_, ok := madeBy(pkg, ret.Results[0], seen)
		return !ok
	})
}

// madeBy is MadeBy, and ok is false where MadeBy returns nil. The variables in seen are being asked about already.
func madeBy(pkg *Package, e ast.Expr, seen map[*types.Var]bool) (calls []*ast.CallExpr, ok bool) {
	switch e := ast.Unparen(e).(type) {
	case *ast.CallExpr:
		if c := pkg.Calls[e]; c != nil {
			switch c.API.Kind {
			case tensorapi.Op, tensorapi.Draw, tensorapi.Host:
				return []*ast.CallExpr{e}, true
			case tensorapi.Unknown:
				if alwaysMakes(pkg, c.Target, seen) {
					return []*ast.CallExpr{e}, true
				}
			}
		}
	case *ast.Ident:
		v, isVar := pkg.Info.ObjectOf(e).(*types.Var)
		if !isVar || v.IsField() || v.Parent() == pkg.Pass.Pkg.Scope() || len(pkg.Defs[v]) == 0 {
			return nil, false
		}
		if _, isParam := pkg.Params[v]; isParam {
			return nil, false
		}
		if seen[v] {
			return nil, true
		}
		seen[v] = true
		for _, d := range pkg.Defs[v] {
			if d.Kind != DefValue {
				return nil, false
			}
			more, ok := madeBy(pkg, d.Value, seen)
			if !ok {
				return nil, false
			}
			calls = append(calls, more...)
		}
		return calls, true
	}
	return nil, false
}

// IsFunc reports whether the callee is a library's function with the given name, which has no import path: "Try",
// "Tensor.Item".
func (c *Call) IsFunc(name string) bool {
	return c.API.Kind != tensorapi.Unknown && strings.HasSuffix(strings.ReplaceAll(c.API.Name, ")", ""), "."+name)
}
