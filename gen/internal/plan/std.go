package plan

import (
	"go/ast"
	"go/types"
	"slices"

	"github.com/asyncgen/asyncgen/gen/internal/facts"
	"github.com/asyncgen/asyncgen/gen/internal/load"
	"golang.org/x/tools/go/types/typeutil"
)

// standard walks a call of a function of the standard library, of which fact says what it does.
func (w *walker) standard(fact *facts.Entry, fn *types.Func, call *ast.CallExpr) {
	w.receiver(call)
	if fact.Has(facts.Blocks) {
		w.exprs(call.Args)
		hint := blocking(fn)
		if _, ok := w.f.parents[call].(*ast.ForStmt); ok {
			hint = workFromOutside
		}
		note(&w.e.Barrier, cause(call, "calls %s, which may wait for the outside", name(fn)).as(Blocks).with(hint))
		return
	}
	c := cause(call, "calls %s", name(fn))
	sig := fn.Origin().Signature()
	of, slots := fact.Slots(sig)
	recv, args := w.f.receiverOf(call)
	own, isPrivate := w.private(recv)
	isPrivate = isPrivate && fact.Has(facts.Stream|facts.Source)
	if recv != nil && sig.Recv() != nil && !isPrivate && !fact.Has(facts.Source) {
		if of.Has(facts.Calls) && of.Methods == nil {
			of.Methods = []string{fn.Name()} // of an interface
		}
		w.slot(of, recv, sig.Recv().Type(), call)
	}
	faithful := fn.Pkg().Path() == "encoding/json" || sig.Variadic() && w.faithfulVerbs(fn, call)
	for i, arg := range args {
		last := min(i, len(slots)-1)
		s, param := slots[last], sig.Params().At(last).Type()
		rest := sig.Variadic() && last == len(slots)-1
		if rest && !call.Ellipsis.IsValid() {
			param = param.(*types.Slice).Elem()
		}
		switch {
		case !s.Has(facts.Formats):
			w.expr(arg)
		case rest && call.Ellipsis.IsValid():
			w.expr(arg)
			w.formattedRest(arg)
		default:
			w.formatted(arg, faithful)
		}
		if i == 0 && !isPrivate && w.f.isWrittenTo(call, arg) {
			if own, isPrivate = w.private(arg); isPrivate {
				continue
			}
		}
		w.slot(s, arg, param, call)
	}
	if isPrivate {
		w.e.read(Loc{Kind: Own, Obj: own}, c)
		w.e.write(Loc{Kind: Own, Obj: own}, c)
		return
	}
	w.does(fact, call, c)
}

// receiverOf returns the receiver of a call, if it has one, and its arguments: that of a method
// expression is the first of them.
func (f *Function) receiverOf(call *ast.CallExpr) (recv ast.Expr, args []ast.Expr) {
	sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr)
	if !ok || f.Info.Selections[sel] == nil {
		return nil, call.Args
	}
	if f.Info.Selections[sel].Kind() == types.MethodExpr {
		return call.Args[0], call.Args[1:]
	}
	return sel.X, call.Args
}

// slot adds what is done with e, which is handed to a receiver or parameter of the type param.
func (w *walker) slot(s facts.Slot, e ast.Expr, param types.Type, call *ast.CallExpr) {
	t := w.f.Info.TypeOf(e)
	changes := s.Has(facts.Changes | facts.State)
	switch {
	case s.Has(facts.Fills):
		w.everything(t, e, true)
		w.methodsCalled(call, s.Methods...)
	case s.Has(facts.Changes):
		w.deep(t, e, true)
	case s.Has(facts.Looks | facts.State | facts.Keeps | facts.Returns):
		w.deep(t, e, false)
	}
	if s.Has(facts.State) {
		w.state(t, e)
	}
	if s.Has(facts.Looks|facts.Changes|facts.Returns) && isInterface(t) && !isTypeParam(t) {
		w.touchMemory(e, changes)
	}
	if isPointer(param) && !isPointer(t) && isPlace(e) && s.Word != 0 && !s.Has(facts.Ignores) { // its address is taken
		w.touch(w.place(e), e, w.e.read, "reads")
		if changes {
			w.change(ast.Unparen(e))
		}
	}
	switch {
	case !s.Has(facts.Calls):
	case isFunc(param):
		w.calls(e, call)
	default:
		names := s.Methods
		if iface, ok := param.Underlying().(*types.Interface); ok && len(names) == 0 {
			for m := range iface.Methods() {
				names = append(names, m.Name())
			}
		}
		for _, m := range names {
			w.method(t, m, e, call)
		}
	}
}

// touchMemory records that what is behind e, of which the type does not show, is read, or changed too.
func (w *walker) touchMemory(e ast.Expr, changes bool) {
	w.touch(Loc{Kind: Memory}, e, w.e.read, "reads what is behind")
	if changes {
		w.touch(Loc{Kind: Memory}, e, w.e.write, "changes what is behind")
	}
}

