package plan

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"github.com/asyncgen/asyncgen/gen/internal/facts"
	"github.com/asyncgen/asyncgen/gen/internal/load"
	"golang.org/x/tools/go/types/typeutil"
)

// A Read is a place where the program looks at a tensor's values.
type Read struct {
	Expr    ast.Expr // the whole read: loss.Item(), or the loss of fmt.Println(loss)
	Operand ast.Expr // what is read: loss
	Method  string   // of asyncrt.Read: "Item"; "" where a Read stands for the tensor
	Func    ast.Expr // the generic function that is called: tensor.ItemOf[float32]; or nil
	Effects *Effects // of evaluating Operand
	// the method of a Later that reads Operand, if that is a number that may not have been computed
	// yet
	Number string
	Plain  *types.Var // the local variable that Operand is, or nil
	Rows   *Rows      // Operand is a row of what is computed for all iterations of a loop at once
	Fixed  bool       // Operand is the same in all iterations of the loop around it that is one unit, and always there
	Lift   *Lift      // Expr calls a function that does not wait in its variant; Operand is the call

	// Assign, if Lift returns some results in their place, assigns them.
	Assign *ast.AssignStmt
}

// Raises reports whether r panics if what it reads has failed: prints show that it has, and Wait returns it.
func (r *Read) Raises() bool {
	switch r.Method {
	case "", "String", "Err", "MarshalJSON":
		return r.Func != nil || r.Lift != nil
	}
	return true
}

// What is the text by which messages call r.
func (r *Read) What() string {
	return text(r.Expr)
}

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
		w.expr(s.X)
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
		note(&w.e.Barrier, cause(s, "sends on a channel").as(Blocks))
		w.expr(s.Chan)
		w.expr(s.Value)
	case *ast.GoStmt:
		note(&w.e.Barrier, cause(s, "starts a goroutine").as(Blocks))
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
		note(&w.e.Barrier, cause(s, "receives from a channel").as(Blocks))
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
		note(&w.e.Barrier, cause(s, "ranges over a function, %s, whose effects are unknown", text(s.X)).as(UnknownEffects))
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
			note(&w.e.Barrier, cause(e, "receives from a channel").as(Blocks))
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
		note(&w.e.Leaves, cause(lit, "makes a function that may be called at another time").as(UnknownEffects))
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
			note(&w.e.Leaves, cause(e, "takes %s as a value", text(e)).as(UnknownEffects))
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
			record(Loc{Kind: Deref, Type: w.f.Analysis.types.of(v.Type())}, c)
		}
	}
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

// owner returns the variable that e is, or of which e is one of the slices in it, if nothing else leads to its memory.
func (w *walker) owner(e ast.Expr) (*types.Var, bool) {
	e = ast.Unparen(e)
	ix, row := e.(*ast.IndexExpr)
	if row {
		e = ast.Unparen(ix.X)
	}
	id, ok := e.(*ast.Ident)
	if !ok {
		return nil, false
	}
	v := w.f.variable(id)
	if v == nil || w.f.facts[v] == nil || !w.f.facts[v].own || w.f.facts[v].address || row && !w.f.facts[v].rows {
		return nil, false
	}
	return v, true
}

