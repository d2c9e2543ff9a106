package rewrite

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"maps"
	"slices"

	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"github.com/asyncgen/asyncgen/gen/internal/plan"
)

// past is the proof that what a loop does past an exit, until the exit is
// known, does no harm:
//
//   - what it changes is given back: variables by the state, cells by the library (cells.go).
//     Memory that others can see is never changed ahead of values;
//   - it can't fail where the iterations before did not: an iteration makes the same calls on
//     tensors of the same shapes, and what could fail on the host depends on nothing that changes. The
//     first iteration never runs past an exit: there are few tests in it, or Alike says that it is the first. Or
//     else what fails is dropped: see contain.go;
//   - it comes to an end.
//
// What may wait for the outside, and other statements that run now, are no
// concern: exits are settled before them.
type past struct {
	a       *attempt
	written []*types.Var   // variables that the loop changes ahead of values, in source order
	changed *plan.Effects  // all that the loop changes
	ahead   []*plan.Unit   // what runs past exits
	cells   []plan.CellsOf // that the loop changes and that may not say so
	given   []given
	floats  []given // that must have floating-point numbers

	shapes map[types.Object]shape
	fields map[types.Object]*field
	// tensors from before the loop that each iteration compares with those of the one before
	compared map[types.Object]bool
}

// A given is a tensor from outside, another one in each iteration, and the
// statement of the body in which it is used first.
type given struct {
	tensor ast.Expr
	root   *types.Var
	by     *plan.Stmt
}

// disproves reports whether it has been found that an exit can't be decided
// later, or that a statement must run now, because of what would run past the exits.
func (a *attempt) disproves() bool {
	if a.harm != nil || !a.hasExits() {
		return false
	}
	if a.contained != nil && !a.isClosed() {
		a.contain(nil)
		return true
	}
	p := a.newPast()
	for _, u := range p.ahead {
		if c := u.All().Waits; c != nil && !a.late[u] && u.Stmt != a.loop {
			// Waiting past an exit, for what is never computed, would be a failure.
			a.stay(u, refuse{Reason: reason(*c, plan.WaitsInside)})
			a.settled = append(a.settled, u.Stmt)
			return true
		}
		r := p.of(u)
		if r == nil {
			continue
		}
		if u.Stmt == a.loop || p.always(u.Stmt) || a.contained != nil {
			a.contain(r)
			return true
		}
		a.stay(u, refuse{Reason: *r})
		a.settled = append(a.settled, u.Stmt)
		return true
	}
	if r := cmpOr(p.memory(), p.findCells(), p.guards()); r != nil {
		a.contain(r)
		return true
	}
	a.past = p
	return false
}

// giveUp makes exits wait for their values, because of r. What had to run now
// for their sake need not any more.
func (a *attempt) giveUp(r *plan.Reason) {
	a.harm = r
	a.unsettle()
}

// unsettle lets go what had to run now for the sake of exits.
func (a *attempt) unsettle() {
	for _, s := range a.settled {
		delete(a.now, s)
		delete(a.whole, s)
	}
	a.settled = nil
}

func cmpOr(reasons ...*plan.Reason) *plan.Reason {
	for _, r := range reasons {
		if r != nil {
			return r
		}
	}
	return nil
}

func (a *attempt) newPast() *past {
	p := &past{a: a, changed: &plan.Effects{}, shapes: make(map[types.Object]shape), fields: make(map[types.Object]*field), compared: make(map[types.Object]bool)}
	seen := make(map[*types.Var]bool)
	for _, u := range a.units {
		p.changed.Add(u.All())
		if a.stays(u) || a.exits(u.Stmt) {
			continue
		}
		e := u.Ahead
		if !a.late[u] {
			e = u.All()
		}
		p.ahead = append(p.ahead, u)
		for l := range e.Writes {
			v, ok := l.Obj.(*types.Var)
			if ok && l.Kind == plan.Var && !seen[v] {
				seen[v] = true
				p.written = append(p.written, v)
			}
		}
	}
	slices.SortFunc(p.written, func(v, w *types.Var) int { return int(v.Pos() - w.Pos()) })
	return p
}

