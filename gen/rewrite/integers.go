package rewrite

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"strconv"
	"strings"

	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"github.com/asyncgen/asyncgen/gen/internal/plan"
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
func (r *restater) indexed(call *ast.CallExpr) (s sink, ok bool) {
	fn, api, ok := r.f.Library(call)
	if !ok {
		return sink{}, false
	}
	if fn.Name() == "From" && fn.Signature().Recv() == nil && !call.Ellipsis.IsValid() && len(call.Args) > 0 {
		lit, ok := ast.Unparen(call.Args[0]).(*ast.CompositeLit)
		if !ok || len(lit.Elts) != 1 {
			return sink{}, false
		}
		t, ok := r.f.Info.TypeOf(lit).Underlying().(*types.Slice)
		if _, isKeyed := lit.Elts[0].(*ast.KeyValueExpr); !ok || isKeyed || !types.Identical(t.Elem(), types.Typ[types.Int64]) {
			return sink{}, false
		}
		return sink{form: intTensor, arg: lit.Elts[0], index: true}, true
	}
	sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr)
	if !ok || r.f.Info.Selections[sel] == nil || api.Index == "" || api.Kind != tensorapi.View {
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
func (r *restater) selects(call *ast.CallExpr, s *sink) *misfit {
	text := types.ExprString(call)
	if s.to != nil {
		n, ok := r.distance(s.arg, s.to)
		if !ok || !r.isNatural(s.arg, make(map[*types.Var]bool)) {
			return &misfit{plan.NoNumber, s.to.Pos(), "takes a slice, " + text + ", of which the length or the end depends on the value", "slice from the index on a number of elements that is known"}
		}
		s.count = n
	}
	misplaced := &misfit{plan.NoNumber, call.Pos(), "calls " + text + ", which may panic, in the middle of a statement", "give what it selects a name before: x := " + text}
	if s.stmt == nil || !r.inList(s.stmt) || !r.f.AlwaysFirst(call, s.stmt) {
		return misplaced
	}
	if s.form == intTensor {
		return nil
	}
	stems := r.receiversBefore(call, s.stmt)
	if r.callsBefore(call, s.stmt, nil, stems) {
		return misplaced
	}
	if of := ast.Unparen(call.Fun).(*ast.SelectorExpr).X; !r.isPath(of) {
		stems = append(stems, of)
	}
	s.stems = stems
	return nil
}

// receiversBefore returns the receivers, in s, of the methods that take what call gives, in the
// order in which they are evaluated.
func (r *restater) receiversBefore(call *ast.CallExpr, s ast.Stmt) (receivers []ast.Expr) {
	for n := ast.Node(call); n != nil && n != s; n = r.f.Parent(n) {
		outer, ok := r.f.Parent(n).(*ast.CallExpr)
		if !ok || outer.Fun == n {
			continue
		}
		sel, ok := ast.Unparen(outer.Fun).(*ast.SelectorExpr)
		if ok && r.f.Info.Selections[sel] != nil && r.f.Analysis.API.IsTensor(r.f.Info.TypeOf(sel.X)) && calls(sel.X) {
			receivers = append([]ast.Expr{sel.X}, receivers...)
		}
	}
	return receivers
}

// isPath reports whether e is a variable, or a field of one.
func (r *restater) isPath(e ast.Expr) bool {
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		_, ok := r.f.Info.Uses[e].(*types.Var)
		return ok
	case *ast.SelectorExpr:
		sel := r.f.Info.Selections[e]
		return sel != nil && sel.Kind() == types.FieldVal && r.isPath(e.X)
	}
	return false
}

// distance returns n if to is from + n, a constant.
func (r *restater) distance(from, to ast.Expr) (n int64, ok bool) {
	x, a := r.sum(from)
	y, b := r.sum(to)
	return b - a, types.ExprString(x) == types.ExprString(y) && b >= a
}

// sum divides e, an index, into x + n, a constant that may be 0, without conversions.
func (r *restater) sum(e ast.Expr) (x ast.Expr, n int64) {
	if inner, ok := r.conversion(e); ok {
		return r.sum(inner)
	}
	if b, ok := ast.Unparen(e).(*ast.BinaryExpr); ok && b.Op == token.ADD {
		if c, ok := constantOf(r.f.Info, b.Y); ok {
			x, n = r.sum(b.X)
			return x, n + c
		}
	}
	return ast.Unparen(e), 0
}

