package blocking

import (
	"go/ast"
	"go/token"
	"go/types"
	"iter"
	"slices"
	"strings"

	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"golang.org/x/tools/go/ast/inspector"
)

// What rules ask about functions and calls that are in no loop.

// Preorder yields the nodes of the given types in the functions of the package,
// in the order of the source. It yields none of a package that can't reach a
// tensor.
func (r *Result) Preorder(nodes ...ast.Node) iter.Seq[inspector.Cursor] {
	return func(yield func(inspector.Cursor) bool) {
		for _, f := range r.Funcs {
			if f.parent != nil {
				continue // it is part of another
			}
			for c := range f.cur.Preorder(nodes...) {
				if !yield(c) {
					return
				}
			}
		}
	}
}

// FuncAt returns the innermost function around cur, nil at package level.
func (r *Result) FuncAt(cur inspector.Cursor) *Func {
	if len(r.Funcs) == 0 {
		return nil
	}
	return r.Funcs[0].a.funcAt(cur)
}

// IsTensor reports whether t is a tensor or a pointer to one.
func IsTensor(t types.Type) bool { return t != nil && isTensor(t) }

// Calls lists the calls in f, not those in the literals in it, in the order of
// the source.
func (f *Func) Calls() []*Call { return f.calls }

// In yields f and the functions that it is written in, inner ones first.
func (f *Func) In() iter.Seq[*Func] {
	return func(yield func(*Func) bool) {
		for ; f != nil && yield(f); f = f.parent {
		}
	}
}

// Signature is that of f.
func (f *Func) Signature() *types.Signature { return f.sig }

// PassedTo is the call that f, a literal, is an operand of, or nil.
func (f *Func) PassedTo() *Call {
	if f.arg == nil || f.argNo < 0 {
		return nil
	}
	return f.a.calls[f.arg]
}

// Contains reports whether f, or a literal in it, has a call with the given
// property.
func (f *Func) Contains(has func(*Call) bool) bool { return f.contains(has) }

// Cursor is that of the call.
func (c *Call) Cursor() inspector.Cursor { return c.cur }

// Value is the cursor of the call with the parentheses around it.
func (c *Call) Value() inspector.Cursor {
	cur := c.cur
	for isParen(cur.Parent().Node()) {
		cur = cur.Parent()
	}
	return cur
}

// Func is the innermost function around the call.
func (c *Call) Func() *Func { return c.in }

// API is what a profile says about the callee; its Kind is Unknown for the
// functions of users.
func (c *Call) API() tensorapi.Func { return c.api }

// Operand returns the expressions passed for an operand of the callee:
// [tensorapi.Recv] is the receiver, 0 the first parameter.
func (c *Call) Operand(i int) []ast.Expr { return c.operand(i) }

// IsAway reports whether go or defer stands before the call.
func (c *Call) IsAway() bool { return c.away }

// ReadsClock reports whether the call reads a clock, starts or stops what does, or
// is of a function of the package that does: a stopwatch, a profiler, a timer of a
// benchmark. The types tell it of stopwatches in packages without tensors, of whose
// functions nothing is known.
func (c *Call) ReadsClock() bool {
	if tellsTime(c) || c.maker != nil && c.maker.ReadsClock() || c.sum().Clocks != 0 || c.sum().Timer {
		return true
	}
	for v := range c.in.a.resultsOf(c).Variables() {
		if isTimeLike(v.Type(), 0) {
			return true
		}
	}
	if c.Callee == nil || c.Callee.Pkg() == nil {
		return false
	}
	switch c.Callee.Pkg().Path() {
	case "runtime/pprof", "runtime/trace", "testing":
		return true
	}
	recv := c.Callee.Signature().Recv()
	return recv != nil && !c.in.a.holdsTensor(recv.Type()) && isTimeLike(recv.Type(), 0)
}

// resultsOf is what c returns.
func (a *analyzer) resultsOf(c *Call) *types.Tuple {
	if sig, ok := a.info.TypeOf(c.Expr.Fun).Underlying().(*types.Signature); ok {
		return sig.Results()
	}
	return types.NewTuple()
}

// isTimeLike reports whether t is a time or a duration, or has a field that is one.
func isTimeLike(t types.Type, depth int) bool {
	if p, ok := types.Unalias(t).(*types.Pointer); ok {
		t = p.Elem()
	}
	if n, ok := types.Unalias(t).(*types.Named); ok && n.Obj().Pkg() != nil && n.Obj().Pkg().Path() == "time" {
		return true
	}
	s, ok := t.Underlying().(*types.Struct)
	if !ok || depth > 1 {
		return false
	}
	for f := range s.Fields() {
		ft := f.Type()
		switch u := types.Unalias(ft).Underlying().(type) {
		case *types.Slice:
			ft = u.Elem()
		case *types.Map:
			ft = u.Elem()
		}
		if isTimeLike(ft, depth+1) {
			return true
		}
	}
	return false
}

