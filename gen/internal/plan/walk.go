package plan

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"

	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"github.com/asyncgen/asyncgen/gen/internal/facts"
	"golang.org/x/tools/go/types/typeutil"
)

func text(e ast.Expr) string {
	s := types.ExprString(e)
	if len(s) > 40 {
		s = s[:37] + "..."
	}
	return s
}

// A walker collects the effects of code.
type walker struct {
	f     *Function
	e     *Effects
	reads *[]*Read // where reads are put that can be put off; nil if none can
	// where expressions are put that only take what a cell or a field holds; nil if they count as
	// effects
	held *[]ast.Expr
}

// walk returns the effects of n. Reads that can be put off are appended to
// reads and left out of the result, unless reads is nil.
func (f *Function) walk(n ast.Node, reads *[]*Read) *Effects {
	w := &walker{f: f, e: &Effects{}, reads: reads}
	w.node(n)
	return w.e
}

func cause(n ast.Node, format string, args ...any) Cause {
	return Cause{Pos: n.Pos(), Text: fmt.Sprintf(format, args...)}
}

// as returns c with a code.
func (c Cause) as(code Code) Cause {
	c.Code = code
	return c
}

// node walks anything: a statement, an expression, nil.
func (w *walker) node(n ast.Node) {
	switch n := n.(type) {
	case nil:
	case ast.Expr:
		w.expr(n)
	case ast.Stmt:
		w.stmt(n)
	}
}

func (w *walker) exprs(list []ast.Expr) {
	for _, e := range list {
		w.expr(e)
	}
}

func (w *walker) stmts(list []ast.Stmt) {
	for _, s := range list {
		w.stmt(s)
	}
}

func (w *walker) stmt(s ast.Stmt) {
	switch s := s.(type) {
	case nil, *ast.EmptyStmt, *ast.BranchStmt:
	case *ast.BlockStmt:
		if s != nil {
			w.stmts(s.List)
		}
	case *ast.ExprStmt:
		w.expr(s.X)
	case *ast.AssignStmt:
		w.assign(s)
	case *ast.IncDecStmt:
		w.update(s.X)
	case *ast.DeclStmt:
		w.decl(s.Decl.(*ast.GenDecl))
	case *ast.ReturnStmt:
		w.exprs(s.Results)
	case *ast.IfStmt:
		w.stmt(s.Init)
		w.expr(s.Cond)
		w.stmt(s.Body)
		w.stmt(s.Else)
	case *ast.ForStmt:
		w.stmt(s.Init)
		w.expr(s.Cond)
		w.stmt(s.Post)
		w.stmt(s.Body)
	case *ast.RangeStmt:
		w.expr(w.f.rangesOver(s))
		w.rangeSteps(s)
		w.stmt(s.Body)
	case *ast.SwitchStmt:
		w.stmt(s.Init)
		w.expr(s.Tag)
		w.clauses(s.Body)
	case *ast.TypeSwitchStmt:
		w.stmt(s.Init)
		w.stmt(s.Assign)
		w.clauses(s.Body)
	case *ast.CaseClause:
		w.exprs(s.List)
		w.stmts(s.Body)
	case *ast.LabeledStmt:
		w.stmt(s.Stmt)
	case *ast.SelectStmt:
		if !w.f.polls(s) {
			w.unready(s)
			break
		}
		w.asks(s)
		for _, c := range s.Body.List {
			w.stmts(c.(*ast.CommClause).Body)
		}
	case *ast.CommClause:
		w.stmt(s.Comm)
		w.stmts(s.Body)
	case *ast.SendStmt:
		w.expr(s.Chan)
		w.expr(s.Value)
		if d, ok := w.f.ofParam(s.Chan); ok && d.Output {
			w.reach(w.f.Info.TypeOf(s.Value), s.Value, false, true)
			w.e.addCall(declared(d, s.Pos()), s.Pos(), text(s.Chan)+" <-")
			break
		}
		note(&w.e.Barrier, cause(s, "sends on a channel").as(Blocks).with(w.f.sending(s.Chan)))
	case *ast.GoStmt:
		note(&w.e.Barrier, cause(s, "starts a goroutine").as(Blocks).with(otherGoroutines))
		w.outer().call(s.Call)
	case *ast.DeferStmt:
		w.outer().call(s.Call)
	default:
		note(&w.e.Barrier, cause(s, "is a statement that the generator does not know").as(UnknownEffects))
	}
}

