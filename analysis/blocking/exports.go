package blocking

import (
	"go/ast"
	"go/types"

	"github.com/asyncgen/asyncgen/analysis/internal/syntax"
)

// What other packages get to know: the summaries of functions, and of what stands for functions.

// export exports the facts about the package: the summary of each function, of the methods of its interfaces and of its
// variables of function type, and what functions set and read in parts.
func export(pkg *Package) {
	exportSets(pkg)
	exportParts(pkg)
	pass := pkg.Pass
	for fn, f := range pkg.Decls {
		if !f.Summary.isZero() {
			pass.ExportObjectFact(fn, &f.Summary)
		}
	}
	scope := pass.Pkg.Scope()
	for _, name := range scope.Names() {
		switch obj := scope.Lookup(name).(type) {
		case *types.TypeName:
			switch t := obj.Type().Underlying().(type) {
			case *types.Interface:
				exportMethods(pkg, t)
			case *types.Struct:
				exportFields(pkg, t)
			}
		case *types.Var:
			if !obj.Exported() || !syntax.IsFunc(obj.Type()) {
				continue
			}
			if s := funcObject(pkg, obj, 0).Summary(); !s.isZero() {
				pass.ExportObjectFact(obj, s)
			}
		}
	}
}

// exportMethods exports, for the methods of an interface of the package, what the methods of its types agree on that a
// call may lead to.
func exportMethods(pkg *Package, it *types.Interface) {
	for m := range it.ExplicitMethods() {
		if list := implementations(pkg, m); len(list) > 0 {
			if s := agreement(list); !s.isZero() {
				pkg.Pass.ExportObjectFact(m, s)
			}
		}
	}
}

// exportFields exports, for the exported fields of function type in a struct, what the functions agree on that the
// package sets them to.
func exportFields(pkg *Package, t *types.Struct) {
	for v := range t.Fields() {
		if !v.Exported() || !syntax.IsFunc(v.Type()) {
			continue
		}
		if list, bound := setToField(pkg, v); len(list) > 0 && !bound {
			if s := agreement(list); !s.isZero() {
				pkg.Pass.ExportObjectFact(v, s)
			}
		}
	}
}

// fieldOfOthers is what is known of the functions in the field e, of a struct of another package, if this package
// leaves them as they are; or nil.
//
//	m := models.New() // sets m.Step
//	m.Step(x)
func fieldOfOthers(pkg *Package, e ast.Expr) *Summary {
	sel, ok := ast.Unparen(e).(*ast.SelectorExpr)
	if !ok {
		return nil
	}
	v, s := pkg.Variable(sel), new(Summary)
	if v == nil || !v.IsField() || v.Pkg() == pkg.Pass.Pkg || len(pkg.Defs[v]) > 0 || !pkg.Pass.ImportObjectFact(v, s) {
		return nil
	}
	return s
}

// lastDefs lists the assignments to v. Those that a variable of the package is declared with are left out if the
// function init sets it later in any case.
//
//	var Alarm = func(loss *tensor.Tensor) bool { return false }
//	func init() { Alarm = isHigh }
func (pkg *Package) lastDefs(v *types.Var) []Def {
	defs := pkg.Defs[v]
	if len(defs) != 2 || v.Parent() != pkg.Pass.Pkg.Scope() {
		return defs
	}
	for i, d := range defs {
		if d.In != nil && d.In.Name == "init" && d.In.Sig.Recv() == nil && defs[1-i].In == nil && d.In.Flow().Conditions(d.In.Flow().BlockAt(d.Pos)) == nil {
			return defs[i : i+1]
		}
	}
	return defs
}

// setTo lists the functions that the package assigns to the field e. It reports whether some are method
// values, with receivers of their own (bound). It returns nil if there are none or more than
// maxImplementations, or if one of the assigned values is unknown:
//
//	t.step = slow // t.step() calls one of
//	t.step = fast // the two
func setTo(pkg *Package, e ast.Expr) (list []*Func, bound bool) {
	sel, ok := ast.Unparen(e).(*ast.SelectorExpr)
	if !ok {
		return nil, false
	}
	return setToField(pkg, pkg.Variable(sel))
}

// setToField is setTo for the field v.
func setToField(pkg *Package, v *types.Var) (list []*Func, bound bool) {
	if v == nil || !v.IsField() || len(pkg.Defs[v]) > maxImplementations {
		return nil, false
	}
	for _, d := range pkg.Defs[v] {
		if d.Kind == DefValue && syntax.IsNil(pkg.Info, d.Value) {
			continue
		}
		if d.Kind != DefValue {
			return nil, false
		}
		f := pkg.FuncValue(d.Value, 0)
		if f.Fn == nil {
			return nil, false
		}
		bound = bound || f.recv != nil
		list = append(list, f.Fn)
	}
	return list, bound
}
