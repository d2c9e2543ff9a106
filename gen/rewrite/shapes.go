package rewrite

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"github.com/asyncgen/asyncgen/gen/internal/plan"
)

// A shape says what is known of the shape of a tensor from one iteration to
// the next.
type shape int

const (
	same     shape = iota // it is that of the iteration before
	steady                // it is, once the tensors that come round are results of the loop itself
	varying               // it is one of those that there were, or another one
	looped                // it is that of the variable about which something is to be found out
	growing               // it is larger each time by as much, or part of something or made of something that is
	changing              // it may be another one
)

// isTotal reports whether call, of the operation fn, works on tensors of all shapes.
func isTotal(fn *types.Func, call *ast.CallExpr) bool {
	if recv := fn.Signature().Recv(); recv != nil && tensorapi.IsNumber(recv.Type()) {
		return fn.Name() != "Full" && fn.Name() != "Tensor" // which are given a shape
	}
	switch fn.Name() {
	case "Sum", "Mean", "Norm":
		return len(call.Args) == 0
	}
	return canNotFail[fn.Name()]
}

// canNotFail are operations that work on tensors of all shapes.
var canNotFail = set(`
	Abs AddF64 AddScalar Ceil Cos Detach DType Erf Exp Expm1 Flatten Floor Log Log1p MulF64 MulScalar Neg Rank Reciprocal ReLU Round
	Shape Sigmoid Sign Sin Size Sqrt Square SubF64 SubScalar Tanh Value`)

// keepsShape are operations of which the result has a shape that does not
// change any more if it comes back as an operand.
var keepsShape = set(`
	Abs Add AddF64 AddScalar AddScaled AddScaledF64 And As BroadcastTo Ceil Cos Detach Div DivF64 DivScalar Eq Erf Exp Expm1 Flatten Floor Ge Gt Le Linear LinearReLU Log
	Log1p Lt MatMul Maximum MaxKeep MeanKeep Minimum MinKeep Mul MulF64 MulScalar Ne Neg Not Or Pow Reciprocal ReLU Reshape Round Sigmoid
	Sign Sin Sqrt Square Sub SubF64 SubScalar SumKeep Tanh To Track Where`)

// reductions without an axis have results without axes.
var reductions = set("Sum Mean Max Min Prod All Any Norm Dot MSELoss")

func set(names string) map[string]bool {
	m := make(map[string]bool)
	for name := range strings.FieldsSeq(names) {
		m[name] = true
	}
	return m
}

// operands returns what is known of the shapes of the tensors that a call is given.
func (p *past) operands(call *ast.CallExpr, in *plan.Stmt) shape {
	s := same
	if sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr); ok && p.isTensor(sel.X) {
		s = p.shape(sel.X, in)
	}
	for _, arg := range call.Args {
		if p.isTensor(arg) || p.isTensors(arg) && !p.fixed(arg) {
			s = max(s, p.shape(arg, in))
		}
	}
	for _, id := range p.a.f.CapturedBy(call) {
		if p.isTensor(id) || p.isTensors(id) && !p.fixed(id) {
			s = max(s, p.shape(id, in))
		}
	}
	return s
}

// comparedOperands is operands for a call that needs tensors of the same shapes: those that come round are compared with
// what they were, if need be.
func (p *past) comparedOperands(call *ast.CallExpr, in *plan.Stmt) shape {
	for {
		s := p.operands(call, in)
		if s <= steady || !slices.ContainsFunc(p.carriedIn(call), p.compare) {
			return s
		}
	}
}

// carriedIn returns the variables in n that keep their values from one iteration to the next.
func (p *past) carriedIn(n ast.Node) (vars []types.Object) {
	ast.Inspect(n, func(m ast.Node) bool {
		if id, ok := m.(*ast.Ident); ok {
			if v, ok := p.a.f.Info.Uses[id].(*types.Var); ok && p.carried(v) && slices.Contains(p.written, v) {
				vars = append(vars, v)
			}
		}
		return true
	})
	return vars
}

// capturesOther reports whether call, of a function literal, may find another value than in the iteration before in a
// variable that is no tensor.
func (p *past) capturesOther(call *ast.CallExpr) bool {
	return slices.ContainsFunc(p.a.f.CapturedBy(call), func(id *ast.Ident) bool { return !p.isTensor(id) && !p.isTensors(id) && !p.fixed(id) })
}

