package numbers

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"slices"

	"github.com/asyncgen/asyncgen/gen/internal/load"
	"github.com/asyncgen/asyncgen/gen/internal/plan"
)

// A list of integers from which tensors are made, such as the tokens that a model goes on from, has a second list with
// the same numbers; some may not have been computed yet. The list itself stays on the host, for whoever
// looks at it:
//
//	                                    idsI64 := asyncrt.ConstInts(ids)
//	for range n {                       for range n {
//		x := tensor.From(ids[from:])    	x := tensor.FromI64(idsI64[from:])
//		next := f(x).ItemInt()          	next := f(x).I64(); next.ItemInt()
//		ids = append(ids, next)         	ids = append(ids, next.ItemInt()); idsI64 = append(idsI64, next)
//	}                                   }
//	return ids                          return ids

// A twin is the second list of a variable, in one loop.
type twin struct {
	name string
	loop ast.Node
	at   ast.Stmt // the loop with its label
}

// isIntegers reports whether t is []int64 or []int.
func isIntegers(t types.Type) bool {
	s, ok := t.(*types.Slice)
	return ok && isIndex(s.Elem())
}

// listed returns the form of a call of From with a list of integers.
func listed(f *plan.Function, call *ast.CallExpr) (s sink, ok bool) {
	if !isIntegers(f.Info.TypeOf(call.Args[0])) {
		return sink{}, false
	}
	s = sink{form: "FromI64", arg: call.Args[0], list: true}
	switch fun := ast.Unparen(call.Fun).(type) {
	case *ast.Ident:
		s.name = fun
	case *ast.SelectorExpr:
		s.name = fun.Sel
	}
	return s, s.name != nil
}

// fitsList is fits for a list of integers: a variable, or what follows an index of one.
func (r *finder) fitsList(e ast.Expr, needs map[*types.Var]bool) *misfit {
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		if v, ok := r.f.Info.Uses[e].(*types.Var); ok {
			needs[v] = true
			return nil
		}
	case *ast.SliceExpr:
		id := identOf(ast.Unparen(e.X))
		if id == nil || e.Max != nil || e.High != nil && !r.isFilled(id) {
			break
		}
		for _, bound := range []ast.Expr{e.Low, e.High} {
			if bound == nil {
				continue
			}
			if r.isValued(bound) {
				return &misfit{plan.NoNumber, bound.Pos(), "takes a part that begins or ends at " + types.ExprString(bound) + ", which depends on values", "begin where the length of the list says"}
			}
			if why := leaf(r.f, bound); why != nil {
				return why
			}
		}
		return r.fitsList(id, needs)
	}
	return &misfit{plan.NoNumber, e.Pos(), "takes " + types.ExprString(e) + ", a part of a list that depends on values",
		"give it the whole list, or what follows an index, as in list[from:]"}
}

// isFilled reports whether id, a list, keeps its memory in loops, which store in it. Then the twin has the same
// capacity, and parts of it go as far.
func (r *finder) isFilled(id *ast.Ident) bool {
	v, ok := r.f.Info.Uses[id].(*types.Var)
	return ok && len(r.stores[v]) > 0 && !slices.ContainsFunc(r.defs[v], func(d definition) bool { return len(r.f.LoopsAround(d.stmt)) > 0 })
}

// list returns why v, a list of integers, can't have a twin, or nil.
func (r *finder) list(v *types.Var, needs map[*types.Var]bool) *misfit {
	if of := r.f.PartOf(v); of != nil {
		return r.part(v, of, needs)
	}
	if !r.f.Owns(v) {
		v = r.wholeOf(v)
		hint := fmt.Sprintf("make it with slices.Clone, make or append, and use %s alone for it", v.Name())
		if v.Pos() < r.f.Decl.Body.Pos() && !slices.ContainsFunc(r.defs[v], func(d definition) bool { return d.value != nil && len(r.f.LoopsAround(d.stmt)) == 0 }) {
			hint = fmt.Sprintf("let the function begin with %[1]s = slices.Clone(%[1]s)", v.Name())
		}
		return &misfit{plan.NoNumber, v.Pos(), "uses " + v.Name() + ", whose memory may have another name", hint}
	}
	why := &misfit{plan.NoNumber, v.Pos(), "uses " + v.Name() + ", to which no value is appended in a loop", "append to it in a loop around the use"}
	loops := r.growing(v)
	for i := len(loops) - 1; i >= 0; i-- { // the outermost first
		more := make(map[*types.Var]bool)
		if why = r.grows(v, loops[i], more); why == nil {
			at := anchor(r.f, loops[i])
			if r.twins[v] == nil {
				r.twins[v] = &twin{loop: loops[i], at: at}
			}
			for w := range more {
				needs[w] = true
			}
			return nil
		}
	}
	return why
}

