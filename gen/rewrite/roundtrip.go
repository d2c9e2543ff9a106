package rewrite

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"

	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"github.com/asyncgen/asyncgen/gen/internal/load"
	"github.com/asyncgen/asyncgen/gen/internal/plan"
	"golang.org/x/tools/go/types/typeutil"
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
// It comes before all others: the function is restated in numbers that may not
// be there yet, and what then still looks at them comes later like any
// other statement that looks at values.
var RoundTrip = &Rewrite{
	Name: "device-scalar",
	Was:  "R9",
	Code: plan.StaysThere,
	Does: "stays on the device, which computes what depends on it",
}

// A restater finds the numbers of a function that need not be known, and the
// edits that restate it in them.
type restater struct {
	f       *plan.Function
	numbers map[*types.Var]bool         // local variables of type float64, int64 or int that become numbers
	sinks   map[*ast.CallExpr]sink      // operations that take a number instead
	defs    map[*types.Var][]definition // of variables
	uses    map[*types.Var][]*ast.Ident // other than definitions
	inner   map[*types.Var]bool         // a function literal uses it, or its address is taken
	named   map[*ast.CallExpr]string    // reads that get a name of their own
	stems   map[ast.Expr]string         // as do tensors
	before  map[ast.Stmt][]ast.Expr     // what comes before a statement: these, and sinks that may panic
	ifs     []ast.Stmt                  // ifs and switches in loops
	chosen  map[ast.Stmt]*choice        // by which the device chooses: see choices.go
	heads   map[ast.Stmt]*ast.IfStmt    // definitions in the heads of ifs
	fates   map[ast.Stmt]fates          // what is known of failures where the device may choose: see failing.go
	copied  map[*ast.Ident]string       // what stands for numbers that have changed
	namer   *namer
	refused []plan.Remark

	edits  []load.Edit
	reads  []*ast.CallExpr // that stay on the device
	looks  []*ast.Ident    // where the host looks at numbers
	raises []ast.Stmt      // that read what they assign
}

// A sink is a call of an operation with a float64, or an index, that has a form with a number.
type sink struct {
	name  *ast.Ident // of the method
	form  string
	arg   ast.Expr
	stmt  ast.Stmt   // that it is in
	loop  bool       // it is in a loop
	index bool       // arg is an index: see integers.go
	to    ast.Expr   // the index behind the last one; nil if there is but one
	count int64      // how many there are then
	stems []ast.Expr // what is evaluated before it, in order
}

// A definition gives a variable a value.
type definition struct {
	stmt  ast.Node    // *ast.AssignStmt or *ast.ValueSpec
	op    token.Token // of op=; else ILLEGAL
	value ast.Expr    // nil: a zero value, or one that has no expression of its own
	plain bool        // value is all that is assigned, or there is none because the variable is zero
}

// A misfit is why an expression has no form in numbers.
type misfit struct {
	code plan.Code
	pos  token.Pos
	text string
	hint string
}

// roundTrips restates f in numbers that stay on the device, as far as they can.
// It returns nil if there are none, and remarks on what stands in the way.
func roundTrips(f *plan.Function, kernel *directive) (*plan.Function, []plan.Remark, []plan.Remark) {
	r := &restater{f: f, numbers: make(map[*types.Var]bool), sinks: make(map[*ast.CallExpr]sink), defs: make(map[*types.Var][]definition),
		uses: make(map[*types.Var][]*ast.Ident), inner: make(map[*types.Var]bool), named: make(map[*ast.CallExpr]string), stems: make(map[ast.Expr]string),
		before: make(map[ast.Stmt][]ast.Expr), chosen: make(map[ast.Stmt]*choice), copied: make(map[*ast.Ident]string), namer: newNamer(f)}
	r.scan()
	for n := -1; n != r.found(); { // what becomes a number for one thing may be of use to another
		n = r.found()
		r.refused = nil
		for _, step := range kernel.steps {
			if step.number != nil {
				step.number(r)
			}
		}
	}
	if r.isTorn() {
		return nil, nil, r.refused
	}
	if len(r.sinks) == 0 && len(r.chosen) == 0 {
		return nil, nil, r.refused
	}
	r.restate(f.Decl.Body)
	r.forceReads()
	restated, err := f.Restate(r.edits)
	if err != nil {
		return nil, nil, r.refused
	}
	var applied []plan.Remark
	for _, step := range kernel.steps {
		if step.numbers != nil {
			applied = append(applied, step.numbers(r)...)
		}
	}
	return restated, applied, r.refused
}