// isTensors reports whether e is a struct of tensors that can be compared, and of nothing else.
func (p *past) isTensors(e ast.Expr) bool {
	tv, ok := p.a.f.Info.Types[e]
	return ok && tv.IsValue() && len(p.tensorsIn(tv.Type)) > 0
}

// tensorsIn returns the names of the fields of t, if it is a struct of tensors that the function can name, and of
// nothing else.
func (p *past) tensorsIn(t types.Type) (names []string) {
	s, ok := t.Underlying().(*types.Struct)
	if !ok || tensorapi.IsNumber(t) {
		return nil
	}
	for f := range s.Fields() {
		if !p.a.f.Analysis.API.IsTensor(f.Type()) || f.Name() == "_" || !f.Exported() && f.Pkg() != p.a.f.Pkg.Types {
			return nil
		}
		names = append(names, f.Name())
	}
	return names
}

// ofShape reports whether e, which stands in the statement in, asks for something about the shape of a
// tensor that has the same in every iteration: x.Dim(0). A tensor that comes round is compared, if need be.
func (p *past) ofShape(e ast.Expr, in *plan.Stmt) bool {
	call, ok := ast.Unparen(e).(*ast.CallExpr)
	if !ok {
		return false
	}
	sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr)
	if _, api, kind := p.a.f.Callee(call); !ok || kind != plan.CallsLibrary || api.Kind != tensorapi.Meta || !p.isTensor(sel.X) {
		return false
	}
	if slices.ContainsFunc(call.Args, func(arg ast.Expr) bool { return !p.fixed(arg) }) {
		return false
	}
	s := p.shape(sel.X, in)
	if id, ok := ast.Unparen(sel.X).(*ast.Ident); ok && s != same && p.compare(p.a.f.Info.ObjectOf(id)) {
		s = p.shape(sel.X, in)
	}
	return s == same
}

func (p *past) isTensor(e ast.Expr) bool {
	tv, ok := p.a.f.Info.Types[e]
	return ok && tv.IsValue() && p.a.f.Analysis.API.IsTensor(tv.Type)
}

// shape returns what is known of the shape of e, which stands in the statement in.
func (p *past) shape(e ast.Expr, in *plan.Stmt) shape {
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		v, ok := p.a.f.Info.ObjectOf(e).(*types.Var)
		if !ok {
			return changing
		}
		switch {
		case p.a.contained != nil && p.isElement(e):
			return varying
		case p.a.contained == nil && p.isGiven(e, v, in):
			return same
		}
		s := p.variable(v)
		if p.compared[v] && p.asItCame(v, in) {
			return same
		}
		return s
	case *ast.CallExpr:
		return p.result(e, in)
	case *ast.SelectorExpr, *ast.IndexExpr:
		if p.fixed(e) {
			return same
		}
		if p.a.contained != nil && p.isElement(e) {
			return varying
		}
		root := rootOf(p.a.f, e)
		if p.a.contained == nil && root != nil && p.isGiven(e, root, in) {
			return same
		}
		if _, isField := ast.Unparen(e).(*ast.SelectorExpr); isField && root != nil && p.ranges(root) {
			return p.variable(root)
		}
		if v := p.field(e, root); v != nil && p.isTensor(e) {
			return p.variable(v)
		}
	}
	return changing
}

// ranges reports whether v is only given values by loops in the loop that range over what does not change: so
// that fields of v are those of the same elements in each iteration.
func (p *past) ranges(v *types.Var) bool {
	found := false
	for _, u := range p.a.units {
		if !writes(u.All(), v) {
			continue
		}
		n, ok := u.Stmt.Inner().(*ast.RangeStmt)
		if !ok || u.Stmt == p.a.loop || !p.fixed(n.X) {
			return false
		}
		found = true
	}
	return found && !p.carried(v)
}

