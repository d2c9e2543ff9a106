package numbers

import (
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"slices"

	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"github.com/asyncgen/asyncgen/gen/internal/load"
	"github.com/asyncgen/asyncgen/gen/internal/plan"
	"github.com/asyncgen/asyncgen/gen/internal/syntax"
)

func isFloat64(t types.Type) bool { return types.Identical(t, types.Typ[types.Float64]) }

// isBool reports whether t is the type of truths. A number that may not have been computed yet stands for one: 0 if it
// is false.
func isBool(t types.Type) bool {
	return t != nil && (types.Identical(t, types.Typ[types.Bool]) || types.Identical(t, types.Typ[types.UntypedBool]))
}

// isScalar reports whether variables of type t can become numbers.
func isScalar(t types.Type) bool { return isFloat64(t) || isIndex(t) || isBool(t) }

func isName(e ast.Expr) bool { _, ok := ast.Unparen(e).(*ast.Ident); return ok }

func identOf(e ast.Expr) *ast.Ident {
	id, _ := e.(*ast.Ident)
	return id
}

func callOf(e ast.Expr) *ast.CallExpr {
	call, _ := e.(*ast.CallExpr)
	return call
}

// item returns the operand of a call of Item, or ItemInt, of a tensor.
func item(f *plan.Function, e ast.Expr) (*ast.CallExpr, *ast.SelectorExpr, bool) {
	call, ok := ast.Unparen(e).(*ast.CallExpr)
	if !ok {
		return nil, nil, false
	}
	sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr)
	if !ok || f.Info.Selections[sel] == nil || !f.Analysis.API.IsTensor(f.Info.TypeOf(sel.X)) {
		return nil, nil, false
	}
	_, api, ok := f.Library(call)
	return call, sel, ok && api.Kind == tensorapi.Read && (api.F64 != "" || api.Index != "") && f.Info.Types[sel.X].IsValue()
}

// itemsIn returns the reads in e that have no name.
func itemsIn(f *plan.Function, e ast.Node) (reads []*ast.CallExpr) {
	ast.Inspect(e, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			if _, _, ok := item(f, call); ok {
				reads = append(reads, call)
				return false
			}
		}
		return true
	})
	return reads
}

// read returns the read that e is, or is a conversion of that needs none, and the type of the number in its place.
func read(f *plan.Function, e ast.Expr) (call *ast.CallExpr, sel *ast.SelectorExpr, t types.Type, ok bool) {
	if call, sel, ok = position(f, e); ok {
		return call, sel, types.Typ[types.Int64], true
	}
	call, sel, ok = item(f, e)
	return call, sel, f.Info.TypeOf(e), ok
}

// typeOf returns the type of the number in the place of a read.
func typeOf(f *plan.Function, read *ast.CallExpr) types.Type {
	outer := f.Parent(read)
	for {
		p, ok := outer.(*ast.ParenExpr)
		if !ok {
			break
		}
		outer = f.Parent(p)
	}
	if conv, ok := outer.(*ast.CallExpr); ok {
		if _, _, ok := position(f, conv); ok {
			return types.Typ[types.Int64]
		}
	}
	return f.Info.TypeOf(read)
}

// itemForm is the name of the method that returns what read does as a number in the place of t.
func itemForm(f *plan.Function, read *ast.CallExpr, t types.Type) string {
	if !isFloat64(t) {
		return "I64"
	}
	_, api, _ := f.Library(read)
	return api.F64
}

// rounded returns x if e is float64(float32(x)).
func rounded(f *plan.Function, e *ast.CallExpr) (x ast.Expr, ok bool) {
	if !f.Info.Types[e.Fun].IsType() || len(e.Args) != 1 || !isFloat64(f.Info.TypeOf(e)) {
		return nil, false
	}
	inner, ok := ast.Unparen(e.Args[0]).(*ast.CallExpr)
	if !ok || !f.Info.Types[inner.Fun].IsType() || !types.Identical(f.Info.TypeOf(inner), types.Typ[types.Float32]) || !isFloat64(f.Info.TypeOf(inner.Args[0])) {
		return nil, false
	}
	return inner.Args[0], true
}

// function returns the method of a number that call is, and how many arguments call has.
func function(f *plan.Function, call *ast.CallExpr) (method string, arity int, ok bool) {
	name := ""
	switch fun := ast.Unparen(call.Fun).(type) {
	case *ast.Ident:
		if b, ok := f.Info.Uses[fun].(*types.Builtin); ok {
			name, arity = b.Name(), max(2, len(call.Args)) // min and max, which take what they have one by one
			break
		}
		if fn, ok := f.Info.Uses[fun].(*types.Func); ok { // imported with a dot
			name, arity = fn.FullName(), fn.Signature().Params().Len()
		}
	case *ast.SelectorExpr:
		if fn, ok := f.Info.Uses[fun.Sel].(*types.Func); ok && f.Info.Selections[fun] == nil {
			name, arity = fn.FullName(), fn.Signature().Params().Len()
		}
	}
	method, ok = tensorapi.NumberFunc(name)
	for _, arg := range call.Args {
		tv := f.Info.Types[arg]
		ok = ok && (isFloat64(tv.Type) || tv.Value != nil)
	}
	return method, arity, ok && arity > 0
}