// part returns why v, a part of the list of, can't be a part of its twin, or nil.
func (r *finder) part(v, of *types.Var, needs map[*types.Var]bool) *misfit {
	if at := r.storesIn(of); at != nil { // whether the part has it depends on where append has made new memory
		return &misfit{plan.NoNumber, at.Pos(), "stores in " + of.Name() + ", of which there is a part", "make the tensor of " + of.Name() + "[from:] at once"}
	}
	needs[of] = true
	for _, d := range r.defs[v] {
		if why := r.fitsList(d.value, needs); why != nil {
			return why
		}
		if s, ok := d.stmt.(ast.Stmt); !ok || !inList(r.f, s) {
			return &misfit{plan.NoNumber, d.stmt.Pos(), "sets " + v.Name() + " in the head of a statement", "set it in a statement of its own"}
		}
	}
	return nil
}

// storesIn returns what stores in v, a list, in a loop, or nil.
func (r *finder) storesIn(v *types.Var) (at ast.Node) {
	ast.Inspect(r.f.Decl.Body, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if ok && isBuiltin(r.f, call, "copy") && len(r.f.LoopsAround(call)) > 0 && r.f.Mentions(call.Args[0], map[types.Object]bool{v: true}) {
			at = call
		}
		return at == nil
	})
	for _, d := range r.stores[v] {
		at = d.stmt
	}
	return at
}

// outside returns that s makes a tensor of a list where this has no twin, or nil.
func (r *finder) outside(s sink, needs map[*types.Var]bool) *misfit {
	for _, v := range inOrder(needs) {
		if t := r.twins[v]; t != nil && !t.covers(s.arg) && r.f.Mentions(s.arg, map[types.Object]bool{v: true}) {
			return &misfit{plan.NoNumber, s.arg.Pos(), "uses " + v.Name() + " outside of the loop that appends to it", "use it in that loop"}
		}
		for _, d := range r.defs[v] {
			if of := r.f.PartOf(v); of != nil && !r.twins[of].covers(d.stmt) {
				return &misfit{plan.NoNumber, d.stmt.Pos(), "sets " + v.Name() + " outside of the loop that appends to " + of.Name(), "declare it in that loop"}
			}
		}
	}
	return nil
}

// covers reports whether n is in the loop of the twin.
func (t *twin) covers(n ast.Node) bool { return t.loop.Pos() <= n.Pos() && n.End() <= t.loop.End() }

// growing returns the loops, the innermost first, in which v gets its first element that depends on a value. They are
// in the scope of v.
func (r *finder) growing(v *types.Var) (loops []ast.Node) {
	for _, d := range append(r.defs[v][:len(r.defs[v]):len(r.defs[v])], r.stores[v]...) {
		values := []ast.Expr{d.value}
		if s, ok := d.stmt.(*ast.AssignStmt); ok && len(s.Lhs) == 1 && isName(s.Lhs[0]) {
			values = appended(r.f, d.value)
		}
		if !slices.ContainsFunc(values, func(e ast.Expr) bool { return e != nil && r.valued(e, map[*types.Var]bool{v: true}) }) {
			continue
		}
		for _, l := range r.f.LoopsAround(d.stmt) {
			if v.Pos() < l.Pos() || l.End() <= v.Pos() {
				loops = append(loops, l)
			}
		}
		if len(loops) > 0 {
			return loops
		}
	}
	return nil
}

// isGrown reports whether e, a list or a part of one, gets elements that depend on values in a loop, one by one.
func (r *finder) isGrown(e ast.Expr) bool {
	v := r.whole(e)
	return v != nil && len(r.growing(v)) > 0
}

// whole returns the variable that e is or takes a part of, perhaps by another name.
func (r *finder) whole(e ast.Expr) *types.Var {
	if s, ok := ast.Unparen(e).(*ast.SliceExpr); ok {
		e = s.X
	}
	if v := r.f.Variable(e); v != nil {
		return r.wholeOf(v)
	}
	return nil
}

// wholeOf is whole for a variable.
func (r *finder) wholeOf(v *types.Var) *types.Var {
	if len(r.defs[v]) == 0 || r.defs[v][0].value == nil {
		return v
	}
	switch def := ast.Unparen(r.defs[v][0].value).(type) {
	case *ast.SliceExpr, *ast.Ident:
		if w := r.whole(def); w != nil && w.Pos() < v.Pos() && len(r.growing(v)) == 0 {
			return w
		}
	}
	return v
}