// variable returns what is known of the shapes of the tensors that v is given.
func (p *past) variable(v types.Object) shape {
	if s, ok := p.shapes[v]; ok {
		return s
	}
	if p.a.contained != nil {
		return p.limited(v)
	}
	known := len(p.compared)
	p.shapes[v] = steady // in a circle
	if p.compared[v] {
		p.shapes[v] = same
	}
	s := same
	for _, u := range p.a.units {
		if !p.writes(u, v) {
			continue
		}
		s = max(s, p.assigned(u.Stmt, v))
		if p.fields[v] != nil && !p.always(u.Stmt) {
			s = changing
		}
		if n, ok := u.Stmt.Inner().(*ast.AssignStmt); ok && !p.compared[v] && !p.always(u.Stmt) {
			for i := range n.Lhs {
				if p.swaps(v.(*types.Var), n, i) {
					s = changing // found in the next iteration
				}
			}
		}
		if p.carried(v) && !p.compared[v] {
			s = max(s, steady)
		}
		if !p.always(u.Stmt) {
			s = max(s, varying)
		}
	}
	if len(p.compared) > known {
		delete(p.shapes, v)
		return p.variable(v) // with what is known now
	}
	settles := p.warm() >= 2 && p.comesRound() == 1 // is what it stays before anything runs past an exit
	if (s == changing || s == steady && !settles) && p.compare(v) {
		return p.variable(v)
	}
	if s == steady && !settles && p.carried(v) {
		s = varying
	}
	p.shapes[v] = s
	return s
}

// asItCame reports whether v, which comes round, still is what it was at the beginning of the iteration where the
// statement in begins.
func (p *past) asItCame(v types.Object, in *plan.Stmt) bool {
	return !slices.ContainsFunc(p.a.units, func(u *plan.Unit) bool {
		if !p.writes(u, v) {
			return false
		}
		for s := in; s != nil && s != p.a.loop; s = s.Parent {
			if s.IsLoop() && u.Stmt.Within(s) {
				return true
			}
		}
		return u.Stmt.Node.Pos() < in.Node.Pos()
	})
}

// swaps reports whether n assigns to v, as its i-th operand, what is not made of v itself in a way that
// keeps its shape. v is a tensor that comes round and is used in the loop.
func (p *past) swaps(v *types.Var, n *ast.AssignStmt, i int) bool {
	id, ok := ast.Unparen(n.Lhs[i]).(*ast.Ident)
	if !ok || p.a.f.Info.ObjectOf(id) != v || !p.a.f.Analysis.API.IsTensor(v.Type()) || !p.carried(v) {
		return false
	}
	used := slices.ContainsFunc(p.a.units, func(u *plan.Unit) bool {
		_, reads := u.All().Reads[plan.Loc{Kind: plan.Var, Obj: v}]
		return reads
	})
	if !used || len(n.Lhs) != len(n.Rhs) {
		return used
	}
	e := n.Rhs[i]
	for {
		call, ok := ast.Unparen(e).(*ast.CallExpr)
		if !ok {
			break
		}
		fn, _, kind := p.a.f.Callee(call)
		sel, isSel := ast.Unparen(call.Fun).(*ast.SelectorExpr)
		if kind != plan.CallsLibrary || !isSel || !canNotFail[fn.Name()] || !keepsShape[fn.Name()] || fn.Name() == "Flatten" {
			return true
		}
		e = sel.X
	}
	from, ok := ast.Unparen(e).(*ast.Ident)
	return !ok || p.a.f.Info.ObjectOf(from) != v
}

// compare makes each iteration compare v, a tensor that comes round, with what it was at the
// beginning of the one before: if it is alike then, so is all that is computed of it. It
// reports whether that is new.
func (p *past) compare(v types.Object) bool {
	lv, ok := v.(*types.Var)
	first := p.begins()
	var parts []string // of v, if it is a struct
	if ok && !p.a.f.Analysis.API.IsTensor(v.Type()) {
		parts = p.tensorsIn(v.Type())
		ok = len(parts) > 0
	}
	if !ok || p.compared[v] || !p.carried(v) || p.a.f.Visible(p.root(v)) || first == nil {
		return false
	}
	if !p.a.f.Sees(first.Node.Pos(), p.root(v)) {
		return false
	}
	p.compared[v] = true
	what := given{ast.NewIdent(v.Name()), lv, first}
	if at := p.fields[v]; at != nil {
		what = given{at.expr, at.root, first}
	}
	for _, name := range parts {
		p.given = append(p.given, given{&ast.SelectorExpr{X: what.tensor, Sel: ast.NewIdent(name)}, what.root, first})
	}
	if len(parts) == 0 {
		p.given = append(p.given, what)
	}
	clear(p.shapes) // they were found without
	return true
}

// begins returns the first statement of the body of the loop after what is tested later of its condition, or nil.
func (p *past) begins() *plan.Stmt {
	for _, s := range p.a.loop.Bodies[0] {
		if !s.IsTest {
			return s
		}
	}
	return nil
}