// call walks a call, by what is called.
func (w *walker) call(call *ast.CallExpr) {
	info := w.f.Info
	if info.Types[call].Value != nil {
		return // a constant: len of an array, unsafe.Sizeof
	}
	if tv := info.Types[call.Fun]; tv.IsType() {
		w.exprs(call.Args)
		return
	}
	if w.f.NeverReturns(call) {
		note(&w.e.Ends, cause(call, "calls %s", text(call.Fun)))
	}
	if name := w.f.builtin(call); name != "" {
		w.builtin(name, call)
		return
	}
	fun := ast.Unparen(call.Fun)
	if lit, ok := fun.(*ast.FuncLit); ok {
		w.exprs(call.Args)
		w.run(lit, call, "a function literal")
		return
	}
	if id, ok := fun.(*ast.Ident); ok {
		if v := w.f.variable(id); v != nil {
			if w.f.closures[v] != nil {
				w.closure(v, call)
				return
			}
			if d, t, ok := w.f.ofType(fun); ok {
				w.expr(fun)
				w.declaredCall(d, t, call)
				return
			}
			if d, ok := w.f.ofParam(fun); ok {
				w.expr(fun)
				w.declaredCall(d, v, call)
				return
			}
			w.exprs(call.Args)
			if v == w.f.yield {
				return // the loop has its own effects
			}
			note(&w.e.Barrier, cause(call, "calls %s, a function value whose effects are unknown", v.Name()).as(UnknownEffects))
			return
		}
	}
	fn, _ := typeutil.Callee(info, call).(*types.Func)
	if fn == nil {
		w.dynamic(call)
		return
	}
	if w.f.IsChoice(call) {
		w.choice(call)
		return
	}
	if api, ok := w.f.Analysis.API.Lookup(fn); ok {
		w.library(api, fn, call)
		if recv := fn.Signature().Recv(); recv != nil && isInterface(recv.Type()) {
			w.behind(recv.Type(), fn.Name(), call)
		}
		return
	}
	if fact := facts.Of(fn); fact != nil {
		w.standard(fact, fn, call)
		return
	}
	if recv := w.f.receiver(call); fn.FullName() == "(error).Error" && recv != nil {
		w.formatted(recv, false)
		return
	}
	if d, ok := w.f.Analysis.Program.Effects(fn); ok {
		w.declaredCall(d, fn, call)
		return
	}
	var why *Cause
	if w.reads != nil && w.f.Lifts {
		var l *Lift
		if l, why = w.f.Analysis.Lift(fn, false, w.f.Home); l != nil {
			if why = w.f.apart(l, call); why == nil {
				w.lifted(l, name(fn), call)
				return
			}
		}
	}
	waited := w.e.Waits != nil
	e := w.f.Analysis.Summary(fn, w.f.Home)
	if e.Formats != nil || w.f.Analysis.isInProgress(fn, w.f.Home) {
		w.operandsOfPrinter(fn, call)
	} else {
		w.operands(call)
	}
	w.e.addCall(e, call.Pos(), name(fn))
	if why != nil && !waited && w.e.Waits != nil {
		w.e.Waits.In = why
	}
}

// declaredCall walks a call of a function whose effects are declared. It may look
// at all that its arguments lead to.
func (w *walker) declaredCall(d load.Effects, callee types.Object, call *ast.CallExpr) {
	recv := w.f.receiver(call)
	if sig, ok := callee.Type().Underlying().(*types.Signature); ok && d.Formats {
		if recv != nil {
			w.expr(recv)
		}
		for i, arg := range call.Args {
			p := sig.Params().At(min(i, sig.Params().Len()-1)).Type()
			if s, ok := p.Underlying().(*types.Slice); ok && i >= sig.Params().Len()-1 && sig.Variadic() && !call.Ellipsis.IsValid() {
				p = s.Elem()
			}
			switch {
			case !isInterface(p):
				w.expr(arg)
			case call.Ellipsis.IsValid() && i == len(call.Args)-1:
				w.expr(arg)
				note(&w.e.Barrier, cause(arg, "formats %s, whose types are not known", text(arg)).as(UnknownEffects))
			default:
				w.formatted(arg, false)
			}
		}
	} else {
		w.operands(call)
	}
	for _, arg := range call.Args {
		w.reach(w.f.Info.TypeOf(arg), arg, d.Changes, !w.isDeclared(arg))
	}
	if recv != nil {
		w.reach(w.f.Info.TypeOf(recv), recv, d.Changes, !w.isDeclared(recv))
		if isPlace(recv) && !isPointer(w.f.Info.TypeOf(recv)) {
			w.load(ast.Unparen(recv))
			if d.Changes {
				w.store(recv)
			}
		}
	}
	if d.Wraps != "" {
		w.methodsCalled(call, strings.Split(d.Wraps, ",")...)
	}
	w.e.addCall(declared(d, callee.Pos()), call.Pos(), calledName(callee, call))
}

// isDeclared reports whether e is a call of a function with declared effects: what is behind its
// result is what its arguments lead to, which have been walked.
func (w *walker) isDeclared(e ast.Expr) bool {
	call, ok := ast.Unparen(e).(*ast.CallExpr)
	if !ok {
		return false
	}
	fn := typeutil.StaticCallee(w.f.Info, call)
	if fn == nil {
		return false
	}
	_, ok = w.f.Analysis.Program.Effects(fn)
	return ok
}