// state adds that the memory of e changes that belongs to the package of its type: what pointers to
// types of that package lead to.
func (w *walker) state(t types.Type, e ast.Expr) {
	if v, ok := w.owner(e); ok {
		w.touch(Loc{Kind: Own, Obj: v}, e, w.e.write, "changes what is behind")
		return
	}
	seen := make(map[types.Type]bool)
	var visit func(t types.Type, pkg *types.Package)
	visit = func(t types.Type, pkg *types.Package) {
		if n, ok := types.Unalias(t).(*types.Named); ok {
			if seen[n] || pkg != nil && n.Obj().Pkg() != pkg {
				return
			}
			seen[n], pkg = true, n.Obj().Pkg()
		}
		switch u := t.Underlying().(type) {
		case *types.Pointer:
			w.touch(Loc{Kind: Deref, Type: w.f.Analysis.types.of(u.Elem())}, e, w.e.write, "changes what is behind")
			visit(u.Elem(), pkg)
		case *types.Struct:
			for f := range u.Fields() {
				if _, named := types.Unalias(f.Type()).(*types.Basic); !named {
					visit(f.Type(), pkg)
				}
			}
		}
	}
	visit(t, nil)
}

// calls adds what the function e does, which call calls before it returns.
func (w *walker) calls(e ast.Expr, call *ast.CallExpr) {
	switch e := ast.Unparen(e).(type) {
	case *ast.FuncLit:
		w.run(e, call, "a function literal")
		return
	case *ast.CallExpr:
		if fn := typeutil.StaticCallee(w.f.Info, e); fn != nil {
			if fact := facts.Of(fn); fact != nil && fact.Has(facts.Lazy) {
				return // what it looks at has been added where it is called
			}
		}
	default:
		fn := w.f.named(e)
		if fn == nil {
			break
		}
		if fact := facts.Of(fn); fact == nil || !fact.OnlyLooks() {
			w.e.addCall(w.f.Analysis.Summary(fn, w.f.Home), e.Pos(), name(fn))
		}
		return
	}
	c := cause(call, "calls %s with %s, a function value whose effects are unknown", text(call.Fun), text(e)).as(UnknownEffects)
	c.Hint = w.f.sayValue(e)
	note(&w.e.Barrier, c)
}

// method adds what the method called name of e does, of the type t. That e may have none is no matter.
func (w *walker) method(t types.Type, method string, e ast.Expr, call *ast.CallExpr) {
	obj, _, _ := types.LookupFieldOrMethod(t, true, w.f.Pkg.Types, method)
	fn, ok := obj.(*types.Func)
	if isInterface(t) {
		w.behind(t, method, call)
	}
	if !ok {
		return
	}
	// What declares the method may be an interface that t embeds. A value of the standard library
	// behind t may lead to any value with that one: an encoder is an io.WriteCloser, and writes to an
	// io.Writer.
	if from := fn.Signature().Recv().Type(); isInterface(from) && !types.Identical(from, t) {
		w.behind(from, method, call)
	}
	c := cause(call, "calls %s", name(fn))
	fact := facts.Of(fn)
	switch {
	case fact == nil && isInterface(t):
		if !w.f.Analysis.knows(t) {
			note(&w.e.Barrier, cause(call, "calls %s of %s, whose type is not known before the program runs", method, text(e)).as(UnknownEffects))
		}
	case fact == nil:
		w.e.addCall(w.f.Analysis.Summary(fn, w.f.Home), call.Pos(), name(fn))
	case fact.Has(facts.Blocks):
		note(&w.e.Barrier, cause(call, "calls %s, which may wait for the outside", name(fn)).as(Blocks).with(blocking(fn)))
	default:
		if isInterface(t) && fact.Has(facts.Prints|facts.Stream) && w.f.Analysis.sharesBuffers(w.f.Home) {
			bytes := Loc{Kind: Elem, Type: w.f.Analysis.types.of(types.Typ[types.Uint8])}
			w.touch(bytes, e, w.e.write, "changes the bytes behind")
		}
		if recv, _ := fact.Slots(fn.Signature()); !isInterface(t) {
			recv.Word &^= facts.Calls
			w.slot(recv, e, fn.Signature().Recv().Type(), call)
		}
		w.does(fact, call, c)
	}
}