// anchor returns loop with its label.
func anchor(f *plan.Function, loop ast.Node) ast.Stmt {
	s := loop.(ast.Stmt)
	for {
		l, ok := f.Parent(s).(*ast.LabeledStmt)
		if !ok {
			return s
		}
		s = l
	}
}

// grows returns why v can't have a twin in loop, or nil: all that changes the list there has to be appended or stored,
// or to drop elements at its beginning.
func (r *finder) grows(v *types.Var, loop ast.Node, needs map[*types.Var]bool) (why *misfit) {
	no := func(n ast.Node, text string) {
		if why == nil {
			why = &misfit{plan.NoNumber, n.Pos(), text, fmt.Sprintf("in the loop, set %[1]s by %[1]s = append(%[1]s, x) and %[1]s = %[1]s[from:] alone, each in a statement of its own", v.Name())}
		}
	}
	if !inList(r.f, anchor(r.f, loop)) {
		no(loop, "begins with a loop that is no statement of its own")
	}
	changes := make(map[ast.Node]bool)
	for _, d := range append(r.defs[v][:len(r.defs[v]):len(r.defs[v])], r.stores[v]...) {
		if d.stmt.Pos() < loop.Pos() || loop.End() <= d.stmt.Pos() {
			continue
		}
		s, ok := d.stmt.(*ast.AssignStmt)
		if !ok || !d.plain || d.op != token.ILLEGAL || len(s.Lhs) != 1 || !inList(r.f, s) {
			no(d.stmt, "sets "+v.Name()+" in a way that a list of numbers has no form of")
			return why
		}
		values := []ast.Expr{d.value}
		if isName(s.Lhs[0]) {
			base, ok := r.base(d.value, v)
			if !ok || base != nil && (r.isValued(base) || leaf(r.f, base) != nil) {
				no(s, "sets "+v.Name()+" to something else than the same list with more elements, or fewer at the beginning")
				return why
			}
			values = appended(r.f, d.value)
		} else if _, index := element(r.f, s.Lhs[0]); r.isValued(index) {
			no(s, "stores in "+v.Name()+" where a value says")
			return why
		}
		if w := r.stored(d, values, needs); w != nil {
			return w
		}
		changes[s] = true
	}
	own := plan.Loc{Kind: plan.Own, Obj: v}
	ast.Inspect(loop, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || why != nil {
			return why == nil
		}
		switch {
		case isBuiltin(r.f, call, "cap") && r.f.Mentions(call, map[types.Object]bool{v: true}):
			no(call, "asks how much memory there is for "+v.Name())
		case r.copies(call, v):
		case !r.f.Info.Types[call.Fun].IsType() && r.f.Effects(call).Touches(own) && !r.isPartOf(call, changes):
			no(call, "calls "+types.ExprString(call.Fun)+", which may change "+v.Name())
		}
		return why == nil
	})
	return why
}

// copies reports whether call is a statement that moves the elements of v to its beginning: copy(v, v[1:]).
func (r *finder) copies(call *ast.CallExpr, v *types.Var) bool {
	s, ok := r.f.Parent(call).(*ast.ExprStmt)
	if !ok || !inList(r.f, s) || !isBuiltin(r.f, call, "copy") {
		return false
	}
	id := identOf(ast.Unparen(call.Args[0]))
	from, ok := r.base(call.Args[1], v)
	return ok && id != nil && r.f.Info.Uses[id] == v && from != nil && !r.isValued(from) && leaf(r.f, from) == nil
}

// isPartOf reports whether call is one of the calls of append in a statement in changes.
func (r *finder) isPartOf(call *ast.CallExpr, changes map[ast.Node]bool) bool {
	for n := ast.Node(call); n != nil; n = r.f.Parent(n) {
		if changes[n] {
			return true
		}
		if c, ok := n.(*ast.CallExpr); !ok || !isBuiltin(r.f, c, "append") {
			return false
		}
	}
	return false
}

// base reports whether e is v, or a part of v up to the end, with more elements or without; from is where the part
// begins, or nil.
func (r *finder) base(e ast.Expr, v *types.Var) (from ast.Expr, ok bool) {
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		return nil, r.f.Info.Uses[e] == v
	case *ast.SliceExpr:
		id := identOf(ast.Unparen(e.X))
		return e.Low, id != nil && r.f.Info.Uses[id] == v && e.High == nil
	case *ast.CallExpr:
		if isBuiltin(r.f, e, "append") && !e.Ellipsis.IsValid() {
			return r.base(e.Args[0], v)
		}
	}
	return nil, false
}

