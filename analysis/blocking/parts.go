package blocking

import (
	"go/ast"

	"github.com/asyncgen/asyncgen/analysis/internal/syntax"
	"github.com/asyncgen/asyncgen/analysis/tensorapi"
)

// Functions that read a part of a tensor, which their callers choose. In a loop over the parts, all of them could be
// read at once.

// Part is the fact about a function that reads, once and in every call, a part of a tensor: of an operand, or of a
// field of its receiver.
//
//	func (t *Table) Vector(key int) []float32 { return t.weights.Row(key).Float32s() } // part 0 of a field
type Part struct {
	// Of is the operand with the tensor, and Field whether the tensor is in a field of it. Cell reports whether the
	// field is a parameter, and the tensor its value.
	Of          int
	Field, Cell bool
	// Indices are the operands that say which part.
	Indices Operands
}

// AFact marks Part as a fact of package analysis.
func (*Part) AFact() {}

// String writes the fact as tests show it: "part(0 of recv's field)".
func (p *Part) String() string {
	text := "part(" + Origin{From: p.Indices}.String() + " of " + operandName(p.Of)
	if p.Field {
		text += "'s field"
	}
	return text + ")"
}

// exportParts exports which functions of the package read parts of tensors.
func exportParts(pkg *Package) {
	for fn, f := range pkg.Decls {
		if p := partOf(pkg, f); p != nil {
			pkg.Pass.ExportObjectFact(fn, p)
		}
	}
}

// partOf returns which part of a tensor f reads, or nil.
func partOf(pkg *Package, f *Func) *Part {
	for _, d := range f.Calls {
		if d.API.Kind != tensorapi.Read || d.API.Arg != tensorapi.Recv || d.Away || pkg.RunsInLoop(f, d) || pkg.GuardOf(f, d.Expr.Pos(), nil) != Always {
			continue
		}
		of, indices := pkg.Whole(d)
		var p Part
		for _, e := range indices {
			of, ok := pkg.Chosen(f, e)
			if !ok {
				return nil
			}
			p.Indices |= of
		}
		if c := pkg.Calls[syntax.AsCall(of)]; c != nil && IsParamValue(c) {
			p.Cell, of = true, c.Operand(tensorapi.Recv)[0]
		}
		base := of
		if field, ok := ast.Unparen(of).(*ast.SelectorExpr); ok {
			p.Field, base = true, field.X
		}
		v := pkg.Local(base)
		owner, isParam := pkg.Params[v]
		if !isParam || owner.Of != f || len(pkg.Defs[v]) > 0 || p.Field && owner.Operand != tensorapi.Recv || p.Indices == 0 {
			continue
		}
		p.Of = owner.Operand
		return &p
	}
	return nil
}

// Whole returns a tensor and the indices of the part that d reads: for x.Row(i).At(j) these are x, j and i.
func (pkg *Package) Whole(d *Call) (of ast.Expr, indices []ast.Expr) {
	indices = append(indices, d.Expr.Args...)
	of = d.Operand(tensorapi.Recv)[0]
	for {
		view := pkg.Calls[syntax.AsCall(of)]
		if view == nil || view.API.Kind != tensorapi.View || view.API.Arg != tensorapi.Recv {
			return of, indices
		}
		indices = append(indices, view.Expr.Args...)
		of = view.Operand(tensorapi.Recv)[0]
	}
}

// Chosen returns the parameters of f that e is computed from, as key is by key+1. It is false if there is anything else
// in e than these and constants.
func (pkg *Package) Chosen(f *Func, e ast.Expr) (params Operands, ok bool) {
	ok = true
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Ident:
			p, isParam := pkg.Params[pkg.Local(n)]
			switch {
			case isParam && p.Of == f && len(pkg.Defs[pkg.Local(n)]) == 0:
				params |= operands(p.Operand)
			case pkg.Info.Types[n].Value == nil:
				ok = false
			}
		case nil, *ast.BasicLit, *ast.BinaryExpr, *ast.ParenExpr:
		default:
			ok = ok && pkg.Info.Types[e].Value != nil
		}
		return ok
	})
	return params, ok
}

// Part returns which part of a tensor c's callee reads, if the callee is in another package and reads one; or nil.
func (c *Call) Part() *Part {
	p := new(Part)
	if fn := c.Callee; fn == nil || fn.Pkg() == nil || fn.Pkg() == c.In.Package.Pass.Pkg || !c.In.Package.Pass.ImportObjectFact(fn.Origin(), p) {
		return nil
	}
	return p
}
