package numbers

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"slices"

	"github.com/asyncgen/asyncgen/gen/internal/load"
	"github.com/asyncgen/asyncgen/gen/internal/plan"
)

// A local variable of type []float64 can become a slice of numbers, like variables of type float64, if nothing but the
// function gets to see it:
//
//	alpha := make([]float64, n)                    alpha := make([]asyncrt.F64, n)
//	for i := range s {                             for i := range s {
//		alpha[i] = s[i].Dot(q).Item()              	dot := s[i].Dot(q).ItemF64(); dot.Item(); alpha[i] = dot
//		q = q.Sub(y[i].MulScalar(alpha[i]))        	q = q.Sub(y[i].MulF64(alpha[i]))
//	}                                              }

// isFloats reports whether t is []float64.
func isFloats(t types.Type) bool {
	s, ok := t.(*types.Slice)
	return ok && isFloat64(s.Elem())
}

// element returns the variable that e is an element of, if it is a slice of float64, int64 or int.
func element(f *plan.Function, e ast.Expr) (v *types.Var, index ast.Expr) {
	ix, ok := ast.Unparen(e).(*ast.IndexExpr)
	if !ok {
		return nil, nil
	}
	id, ok := ast.Unparen(ix.X).(*ast.Ident)
	if !ok {
		return nil, nil
	}
	if v, ok = f.Info.Uses[id].(*types.Var); !ok || v.IsField() || !isFloats(v.Type()) && !isIntegers(v.Type()) {
		return nil, nil
	}
	return v, ix.Index
}

// isElement reports whether e is an element of a slice of numbers.
func (r *restatement) isElement(e ast.Expr) bool {
	v, _ := element(r.f, e)
	return v != nil && r.numbers[v]
}

// becomes reports whether e, on the left of an assignment, is a number or a slice of them, or an element of one.
func (r *restatement) becomes(e ast.Expr) bool {
	_, is := r.isNumber(e)
	return is || r.isElement(e)
}

// keepsElements returns why another name than v may lead to the elements of v, of type []float64, or nil.
func (r *locals) keepsElements(v *types.Var) *misfit {
	cannot := func(pos token.Pos, text string) *misfit {
		return &misfit{plan.NoNumber, pos, text, "keep it in a slice of its own, made with make, and use its elements alone"}
	}
	if r.inner[v] || !r.f.CanCopy(v) || v.Parent() == r.f.Pkg.Types.Scope() {
		return cannot(v.Pos(), "uses "+v.Name()+", which a function literal or a pointer leads to")
	}
	for _, d := range r.defs[v] {
		switch d.stmt.(type) {
		case *ast.AssignStmt, *ast.ValueSpec:
		default:
			return cannot(d.stmt.Pos(), "gets "+v.Name()+" from elsewhere")
		}
		if cut, ok := d.value.(*ast.SliceExpr); ok && cut.Max == nil && cut.High != nil && isName(cut.X) && !isShorter(r.f, cut.High, cut.X) {
			return &misfit{plan.NoNumber, cut.Pos(), "cuts " + v.Name() + " at " + types.ExprString(cut.High) + ", which may be beyond its length",
				fmt.Sprintf("count from its length, as in %s[:len(%[1]s)-1]", v.Name())}
		}
		if !d.plain || d.value != nil && !isSlice(r.f, d.value, v) {
			return cannot(d.stmt.Pos(), "sets "+v.Name()+" to something else than a slice that is made there")
		}
	}
	for _, id := range r.uses[v] {
		if !isInside(r.f, id, v) {
			return cannot(id.Pos(), "hands on "+v.Name())
		}
	}
	return nil
}

// slice returns why v, of type []float64, can't be a slice of numbers, or nil.
func (r *finder) slice(v *types.Var, needs map[*types.Var]bool) *misfit {
	if why := r.keepsElements(v); why != nil {
		return why
	}
	for _, d := range r.defs[v] {
		if why := r.stored(d, appended(r.f, d.value), needs); why != nil {
			return why
		}
	}
	cannot := func(d definition) *misfit {
		return &misfit{plan.NoNumber, d.stmt.Pos(), "sets an element of " + v.Name() + " in a way that numbers have no form of", "set it to a value with ="}
	}
	for _, d := range r.stores[v] {
		if d.value == nil || !d.plain || d.op != token.ILLEGAL && len(d.stmt.(*ast.AssignStmt).Lhs) != 1 {
			return cannot(d)
		}
		if d.op != token.ILLEGAL {
			if _, ok := operator(types.Typ[types.Float64], d.op); !ok {
				return cannot(d)
			}
			if d.op == token.ADD || d.op == token.SUB {
				for _, x := range []ast.Expr{d.stmt.(*ast.AssignStmt).Lhs[0], d.value} {
					if r.isProduct(x, make(map[*types.Var]bool)) {
						return r.rounding(x)
					}
				}
			}
		}
		if why := r.stored(d, []ast.Expr{d.value}, needs); why != nil {
			return why
		}
	}
	return nil
}

// stored returns why values, which d puts into a slice, can't be numbers, or nil.
func (r *finder) stored(d definition, values []ast.Expr, needs map[*types.Var]bool) *misfit {
	if len(r.f.LoopsAround(d.stmt)) == 0 {
		return nil // computed as they are written
	}
	for _, value := range values {
		if why := r.fits(value, needs); why != nil {
			return why
		}
	}
	s, _ := d.stmt.(ast.Stmt)
	var reads []*ast.CallExpr
	for _, value := range values {
		reads = append(reads, itemsIn(r.f, value)...)
	}
	return r.areFirst(s, reads, nil)
}