// outer is w for code that runs at another time: its reads can't be put off.
func (w *walker) outer() *walker { return &walker{f: w.f, e: w.e} }

func (w *walker) clauses(body *ast.BlockStmt) {
	w.stmts(body.List)
	for _, c := range body.List {
		// The variable of a type switch has one object per clause.
		if v, ok := w.f.Info.Implicits[c].(*types.Var); ok {
			w.e.write(Loc{Kind: Var, Obj: v}, cause(c, "sets %s", v.Name()))
		}
	}
}

func (w *walker) decl(d *ast.GenDecl) {
	for _, spec := range d.Specs {
		vs, ok := spec.(*ast.ValueSpec)
		if !ok {
			continue
		}
		w.exprs(vs.Values)
		for _, name := range vs.Names {
			if d.Tok == token.VAR {
				w.store(name)
			}
		}
	}
}

func (w *walker) assign(s *ast.AssignStmt) {
	if w.mixed(s) {
		return
	}
	w.exprs(s.Rhs)
	for _, lhs := range s.Lhs {
		if s.Tok != token.ASSIGN && s.Tok != token.DEFINE {
			w.update(lhs)
			continue
		}
		w.store(lhs)
	}
}

// rangesOver returns the range expression of s. It is nil if Go does not evaluate it: if only the length of an array is
// used.
func (f *Function) rangesOver(s *ast.RangeStmt) ast.Expr {
	t := f.Info.TypeOf(s.X)
	if p, ok := t.Underlying().(*types.Pointer); ok {
		t = p.Elem()
	}
	if _, ok := t.Underlying().(*types.Array); ok && s.Value == nil && isPath(s.X) {
		return nil
	}
	return s.X
}

// isPath reports whether e is a variable, or a field of one.
func isPath(e ast.Expr) bool {
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		return true
	case *ast.SelectorExpr:
		return isPath(e.X)
	}
	return false
}

// rangeSteps walks what a range statement does in each iteration for itself.
func (w *walker) rangeSteps(s *ast.RangeStmt) {
	for _, e := range []ast.Expr{s.Key, s.Value} {
		if e != nil {
			w.store(e)
		}
	}
	t := w.f.Info.TypeOf(s.X)
	switch u := t.Underlying().(type) {
	case *types.Slice, *types.Array, *types.Map, *types.Pointer:
		if s.Value == nil && !isMap(u) {
			return
		}
		if l, ok := w.elementsOf(s.X); ok {
			w.e.read(l, cause(s.X, "reads %s", text(s.X)))
		}
	case *types.Chan:
		note(&w.e.Barrier, cause(s, "receives from a channel").as(Blocks).with(workFromOutside))
	case *types.Signature:
		if call, ok := ast.Unparen(s.X).(*ast.CallExpr); ok {
			if fn := typeutil.StaticCallee(w.f.Info, call); fn != nil {
				if fact := facts.Of(fn); fact != nil && fact.Has(facts.Lazy) {
					for _, arg := range call.Args {
						w.deep(w.f.Info.TypeOf(arg), arg, false)
					}
					return
				}
				if d, ok := w.f.Analysis.Program.Effects(fn); ok {
					for _, arg := range call.Args {
						w.deep(w.f.Info.TypeOf(arg), arg, d.Changes)
					}
					w.e.addCall(declared(d, fn.Pos()), s.X.Pos(), text(call.Fun))
					return
				}
			}
			// An iterator of the library does in each step what its call is said to do.
			if fn, api, kind := w.f.Callee(call); kind == CallsLibrary && (api.Kind == tensorapi.Draw || api.Kind == tensorapi.Meta) {
				w.library(api, fn, call)
				return
			}
		}
		if e := w.iterator(s.X); e != nil {
			w.e.addCall(e, s.X.Pos(), text(s.X))
			return
		}
		if d, ok := w.f.ofParam(s.X); ok {
			w.e.addCall(declared(d, s.X.Pos()), s.X.Pos(), text(s.X))
			return
		}
		if d, _, ok := w.f.ofField(s.X); ok {
			w.e.addCall(declared(d, s.X.Pos()), s.X.Pos(), text(s.X))
			return
		}
		if d, _, ok := w.f.ofType(s.X); ok {
			w.e.addCall(declared(d, s.X.Pos()), s.X.Pos(), text(s.X))
			return
		}
		c := cause(s, "ranges over a function, %s, whose effects are unknown", text(s.X)).as(UnknownEffects)
		c.Hint = w.f.sayValue(s.X)
		note(&w.e.Barrier, c)
	}
}

