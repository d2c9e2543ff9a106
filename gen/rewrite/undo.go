package rewrite

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"

	"github.com/asyncgen/asyncgen/gen/internal/plan"
	"github.com/asyncgen/asyncgen/gen/internal/syntax"
)

// A statement that enqueues work and changes memory that others can see, such as a field of the receiver, may run
// ahead all the same if that memory can be named before the loop: then the Later gives back what it held,
// if a value turns out to panic or to end the loop.
//
//	                                    if t != nil {
//	                                    	later.Undo(asyncrt.Var(&t.w))
//	                                    }
//	for _, b := range batches {         for _, b := range batches {
//		loss := t.loss(b)               	loss := t.loss(b)
//		t.w = t.w.Sub(grad(loss))       	t.w = t.w.Sub(grad(loss))
//		total += loss.Item()            	lossAt := later.Read(loss)
//	}                                   	later.Do(func() { total += lossAt.Item() })
//	                                    }
//
// What runs later changes none of it: it would be in the way of what runs ahead.

// Undone is that, the rewrite undo.
var Undone = &Rewrite{
	Name: "undo",
	Was:  "R19",
	Code: plan.GivesBack,
	Does: "ahead of values: it is undone if they say that the program does not get there",
}

// undo makes the part of u that does not come later run ahead although it changes what others can
// see, and reports whether that can be.
func (a *attempt) undo(u *plan.Unit) bool {
	if a.undone[u.Stmt] || len(u.Reads) == 0 && a.followsValue(u) {
		return false
	}
	if _, ok := a.changedBy(u); !ok {
		return false
	}
	a.undone[u.Stmt] = true
	for s := range a.whole { // perhaps that is not so any more
		if _, stays := a.now[s]; !stays {
			delete(a.whole, s)
		}
	}
	return true
}

// followsValue reports whether u has to come later because of a value.
func (a *attempt) followsValue(u *plan.Unit) bool {
	var reads []*plan.Unit
	for _, v := range a.units {
		if len(v.Reads) > 0 && !a.stays(v) && !a.jumpsOut(v.Stmt) {
			reads = append(reads, v)
		}
	}
	reached, _ := a.graph.Reach(reads, a.passes)
	return slices.Contains(reached, u)
}

// undoes returns the memory that the loop changes ahead of values.
func (a *layout) undoes() (all []plan.Place) {
	for _, u := range a.units {
		if !a.undone[u.Stmt] || a.stays(u) || a.late[u] && len(u.Reads) == 0 {
			continue
		}
		places, _ := a.changedBy(u)
		for _, p := range places {
			if !slices.ContainsFunc(all, func(o plan.Place) bool { return o.Path == p.Path && o.Elems == p.Elems }) {
				all = append(all, p)
			}
		}
	}
	slices.SortStableFunc(all, func(p, q plan.Place) int { return len(p.Guard) - len(q.Guard) })
	return all
}

// aheadOf are the effects of what of u runs in its place, if not all of it comes later.
func aheadOf(u *plan.Unit) *plan.Effects {
	if len(u.Reads) > 0 {
		return u.Ahead
	}
	return u.All()
}

// changedBy returns the memory that others can see and that u changes in its place. It is not ok if
// some of that can't be named before the loop, or is not memory.
func (a *schedule) changedBy(u *plan.Unit) (places []plan.Place, ok bool) {
	c := &changes{a: a, changed: &plan.Effects{}, ok: true}
	for l, cause := range aheadOf(u).Writes {
		if !a.isShown(l) || u.Stmt.Declares[l.Obj] {
			continue
		}
		if l.Kind != plan.Field && l.Kind != plan.Elem {
			return nil, false
		}
		if c.changed.Writes == nil {
			c.changed.Writes = make(map[plan.Loc]plan.Cause)
		}
		c.changed.Writes[l] = cause
	}
	if len(c.changed.Writes) == 0 {
		return nil, false
	}
	if a.loop.IsCall {
		return nil, true // that is up to the callers
	}
	for _, n := range c.nodes(u) {
		c.in(a.f, n, nil, 0)
	}
	return c.places, c.ok
}