// nameStored names the reads in what is put into v, a list where it has a twin.
func (r *finder) nameStored(v *types.Var) {
	inLoop := func(s ast.Stmt) bool {
		if t := r.lists[v]; t != nil {
			return t.covers(s)
		}
		return len(r.f.LoopsAround(s)) > 0
	}
	for _, d := range r.stores[v] {
		if s, ok := d.stmt.(ast.Stmt); ok && inLoop(s) {
			r.name(sink{arg: d.value, stmt: s})
		}
	}
	for _, d := range r.defs[v] {
		if s, ok := d.stmt.(ast.Stmt); ok && inLoop(s) {
			for _, value := range appended(r.f, d.value) {
				r.name(sink{arg: value, stmt: s})
			}
		}
	}
}

// appended are the elements that e, which is append or a slice, adds to a slice.
func appended(f *plan.Function, e ast.Expr) []ast.Expr {
	switch e := ast.Unparen(e).(type) {
	case *ast.SliceExpr:
		return appended(f, e.X)
	case *ast.CallExpr:
		if isBuiltin(f, e, "append") && !e.Ellipsis.IsValid() {
			return append(appended(f, e.Args[0]), e.Args[1:]...)
		}
	}
	return nil
}

func isBuiltin(f *plan.Function, call *ast.CallExpr, name string) bool {
	id, ok := ast.Unparen(call.Fun).(*ast.Ident)
	if !ok {
		return false
	}
	b, ok := f.Info.Uses[id].(*types.Builtin)
	return ok && b.Name() == name
}

// isSlice reports whether e is a slice that is made there, or v with more elements or fewer. Numbers are larger than a
// float64, so that append grows slices of them at other lengths. Nobody can tell: no two variables lead to one array,
// and no element behind the length comes back.
func isSlice(f *plan.Function, e ast.Expr, v *types.Var) bool {
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		return f.Info.Uses[e] == v || f.Info.Types[e].IsNil()
	case *ast.CallExpr:
		switch {
		case isBuiltin(f, e, "make"):
			return isFloats(f.Info.TypeOf(e.Args[0]))
		case isBuiltin(f, e, "append"):
			return !e.Ellipsis.IsValid() && isSlice(f, e.Args[0], v)
		}
	case *ast.SliceExpr:
		return e.Max == nil && isSlice(f, e.X, v) && (e.High == nil || isShorter(f, e.High, e.X))
	}
	return false
}

// isShorter reports whether e is no more than the length of the variable x: 0, or len(x) less a constant.
func isShorter(f *plan.Function, e, x ast.Expr) bool {
	if c := f.Info.Types[e].Value; c != nil {
		return constant.Sign(c) <= 0
	}
	if b, ok := ast.Unparen(e).(*ast.BinaryExpr); ok && b.Op == token.SUB {
		c := f.Info.Types[b.Y].Value
		return c != nil && constant.Sign(c) >= 0 && isShorter(f, b.X, x)
	}
	call, ok := ast.Unparen(e).(*ast.CallExpr)
	return ok && isBuiltin(f, call, "len") && isName(x) && types.ExprString(call.Args[0]) == types.ExprString(ast.Unparen(x))
}

// isPart reports whether e is v, or a part of it.
func isPart(f *plan.Function, e ast.Expr, v *types.Var) bool {
	if _, isCall := ast.Unparen(e).(*ast.CallExpr); isCall {
		return false
	}
	return f.Info.Types[e].IsValue() && isSlice(f, e, v)
}

// isInside reports whether id, a use of v, leads to an element or the length of v, or to what v is set to.
func isInside(f *plan.Function, id *ast.Ident, v *types.Var) bool {
	var n ast.Expr = id
	for {
		switch p := f.Parent(n).(type) {
		case *ast.ParenExpr:
			n = p
		case *ast.IndexExpr:
			if p.X != n || !isName(n) {
				return false
			}
			switch q := f.Parent(p).(type) {
			case *ast.UnaryExpr:
				return q.Op != token.AND
			case *ast.IncDecStmt, *ast.RangeStmt:
				return false
			}
			return true
		case *ast.RangeStmt:
			return p.X == n && p.Value == nil
		case *ast.CallExpr:
			if isBuiltin(f, p, "len") || isBuiltin(f, p, "copy") && isPart(f, p.Args[0], v) && isPart(f, p.Args[1], v) {
				return true
			}
			if !isBuiltin(f, p, "append") || p.Args[0] != n {
				return false
			}
			n = p
		case *ast.SliceExpr:
			if p.X != n || !isSlice(f, p, v) {
				return false
			}
			n = p
		case *ast.AssignStmt:
			i := slices.Index(p.Rhs, n)
			if i < 0 || len(p.Lhs) != len(p.Rhs) {
				return false
			}
			to, ok := ast.Unparen(p.Lhs[i]).(*ast.Ident)
			return ok && f.Info.ObjectOf(to) == v
		default:
			return false
		}
	}
}

// slice makes the edits for e, a slice that s assigns to a variable, to be one of numbers.
func (r *writer) slice(s ast.Node, e ast.Expr) {
	switch e := ast.Unparen(e).(type) {
	case *ast.SliceExpr:
		r.slice(s, e.X)
		for _, bound := range []ast.Expr{e.Low, e.High} {
			if bound != nil {
				r.restate(bound)
			}
		}
	case *ast.CallExpr:
		if isBuiltin(r.f, e, "make") {
			r.replace(e.Args[0].Pos(), e.Args[0].End(), "[]"+load.RestatedRuntime+".F64")
			for _, arg := range e.Args[1:] {
				r.restate(arg)
			}
			return
		}
		r.slice(s, e.Args[0])
		for _, arg := range e.Args[1:] {
			if e.Ellipsis.IsValid() {
				r.slice(s, arg)
			} else {
				r.value(s, arg)
			}
		}
	}
}
