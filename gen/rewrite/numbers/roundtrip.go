package numbers

import (
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"slices"

	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"github.com/asyncgen/asyncgen/gen/internal/plan"
)

// RoundTrip is device-scalar: a value is read, the host computes with it, and the result goes
// back to the device. The device computes with it instead, in float64 and
// rounding as often, which gives the same bits: see [asyncrt.F64].
//
//	alpha := rs / p.Dot(ap).Item()     alpha := rs.Div(p.Dot(ap).ItemF64())
//	x = x.Add(p.MulScalar(alpha))      x = x.Add(p.MulF64(alpha))
//	rs = next                          rs = next
//	fmt.Println(alpha)                 alphaAt := later.ReadF64(alpha)
//	                                   later.Do(func() { fmt.Println(alphaAt.Item()) })
//
// If reads still wait when a function has been planned, it is restated in numbers that may not be there yet, and
// planned from the start: what then still looks at them comes later like any other statement that looks at values.
var RoundTrip = &Part{
	Rewrite: &plan.Rewrite{
		Name: "device-scalar",
		Was:  "R9",
		Code: plan.StaysThere,
		Does: "stays on the device, which computes what depends on it",
	},
	find: (*chooser).choose,
	made: (*writer).stays,
}

// stays says which values stay on the device.
func (r *writer) stays(as *plan.Rewrite) (made []plan.Remark) {
	for _, call := range r.reads {
		made = append(made, as.Made(r.f, call.Pos(), types.ExprString(call)))
	}
	return made
}

// A finder finds the operations that can be given numbers, and the variables that have to be numbers for that.
type finder struct {
	*restatement
	refused []plan.Remark
	twins   map[*types.Var]*twin // that lists may have
}

// choose finds the sinks that can be given numbers, and the variables that have
// to be numbers for that.
func (r *finder) choose() {
	eachSink(r.f, func(call *ast.CallExpr, s sink) {
		if r.sinks[call].arg != nil || !s.loop || !r.isGiven(s) {
			return
		}
		needs := make(map[*types.Var]bool)
		fits := r.fits
		if s.list {
			if fits = r.fitsList; !r.isGrown(s.arg) {
				return
			}
		}
		why := fits(s.arg, needs)
		if why == nil {
			why = r.variables(needs)
		}
		if why == nil && s.list {
			why = r.outside(s, needs)
		}
		if why == nil && s.index {
			why = r.selects(call, &s)
		}
		if why == nil {
			why = r.nameable(s)
		}
		if why != nil {
			if loops := r.f.LoopsAround(call); len(itemsIn(r.f, loops[len(loops)-1])) > 0 { // else nothing waits there
				r.refuse(s.arg, why)
			}
			return
		}
		r.name(s)
		r.sinks[call] = s
		for _, e := range s.stems {
			if r.stems[e] == "" {
				r.stems[e] = r.names.Unused(plan.BaseName(e))
				r.before[s.stmt] = append(r.before[s.stmt], e)
			}
		}
		if s.index && !s.made {
			r.before[s.stmt] = append(r.before[s.stmt], call)
		}
		for _, v := range inOrder(needs) {
			if isIntegers(v.Type()) {
				r.keepTwin(v)
			} else {
				r.numbers[v] = true
			}
			if isFloats(v.Type()) || isIntegers(v.Type()) {
				r.nameStored(v)
			}
		}
	})
}

// refuse remarks that e is computed on the host.
func (r *finder) refuse(e ast.Expr, why *misfit) {
	r.refused = append(r.refused, plan.Remark{
		Code: why.code, Verdict: plan.Refused, Class: why.code.Class(), Pos: r.f.Position(e.Pos()), Function: r.f.Decl.Name.Name,
		Message: types.ExprString(e) + " is computed on the host: " + why.code.Title(),
		Because: []plan.Related{{Pos: r.f.Position(why.pos), Text: "it " + why.text}}, Hint: why.hint,
	})
}

