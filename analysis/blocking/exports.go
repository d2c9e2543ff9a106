package blocking

import (
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
			if it, ok := obj.Type().Underlying().(*types.Interface); ok {
				exportMethods(pkg, it)
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