// warm is how many iterations, at the least, come to their end before anything runs past an exit. A loop
// may run ahead of one test when two have been false.
func (p *past) warm() int {
	switch n := len(p.a.loopExits()); n {
	case 1, 2:
		for _, s := range p.a.loopExits() {
			if s.Loop() != p.a.loop && s != p.a.loop {
				return 0
			}
		}
		return 3 - n
	}
	return 0
}

// comesRound is how many tensors keep the values that iterations give them.
func (p *past) comesRound() (n int) {
	for _, v := range p.written {
		switch {
		case !p.carried(v):
		case p.a.f.Analysis.API.IsTensor(v.Type()):
			n++
		case p.hasTensor(v.Type()):
			n += 2 // or more
		}
	}
	for range p.a.undone {
		n += 2 // or none
	}
	return n
}

// hasTensor reports whether t is a struct with a field that is a tensor, or in one that is such a struct.
func (p *past) hasTensor(t types.Type) bool {
	s, ok := t.Underlying().(*types.Struct)
	if !ok || tensorapi.IsNumber(t) { // whose shape is always the same
		return false
	}
	for f := range s.Fields() {
		if p.a.f.Analysis.API.IsTensor(f.Type()) || p.hasTensor(f.Type()) {
			return true
		}
	}
	return false
}

// A field is one of a struct that a local variable holds, or points to.
type field struct {
	root   *types.Var
	expr   ast.Expr // root.a.b
	behind plan.Loc // if root points to the struct
}

// field returns what stands for e, a field of root, as if it were a variable of its own; nil if others may lead to it.
func (p *past) field(e ast.Expr, root *types.Var) *types.Var {
	sel, ok := ast.Unparen(e).(*ast.SelectorExpr)
	var behind plan.Loc
	if ok && root == nil {
		root, behind = p.pointer(sel)
	}
	if !ok || root == nil || p.a.f.Visible(root) || !p.a.f.CanCopy(root) {
		return nil
	}
	text, exact := p.path(sel)
	if !exact {
		return nil
	}
	for v, at := range p.fields {
		if at.root == root && v.Name() == text {
			return v.(*types.Var)
		}
	}
	v := types.NewVar(root.Pos(), root.Pkg(), text, p.a.f.Info.TypeOf(e))
	p.fields[v] = &field{root, e, behind}
	return v
}

// pointer returns the variable that sel, a field behind it, begins with, and the place of the
// field: if the variable is the same and not nil in all of the loop, which gives back what it
// changes there.
func (p *past) pointer(sel *ast.SelectorExpr) (*types.Var, plan.Loc) {
	v := p.a.f.Variable(sel.X)
	body := p.a.loop.Bodies[0]
	if v == nil || !p.a.isFieldOf(sel, v) || len(p.a.undone) == 0 || p.a.f.Sets(v) != 1 || v.Pos() >= p.a.loop.Node.Pos() || len(body) == 0 {
		return nil, plan.Loc{}
	}
	if !p.a.leadsBefore(v) && (body[0].IsTest || body[0].IsCompound() || !p.a.followsFirst(v, body[0].Node)) {
		return nil, plan.Loc{}
	}
	return v, plan.FieldLoc(p.a.f.Info.Selections[sel])
}

// rootOf is [rootOf], or the pointer that e, a field, is behind.
func (p *past) rootOf(e ast.Expr) *types.Var {
	if v := rootOf(p.a.f, e); v != nil {
		return v
	}
	if sel, ok := ast.Unparen(e).(*ast.SelectorExpr); ok {
		return p.a.f.Variable(sel.X)
	}
	return nil
}

// path returns the names on the way from a variable to e, with dots between them. It is not exact
// if e may be a part of what is there.
func (p *past) path(e ast.Expr) (names string, exact bool) {
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		return e.Name, true
	case *ast.SelectorExpr:
		names, exact = p.path(e.X)
		if sel := p.a.f.Info.Selections[e]; !exact || sel == nil || len(sel.Index()) > 1 {
			return names, false
		}
		return names + "." + e.Sel.Name, true
	case *ast.IndexExpr:
		names, _ = p.path(e.X)
	}
	return names, false
}

// isField reports whether e is the field that v stands for.
func (p *past) isField(e ast.Expr, v types.Object) bool {
	names, exact := p.path(e)
	return exact && names == v.Name() && p.rootOf(e) == p.root(v)
}