// calledName is how messages call what a call calls.
func calledName(callee types.Object, call *ast.CallExpr) string {
	if fn, ok := callee.(*types.Func); ok {
		return name(fn)
	}
	return text(call.Fun)
}

// name is how messages call a function: fmt.Println, (*Model).Loss.
func name(fn *types.Func) string {
	s := fn.FullName()
	if i := strings.LastIndexByte(s, '/'); i >= 0 {
		prefix := ""
		if strings.HasPrefix(s, "(*") {
			prefix = "(*"
		} else if strings.HasPrefix(s, "(") {
			prefix = "("
		}
		s = prefix + s[i+1:]
	}
	return s
}

// dynamic walks a call of a function value that is not a variable of its own.
func (w *walker) dynamic(call *ast.CallExpr) {
	w.expr(call.Fun)
	if sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr); ok {
		if s := w.f.Info.Selections[sel]; s != nil {
			if d, ok := w.f.Analysis.Program.Effects(s.Obj()); ok {
				w.declaredCall(d, s.Obj(), call)
				return
			}
		}
	}
	if d, t, ok := w.f.ofType(call.Fun); ok {
		w.declaredCall(d, t, call)
		return
	}
	w.exprs(call.Args)
	note(&w.e.Barrier, cause(call, "calls %s, a function value whose effects are unknown", text(call.Fun)).as(UnknownEffects))
}

// ofType returns what is said of all functions of the type of fun, and that type.
func (f *Function) ofType(fun ast.Expr) (load.Effects, *types.TypeName, bool) {
	n, ok := types.Unalias(f.Info.TypeOf(fun)).(*types.Named)
	if !ok {
		return load.Effects{}, nil, false
	}
	e, ok := f.Analysis.Program.Effects(n.Origin().Obj())
	return e, n.Origin().Obj(), ok
}

// ofParam returns what the directive says of fun, a parameter that gets no other value.
func (f *Function) ofParam(fun ast.Expr) (load.Effects, bool) {
	v := f.Variable(fun)
	if v == nil || v.Pos() >= f.Decl.Body.Pos() || f.Sets(v) != 1 {
		return load.Effects{}, false
	}
	return f.Analysis.Program.Effects(v)
}

// behind adds the effects of the program's own methods that a call through an
// interface may reach.
func (w *walker) behind(t types.Type, method string, at ast.Node) {
	iface, ok := t.Underlying().(*types.Interface)
	if !ok {
		return
	}
	for _, fn := range w.f.Analysis.Implementations(w.f.Home, iface, method) {
		w.e.addCall(w.f.Analysis.Summary(fn, w.f.Home), at.Pos(), name(fn))
	}
}

// methodsCalled adds what all methods of these names do that the package may
// reach.
func (w *walker) methodsCalled(at ast.Node, names ...string) {
	for _, method := range names {
		for _, m := range w.f.Analysis.methods(w.f.Home, method) {
			w.e.addCall(w.f.Analysis.Summary(m, w.f.Home), at.Pos(), name(m))
		}
	}
}

// operands walks the receiver and the arguments of a call.
func (w *walker) operands(call *ast.CallExpr) {
	w.receiver(call)
	w.exprs(call.Args)
}

// operandsOfPrinter is operands for a call of a function of the program that may make text of what its last parameter
// holds, as package fmt does: func logf(format string, args ...any). What that calls is known where the arguments are.
func (w *walker) operandsOfPrinter(fn *types.Func, call *ast.CallExpr) {
	if !fn.Signature().Variadic() {
		w.operands(call)
		return
	}
	w.receiver(call)
	last := fn.Signature().Params().Len() - 1
	for i, arg := range call.Args {
		switch {
		case i < last:
			w.expr(arg)
		case call.Ellipsis.IsValid():
			w.expr(arg)
			w.formattedRest(arg)
		default:
			w.formatted(arg, false)
		}
	}
}

// formattedRest adds that the elements of arg are formatted, of which the types do not show here. Where arg is the last
// parameter of a function that is summarised, that is the business of its callers.
func (w *walker) formattedRest(arg ast.Expr) {
	c := cause(arg, "formats %s, whose types are not known", text(arg)).as(UnknownEffects)
	if w.f.isRest(arg) {
		note(&w.e.Formats, c)
		return
	}
	note(&w.e.Barrier, c)
}

