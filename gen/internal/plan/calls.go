package plan

import (
	"go/ast"
	"go/types"
	"slices"
	"strings"

	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"github.com/asyncgen/asyncgen/gen/internal/facts"
	"github.com/asyncgen/asyncgen/gen/internal/load"
	"golang.org/x/tools/go/types/typeutil"
)

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
			if v == w.f.yield {
				w.exprs(call.Args)
				return // the loop has its own effects
			}
			w.unknown(call)
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
				note(&w.e.Barrier, cause(arg, "formats %s, whose types are not known", text(arg)).as(UnknownEffects).with(knownType))
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
	if d, field, ok := w.f.ofField(call.Fun); ok {
		w.declaredCall(d, field, call)
		return
	}
	if d, t, ok := w.f.ofType(call.Fun); ok {
		w.declaredCall(d, t, call)
		return
	}
	w.unknown(call)
}

// unknown walks a call of a function value whose effects nobody knows.
func (w *walker) unknown(call *ast.CallExpr) {
	w.exprs(call.Args)
	c := cause(call, "calls %s, a function value whose effects are unknown", text(call.Fun)).as(UnknownEffects)
	c.Hint = w.f.sayValue(call.Fun)
	note(&w.e.Barrier, c)
}

// ofField returns the declared effects of fun, a field with a function, and the field.
func (f *Function) ofField(fun ast.Expr) (load.Effects, types.Object, bool) {
	sel, ok := ast.Unparen(fun).(*ast.SelectorExpr)
	if !ok || f.Info.Selections[sel] == nil {
		return load.Effects{}, nil, false
	}
	field := f.Info.Selections[sel].Obj()
	d, ok := f.Analysis.Program.Effects(field)
	return d, field, ok
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
	for f.original != nil { // of which the directive speaks
		f = f.original
		v = f.parameter(v.Name())
	}
	return f.Analysis.Program.Effects(v)
}

// parameter returns the parameter of f with that name.
func (f *Function) parameter(name string) *types.Var {
	for _, field := range f.Decl.Type.Params.List {
		for _, id := range field.Names {
			if id.Name == name {
				v, _ := f.Info.Defs[id].(*types.Var)
				return v
			}
		}
	}
	return nil
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
	c := cause(arg, "formats %s, whose types are not known", text(arg)).as(UnknownEffects).with(knownType)
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
	case "close":
		w.exprs(call.Args)
		if d, ok := w.f.ofParam(call.Args[0]); ok && d.Output {
			w.e.addCall(declared(d, call.Pos()), call.Pos(), name)
			return
		}
		note(&w.e.Barrier, cause(call, "calls close").as(Blocks))
	case "recover":
		hint := "ask the tensor itself whether it failed, with Wait, which returns the error"
		note(&w.e.Barrier, cause(call, "calls recover").as(Blocks).with(hint))
	default: // make, new, panic, min, max, complex, real, imag and the like
		w.exprs(call.Args)
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
	case tensorapi.Poll:
		c := cause(call, "calls %s, which asks how far the device is", name(fn)).as(Blocks)
		note(&w.e.Barrier, c.with("this can't be helped: the answer is of its time; it does not wait"))
	case tensorapi.Control:
		c := cause(call, "calls %s, which keeps its place in the order of all effects", name(fn)).as(Blocks)
		note(&w.e.Barrier, c.with("call it before the loop, or every so many iterations"))
	default:
		c := cause(call, "calls %s, and the generator does not look into the function that this calls", name(fn)).as(Blocks)
		note(&w.e.Barrier, c.with(w.f.calling(call)))
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