// stayRemarks say which values stay on the device.
func (r *restater) stayRemarks() (applied []plan.Remark) {
	f := r.f
	for _, call := range r.reads {
		applied = append(applied, plan.Remark{Code: RoundTrip.Code, Rule: RoundTrip.Name, Verdict: plan.Applied, Pos: f.Position(call.Pos()),
			Function: f.Decl.Name.Name, Message: types.ExprString(call) + " " + RoundTrip.Does})
	}
	return applied
}

// found counts what has been found.
func (r *restater) found() int { return len(r.numbers) + len(r.sinks) + len(r.chosen) }

// scan finds the definitions and uses of local variables, and the sinks.
func (r *restater) scan() {
	info := r.f.Info
	defining := make(map[*ast.Ident]bool)
	define := func(e ast.Expr, d definition) {
		if id, ok := ast.Unparen(e).(*ast.Ident); ok {
			if v, ok := info.ObjectOf(id).(*types.Var); ok {
				defining[id] = true
				r.defs[v] = append(r.defs[v], d)
			}
		}
	}
	ast.Inspect(r.f.Decl, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for i, lhs := range n.Lhs {
				d := definition{stmt: n}
				if len(n.Lhs) == len(n.Rhs) {
					d.value, d.plain = n.Rhs[i], true
				}
				if n.Tok != token.ASSIGN && n.Tok != token.DEFINE {
					d.op = n.Tok - (token.ADD_ASSIGN - token.ADD)
				}
				define(lhs, d)
			}
		case *ast.ValueSpec:
			for i, name := range n.Names {
				d := definition{stmt: n, plain: len(n.Values) == 0}
				if len(n.Values) == len(n.Names) {
					d.value, d.plain = n.Values[i], true
				}
				define(name, d)
			}
		case *ast.IncDecStmt:
			define(n.X, definition{stmt: n})
		case *ast.RangeStmt:
			for _, e := range []ast.Expr{n.Key, n.Value} {
				if e != nil {
					define(e, definition{stmt: n})
				}
			}
		case *ast.Field: // parameters and results
			for _, name := range n.Names {
				define(name, definition{stmt: n})
			}
		case *ast.UnaryExpr:
			if id, ok := ast.Unparen(n.X).(*ast.Ident); ok && n.Op == token.AND {
				if v, ok := info.ObjectOf(id).(*types.Var); ok {
					r.inner[v] = true
				}
			}
		case *ast.FuncLit:
			ast.Inspect(n, func(m ast.Node) bool {
				if id, ok := m.(*ast.Ident); ok {
					if v, ok := info.ObjectOf(id).(*types.Var); ok {
						r.inner[v] = true
					}
				}
				return true
			})
			return false
		case *ast.Ident:
			if v, ok := info.Uses[n].(*types.Var); ok && !v.IsField() && !defining[n] {
				r.uses[v] = append(r.uses[v], n)
			}
		}
		return true
	})
}

// choose finds the sinks that can be given numbers, and the variables that have
// to be numbers for that.
func (r *restater) choose() {
	r.eachSink(func(call *ast.CallExpr, s sink) {
		if r.sinks[call].arg != nil || !s.loop || !r.valued(s.arg, make(map[*types.Var]bool)) {
			return
		}
		needs := make(map[*types.Var]bool)
		why := r.fits(s.arg, needs)
		if why == nil {
			why = r.variables(needs)
		}
		if why == nil && s.index {
			why = r.selects(call, &s)
		}
		if why == nil {
			why = r.nameable(s)
		}
		if why != nil {
			r.refuse(s.arg, why)
			return
		}
		r.sinks[call] = s
		for _, e := range s.stems {
			if r.stems[e] == "" {
				r.stems[e] = r.namer.unused(base(e))
				r.before[s.stmt] = append(r.before[s.stmt], e)
			}
		}
		if s.index && s.form != intTensor {
			r.before[s.stmt] = append(r.before[s.stmt], call)
		}
		for v := range needs {
			r.numbers[v] = true
		}
	})
}