// nodes are the parts of u that run ahead.
func (p *past) nodes(u *plan.Unit) (nodes []ast.Node) {
	if p.a.late[u] {
		for _, r := range u.Reads {
			if r.Rows != nil {
				nodes = append(nodes, r.Rows.Count) // what it computes fails where it is needed
				continue
			}
			if r.Assign != nil {
				nodes = append(nodes, r.Assign)
				continue
			}
			nodes = append(nodes, r.Operand)
		}
		for _, e := range u.Held {
			nodes = append(nodes, e)
		}
		return nodes
	}
	return p.a.inPlace(u)
}

// inPlace are the parts of u, which looks at no value, if none of it comes later.
func (a *attempt) inPlace(u *plan.Unit) (nodes []ast.Node) {
	if !u.Stmt.IsCompound() {
		return []ast.Node{u.Stmt.Inner()}
	}
	add := func(list ...ast.Node) {
		for _, n := range list {
			switch n := n.(type) {
			case ast.Stmt, ast.Expr:
				if !isNil(n) {
					nodes = append(nodes, n)
				}
			}
		}
	}
	switch n := u.Stmt.Inner().(type) {
	case *ast.IfStmt:
		for {
			add(n.Init, n.Cond)
			e, ok := n.Else.(*ast.IfStmt)
			if !ok {
				break
			}
			n = e
		}
	case *ast.ForStmt:
		if u.Stmt != a.loop {
			add(n.Init)
		}
		if u.Stmt == a.loop && a.tests != nil {
			for _, e := range a.keep {
				add(e)
			}
		} else {
			add(n.Cond)
		}
		add(n.Post)
	case *ast.RangeStmt:
		if u.Stmt != a.loop {
			add(n.X)
		}
	case *ast.SwitchStmt:
		add(n.Init, n.Tag)
		for _, c := range n.Body.List {
			for _, e := range c.(*ast.CaseClause).List {
				add(e)
			}
		}
	case *ast.TypeSwitchStmt:
		add(n.Init, n.Assign)
	case *ast.SelectStmt:
		for _, c := range n.Body.List {
			add(c.(*ast.CommClause).Comm)
		}
	}
	return nodes
}

// isNil reports whether an interface holds a nil node.
func isNil(n ast.Node) bool {
	switch n := n.(type) {
	case ast.Expr:
		return n == nil
	case ast.Stmt:
		return n == nil
	}
	return true
}

