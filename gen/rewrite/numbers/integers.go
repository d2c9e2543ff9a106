package numbers

import (
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"

	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"github.com/asyncgen/asyncgen/gen/internal/plan"
	"github.com/asyncgen/asyncgen/gen/internal/syntax"
)

// Of round trips, the part about indices: the device finds which row, slice or
// embedding comes next, and selects it itself. Where the host would
// panic about an index, the call is made once more, later and for that alone; what the
// device has selected meanwhile fails.
//
//	token := scores.ArgMax().ItemInt()    token := scores.ArgMax().I64()
//	fmt.Print(alphabet[token])            tokenAt := later.ReadI64(token)
//	x = embedding.Row(int(token))         later.Do(func() {
//	                                      	fmt.Print(alphabet[tokenAt.ItemInt()])
//	                                      	embedding.Row(int(tokenAt.ItemInt()))
//	                                      })
//	                                      x = embedding.RowI64(token)

// intTensor is the method that makes a tensor of an index.
const intTensor = "Tensor"

// isIndex reports whether t is a type that an index that may not have been computed yet takes the place of.
func isIndex(t types.Type) bool {
	return t != nil && (types.Identical(t, types.Typ[types.Int64]) || types.Identical(t, types.Typ[types.Int]))
}

// indexed returns the form with an index of call: of Row or Slice, or of From with one index.
func indexed(f *plan.Function, call *ast.CallExpr) (s sink, ok bool) {
	fn, api, ok := f.Library(call)
	if !ok {
		return sink{}, false
	}
	if fn.Name() == "From" && fn.Signature().Recv() == nil && !call.Ellipsis.IsValid() && len(call.Args) > 0 {
		lit, ok := ast.Unparen(call.Args[0]).(*ast.CompositeLit)
		if !ok {
			return listed(f, call)
		}
		if len(lit.Elts) != 1 {
			return sink{}, false
		}
		t, ok := f.Info.TypeOf(lit).Underlying().(*types.Slice)
		if _, isKeyed := lit.Elts[0].(*ast.KeyValueExpr); !ok || isKeyed || !types.Identical(t.Elem(), types.Typ[types.Int64]) {
			return sink{}, false
		}
		return sink{form: intTensor, arg: lit.Elts[0], index: true, made: true}, true
	}
	sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr)
	if !ok || f.Info.Selections[sel] == nil || api.Index == "" || api.Kind != tensorapi.View {
		return sink{}, false
	}
	s = sink{name: sel.Sel, form: api.Index, index: true}
	switch len(call.Args) {
	case 1:
		s.arg = call.Args[0]
	case 3:
		s.arg, s.to = call.Args[1], call.Args[2]
	}
	return s, s.arg != nil
}

// selects returns why call, of which s is the form, can't be made later once more to see whether it panics, or nil.
func (r *finder) selects(call *ast.CallExpr, s *sink) *misfit {
	text := types.ExprString(call)
	if s.to != nil {
		n, ok := distance(r.f, s.arg, s.to)
		if !ok || !r.isNatural(s.arg, make(map[*types.Var]bool)) {
			return &misfit{plan.NoNumber, s.to.Pos(), "takes a slice, " + text + ", of which the length or the end depends on the value", "slice from the index on a number of elements that is known"}
		}
		s.count = n
	}
	misplaced := &misfit{plan.NoNumber, call.Pos(), "calls " + text + ", which may panic, in the middle of a statement", "give what it selects a name before: x := " + text}
	if s.stmt == nil || !inList(r.f, s.stmt) || !r.f.AlwaysFirst(call, s.stmt) {
		return misplaced
	}
	if s.made {
		return nil
	}
	stems := receiversBefore(r.f, call, s.stmt)
	if callsBefore(r.f, call, s.stmt, nil, stems) {
		return misplaced
	}
	if of := ast.Unparen(call.Fun).(*ast.SelectorExpr).X; !isPath(r.f, of) {
		stems = append(stems, of)
	}
	s.stems = stems
	return nil
}

// fitsIndex is fits for e of type int64 or int.
func (r *finder) fitsIndex(e ast.Expr, needs map[*types.Var]bool) *misfit {
	if x, ok := conversion(r.f, e); ok {
		return r.fits(x, needs)
	}
	if _, _, ok := position(r.f, e); ok {
		return nil
	}
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		if v, ok := r.f.Info.Uses[e].(*types.Var); ok {
			needs[v] = true
			return nil
		}
	case *ast.IndexExpr:
		if v, index := element(r.f, e); v != nil && !r.isValued(index) {
			needs[v] = true
			return leaf(r.f, index)
		}
	case *ast.BinaryExpr:
		if _, ok := tensorapi.IntegerOperator(e.Op.String()); ok {
			if why := r.fits(e.X, needs); why != nil {
				return why
			}
			return r.fits(e.Y, needs)
		}
	}
	return &misfit{plan.NoNumber, e.Pos(), "computes " + types.ExprString(e) + ", which indices have no form of", "compute it with + - *"}
}