// isRest reports whether e is the last parameter, args ...any, of a function that is summarised, and holds what the
// function got: it is only handed on as a whole, or counted.
func (f *Function) isRest(e ast.Expr) bool {
	if !f.summarised || f.Obj == nil || !f.Obj.Signature().Variadic() {
		return false
	}
	params := f.Obj.Signature().Params()
	v := params.At(params.Len() - 1)
	id, ok := ast.Unparen(e).(*ast.Ident)
	if !ok || f.variable(id) != v {
		return false
	}
	whole := true
	ast.Inspect(f.Decl.Body, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		if !ok || f.variable(id) != v {
			return true
		}
		call, ok := f.parents[id].(*ast.CallExpr)
		whole = whole && ok && (f.builtin(call) == "len" || f.builtin(call) == "" && call.Ellipsis.IsValid() && call.Args[len(call.Args)-1] == id)
		return true
	})
	return whole
}

// receiver walks the receiver of a call, if it has one.
func (w *walker) receiver(call *ast.CallExpr) {
	switch fun := ast.Unparen(call.Fun).(type) {
	case *ast.SelectorExpr:
		if sel := w.f.Info.Selections[fun]; sel != nil {
			if takesPointer(sel) && isPlace(fun.X) {
				w.sub(fun.X) // its address is taken; what the callee does there, its effects say
			} else {
				w.expr(fun.X)
			}
			if t, ok := copiedReceiver(sel); ok {
				w.e.read(Loc{Kind: Deref, Type: w.f.Analysis.types.of(t)}, cause(fun.X, "reads what is behind %s", text(fun.X)))
			}
		}
	}
}

// copiedReceiver returns the type of the receiver of a method that gets a copy
// of what a pointer leads to.
func copiedReceiver(sel *types.Selection) (types.Type, bool) {
	fn, ok := sel.Obj().(*types.Func)
	if !ok {
		return nil, false // a field of function type
	}
	recv := fn.Signature().Recv()
	if recv == nil || isInterface(recv.Type()) || isPointer(recv.Type()) {
		return nil, false
	}
	return recv.Type(), sel.Indirect() || isPointer(sel.Recv())
}

// named returns the function, not a method, that e is the name of, or nil.
func (f *Function) named(e ast.Expr) *types.Func {
	switch x := ast.Unparen(e).(type) {
	case *ast.IndexExpr:
		return f.named(x.X)
	case *ast.IndexListExpr:
		return f.named(x.X)
	case *ast.SelectorExpr:
		if f.Info.Selections[x] == nil {
			fn, _ := f.Info.Uses[x.Sel].(*types.Func)
			return fn
		}
	case *ast.Ident:
		fn, _ := f.Info.Uses[x].(*types.Func)
		return fn
	}
	return nil
}

// run adds the effects of calling a function literal.
func (w *walker) run(lit *ast.FuncLit, call *ast.CallExpr, name string) {
	if w.f.inProgress[lit] {
		note(&w.e.Barrier, cause(call, "calls %s, which calls itself", name).as(UnknownEffects))
		return
	}
	w.f.inProgress[lit] = true
	defer delete(w.f.inProgress, lit)
	waits := w.e.Waits
	w.outer().stmt(lit.Body)
	if waits == nil && w.e.Waits != nil {
		c := *w.e.Waits
		w.e.Waits = &Cause{Pos: call.Pos(), Text: "calls " + name + ", which " + c.Text, Code: WaitsInside,
			In: &Cause{Pos: c.Pos, Text: "is a function literal that no variable stands for alone"}}
	}
}

// closure walks a call of the function literal that v stands for, in two parts if that can be.
func (w *walker) closure(v *types.Var, call *ast.CallExpr) {
	var why *Cause
	if w.reads != nil && w.f.Lifts {
		var l *Lift
		if l, why = w.f.liftClosure(v, false); l != nil {
			w.lifted(l, v.Name(), call)
			return
		}
	}
	waited := w.e.Waits != nil
	w.exprs(call.Args)
	w.run(w.f.closures[v], call, v.Name())
	if !waited && w.e.Waits != nil && why != nil {
		w.e.Waits.In = why
	}
}