// A changes looks for all places at which something changes memory.
type changes struct {
	a       *schedule
	changed *plan.Effects // what there is to find
	places  []plan.Place
	ok      bool // all of it can be named
}

// nodes are the parts of u that are done in its place.
func (c *changes) nodes(u *plan.Unit) (nodes []ast.Node) {
	switch {
	case len(u.Reads) > 0:
	case u.Whole:
		return []ast.Node{u.Stmt.Inner()}
	default:
		return u.InPlace() // it may have been found to come later, in which case it would not have to be undone
	}
	for _, r := range u.Reads {
		switch {
		case r.Assign != nil:
			nodes = append(nodes, r.Assign)
		default:
			nodes = append(nodes, r.Operand)
		}
	}
	return nodes
}

// matters reports whether e changes some of what there is to find.
func (c *changes) matters(e *plan.Effects) bool {
	for l := range c.changed.Writes {
		if e.Touches(l) {
			return true
		}
	}
	return false
}

// in looks for changes in n, which is in f. as says what the parameters of f stand for, in the
// function that is rewritten; nil if f is that.
func (c *changes) in(f *plan.Function, n ast.Node, as map[types.Object]path, depth int) {
	ast.Inspect(n, func(m ast.Node) bool {
		if !c.ok {
			return false
		}
		switch m := m.(type) {
		case *ast.FuncLit:
			return false // what it does, it does where it is called
		case *ast.AssignStmt:
			for _, lhs := range m.Lhs {
				c.change(f, lhs, as)
			}
		case *ast.IncDecStmt:
			c.change(f, m.X, as)
		case *ast.RangeStmt:
			if m.Tok == token.ASSIGN {
				for _, e := range []ast.Expr{m.Key, m.Value} {
					if e != nil {
						c.change(f, e, as)
					}
				}
			}
		case *ast.CallExpr:
			c.call(f, m, as, depth)
		}
		return c.ok
	})
}

// change notes that e, in f, is given another value.
func (c *changes) change(f *plan.Function, e ast.Expr, as map[types.Object]path) {
	if !c.matters(f.Changes(e)) {
		return
	}
	place, ok := c.place(f, ast.Unparen(e), as)
	c.ok = c.ok && ok
	if ok && !slices.ContainsFunc(c.places, func(o plan.Place) bool { return o.Path == place.Path && o.Elems == place.Elems }) {
		c.places = append(c.places, place)
	}
}

// place returns the place that e, in f, denotes.
func (c *changes) place(f *plan.Function, e ast.Expr, as map[types.Object]path) (plan.Place, bool) {
	switch e := e.(type) {
	case *ast.ParenExpr:
		return c.place(f, e.X, as)
	case *ast.SelectorExpr:
		p, ok := c.field(f, e, as)
		return plan.Place{Path: p.text, Guard: p.guard}, ok
	case *ast.IndexExpr:
		switch t := f.Info.TypeOf(e.X).Underlying().(type) {
		case *types.Array:
			return c.place(f, e.X, as)
		case *types.Slice:
			if !c.a.f.Analysis.API.IsTensor(t.Elem()) {
				return plan.Place{}, false // there may be many of them
			}
			p, ok := c.path(f, e.X, as)
			return plan.Place{Path: p.text, Elems: true, Guard: p.guard}, ok
		}
	}
	return plan.Place{}, false
}

// call looks for changes that call, which is in f, makes: not in its operands, which come by themselves.
func (c *changes) call(f *plan.Function, call *ast.CallExpr, as map[types.Object]path, depth int) {
	e := f.Effects(call)
	if !c.matters(e) || f.Info.Types[call.Fun].IsType() {
		return
	}
	fn, _, kind := f.Callee(call)
	switch {
	case f.IsChoice(call):
	case kind == plan.CallsLibrary:
		isFunc := func(arg ast.Expr) bool { return isFunc(f.Info.TypeOf(arg)) }
		if recv := fn.Signature().Recv(); (recv == nil || !types.IsInterface(recv.Type())) && !slices.ContainsFunc(call.Args, isFunc) {
			return // it changes no memory of the program
		}
	case kind == plan.CallsBuiltin:
		switch types.ExprString(call.Fun) {
		case "append", "copy", "clear", "delete":
		default:
			return
		}
	case kind == plan.CallsFunction && depth < 8:
		body, _ := f.Analysis.Program.Body(fn)
		if _, declared := f.Analysis.Program.Effects(fn); declared || body.Stub {
			break
		}
		if !c.matters(f.Analysis.Summary(fn, c.a.f.Home)) {
			return
		}
		inner := f.Analysis.Function(body.Pkg, body.Decl)
		c.in(inner, body.Decl.Body, c.standFor(f, call, body.Decl, inner, as), depth+1)
		return
	case f.Literal(call) != nil && depth < 8:
		c.in(f, f.Literal(call).Body, as, depth+1)
		return
	}
	c.ok = false
}

