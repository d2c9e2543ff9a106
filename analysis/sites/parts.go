package sites

import (
	"go/ast"

	"github.com/asyncgen/asyncgen/analysis/blocking"
	"github.com/asyncgen/asyncgen/analysis/internal/syntax"
	"github.com/asyncgen/asyncgen/analysis/tensorapi"
)

// Functions that read a part of a tensor, called in a loop over the parts.

// partByCallee is settledPart for the call of a function that reads, once, a part of a tensor: of one in a field of its
// receiver, in a variable around it if it is a literal, or among its operands. Which part, c's arguments say.
//
//	func (g grid) row(y int) []float32 { return g.cells.Row(y).Float32s() }
func partByCallee(pkg *blocking.Package, c *blocking.Call, l *blocking.Loop) (e ast.Expr, counted bool) {
	if p := c.Part(); p != nil {
		return partElsewhere(pkg, c, p, l)
	}
	f := c.Target
	recv := c.Operand(tensorapi.Recv)
	if f == nil || c.Away || f.Sig.Recv() != nil && (len(recv) != 1 || !IsPlain(recv[0]) || pkg.Varies(recv[0], l)) {
		return nil, false
	}
	for _, d := range f.Calls {
		if d.API.Kind != tensorapi.Read || d.API.Arg != tensorapi.Recv || d.Away || pkg.RunsInLoop(f, d) || pkg.GuardOf(f, d.Expr.Pos(), nil) != blocking.Always {
			continue
		}
		of, indices := pkg.Whole(d)
		of = settledIn(pkg, c, of, l)
		if of == nil || isAtHand(pkg, of, l) {
			continue
		}
		var given []ast.Expr
		for _, e := range indices {
			params, ok := pkg.Chosen(f, e)
			if !ok {
				return nil, false
			}
			given = append(given, operandsOf(c, params)...)
		}
		if counted, ok := countedIn(pkg, given, l); counted && ok {
			return of, true
		}
	}
	return nil, false
}

// partElsewhere is partByCallee for a function of another package, which reads the part p.
func partElsewhere(pkg *blocking.Package, c *blocking.Call, p *blocking.Part, l *blocking.Loop) (e ast.Expr, counted bool) {
	of := c.Operand(p.Of)
	if c.Away || len(of) != 1 || p.Cell && pkg.Any(l, (*blocking.Call).Mutates) {
		return nil, false
	}
	if p.Field && (!IsPlain(of[0]) || pkg.Varies(of[0], l) || pkg.SetsIn(typeOf(pkg, of[0]), l)) || !p.Field && (!isSettledTensor(pkg, of[0], l) || isAtHand(pkg, of[0], l)) {
		return nil, false
	}
	counted, ok := countedIn(pkg, operandsOf(c, p.Indices), l)
	if !counted || !ok {
		return nil, false
	}
	return of[0], true
}

// operandsOf lists what c passes for some of its operands.
func operandsOf(c *blocking.Call, of blocking.Operands) (list []ast.Expr) {
	for i := range c.Expr.Args {
		if of.Has(i) {
			list = append(list, c.Operand(i)...)
		}
	}
	return list
}

// settledIn returns the tensor that of, in the callee of c, stands for, if it is the same one in all iterations of l:
// a field of the receiver, a variable around a literal, or what c passes. Else it returns nil.
func settledIn(pkg *blocking.Package, c *blocking.Call, of ast.Expr, l *blocking.Loop) ast.Expr {
	f := c.Target
	if value := pkg.Calls[syntax.AsCall(of)]; value != nil && blocking.IsParamValue(value) && !pkg.Any(l, (*blocking.Call).Mutates) {
		of = value.Operand(tensorapi.Recv)[0] // of a parameter that l doesn't change
	}
	if field, ok := ast.Unparen(of).(*ast.SelectorExpr); ok {
		if f.Sig.Recv() == nil || pkg.Local(field.X) != f.Sig.Recv() || mayAssign(pkg, l, pkg.Variable(field)) {
			return nil
		}
		return field
	}
	v := pkg.Local(of)
	if v == nil || !blocking.IsTensor(v.Type()) || len(pkg.Defs[v]) > 0 && pkg.Params[v].Of != nil {
		return nil
	}
	if p := pkg.Params[v]; p.Of == f {
		of = nil
		if given := c.Operand(p.Operand); len(given) == 1 && isSettledTensor(pkg, given[0], l) {
			of = given[0]
		}
		return of
	}
	if f.Lit == nil || f.Lit.Pos() <= v.Pos() && v.Pos() < f.Lit.End() || !isSettled(pkg, v, l) {
		return nil
	}
	return of
}