// builtin walks a call of a builtin function.
func (w *walker) builtin(name string, call *ast.CallExpr) {
	switch name {
	case "append":
		w.exprs(call.Args)
		if l, ok := w.elementsOf(call.Args[0]); ok {
			w.touch(l, call.Args[0], w.e.write, "changes what is behind")
		}
		if call.Ellipsis.IsValid() {
			if l, ok := w.elementsOf(call.Args[1]); ok {
				w.touch(l, call.Args[1], w.e.read, "reads")
			}
		}
	case "copy", "delete", "clear":
		w.exprs(call.Args)
		if l, ok := w.elementsOf(call.Args[0]); ok {
			w.touch(l, call.Args[0], w.e.write, "changes")
		}
		if name == "copy" {
			if l, ok := w.elementsOf(call.Args[1]); ok {
				w.touch(l, call.Args[1], w.e.read, "reads")
			}
		}
	case "len", "cap":
		w.exprs(call.Args)
		t := w.f.Info.TypeOf(call.Args[0])
		if isMap(t) {
			w.touch(Loc{Kind: MapElem, Type: w.f.Analysis.types.of(t.Underlying())}, call, w.e.read, "reads")
			if v, ok := w.owner(call.Args[0]); ok {
				w.touch(Loc{Kind: Own, Obj: v}, call, w.e.read, "reads")
			}
		}
		if _, ok := t.Underlying().(*types.Chan); ok {
			note(&w.e.Barrier, cause(call, "looks into a channel").as(Blocks))
		}
	case "print", "println":
		w.exprs(call.Args)
		w.e.write(Loc{Kind: World}, cause(call, "prints"))
	case "close", "recover":
		w.exprs(call.Args)
		note(&w.e.Barrier, cause(call, "calls %s", name).as(Blocks))
	default: // make, new, panic, min, max, complex, real, imag and the like
		w.exprs(call.Args)
	}
}

// formatted walks one formatted argument.
func (w *walker) formatted(arg ast.Expr, faithful bool) {
	t := w.f.Info.TypeOf(arg)
	if !w.f.Analysis.API.IsTensor(t) {
		if w.literalElements(arg) || w.attributes(arg, faithful) {
			return
		}
		w.expr(arg)
		w.methods(t, arg, make(map[types.Type]bool))
		w.deep(t, arg, false)
		return
	}
	if w.reads == nil || !faithful {
		w.expr(arg)
		why := "prints a tensor"
		if w.reads != nil {
			why = "prints a tensor in a way that only the tensor itself can"
		}
		note(&w.e.Waits, cause(arg, "%s", why).as(OnlyNow))
		return
	}
	w.addRead(&Read{Expr: arg, Operand: arg})
}

// faithfulVerbs reports whether the format of a call, if it has one, is a
// constant that prints each operand once, and none with a verb that tells a
// tensor from its Read: %T, %p, %#v, and %i, which names the device. What fmt
// says of an operand too many names its type as well.
func (w *walker) faithfulVerbs(fn *types.Func, call *ast.CallExpr) bool {
	if !strings.HasSuffix(fn.Name(), "f") {
		return true
	}
	at := fn.Signature().Params().Len() - 2
	if at < 0 || at >= len(call.Args) {
		return false
	}
	tv := w.f.Info.Types[call.Args[at]]
	if tv.Value == nil || tv.Value.Kind() != constant.String {
		return false
	}
	operands := 0
	for format := constant.StringVal(tv.Value); ; {
		_, rest, found := strings.Cut(format, "%")
		if !found {
			return operands == len(call.Args)-at-1
		}
		rest = strings.TrimLeft(rest, "+-0 123456789.")
		switch {
		case rest == "" || strings.ContainsRune("Tpi#[*", rune(rest[0])):
			return false
		case rest[0] != '%':
			operands++
		}
		format = rest[1:]
	}
}

// addRead records a read that can be put off.
func (w *walker) addRead(r *Read) {
	r.Effects = w.f.walk(r.Operand, nil)
	switch t := w.f.Info.TypeOf(r.Operand); {
	case tensorapi.IsInteger(t):
		r.Number = "ReadI64"
	case tensorapi.IsNumber(t):
		r.Number = "ReadF64"
	}
	if id, ok := ast.Unparen(r.Operand).(*ast.Ident); ok {
		if v := w.f.variable(id); v != nil && w.f.isInner(v) {
			r.Plain = v
		}
	}
	*w.reads = append(*w.reads, r)
}