// conversion returns x if e is int(x) or int64(x) of an index.
func (r *restater) conversion(e ast.Expr) (x ast.Expr, ok bool) {
	call, ok := ast.Unparen(e).(*ast.CallExpr)
	if !ok || !r.f.Info.Types[call.Fun].IsType() || len(call.Args) != 1 || !isIndex(r.f.Info.TypeOf(call)) || !isIndex(r.f.Info.TypeOf(call.Args[0])) {
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
func (r *restater) isNatural(e ast.Expr, seen map[*types.Var]bool) bool {
	if n, ok := constantOf(r.f.Info, e); ok {
		return n >= 0
	}
	if x, ok := r.conversion(e); ok {
		return r.isNatural(x, seen)
	}
	if _, sel, _, ok := r.read(e); ok {
		return r.isPosition(sel.X)
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
			if d.op != token.ILLEGAL || !d.plain || d.value != nil && (r.mentions(d.value, v) || !r.isNatural(d.value, seen)) {
				return false
			}
		}
		return len(r.defs[v]) > 0
	}
	return false
}

// mentions reports whether e uses v.
func (r *restater) mentions(e ast.Expr, v *types.Var) bool {
	return mentionsAny(r.f, e, map[types.Object]bool{v: true})
}

// isPosition reports whether e is what ArgMax or ArgMin return.
func (r *restater) isPosition(e ast.Expr) bool {
	call, ok := ast.Unparen(e).(*ast.CallExpr)
	if !ok {
		return false
	}
	fn, _, ok := r.f.Library(call)
	return ok && (fn.Name() == "ArgMax" || fn.Name() == "ArgMin")
}

// position returns the read in e if that is a conversion of x.ArgMax().Item() to an integer, which is exact.
func (r *restater) position(e ast.Expr) (call *ast.CallExpr, sel *ast.SelectorExpr, ok bool) {
	conv, ok := ast.Unparen(e).(*ast.CallExpr)
	if !ok || !r.f.Info.Types[conv.Fun].IsType() || len(conv.Args) != 1 || !isIndex(r.f.Info.TypeOf(conv)) || !isFloat64(r.f.Info.TypeOf(conv.Args[0])) {
		return nil, nil, false
	}
	call, sel, ok = r.item(conv.Args[0])
	if !ok || !r.isPosition(sel.X) {
		return nil, nil, false
	}
	return call, sel, len(ast.Unparen(sel.X).(*ast.CallExpr).Args) == 0
}

// read returns the read that e is, or is a conversion of that needs none, and the type of the number in its place.
func (r *restater) read(e ast.Expr) (call *ast.CallExpr, sel *ast.SelectorExpr, t types.Type, ok bool) {
	if call, sel, ok = r.position(e); ok {
		return call, sel, types.Typ[types.Int64], true
	}
	call, sel, ok = r.item(e)
	return call, sel, r.f.Info.TypeOf(e), ok
}

// typeOf returns the type of the number in the place of a read.
func (r *restater) typeOf(read *ast.CallExpr) types.Type {
	outer := r.f.Parent(read)
	for {
		p, ok := outer.(*ast.ParenExpr)
		if !ok {
			break
		}
		outer = r.f.Parent(p)
	}
	if conv, ok := outer.(*ast.CallExpr); ok {
		if _, _, ok := r.position(conv); ok {
			return types.Typ[types.Int64]
		}
	}
	return r.f.Info.TypeOf(read)
}

// fitsIndex is fits for e of type int64 or int.
func (r *restater) fitsIndex(e ast.Expr, needs map[*types.Var]bool) *misfit {
	if x, ok := r.conversion(e); ok {
		return r.fits(x, needs)
	}
	if _, _, ok := r.position(e); ok {
		return nil
	}
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		if v, ok := r.f.Info.Uses[e].(*types.Var); ok {
			needs[v] = true
			return nil
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

// restateIndexed makes the edits for a sink that is given an index.
func (r *restater) restateIndexed(call *ast.CallExpr, s sink) {
	if s.form == intTensor {
		r.drop(call.Pos(), s.arg.Pos())
		r.number(s.arg)
		if len(call.Args) == 1 {
			r.replace(s.arg.End(), call.End(), "."+intTensor+"()")
			return
		}
		r.replace(s.arg.End(), call.Args[1].Pos(), "."+intTensor+"(")
		for _, arg := range call.Args[1:] {
			r.restate(arg)
		}
		return
	}
	r.restate(ast.Unparen(call.Fun).(*ast.SelectorExpr).X)
	r.replace(s.name.Pos(), s.name.End(), s.form)
	for _, arg := range call.Args {
		switch arg {
		case s.arg:
			r.number(arg)
		case s.to:
			r.replace(arg.Pos(), arg.End(), strconv.FormatInt(s.count, 10))
		default:
			r.restate(arg)
		}
	}
}

// check is the call of a sink as it is written, which panics if its index is wrong.
func (r *restater) check(call *ast.CallExpr) string {
	var args []string
	for _, arg := range call.Args {
		args = append(args, r.render(arg))
	}
	return fmt.Sprintf("%s(%s)", r.render(call.Fun), strings.Join(args, ", "))
}
