package adjacentread

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"

	"github.com/asyncgen/asyncgen/analysis/blocking"
	"github.com/asyncgen/asyncgen/analysis/internal/syntax"
	"github.com/asyncgen/asyncgen/analysis/lint"
	"github.com/asyncgen/asyncgen/analysis/sites"
	"github.com/asyncgen/asyncgen/analysis/tensorapi"
)

// A repeat is a read shortly after another one. The two could be one read.
type repeat struct {
	Call  *ast.CallExpr
	Name  string
	First *ast.CallExpr
	// Same reports whether both read the same.
	Same bool
}

// repeats lists the reads in loops that follow another read in the same iteration, if the first value
// doesn't decide whether the second is read.
func repeats(p *lint.Pass) []repeat {
	var list []repeat
	for _, f := range p.Funcs {
		for _, c := range f.Calls {
			if c.Away || c.API.Kind != tensorapi.Read || sites.Innermost(f.Package, c) == nil {
				continue
			}
			if first := readBefore(f.Package, c); first != nil && f.Package.GuardOf(f, c.Expr.Pos(), sites.Innermost(f.Package, c)) != blocking.Rarely {
				list = append(list, repeat{c.Expr, f.Package.CallName(c, blocking.CallWait{Kind: blocking.WaitRead}), first.Expr, true})
			}
		}
	}
	found := sites.Of(p)
	for i, s := range found {
		if i == 0 {
			continue
		}
		if first := found[i-1]; couldJoin(p.Package, first, s) {
			list = append(list, repeat{s.Call, s.Name, first.Call, false})
		}
	}
	slices.SortStableFunc(list, func(x, y repeat) int { return int(x.Call.Pos() - y.Call.Pos()) })
	return list
}

// together lists the reads of three or more numbers in one statement that returns or assigns them, outside of loops.
//
//	return x.Mean().Item(), x.Min().Item(), x.Max().Item()
func together(p *lint.Pass) [][]*blocking.Call {
	var list [][]*blocking.Call
	for _, f := range p.Funcs {
		if f.Name == "main" || f.Name == "init" || f.IsTest() {
			continue
		}
		reads := make(map[ast.Node][]*blocking.Call)
		var order []ast.Node
		for _, c := range f.Calls {
			if c.Away || c.API.Kind != tensorapi.Read || c.API.Arg != tensorapi.Recv || c.Lib != tensorapi.Ours() || len(c.Expr.Args) > 0 || !syntax.IsNumeric(p.TypesInfo.TypeOf(c.Expr)) ||
				sites.Innermost(p.Package, c) != nil || sites.IsAllowed(c) || p.GuardOf(f, c.Expr.Pos(), nil) != blocking.Always || len(p.ShortCircuits(c.Expr.Pos())) > 0 {
				continue
			}
			made := p.Calls[syntax.AsCall(c.Operand(tensorapi.Recv)[0])]
			stmt, ok := lint.Statement(c.Cur)
			if !ok || made == nil || made.API.Kind != tensorapi.Op {
				continue
			}
			switch n := stmt.Node().(type) {
			case *ast.ReturnStmt, *ast.AssignStmt:
				if len(reads[n]) == 0 {
					order = append(order, n)
				}
				if first := reads[n]; len(first) == 0 || first[0].Callee == c.Callee {
					reads[n] = append(reads[n], c)
				}
			}
		}
		for _, n := range order {
			if len(reads[n]) > 2 {
				list = append(list, reads[n])
			}
		}
	}
	return list
}

// readBefore returns the call before c, in the same iteration, that always reads what c reads again; or nil.
func readBefore(pkg *blocking.Package, c *blocking.Call) *blocking.Call {
	operands := c.Operand(c.API.Arg)
	if len(operands) != 1 {
		return nil
	}
	v := pkg.Local(operands[0])
	if v == nil || slices.ContainsFunc(c.Expr.Args, func(e ast.Expr) bool { return !sites.IsPlain(e) }) {
		return nil
	}
	fl := c.In.Flow()
	l := sites.Innermost(pkg, c)
	here := fl.BlockAt(c.Expr.Pos())
	text := types.ExprString(c.Expr)
	for _, d := range c.In.Calls {
		there := fl.BlockAt(d.Expr.Pos())
		if d.Away || d.Expr.End() > c.Expr.Pos() || d.Callee != c.Callee || types.ExprString(d.Expr) != text ||
			!pkg.Contains(l, d.In, d.Expr.Pos()) || !fl.Dominates(there, here) || len(pkg.ShortCircuits(d.Expr.Pos())) > 0 {
			continue
		}
		if !assignedBetween(pkg, c.Expr, d.Expr.End(), c.Expr.Pos()) {
			return d
		}
	}
	return nil
}

// assignedBetween reports whether a variable in e may be assigned between two places.
func assignedBetween(pkg *blocking.Package, e ast.Expr, from, to token.Pos) bool {
	found := false
	ast.Inspect(e, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			if v, ok := pkg.Info.Uses[id].(*types.Var); ok {
				for _, d := range pkg.Defs[v] {
					found = found || d.Kind == blocking.DefOther || from <= d.Pos && d.Pos <= to
				}
			}
		}
		return !found
	})
	return found
}

// couldJoin reports whether two sites read one number each, and the second follows the first whatever
// its value was.
func couldJoin(pkg *blocking.Package, first, second *sites.Site) bool {
	if first.Kind != blocking.WaitRead || second.Kind != blocking.WaitRead || first.In != second.In || first.Loop != second.Loop || first.Loop.Handed {
		return false
	}
	if !syntax.IsNumeric(pkg.Info.TypeOf(first.Call)) || !syntax.IsNumeric(pkg.Info.TypeOf(second.Call)) || first.Call.End() > second.Call.Pos() {
		return false
	}
	fl := first.In.Flow()
	if fl.BlockAt(first.Call.Pos()) != fl.BlockAt(second.Call.Pos()) {
		return false
	}
	return !slices.ContainsFunc(sites.Uses(pkg, first.At, first.Loop), func(p sites.Place) bool {
		return p.Use != sites.Kept && p.Use != sites.Printed && first.Call.End() <= p.Pos && p.Pos < second.Call.End()
	})
}