// twinOf returns the twin of e, a variable, where that stands for it.
func (r *restatement) twinOf(e ast.Expr) *twin {
	id := identOf(ast.Unparen(e))
	if id == nil {
		return nil
	}
	v, _ := r.f.Info.Uses[id].(*types.Var)
	if t := r.lists[v]; t != nil && t.covers(e) {
		return t
	}
	return nil
}

// keepTwin gives v, a list, its twin.
func (r *finder) keepTwin(v *types.Var) {
	switch {
	case r.f.PartOf(v) != nil:
		r.parts[v] = true
	case r.lists[v] == nil:
		r.lists[v] = r.twins[v]
		r.lists[v].name = r.names.Unused(v.Name() + "I64")
	}
}

// counted returns the twin of what call is the length of.
func (r *restatement) counted(call *ast.CallExpr) *twin {
	if !isBuiltin(r.f, call, "len") {
		return nil
	}
	return r.twinOf(call.Args[0])
}

// A lister makes the edits for lists with twins.
type lister struct{ *writer }

// edit returns the text of e as it is of the twin.
func (r lister) edit(e ast.Expr) string { return r.edited(e, func() { r.text(e) }) }

// make makes the twins that are for the loop s.
func (r lister) make(s ast.Stmt) {
	for _, v := range slices.SortedFunc(maps.Keys(r.lists), func(v, w *types.Var) int { return int(v.Pos() - w.Pos()) }) {
		if t := r.lists[v]; t.at == s {
			r.insert(s.Pos(), fmt.Sprintf("%s := %s.ConstInts(%s); ", t.name, load.RestatedRuntime, v.Name()))
		}
	}
}

// hasTwin returns the twin of what s, an assignment, sets in the loop, or nil.
func (r *restatement) hasTwin(s ast.Stmt) *twin {
	a, ok := s.(*ast.AssignStmt)
	if !ok || len(a.Lhs) != 1 {
		return nil
	}
	if ix, ok := ast.Unparen(a.Lhs[0]).(*ast.IndexExpr); ok {
		return r.twinOf(ix.X)
	}
	return r.twinOf(a.Lhs[0])
}

// follow lets the twin of what s sets, if it has one, have the same elements.
func (r lister) follow(s *ast.AssignStmt) {
	if r.hasTwin(s) != nil {
		r.insert(s.End(), fmt.Sprintf("; %s = %s", r.edit(s.Lhs[0]), r.edit(s.Rhs[0])))
	}
}

// cuts makes the edits for s, which takes a part of a list, to take it of the twin, and reports whether it does.
func (r lister) cuts(s *ast.AssignStmt) bool {
	id := identOf(s.Lhs[0])
	if id == nil {
		return false
	}
	v, _ := r.f.Info.ObjectOf(id).(*types.Var)
	if r.parts[v] {
		r.text(s.Rhs[0])
	}
	return r.parts[v]
}

// sink makes the edits for a sink that makes a tensor of a list.
func (r lister) sink(call *ast.CallExpr, s sink) {
	r.replace(s.name.Pos(), s.name.End(), s.form)
	r.text(s.arg)
	for _, arg := range call.Args[1:] {
		r.restate(arg)
	}
}

// move makes the edits for s, if it is a call of copy that moves the elements of a list.
func (r lister) move(s *ast.ExprStmt) {
	call := callOf(s.X)
	if call == nil || !isBuiltin(r.f, call, "copy") || r.twinOf(call.Args[0]) == nil {
		return
	}
	r.insert(s.End(), fmt.Sprintf("; copy(%s, %s)", r.edit(call.Args[0]), r.edit(call.Args[1])))
}

// text makes the edits for e, a list or an element of one, to be of the twin.
func (r lister) text(e ast.Expr) {
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		switch v, _ := r.f.Info.Uses[e].(*types.Var); {
		case r.lists[v] != nil:
			r.replace(e.Pos(), e.End(), r.lists[v].name)
			return
		case r.parts[v]:
			return
		}
	case *ast.SliceExpr:
		r.text(e.X)
		for _, bound := range []ast.Expr{e.Low, e.High} {
			if bound != nil {
				r.restate(bound)
			}
		}
		return
	case *ast.IndexExpr:
		r.text(e.X)
		r.restate(e.Index)
		return
	case *ast.CallExpr:
		if isBuiltin(r.f, e, "append") {
			r.text(e.Args[0])
			for _, arg := range e.Args[1:] {
				r.number(arg)
			}
			return
		}
	}
	r.number(e)
}