// receiversBefore returns the receivers, in s, of the methods that take what call gives, in the
// order in which they are evaluated.
func receiversBefore(f *plan.Function, call *ast.CallExpr, s ast.Stmt) (receivers []ast.Expr) {
	for n := ast.Node(call); n != nil && n != s; n = f.Parent(n) {
		outer, ok := f.Parent(n).(*ast.CallExpr)
		if !ok || outer.Fun == n {
			continue
		}
		sel, ok := ast.Unparen(outer.Fun).(*ast.SelectorExpr)
		if ok && f.Info.Selections[sel] != nil && f.Analysis.API.IsTensor(f.Info.TypeOf(sel.X)) && syntax.HasCall(sel.X) {
			receivers = append([]ast.Expr{sel.X}, receivers...)
		}
	}
	return receivers
}

// isPath reports whether e is a variable, or a field of one.
func isPath(f *plan.Function, e ast.Expr) bool {
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		_, ok := f.Info.Uses[e].(*types.Var)
		return ok
	case *ast.SelectorExpr:
		sel := f.Info.Selections[e]
		return sel != nil && sel.Kind() == types.FieldVal && isPath(f, e.X)
	}
	return false
}

// distance returns n if to is from + n, a constant.
func distance(f *plan.Function, from, to ast.Expr) (n int64, ok bool) {
	x, a := sum(f, from)
	y, b := sum(f, to)
	return b - a, types.ExprString(x) == types.ExprString(y) && b >= a
}

// sum divides e, an index, into x + n, a constant that may be 0, without conversions.
func sum(f *plan.Function, e ast.Expr) (x ast.Expr, n int64) {
	if inner, ok := conversion(f, e); ok {
		return sum(f, inner)
	}
	if b, ok := ast.Unparen(e).(*ast.BinaryExpr); ok && b.Op == token.ADD {
		if c, ok := constantOf(f.Info, b.Y); ok {
			x, n = sum(f, b.X)
			return x, n + c
		}
	}
	return ast.Unparen(e), 0
}

// conversion returns x if e is int(x) or int64(x) of an index.
func conversion(f *plan.Function, e ast.Expr) (x ast.Expr, ok bool) {
	call, ok := ast.Unparen(e).(*ast.CallExpr)
	if !ok || !f.Info.Types[call.Fun].IsType() || len(call.Args) != 1 || !isIndex(f.Info.TypeOf(call)) || !isIndex(f.Info.TypeOf(call.Args[0])) {
		return nil, false
	}
	return call.Args[0], true
}

func constantOf(info *types.Info, e ast.Expr) (n int64, ok bool) {
	v := info.Types[e].Value
	if v == nil {
		return 0, false
	}
	n, ok = constant.Int64Val(constant.ToInt(v))
	return n, ok && n >= 0 && n < 1<<20
}

// isNatural reports whether e, an index, can't be negative: it is made of positions that ArgMax and ArgMin find.
func (r *locals) isNatural(e ast.Expr, seen map[*types.Var]bool) bool {
	if n, ok := constantOf(r.f.Info, e); ok {
		return n >= 0
	}
	if x, ok := conversion(r.f, e); ok {
		return r.isNatural(x, seen)
	}
	if _, sel, _, ok := read(r.f, e); ok {
		return isPosition(r.f, sel.X)
	}
	switch e := ast.Unparen(e).(type) {
	case *ast.BinaryExpr:
		_, small := constantOf(r.f.Info, e.Y)
		return e.Op == token.ADD && small && r.isNatural(e.X, seen)
	case *ast.Ident:
		v, ok := r.f.Info.Uses[e].(*types.Var)
		if !ok || seen[v] {
			return ok && seen[v]
		}
		seen[v] = true
		for _, d := range r.defs[v] {
			if d.op != token.ILLEGAL || !d.plain || d.value != nil && (r.f.Mentions(d.value, map[types.Object]bool{v: true}) || !r.isNatural(d.value, seen)) {
				return false
			}
		}
		return len(r.defs[v]) > 0
	}
	return false
}

// position returns the read in e if that is a conversion of x.ArgMax().Item() to an integer, which is exact.
func position(f *plan.Function, e ast.Expr) (call *ast.CallExpr, sel *ast.SelectorExpr, ok bool) {
	conv, ok := ast.Unparen(e).(*ast.CallExpr)
	if !ok || !f.Info.Types[conv.Fun].IsType() || len(conv.Args) != 1 || !isIndex(f.Info.TypeOf(conv)) || !isFloat64(f.Info.TypeOf(conv.Args[0])) {
		return nil, nil, false
	}
	call, sel, ok = item(f, conv.Args[0])
	if !ok || !isPosition(f, sel.X) {
		return nil, nil, false
	}
	return call, sel, len(ast.Unparen(sel.X).(*ast.CallExpr).Args) == 0
}

// isPosition reports whether e is what ArgMax or ArgMin return.
func isPosition(f *plan.Function, e ast.Expr) bool {
	call, ok := ast.Unparen(e).(*ast.CallExpr)
	if !ok {
		return false
	}
	fn, _, ok := f.Library(call)
	return ok && (fn.Name() == "ArgMax" || fn.Name() == "ArgMin")
}
