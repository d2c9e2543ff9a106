package blocking

import (
	"go/ast"
	"go/token"
	"go/types"
	"iter"
	"slices"
	"strings"

	"github.com/asyncgen/asyncgen/analysis/internal/syntax"
	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"golang.org/x/tools/go/ast/inspector"
)

// What rules ask about functions and calls outside of loops: what kind of function it is (a test, a
// benchmark), whether it certainly makes a tensor of its own, and which of its parameters it compares.

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

// IsTried reports whether f is called by asyncrt.Try, or in a function that is. Then it counts whether it fails.
func (f *Func) IsTried() bool {
	for g := range f.In() {
		if c := g.PassedTo(); c != nil && c.IsFunc("Try") {
			return true
		}
	}
	return false
}

// Value returns the cursor of the call with the parentheses around it. The parent of this cursor is the
// syntax that uses the value.
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
// "submitted in". It is not where they speak of the work as well: "enqueued and computed in".
func SpeaksOfEnqueueing(words string) bool {
	words = strings.ToLower(words)
	for _, done := range []string{"train", "comput", "finish", "done", "ran", "run", "execut"} {
		if strings.Contains(words, "and "+done) {
			return false
		}
	}
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

// IsTest reports whether f, or a function around it, has a parameter by which a test fails, such as a
// *testing.T. Then it is part of a test, whatever the name of its file.
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

// MadeBy lists the calls that may have made the tensor in e. Each is an operation, or a function that
// always makes a tensor. It returns nil if the tensor may come from elsewhere, such as a parameter or a
// field. Otherwise nobody else has the tensor, unless it was passed on since.
func (pkg *Package) MadeBy(e ast.Expr) []*ast.CallExpr {
	calls, ok := madeBy(pkg, e, 0, make(map[*types.Var]bool))
	if !ok {
		return nil
	}
	return calls
}

// alwaysMakes reports whether result number i of each call of f is a tensor that this call has made.
// Functions that call themselves are left out, for each would rely on the other.
func alwaysMakes(pkg *Package, f *Func, i int, seen map[*types.Var]bool) bool {
	if f == nil || f.Cyclic || i >= f.Sig.Results().Len() || len(f.Returns) == 0 {
		return false
	}
	return !slices.ContainsFunc(f.Returns, func(ret *ast.ReturnStmt) bool {
		if len(ret.Results) != f.Sig.Results().Len() || syntax.IsNil(pkg.Info, ret.Results[i]) {
			return true
		}
		_, ok := madeBy(pkg, ret.Results[i], 0, seen)
		return !ok
	})
}

// handedMakes reports whether c calls a function that c's own function is given, and all that the
// package gives it make tensors. The function must not be exported, or used as a value: then all of its
// calls are known.
//
//	func settle(x *tensor.Tensor, f func(*tensor.Tensor) *tensor.Tensor) { … f(x) … }
//	settle(x, (*tensor.Tensor).Cos)
func handedMakes(pkg *Package, c *Call, seen map[*types.Var]bool) bool {
	f := c.In.Owner()
	decl, ok := f.Cur.Node().(*ast.FuncDecl)
	op, isParam := pkg.FuncParam(f, c.Expr.Fun)
	if !ok || !isParam || ast.IsExported(f.Name) || op < 0 {
		return false
	}
	// Each use of the name of f must be a call, for all arguments to be known.
	callers := pkg.callers()[f]
	uses := 0
	for cur := range pkg.Root.Preorder((*ast.Ident)(nil)) {
		if pkg.Info.Uses[cur.Node().(*ast.Ident)] == pkg.Info.Defs[decl.Name] {
			uses++
		}
	}
	return uses > 0 && uses == len(callers) && !slices.ContainsFunc(callers, func(d *Call) bool {
		return op >= len(d.Expr.Args) || !isMaker(pkg, d.Expr.Args[op], seen)
	})
}

// isMaker reports whether each call of the function e returns a tensor that this call has made.
func isMaker(pkg *Package, e ast.Expr, seen map[*types.Var]bool) bool {
	v := pkg.FuncValue(e, 0)
	if !v.IsKnown() {
		v = methodValue(pkg, e)
	}
	return v.Fn != nil && v.Fn.Sig.Results().Len() == 1 && alwaysMakes(pkg, v.Fn, 0, seen) || v.Fn == nil && v.Summary().Makes
}

// madeBy is MadeBy for result number i of e, if that is a call; ok is false where MadeBy returns nil.
// Variables in seen are being asked about, and add nothing: v = v.Exp() alone doesn't say where v comes
// from, but the first assignment does.
func madeBy(pkg *Package, e ast.Expr, i int, seen map[*types.Var]bool) (calls []*ast.CallExpr, ok bool) {
	switch e := ast.Unparen(e).(type) {
	case *ast.CallExpr:
		if c := pkg.Calls[e]; c != nil {
			switch c.API.Kind {
			case tensorapi.Op, tensorapi.Draw, tensorapi.Host:
				return []*ast.CallExpr{e}, true
			case tensorapi.View, tensorapi.Value:
				if c.Lib == tensorapi.Ours() && IsTensor(pkg.Info.TypeOf(e)) {
					// A view has a handle of its own, and a cell gives out a new one each time.
					return []*ast.CallExpr{e}, true
				}
			case tensorapi.Unknown:
				if alwaysMakes(pkg, c.Target, i, seen) || c.Target == nil && c.Summary().Makes || handedMakes(pkg, c, seen) {
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
			more, ok := madeBy(pkg, d.Value, d.Index, seen)
			if !ok {
				return nil, false
			}
			calls = append(calls, more...)
		}
		return calls, true
	}
	return nil, false
}

// makesTensor reports whether f has one result, a tensor that each call has made: Summary.Makes.
func makesTensor(pkg *Package, f *Func) bool {
	return f.Sig.Results().Len() == 1 && IsTensor(f.Sig.Results().At(0).Type()) && alwaysMakes(pkg, f, 0, make(map[*types.Var]bool))
}

// compared returns the operands of f that f compares with each other by == or !=, themselves or their
// elements. Only types that callers choose count. If a caller chooses tensors, handles are compared and
// not values:
//
//	func same[T comparable](x, y T) bool { return x == y }
func compared(pkg *Package, f *Func) Operands {
	var all Operands
	for v := range f.Sig.Params().Variables() {
		if !isOpen(v.Type()) && !isAny(v.Type()) {
			continue
		}
		for cur := range f.Cur.Preorder((*ast.BinaryExpr)(nil)) {
			n := cur.Node().(*ast.BinaryExpr)
			if n.Op != token.EQL && n.Op != token.NEQ || pkg.FuncAt(cur) != f {
				continue
			}
			if x, y := paramOf(pkg, f, n.X, 0), paramOf(pkg, f, n.Y, 0); x != y && x >= 0 && y >= 0 {
				all |= operands(x) | operands(y)
			}
		}
		break
	}
	return all
}

// paramOf returns the number of the parameter of f that e is, or is an element of; or -1. The depth
// bounds the range clauses that it looks through.
func paramOf(pkg *Package, f *Func, e ast.Expr, depth int) int {
	if x, ok := ast.Unparen(e).(*ast.IndexExpr); ok {
		return paramOf(pkg, f, x.X, depth)
	}
	v := pkg.Local(e)
	if v == nil || depth > 2 {
		return -1
	}
	d := pkg.Defs[v]
	if p, ok := pkg.Params[v]; ok && p.Of == f && len(d) == 0 {
		return p.Operand
	}
	if len(d) == 1 && d[0].Kind == DefElem {
		return paramOf(pkg, f, d[0].Value, depth+1)
	}
	return -1
}

// IsFunc reports whether the callee is the library function with the given name, written without import
// path: "Try", "Tensor.Item".
func (c *Call) IsFunc(name string) bool {
	return c.API.Kind != tensorapi.Unknown && strings.HasSuffix(strings.ReplaceAll(c.API.Name, ")", ""), "."+name)
}