// refuse remarks that e is computed on the host.
func (r *restater) refuse(e ast.Expr, why *misfit) {
	r.refused = append(r.refused, plan.Remark{
		Code: why.code, Verdict: plan.Refused, Class: why.code.Class(), Pos: r.f.Position(e.Pos()), Function: r.f.Decl.Name.Name,
		Message: types.ExprString(e) + " is computed on the host: " + titles[why.code],
		Because: []plan.Related{{Pos: r.f.Position(why.pos), Text: "it " + why.text}}, Hint: why.hint,
	})
}

// eachSink calls f for every operation with a float64, or an index, that has a form with a number.
func (r *restater) eachSink(f func(*ast.CallExpr, sink)) {
	var stack []ast.Node
	ast.Inspect(r.f.Decl.Body, func(n ast.Node) bool {
		if n == nil {
			stack = stack[:len(stack)-1]
			return true
		}
		if _, ok := n.(*ast.FuncLit); ok {
			return false
		}
		stack = append(stack, n)
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		s, ok := r.sinkOf(call)
		if !ok {
			return true
		}
		for _, around := range stack {
			switch around := around.(type) {
			case *ast.ForStmt, *ast.RangeStmt:
				s.loop = true
			case *ast.AssignStmt, *ast.DeclStmt, *ast.ExprStmt, *ast.ReturnStmt:
				s.stmt = around.(ast.Stmt)
			}
		}
		f(call, s)
		return true
	})
}

// sinkOf returns the form of call with a number.
func (r *restater) sinkOf(call *ast.CallExpr) (s sink, ok bool) {
	if s, ok := r.indexed(call); ok {
		return s, true
	}
	sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr)
	if !ok || r.f.Info.Selections[sel] == nil {
		return sink{}, false
	}
	fn, api, ok := r.f.Library(call)
	if !ok || api.F64 == "" || api.Kind != tensorapi.Op || len(call.Args) != fn.Signature().Params().Len() {
		return sink{}, false
	}
	for i := range fn.Signature().Params().Len() {
		if isFloat64(fn.Signature().Params().At(i).Type()) {
			s = sink{name: sel.Sel, form: api.F64, arg: call.Args[i]}
		}
	}
	return s, s.arg != nil
}

func isFloat64(t types.Type) bool { return types.Identical(t, types.Typ[types.Float64]) }

// item returns the operand of a call of Item, or ItemInt, of a tensor.
func (r *restater) item(e ast.Expr) (*ast.CallExpr, *ast.SelectorExpr, bool) {
	call, ok := ast.Unparen(e).(*ast.CallExpr)
	if !ok {
		return nil, nil, false
	}
	sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr)
	if !ok || r.f.Info.Selections[sel] == nil || !r.f.Analysis.API.IsTensor(r.f.Info.TypeOf(sel.X)) {
		return nil, nil, false
	}
	_, api, ok := r.f.Library(call)
	return call, sel, ok && api.Kind == tensorapi.Read && (api.F64 != "" || api.Index != "") && r.f.Info.Types[sel.X].IsValue()
}

// valued reports whether e depends on a value that is read, directly or through variables.
func (r *restater) valued(e ast.Node, seen map[*types.Var]bool) (found bool) {
	ast.Inspect(e, func(n ast.Node) bool {
		if found {
			return false
		}
		switch n := n.(type) {
		case *ast.CallExpr:
			if _, _, ok := r.item(n); ok {
				found = true
			}
			_, api, ok := r.f.Library(n)
			if ok && !api.Waits() {
				return false // what a tensor is made of is no value
			}
		case *ast.Ident:
			v, ok := r.f.Info.Uses[n].(*types.Var)
			if ok && r.numbers[v] {
				found = true
			}
			if !ok || seen[v] || !isFloat64(v.Type()) && !isIndex(v.Type()) {
				break
			}
			seen[v] = true
			for _, d := range r.defs[v] {
				found = found || d.value != nil && r.valued(d.value, seen)
			}
		}
		return !found
	})
	return found
}