// methods adds what formatting a value of type t may call.
func (w *walker) methods(t types.Type, at ast.Expr, seen map[types.Type]bool) {
	if t == nil || seen[t] {
		return
	}
	seen[t] = true
	if w.f.Analysis.API.IsTensor(t) {
		note(&w.e.Waits, cause(at, "prints %s, which holds tensors", text(at)).as(OnlyNow))
		return
	}
	if named, ok := derefNamed(t); ok && named.Obj().Pkg() != nil {
		path := named.Obj().Pkg().Path()
		if w.f.Analysis.API.Owns(path) {
			if w.f.Analysis.API.IsCell(t) || !strings.HasSuffix(path, "/device") {
				note(&w.e.Barrier, cause(at, "prints %s, which may hold tensors", text(at)).as(UnknownEffects))
			}
			return
		}
		for _, m := range textMethods {
			obj, _, _ := types.LookupFieldOrMethod(t, true, named.Obj().Pkg(), m)
			fn, ok := obj.(*types.Func)
			if !ok || isInterface(t) {
				continue
			}
			if fact := facts.Of(fn); fact != nil {
				return // it makes text of what it is
			}
			w.e.addCall(w.f.Analysis.Summary(fn, w.f.Home), at.Pos(), name(fn))
		}
	}
	switch u := t.Underlying().(type) {
	case *types.Interface:
		if isError(t) {
			w.errors(at, seen)
			return
		}
		note(&w.e.Barrier, cause(at, "formats %s, whose type is not known before the program runs", text(at)).as(UnknownEffects))
	case *types.Struct:
		for f := range u.Fields() {
			w.methods(f.Type(), at, seen)
		}
	case *types.Slice:
		w.methods(u.Elem(), at, seen)
	case *types.Array:
		w.methods(u.Elem(), at, seen)
	case *types.Map:
		w.methods(u.Key(), at, seen)
		w.methods(u.Elem(), at, seen)
	case *types.Pointer:
		w.methods(u.Elem(), at, seen)
	}
}

func derefNamed(t types.Type) (*types.Named, bool) {
	if p, ok := types.Unalias(t).(*types.Pointer); ok {
		t = p.Elem()
	}
	n, ok := types.Unalias(t).(*types.Named)
	return n, ok
}

// deep adds reads, or writes, of all memory that a value of type t leads to, as far as types show:
// who looks behind an interface needs its methods.
func (w *walker) deep(t types.Type, at ast.Expr, writes bool) { w.reach(t, at, writes, false) }

// everything is deep for those who look behind interfaces, too.
func (w *walker) everything(t types.Type, at ast.Expr, writes bool) { w.reach(t, at, writes, true) }

func (w *walker) reach(t types.Type, at ast.Expr, writes, behind bool) {
	seen := make(map[types.Type]bool)
	var visit func(t types.Type)
	touch := func(l Loc) {
		w.touch(l, at, w.e.read, "reads what is behind")
		if writes {
			w.touch(l, at, w.e.write, "changes what is behind")
		}
	}
	kinds := &w.f.Analysis.types
	visit = func(t types.Type) {
		if t == nil || seen[t] || w.f.Analysis.API.IsTensor(t) {
			return
		}
		seen[t] = true
		switch u := t.Underlying().(type) {
		case *types.Slice:
			touch(Loc{Kind: Elem, Type: kinds.of(u.Elem())})
			visit(u.Elem())
		case *types.Pointer:
			touch(Loc{Kind: Deref, Type: kinds.of(u.Elem())})
			visit(u.Elem())
		case *types.Map:
			touch(Loc{Kind: MapElem, Type: kinds.of(u)})
			visit(u.Key())
			visit(u.Elem())
		case *types.Array:
			visit(u.Elem())
		case *types.Struct:
			for f := range u.Fields() {
				visit(f.Type())
			}
		case *types.Interface:
			switch {
			case isTypeParam(t), isError(t), behind && u.NumMethods() == 0:
				touch(Loc{Kind: Memory})
			case behind:
				for _, fn := range w.f.Analysis.Implementations(w.f.Home, u, u.Method(0).Name()) {
					visit(fn.Signature().Recv().Type())
					if !isPointer(fn.Signature().Recv().Type()) {
						visit(types.NewPointer(fn.Signature().Recv().Type()))
					}
				}
			}
		}
	}
	v, ok := w.owner(at)
	if !ok {
		visit(t)
		return
	}
	touch(Loc{Kind: Own, Obj: v})
	switch u := t.Underlying().(type) {
	case *types.Slice:
		visit(u.Elem())
	case *types.Pointer:
		visit(u.Elem())
	case *types.Map:
		visit(u.Key())
		visit(u.Elem())
	}
}

