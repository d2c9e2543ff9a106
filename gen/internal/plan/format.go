package plan

import (
	"go/ast"
	"go/types"

	"golang.org/x/tools/go/types/typeutil"
)

// errorType is the underlying type of error.
var errorType = types.Universe.Lookup("error").Type().Underlying().(*types.Interface)

// isError reports whether the values of t are errors, behind an interface.
func isError(t types.Type) bool {
	return isInterface(t) && !isTypeParam(t) && types.Implements(t, errorType)
}

// errors adds what formatting an error may call: the methods of the program's own
// types of errors. Those of other modules only make text.
func (w *walker) errors(at ast.Expr, seen map[types.Type]bool) {
	for _, fn := range w.f.Analysis.Implementations(w.f.Home, errorType, "Error") {
		w.methods(fn.Signature().Recv().Type(), at, seen)
	}
}

// literalElements walks a composite literal whose elements are behind an
// interface, as in map[string]any{"loss": v}, and reports whether e is one:
// what the elements are shows in the source.
func (w *walker) literalElements(e ast.Expr) bool {
	lit, ok := ast.Unparen(e).(*ast.CompositeLit)
	if !ok {
		return false
	}
	var elem types.Type
	switch u := w.f.Info.TypeOf(lit).Underlying().(type) {
	case *types.Map:
		elem = u.Elem()
		if isInterface(u.Key()) {
			return false
		}
	case *types.Slice:
		elem = u.Elem()
	case *types.Array:
		elem = u.Elem()
	default:
		return false
	}
	if !isInterface(elem) || isTypeParam(elem) {
		return false
	}
	for _, el := range lit.Elts {
		if kv, ok := el.(*ast.KeyValueExpr); ok {
			w.expr(kv.Key)
			el = kv.Value
		}
		if w.f.Analysis.API.IsTensor(w.f.Info.TypeOf(el)) {
			w.expr(el)
			note(&w.e.Waits, cause(el, "prints a tensor inside another value").as(OnlyNow))
			continue
		}
		w.formatted(el, false)
	}
	return true
}

// attributes walks an attribute of package slog that is made where it is
// logged, and reports whether e is one.
func (w *walker) attributes(e ast.Expr, faithful bool) bool {
	call, ok := ast.Unparen(e).(*ast.CallExpr)
	if !ok {
		return false
	}
	fn := typeutil.StaticCallee(w.f.Info, call)
	if fn == nil || fn.Pkg() == nil || fn.Pkg().Path() != "log/slog" {
		return false
	}
	switch fn.Name() {
	case "Any", "Group", "GroupAttrs":
		if call.Ellipsis.IsValid() {
			return false
		}
		w.expr(call.Args[0])
		for _, arg := range call.Args[1:] {
			w.formatted(arg, faithful)
		}
		return true
	case "AnyValue":
		w.formatted(call.Args[0], faithful)
		return true
	}
	if stdlib(fn) != stdPure || fn.Signature().Recv() != nil {
		return false
	}
	w.exprs(call.Args) // slog.Int and the like
	return true
}

// encoded walks a call that formats all its arguments, as encoding/json does.
func (w *walker) encoded(fn *types.Func, call *ast.CallExpr) {
	if recv := w.f.receiver(call); recv != nil {
		w.expr(recv)
	}
	faithful := fn.Pkg().Path() == "encoding/json"
	for i, arg := range call.Args {
		p := fn.Signature().Params().At(i).Type()
		switch {
		case isWriter(p):
			w.expr(arg)
			w.writes(w.f.Info.TypeOf(arg), call)
		case isInterface(p):
			w.formatted(arg, faithful)
		default:
			w.expr(arg)
		}
	}
	w.wrapped(fn, call)
}

// drives adds what a function does that is given something with methods to call:
// sort.Sort, heap.Push.
func (w *walker) drives(fn *types.Func, call *ast.CallExpr) {
	iface, ok := fn.Signature().Params().At(0).Type().Underlying().(*types.Interface)
	t := w.f.Info.TypeOf(call.Args[0])
	if !ok {
		return
	}
	for m := range iface.Methods() {
		if isInterface(t) {
			w.behind(t, m.Name(), call)
			if !w.f.Analysis.knows(t) {
				note(&w.e.Barrier, cause(call, "calls %s of %s, whose type is not known before the program runs", m.Name(), text(call.Args[0])).as(UnknownEffects))
			}
			continue
		}
		obj, _, _ := types.LookupFieldOrMethod(t, true, w.f.Pkg.Types, m.Name())
		if method, ok := obj.(*types.Func); ok && stdlib(method) != stdPure {
			w.e.addCall(w.f.Analysis.Summary(method, w.f.Home), call.Pos(), name(method))
		}
	}
	w.deep(t, call.Args[0], true)
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