// fits returns why e, of type float64, int64 or int, has no form as a number, or nil; needs are the variables
// that it takes to be numbers.
func (r *restater) fits(e ast.Expr, needs map[*types.Var]bool) *misfit {
	if !r.valued(e, make(map[*types.Var]bool)) {
		return r.leaf(e)
	}
	if _, _, ok := r.item(e); ok {
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
					return rounding(x)
				}
			}
		}
		if why := r.fits(e.X, needs); why != nil {
			return why
		}
		return r.fits(e.Y, needs)
	case *ast.CallExpr:
		if x, ok := r.rounded(e); ok {
			return r.fits(x, needs)
		}
		if r.f.Info.Types[e.Fun].IsType() && isFloat64(r.f.Info.TypeOf(e.Args[0])) && isFloat64(r.f.Info.TypeOf(e)) {
			return r.fits(e.Args[0], needs)
		}
		_, arity, ok := r.function(e)
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

func rounding(x ast.Expr) *misfit {
	text := "adds the product " + types.ExprString(x)
	if b, ok := ast.Unparen(x).(*ast.BinaryExpr); !ok || b.Op != token.MUL {
		text = "adds " + types.ExprString(x) + ", which may be a product"
	}
	return &misfit{plan.OneRounding, x.Pos(), text + ", and Go rounds the product on some platforms and not on others",
		"round it everywhere: float64(" + types.ExprString(x) + ")"}
}

// leaf returns why e, which no value goes into, can't be computed in its place.
func (r *restater) leaf(e ast.Expr) *misfit {
	effects := r.f.Effects(e)
	for _, c := range []*plan.Cause{effects.Barrier, effects.Waits, effects.Enqueues, effects.Leaves, effects.Ends} {
		if c != nil {
			return &misfit{plan.NoNumber, c.Pos, c.Text + " in the middle of it", "do that before"}
		}
	}
	for _, c := range effects.Writes {
		return &misfit{plan.NoNumber, c.Pos, c.Text + " in the middle of it", "do that before"}
	}
	return nil
}

// rounded returns x if e is float64(float32(x)).
func (r *restater) rounded(e *ast.CallExpr) (x ast.Expr, ok bool) {
	if !r.f.Info.Types[e.Fun].IsType() || len(e.Args) != 1 || !isFloat64(r.f.Info.TypeOf(e)) {
		return nil, false
	}
	inner, ok := ast.Unparen(e.Args[0]).(*ast.CallExpr)
	if !ok || !r.f.Info.Types[inner.Fun].IsType() || !types.Identical(r.f.Info.TypeOf(inner), types.Typ[types.Float32]) || !isFloat64(r.f.Info.TypeOf(inner.Args[0])) {
		return nil, false
	}
	return inner.Args[0], true
}

// function returns the method of a number that call is, and how many arguments call has.
func (r *restater) function(call *ast.CallExpr) (method string, arity int, ok bool) {
	name := ""
	switch fun := ast.Unparen(call.Fun).(type) {
	case *ast.Ident:
		if b, ok := r.f.Info.Uses[fun].(*types.Builtin); ok {
			name, arity = b.Name(), 2
			break
		}
		if fn, ok := r.f.Info.Uses[fun].(*types.Func); ok { // imported with a dot
			name, arity = fn.FullName(), fn.Signature().Params().Len()
		}
	case *ast.SelectorExpr:
		if fn, ok := r.f.Info.Uses[fun.Sel].(*types.Func); ok && r.f.Info.Selections[fun] == nil {
			name, arity = fn.FullName(), fn.Signature().Params().Len()
		}
	}
	method, ok = tensorapi.NumberFunc(name)
	for _, arg := range call.Args {
		tv := r.f.Info.Types[arg]
		ok = ok && (isFloat64(tv.Type) || tv.Value != nil)
	}
	return method, arity, ok && arity > 0
}