// library walks a call of the tensor library.
func (w *walker) library(api tensorapi.Func, fn *types.Func, call *ast.CallExpr) {
	c := cause(call, "calls %s", name(fn))
	switch api.Kind {
	case tensorapi.Read, tensorapi.Print, tensorapi.Wait:
		w.read(api, fn, call)
		return
	}
	w.operands(call)
	kind := api.Kind
	if kind == tensorapi.Call && w.callsOp(api, call) {
		kind = tensorapi.Op
	}
	switch kind {
	case tensorapi.Meta:
	case tensorapi.Pure:
		for _, arg := range call.Args {
			w.deep(w.f.Info.TypeOf(arg), arg, false)
		}
	case tensorapi.Value:
		if w.held != nil && w.f.takes(fn, call) {
			*w.held = append(*w.held, call)
			return
		}
		w.e.read(Loc{Kind: Cells}, c)
	case tensorapi.View:
	case tensorapi.Host, tensorapi.Op:
		note(&w.e.Enqueues, c)
		w.e.read(Loc{Kind: Cells}, c) // a module's Forward reads its parameters
		for _, arg := range call.Args {
			w.deep(w.f.Info.TypeOf(arg), arg, false)
		}
		if api.Arg != tensorapi.None && kind == tensorapi.Op && !w.f.isFrozen(call) { // or it calls such a one
			w.e.write(Loc{Kind: Cells}, c)
		}
	case tensorapi.Draw, tensorapi.Mutate:
		note(&w.e.Enqueues, c)
		w.e.read(Loc{Kind: Cells}, c)
		w.e.write(Loc{Kind: Cells}, c)
	case tensorapi.Output:
		for _, arg := range call.Args {
			w.deep(w.f.Info.TypeOf(arg), arg, false)
		}
		w.e.write(Loc{Kind: World}, cause(call, "writes to the outside"))
	case tensorapi.Save:
		w.e.read(Loc{Kind: Cells}, c)
		note(&w.e.Barrier, cause(call, "calls %s, which waits and writes a file", name(fn)).as(Blocks))
	case tensorapi.WaitAll:
		note(&w.e.Barrier, cause(call, "calls %s, which waits for everything", name(fn)).as(Blocks))
	default: // Poll, Control, Call
		note(&w.e.Barrier, cause(call, "calls %s", name(fn)).as(Blocks))
	}
}

// isFrozen reports whether call is one of a method of what the library has frozen, whose cells never change:
// nn.Frozen(net).Forward(x), or of a variable that is defined so.
func (f *Function) isFrozen(call *ast.CallExpr) bool {
	recv := f.receiver(call)
	if recv == nil {
		return false
	}
	if v := f.Variable(recv); v != nil && !f.Visible(v) {
		recv = f.Definition(v)
	}
	made, ok := ast.Unparen(recv).(*ast.CallExpr)
	if !ok {
		return false
	}
	fn, api, kind := f.Callee(made)
	return kind == CallsLibrary && api.Kind == tensorapi.Value && fn.Name() == "Frozen"
}

// callsOp reports whether the function that call calls is an operation of the library, named as
// such: then so is the call.
func (w *walker) callsOp(api tensorapi.Func, call *ast.CallExpr) bool {
	if api.Arg < 0 || api.Arg >= len(call.Args) || api.Calls == tensorapi.Later {
		return false
	}
	var id *ast.Ident
	switch e := ast.Unparen(call.Args[api.Arg]).(type) {
	case *ast.Ident:
		id = e
	case *ast.SelectorExpr:
		id = e.Sel
	default:
		return false
	}
	fn, ok := w.f.Info.Uses[id].(*types.Func)
	if !ok || fn.Signature().Recv() != nil {
		return false
	}
	called, ok := w.f.Analysis.API.Lookup(fn)
	return ok && called.Kind == tensorapi.Op
}