func isMap(t types.Type) bool { _, ok := t.Underlying().(*types.Map); return ok }

// expr walks an expression whose value is used.
func (w *walker) expr(e ast.Expr) {
	switch e := e.(type) {
	case nil, *ast.BasicLit, *ast.ArrayType, *ast.StructType, *ast.FuncType, *ast.InterfaceType, *ast.MapType, *ast.ChanType:
	case *ast.ParenExpr:
		w.expr(e.X)
	case *ast.Ident, *ast.SelectorExpr, *ast.IndexExpr, *ast.StarExpr:
		w.load(e)
	case *ast.IndexListExpr:
		w.expr(e.X)
	case *ast.SliceExpr:
		w.expr(e.X)
		w.expr(e.Low)
		w.expr(e.High)
		w.expr(e.Max)
	case *ast.BinaryExpr:
		w.expr(e.X)
		w.expr(e.Y)
	case *ast.UnaryExpr:
		if e.Op == token.ARROW {
			note(&w.e.Barrier, cause(e, "receives from a channel").as(Blocks).with(ifWork))
		}
		w.expr(e.X)
	case *ast.TypeAssertExpr:
		w.expr(e.X)
	case *ast.KeyValueExpr:
		w.expr(e.Key)
		w.expr(e.Value)
	case *ast.CompositeLit:
		w.composite(e)
	case *ast.FuncLit:
		w.literal(e)
	case *ast.CallExpr:
		w.call(e)
	default:
		note(&w.e.Barrier, cause(e, "is an expression that the generator does not know").as(UnknownEffects))
	}
}

func (w *walker) composite(e *ast.CompositeLit) {
	_, isStruct := w.f.Info.TypeOf(e).Underlying().(*types.Struct)
	for _, el := range e.Elts {
		if kv, ok := el.(*ast.KeyValueExpr); ok {
			if !isStruct {
				w.expr(kv.Key)
			}
			el = kv.Value
		}
		w.expr(el)
	}
}

// literal walks a function literal where it is a value. What it does counts
// where it is called; if that is not known, it hands its variables out here.
func (w *walker) literal(lit *ast.FuncLit) {
	if !w.f.isTame(lit) {
		c := cause(lit, "makes a function that may be called at another time").as(UnknownEffects)
		if w.f.ReturnsIterator(lit) {
			c.Text = "returns an iterator"
		}
		note(&w.e.HandsOut, c.with("make the function before the loop, or write what it does in the loop"))
		for _, id := range w.f.captured(lit) {
			w.touch(w.place(id), id, w.e.read, "hands out")
		}
	}
}