// does adds what a function does besides what it does with its slots.
func (w *walker) does(fact *facts.Entry, call *ast.CallExpr, c Cause) {
	both := func(kind LocKind, c Cause) {
		w.e.read(Loc{Kind: kind}, c)
		w.e.write(Loc{Kind: kind}, c)
	}
	if fact.Has(facts.Prints | facts.Stamps) {
		w.e.write(Loc{Kind: World}, Cause{Pos: c.Pos, Text: "writes to the outside"})
	}
	if fact.Has(facts.Stamps) {
		note(&w.e.Stamps, c)
	}
	if fact.Has(facts.Stream) {
		both(World, c)
	}
	if fact.Has(facts.Env) {
		w.e.read(Loc{Kind: Process}, c)
	}
	if fact.Has(facts.Setenv) {
		w.e.write(Loc{Kind: Process}, c)
		w.e.write(Loc{Kind: World}, c)
	}
	if fact.Has(facts.Clock) {
		note(&w.e.Clock, Cause{Pos: c.Pos, Text: "reads the clock"})
	}
	if fact.Has(facts.Polls) {
		note(&w.e.Polls, c)
	}
	if fact.Has(facts.Random | facts.Global) {
		both(Random, Cause{Pos: c.Pos, Text: "draws random numbers"})
	}
	if fact.Has(facts.Source) || fact.Has(facts.Global) && w.f.Analysis.Program.Calls("math/rand.Seed") {
		both(Memory, Cause{Pos: c.Pos, Text: "draws from a random generator that others may use"})
	}
	if fact.Has(facts.Exits) {
		w.e.write(Loc{Kind: World}, Cause{Pos: c.Pos, Text: "ends the process or the goroutine"})
	}
	w.methodsCalled(call, fact.Wraps...)
}

// knows reports whether all types behind the interface t are seen: it has a method
// that no package but those of the program can declare.
func (a *Analysis) knows(t types.Type) bool {
	iface := t.Underlying().(*types.Interface)
	for m := range iface.Methods() {
		if !m.Exported() {
			return true
		}
	}
	return false
}

// sharesBuffers reports whether home, or a package of the module that it needs, gives a
// bytes.Buffer memory of its own, or holds what one of them has given it: writing to any writer may
// change bytes then.
func (a *Analysis) sharesBuffers(home *load.Package) bool {
	a.byHome = true
	shares, ok := a.buffers[home]
	if !ok {
		shares = a.Program.Contains(home, func(pkg *types.Info, call *ast.CallExpr, parent ast.Node) bool {
			fn := typeutil.StaticCallee(pkg, call)
			if fn == nil {
				return false
			}
			switch fn.FullName() {
			case "bytes.NewBuffer":
				return !isNewMemory(pkg, call.Args[0])
			case "(*bytes.Buffer).AvailableBuffer", "(*bytes.Buffer).Bytes", "(*bytes.Buffer).Next", "(*bytes.Buffer).Peek":
				return !isConsumed(pkg, call, parent)
			}
			return false
		})
		a.buffers[home] = shares
	}
	return shares
}

// isNewMemory reports whether e leads to memory that nothing else leads to.
func isNewMemory(info *types.Info, e ast.Expr) bool {
	switch e := ast.Unparen(e).(type) {
	case *ast.CompositeLit:
		return true
	case *ast.Ident:
		return info.Types[e].IsNil()
	case *ast.CallExpr:
		if info.Types[e.Fun].IsType() { // []byte(text), or a slice by another name
			b, ok := info.TypeOf(e.Args[0]).Underlying().(*types.Basic)
			return ok && b.Kind() != types.UnsafePointer
		}
		if id, ok := ast.Unparen(e.Fun).(*ast.Ident); ok && info.Uses[id] == types.Universe.Lookup("make") {
			return true
		}
		fn := typeutil.StaticCallee(info, e)
		return fn != nil && facts.Of(fn) != nil && facts.Of(fn).Has(facts.Fresh)
	}
	return false
}

// isConsumed reports whether e, an argument of the call parent, leads nowhere any more when that returns.
func isConsumed(info *types.Info, e ast.Expr, parent ast.Node) bool {
	call, ok := parent.(*ast.CallExpr)
	if !ok {
		return false
	}
	if tv := info.Types[call.Fun]; tv.IsType() {
		_, isText := tv.Type.Underlying().(*types.Basic)
		return isText
	}
	fn := typeutil.StaticCallee(info, call)
	if fn == nil || facts.Of(fn) == nil || facts.Of(fn).Has(facts.Blocks) {
		return false
	}
	_, slots := facts.Of(fn).Slots(fn.Origin().Signature())
	i := slices.Index(call.Args, e)
	return i >= 0 && !slots[min(i, len(slots)-1)].Has(facts.Keeps|facts.Returns)
}

// waitsFor completes "calls f, which ..." for functions of the standard library that nothing is
// known of, in packages that are for waiting; it is "" for others.
func waitsFor(fn *types.Func) string {
	if fn.Pkg() == nil {
		return ""
	}
	switch path := fn.Pkg().Path(); path {
	case "sync", "sync/atomic":
		return "other goroutines take part in"
	case "database/sql", "net", "net/http", "net/rpc", "os/exec", "os/signal":
		return "may wait for the outside"
	}
	return ""
}

func isWriter(t types.Type) bool {
	n, ok := types.Unalias(t).(*types.Named)
	return ok && n.Obj().Pkg() != nil && n.Obj().Pkg().Path() == "io" && n.Obj().Name() == "Writer"
}

// takesFunc reports whether fn calls a function that it is given.
func takesFunc(fact *facts.Entry, fn *types.Func) bool {
	_, slots := fact.Slots(fn.Origin().Signature())
	for i, s := range slots {
		if s.Has(facts.Calls) && isFunc(fn.Origin().Signature().Params().At(i).Type()) {
			return true
		}
	}
	return false
}