// Waits reports whether the call may wait for the device, for whatever.
func (c *Call) Waits() bool { return c.api.Waits() || c.sum().Blocks }

// IsFunc reports whether the callee is the function of a library with the
// given name, which has no import path: "Try", "Tensor.Item".
func (c *Call) IsFunc(name string) bool {
	return c.api.Kind != tensorapi.Unknown && strings.HasSuffix(strings.ReplaceAll(c.api.Name, ")", ""), "."+name)
}

// SpeaksOfEnqueueing reports whether names or texts beside a clock say that the
// time of enqueueing is meant, not that of the work.
func SpeaksOfEnqueueing(words string) bool {
	words = strings.ToLower(words)
	return slices.ContainsFunc([]string{"queue", "dispatch", "launch", "submit", "issue"}, func(w string) bool { return strings.Contains(words, w) })
}

// IsBenchmark reports whether f has a parameter of type *testing.B.
func (f *Func) IsBenchmark() bool { return f.Benchmark() != nil }

// Benchmark is the parameter of f that is a *testing.B, or nil.
func (f *Func) Benchmark() *types.Var {
	for v := range f.sig.Params().Variables() {
		if isTesting(v.Type(), "B") {
			return v
		}
	}
	return nil
}

// HoldsTensor reports whether e is a tensor or contains some, in elements, fields
// or what it points to.
func (r *Result) HoldsTensor(e ast.Expr) bool {
	if len(r.Funcs) == 0 {
		return false
	}
	a := r.Funcs[0].a
	tv := a.info.Types[e]
	return tv.Type != nil && !tv.IsNil() && a.holdsTensor(tv.Type)
}

// UsesOf lists the identifiers that refer to v, a local variable and no result:
// nobody else can look at what it holds.
func (r *Result) UsesOf(v *types.Var) (uses []inspector.Cursor, local bool) {
	scope := v.Parent()
	if len(r.Funcs) == 0 || v.IsField() || scope == nil || scope == r.Funcs[0].a.pass.Pkg.Scope() {
		return nil, false
	}
	cur, ok := r.Cursor(v.Pos())
	if !ok {
		return nil, false
	}
	f := r.FuncAt(cur)
	if f == nil {
		return nil, false
	}
	for i := range f.sig.Results().Len() {
		if f.sig.Results().At(i) == v {
			return nil, false
		}
	}
	return slices.Collect(f.a.usesOf(v, f)), true
}

// isTest reports whether f, or a function that it is written in, has a parameter
// by which a test fails: it is part of a test, wherever it is.
func (f *Func) isTest() bool {
	for g := range f.In() {
		for v := range g.sig.Params().Variables() {
			if isTesting(v.Type(), "TB", "T", "B", "F") {
				return true
			}
		}
	}
	return false
}

// isTesting reports whether t is one of the types of package testing, or a pointer
// to one.
func isTesting(t types.Type, names ...string) bool {
	if t == nil {
		return false
	}
	if ptr, ok := types.Unalias(t).(*types.Pointer); ok {
		t = ptr.Elem()
	}
	named, ok := types.Unalias(t).(*types.Named)
	return ok && named.Obj().Pkg() != nil && named.Obj().Pkg().Path() == "testing" && slices.Contains(names, named.Obj().Name())
}

// IsCellValue reports whether e is what a cell holds, or a local variable that is
// only ever set to that.
func (r *Result) IsCellValue(e ast.Expr) bool {
	return len(r.Funcs) > 0 && r.Funcs[0].a.isCellValue(e, 0)
}

func (a *analyzer) isCellValue(e ast.Expr, depth int) bool {
	switch e := ast.Unparen(e).(type) {
	case *ast.CallExpr:
		c := a.calls[e]
		return c != nil && c.api.Kind == tensorapi.Value
	case *ast.Ident:
		v, ok := a.info.Uses[e].(*types.Var)
		if !ok || v.IsField() || len(a.defs[v]) == 0 || depth > 4 {
			return false
		}
		return !slices.ContainsFunc(a.defs[v], func(d def) bool { return d.kind != defValue || !a.isCellValue(d.value, depth+1) })
	}
	return false
}