// load walks an expression that denotes a place, for its value.
func (w *walker) load(e ast.Expr) {
	info := w.f.Info
	if tv, ok := info.Types[e]; ok && (tv.IsType() || tv.IsBuiltin() || tv.Value != nil) {
		return
	}
	if id, ok := e.(*ast.Ident); ok {
		if w.f.variable(id) == nil {
			return // a constant, a function, a package, nil
		}
	}
	if sel, ok := e.(*ast.SelectorExpr); ok {
		if w.held != nil && w.f.Takes[sel] {
			*w.held = append(*w.held, sel)
			return
		}
		if s := info.Selections[sel]; s != nil && s.Kind() != types.FieldVal {
			w.expr(sel.X)
			note(&w.e.HandsOut, cause(e, "takes %s as a value", text(e)).as(UnknownEffects))
			return
		} else if s == nil {
			if v, ok := info.Uses[sel.Sel].(*types.Var); ok {
				w.touch(Loc{Kind: Var, Obj: v}, e, w.e.read, "reads")
			}
			return
		}
	}
	if ix, ok := e.(*ast.IndexExpr); ok {
		if _, ok := info.TypeOf(ix.X).Underlying().(*types.Signature); ok {
			return // an instance of a generic function
		}
		if b, ok := info.TypeOf(ix.X).Underlying().(*types.Basic); ok && b.Info()&types.IsString != 0 {
			w.expr(ix.X)
			w.expr(ix.Index)
			return
		}
	}
	w.sub(e)
	w.touch(w.place(e), e, w.e.read, "reads")
	if id, ok := e.(*ast.Ident); ok {
		w.hands(id)
	}
}

// hands records what the use id of a variable does if it hands on the memory that nothing else has led to.
func (w *walker) hands(id *ast.Ident) {
	v, ok := w.owner(id)
	if !ok || w.f.facts[v].handed != id {
		return
	}
	c := cause(id, "hands on what is behind %s", id.Name)
	w.e.read(Loc{Kind: Own, Obj: v}, c)
	w.e.hand(v, c)
}

// store walks an expression that is assigned to.
func (w *walker) store(e ast.Expr) {
	e = ast.Unparen(e)
	if id, ok := e.(*ast.Ident); ok && (id.Name == "_" || w.f.variable(id) == nil) {
		return
	}
	w.sub(e)
	w.change(e)
}

// update walks an expression that gets a new value made of its old one. What
// is evaluated to find the place is evaluated once.
func (w *walker) update(e ast.Expr) {
	w.expr(e)
	w.change(ast.Unparen(e))
}

// change records that e, which has been walked, is assigned to.
func (w *walker) change(e ast.Expr) {
	l := w.place(e)
	w.touch(l, e, w.e.write, "changes")
	if _, whole := e.(*ast.Ident); !whole && l.Kind == Var {
		w.touch(l, e, w.e.read, "changes part of") // the rest of the variable stays
	}
}

// touch records an access to l, and to what pointers to l lead to.
func (w *walker) touch(l Loc, e ast.Expr, record func(Loc, Cause), verb string) {
	c := cause(e, "%s %s", verb, text(e))
	record(l, c)
	if v, ok := l.Obj.(*types.Var); ok && l.Kind == Var {
		if !w.f.isInner(v) || w.f.facts[v] != nil && w.f.facts[v].address {
			record(w.memoryOf(v, e), c)
		}
	}
}

// memoryOf is the memory that pointers to v lead to. If e is a field of v, or an element of one that is an array, it is
// that of the field.
func (w *walker) memoryOf(v *types.Var, e ast.Expr) Loc {
	e = ast.Unparen(e)
	for ix, ok := e.(*ast.IndexExpr); ok; ix, ok = e.(*ast.IndexExpr) { // of an array
		e = ast.Unparen(ix.X)
	}
	if sel, ok := e.(*ast.SelectorExpr); ok {
		if s := w.f.Info.Selections[sel]; s != nil && s.Kind() == types.FieldVal {
			return FieldLoc(s)
		}
	}
	return Loc{Kind: Deref, Type: w.f.Analysis.types.of(v.Type())}
}

// sub walks the parts of a place that are evaluated to find it.
func (w *walker) sub(e ast.Expr) {
	switch e := ast.Unparen(e).(type) {
	case *ast.SelectorExpr:
		if w.place(e.X).Kind == Var && !isPointer(w.f.Info.TypeOf(e.X)) {
			w.sub(e.X)
		} else if isPointer(w.f.Info.TypeOf(e.X)) || !isPlace(e.X) {
			w.expr(e.X)
		} else {
			w.sub(e.X)
		}
	case *ast.IndexExpr:
		w.expr(e.Index)
		if _, ok := w.f.Info.TypeOf(e.X).Underlying().(*types.Array); ok && isPlace(e.X) {
			w.sub(e.X)
		} else {
			w.expr(e.X)
		}
	case *ast.StarExpr:
		w.expr(e.X)
	}
}