// root returns the variable that v is, or that it is a field of.
func (p *past) root(v types.Object) *types.Var {
	if at := p.fields[v]; at != nil {
		return at.root
	}
	return v.(*types.Var)
}

// writes reports whether u gives v another value. A field of a variable is left alone by what sets other fields.
func (p *past) writes(u *plan.Unit, v types.Object) bool {
	if at := p.fields[v]; at != nil && at.behind.Obj != nil {
		return u.All().Touches(at.behind)
	}
	if !writes(u.All(), p.root(v)) || p.fields[v] == nil {
		return writes(u.All(), p.root(v))
	}
	var set []ast.Expr
	switch n := u.Stmt.Inner().(type) {
	case *ast.AssignStmt:
		set = n.Lhs
	case *ast.IncDecStmt:
		set = []ast.Expr{n.X}
	}
	if len(set) == 0 || u.Whole {
		return true
	}
	for _, e := range set {
		text, _ := p.path(e)
		if rootOf(p.a.f, e) == p.root(v) && (strings.HasPrefix(v.Name()+".", text+".") || strings.HasPrefix(text+".", v.Name()+".")) {
			return true
		}
	}
	return false
}

// assigned returns what is known of what s assigns to v.
func (p *past) assigned(s *plan.Stmt, v types.Object) shape {
	info := p.a.f.Info
	switch n := s.Inner().(type) {
	case *ast.AssignStmt:
		for i, lhs := range n.Lhs {
			id, ok := ast.Unparen(lhs).(*ast.Ident)
			if ok && info.ObjectOf(id) == v || p.fields[v] != nil && p.isField(lhs, v) {
				switch {
				case n.Tok != token.ASSIGN && n.Tok != token.DEFINE:
				case len(n.Rhs) == len(n.Lhs):
					return p.shape(n.Rhs[i], s)
				case len(n.Rhs) == 1:
					return p.shape(n.Rhs[0], s)
				}
			}
		}
	case *ast.DeclStmt:
		for _, spec := range n.Decl.(*ast.GenDecl).Specs {
			vs, ok := spec.(*ast.ValueSpec)
			if !ok {
				continue
			}
			for i, name := range vs.Names {
				if info.ObjectOf(name) == v && len(vs.Values) == len(vs.Names) {
					return p.shape(vs.Values[i], s)
				}
			}
		}
	case *ast.RangeStmt:
		switch {
		case !p.fixed(n.X):
		case s != p.a.loop:
			return same // the same ones each time
		case p.a.contained != nil:
			return varying
		}
	case *ast.ExprStmt:
		if call, ok := n.X.(*ast.CallExpr); ok && p.a.f.IsChoice(call) {
			return p.chosen(call, s, v)
		}
	}
	return changing
}

// chosen returns what is known of what a choice, in s, assigns to v.
func (p *past) chosen(call *ast.CallExpr, s *plan.Stmt, v types.Object) shape {
	found := varying
	for _, side := range plan.Sides(call) {
		ast.Inspect(side.Body, func(n ast.Node) bool {
			a, ok := n.(*ast.AssignStmt)
			if !ok {
				return true
			}
			for i, lhs := range a.Lhs {
				if id, ok := ast.Unparen(lhs).(*ast.Ident); ok && p.a.f.Info.ObjectOf(id) == v && len(a.Lhs) == len(a.Rhs) {
					found = max(found, p.shape(a.Rhs[i], s))
				}
			}
			return true
		})
	}
	return found
}

// result returns what is known of the shape of the result of a call.
func (p *past) result(call *ast.CallExpr, in *plan.Stmt) shape {
	s := p.operands(call, in)
	if s == changing {
		return s
	}
	fn, api, kind := p.a.f.Callee(call)
	if kind == plan.CallsUnknown && p.a.contained == nil {
		if s == same && p.goesByTensors(call) {
			return same
		}
		return changing
	}
	if p.a.contained != nil && (kind == plan.CallsUnknown || !oneRow[fn.Name()] && !p.sized(call)) {
		return p.outcome(call, s)
	}
	switch kind {
	case plan.CallsLibrary:
		switch {
		case api.Kind == tensorapi.Value && p.setsCells():
			if p.warm() < 2 {
				return varying
			}
			return steady // cells are given what has been computed of them
		case api.Kind == tensorapi.Value:
			return same
		case reductions[fn.Name()] && (len(call.Args) == 0 || fn.Name() == "Dot" || fn.Name() == "MSELoss"):
			return same
		case s == same || keepsShape[fn.Name()]:
			return s
		}
	case plan.CallsFunction:
		if !p.plainly(fn) && p.chooses(call) {
			return varying
		}
		if s == same || p.keeps(fn, make(map[*types.Func]bool)) {
			return s
		}
	}
	if p.a.contained != nil {
		return p.outcome(call, s)
	}
	return changing
}