// isProduct reports whether e may be a product that has not been rounded when it is added to
// something: the language allows x*y+z to be rounded once, across statements, too, and
// compilers do so on arm64, and on amd64 with GOAMD64=v3. A conversion rounds.
// What is generated is for all platforms.
func (r *restater) isProduct(e ast.Expr, seen map[*types.Var]bool) bool {
	if tv := r.f.Info.Types[e]; tv.Value != nil || isIndex(tv.Type) {
		return false
	}
	switch e := ast.Unparen(e).(type) {
	case *ast.BinaryExpr:
		return e.Op == token.MUL
	case *ast.UnaryExpr:
		return r.isProduct(e.X, seen)
	case *ast.Ident:
		v, ok := r.f.Info.Uses[e].(*types.Var)
		if !ok || seen[v] {
			return false
		}
		seen[v] = true
		for _, d := range r.defs[v] {
			if d.op == token.MUL || d.op == token.ILLEGAL && d.value != nil && r.isProduct(d.value, seen) {
				return true
			}
		}
		return r.inner[v] || v.Parent() == r.f.Pkg.Types.Scope()
	case *ast.SelectorExpr, *ast.IndexExpr, *ast.StarExpr:
		return r.storesFloats()
	case *ast.CallExpr:
		if r.f.Info.Types[e.Fun].IsType() {
			return false
		}
		if _, _, ok := r.function(e); ok {
			return false
		}
		if fn, ok := typeutil.Callee(r.f.Info, e).(*types.Func); ok && (fn.FullName() == "math.Inf" || fn.FullName() == "math.NaN") {
			return false
		}
		_, _, library := r.f.Library(e)
		return !library // a function of the program may be expanded in its place
	}
	return false
}

// storesFloats reports whether the function stores a float64 in memory, from where it may be
// taken again before it is rounded.
func (r *restater) storesFloats() (found bool) {
	ast.Inspect(r.f.Decl.Body, func(n ast.Node) bool {
		if a, ok := n.(*ast.AssignStmt); ok {
			for _, lhs := range a.Lhs {
				_, isName := ast.Unparen(lhs).(*ast.Ident)
				found = found || !isName && isFloat64(r.f.Info.TypeOf(lhs))
			}
		}
		return !found
	})
	return found
}

// variables adds to needs what the variables in it need, and returns why one of
// them can't be a number, or nil.
func (r *restater) variables(needs map[*types.Var]bool) *misfit {
	done := make(map[*types.Var]bool)
	for len(done) < len(needs) {
		for v := range needs {
			if done[v] {
				continue
			}
			done[v] = true
			if why := r.variable(v, needs); why != nil {
				return why
			}
			break
		}
	}
	return nil
}

// variable returns why v can't be a number, or nil.
func (r *restater) variable(v *types.Var, needs map[*types.Var]bool) *misfit {
	cannot := func(pos token.Pos, text string) *misfit {
		return &misfit{plan.NoNumber, pos, text, "compute it in a local variable of its own, with + - * / and functions of package math"}
	}
	if r.inner[v] || !r.f.CanCopy(v) || v.Parent() == r.f.Pkg.Types.Scope() {
		return cannot(v.Pos(), "uses "+v.Name()+", which a function literal or a pointer leads to")
	}
	product := r.isProductVariable(v)
	for _, d := range r.defs[v] {
		switch s := d.stmt.(type) {
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
		default:
			return cannot(s.Pos(), "sets "+v.Name()+" in a way that numbers have no form of")
		}
		if d.op != token.ILLEGAL {
			if _, ok := operator(v.Type(), d.op); !ok {
				return cannot(d.stmt.Pos(), "sets "+v.Name()+" in a way that numbers have no form of")
			}
			if d.op == token.ADD || d.op == token.SUB {
				if r.isProduct(d.value, make(map[*types.Var]bool)) {
					return rounding(d.value)
				}
				if product {
					return cannot(d.stmt.Pos(), "adds to "+v.Name()+", which may be a product that is not rounded")
				}
			}
		}
		if len(r.f.LoopsAround(d.stmt)) == 0 {
			continue // computed as it is written
		}
		if s, ok := d.stmt.(ast.Stmt); ok && len(r.itemsIn(d.value)) > 0 && !r.inList(s) && r.heads[s] == nil {
			return cannot(s.Pos(), "sets "+v.Name()+" in the head of a statement")
		}
		if why := r.fits(d.value, needs); why != nil {
			return why
		}
	}
	if product {
		for _, id := range r.uses[v] {
			if !r.keepsRounding(id) && !r.isMerged(id, v) {
				return &misfit{plan.OneRounding, id.Pos(), "uses " + v.Name() + ", a product, where Go may add to it before it is rounded", "round it everywhere: float64(x * y)"}
			}
		}
	}
	return nil
}

