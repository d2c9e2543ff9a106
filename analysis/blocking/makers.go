package blocking

import (
	"go/ast"
	"go/types"
	"slices"

	"github.com/asyncgen/asyncgen/analysis/tensorapi"
)

// Fields that only constructors set, to arguments of theirs. The package itself knows nothing of these tensors, but
// the caller of the constructor does.
//
//	func NewItem(id int, score *tensor.Tensor) *Item { return &Item{id, score} }
//	func (i *Item) Score() float64                   { return i.score.Item() } // waits for what is in i

// isGivenToMaker reports whether v is a field that the package sets only in exported functions that return something,
// to tensors that they are given.
func (pkg *Package) isGivenToMaker(v *types.Var) bool {
	if v == nil || !v.IsField() || v.Pkg() != pkg.Pass.Pkg || !IsTensor(v.Type()) || len(pkg.Defs[v]) == 0 {
		return false
	}
	return !slices.ContainsFunc(pkg.Defs[v], func(d Def) bool {
		p := pkg.Params[pkg.localOf(d)]
		return p.Of == nil || p.Of != d.In || p.Operand == tensorapi.Recv || p.Of.Lit != nil || p.Of.Sig.Recv() != nil || p.Of.Sig.Results().Len() == 0 || !ast.IsExported(p.Of.Name)
	})
}

// localOf returns the local variable that d assigns as it is, or nil.
func (pkg *Package) localOf(d Def) *types.Var {
	if d.Value == nil || d.Kind != DefValue {
		return nil
	}
	return pkg.Local(d.Value)
}

// ofStruct returns the origin of e, a field that a constructor was given the tensor for, in terms of the function
// that e is in: where the struct comes from.
func (t *tracer) ofStruct(e ast.Expr, in *Func) (Origin, bool) {
	sel, ok := ast.Unparen(e).(*ast.SelectorExpr)
	if !ok || t.loop != nil || !t.isGivenToMaker(t.Variable(sel)) {
		return Origin{}, false
	}
	o := t.expr(sel.X, 0, in)
	return o, o != Origin{}
}