// takes reports whether call does no more than take what the cells of variables hold now, so that it may as well be
// evaluated earlier in the iteration, and in vain.
func (f *Function) takes(fn *types.Func, call *ast.CallExpr) bool {
	if fn.Name() != "Value" && fn.Name() != "Snapshot" || call.Ellipsis.IsValid() {
		return false
	}
	operands := call.Args
	if recv := f.receiver(call); recv != nil {
		operands = append(slices.Clip(operands), recv)
	}
	return len(operands) > 0 && !slices.ContainsFunc(operands, func(e ast.Expr) bool {
		v := f.Variable(e)
		return v == nil || f.Visible(v)
	})
}

// readMethods are the reads that asyncrt.Read offers too: the method of
// Tensor, and what generated code calls in its place.
var readMethods = map[string]string{
	"Item": "Item", "ItemInt": "ItemInt", "At": "At", "AtInt": "AtInt", "Matrix": "Matrix", "MarshalJSON": "MarshalJSON",
	"Float32s": "Float32s", "Float64s": "Float64s", "Int64s": "Int64s", "Bools": "Bools",
	"String": "String", "Wait": "Err",
}

// readFuncs are the generic functions that package asyncrt has for a Read as
// package tensor has them for a Tensor.
var readFuncs = map[string]bool{"ItemOf": true, "SliceOf": true}

// isDropped reports whether nothing uses the result of a call: then waiting
// was the purpose of it.
func (f *Function) isDropped(call *ast.CallExpr) bool {
	switch p := f.parents[call].(type) {
	case *ast.ExprStmt:
		return true
	case *ast.AssignStmt:
		for _, lhs := range p.Lhs {
			if id, ok := lhs.(*ast.Ident); !ok || id.Name != "_" {
				return false
			}
		}
		return true
	}
	return false
}

// isTensorValue reports whether e is a tensor, and not the type as in
// (*tensor.Tensor).Item(t).
func (w *walker) isTensorValue(e ast.Expr) bool {
	tv := w.f.Info.Types[e]
	return tv.IsValue() && w.f.Analysis.API.IsTensor(tv.Type)
}

// isNumber reports whether call reads a number.
func (w *walker) isNumber(call *ast.CallExpr) bool {
	sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr)
	if !ok || !w.f.Info.Types[sel.X].IsValue() || !tensorapi.IsNumber(w.f.Info.TypeOf(sel.X)) {
		return false
	}
	return sel.Sel.Name == "Item" && isFloat64(w.f.Info.TypeOf(call)) || sel.Sel.Name == "ItemInt"
}

func isFloat64(t types.Type) bool { return types.Identical(t, types.Typ[types.Float64]) }

// read walks a call that waits for a tensor.
func (w *walker) read(api tensorapi.Func, fn *types.Func, call *ast.CallExpr) {
	if w.f.Hoisted[call] {
		w.operands(call)
		return
	}
	if w.reads != nil && (!w.f.isDropped(call) || w.f.Restated != nil && w.isNumber(call)) {
		if sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr); ok && api.Arg == tensorapi.Recv && (w.isTensorValue(sel.X) || w.isNumber(call)) {
			if method, ok := readMethods[fn.Name()]; ok {
				w.exprs(call.Args)
				w.addRead(&Read{Expr: call, Operand: sel.X, Method: method})
				return
			}
		}
		if api.Arg == 0 && readFuncs[fn.Name()] && len(call.Args) == 1 {
			w.addRead(&Read{Expr: call, Operand: call.Args[0], Func: call.Fun})
			return
		}
	}
	w.operands(call)
	note(&w.e.Waits, cause(call, "calls %s, which waits", name(fn)).as(OnlyNow))
}

// ReadOf returns the variable and the method of a call like loss.Item(), which
// waits for a variable.
func (f *Function) ReadOf(call *ast.CallExpr) (v *types.Var, method string, ok bool) {
	sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr)
	if !ok || len(call.Args) > 0 {
		return nil, "", false
	}
	id, ok := ast.Unparen(sel.X).(*ast.Ident)
	if !ok {
		return nil, "", false
	}
	fn := typeutil.StaticCallee(f.Info, call)
	if fn == nil {
		return nil, "", false
	}
	api, ok := f.Analysis.API.Lookup(fn)
	if v = f.variable(id); v == nil || !ok || api.Kind != tensorapi.Read || api.Arg != tensorapi.Recv || !f.Analysis.API.IsTensor(v.Type()) {
		return nil, "", false
	}
	return v, fn.Name(), true
}