// goesByTensors reports whether nothing that call goes by may be other than in the iteration before, but tensors.
func (p *past) goesByTensors(call *ast.CallExpr) bool {
	if !p.fixed(call.Fun) || p.capturesOther(call) || p.a.f.Effects(call).Needs(p.changed.WithoutVariables()) {
		return false
	}
	return !slices.ContainsFunc(call.Args, func(arg ast.Expr) bool { return !p.isTensor(arg) && !p.isTensors(arg) && !p.fixed(arg) })
}

// chooses reports whether a function may return another one of its tensors each time.
func (p *past) chooses(call *ast.CallExpr) bool {
	e := p.a.f.Effects(call)
	return e.Needs(p.changed.WithoutVariables()) || slices.ContainsFunc(call.Args, func(arg ast.Expr) bool {
		return !p.isTensor(arg) && !p.isTensors(arg) && !p.fixed(arg)
	})
}

// setsCells reports whether the loop gives cells tensors of its own making, which may have another shape.
func (p *past) setsCells() (found bool) {
	for _, u := range p.ahead {
		for _, n := range p.nodes(u) {
			found = found || p.callsMutator(p.a.f, n, []string{"Set", "Restore"}, make(map[*types.Func]bool))
		}
	}
	return found
}

// keeps reports whether fn computes with operations alone that keep shapes.
func (p *past) keeps(fn *types.Func, seen map[*types.Func]bool) bool {
	body, ok := p.a.f.Analysis.Program.Body(fn)
	if !ok || seen[fn] {
		return false
	}
	seen[fn] = true
	f, keeps := p.a.f.Analysis.Function(body.Pkg, body.Decl), true
	ast.Inspect(body.Decl.Body, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || f.Info.Types[call.Fun].IsType() {
			return keeps
		}
		callee, api, kind := f.Callee(call)
		switch kind {
		case plan.CallsLibrary:
			keeps = keeps && (keepsShape[callee.Name()] || reductions[callee.Name()] && len(call.Args) == 0 || api.Kind == tensorapi.Value || api.Kind == tensorapi.Meta)
		case plan.CallsFunction:
			keeps = keeps && p.keeps(callee, seen)
		case plan.CallsBuiltin, plan.CallsTotal:
		default:
			keeps = false
		}
		return keeps
	})
	return keeps
}

// rootOf returns the variable that a chain of fields and indices begins with,
// if it follows no pointer.
func rootOf(f *plan.Function, e ast.Expr) *types.Var {
	for {
		switch x := ast.Unparen(e).(type) {
		case *ast.Ident:
			v, _ := f.Info.ObjectOf(x).(*types.Var)
			return v
		case *ast.SelectorExpr:
			if sel := f.Info.Selections[x]; sel == nil || sel.Indirect() || isPointer(f.Info.TypeOf(x.X)) {
				return nil
			}
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		default:
			return nil
		}
	}
}

func isPointer(t types.Type) bool { _, ok := t.Underlying().(*types.Pointer); return ok }

// isGiven reports whether e, which begins with root, is a tensor from outside,
// of the iteration: an element of something that the loop does not change. If
// so, the iteration has to be compared with the one before.
func (p *past) isGiven(e ast.Expr, root *types.Var, in *plan.Stmt) bool {
	if !p.fromElement(e, root) {
		return false
	}
	p.given = addGiven(p.given, e, root, p.top(in))
	return true
}

// top returns the statement of the body that s is part of.
func (p *past) top(s *plan.Stmt) *plan.Stmt {
	for s.Parent != nil && s.Parent != p.a.loop {
		s = s.Parent
	}
	return s
}

// addGiven adds e, which begins with root and is used in the statement by.
func addGiven(list []given, e ast.Expr, root *types.Var, by *plan.Stmt) []given {
	text := types.ExprString(e)
	i := slices.IndexFunc(list, func(g given) bool { return types.ExprString(g.tensor) == text && g.root == root })
	if i < 0 {
		return append(list, given{e, root, by})
	}
	if g := &list[i]; by.Node.Pos() < g.by.Node.Pos() {
		g.by = by
	}
	return list
}