// fits returns why e, of type float64, int64 or int, has no form as a number, or nil; needs are the variables
// that it takes to be numbers.
func (r *finder) fits(e ast.Expr, needs map[*types.Var]bool) *misfit {
	if isBool(r.f.Info.TypeOf(e)) {
		return r.fitsBool(e, needs)
	}
	if !r.valued(e, make(map[*types.Var]bool)) {
		return leaf(r.f, e)
	}
	if _, _, ok := item(r.f, e); ok {
		return nil
	}
	no := &misfit{plan.NoNumber, e.Pos(), "computes " + types.ExprString(e) + ", which numbers have no form of", "compute it with + - * / and functions of package math"}
	if isIndex(r.f.Info.TypeOf(e)) {
		return r.fitsIndex(e, needs)
	}
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		v, ok := r.f.Info.Uses[e].(*types.Var)
		if !ok || !isFloat64(v.Type()) {
			return no
		}
		needs[v] = true
		return nil
	case *ast.IndexExpr:
		v, index := element(r.f, e)
		if v == nil || r.isValued(index) {
			return no
		}
		needs[v] = true
		return leaf(r.f, index)
	case *ast.UnaryExpr:
		if e.Op != token.SUB && e.Op != token.ADD {
			return no
		}
		return r.fits(e.X, needs)
	case *ast.BinaryExpr:
		if _, ok := tensorapi.NumberOperator(e.Op.String()); !ok || !isFloat64(r.f.Info.TypeOf(e)) {
			return no
		}
		if e.Op == token.ADD || e.Op == token.SUB {
			for _, x := range []ast.Expr{e.X, e.Y} {
				if r.isProduct(x, make(map[*types.Var]bool)) {
					return r.added(x, needs)
				}
			}
		}
		if why := r.fits(e.X, needs); why != nil {
			return why
		}
		return r.fits(e.Y, needs)
	case *ast.CallExpr:
		if x, ok := rounded(r.f, e); ok {
			return r.fits(x, needs)
		}
		if r.f.Info.Types[e.Fun].IsType() && isFloat64(r.f.Info.TypeOf(e.Args[0])) && isFloat64(r.f.Info.TypeOf(e)) {
			return r.fits(e.Args[0], needs)
		}
		if _, _, ok := rateOf(r.f, e); ok {
			return nil
		}
		if r.f.Info.Types[e.Fun].IsType() && isIndex(r.f.Info.TypeOf(e.Args[0])) {
			no.hint = "let " + types.ExprString(e.Args[0]) + " be a float64"
		}
		_, arity, ok := function(r.f, e)
		if fn, _, _ := r.f.Callee(e); !ok && fn != nil && fn.Pkg() != nil && fn.Pkg().Path() == "math" {
			no.hint = "compute it with + - * / and other functions of package math"
		}
		if !ok || len(e.Args) != arity {
			return no
		}
		for _, arg := range e.Args {
			if why := r.fits(arg, needs); why != nil {
				return why
			}
		}
		return nil
	}
	return no
}

// added returns why x, which may be a product, can't be added to something: that it has no form at all comes first.
func (r *finder) added(x ast.Expr, needs map[*types.Var]bool) *misfit {
	if why := r.fits(x, needs); why != nil && why.code == plan.NoNumber {
		return why
	}
	return r.rounding(x)
}

// inOrder returns variables in the order of their declarations.
func inOrder(vs map[*types.Var]bool) []*types.Var {
	return slices.SortedFunc(maps.Keys(vs), func(v, w *types.Var) int { return int(v.Pos() - w.Pos()) })
}

// variables adds to needs what the variables in it need, and returns why one of
// them can't be a number, or nil.
func (r *finder) variables(needs map[*types.Var]bool) *misfit {
	done := make(map[*types.Var]bool)
	for len(done) < len(needs) {
		for _, v := range inOrder(needs) {
			if done[v] {
				continue
			}
			done[v] = true
			if why := r.variable(v, needs); why != nil {
				return why
			}
		}
	}
	return nil
}

