package numbers

import (
	"go/ast"
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

// slice returns why v, of type []float64, can't be a slice of numbers, or nil.
func (r *finder) slice(v *types.Var, needs map[*types.Var]bool) *misfit {
	cannot := func(pos token.Pos, text string) *misfit {
		return &misfit{plan.NoNumber, pos, text, "keep it in a slice of its own, made with make, and use its elements alone"}
	}
	for _, d := range r.defs[v] {
		switch d.stmt.(type) {
		case *ast.AssignStmt, *ast.ValueSpec:
		default:
			return cannot(d.stmt.Pos(), "gets "+v.Name()+" from elsewhere")
		}
		if !d.plain || d.value != nil && !isSlice(r.f, d.value, v) {
			return cannot(d.stmt.Pos(), "sets "+v.Name()+" to something else than a slice that is made there")
		}
		if why := r.stored(d, appended(r.f, d.value), needs); why != nil {
			return why
		}
	}
	for _, d := range r.stores[v] {
		if d.value == nil || !d.plain || d.op != token.ILLEGAL && len(d.stmt.(*ast.AssignStmt).Lhs) != 1 {
			return cannot(d.stmt.Pos(), "sets an element of "+v.Name()+" in a way that numbers have no form of")
		}
		if d.op != token.ILLEGAL {
			if _, ok := operator(types.Typ[types.Float64], d.op); !ok {
				return cannot(d.stmt.Pos(), "sets an element of "+v.Name()+" in a way that numbers have no form of")
			}
			if d.op == token.ADD || d.op == token.SUB {
				return r.rounding(d.stmt.(*ast.AssignStmt).Lhs[0]) // in memory there may be a product
			}
		}
		if why := r.stored(d, []ast.Expr{d.value}, needs); why != nil {
			return why
		}
	}
	for _, id := range r.uses[v] {
		if !isInside(r.f, id, v) {
			return cannot(id.Pos(), "hands on "+v.Name())
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
		s, _ := d.stmt.(ast.Stmt)
		if why := r.nameable(sink{arg: value, stmt: s}); why != nil {
			return why
		}
	}
	return nil
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
	call, ok := ast.Unparen(e).(*ast.CallExpr)
	if !ok || !isBuiltin(f, call, "append") || call.Ellipsis.IsValid() {
		return nil
	}
	return append(appended(f, call.Args[0]), call.Args[1:]...)
}

func isBuiltin(f *plan.Function, call *ast.CallExpr, name string) bool {
	id, ok := ast.Unparen(call.Fun).(*ast.Ident)
	if !ok {
		return false
	}
	b, ok := f.Info.Uses[id].(*types.Builtin)
	return ok && b.Name() == name
}

// isSlice reports whether e is a slice that is made there, or v with more elements. Numbers are larger than a float64,
// so that append grows slices of them at other lengths. Nobody can tell: no two variables lead to one array, and no
// element behind the length comes back.
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
	}
	return false
}

// isInside reports whether id, a use of v, leads to an element or the length of v, or to what v is set to.
func isInside(f *plan.Function, id *ast.Ident, v *types.Var) bool {
	var n ast.Expr = id
	for {
		switch p := f.Parent(n).(type) {
		case *ast.ParenExpr:
			n = p
		case *ast.IndexExpr:
			if p.X != n {
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
			if isBuiltin(f, p, "len") {
				return true
			}
			if !isBuiltin(f, p, "append") || p.Args[0] != n {
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