// fromElement reports whether e is an element of something fixed, or a part of one: xs[i], or what the loop ranges over,
// or a variable that is set to one.
func (p *past) fromElement(e ast.Expr, root *types.Var) bool {
	if ix, ok := elementOf(e); ok {
		return p.fixed(ix.X) && p.inRange(ix) && p.ofHead(ix.Index)
	}
	sets := 0
	from := false
	for _, u := range p.a.units {
		if !writes(u.All(), root) {
			continue
		}
		sets++
		switch n := u.Stmt.Inner().(type) {
		case *ast.RangeStmt: // over whatever: what it gives is compared
			isOf := func(e ast.Expr) bool {
				id, ok := e.(*ast.Ident)
				return ok && p.a.f.Info.ObjectOf(id) == root
			}
			from = u.Stmt == p.a.loop && n.Tok == token.DEFINE && (isOf(n.Value) || isOf(n.Key))
		case *ast.AssignStmt:
			if u.Stmt.Parent != p.a.loop || n.Tok != token.DEFINE || len(n.Lhs) != 1 || len(n.Rhs) != 1 {
				return false
			}
			ix, ok := elementOf(n.Rhs[0])
			from = ok && p.fixed(ix.X) && p.inRange(ix)
		}
	}
	return sets == 1 && from
}

// elementOf returns the index expression that a chain of fields begins with.
func elementOf(e ast.Expr) (*ast.IndexExpr, bool) {
	for {
		switch x := ast.Unparen(e).(type) {
		case *ast.SelectorExpr:
			e = x.X
		case *ast.IndexExpr:
			return x, true
		default:
			return nil, false
		}
	}
}

// ofHead reports whether e uses no variables but those of the head of the loop
// and those from before.
func (p *past) ofHead(e ast.Expr) bool {
	body, inside := p.a.loop.Bodies[0], false
	if len(body) == 0 {
		return true
	}
	ast.Inspect(e, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			if v, ok := p.a.f.Info.ObjectOf(id).(*types.Var); ok {
				first := body[0]
				if first.IsTest && len(body) > 1 {
					first = body[1]
				}
				inside = inside || first.Node.Pos() <= v.Pos() && v.Pos() < p.a.loop.Node.End()
			}
		}
		return !inside
	})
	return !inside
}

// guard is what compares an iteration with the one before, and looks at the
// types of elements; nil if there is no need.
func (p *past) guard() *plan.Guard {
	g := &plan.Guard{}
	if len(p.given) == 0 && p.warm() > 0 && len(p.floats) == 0 {
		return nil
	}
	if g.First = len(p.given) == 0 && p.warm() == 0; g.First {
		g.Before = p.a.loop.Bodies[0][0]
	}
	for _, x := range p.given {
		g.Tensors = append(g.Tensors, x.tensor)
	}
	for _, x := range p.floats {
		g.Floats = append(g.Floats, x.tensor)
	}
	for _, x := range slices.Concat(p.given, p.floats) {
		if g.Before == nil || x.by.Node.Pos() < g.Before.Node.Pos() {
			g.Before = x.by
		}
	}
	return g
}

// guards returns that there is no place at which all that an iteration is
// given is known and none of it used, or nil.
func (p *past) guards() *plan.Reason {
	if p.a.contained != nil {
		return nil // nothing has to be like before
	}
	g := p.guard()
	if g == nil {
		return nil
	}
	if g.First && g.Before.IsTest {
		return p.fails(plan.Cause{Pos: p.a.loop.Node.Pos(), Text: "tests values before it is known whether the iteration is like those before"})
	}
	hidden := func(x given) bool {
		return g.Before.Node.Pos() <= x.root.Pos() && x.root.Pos() < p.a.loop.Node.End() || g.Before.IsTest || !p.a.f.Sees(g.Before.Node.Pos(), x.root)
	}
	for _, x := range p.given {
		if hidden(x) {
			return p.fails(plan.Cause{Pos: x.tensor.Pos(), Text: "uses " + types.ExprString(x.tensor) + ", which may be of another shape each time"})
		}
	}
	for _, x := range p.floats {
		if hidden(x) {
			return p.fails(plan.Cause{Pos: x.tensor.Pos(), Text: "multiplies " + types.ExprString(x.tensor) + " or the like by a number, and may have integers"})
		}
	}
	return nil
}