func (r *restater) isProductVariable(v *types.Var) bool {
	return slices.ContainsFunc(r.defs[v], func(d definition) bool {
		return isFloat64(v.Type()) && (d.op == token.MUL || d.op == token.ILLEGAL && d.value != nil && r.isProduct(d.value, make(map[*types.Var]bool)))
	})
}

// isMerged reports whether the use id of v, which is a product, is behind loops in which v has
// become one, if they had an iteration, and else is what it was before: no compiler has a product
// there to round together with a sum.
func (r *restater) isMerged(id *ast.Ident, v *types.Var) bool {
	for _, d := range r.defs[v] {
		if d.op != token.MUL && (d.op != token.ILLEGAL || d.value == nil || !r.isProduct(d.value, make(map[*types.Var]bool))) {
			continue
		}
		if !slices.ContainsFunc(r.f.LoopsAround(d.stmt), func(loop ast.Node) bool {
			n, isFor := loop.(*ast.ForStmt)
			return v.Pos() < loop.Pos() && loop.End() <= id.Pos() && (!isFor || n.Cond != nil)
		}) {
			return false
		}
	}
	return true
}

// keepsRounding reports whether the use id of a product can't end up in a sum, as an operand
// that is not rounded.
func (r *restater) keepsRounding(id *ast.Ident) bool {
	var n ast.Node = id
	for {
		switch p := r.f.Parent(n).(type) {
		case *ast.ParenExpr:
			n = p
		case *ast.UnaryExpr:
			n = p
		case *ast.BinaryExpr:
			return p.Op != token.ADD && p.Op != token.SUB
		case *ast.CallExpr:
			if r.f.Info.Types[p.Fun].IsType() {
				return true
			}
			_, _, library := r.f.Library(p)
			_, _, number := r.function(p)
			return library || number || r.f.IsStandard(p)
		default:
			return false
		}
	}
}

// nameable returns why the reads in the argument of s, which have no variable, can't be
// taken before its statement, or nil: they need a name, as what they raise must be
// raised even if nothing else comes of them.
func (r *restater) nameable(s sink) *misfit {
	reads := r.itemsIn(s.arg)
	if len(reads) == 0 {
		return nil
	}
	if s.to != nil {
		reads = append(reads, r.itemsIn(s.to)...)
	}
	no := &misfit{plan.NoNumber, reads[0].Pos(), "reads " + types.ExprString(reads[0]) + " in the middle of a statement", "give the value a name before: v := " + types.ExprString(reads[0])}
	if s.stmt == nil || !r.inList(s.stmt) {
		return no
	}
	for _, read := range reads {
		if !r.f.AlwaysFirst(read, s.stmt) || r.callsBefore(read, s.stmt, reads, s.stems) {
			return no
		}
	}
	for _, read := range reads {
		if r.named[read] == "" {
			r.named[read] = r.namer.unused(base(ast.Unparen(read.Fun).(*ast.SelectorExpr).X))
			r.before[s.stmt] = append(r.before[s.stmt], read)
		}
	}
	return nil
}

// callsBefore reports whether s makes a call before it gets to read, other than those in reads and stems.
func (r *restater) callsBefore(read *ast.CallExpr, s ast.Stmt, reads []*ast.CallExpr, stems []ast.Expr) (found bool) {
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
		if call.End() <= read.Pos() && !r.f.Info.Types[call.Fun].IsType() {
			found = true
		}
		return !found
	})
	return found
}

// inList reports whether s is one of a list of statements.
func (r *restater) inList(s ast.Stmt) bool { return slices.Contains(list(r.f.Parent(s)), s) }
