package plan

import (
	"go/ast"
	"go/types"

	"github.com/asyncgen/asyncgen/gen/internal/facts"
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
			note(&w.e.Waits, cause(el, "prints a tensor inside another value").as(OnlyNow).with("print the tensors themselves"))
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
	if fact := facts.Of(fn); fact == nil || fact.Does != 0 || fn.Signature().Recv() != nil {
		return false
	}
	w.exprs(call.Args) // slog.Int and the like
	return true
}

// textMethods are the methods that making text of a value may call.
var textMethods = []string{"Format", "GoString", "Error", "String", "LogValue", "IsZero", "MarshalText", "MarshalJSON"}

// formatsItself reports whether making text of a value of type t may call a method of the program,
// which may see what the value leads to.
func formatsItself(t types.Type, seen map[types.Type]bool) bool {
	if seen[t] {
		return false
	}
	seen[t] = true
	if named, ok := derefNamed(t); ok && named.Obj().Pkg() != nil {
		for _, m := range textMethods {
			obj, _, _ := types.LookupFieldOrMethod(t, true, named.Obj().Pkg(), m)
			if fn, ok := obj.(*types.Func); ok && facts.Of(fn) == nil {
				return true
			}
		}
	}
	switch u := t.Underlying().(type) {
	case *types.Interface:
		return true
	case *types.Struct:
		for f := range u.Fields() {
			if formatsItself(f.Type(), seen) {
				return true
			}
		}
	case *types.Map:
		return formatsItself(u.Key(), seen) || formatsItself(u.Elem(), seen)
	case interface{ Elem() types.Type }:
		return formatsItself(u.Elem(), seen)
	}
	return false
}