// asks returns the operand of math.IsNaN or math.IsInf, a variable or a read, and what numbers have
// instead; or that e is neither.
func asks(f *plan.Function, e *ast.CallExpr) (arg ast.Expr, form func(arg, pkg string) string, ok bool) {
	sel, ok := ast.Unparen(e.Fun).(*ast.SelectorExpr)
	if !ok || len(e.Args) == 0 {
		return nil, nil, false
	}
	arg = ast.Unparen(e.Args[0])
	if _, isID := arg.(*ast.Ident); !isID {
		if _, _, isItem := item(f, arg); !isItem {
			return nil, nil, false
		}
	}
	fn, ok := f.Info.Uses[sel.Sel].(*types.Func)
	if !ok {
		return nil, nil, false
	}
	switch fn.FullName() {
	case "math.IsNaN":
		return arg, func(arg, _ string) string { return arg + ".Ne(" + arg + ")" }, true
	case "math.IsInf":
		sign, abs := "1", ""
		switch v := f.Info.Types[e.Args[1]].Value; {
		case v == nil:
			return nil, nil, false
		case constant.Sign(v) == 0:
			abs = ".Abs()"
		case constant.Sign(v) < 0:
			sign = "-1"
		}
		return arg, func(arg, pkg string) string {
			return arg + abs + ".Eq(" + load.RestatedRuntime + ".Const(" + pkg + ".Inf(" + sign + ")))"
		}, true
	}
	return nil, nil, false
}

// assignedIn returns the variables that s sets or declares by name, each once.
func assignedIn(f *plan.Function, s ast.Stmt) (vars []*types.Var) {
	add := func(e ast.Expr) {
		if id, ok := ast.Unparen(e).(*ast.Ident); ok {
			if v, ok := f.Info.ObjectOf(id).(*types.Var); ok && !slices.Contains(vars, v) {
				vars = append(vars, v)
			}
		}
	}
	ast.Inspect(s, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for _, lhs := range n.Lhs {
				add(lhs)
			}
		case *ast.IncDecStmt:
			add(n.X)
		case *ast.RangeStmt:
			if n.Tok != token.ILLEGAL {
				add(n.Key)
				if n.Value != nil {
					add(n.Value)
				}
			}
		case *ast.ValueSpec:
			for _, name := range n.Names {
				add(name)
			}
		}
		return true
	})
	return vars
}

func anywhere(plan.Loc) bool { return true }

// leaf returns why e, which no value goes into, can't be computed in its place.
func leaf(f *plan.Function, e ast.Expr) *misfit {
	effects := f.Effects(e)
	for _, c := range []*plan.Cause{effects.Barrier, effects.Waits, effects.Enqueues, effects.HandsOut, effects.Ends, effects.Writes.First(anywhere)} {
		if c != nil {
			return &misfit{plan.NoNumber, c.Pos, c.Text + " in the middle of it", "do that before, into a variable"}
		}
	}
	return nil
}

// inList reports whether s is one of a list of statements.
func inList(f *plan.Function, s ast.Stmt) bool { return slices.Contains(syntax.List(f.Parent(s)), s) }

// callsBefore reports whether s makes a call before it gets to read, other than those in reads and stems.
func callsBefore(f *plan.Function, read *ast.CallExpr, s ast.Stmt, reads []*ast.CallExpr, stems []ast.Expr) (found bool) {
	ast.Inspect(s, func(n ast.Node) bool {
		if e, ok := n.(ast.Expr); ok && slices.Contains(stems, e) {
			return false
		}
		call, ok := n.(*ast.CallExpr)
		if !ok || found {
			return !found
		}
		if slices.Contains(reads, call) {
			return false
		}
		if call.End() <= read.Pos() && !f.Info.Types[call.Fun].IsType() && !isTotal(f, call) {
			found = true
		}
		return !found
	})
	return found
}

// isTotal reports whether a call is of a builtin function that neither fails nor changes what is read later.
func isTotal(f *plan.Function, call *ast.CallExpr) bool {
	return slices.ContainsFunc([]string{"append", "cap", "len", "max", "min"}, func(name string) bool { return isBuiltin(f, call, name) })
}