// always reports whether s runs in every iteration, and as often in each.
func (p *past) always(s *plan.Stmt) bool {
	for c := s; c.Parent != nil; c = c.Parent {
		if c.Parent == p.a.loop {
			return !p.skipped(c)
		}
		switch n := c.Parent.Inner().(type) {
		case *ast.BlockStmt:
		case *ast.RangeStmt:
			if !p.fixed(n.X) {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// skipped reports whether some iterations end before they come to s, a
// statement of the body.
func (p *past) skipped(s *plan.Stmt) bool {
	for _, c := range p.a.loop.Bodies[0] {
		if c == s {
			return false
		}
		for d := range c.All {
			if restarts(d, p.a.loop) {
				return true
			}
		}
	}
	return false
}

// of returns the harm that u could do past an exit, or nil.
func (p *past) of(u *plan.Unit) *plan.Reason {
	e := u.Ahead
	if !p.a.late[u] {
		e = u.All()
	}
	if c, ok := e.Writes[plan.Loc{Kind: plan.Random}]; ok {
		return &plan.Reason{Code: plan.PastRandom, Cause: c, Hint: "draw them before the loop, or with tensor.Rand"}
	}
	if c := firstOf(e.Ends, e.Waits); c != nil {
		return p.fails(*c)
	}
	always := u.Stmt == p.a.loop || p.always(u.Stmt)
	if c := p.endless(u); c != nil {
		return p.fails(*c)
	}
	for _, n := range p.nodes(u) {
		if c := p.partial(n, always, u.Stmt); c != nil {
			return p.fails(*c)
		}
	}
	return nil
}

func (p *past) fails(c plan.Cause) *plan.Reason {
	hint := sooner(c)
	c.Text += ", and the loop runs past its end until the value is there"
	return &plan.Reason{Code: plan.PastFails, Cause: c, Hint: hint}
}

// fixed reports whether e has the same value in every iteration.
func (p *past) fixed(e ast.Expr) bool {
	if tv := p.a.f.Info.Types[e]; tv.Value != nil || tv.IsType() {
		return true
	}
	if v := p.field(e, rootOf(p.a.f, e)); v != nil {
		return !slices.ContainsFunc(p.a.units, func(u *plan.Unit) bool { return p.writes(u, v) })
	}
	found := p.a.f.Effects(e)
	return found.Barrier == nil && found.Clock == nil && found.Polls == nil && !found.Needs(p.changed)
}

// endless returns that an inner loop may not come to an end, or nil.
func (p *past) endless(u *plan.Unit) *plan.Cause {
	n, ok := u.Stmt.Inner().(*ast.ForStmt)
	if !ok || u.Stmt == p.a.loop {
		return nil
	}
	cond, ok := ast.Unparen(n.Cond).(*ast.BinaryExpr)
	id, isUp := p.counter(n.Post)
	if n.Cond != nil && ok && id != nil {
		counter := p.a.f.Info.ObjectOf(id)
		x, isID := ast.Unparen(cond.X).(*ast.Ident)
		up := isUp && (cond.Op == token.LSS || cond.Op == token.LEQ)
		down := !isUp && (cond.Op == token.GTR || cond.Op == token.GEQ)
		if isID && p.a.f.Info.ObjectOf(x) == counter && (up || down) && p.changedOnlyBy(counter, n) && !mentionsAny(p.a.f, cond.Y, changedIn(p.a.units, u.Stmt)) {
			return nil
		}
	}
	return &plan.Cause{Pos: n.Pos(), Text: "may go on for ever"}
}

// counter returns the variable that the post statement of a loop counts up or down, or nil. By more than 1 it is an int
// or int64, which does not come near to its end in the time that there is.
func (p *past) counter(post ast.Stmt) (id *ast.Ident, isUp bool) {
	switch n := post.(type) {
	case *ast.IncDecStmt:
		id, _ = n.X.(*ast.Ident)
		return id, n.Tok == token.INC
	case *ast.AssignStmt:
		if n.Tok != token.ADD_ASSIGN && n.Tok != token.SUB_ASSIGN {
			return nil, false
		}
		step := p.a.f.Info.Types[n.Rhs[0]].Value
		if step == nil || step.Kind() != constant.Int || constant.Sign(step) <= 0 || constant.BitLen(step) > 31 {
			return nil, false
		}
		id, ok := n.Lhs[0].(*ast.Ident)
		if !ok {
			return nil, false
		}
		b, ok := p.a.f.Info.TypeOf(id).Underlying().(*types.Basic)
		if !ok || b.Kind() != types.Int && b.Kind() != types.Int64 {
			return nil, false
		}
		return id, n.Tok == token.ADD_ASSIGN
	}
	return nil, false
}

// changedOnlyBy reports whether nothing in the body of n changes v.
func (p *past) changedOnlyBy(v types.Object, n *ast.ForStmt) bool {
	for _, u := range p.a.units {
		if n.Body.Pos() <= u.Stmt.Node.Pos() && u.Stmt.Node.Pos() < n.Body.End() && writes(u.Effects, v.(*types.Var)) {
			return false
		}
	}
	return true
}

// changedIn returns the variables that units in s change.
func changedIn(units []*plan.Unit, s *plan.Stmt) map[types.Object]bool {
	var in []*plan.Unit
	for _, u := range units {
		if u.Stmt.Within(s) {
			in = append(in, u)
		}
	}
	return changedBy(in)
}

func mentionsAny(f *plan.Function, n ast.Node, objs map[types.Object]bool) (found bool) {
	ast.Inspect(n, func(m ast.Node) bool {
		if id, ok := m.(*ast.Ident); ok {
			found = found || objs[f.Info.ObjectOf(id)]
		}
		return !found
	})
	return found
}

// partial returns what in n may fail although it did not in the iterations
// before, or nil. always says that every iteration comes to n.
func (p *past) partial(n ast.Node, always bool, in *plan.Stmt) (found *plan.Cause) {
	if p.a.contained != nil && in != p.a.loop {
		return p.unlimited(n, in)
	}
	report := func(at ast.Node, format string, args ...any) {
		if found == nil {
			found = &plan.Cause{Pos: at.Pos(), Text: fmt.Sprintf(format, args...)}
		}
	}
	same := func(list ...ast.Expr) bool {
		return always && !slices.ContainsFunc(list, func(e ast.Expr) bool { return e != nil && !p.fixed(e) })
	}
	info := p.a.f.Info
	store := func(lhs ast.Expr) {
		if ix, ok := ast.Unparen(lhs).(*ast.IndexExpr); ok && isMap(info.TypeOf(ix.X)) && !same(ix.X) {
			report(ix, "stores in %s, which may be nil", types.ExprString(ix.X))
		}
	}
	ast.Inspect(n, func(m ast.Node) bool {
		if found != nil {
			return false
		}
		switch m := m.(type) {
		case *ast.FuncLit:
			return false
		case *ast.IndexExpr:
			if t, ok := info.TypeOf(m.X).Underlying().(*types.Map); ok && mayNotCompare(t.Key()) && !same(m.Index) {
				report(m, "may look for a key in %s that can't be compared", types.ExprString(m.X))
			}
			if !p.inRange(m) && !same(m.X, m.Index) {
				report(m, "may index beyond the end of %s", types.ExprString(m.X))
			}
		case *ast.SliceExpr:
			if !same(m.X, m.Low, m.High, m.Max) {
				report(m, "may slice beyond the end of %s", types.ExprString(m.X))
			}
		case *ast.BinaryExpr:
			switch m.Op {
			case token.QUO, token.REM:
				if isInteger(info.TypeOf(m)) && !isNonzero(info, m.Y) && !same(m.Y) {
					report(m, "may divide by zero")
				}
			case token.SHL, token.SHR:
				if info.Types[m.Y].Value == nil && !isUnsigned(info.TypeOf(m.Y)) && !same(m.Y) {
					report(m, "may shift by a negative number")
				}
			case token.EQL, token.NEQ:
				if mayNotCompare(info.TypeOf(m.X)) && mayNotCompare(info.TypeOf(m.Y)) && !same(m.X, m.Y) {
					report(m, "may compare what can't be compared")
				}
			}
		case *ast.AssignStmt:
			switch m.Tok {
			case token.QUO_ASSIGN, token.REM_ASSIGN:
				if isInteger(info.TypeOf(m.Lhs[0])) && !isNonzero(info, m.Rhs[0]) && !same(m.Rhs[0]) {
					report(m, "may divide by zero")
				}
			case token.SHL_ASSIGN, token.SHR_ASSIGN:
				if info.Types[m.Rhs[0]].Value == nil && !isUnsigned(info.TypeOf(m.Rhs[0])) && !same(m.Rhs[0]) {
					report(m, "may shift by a negative number")
				}
			}
			p.assigns(m, always, report)
			for _, lhs := range m.Lhs {
				store(lhs)
			}
		case *ast.IncDecStmt:
			store(m.X)
		case *ast.StarExpr:
			if info.Types[m].IsValue() && !same(m.X) {
				report(m, "follows a pointer that may be nil, %s", types.ExprString(m.X))
			}
		case *ast.SelectorExpr:
			sel := info.Selections[m]
			if sel == nil || sel.Kind() != types.FieldVal {
				break
			}
			if _, ptr := info.TypeOf(m.X).Underlying().(*types.Pointer); (ptr || sel.Indirect()) && !same(m.X) {
				report(m, "follows a pointer that may be nil, %s", types.ExprString(m.X))
			}
		case *ast.TypeAssertExpr:
			if m.Type != nil && !same(m.X) {
				report(m, "asserts a type")
			}
		case *ast.CallExpr:
			for _, e := range append([]ast.Expr{m.Fun}, m.Args...) { // what is wrong first comes first
				if c := p.partial(e, always, in); c != nil {
					found = c
					return false
				}
			}
			p.call(m, always, in, report)
			return false
		}
		return found == nil
	})
	return found
}

// assigns checks that tensors which come round again keep their shapes.
func (p *past) assigns(n *ast.AssignStmt, always bool, report func(ast.Node, string, ...any)) {
	for i, lhs := range n.Lhs {
		id, ok := ast.Unparen(lhs).(*ast.Ident)
		if !ok {
			continue
		}
		v, _ := p.a.f.Info.ObjectOf(id).(*types.Var)
		if v != nil && !always && p.swaps(v, n, i) {
			report(n, "may give %s another shape in some iterations", v.Name())
			return
		}
	}
}

// carried reports whether v keeps its value from one iteration to the next.
func (p *past) carried(v types.Object) bool {
	loop := p.a.loop.Node
	return v.Pos() < loop.Pos() || loop.End() <= v.Pos()
}

func isInteger(t types.Type) bool {
	b, ok := t.Underlying().(*types.Basic)
	return ok && b.Info()&types.IsInteger != 0
}

func isUnsigned(t types.Type) bool {
	b, ok := t.Underlying().(*types.Basic)
	return ok && b.Info()&types.IsUnsigned != 0
}

func isNonzero(info *types.Info, e ast.Expr) bool {
	v := info.Types[e].Value
	return v != nil && constant.Sign(v) != 0
}

// inRange reports whether an index can't be out of range.
func (p *past) inRange(e *ast.IndexExpr) bool {
	info := p.a.f.Info
	switch t := info.TypeOf(e.X).Underlying().(type) {
	case *types.Map, *types.Signature:
		return true
	case *types.Array:
		return info.Types[e.Index].Value != nil // else the compiler complains
	case *types.Slice, *types.Basic:
	default:
		_ = t
		return false
	}
	if !p.fixed(e.X) {
		return false
	}
	switch index := ast.Unparen(e.Index).(type) {
	case *ast.Ident:
		v := info.ObjectOf(index)
		return v != nil && p.bounded(v, e.X, e)
	case *ast.BinaryExpr: // i % len(xs), in a loop that would have failed before if that were zero
		id, ok := ast.Unparen(index.X).(*ast.Ident)
		return ok && index.Op == token.REM && isLen(info, index.Y, e.X) && p.counts(info.ObjectOf(id))
	}
	return false
}

func isMap(t types.Type) bool { _, ok := t.Underlying().(*types.Map); return ok }

// mayNotCompare reports whether a comparison of values of type t may fail: if
// it comes to values in interfaces, which may be slices.
func mayNotCompare(t types.Type) bool {
	switch t := t.Underlying().(type) {
	case *types.Interface: // of a type parameter as well
		return true
	case *types.Array:
		return mayNotCompare(t.Elem())
	case *types.Struct:
		for f := range t.Fields() {
			if mayNotCompare(f.Type()) {
				return true
			}
		}
	}
	return false
}

// isLen reports whether e is len(x).
func isLen(info *types.Info, e, x ast.Expr) bool {
	call, ok := ast.Unparen(e).(*ast.CallExpr)
	if !ok || len(call.Args) != 1 {
		return false
	}
	id, ok := ast.Unparen(call.Fun).(*ast.Ident)
	if !ok {
		return false
	}
	_, builtin := info.Uses[id].(*types.Builtin)
	return builtin && id.Name == "len" && types.ExprString(call.Args[0]) == types.ExprString(x)
}

// bounded reports whether the loop variable v is an index of x at the place of
// the index expression at.
func (p *past) bounded(v types.Object, x ast.Expr, at *ast.IndexExpr) bool {
	if !p.counts(v) {
		return false
	}
	info := p.a.f.Info
	for _, u := range p.a.units {
		if !u.Stmt.IsLoop() {
			continue
		}
		switch n := u.Stmt.Inner().(type) {
		case *ast.RangeStmt:
			if id, ok := n.Key.(*ast.Ident); ok && info.ObjectOf(id) == v {
				return types.ExprString(n.X) == types.ExprString(x) || isLen(info, n.X, x)
			}
		case *ast.ForStmt:
			conds := p.a.keep
			if n.Cond != nil && (u.Stmt != p.a.loop || p.a.tests == nil) {
				conds = plan.Conjuncts(n.Cond)
			}
			for _, c := range conds {
				b, ok := ast.Unparen(c).(*ast.BinaryExpr)
				if !ok || b.Op != token.LSS || !isLen(info, b.Y, x) {
					continue
				}
				if id, ok := ast.Unparen(b.X).(*ast.Ident); ok && info.ObjectOf(id) == v {
					// in the condition, what comes later is bounded
					return at.Pos() < n.Cond.Pos() || c.End() <= at.Pos()
				}
			}
		}
	}
	return false
}

// counts reports whether v only ever counts up from a number that is not
// negative, in the head of a loop or by ones in all of the function.
func (p *past) counts(v types.Object) bool {
	info, ok := p.a.f.Info, false
	for _, u := range p.a.units {
		if lv, isVar := v.(*types.Var); !isVar || !writes(u.All(), lv) {
			continue
		}
		switch n := u.Stmt.Inner().(type) {
		case *ast.IncDecStmt:
			if lv := v.(*types.Var); u.Whole || !p.carried(v) || !p.a.f.CountsUp(lv) {
				return false
			}
			ok = true
		case *ast.RangeStmt:
			id, isID := n.Key.(*ast.Ident)
			_, isMap := info.TypeOf(n.X).Underlying().(*types.Map)
			_, isFunc := info.TypeOf(n.X).Underlying().(*types.Signature)
			if !isID || info.ObjectOf(id) != v || isMap || isFunc || u.Whole {
				return false
			}
			ok = true
		case *ast.ForStmt:
			init, isInit := n.Init.(*ast.AssignStmt)
			post, isPost := n.Post.(*ast.IncDecStmt)
			if !isInit || !isPost || post.Tok != token.INC || len(init.Lhs) != 1 || init.Tok != token.DEFINE || u.Whole {
				return false
			}
			value := info.Types[init.Rhs[0]].Value
			id, isID := post.X.(*ast.Ident)
			if !isID || info.ObjectOf(id) != v || info.ObjectOf(init.Lhs[0].(*ast.Ident)) != v || value == nil || constant.Sign(value) < 0 {
				return false
			}
			ok = true
		default:
			return false
		}
	}
	return ok
}

// call checks a call.
func (p *past) call(call *ast.CallExpr, always bool, in *plan.Stmt, report func(ast.Node, string, ...any)) {
	f := p.a.f
	if f.Info.Types[call.Fun].IsType() {
		if isSliceToArray(f.Info, call) && (!always || !p.fixed(call.Args[0])) {
			report(call, "converts a slice that may be too short")
		}
		return
	}
	args := func(anyNumber bool) bool { // that are no tensors are the same every time
		for _, arg := range call.Args {
			if t := f.Info.TypeOf(arg); !f.Analysis.API.IsTensor(t) && !(anyNumber && isFloat(t)) && !tensorapi.IsNumber(t) && !p.fixed(arg) && !p.ofShape(arg, in) {
				return false
			}
		}
		return true
	}
	fn, api, kind := f.Callee(call)
	name := types.ExprString(call.Fun)
	switch kind {
	case plan.CallsBuiltin:
		if name == "make" && (!args(false) || !always && !allConstant(f.Info, call.Args[1:])) {
			report(call, "makes something of a size that may be wrong")
		}
	case plan.CallsTotal:
	case plan.CallsLibrary:
		if api.Kind == tensorapi.Pure {
			if !args(false) {
				report(call, "calls %s with another argument each time", name)
			}
			break
		}
		if f.IsChoice(call) {
			report(call, "lets the device choose, and may do what it has not done before")
			break
		}
		shape := p.operands(call, in)
		switch {
		case shape > varying, shape == varying && !isTotal(fn, call):
			report(call, "calls %s with a tensor whose shape may change", name)
		case fn.Name() == "Row" && p.rowOf(call): // there is one
		case !args(!needsNumbers[fn.Name()]):
			report(call, "calls %s with another argument each time", name)
		case !always && !isTotal(fn, call):
			report(call, "calls %s in some iterations only, so that what is wrong with its operands may not have shown before", name)
		default:
			if of := p.number(call, fn, always, in); of != nil {
				report(call, "calls %s, and it is not known whether the elements of %s are integers", name, types.ExprString(of))
			}
		}
	default: // of the program, or of the standard library
		if kind == plan.CallsFunction && p.calm(fn, make(map[*types.Func]bool)) && p.operands(call, in) != changing &&
			(always && !p.varies(call) || p.tensorsAreFloats(call, in, make(map[types.Object]bool))) {
			break
		}
		e := f.Effects(call)
		switch {
		case !always:
			report(call, "calls %s in some iterations only, which may fail", name)
		case p.isOther(call) || !args(kind == plan.CallsFunction && p.plainly(fn) && p.tensorsAreFloats(call, in, make(map[types.Object]bool))) || e.Needs(p.changed.WithoutVariables()):
			report(call, "calls %s, which may fail, with another argument each time", name)
		case p.operands(call, in) >= varying:
			report(call, "calls %s with a tensor whose shape may change", name)
		}
	}
}

// isOther reports whether a call of a method may be of another receiver each time: of none that the loop leaves alone,
// and of none that an inner loop gets out of a slice that it leaves alone.
func (p *past) isOther(call *ast.CallExpr) bool {
	f := p.a.f
	sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr)
	if !ok || f.Info.Selections[sel] == nil || p.fixed(sel.X) {
		return false
	}
	if t := f.Info.TypeOf(sel.X); f.Analysis.API.IsTensor(t) || tensorapi.IsNumber(t) {
		return false
	}
	id, ok := sel.X.(*ast.Ident)
	if !ok {
		return true
	}
	for s := range p.a.loop.All {
		n, ok := s.Inner().(*ast.RangeStmt)
		if ok && s != p.a.loop && n.Tok == token.DEFINE && n.Value != nil && f.Info.Defs[n.Value.(*ast.Ident)] == f.Info.ObjectOf(id) {
			return !p.fixed(n.X) || slices.ContainsFunc(slices.Collect(maps.Keys(p.changed.Writes)), func(l plan.Loc) bool { return l.Kind == plan.Elem })
		}
	}
	return true
}

// rowOf reports whether call, x.Row(i), asks a tensor that stays the same for a row in a loop that i numbers them in.
func (p *past) rowOf(call *ast.CallExpr) bool {
	sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr)
	if !ok || len(call.Args) != 1 || !p.fixed(sel.X) {
		return false
	}
	id, ok := ast.Unparen(call.Args[0]).(*ast.Ident)
	if !ok || !p.counts(p.a.f.Info.ObjectOf(id)) {
		return false
	}
	rows := types.ExprString(sel.X) + ".Dim(0)"
	for _, u := range p.a.units {
		if !call.Pos().IsValid() || call.Pos() < u.Stmt.Node.Pos() || u.Stmt.Node.End() <= call.Pos() {
			continue
		}
		switch n := u.Stmt.Inner().(type) {
		case *ast.RangeStmt:
			if key, ok := n.Key.(*ast.Ident); ok && p.a.f.Info.ObjectOf(key) == p.a.f.Info.ObjectOf(id) {
				return types.ExprString(n.X) == rows
			}
		case *ast.ForStmt:
			b, ok := ast.Unparen(n.Cond).(*ast.BinaryExpr)
			if !ok || b.Op != token.LSS || n.Body.Pos() > call.Pos() {
				continue
			}
			if x, ok := ast.Unparen(b.X).(*ast.Ident); ok && p.a.f.Info.ObjectOf(x) == p.a.f.Info.ObjectOf(id) {
				return types.ExprString(b.Y) == rows
			}
		}
	}
	return false
}

// isSliceToArray reports whether a conversion makes an array of a slice, or a pointer to one.
func isSliceToArray(info *types.Info, call *ast.CallExpr) bool {
	if _, ok := info.TypeOf(call.Args[0]).Underlying().(*types.Slice); !ok {
		return false
	}
	switch info.TypeOf(call).Underlying().(type) {
	case *types.Array, *types.Pointer:
		return true
	}
	return false
}

func isFloat(t types.Type) bool {
	b, ok := t.Underlying().(*types.Basic)
	return ok && b.Info()&types.IsFloat != 0
}

func allConstant(info *types.Info, list []ast.Expr) bool {
	return !slices.ContainsFunc(list, func(e ast.Expr) bool { return info.Types[e].Value == nil })
}

// calm reports whether fn computes on the host, or with tensors in ways that
// keep shapes, and contains nothing that could fail for some arguments.
func (p *past) calm(fn *types.Func, seen map[*types.Func]bool) bool {
	body, ok := p.a.f.Analysis.Program.Body(fn)
	if !ok || seen[fn] {
		return false
	}
	seen[fn] = true
	f := p.a.f.Analysis.Function(body.Pkg, body.Decl)
	calm := true
	ast.Inspect(body.Decl.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.IndexExpr, *ast.SliceExpr, *ast.StarExpr, *ast.TypeAssertExpr, *ast.FuncLit, *ast.ForStmt, *ast.GoStmt, *ast.DeferStmt:
			calm = false
		case *ast.SelectorExpr:
			if sel := f.Info.Selections[n]; sel != nil && sel.Kind() == types.FieldVal && sel.Indirect() {
				calm = false
			}
		case *ast.BinaryExpr:
			switch n.Op {
			case token.QUO, token.REM, token.SHL, token.SHR:
				calm = calm && !(isInteger(f.Info.TypeOf(n)) && f.Info.Types[n].Value == nil)
			}
		case *ast.AssignStmt:
			switch n.Tok {
			case token.QUO_ASSIGN, token.REM_ASSIGN, token.SHL_ASSIGN, token.SHR_ASSIGN:
				calm = calm && !isInteger(f.Info.TypeOf(n.Lhs[0]))
			}
		case *ast.CallExpr:
			if f.Info.Types[n.Fun].IsType() {
				break
			}
			callee, _, kind := f.Callee(n)
			switch kind {
			case plan.CallsBuiltin:
				name := types.ExprString(n.Fun)
				calm = calm && name != "make" && name != "panic"
			case plan.CallsTotal:
			case plan.CallsLibrary:
				calm = calm && isTotal(callee, n)
			case plan.CallsFunction:
				calm = calm && p.calm(callee, seen)
			default:
				calm = false
			}
		}
		return calm
	})
	return calm
}
