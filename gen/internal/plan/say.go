package plan

import (
	"fmt"
	"go/ast"
	"go/types"
	"path/filepath"
	"strings"

	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"github.com/asyncgen/asyncgen/gen/internal/load"
)

// This file says what to write, and where, instead of what can't be put off. Hints of one text for a code are in
// ReasonOf.

// What can't be helped, or only sometimes.
const (
	workFromOutside = "this can't be helped: a loop that takes its work from outside waits for it anyway"
	otherGoroutines = "this can't be helped: a loop that takes part in what other goroutines do stays as it is; reads can have a loop of their own"
	rarely          = "move it out of the loop, or do it every so many iterations"
	knownType       = "format something of a type that is known" + elsewhere
	ifWork          = rarely + "; if it is the work of the loop, this can't be helped"
)

// with returns c with a hint.
func (c Cause) with(hint string) Cause {
	c.Hint = hint
	return c
}

// blocking is what to write instead of fn, of the standard library, which may wait for others.
func blocking(fn *types.Func) string {
	switch fn.Pkg().Path() {
	case "sync/atomic":
		return "other goroutines may look at it at once: do it after the loop, or every so many iterations"
	case "sync":
		if strings.HasSuffix(fn.Name(), "ock") { // of a mutex
			return "lock around the loop, or keep what it guards in a variable of the function"
		}
		return otherGoroutines
	}
	return ifWork
}

// calling is what to write instead of call, of a function of the library that calls one.
func (f *Function) calling(call *ast.CallExpr) string {
	t := f.Info.TypeOf(call)
	if s, ok := t.Underlying().(*types.Slice); ok {
		t = s.Elem()
	}
	switch {
	case f.isDropped(call):
		return "call it around the loop, or write what the function does in the loop itself"
	case f.Analysis.API.IsTensor(t):
		return "this can't be helped: what such a function does is not put off"
	}
	return "call it once, before the loop, or for a variable of the package"
}

// onlyNow returns the hint for a call that waits and has no form for later.
func (w *walker) onlyNow(fn *types.Func, call *ast.CallExpr) string {
	name, isContext := strings.CutSuffix(fn.Name(), "Context")
	results, recv := fn.Signature().Results(), fn.Signature().Recv()
	switch {
	case isContext:
		return "call " + name + ", if the wait need not end with the context"
	case results.Len() > 0 && w.f.Analysis.API.IsTensor(results.At(0).Type()):
		return "this can't be helped: its size depends on values; work with the mask where that does (Where, MaskedFill, Sum)"
	case recv != nil && tensorapi.IsCondition(recv.Type()):
		return "compare numbers: x.Item() < limit"
	case name == "Wait" && w.f.isDropped(call):
		return "leave it out, or look at the error that Wait of a tensor returns"
	case w.f.isDropped(call):
		return "nothing uses the value: leave it out"
	}
	return ""
}

// elsewhere is the end of hints about directives.
const elsewhere = "; or move the call out of the loop"

// above is to write a directive above what, which obj declares.
func (a *Analysis) above(what string, obj types.Object) string {
	if pos := a.Program.Fset.Position(obj.Pos()); pos.IsValid() {
		what += fmt.Sprintf(" (%s:%d)", filepath.Base(pos.Filename), pos.Line)
	}
	return "write //asyncgen:pure above " + what + " if it only computes, or //asyncgen:effects with what it does" + elsewhere
}

// sayFunc is what to write of fn.
func (a *Analysis) sayFunc(fn *types.Func) string {
	fn = fn.Origin()
	if !a.isOurs(fn) {
		effect := "none"
		if r := fn.Signature().Results(); r.Len() == 0 || r.Len() == 1 && isError(r.At(0).Type()) {
			effect = "output"
		}
		return fmt.Sprintf("write \"effects\": {%q: %q}, or what else it does, in %s beside go.mod%s", load.FullName(fn), effect, load.ConfigName, elsewhere)
	}
	what := fn.Name()
	if recv := fn.Signature().Recv(); recv != nil {
		if n, ok := derefNamed(recv.Type()); ok {
			what += " in " + n.Obj().Name()
		}
	}
	return a.above(what, fn)
}

// isOurs reports whether a package that has been loaded declares obj.
func (a *Analysis) isOurs(obj types.Object) bool {
	return obj.Pkg() != nil && a.Program.Package(obj.Pkg().Path()) != nil
}

// sayValue is what to write of the function value fun.
func (f *Function) sayValue(fun ast.Expr) string {
	a := f.Analysis
	if n, ok := types.Unalias(f.Info.TypeOf(fun)).(*types.Named); ok && a.isOurs(n.Obj()) {
		return a.above("type "+n.Obj().Name(), n.Obj())
	}
	switch fun := ast.Unparen(fun).(type) {
	case *ast.CallExpr:
		if fn, _, _ := f.Callee(fun); fn != nil {
			return a.sayFunc(fn)
		}
	case *ast.SelectorExpr:
		if sel := f.Info.Selections[fun]; sel != nil && sel.Kind() == types.FieldVal && a.isOurs(sel.Obj()) {
			return a.above("the field "+sel.Obj().Name(), sel.Obj().(*types.Var).Origin())
		}
	}
	if hint := f.sayParam(fun); hint != "" {
		return hint
	}
	return "declare the type of such functions, with //asyncgen:pure above it if they only compute, or //asyncgen:effects" + elsewhere
}

// sayParam is what to write of the function that e, a parameter of f or of the function around it, stands for, or "".
func (f *Function) sayParam(e ast.Expr) string {
	hint, name := f.inDirective("pure", e)
	if hint == "" {
		return ""
	}
	return fmt.Sprintf("%s if %s only computes (or output=%[2]s, device=%[2]s, ...)%s", hint, name, elsewhere)
}

// inDirective is where to write word=e of a parameter of f or of the function around it, and its name; or "".
func (f *Function) inDirective(word string, e ast.Expr) (hint, name string) {
	id, ok := ast.Unparen(e).(*ast.Ident)
	if !ok {
		return "", ""
	}
	v := f.variable(id)
	for f.outer != nil {
		f = f.outer
	}
	if v == nil || f.parameter(v.Name()) != v || f.Sets(v) != 1 {
		return "", ""
	}
	decl, where := f.Decl, "write //asyncgen:kernel %s=%s above %s"
	if f.Restated != nil {
		decl = f.Restated.From
	}
	if f.Pkg.Kernels[decl] != nil {
		where = "write %s=%s in the directive of %s"
	}
	return fmt.Sprintf(where, word, v.Name(), f.Decl.Name.Name), v.Name()
}

// sending is what to write instead of a value that is sent on the channel e.
func (f *Function) sending(e ast.Expr) string {
	const tensor = "send the tensor, and let the receiver read it"
	if hint, name := f.inDirective("output", e); hint != "" {
		return hint + " if others only receive from " + name + "; or " + tensor
	}
	return tensor
}