// MadeInside reports whether param is a parameter that is never assigned and the
// calls, which make tensors, are in its function: what was passed is older than
// what they make.
func (r *Result) MadeInside(calls []*ast.CallExpr, param ast.Expr) bool {
	id, ok := ast.Unparen(param).(*ast.Ident)
	if !ok || len(calls) == 0 || len(r.Funcs) == 0 {
		return false
	}
	a := r.Funcs[0].a
	v, ok := a.info.Uses[id].(*types.Var)
	if !ok || len(a.defs[v]) > 0 {
		return false
	}
	p, ok := a.params[v]
	return ok && !slices.ContainsFunc(calls, func(call *ast.CallExpr) bool {
		for f := range a.calls[call].in.In() {
			if f == p.of {
				return false
			}
		}
		return true
	})
}

// MadeBy lists the calls of a library that may have made the tensor which e
// stands for. It returns nil if that tensor may come from anywhere else.
func (r *Result) MadeBy(e ast.Expr) []*ast.CallExpr {
	if len(r.Funcs) == 0 {
		return nil
	}
	calls, ok := r.Funcs[0].a.madeBy(e, make(map[*types.Var]bool))
	if !ok {
		return nil
	}
	return calls
}

// alwaysMakes reports whether each call of f returns a tensor of its own.
func (a *analyzer) alwaysMakes(f *Func, seen map[*types.Var]bool) bool {
	if f == nil || f.cyclic || f.sig.Results().Len() != 1 || len(f.rets) == 0 {
		return false
	}
	return !slices.ContainsFunc(f.rets, func(ret *ast.ReturnStmt) bool {
		if len(ret.Results) != 1 || isNil(a.info, ret.Results[0]) {
			return true
		}
		_, ok := a.madeBy(ret.Results[0], seen)
		return !ok
	})
}

// JustMade reports whether x is a variable that the statements before it, in the same
// list, have made a tensor for, and y is a variable that is not assigned since: what it
// holds is older.
func (r *Result) JustMade(x, y ast.Expr) bool {
	if len(r.Funcs) == 0 {
		return false
	}
	a := r.Funcs[0].a
	v, w := a.local(x), a.local(y)
	if v == nil || w == nil || len(a.defs[v]) != 1 || a.defs[v][0].kind != defValue {
		return false
	}
	made := a.defs[v][0]
	if _, ok := a.madeBy(made.value, make(map[*types.Var]bool)); !ok || isIdent(made.value) || made.in == nil {
		return false
	}
	cur, ok := r.Cursor(x.Pos())
	if !ok || a.funcAt(cur) != made.in {
		return false
	}
	fl := made.in.flow()
	if !fl.dominates(fl.blockAt(made.pos), fl.blockAt(x.Pos())) {
		return false
	}
	return !slices.ContainsFunc(a.defs[w], func(d def) bool {
		return d.in != made.in || d.kind != defValue || made.pos <= d.pos && d.pos < x.Pos() || !a.sameLoop(made.in, made.pos, x.Pos())
	})
}

// sameLoop reports whether two places of f are in the same loops.
func (a *analyzer) sameLoop(f *Func, x, y token.Pos) bool {
	fl := f.flow()
	return !slices.ContainsFunc(fl.loops, func(l *Loop) bool { return l.blocks[fl.blockAt(x)] != l.blocks[fl.blockAt(y)] })
}

func (a *analyzer) madeBy(e ast.Expr, seen map[*types.Var]bool) (calls []*ast.CallExpr, ok bool) {
	switch e := ast.Unparen(e).(type) {
	case *ast.CallExpr:
		if c := a.calls[e]; c != nil {
			switch c.api.Kind {
			case tensorapi.Op, tensorapi.Draw, tensorapi.Host:
				return []*ast.CallExpr{e}, true
			case tensorapi.Unknown:
				if a.alwaysMakes(c.target, seen) {
					return []*ast.CallExpr{e}, true
				}
			}
		}
	case *ast.Ident:
		v, isVar := a.info.ObjectOf(e).(*types.Var)
		if !isVar || v.IsField() || v.Parent() == a.pass.Pkg.Scope() || len(a.defs[v]) == 0 {
			return nil, false
		}
		if _, isParam := a.params[v]; isParam {
			return nil, false
		}
		if seen[v] {
			return nil, true
		}
		seen[v] = true
		for _, d := range a.defs[v] {
			if d.kind != defValue {
				return nil, false
			}
			more, ok := a.madeBy(d.value, seen)
			if !ok {
				return nil, false
			}
			calls = append(calls, more...)
		}
		return calls, true
	}
	return nil, false
}