// variable returns why v can't be a number, or nil.
func (r *finder) variable(v *types.Var, needs map[*types.Var]bool) *misfit {
	cannot := func(pos token.Pos, text string) *misfit {
		return &misfit{plan.NoNumber, pos, text, "compute it in a local variable of its own, with + - * / and functions of package math"}
	}
	if r.inner[v] || !r.f.CanCopy(v) || v.Parent() == r.f.Pkg.Types.Scope() {
		return cannot(v.Pos(), "uses "+v.Name()+", which a function literal or a pointer leads to")
	}
	if isFloats(v.Type()) {
		return r.slice(v, needs)
	}
	if isIntegers(v.Type()) {
		return r.list(v, needs)
	}
	product := r.isProductVariable(v)
	for _, d := range r.defs[v] {
		switch s := d.stmt.(type) {
		case *ast.IncDecStmt:
		case *ast.AssignStmt:
			if !d.plain || d.op != token.ILLEGAL && len(s.Lhs) != 1 {
				return cannot(s.Pos(), "sets "+v.Name()+" together with others")
			}
		case *ast.ValueSpec:
			if !d.plain || s.Type != nil && len(s.Names) > 1 {
				return cannot(s.Pos(), "declares "+v.Name()+" together with others")
			}
			if d.value == nil {
				continue
			}
		case *ast.Field:
			if isBool(v.Type()) {
				return cannot(s.Pos(), "takes or returns "+v.Name()+", which is no number")
			}
			switch {
			case slices.Contains(r.f.Decl.Type.Params.List, s):
			case r.returnsByName():
				return cannot(s.Pos(), "returns "+v.Name()+" by its name")
			case r.f.Defers():
				return cannot(s.Pos(), "returns what "+v.Name()+" holds if a deferred call recovers from a panic")
			}
			continue
		default:
			return cannot(s.Pos(), "sets "+v.Name()+" in a way that numbers have no form of")
		}
		if d.op != token.ILLEGAL {
			if _, ok := operator(v.Type(), d.op); !ok {
				return cannot(d.stmt.Pos(), "sets "+v.Name()+" in a way that numbers have no form of")
			}
			if d.op == token.ADD || d.op == token.SUB {
				if d.value != nil && r.isProduct(d.value, make(map[*types.Var]bool)) {
					return r.added(d.value, needs)
				}
				if product {
					return cannot(d.stmt.Pos(), "adds to "+v.Name()+", which may be a product that is not rounded")
				}
			}
		}
		if d.value == nil || len(r.f.LoopsAround(d.stmt)) == 0 && !isBool(v.Type()) {
			continue // computed as it is written
		}
		if s, ok := d.stmt.(ast.Stmt); ok && len(itemsIn(r.f, d.value)) > 0 && !inList(r.f, s) && r.heads[s] == nil {
			return cannot(s.Pos(), "sets "+v.Name()+" in the head of a statement")
		}
		if why := r.fits(d.value, needs); why != nil {
			return why
		}
	}
	if product {
		for _, id := range r.uses[v] {
			if !keepsRounding(r.f, id) && !r.isMerged(id, v) {
				return &misfit{plan.OneRounding, id.Pos(), "uses " + v.Name() + ", a product, where Go may add to it before it is rounded", "round it everywhere: float64(x * y)"}
			}
		}
	}
	return nil
}

// nameable returns why the reads in the argument of s, which have no variable, can't be taken before its statement, or
// nil.
func (r *finder) nameable(s sink) *misfit { return r.areFirst(s.stmt, r.unnamed(s), s.stems) }

// areFirst returns why reads can't be taken before s, after stems, or nil: they need a name, as what they raise must be
// raised even if nothing else comes of them.
func (r *finder) areFirst(s ast.Stmt, reads []*ast.CallExpr, stems []ast.Expr) *misfit {
	if len(reads) == 0 {
		return nil
	}
	no := &misfit{plan.NoNumber, reads[0].Pos(), "reads " + types.ExprString(reads[0]) + " in the middle of a statement", "give the value a name before: v := " + types.ExprString(reads[0])}
	if s == nil || !inList(r.f, s) {
		return no
	}
	for _, read := range reads {
		if !r.f.AlwaysFirst(read, s) || callsBefore(r.f, read, s, reads, stems) {
			return no
		}
	}
	return nil
}

// name gives a name to the reads of which nameable says that they can have one.
func (r *finder) name(s sink) {
	for _, read := range r.unnamed(s) {
		if r.named[read] == "" {
			r.named[read] = r.names.Unused(plan.BaseName(ast.Unparen(read.Fun).(*ast.SelectorExpr).X))
			r.before[s.stmt] = append(r.before[s.stmt], read)
		}
	}
}

// unnamed are the reads in what s is given that have no variable.
func (r *finder) unnamed(s sink) []*ast.CallExpr {
	reads := itemsIn(r.f, s.arg)
	if len(reads) > 0 && s.to != nil {
		reads = append(reads, itemsIn(r.f, s.to)...)
	}
	return reads
}