// A path is how the function that is rewritten writes something that is the same in all of the loop.
type path struct {
	text  string
	guard []string // pointers on the way, which may be nil
}

// path returns the path of e, a variable or a field, which is in f.
func (c *changes) path(f *plan.Function, e ast.Expr, as map[types.Object]path) (path, bool) {
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		v := f.Variable(e)
		if v == nil {
			return path{}, false
		}
		if p, ok := as[v]; ok {
			return p, true
		}
		switch v.Type().Underlying().(type) {
		case *types.Pointer, *types.Slice:
		default:
			return path{}, false
		}
		loop := c.a.loop.Node
		if as == nil && f.Sets(v) == 1 && v.Pos() < loop.Pos() && f.Sees(loop.Pos(), v) {
			return path{text: e.Name}, true
		}
		if as == nil && (v.Pos() < loop.Pos() || loop.End() <= v.Pos()) {
			return path{}, false // what it is defined as may be something else by now
		}
		if def := f.Definition(v); def != nil {
			return c.path(f, def, as)
		}
		return path{}, false
	case *ast.SelectorExpr:
		p, ok := c.field(f, e, as)
		if !ok {
			return path{}, false
		}
		field := plan.FieldLoc(f.Info.Selections[e])
		for _, u := range c.a.units {
			if e := u.All(); e.Barrier != nil || e.Touches(field) {
				return path{}, false
			}
		}
		return p, true
	}
	return path{}, false
}

// field returns the path of a field, of which it does not matter whether the loop changes it.
func (c *changes) field(f *plan.Function, e *ast.SelectorExpr, as map[types.Object]path) (path, bool) {
	sel := f.Info.Selections[e]
	if sel == nil || sel.Kind() != types.FieldVal || len(sel.Index()) != 1 || !sel.Obj().Exported() && sel.Obj().Pkg() != c.a.f.Home.Types {
		return path{}, false
	}
	of, ok := c.path(f, e.X, as)
	if !ok && !isPointer(f.Info.TypeOf(e.X)) {
		if x, is := ast.Unparen(e.X).(*ast.SelectorExpr); is { // a struct in a struct
			of, ok = c.field(f, x, as)
		}
	}
	if !ok {
		return path{}, false
	}
	p := path{text: of.text + "." + e.Sel.Name, guard: of.guard}
	if isPointer(f.Info.TypeOf(e.X)) {
		p.guard = append(slices.Clip(of.guard), of.text)
	}
	return p, true
}

// standFor returns what the parameters of the function of decl, called by call, stand for.
func (c *changes) standFor(f *plan.Function, call *ast.CallExpr, decl *ast.FuncDecl, inner *plan.Function, as map[types.Object]path) map[types.Object]path {
	m := make(map[types.Object]path)
	bind := func(name *ast.Ident, arg ast.Expr) {
		v, ok := inner.Info.ObjectOf(name).(*types.Var)
		if !ok || inner.Sets(v) != 1 {
			return
		}
		switch v.Type().Underlying().(type) {
		case *types.Pointer, *types.Slice:
			if !types.Identical(f.Info.TypeOf(arg).Underlying(), v.Type().Underlying()) && !isPointer(f.Info.TypeOf(arg)) {
				return // its address is taken, or it is a promoted method's
			}
			if p, ok := c.path(f, arg, as); ok {
				m[v] = p
			}
		}
	}
	syntax.Arguments(f.Info, call, decl, bind)
	return m
}

func isPointer(t types.Type) bool { _, ok := t.Underlying().(*types.Pointer); return ok }
