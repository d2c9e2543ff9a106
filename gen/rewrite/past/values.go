package past

import (
	"go/ast"
	"go/types"
	"slices"
	"strings"

	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"github.com/asyncgen/asyncgen/gen/internal/plan"
)

func (p *known) isTensor(e ast.Expr) bool {
	tv, ok := p.f.Info.Types[e]
	return ok && tv.IsValue() && p.f.Analysis.API.IsTensor(tv.Type)
}

// isTensors reports whether e is a struct of tensors that can be compared, and of nothing else.
func (p *known) isTensors(e ast.Expr) bool {
	tv, ok := p.f.Info.Types[e]
	return ok && tv.IsValue() && len(tensorsIn(p.f, tv.Type)) > 0
}

// tensorsIn returns the names of the fields of t, if it is a struct of tensors that the function can name, and of
// nothing else.
func tensorsIn(f *plan.Function, t types.Type) (names []string) {
	s, ok := t.Underlying().(*types.Struct)
	if !ok || tensorapi.IsNumber(t) {
		return nil
	}
	for field := range s.Fields() {
		if !f.Analysis.API.IsTensor(field.Type()) || field.Name() == "_" || !field.Exported() && field.Pkg() != f.Pkg.Types {
			return nil
		}
		names = append(names, field.Name())
	}
	return names
}

// hasTensor reports whether t is a struct with a field that is a tensor, or in one that is such a struct.
func hasTensor(f *plan.Function, t types.Type) bool {
	s, ok := t.Underlying().(*types.Struct)
	if !ok || tensorapi.IsNumber(t) { // whose shape is always the same
		return false
	}
	for field := range s.Fields() {
		if f.Analysis.API.IsTensor(field.Type()) || hasTensor(f, field.Type()) {
			return true
		}
	}
	return false
}

// capturesOther reports whether call, of a function literal, may find another value than in the iteration before in a
// variable that is no tensor.
func (p *known) capturesOther(call *ast.CallExpr) bool {
	return slices.ContainsFunc(p.f.CapturedBy(call), func(id *ast.Ident) bool { return !p.isTensor(id) && !p.isTensors(id) && !p.fixed(id) })
}

// goesByTensors reports whether nothing that call goes by may be other than in the iteration before, but tensors.
func (p *known) goesByTensors(call *ast.CallExpr) bool {
	if !p.fixed(call.Fun) || p.capturesOther(call) || p.f.Effects(call).Needs(p.changed.WithoutVariables()) {
		return false
	}
	return !slices.ContainsFunc(call.Args, func(arg ast.Expr) bool { return !p.isTensor(arg) && !p.isTensors(arg) && !p.fixed(arg) })
}

// chooses reports whether a function may return another one of its tensors each time.
func (p *known) chooses(call *ast.CallExpr) bool {
	e := p.f.Effects(call)
	return e.Needs(p.changed.WithoutVariables()) || slices.ContainsFunc(call.Args, func(arg ast.Expr) bool {
		return !p.isTensor(arg) && !p.isTensors(arg) && !p.fixed(arg)
	})
}

// sized reports whether the arguments of a call that may say how large something becomes are the same each time.
func (p *known) sized(call *ast.CallExpr) bool {
	f := p.f
	fn, _, _ := f.Callee(call)
	anyFloat := fn == nil || !needsNumbers[fn.Name()]
	for _, arg := range call.Args {
		if t := f.Info.TypeOf(arg); !f.Analysis.API.IsTensor(t) && !(anyFloat && isFloat(t)) && !tensorapi.IsNumber(t) && !p.fixed(arg) {
			return false
		}
	}
	return !call.Ellipsis.IsValid()
}

func isFloat(t types.Type) bool {
	b, ok := t.Underlying().(*types.Basic)
	return ok && b.Info()&types.IsFloat != 0
}

func isPointer(t types.Type) bool { _, ok := t.Underlying().(*types.Pointer); return ok }

func isMap(t types.Type) bool { _, ok := t.Underlying().(*types.Map); return ok }

func set(names string) map[string]bool {
	m := make(map[string]bool)
	for name := range strings.FieldsSeq(names) {
		m[name] = true
	}
	return m
}
