package plan

import (
	"fmt"
	"go/ast"
	"go/types"
	"path/filepath"

	"github.com/asyncgen/asyncgen/gen/internal/load"
)

// This file says what to write, and where, so that the effects of a call are known.

// elsewhere ends a hint that says what to write: what else helps.
const elsewhere = "; or move the call out of the loop"

// above is to write a directive above what, which obj declares.
func (a *Analysis) above(what string, obj types.Object) string {
	if pos := a.Program.Fset.Position(obj.Pos()); pos.IsValid() {
		what += fmt.Sprintf(" (%s:%d)", filepath.Base(pos.Filename), pos.Line)
	}
	return "write //asyncgen:pure above " + what + ", or //asyncgen:effects with what it does" + elsewhere
}

// sayFunc is what to write of fn.
func (a *Analysis) sayFunc(fn *types.Func) string {
	fn = fn.Origin()
	if !a.isOurs(fn) {
		effect := "none"
		for v := range fn.Signature().Params().Variables() {
			if isWriter(v.Type()) {
				effect = "output"
			}
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
	case *ast.Ident:
		if hint := f.sayParam(fun); hint != "" {
			return hint
		}
	}
	return "declare the type of such functions, with //asyncgen:pure above it, or //asyncgen:effects with what they do" + elsewhere
}

// sayParam is what to write of the function that id, a parameter of f or of the function around it, stands for.
func (f *Function) sayParam(id *ast.Ident) string {
	v := f.variable(id)
	for f.outer != nil {
		f = f.outer
	}
	if v == nil || f.parameter(v.Name()) != v || f.Sets(v) != 1 {
		return ""
	}
	decl, where := f.Decl, "write //asyncgen:kernel pure=%s (or output=%[1]s, device=%[1]s, ...) above %s"
	if f.Restated != nil {
		decl = f.Restated.From
	}
	if f.Pkg.Kernels[decl] != nil {
		where = "write pure=%s (or output=%[1]s, device=%[1]s, ...) in the directive of %s"
	}
	return fmt.Sprintf(where, v.Name(), f.Decl.Name.Name) + elsewhere
}