func isPointer(t types.Type) bool { _, ok := t.Underlying().(*types.Pointer); return ok }

func isPlace(e ast.Expr) bool {
	switch ast.Unparen(e).(type) {
	case *ast.Ident, *ast.SelectorExpr, *ast.IndexExpr, *ast.StarExpr:
		return true
	}
	return false
}

// place returns the place that e denotes.
func (w *walker) place(e ast.Expr) Loc {
	info, kinds := w.f.Info, &w.f.Analysis.types
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		if v := w.f.variable(e); v != nil {
			if _, ok := w.private(e); ok && !isPointer(v.Type()) {
				return Loc{Kind: Own, Obj: v} // its state, of which it is the beginning
			}
			return Loc{Kind: Var, Obj: v}
		}
	case *ast.SelectorExpr:
		sel := info.Selections[e]
		if sel == nil {
			return Loc{Kind: Var, Obj: info.Uses[e.Sel]}
		}
		if v, ok := w.owner(e.X); ok && len(sel.Index()) == 1 { // not promoted, perhaps through a pointer
			return Loc{Kind: Own, Obj: v}
		}
		if _, ok := sel.Obj().(*types.Var); ok && (sel.Indirect() || isPointer(sel.Recv())) {
			return FieldLoc(sel)
		}
		if l := w.place(e.X); l.Kind == Var || l.Kind == Own || l.Kind == MapElem {
			return l
		}
		if _, ok := sel.Obj().(*types.Var); ok {
			return FieldLoc(sel)
		}
	case *ast.IndexExpr:
		if _, ok := info.TypeOf(e.X).Underlying().(*types.Array); ok {
			return w.place(e.X)
		}
		if l, ok := w.elementsOf(e.X); ok {
			return l
		}
	case *ast.StarExpr:
		if v, ok := w.owner(e.X); ok {
			return Loc{Kind: Own, Obj: v}
		}
		return Loc{Kind: Deref, Type: kinds.of(info.TypeOf(e))}
	}
	return Loc{Kind: Memory}
}

// elementsOf returns the place of the elements of e.
func (w *walker) elementsOf(e ast.Expr) (Loc, bool) {
	if v, ok := w.owner(e); ok {
		return Loc{Kind: Own, Obj: v}, true
	}
	t := w.f.Info.TypeOf(e)
	switch u := t.Underlying().(type) {
	case *types.Slice:
		return Loc{Kind: Elem, Type: w.f.Analysis.types.of(u.Elem())}, true
	case *types.Map:
		return Loc{Kind: MapElem, Type: w.f.Analysis.types.of(u)}, true
	case *types.Pointer:
		if a, ok := u.Elem().Underlying().(*types.Array); ok {
			return Loc{Kind: Elem, Type: w.f.Analysis.types.of(a.Elem())}, true
		}
		return Loc{Kind: Memory}, true
	case *types.Array:
		return w.place(e), true
	case *types.Basic:
		return Loc{}, false
	}
	return Loc{Kind: Memory}, true
}

// owner returns the variable whose memory e is in, if nothing else leads there. e is the variable, a part of it, one of
// the slices in it, or a part of one.
func (w *walker) owner(e ast.Expr) (*types.Var, bool) {
	e = ast.Unparen(e)
	for part, ok := e.(*ast.SliceExpr); ok; part, ok = e.(*ast.SliceExpr) {
		e = ast.Unparen(part.X)
	}
	ix, row := e.(*ast.IndexExpr)
	if row {
		e = ast.Unparen(ix.X)
	}
	id, ok := e.(*ast.Ident)
	if !ok {
		return nil, false
	}
	v := w.f.variable(id)
	if v != nil && w.f.facts[v] != nil && w.f.facts[v].of != nil {
		v = w.f.facts[v].of
	}
	return v, w.f.Owns(v) && (!row || w.f.facts[v].rows) && !w.f.isBefore(id, v)
}
